"""The source of a compact classifier in C99, without dependencies or allocations."""

from __future__ import annotations

from importlib import resources
from typing import Any

import numpy as np

from kesler.compact.characters import BLOCK_BITS, CLUSTERS, Map, characters
from kesler.compact.classifier import LEAST_COUNTS, ONE
from kesler.compact.layout import Content, bytes_of_records
from kesler.compact.names import MIXED
from kesler.data.texts import FIRST_CUT, RUN_LENGTH, SHORT_TEXT
from kesler.sharing.exports.c_source import literal_text

IN_LINE = 16  # numbers of a table

SOURCE = """\
/*
{account}
*/
#include <stddef.h>
#include <stdint.h>

{declarations}
{classes}
{constants}
{tables}
{reader}"""

DECLARATIONS = """\
/* The labels of the {n_classes} classes, in UTF-8, by their numbers. */
extern const char *const {name}_labels[{n_classes}];

/* Return the bytes of working memory for a text of n bytes. */
size_t {name}_scratch(size_t n);

/*
 * Return the number of the most probable class of a text of n bytes in UTF-8, and its probability
 * if there is a place for it. Wrong bytes are read as the character U+FFFD. The working memory is
 * aligned as a double is, and needs no content.
 */
int {name}_predict(const char *text, size_t n, void *scratch, double *probability);

/* Write the probabilities of all classes. */
void {name}_probabilities(const char *text, size_t n, void *scratch, double *probabilities);
"""

HEADER = """\
/*
{account}
*/
#ifndef {guard}
#define {guard}

#include <stddef.h>

#ifdef __cplusplus
extern "C" {{
#endif

{declarations}
#ifdef __cplusplus
}}
#endif

#endif
"""


def c_source(content: Content, name: str, header: str | None) -> str:
    """Return the source of ``NAME_predict`` and others.

    Parameters
    ----------
    content : Content
    name : str
        The prefix of the names, an identifier.
    header : str or None
        The header file to include; None puts the declarations into the source.
    """
    labels = ",\n".join(f"    {literal_text(label)}" for label in content.labels)
    reader = resources.files("kesler.compact").joinpath("reader.c").read_text()
    return SOURCE.format(
        account=_account(content),
        declarations=_declarations(content, name) if header is None else f'#include "{header}"\n',
        classes=f"const char *const {name}_labels[{len(content.labels)}] = {{\n{labels}\n}};\n",
        constants="\n".join(f"#define {key} {value}" for key, value in _constants(content).items()),
        tables=_tables_of_content(content) + _tables_of_characters(),
        reader=reader.replace("NAME_", f"{name}_"),
    )


def c_header(content: Content, name: str) -> str:
    """Return the header file for `c_source`."""
    return HEADER.format(
        account=_account(content),
        guard=f"{name.upper()}_H",
        declarations=_declarations(content, name),
    )


def _account(content: Content) -> str:
    return (
        f"{len(content.labels):,} classes of texts from {len(content.keys):,} features and "
        f"{len(content.classes):,} weights of {content.widths.code} bits.\nWritten by Kesler."
    )


def _declarations(content: Content, name: str) -> str:
    return DECLARATIONS.format(name=name, n_classes=len(content.labels))


def _constants(content: Content) -> dict[str, Any]:
    """Return the numbers that the reader has names for."""
    widths, lengths, found = content.widths, content.lengths, characters()
    return {
        "N_CLASSES": len(content.labels),
        "N_FEATURES": f"{len(content.keys)}u",
        "KEY_BITS": widths.key,
        "REST_BITS": widths.rest,
        "COUNT_BITS": widths.count,
        "OWNER_BITS": widths.owner,
        "CODE_BITS": widths.code,
        "ENTRY_BITS": widths.owner + widths.code,
        "MIXED": f"{MIXED}u",
        "HAS_SHORT": int(lengths is not None),
        "N_TEXTS": f"{0 if lengths is None else lengths.n_texts}u",
        "N_CHARACTERS": f"{0 if lengths is None else lengths.n_characters}u",
        "SHORT_TEXT": SHORT_TEXT,
        "RUN_LENGTH": RUN_LENGTH,
        "FIRST_CUT": f"{ord(FIRST_CUT)}u",
        "INVERSE": content.inverse.hex(),
        "LAPSE": content.lapse.hex(),
        "ONE": f"{ONE}u",
        "N_LEAST_COUNTS": len(LEAST_COUNTS),
        "BLOCK": BLOCK_BITS,
        "REPLACEMENT": "0xfffdu",
        "N_FOLDS": len(found.folds.keys),
        "N_UPPERS": len(found.uppers.keys),
        "N_PARTS": len(found.parts.keys),
        "N_PAIRS": len(found.pairs),
        **{f"IS_{kind}": f"0x{1 << bit:x}u" for bit, kind in enumerate(found.kinds)},
        **{f"C_{name}": number for number, name in enumerate(CLUSTERS)},
    }


def _tables_of_content(content: Content) -> str:
    records, starts = bytes_of_records(content)
    bytes_of = {"records": records, "buckets": starts.astype("<u4").tobytes()}
    tables = [_table(name, np.frombuffer(each, np.uint8)) for name, each in bytes_of.items()]
    return "".join([_table("levels", content.levels), *tables])


def _tables_of_characters() -> str:
    found = characters()
    return "".join(
        [
            _table("class_block", found.blocks),
            _table("class_at", found.classes),
            _table("kinds_of", found.kinds_of),
            _table("cluster_of", found.clusters_of),
            _table("rank_of", found.ranks_of),
            *_tables_of_map("fold", found.folds),
            *_tables_of_map("upper", found.uppers),
            *_tables_of_map("part", found.parts),
            _table("pairs", found.pairs),
            _table("least_counts", LEAST_COUNTS),
            _table("crc_of", crc_table()),
        ]
    )


def _tables_of_map(name: str, of: Map) -> list[str]:
    parts = {"key": of.keys, "start": of.starts, "value": of.values}
    return [_table(f"{name}_{part}", numbers) for part, numbers in parts.items()]


def crc_table() -> list[int]:
    """Return what the CRC-32 of each byte is.

    Examples
    --------
    >>> crc_table()[1]
    1996959894
    """
    found = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0xEDB88320 if byte & 1 else 0)
        found.append(byte)
    return found


def _table(name: str, numbers: Any) -> str:
    """Return a table of numbers in the smallest type that holds them."""
    array = np.asarray(numbers)
    least, most = (int(each) for each in (array.min(initial=0), array.max(initial=0)))
    kind = "int16_t" if least < 0 else _kind_of(most)
    size = "".join(f"[{n}]" for n in array.shape)
    spelt = [str(number) for number in array.ravel().tolist()]
    if array.ndim == 2:
        width = array.shape[1]
        rows = (spelt[i : i + width] for i in range(0, len(spelt), width))
        spelt = [f"{{{','.join(row)}}}" for row in rows]
    lines = (", ".join(spelt[i : i + IN_LINE]) for i in range(0, len(spelt), IN_LINE))
    body = ",\n".join(f"    {line}" for line in lines)
    return f"static const {kind} {name}{size} = {{\n{body}\n}};\n"


def _kind_of(most: int) -> str:
    return next(f"uint{bits}_t" for bits in (8, 16, 32) if most < 1 << bits)
