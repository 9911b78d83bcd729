"""Text in the encodings and compressions that people have is read as the same text in UTF-8."""

import bz2
import codecs
import gzip
import io
import json
import lzma
import shutil
import subprocess
import sys
import warnings
import zipfile

import pytest

from commands import kesler
from kesler.errors import KeslerError, ReadingWarning
from kesler.readers import lines, open_stream
from kesler.readers.compression import is_compressed
from kesler.readers.lines import Lines
from test_readers import read, write

TOWNS = {
    "windows-1252": ["Köln", "Zürich", "Málaga", "Besançon", "Göteborg", "Münster"],
    "windows-1250": ["Łódź", "Kraków", "Wrocław", "Poznań", "Gdańsk", "Częstochowa"],
    "windows-1251": ["Москва", "Тверь", "Омск", "Самара", "Казань", "Уфа"],
    "windows-1253": ["Αθήνα", "Πάτρα", "Λάρισα", "Βόλος", "Χανιά", "Κοζάνη"],
    "windows-1254": ["İstanbul", "Eskişehir", "Muğla", "Şanlıurfa", "Ağrı", "Diyarbakır"],
    "windows-1255": ["ירושלים", "חיפה", "אילת", "נתניה", "רמלה", "עכו"],
    "windows-1256": ["القاهرة", "دمشق", "بغداد", "عمان", "بيروت", "الخرطوم"],
    "gb18030": ["北京", "上海", "广州", "深圳", "成都", "武汉"],
    "cp932": ["東京都", "大阪市", "なごや", "さっぽろ", "ふくおか", "ヨコハマ"],
    "cp949": ["서울특별시", "부산광역시", "대구", "인천에서", "광주입니다", "대전"],
    "koi8-u": ["Москва", "Тверь", "Омск", "Самара", "Казань", "Уфа"],
}
"""Names in their languages, by the encodings that programs for these use."""


def table(towns, n_rows=120):
    return "x,note,town\n" + "".join(
        f"{i % 7},{towns[i * 5 % 6]} {i % 3},{towns[i % 6]}\n" for i in range(n_rows)
    )


def quietly(path, **options):
    """Return the rows of a table whose encoding had to be found, and the message about it."""
    with pytest.warns(ReadingWarning) as told:
        rows = read(path, **{"label": "town", **options})
    return rows, str(told[0].message)


# ---- encodings ----------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", TOWNS)
def test_the_encoding_of_a_language_is_found_and_named(tmp_path, encoding):
    text = table(TOWNS[encoding])
    plain = read(write(tmp_path, "utf8.csv", text), label="town")
    rows, said = quietly(write(tmp_path, "towns.csv", text.encode(encoding)))
    assert rows == plain
    named = said.partition(" is read as ")[2].partition(":")[0]
    assert codecs.lookup(named).name == codecs.lookup(encoding).name
    assert said.startswith(str(tmp_path / "towns.csv")) and "encoding=..." in said


WORDS_OF_DOS = {
    "de": ["Köln", "Düsseldorf", "Größe", "Münster", "Gießen", "Lübeck"],
    "fr": ["Besançon", "Sète", "Orléans", "Fréjus", "Béthune", "Nîmes"],
    "sv": ["Malmö", "Växjö", "Västerås", "Norrköping", "Örebro", "Umeå"],
}


@pytest.mark.parametrize("encoding", ["cp850", "cp437"])
@pytest.mark.parametrize("language", WORDS_OF_DOS)
def test_letters_of_dos_within_words_are_known(tmp_path, language, encoding):
    text = table(WORDS_OF_DOS[language])
    plain = read(write(tmp_path, "utf8.csv", text), label="town")
    rows, said = quietly(write(tmp_path, "towns.csv", text.encode(encoding)))
    assert rows == plain and "is read as cp850" in said
    rows, said = quietly(write(tmp_path, "towns.csv", text.encode("windows-1252")))
    assert rows == plain and "is read as windows-1252" in said


def test_signs_of_windows_between_letters_are_not_of_dos(tmp_path):
    text = "note,town\n" + "It’s “good”—or a naïve café’s…own 5€ idea,Bonn\nit’s Malmö,Rome\n" * 9
    rows, said = quietly(write(tmp_path, "towns.csv", text.encode("windows-1252")))
    assert rows[0][1] == {"note=It’s “good”—or a naïve café’s…own 5€ idea": 1.0}
    assert "is read as windows-1252" in said


