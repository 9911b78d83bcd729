"""Dates: columns that babel, the mail package and the datetime module write, and their revision."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime as mail_date
from pathlib import Path
from typing import Any

import pytest
from babel.dates import format_date, format_datetime
from hypothesis import given
from hypothesis import strategies as st

from kesler import OnlineClassifier, load
from kesler.cli import main
from kesler.data.schema.date_formats import date_formats
from kesler.data.schema.inference import infer
from kesler.data.schema.records import table_of
from kesler.errors import KeslerError, MismatchWarning

LOCALES = (
    "en_US en_GB de fr es it pt_BR pt_PT nl sv_SE nb_NO da_DK fi_FI is pl_PL cs_CZ sk hu_HU ro bg "
    "hr sr_Latn sl uk ru_RU el tr lt lv et ca gl id ms fil sw af th hi mr bn ta te gu kn ml pa ur "
    "ar_EG fa he ka hy az kk ko zh_Hant zh ja vi"
).split()
UNKNOWN = {  # names of units or zones in the language, or months by two forms
    ("long", "th"), ("long", "ml"), ("long", "bn"), ("long", "ar_EG"), ("long", "zh"),
    ("medium", "ca"), ("long", "ca"), ("full", "ca"),
}  # fmt: skip
ZONES = [timezone(timedelta(hours=h)) for h in (-8, 0, 2)]


def moments(seed: str, n: int = 50) -> list[datetime]:
    rng = random.Random(seed)
    start = datetime(2024, 1, 1)
    return [start + timedelta(seconds=rng.randrange(366 * 86_400)) for _ in range(n)]


def read(texts: list[str], columns: Any = None) -> list[datetime]:
    """Return the dates of a column whose kind is inferred from all of it."""
    rows = [{"when": text} for text in texts]
    model = OnlineClassifier(columns=columns or "auto").fit(rows, ["a", "b"] * (len(rows) // 2))
    assert model.schema_ is not None
    column = model.schema_["when"]
    assert column.kind == "date", (column, texts[:3])
    return [column.parser.parse(text, column.options) for text in texts]


@pytest.mark.parametrize("width", ["short", "medium", "long"])
@pytest.mark.parametrize("locale", LOCALES)
def test_times_that_babel_writes_are_read(locale: str, width: Any) -> None:
    if (width, locale) in UNKNOWN:
        pytest.skip("zones and units in words are not read")
    known = moments(locale)
    texts = [format_datetime(moment, width, locale=locale) for moment in known]
    if width == "short":
        known = [moment.replace(second=0) for moment in known]
    assert _read(texts) == known


@pytest.mark.parametrize("width", ["short", "medium", "long", "full"])
@pytest.mark.parametrize("locale", LOCALES)
def test_days_that_babel_writes_are_read(locale: str, width: Any) -> None:
    if (width, locale) in UNKNOWN - {("long", each) for each in ("th", "ml", "bn", "ar_EG", "zh")}:
        pytest.skip("months with two forms of 'of' are not read")
    known = moments(locale)
    texts = [format_date(moment, width, locale=locale) for moment in known]
    assert _read(texts) == [datetime(m.year, m.month, m.day) for m in known]


def _read(texts: list[str]) -> list[datetime]:
    """Return the dates in texts, without a model."""
    (column,) = infer(table_of([{"when": text} for text in texts]).columns, {})
    assert column.kind == "date", (column, texts[:3])
    return [column.parser.parse(text, column.options) for text in texts]


WRITERS: dict[str, Callable[[datetime], str]] = {
    "mail": lambda m: mail_date(m.replace(tzinfo=ZONES[m.day % 3])),
    "mail, GMT": lambda m: mail_date(m.replace(tzinfo=UTC), usegmt=True),
    "str": lambda m: str(m),
    "ISO, zone": lambda m: m.replace(tzinfo=ZONES[m.day % 3]).isoformat(),
    "ISO, Z": lambda m: m.isoformat() + "Z",
    "ISO, named zone": lambda m: f"{m:%Y-%m-%d %H:%M:%S} {'CET' if m.month < 6 else 'CEST'}",
    "ISO, place": lambda m: f"{m.isoformat()}+02:00[Europe/Berlin]",
    "logging": lambda m: f"{m:%Y-%m-%d %H:%M:%S},000",
    "US": lambda m: m.strftime("%m/%d/%Y %I:%M:%S %p"),
    "US, small": lambda m: (
        f"{m.month}/{m.day}/{m:%y} {m.hour % 12 or 12}:{m:%M:%S}"
        + (" a.m." if m.hour < 12 else " p.m.")
    ),
    "ctime": lambda m: m.ctime(),
    "Apache": lambda m: m.strftime("%d/%b/%Y:%H:%M:%S +0100"),
    "Java": lambda m: m.strftime("%a %b %d %H:%M:%S CET %Y"),
    "JavaScript": lambda m: m.strftime(
        "%a %b %d %Y %H:%M:%S GMT+0100 (Central European Standard Time)"
    ),
    "ordinals": lambda m: f"{m:%B} {m.day}{_ordinal(m.day)}, {m:%Y}, {m:%H:%M:%S}",
    "time first": lambda m: m.strftime("%H:%M:%S %d.%m.%Y"),
    "Arabic digits": lambda m: m.strftime("%d/%m/%Y %H:%M:%S").translate(
        str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")
    ),
}


MONTHS = {
    "ISO": ("%Y-%m", "%Y-%m"),
    "slash": ("%m/%Y", "%m/%Y"),
    "name": ("%B %Y", "%b %Y"),
    "short name": ("%b. %Y", "%b. %Y"),
    "year first": ("%Y %b", "%Y %b"),
    "Japanese": ("%Y年%m月", "%Y年%m"),
}


@pytest.mark.parametrize("written, form", MONTHS.values(), ids=MONTHS)
def test_months_are_their_first_days(written: str, form: str) -> None:
    known = [datetime(2019 + i // 12, i % 12 + 1, 1) for i in range(30)]
    texts = [moment.strftime(written) for moment in known]
    assert _read(texts) == known
    assert date_formats(texts)[0]["format"] == form.replace("b.", "b")


def _ordinal(day: int) -> str:
    return "th" if day in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")


def _spanish(m: datetime) -> str:
    half = "a.\u00a0m." if m.hour < 12 else "p.\u00a0m."
    return f"{m.day}/{m.month}/{m.year}, {m.hour % 12 or 12}:{m:%M:%S} {half}"


MORE_WRITERS: dict[str, Callable[[datetime], Any]] = {
    "Spanish halves": _spanish,
    "basic ISO": lambda m: m.strftime("%Y%m%dT%H%M%SZ"),
    "compact day": lambda m: m.strftime("%Y%m%d %H:%M:%S"),
    "names of files": lambda m: m.strftime("%Y%m%d_%H%M%S"),
    "days of years": lambda m: m.strftime("%Y-%jT%H:%M:%S"),
    "EXIF": lambda m: m.strftime("%Y:%m:%d %H:%M:%S"),
    "Apache's brackets": lambda m: m.strftime("[%d/%b/%Y:%H:%M:%S +0100]"),
    "time first": lambda m: m.strftime("%H:%M:%S, %d.%m.%Y"),
    "ASP.NET": lambda m: f"/Date({int(m.replace(tzinfo=UTC).timestamp()) * 1000})/",
    "at epoch": lambda m: f"@{int(m.replace(tzinfo=UTC).timestamp())}",
    "ISO and German": lambda m: f"{m:%d.%m.%Y %H:%M:%S}" if m.day % 2 else str(m),
    "dates and texts": lambda m: f"{m:%d.%m.%Y %H:%M:%S}" if m.day % 2 else m,
}


@pytest.mark.parametrize("writer", MORE_WRITERS)
def test_other_ways_to_write_times_are_read(writer: str) -> None:
    known = moments(writer)
    cells = [MORE_WRITERS[writer](moment) for moment in known]
    (column,) = infer(table_of([{"when": cell} for cell in cells]).columns, {})
    assert column.kind == "date", (column, cells[:3])
    assert [column.parser.parse(cell, column.options) for cell in cells] == known
    model = OnlineClassifier(columns={}).fit([{"when": cell} for cell in cells], ["a", "b"] * 25)
    assert model.schema_ is not None and model.schema_["when"].n_misfits == 0


@pytest.mark.parametrize(
    "texts",
    [
        ["31-MRZ-2024", "01-MAI-2024", "15-DEZ-2023"],
        ["31. Jänner 2024", "1. Feber 2024", "2. Dezember 2024"],
        ["ngày 1 tháng 2 năm 2024", "ngày 15 tháng 12 năm 2023"],
        ["2024W053", "2024W016"],
    ],
)
def test_other_names_of_days_are_read(texts: list[str]) -> None:
    assert None not in _read(texts)


def test_other_months_are_the_right_ones() -> None:
    assert _read(["31-MRZ-2024"]) == [datetime(2024, 3, 31)]
    assert _read(["31. Jänner 2024", "1. Feber 2024"]) == [
        datetime(2024, 1, 31),
        datetime(2024, 2, 1),
    ]
    assert _read(["ngày 1 tháng 2 năm 2024"]) == [datetime(2024, 2, 1)]


def test_a_time_may_stand_before_a_named_format() -> None:
    known = [m.replace(second=0) for m in moments("before")]
    texts = [m.strftime("%H:%M, %d.%m.%Y") for m in known]
    for form in ("%d.%m.%Y", "%H:%M, %d.%m.%Y"):
        assert read(texts, {"when": {"kind": "date", "format": form}}) == known


def test_days_of_spreadsheets_are_dates_where_these_are_named() -> None:
    known = moments("serials")
    days = [(m - datetime(1899, 12, 30)).total_seconds() / 86_400 for m in known]
    for cells in (days, [f"{day:.9f}" for day in days]):
        column = (
            OnlineClassifier(columns={"when": {"kind": "date", "format": "excel"}})
            .fit([{"when": cell} for cell in cells], ["a", "b"] * 25)
            .schema_["when"]
        )
        found = [column.parser.parse(cell, column.options) for cell in cells]
        assert all(
            abs(a - b) < timedelta(milliseconds=1) for a, b in zip(found, known, strict=True)
        )
    assert infer({"when": days}, {})["when"].kind == "number"


def test_formats_that_do_not_exist_are_refused_with_those_that_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [f"{m:%Y-%m-%d},{'ab'[i % 2]}" for i, m in enumerate(moments("refused"))]
    (tmp_path / "rows.csv").write_text("\n".join(["when,kind", *lines]))
    learn = ["learn", str(tmp_path / "m.kesler"), str(tmp_path / "rows.csv"), "--label", "kind"]
    for form in ("iso8601", "epoch-s", "serial"):
        code = main([*learn, "--date", f"when:{form}"])
        said = capsys.readouterr().err
        assert (
            code == 2 and f"if '{form}' is meant as the format of 'when', choose one of iso" in said
        )
        assert "epoch-ms" in said and "excel" in said and "%d/%m/%Y" in said
    with pytest.raises(KeslerError, match=r"one of iso, epoch.*excel"):
        OnlineClassifier(columns={"when": {"kind": "date", "format": "serial"}}).fit(
            [{"when": 1}], [0]
        )


@pytest.mark.parametrize("writer", WRITERS)
def test_times_of_programs_are_read(writer: str) -> None:
    known = moments(writer)
    assert _read([WRITERS[writer](moment) for moment in known]) == known


def test_fractions_of_seconds_are_read() -> None:
    known = [m.replace(microsecond=1000 * i) for i, m in enumerate(moments("fractions"))]
    assert _read([str(moment) for moment in known]) == known
    nano = [f"{m:%d.%m.%Y %H:%M:%S}.{m.microsecond:06}789" for m in known]
    assert _read(nano) == known


@pytest.mark.parametrize("of_number", [str, int, float])
def test_numbers_that_are_days_are_dates(of_number: Callable[[Any], Any]) -> None:
    known = [datetime(2019, 1, 1) + timedelta(days=17 * i) for i in range(50)]
    (column,) = infer({"when": [of_number(int(f"{m:%Y%m%d}")) for m in known]}, {})
    assert (column.kind, column.options) == ("date", {"format": "%Y%m%d"})
    (other,) = infer({"when": [of_number(20190100 + 7 * i) for i in range(50)]}, {})
    assert other.kind == "number"


def test_weeks_are_those_of_the_calendar() -> None:
    known = moments("weeks")
    for n, text in ((2, "{0:04}-W{1:02}"), (3, "{0:04}-W{1:02}-{2}")):
        weeks = [m.isocalendar() for m in known]
        assert [m.isocalendar()[:n] for m in _read([text.format(*week) for week in weeks])] == [
            week[:n] for week in weeks
        ]


NAMED: dict[str, Callable[[datetime], Any]] = {
    "%Y%m%d": lambda m: m.strftime("%Y%m%d"),
    "%Y-%j": lambda m: m.strftime("%Y-%j"),
    "epoch": lambda m: f"{m.replace(tzinfo=UTC).timestamp():.0f}",
    "epoch-ms": lambda m: int(m.replace(tzinfo=UTC).timestamp() * 1000),
    "epoch-us": lambda m: int(m.replace(tzinfo=UTC).timestamp()) * 10**6,
}


@pytest.mark.parametrize("form", NAMED)
@pytest.mark.parametrize("kind", ["format", "kind"])
def test_numbers_are_dates_where_these_are_named(form: str, kind: str) -> None:
    known = [m.replace(hour=0, minute=0, second=0) for m in moments(form)]
    texts = [NAMED[form](moment) for moment in known]
    named = {"kind": "date", "format": form} if kind == "format" else "date"
    assert read(texts, {"when": named}) == known
    (column,) = infer(table_of([{"when": text} for text in texts]).columns, {})
    assert (column.kind == "date") == (form == "%Y%m%d")


@pytest.mark.parametrize(
    "texts",
    [
        ["10.0.0.1", "10.0.0.2"],
        ["1.2.3", "1.12.0"],
        ["3 rooms 2 2020", "4 rooms 1 2019"],
        ["3 marathons 2020", "2 marathons 2021"],
        ["+49 30 1234", "+49 30 2345"],
        ["2026-02-03 10:00:05 ERROR at start", "2026-02-03 10:00:05 INFO"],
        ["30.02.2026"],
        ["12/13", "12/14"],
        ["may", "june"],
        ["1999/2000"],
        ["3-2", "1-0"],
        ["may 01"],
        ["room 2001"],
        ["2026-034", "2026-035"],
        ["3 may 2026 was a nice day"],
        ["5 1/2/2026" + " " * 100],
    ],
)
def test_other_texts_are_no_dates(texts: list[str]) -> None:
    assert date_formats(texts) == []


@given(st.text(max_size=60) | st.from_regex(r"\A[\d/.: \-APMapmT年]{1,30}\Z"))
def test_any_text_is_read_or_not(text: str) -> None:
    for named in (False, True):
        for options in date_formats([text], named=named):
            column = infer(table_of([{"when": text}]).columns, {})
            assert options["format"] and column is not None


# ---- day or month first ------------------------------------------------------------------------


def us_log(n: int = 240) -> list[str]:
    """Return a log of some rows a day from the first of January on, as written in the US."""
    start, rng = datetime(2025, 1, 1, 6), random.Random(7)
    hours = sorted(rng.randrange(n * 4) for _ in range(n))
    return [(start + timedelta(hours=h)).strftime("%m/%d/%Y %H:%M") for h in hours]


def test_the_reading_of_dates_that_are_closer_to_each_other_is_the_likelier() -> None:
    texts = us_log()
    assert texts[49][3:5] < "13"  # so that the first 50 rows could be either
    assert read(texts) == [datetime.strptime(text, "%m/%d/%Y %H:%M") for text in texts]
    british = [
        datetime.strptime(text, "%m/%d/%Y %H:%M").strftime("%d/%m/%Y %H:%M") for text in texts
    ]
    assert read(british) == [datetime.strptime(text, "%d/%m/%Y %H:%M") for text in british]


@given(st.permutations(range(50)))
def test_the_order_of_the_rows_does_not_matter(order: list[int]) -> None:
    texts = us_log()[:50]
    (one,) = infer({"when": texts}, {})
    (other,) = infer({"when": [texts[i] for i in order]}, {})
    assert (one, one.example, one.others) == (other, other.example, other.others)


def test_what_is_ambiguous_is_said() -> None:
    (column,) = infer({"when": ["01/02/2024", "03/04/2024"]}, {})
    assert column.example == "'01/02/2024' could be 2024-01-02"
    (column,) = infer({"when": ["01/02/2024", "13/02/2024"]}, {})
    assert column.example == "" and not column.others
    (column,) = infer({"when": ["01.02.2024", "01.03.2024"]}, {})  # points: never months first
    assert column.options["format"] == "%d.%m.%Y"


def test_rows_learnt_under_another_reading_are_counted(tmp_path: Path) -> None:
    # One date of each day of January seems likelier than one of each month.
    texts = [f"01/{1 + i % 12:02}/2024" for i in range(60)] + ["13/11/2024"] * 20
    rows, y = [{"when": text, "size": i % 7} for i, text in enumerate(texts)], ["a", "b"] * 40
    said = (
        r"row \d+, column 'when' holds '13/11/2024', so that it holds a date in the form %d/%m/%Y, "
        r"not a date in the form %m/%d/%Y: .* 55 cells before were learnt as another value; .* "
        r"columns={'when': {'kind': 'date', 'format': '%d/%m/%Y'}}"
    )
    models = []
    for ends in ([80], [55, 80], [30, 60, 61, 80], range(1, 81)):
        model, start = OnlineClassifier(), 0
        with pytest.warns(MismatchWarning, match=said):
            for end in ends:
                model.partial_fit(rows[start:end], y[start:end])
                start = end
        model.save(tmp_path / "model.kesler")
        models.append((tmp_path / "model.kesler").read_bytes())
        assert model.schema_ is not None and model.schema_["when"].n_misfits == 0
    assert len(set(models)) == 1
    restored = load(tmp_path / "model.kesler")
    assert restored.schema_["when"].options["format"] == "%d/%m/%Y"


def test_a_reading_is_changed_after_a_model_was_restored(tmp_path: Path) -> None:
    texts = [f"01/{1 + i % 12:02}/2024" for i in range(60)]
    model = OnlineClassifier().fit([{"when": text} for text in texts], ["a", "b"] * 30)
    model.save(tmp_path / "model.kesler")
    restored = load(tmp_path / "model.kesler")
    with pytest.warns(MismatchWarning, match="55 cells before"):
        restored.partial_fit([{"when": "13/11/2024"}], ["a"])


def test_notations_of_numbers_are_changed_likewise() -> None:
    texts = [f"{i}.{i + 100}" for i in range(1, 61)]
    rows, y = [{"sum": text} for text in texts], ["a", "b"] * 30
    model = OnlineClassifier().fit(rows, y)
    with pytest.warns(MismatchWarning, match=r"60 cells before .* 'decimal': ','"):
        model.partial_fit([{"sum": "1.234,5"}], ["a"])
    whole = OnlineClassifier().fit([{"sum": str(i)} for i in range(3, 200, 3)], ["a"] * 66)
    whole.partial_fit([{"sum": "3,5"}], ["a"])  # no cell before was another number
    assert whole.schema_ is not None and whole.schema_["sum"].options == {"decimal": ","}


def test_notations_of_one_table_give_one_model(tmp_path: Path) -> None:
    known, y = moments("same", 80), ["a", "b"] * 40
    plain = [m.isoformat() for m in known]
    written = [plain, *([write(m) for m in known] for write in WRITERS.values())]
    written += [[format_datetime(m, "medium", locale=each) for m in known] for each in LOCALES[:8]]
    states = []
    for texts in written:
        model = OnlineClassifier().fit([{"when": text} for text in texts], y)
        states.append((model._input.columns.known.moments, model.n_mistakes_))
    assert all(state == states[0] for state in states)


@pytest.mark.parametrize("form", ["", "%H:%M", "%d.%m", "%d %d %Y", "%Q %Y", "week", 3, "%Y%"])
def test_formats_that_are_none_are_refused(form: Any) -> None:
    with pytest.raises(KeslerError, match=r"cannot have the option 'format'.*%d/%m/%Y"):
        OnlineClassifier(columns={"when": {"kind": "date", "format": form}}).fit(
            [{"when": "x"}], [0]
        )


def test_a_language_is_named() -> None:
    named = {"kind": "date", "format": "%d. %B %Y", "language": "de"}
    assert read(["3. März 2026", "4. Okt 2026"], {"when": named}) == [
        datetime(2026, 3, 3),
        datetime(2026, 10, 4),
    ]
    with pytest.raises(KeslerError, match="'language': 'xx'"):
        read(["3. März 2026"], {"when": {**named, "language": "xx"}})
