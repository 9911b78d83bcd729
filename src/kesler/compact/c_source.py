"""The source of a compact classifier in C99, without dependencies or allocations."""

from __future__ import annotations

import math
import zlib
from importlib import resources
from typing import Any

import numpy as np

from kesler.compact.characters import BLOCK_BITS, CLUSTERS, Map, characters
from kesler.compact.layout import FRACTION, SPREAD, Content, bytes_of_records
from kesler.compact.model import LEAST_COUNTS, ONE
from kesler.compact.names import MIXED, NO_RUNS, Range, Terms, Words
from kesler.data.texts import BEGINNING, BEGINS, FIRST_CUT, RUNS, RUNS_OF_NAMES, TextLengths
from kesler.sharing.exports.c_source import header_source, literal_text

IN_LINE = 16  # numbers of a table

SOURCE = """\
/*
{account}
*/
#include <stddef.h>
#include <stdint.h>

{declarations}
{definitions}
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

{probabilities}
void {name}_probabilities(const char *text, size_t n, void *scratch, double *probabilities);
"""

OF_CLASSES = "/* Write the probabilities of all classes. */"
OF_SETS = """\
/*
 * The classes are labels, of which a text may have any number: those of a probability above this
 * one are predicted.
 */
extern const double {name}_threshold;

/*
 * Write for each label the probability that the text has it, whatever others it has: the sum is
 * the expected number of labels, not 1.
 */"""


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
    own = "lengths.c" if content.offsets is None else "offsets.c"
    parts = "reader.c", "features.c", own, "sets.c" if content.has_sets else "classes.c"
    folder = resources.files("kesler.compact")
    reader = "\n".join(folder.joinpath(part).read_text() for part in parts)
    return SOURCE.format(
        account=_account(content),
        declarations=_declarations(content, name) if header is None else f'#include "{header}"\n',
        definitions=_definitions(content, name),
        constants="\n".join(f"#define {key} {value}" for key, value in _constants(content).items()),
        tables=_tables_of_content(content) + _tables_of_characters(),
        reader=reader.replace("NAME_", f"{name}_"),
    )


def c_header(content: Content, name: str) -> str:
    """Return the header file for `c_source`."""
    declared, size_t = _declarations(content, name), "\n#include <stddef.h>\n"
    return header_source(_account(content), name, declared, size_t)


def _account(content: Content) -> str:
    return (
        f"{len(content.labels):,} classes of texts from {len(content.keys):,} features and "
        f"{len(content.classes):,} weights of {content.widths.code} bits.\nWritten by Kesler."
    )


def _declarations(content: Content, name: str) -> str:
    probabilities = OF_SETS.format(name=name) if content.has_sets else OF_CLASSES
    return DECLARATIONS.format(
        name=name, n_classes=len(content.labels), probabilities=probabilities
    )


def _definitions(content: Content, name: str) -> str:
    """Return what is declared besides functions."""
    labels = ",\n".join(f"    {literal_text(label)}" for label in content.labels)
    found = f"const char *const {name}_labels[{len(content.labels)}] = {{\n{labels}\n}};\n"
    if content.offsets is None or content.offsets.to_beat is None:
        return found
    threshold = _threshold(content.offsets.to_beat, content)
    return f"{found}const double {name}_threshold = {threshold.hex()};\n"


def _threshold(to_beat: int, content: Content) -> float:
    """Return the probability between those of the least odds predicted and the odds below."""
    odds = (to_beat + 0.5) * (content.inverse / FRACTION)
    return 0.5 + 0.5 * math.tanh(odds / 2)