UNMARKED = ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", *UNMARKED])
def test_marks_and_zero_bytes_tell_the_encoding_without_a_word(tmp_path, encoding):
    text = table(TOWNS["gb18030"])
    plain = read(write(tmp_path, "utf8.csv", text), label="town")
    assert read(write(tmp_path, "towns.csv", text.encode(encoding)), label="town") == plain
    marked = codecs.BOM_UTF16_BE + text.encode("utf-16-be")
    assert read(write(tmp_path, "towns.csv", marked), label="town") == plain


@pytest.mark.skipif(shutil.which("iconv") is None, reason="iconv is not installed")
@pytest.mark.parametrize("to", ["UTF-16", "UTF-16LE", "UTF-32", "WINDOWS-1251", "KOI8-R"])
def test_what_iconv_writes_is_read(tmp_path, to):
    path = write(tmp_path, "towns.csv", table(TOWNS["windows-1251"]))
    done = subprocess.run(["iconv", "-f", "UTF-8", "-t", to, path], capture_output=True, check=True)
    converted = write(tmp_path, "converted.csv", done.stdout)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReadingWarning)
        assert read(converted, label="town") == read(path, label="town")


def test_the_first_letter_may_be_far_down(tmp_path):
    """64 KB and more of ASCII say nothing, and the first letter decides, whatever the block."""
    for n_before in (10, 5000, 40_000):
        text = "x,town\n" + "1,Bonn\n2,Berlin\n" * n_before + "3,Köln\n2,Berlin\n" * 20
        rows, said = quietly(write(tmp_path, "towns.csv", text.encode("cp1252")))
        assert "windows-1252" in said
        assert rows == read(write(tmp_path, "utf8.csv", text), label="town")
        assert {label for label, _ in rows} == {"Bonn", "Berlin", "Köln"}


def test_utf_8_with_a_damaged_row_remains_utf_8(tmp_path):
    text = table(TOWNS["windows-1252"]).encode()
    path = write(tmp_path, "towns.csv", text + b"1,K\xf6ln 1,Bonn\n" + text.partition(b"\n")[2])
    with pytest.raises(KeslerError, match=r"line 122: .*not UTF-8 text \(encoding=\.\.\. names"):
        read(path, label="town")
    stream = open_stream(path, label="town", skip_bad=True)
    assert sum(map(len, stream)) == 240 and stream.n_bad == 1


def test_a_letter_may_be_cut_where_a_block_ends(tmp_path):
    """The first block of 64 KB ends within the first letter."""
    head = "x,town\n"
    text = head + "1," + "a" * ((1 << 16) - len(head) - 3) + "öl\n2,Bonn\n"
    path = write(tmp_path, "towns.csv", text)
    assert next(label for label, _ in read(path, label="town")).endswith("aöl")


def test_signs_alone_are_western(tmp_path):
    text = "price,kind\n" + "£5,dear\n20 °C,warm\n3 €,cheap\n½,half\n" * 20
    rows, said = quietly(write(tmp_path, "prices.csv", text.encode("cp1252")), label="kind")
    assert "read as windows-1252" in said
    assert {name for _, entry in rows for name in entry} >= {"price=£5", "price=½"}


def test_a_named_encoding_is_believed(tmp_path):
    text = table(TOWNS["windows-1250"])
    plain = read(write(tmp_path, "utf8.csv", text), label="town")
    path = write(tmp_path, "towns.csv", text.encode("iso8859-2"))
    assert read(path, label="town", encoding="latin2") == plain
    for encoding in ("utf-16-le", "cp037"):
        path = write(tmp_path, "towns.csv", table(TOWNS["windows-1252"]).encode(encoding))
        assert len(read(path, label="town", encoding=encoding)) == 120


def test_bytes_that_are_no_text_are_a_bad_row(tmp_path):
    bad = "1,a,Köln\n".encode("gb18030") + b"1,\xff\xff,b\n" + "2,b,北京\n".encode("gb18030")
    path = write(tmp_path, "towns.csv", b"x,y,town\n" + bad)
    with pytest.raises(KeslerError, match=r"towns\.csv, line 3: .* is not UTF-8 text"):
        read(path, label="town", encoding="gb18030")
    assert len(read(path, label="town", encoding="gb18030", skip_bad=True)) == 2
    odd = "x,town\n1,a\n".encode("utf-16-le") + b"\x00\xd8" + "2,b\n".encode("utf-16-le") + b"x"
    path = write(tmp_path, "odd.csv", odd)
    assert read(path, label="town", skip_bad=True) == [("a", {"x": 1.0})]


