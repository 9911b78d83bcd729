"""FASTA and FASTQ as dnaio writes them, and files of labels."""

from __future__ import annotations

import gzip
import random
from pathlib import Path
from typing import Any

import dnaio
import pytest

from kesler import KeslerError, load
from kesler.cli import main
from kesler.errors import ReadingWarning
from kesler.readers import open_stream

FORMS = ["fasta", "fa.gz", "fastq", "fq.gz", "txt"]


def sequences_of(n: int) -> list[tuple[str, str, str]]:
    """Return names, sequences and taxa: mutated pieces of an ancestor of each taxon."""
    drawn = random.Random(6)
    ancestors = {
        f"k__Fungi; s__{name}": drawn.choices("ACGT", k=300)
        for name in ("oak rot", "rust", "yeast")
    }
    rows = []
    for i in range(n):
        taxon = drawn.choice([*ancestors])
        copy = [drawn.choice("ACGT") if drawn.random() < 0.05 else a for a in ancestors[taxon]]
        rows.append((f"s{i} sample {i % 3}", "".join(copy[: drawn.randint(100, 300)]), taxon))
    return rows


def write(path: Path, rows: list[tuple[str, str, str]]) -> None:
    """Write sequences as dnaio does; a text file without a suffix of its own is FASTA."""
    form = "fastq" if ".f" in path.name and "q" in path.suffixes[0] else "fasta"
    with dnaio.open(path, mode="w", fileformat=form) as file:
        for name, sequence, _ in rows:
            qualities = "I" * len(sequence) if form == "fastq" else None
            file.write(dnaio.SequenceRecord(name, sequence, qualities))


def write_labels(path: Path, rows: list[tuple[str, str, str]], header: str = "") -> None:
    lines = [f"{name.split()[0]}\t{taxon}\t0.97" for name, _, taxon in rows]
    path.write_text("\n".join([*([header] if header else []), *lines]) + "\n")


def read(path: Path, **options: Any) -> list[tuple[Any, str]]:
    stream = open_stream(path, as_table=True, **options)
    return [
        (label, sequence)
        for block in stream
        for label, sequence in zip(block.labels, block.rows.columns["sequence"], strict=True)
    ]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("header", ["", "Feature ID\tTaxon\tConfidence", "#OTU ID\ttaxonomy"])
def test_what_dnaio_writes_is_read(form: str, header: str, tmp_path: Path) -> None:
    rows, path = sequences_of(60), tmp_path / f"rows.{form}"
    write(path, rows)
    write_labels(tmp_path / "taxa.tsv", rows, header)
    found = read(path, labels=tmp_path / "taxa.tsv")
    assert found == [(taxon, sequence) for _, sequence, taxon in rows]
    by_description = read(path, label="description")
    assert by_description == [(name.partition(" ")[2], sequence) for name, sequence, _ in rows]
    by_header = read(path, label="header")
    assert by_header == [(name, sequence) for name, sequence, _ in rows]


def test_taxa_behind_identifiers_are_descriptions(tmp_path: Path) -> None:
    path = tmp_path / "rdp.fasta"
    path.write_text(">A1|S1\tRoot;Bacteria; spec. one\nACGT\n>A2 Root;Archaea\nACGA\n")
    assert read(path, label="description") == [
        ("Root;Bacteria; spec. one", "ACGT"),
        ("Root;Archaea", "ACGA"),
    ]


def test_labels_of_other_identifiers_are_named(tmp_path: Path) -> None:
    write(tmp_path / "x.fasta", sequences_of(3))
    (tmp_path / "taxa.tsv").write_text("other\tk__Fungi\n")
    with pytest.raises(KeslerError, match=r"taxa\.tsv has no label of 's0', nor in any row"):
        read(tmp_path / "x.fasta", labels=tmp_path / "taxa.tsv")


def test_lines_are_joined_in_any_form(tmp_path: Path) -> None:
    path = tmp_path / "rows.fasta"
    path.write_bytes(b"\xef\xbb\xbf; old\r\n>a  x\r\nACGT\r\n\r\nac gt\r\n>b\r\nTT*\r\n")
    assert read(path, label="id") == [("a", "ACGTac gt"), ("b", "TT*")]


BAD = {
    "no name": ("x.fasta", b"ACGT\n>a\nAC\n>b\nGT\n", 1, "does not begin with >"),
    "no letters": ("x.fasta", b">a\nAC\n>c\n>b\nGT\n", 3, "no sequence is below it"),
    "bytes": ("x.fasta", b">a\nAC\n>\xff\xfec\nGT\n>b\nGT\n", 3, "not UTF-8"),
    "qualities": ("x.fastq", b"@a\nAC\n+\nII\n@c\nAC\n+\nI\n@b\nGT\n+\nII\n", 5, "2 letters and 1"),
    "no plus": ("x.fastq", b"@a\nAC\n+\nII\n@c\nAC\nII\nII\n@b\nGT\n+\nII\n", 5, "begin with \\+"),
    "no at": ("x.fastq", b"@a\nAC\n+\nII\nc\n@b\nGT\n+\nII\n", 5, "begin with @"),
}