def _constants(content: Content) -> dict[str, Any]:
    """Return the numbers that the reader has names for."""
    widths, found = content.widths, characters()
    return {
        **_constants_of_words(content.features),
        **_constants_of_terms(content.features),
        "N_CLASSES": len(content.labels),
        "N_OWNERS": content.n_owners,
        "N_FEATURES": f"{len(content.keys)}u",
        "KEY_BITS": widths.key,
        "REST_BITS": widths.rest,
        "COUNT_BITS": widths.count,
        "OWNER_BITS": widths.owner,
        "CODE_BITS": widths.code,
        "ENTRY_BITS": widths.owner + widths.code,
        "MIXED": f"{MIXED}u",
        "FIRST_CUT": f"{ord(FIRST_CUT)}u",
        "INVERSE": content.inverse.hex(),
        "LAPSE": content.lapse.hex(),
        "SPREAD": f"{SPREAD:.1f}",
        "FRACTION": FRACTION,
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


def _constants_of_words(features: Words | Terms) -> dict[str, Any]:
    """Return the numbers that say which texts are short, and what their features are."""
    lengths = features.lengths if isinstance(features, Words) else None
    known = lengths or TextLengths()
    return {
        "HAS_SHORT": int(lengths is not None),
        "N_TEXTS": f"{known.n_texts}u",
        "N_CHARACTERS": f"{known.n_characters}u",
        "SHORT_TEXT": known.limits.short,
        "NAME": known.limits.name if _has_names(features) else 0,
        "BEGINNING": BEGINNING if _has_beginning(features) else 0,
        "LEAST_RUN": RUNS[0],
        "LEAST_RUN_OF_NAMES": RUNS_OF_NAMES[0],
        "LONGEST_RUN": RUNS[1],
    }


def _has_names(features: Words | Terms) -> bool:
    """Return whether there are texts that count as names."""
    lengths = features.lengths if isinstance(features, Words) else None
    return lengths is not None and lengths.runs("") == RUNS_OF_NAMES


def _has_beginning(features: Words | Terms) -> bool:
    """Return whether the words of the beginning of some texts are features of their own."""
    if isinstance(features, Terms):
        return features.beginning
    return features.lengths is not None and features.lengths.limits.beginning > 0


def _constants_of_terms(features: Words | Terms) -> dict[str, Any]:
    """Return the lengths of runs, the CRCs of what names begin with, and a bound of features."""
    if isinstance(features, Words):
        terms, begins = Terms("", 1, NO_RUNS, NO_RUNS), ("", "", "")
        n_short = 4 * _n_of(RUNS_OF_NAMES if _has_names(features) else RUNS) - 1
    else:
        terms, begins, n_short = features, (":", "~", "<"), 3 * features.beginning
    chars, subwords = terms.chars, terms.subwords
    words, across, within = (_begun(terms.column + sign) for sign in begins)
    n_lengths = _n_of(chars) + _n_of(subwords)
    return {
        "NGRAMS": terms.ngrams,
        "LEAST_CHARS": chars[0],
        "MOST_CHARS": chars[1],
        "LEAST_SUBWORD": subwords[0],
        "MOST_SUBWORD": subwords[1],
        "MOST_RUN": max(RUNS[1], chars[1], subwords[1]),
        "BEGIN_WORDS": words,
        "BEGIN_CHARS": across,
        "BEGIN_SUBWORDS": within,
        "BEGIN_CAPITALS": _begun(""),
        "BEGIN_FIRST": _begun(terms.column + begins[0] + BEGINS),
        "MOST_OF_CHARACTER": f"{3 * terms.ngrams + 9 * n_lengths + n_short}u",
    }


def _n_of(runs: Range) -> int:
    return runs[1] - runs[0] + 1


def _begun(name: str) -> str:
    """Return the state of a CRC behind the beginning of a name."""
    return f"0x{zlib.crc32(name.encode()) ^ 0xFFFFFFFF:x}u"


def _tables_of_content(content: Content) -> str:
    records, starts = bytes_of_records(content)
    bytes_of = {"records": records, "buckets": starts.astype("<u4").tobytes()}
    tables = [_table(name, np.frombuffer(each, np.uint8)) for name, each in bytes_of.items()]
    if content.offsets is not None:
        tables.append(_table("offsets", content.offsets.of_classes))
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
    kind = f"int{_bits(2 * max(most, -1 - least) + 1)}_t" if least < 0 else f"uint{_bits(most)}_t"
    size = "".join(f"[{n}]" for n in array.shape)
    spelt = [str(number) for number in array.ravel().tolist()]
    if array.ndim == 2:
        width = array.shape[1]
        rows = (spelt[i : i + width] for i in range(0, len(spelt), width))
        spelt = [f"{{{','.join(row)}}}" for row in rows]
    lines = (", ".join(spelt[i : i + IN_LINE]) for i in range(0, len(spelt), IN_LINE))
    body = ",\n".join(f"    {line}" for line in lines)
    return f"static const {kind} {name}{size} = {{\n{body}\n}};\n"


def _bits(most: int) -> int:
    return next(bits for bits in (8, 16, 32) if most < 1 << bits)