def test_what_is_no_encoding_or_needs_none_is_a_sentence(tmp_path):
    path = write(tmp_path, "rows.csv", "x,town\n1,a\n")
    for name in ("utf8000", "hex", "rot13"):
        with pytest.raises(KeslerError, match=f"there is no encoding of text '{name}'"):
            open_stream(path, label="town", encoding=name)
    with pytest.raises(KeslerError, match=r"says its own encoding: leave out encoding=\.\.\."):
        open_stream(write(tmp_path, "one.eml", "Subject: a\n\nb\n"), encoding="latin1")
    with pytest.raises(KeslerError, match=r"needs no format, .* encoding, sheet, sql or labels"):
        open_stream("dataset:letter", encoding="latin1")


def test_without_the_detector_text_is_western(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "chardetng_py", None)
    text = table(TOWNS["windows-1252"])
    rows, said = quietly(write(tmp_path, "towns.csv", text.encode("cp1252")))
    assert "read as windows-1252" in said
    assert rows == read(write(tmp_path, "utf8.csv", text), label="town")


OTHERS = {
    "rows.jsonl": ('{{"label": "{0}", "text": "aus {0} hier"}}\n', {}),
    "rows.vw": ("{0} | aus {0}\n", {}),
    "rows.svm": ("{1} 1:1 # {0}\n", {}),
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("encoding", ["windows-1252", "utf-16"])
def test_other_text_formats_have_encodings_too(tmp_path, name, encoding):
    line, options = OTHERS[name]
    text = "".join(line.format(town, i) for i, town in enumerate(TOWNS["windows-1252"] * 9))
    plain = read(write(tmp_path, f"utf8-{name}", text), **options)
    path = write(tmp_path, name, text.encode(encoding))
    assert read(path, encoding=encoding, **options) == plain
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReadingWarning)
        assert read(path, **options) == plain


# ---- ends of lines ------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\r", "\r\n", "\r\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_the_ends_of_lines_change_no_row(tmp_path, end, encoding):
    text = table(TOWNS["windows-1252"])
    plain = read(write(tmp_path, "plain.csv", text), label="town")
    other = write(tmp_path, "other.csv", text.replace("\n", end).encode(encoding))
    assert read(other, label="town") == plain
    vw = "".join(f"{i % 3} | w{i}\n" for i in range(60))
    other = write(tmp_path, "rows.vw", vw.replace("\n", end).encode(encoding))
    assert read(other) == read(write(tmp_path, "plain.vw", vw))


def test_a_return_within_lines_ends_none(tmp_path):
    path = write(tmp_path, "rows.csv", 'x,town\n"a\rb",Bonn\n"c\rd",Bonn\n')
    assert [entry for _, entry in read(path, label="town")] == [{"x=a\rb": 1.0}, {"x=c\rd": 1.0}]


FORMATS = {
    "rows.csv": ("label,x\n" + "a,1\nb,2\n" * 9, {"label": "label"}),
    "rows.jsonl": ('{"label": "a", "x": 1}\n{"label": "b", "x": 2}\n' * 9, {}),
    "rows.json": ('[{"label": "a", "x": 1}, {"label": "b", "x": 2}]', {}),
    "rows.vw": ("1 | x\n2 | y\n" * 9, {}),
    "rows.svm": ("1 1:2\n2 2:1\n" * 9, {}),
}


@pytest.mark.parametrize("small", [-1, 1 << 18])
@pytest.mark.parametrize("end", [b"\x1a", b"\0" * 300, b"\r\n\x1a\0\0"])
@pytest.mark.parametrize("name", FORMATS)
def test_what_dos_writes_behind_a_text_is_no_row(tmp_path, monkeypatch, name, end, small):
    text, options = FORMATS[name]
    plain = read(write(tmp_path, name, text), **options)
    monkeypatch.setattr(lines, "SMALL", small)
    assert read(write(tmp_path, name, text.encode() + end), **options) == plain
    assert read(write(tmp_path, name, text.rstrip().encode() + end), **options) == plain


@pytest.mark.parametrize("name", FORMATS)
def test_joined_files_may_have_two_marks(tmp_path, name):
    text, options = FORMATS[name]
    plain = read(write(tmp_path, name, text), **options)
    assert read(write(tmp_path, name, codecs.BOM_UTF8 * 2 + text.encode()), **options) == plain


# ---- compression --------------------------------------------------------------------------------


def zipped(content, *names):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names or ("towns.csv",):
            archive.writestr(name, content)
    return file.getvalue()


def zstandard(content):
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd.compress(content, options={zstd.CompressionParameter.checksum_flag: 1})


PACKING = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstandard,
    "zip": zipped,
}
packings = pytest.mark.parametrize("packing", PACKING)