@pytest.mark.parametrize(("name", "content", "line", "sentence"), BAD.values(), ids=BAD)
def test_what_is_wrong_is_named_or_skipped_alone(
    name: str, content: bytes, line: int, sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    options: dict[str, Any] = {"label": "id", "encoding": "utf-8"}
    with pytest.raises(KeslerError, match=rf"{name}, line {line}: .*{sentence}"):
        read(path, **options)
    assert [label for label, _ in read(path, skip_bad=True, **options)] == ["a", "b"]


def test_a_record_that_is_cut_short_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.fastq"
    path.write_bytes(b"@a\nAC\n+\nII\n@c\nAC\n")
    with pytest.raises(KeslerError, match=r"line 5: the record is cut short"):
        read(path, label="id")


def test_altered_bytes_give_rows_or_a_sentence(tmp_path: Path) -> None:
    drawn = random.Random(7)
    for form in ("fasta", "fastq"):
        path = tmp_path / f"rows.{form}"
        write(path, sequences_of(5))
        whole = path.read_bytes()
        for _ in range(200):
            altered = bytearray(whole)
            for _ in range(drawn.randint(1, 9)):
                altered[drawn.randrange(len(whole))] = drawn.randrange(256)
            path.write_bytes(altered[: drawn.randrange(len(whole))])
            try:
                read(path, label="id", skip_bad=True, encoding="utf-8")
            except KeslerError as error:
                assert "rows" in str(error)


LABELS = {
    "no tab": ("s1 k__Fungi\n", "line 1: it has no label"),
    "twice": ("s1\ta\ns1\tb\n", "line 2: 's1' has the labels 'a' and 'b'"),
    "bytes": ("s1\t\udcff\n", "can't be read as a file of labels"),
}


@pytest.mark.parametrize(("content", "sentence"), LABELS.values(), ids=LABELS)
def test_files_that_hold_no_labels_are_refused(content: str, sentence: str, tmp_path: Path) -> None:
    write(tmp_path / "x.fasta", sequences_of(3))
    (tmp_path / "taxa.tsv").write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(KeslerError, match=sentence):
        read(tmp_path / "x.fasta", labels=tmp_path / "taxa.tsv")
    with pytest.raises(KeslerError, match="give one of them"):
        read(tmp_path / "x.fasta", labels=tmp_path / "taxa.tsv", label="id")


def test_sequences_without_a_label_are_counted(tmp_path: Path) -> None:
    rows = sequences_of(9)
    write(tmp_path / "x.fasta", rows)
    write_labels(tmp_path / "taxa.tsv", rows[:7])
    with pytest.warns(ReadingWarning, match="2 rows without a label are left out"):
        assert len(read(tmp_path / "x.fasta", labels=tmp_path / "taxa.tsv")) == 7


def test_commands_learn_and_predict_sequences(
    tmp_path: Path, capsys: Any, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = sequences_of(240)
    write(Path("refs.fasta"), rows[:200])
    write(Path("reads.fastq.gz"), rows[200:])
    assert gzip.open("reads.fastq.gz").read(1) == b"@"
    write_labels(Path("taxa.tsv"), rows)
    learn = ["learn", "m.kesler", "refs.fasta"]
    assert main(learn) == 2
    assert "give --labels, a file of an identifier, a tab and its label" in capsys.readouterr().err
    assert main([*learn, "--labels", "taxa.tsv", "--sequence", "sequence:7:both"]) == 0
    assert "sequence (k=7, reverse_complement=True)" in capsys.readouterr().out
    assert load("m.kesler").n_mistakes_ <= 9
    Path("taxa.tsv").rename("known.tsv")
    ask = ["predict", "m.kesler", "reads.fastq.gz", "--id", "id"]
    assert main(ask) == 0
    answers = capsys.readouterr().out.splitlines()
    assert sum(each == taxon for each, (*_, taxon) in zip(answers, rows[200:], strict=True)) >= 39
    assert main([*ask, "--json-lines"]) == 0
    assert '"id": "s200"' in capsys.readouterr().out
    assert main(["test", "m.kesler", "reads.fastq.gz", "--labels", "known.tsv"]) == 0
    assert "40 rows of 3 classes" in capsys.readouterr().out


def test_sequences_are_bounded_as_lines_are(tmp_path: Path) -> None:
    path = tmp_path / "x.fasta.gz"
    longest = 1 << 18
    path.write_bytes(gzip.compress(b">a\nAC\n>b\n" + b"ACGT\n" * (longest // 4) + b"A\n"))
    with pytest.raises(KeslerError, match="the sequence on line 3 has more than 262,144 bytes"):
        read(path, label="id", max_line=longest)
    assert len(read(path, label="id")[1][1]) == longest + 1
