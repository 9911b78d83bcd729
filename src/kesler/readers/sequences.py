"""FASTA and FASTQ: sequences of DNA and proteins, each below a line that names it."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from kesler.errors import KeslerError
from kesler.readers.features import Names
from kesler.readers.lines import Lines, decode
from kesler.readers.reader import BadRow, Example, Reader, Unlabelled
from kesler.readers.records import Fields, Records, listed

COLUMNS = ("id", "description", "header", "sequence")
TAXON = "taxon"
"""The column of the labels of a file of labels."""
TITLES = ("id", "ids", "feature id", "feature-id", "featureid", "sample id", "#otu id", "otu id")
"""The first cells of headers of files of labels."""

Record = tuple[bytes, list[bytes]]
"""The line that names a sequence, and the lines below it."""
Numbered = tuple[int, bytes]


def fasta_reader(lines: Lines, fields: Fields, names: Names, labels: str | None) -> Reader:
    """Read FASTA, sequences of one or more lines below lines that begin with ``>``.

    The columns are ``id``, the first word of such a line, ``description``, the words behind it,
    ``header``, the whole line, and ``sequence``, which alone is learnt. The label is one of the
    others, or with ``labels=`` that of the identifier in a file of labels.
    """
    rows = _records_of_fasta(lines.filled(), lines.longest)
    return _reader(rows, _letters, fields, names, labels)


def fastq_reader(lines: Lines, fields: Fields, names: Names, labels: str | None) -> Reader:
    """Read FASTQ, records of four lines: ``@`` and a name, letters, ``+``, qualities.

    The columns are those of FASTA; qualities are not learnt.
    """
    return _reader(_records_of_fastq(lines.filled()), _letters_of_read, fields, names, labels)


def begins_fasta(line: str) -> bool:
    """Return whether a first line is FASTA: ``>`` and a name."""
    return line.startswith(">") and line[1:2].isalnum()


def begins_fastq(line: str) -> bool:
    """Return whether a first line may be FASTQ: ``@`` and a name without commas."""
    return line.startswith("@") and line[1:2].isalnum() and "," not in line


def labels_of(path: str) -> dict[str, str]:
    r"""Return the labels of a file, of identifiers in its first column; tabs separate columns.

    A first row that names the columns is left out, as are further columns.

    Raises
    ------
    KeslerError
        If it cannot be read, or an identifier has two labels.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     path = Path(directory, "taxonomy.tsv")
    ...     _ = path.write_text("Feature ID\tTaxon\ns1\tk__Fungi; p__Ascomycota\n")
    ...     labels_of(str(path))
    {'s1': 'k__Fungi; p__Ascomycota'}
    """
    found = dict[str, str]()
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            for number, row in enumerate(rows, 1):
                cells = [cell.strip() for cell in row]
                if not any(cells) or (number == 1 and cells[0].lower() in TITLES):
                    continue
                if len(cells) < 2 or not cells[1]:
                    raise KeslerError(
                        f"{path}, line {number}: it has no label: give an identifier, a tab and "
                        "its label in each line"
                    )
                if found.setdefault(cells[0], cells[1]) != cells[1]:
                    raise KeslerError(
                        f"{path}, line {number}: {cells[0]!r} has the labels {found[cells[0]]!r} "
                        f"and {cells[1]!r}: give each identifier one"
                    )
    except (OSError, UnicodeError, csv.Error) as error:
        raise KeslerError(
            f"{path} can't be read as a file of labels ({error}): give an identifier, a tab and "
            "its label in each line, in UTF-8"
        ) from error
    return found


def _reader(
    rows: Iterator[tuple[int, Record | BadRow]],
    letters: Callable[[Sequence[str]], str],
    fields: Fields,
    names: Names,
    labels: str | None,
) -> Reader:
    taxa, columns = dict[str, str](), [*COLUMNS]
    if labels is not None:
        if fields.label is not None:
            raise KeslerError(
                f"{fields.source} has labels in label=... and in labels=...: give one of them"
            )
        taxa, fields = labels_of(labels), replace(fields, label=TAXON)
        columns.append(TAXON)
    if fields.label is None and fields.require_labels:
        raise KeslerError(
            f"{fields.source} has no labels beside its sequences: give labels=..., a file of an "
            "identifier, a tab and its label in each line, or name the column of the labels with "
            f"label=...: it has {listed(COLUMNS[:-1])}"
        )
    fields.require_columns(columns)
    records, kept = Records(fields, names), {"sequence", fields.label, fields.id, *fields.text}

    def parse(row: Record | BadRow) -> Example:
        if isinstance(row, BadRow):
            raise row
        header = decode(row[0])[1:].strip()
        id, *description = header.split(maxsplit=1) or [""]
        sequence = letters([decode(line).strip() for line in row[1]])
        if labels is not None and fields.require_labels and id not in taxa:
            raise Unlabelled(f"{labels} has no label of {id!r}")
        cells = id, "".join(description), header, sequence, taxa.get(id)
        found = zip((*COLUMNS, TAXON), cells, strict=True)
        return records.example({name: cell for name, cell in found if name in kept})

    return Reader("line", rows, parse, records.gather, names.vocabulary)


def _letters(lines: Sequence[str]) -> str:
    found = "".join(lines)
    if not found:
        raise BadRow("no sequence is below it")
    return found


def _letters_of_read(lines: Sequence[str]) -> str:
    letters, plus, qualities = lines
    if not plus.startswith("+"):
        raise BadRow("the third line of the record does not begin with +")
    if len(letters) != len(qualities):
        raise BadRow(f"it has {len(letters)} letters and {len(qualities)} qualities")
    return _letters([letters])


def _records_of_fasta(
    lines: Iterator[Numbered], longest: int
) -> Iterator[tuple[int, Record | BadRow]]:
    begin, header, below = 0, b"", bytearray()
    for number, line in lines:
        if line.startswith(b">"):
            if begin:
                yield begin, (header, [bytes(below)])
            begin, header, below = number, line, bytearray()
        elif begin:
            below += line.strip()
            if len(below) > longest:
                raise KeslerError(
                    f"the sequence on line {begin} has more than {longest:,} bytes: check the "
                    "file, or allow more bytes of memory with max_line=..."
                )
        elif not line.startswith(b";"):  # a comment of old files
            yield number, BadRow("it does not begin with >, as a sequence of FASTA does")
    if begin:
        yield begin, (header, [bytes(below)])


def _records_of_fastq(lines: Iterator[Numbered]) -> Iterator[tuple[int, Record | BadRow]]:
    for number, line in lines:
        if not line.startswith(b"@"):
            yield number, BadRow("it does not begin with @, as a record of FASTQ does")
            continue
        below = [following for _, following in islice(lines, 3)]
        yield number, (line, below) if len(below) == 3 else BadRow("the record is cut short")