@packings
@pytest.mark.parametrize("name", ["towns.csv", "towns.csv.gz", "towns"])
def test_the_content_says_how_a_file_is_compressed(tmp_path, packing, name):
    text = table(TOWNS["windows-1252"])
    plain = read(write(tmp_path, "plain.csv", text), label="town")
    path = write(tmp_path, name, PACKING[packing](text.encode()))
    assert is_compressed(str(path)) and read(path, label="town") == plain
    rows, _ = quietly(write(tmp_path, name, PACKING[packing](text.encode("cp1252"))))
    assert rows == plain
    assert read(write(tmp_path, name, text), label="town") == plain


@packings
def test_standard_input_is_unpacked(tmp_path, packing, monkeypatch):
    text = table(TOWNS["windows-1252"])
    plain = read(write(tmp_path, "plain.csv", text), label="town")
    packed = io.BytesIO(PACKING[packing](text.encode("utf-16")))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(packed))
    assert read("-", label="town") == plain


@packings
def test_a_damaged_file_is_a_sentence(tmp_path, packing):
    content = PACKING[packing](table(TOWNS["gb18030"], 5000).encode())
    for bad in (content[: len(content) // 2], content[:200] + bytes(300) + content[500:]):
        with pytest.raises(KeslerError, match=r"towns\.csv can't be read as"):
            read(write(tmp_path, "towns.csv", bad), label="town", skip_bad=True)


PROGRAMS = {
    "gzip": ["gzip", "-k"],
    "bzip2": ["bzip2", "-k"],
    "xz": ["xz", "-k"],
    "zstd": ["zstd", "-q"],
    "zip": ["zip", "-q", "towns.csv.zip"],
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_programs_compress_is_read(tmp_path, program):
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    path = write(tmp_path, "towns.csv", table(TOWNS["gb18030"]))
    subprocess.run([*PROGRAMS[program], path.name], cwd=tmp_path, check=True)
    (packed,) = set(tmp_path.iterdir()) - {path}
    assert read(packed, label="town") == read(path, label="town")


def test_an_archive_of_several_files_is_refused(tmp_path):
    content = table(TOWNS["gb18030"]).encode()
    path = write(tmp_path, "towns.zip", zipped(content, "a.csv", "b.csv"))
    with pytest.raises(KeslerError, match=r"towns\.zip is an archive of 2 files, of which one"):
        read(path, label="town", format="csv")
    path = write(tmp_path, "towns.zip", zipped(content, "a.csv", "__MACOSX/._a.csv"))
    assert len(read(path, label="town")) == 120


def test_the_share_of_a_compressed_file_grows_to_one(tmp_path):
    text = table(TOWNS["gb18030"], 9000).encode()
    lines = Lines(str(write(tmp_path, "towns.csv.gz", gzip.compress(text))))
    shares = [lines.share for _ in lines]
    assert shares == sorted(shares) and 0 < shares[0] and lines.share == 1


# ---- the command line ---------------------------------------------------------------------------


def test_the_command_line_names_what_was_found_once_and_takes_another(tmp_path, capsys):
    text = table(TOWNS["windows-1252"])
    path = write(tmp_path, "towns.csv", text.encode("cp1252"))
    rows = path, "--label", "town"
    done = kesler(capsys, "learn", tmp_path / "found", *rows)
    assert done.code == 0
    assert done.err.count("is not UTF-8 and is read as windows-1252") == 1
    assert "name its encoding with --encoding" in done.err
    done = kesler(capsys, "learn", tmp_path / "named", *rows, "--encoding", "latin1")
    assert (done.code, done.err) == (0, "")
    done = kesler(capsys, "learn", tmp_path / "no", *rows, "--encoding", "latin1000")
    assert done.code == 2 and "give --encoding a name such as" in done.err


def test_a_model_predicts_for_a_file_in_another_encoding(tmp_path, capsys):
    text = table(TOWNS["windows-1251"])
    path = write(tmp_path, "towns.csv", text.encode("cp1251"))
    assert kesler(capsys, "learn", tmp_path / "m", path, "--label", "town").code == 0
    answers = [
        kesler(capsys, "predict", tmp_path / "m", write(tmp_path, "new.csv", content)).out
        for content in (text.encode("cp1251"), text.encode(), text.encode("utf-16"))
    ]
    assert answers[0] == answers[1] == answers[2] and "Казань" in answers[0]


def test_json_lines_of_powershell_are_read(tmp_path):
    """`... | ConvertTo-Json -Compress > rows.jsonl` writes UTF-16 with a mark and CRLF."""
    rows = [{"label": town, "text": f"von {town}"} for town in TOWNS["windows-1252"]]
    text = "".join(json.dumps(row, ensure_ascii=False) + "\r\n" for row in rows)
    path = write(tmp_path, "rows.jsonl", text.encode("utf-16"))
    assert [label for label, _ in read(path)] == TOWNS["windows-1252"]
