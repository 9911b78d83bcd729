"""Notations of numbers: columns that babel writes in many locales, and those of accountants."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from babel.numbers import format_currency, format_decimal, format_percent

from kesler import KeslerError, OnlineClassifier, load
from kesler.cli import main
from kesler.data.schema.cells import UnfitError
from kesler.data.schema.inference import infer
from kesler.data.schema.numerals import amount
from kesler.data.schema.records import table_of
from kesler.errors import MismatchWarning

LOCALES = (
    "de en_US fr de_CH it_CH es pt_BR sv_SE nb_NO pl_PL cs_CZ hi_IN ar_EG fa_IR da_DK ru_RU id_ID "
    "tr_TR ja_JP hu_HU en_IN fi_FI nl_NL mr_IN"
).split()
NATIVE: dict[str, Any] = {"numbering_system": "default"}
WRITERS: dict[str, Callable[[float, str], str]] = {
    "decimal": lambda x, locale: format_decimal(x, locale=locale, **NATIVE),
    "euros": lambda x, locale: format_currency(x, "EUR", locale=locale, **NATIVE),
    "accounts": lambda x, locale: format_currency(
        x, "USD", locale=locale, format_type="accounting"
    ),
    "francs": lambda x, locale: format_currency(x, "CHF", locale=locale),
    "percent": lambda x, locale: format_percent(
        x / 100, "#,##0.00%" if locale == "de" else None, locale=locale, decimal_quantization=False
    ),
    "unit": lambda x, locale: format_decimal(x, locale=locale) + " km/h",
}


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("writer", WRITERS)
def test_what_babel_writes_is_read(writer: str, locale: str) -> None:
    rng = random.Random(f"{writer} in {locale}")
    numbers = [round(rng.choice([-1, 1]) * 10 ** rng.uniform(0, 6), 2) for _ in range(50)]
    texts = [WRITERS[writer](number, locale) for number in numbers]
    (column,) = infer(table_of([{"x": text} for text in texts]).columns, {})
    assert column.kind == "number", texts[:5]
    found = [column.parser.parse(text, column.options) for text in texts]
    assert found == pytest.approx(numbers, abs=1e-9)


@pytest.mark.parametrize(
    ("text", "decimal", "number"),
    [
        ("(1,234)", ".", -1234.0),
        ("1.234,50-", ",", -1234.5),
        ("\u22125,5", ",", -5.5),
        ("1\u2019234.5", ".", 1234.5),
        ("1\u202f234,5\u00a0€", ",", 1234.5),
        ("１２．５", ".", 12.5),
        ("١٬٢٣٤٫٥", ",", 1234.5),
        ("12,34,567.5", ".", 1234567.5),
        ("CHF 3.-", ".", 3.0),
        ("5,898.89 CR", ".", 5898.89),
        ("12.50Dr", ".", -12.5),
        ("1.5e-3", ".", 0.0015),
        ("1,23,4", ".", None),
        ("(5", ".", None),
        ("--5", ".", None),
        ("0,123", ".", None),
        ("1,234.567,8", ".", None),
        ("kg", ".", None),
        ("", ".", None),
        ("1.000.370€", ".", None),
        ("1.000.370€", ",", 1000370.0),
        ("-1,791.59$", ",", None),
        ("$12€34", ".", None),
    ],
)
def test_what_a_text_states(text: str, decimal: str, number: float | None) -> None:
    assert amount(text, decimal) == number


@pytest.mark.parametrize(
    ("texts", "options", "reason"),
    [
        (["1.234", "99", "2.500"], {"decimal": ","}, "numbers"),
        (["1.234", "2.500"], {}, "numbers; '1.234' could be 1234"),
        (["1,234", "2,500"], {}, "numbers; '1,234' could be 1.234"),
        (["1.234", "0.500"], {}, "numbers"),
        (["1.234", "1.5"], {}, "numbers"),
        (["3 kg", "?", "4 kg"], {"unit": "kg"}, "1 of 3 cells missing; numbers"),
    ],
)
def test_the_column_decides_what_is_ambiguous(
    texts: list[str], options: dict[str, Any], reason: str
) -> None:
    (column,) = infer({"x": texts}, {})
    shown = "; ".join(filter(None, (column.reason, column.example)))
    assert (column.kind, dict(column.options), shown) == ("number", options, reason)


@pytest.mark.parametrize("sign", ["₫", "€", "kg", "$", " ₫", "\u00a0€", " kg"])
@pytest.mark.parametrize("group", ".,")
def test_signs_that_touch_the_number_do_not_matter(sign: str, group: str) -> None:
    rng = random.Random(4)
    texts = [f"{rng.randrange(10_000, 2_000_000):,}".replace(",", group) for _ in range(50)]
    (alone,) = infer({"x": texts}, {})
    (column,) = infer({"x": [text + sign for text in texts]}, {})
    assert column.options.get("decimal") == alone.options.get("decimal")
    assert (column.others, column.example) == (alone.others, alone.example) == ((), "")


def test_different_units_are_no_numbers() -> None:
    for other in ("300 km", "300 mg/l", "300 €"):
        assert infer({"x": ["3 kg", other, "2 kg"]}, {})["x"].kind != "number"


COLUMNS: dict[str, tuple[list[str], list[float], dict[str, str]]] = {
    "Excel's accounts": ([" $ (1,234.56)", " $ 5.00 ", "$(7)", "€ (5)"], [-1234.56, 5, -7, -5], {}),
    "signs behind": (["(5) €", "USD (5)", "(5)%", "5.00 EUR-"], [-5, -5, -5, -5], {}),
    "debit in German": (["5,5 S", "7,25 H"], [-5.5, 7.25], {"decimal": ",", "unit": "S|H"}),
    "sizes": (["5 S", "7 S"], [5, 7], {"unit": "S"}),
    "SAP": (["5,25-", "1.007,00+"], [-5.25, 1007], {"decimal": ","}),
    "Excel's texts": (['="7133.06"', "'12.5", '"3"', "-4"], [7133.06, 12.5, 3, -4], {}),
    "crowns": (["kr. 5", "kr. 1.007,50", "-5 kr."], [5, 1007.5, -5], {"decimal": ","}),
    "rupees": (["Rs.16,88,843/-", "Rs. 250/-", "Rs.50.50"], [1688843, 250, 50.5], {}),
    "rupiahs": (["Rp. 5.000,00", "Rp. 1.250.000,00"], [5000, 1250000], {"decimal": ","}),
    "millions": (["1,25 Mio. €", "5 Tsd. €", "3 Mrd. €"], [1.25e6, 5e3, 3e9], {"decimal": ","}),
    "words": (["$1.5 million", "$2 billion", "5 lakh"], [1.5e6, 2e9, 5e5], {}),
    "k and M": (["841.1k", "1.69M"], [841100, 1.69e6], {}),
    "about": (["ca. 5", "~7.5", "approx. 3", "12"], [5, 7.5, 3, 12], {}),
    "masses": (["3 kg", "300 g", "2.5 kg"], [3000, 300, 2500], {"unit": "g|kg"}),
    "bytes": (["1.5 GB", "20 MB", "300 kB"], [1.5e6, 20e3, 300], {"unit": "kB|MB|GB"}),
    "spaces": (
        ["1\u2007234,5", "1\u200a234,5", "\u200b7,5"],
        [1234.5, 1234.5, 7.5],
        {"decimal": ","},
    ),
    "either": (
        ["1.234,56", "1,234.56", "12,5", "7"],
        [1234.56, 1234.56, 12.5, 7],
        {"decimal": ".,"},
    ),
}


@pytest.mark.parametrize(("texts", "numbers", "options"), COLUMNS.values(), ids=COLUMNS)
@pytest.mark.parametrize("first", [1, 12])
def test_notations_of_columns(
    texts: list[str], numbers: list[float], options: dict[str, str], first: int
) -> None:
    for column in infer({"x": texts * first}, {}), infer({"x": texts[::-1] * first}, {}):
        assert (column["x"].kind, dict(column["x"].options)) == ("number", options)
        found = [column["x"].parser.parse(text, column["x"].options) for text in texts]
        assert found == pytest.approx(numbers, rel=1e-12)
    named = OnlineClassifier(columns={"x": {"kind": "number", **options}})
    model = named.fit([{"x": text} for text in texts * 4], ["a"] * 4 * len(texts))
    assert model.schema_["x"].n_misfits == 0


@pytest.mark.parametrize(
    "texts",
    [["(5", "6"], ["((5))", "6"], ["-(5)", "6"], ["5-+", "6"], ["5 kg g", "6"], ["='5", "6"]],
)
def test_other_signs_are_no_numbers(texts: list[str]) -> None:
    assert infer({"x": texts}, {})["x"].kind != "number"


def test_in_a_column_of_either_notation_what_could_be_both_is_missing() -> None:
    texts = ["1.234,56", "1,234.56"] * 10
    column = infer({"x": texts}, {})["x"]
    assert column.parser.parse("12", column.options) == 12.0
    with pytest.raises(UnfitError):
        column.parser.parse("1.234", column.options)
    german = infer({"x": ["1.234,56"] * 19 + ["3,584.39"]}, {})["x"]
    assert german.options == {"decimal": ","}  # one odd cell is no notation


def test_the_notation_can_be_named() -> None:
    rows, y = [{"x": f"{i}.000"} for i in range(1, 60)], ["a", "b"] * 29 + ["a"]
    named = OnlineClassifier(columns={"x": {"kind": "number", "decimal": ","}}).fit(rows, y)
    same = OnlineClassifier(columns={"x": "number"}).fit([{"x": 1e3 * i} for i in range(1, 60)], y)
    assert (
        named.predict(rows).tolist()
        == same.predict([{"x": 1e3 * i} for i in range(1, 60)]).tolist()
    )
    assert named._input.columns.known.moments == same._input.columns.known.moments


MARKERS = [
    *"NA n/a #N/A NaN nan NULL None - ? . -- \\N (null) NaT -nan 1.#IND 1.#QNAN .. --- *".split(),
    *"#NV #DIV/0! #WERT! #VALUE! #REF! #NAME? #NUM! #BEZUG! n.a. N.A. k.A. \u2014 \u2013".split(),
    *("not available", "- \u20ac", " $ -   ", "-\u20ac", "EUR \u2013", "\u2026", "", " "),
]


@pytest.mark.parametrize("word", MARKERS)
@pytest.mark.parametrize("named", [True, False])
def test_words_for_missing_are_missing_numbers(word: str, named: bool) -> None:
    texts = [word if i % 7 == 3 else f"{i}.5" for i in range(50)]
    columns: Any = {"x": "number"} if named else {}
    y = ["a", "b"] * 25
    marked = OnlineClassifier(columns=columns).fit([{"x": text} for text in texts], y)
    none = [{"x": None if text == word else text} for text in texts]
    assert marked._input.columns.known.moments == (
        OnlineClassifier(columns=columns).fit(none, y)._input.columns.known.moments
    )
    assert marked.schema_["x"].kind == "number"


@pytest.mark.parametrize(
    "word", ["NaT", "0000-00-00", "0000-00-00 00:00:00", "n.a.", "#NV", "\u2014"]
)
def test_words_for_missing_are_missing_dates(word: str) -> None:
    texts = [word if i % 7 == 0 else f"2024-01-{1 + i % 28:02} 10:00" for i in range(70)]
    y = ["a", "b"] * 35
    marked = OnlineClassifier(columns={}).fit([{"x": text} for text in texts], y)
    none = [{"x": None if text == word else text} for text in texts]
    same = OnlineClassifier(columns={}).fit(none, y)
    assert marked.schema_["x"].kind == "date" and marked.schema_["x"].n_misfits == 0
    assert marked.decision_function(none).tolist() == same.decision_function(none).tolist()


@pytest.mark.parametrize("word", MARKERS)
def test_words_for_missing_are_words_elsewhere(word: str) -> None:
    (column,) = infer({"x": [word, "red", "blue"] * 20}, {})
    assert column.kind == "category" and not column.reason.startswith("20 of 60")
    assert column.parser.parse(word, column.options) == word.strip()


INFINITE = {
    "CSV": ("inf", str),
    "postgres": ("-Infinity", str),
    "signs": ("\u221e", str),
    "floats": (math.inf, float),
    "decimals": (Decimal("-Infinity"), Decimal),
    "NumPy": (np.float32(math.inf), np.float32),
    "too large": (1e300, float),
}


@pytest.mark.parametrize(("cell", "of"), INFINITE.values(), ids=INFINITE)
def test_infinite_numbers_are_missing_and_counted(
    cell: Any, of: Callable[[Any], Any], tmp_path: Path
) -> None:
    rows = [
        {"x": cell if i % (11 if of is float else 4) == 1 else of(i / 4), "c": "u"}
        for i in range(80)
    ]
    n = sum(row["x"] is cell for row in rows)
    y = ["a", "b"] * 40
    with pytest.warns(MismatchWarning, match="row 1, column 'x' holds"):
        model = OnlineClassifier(columns={}).fit(rows, y)
    assert (model.schema_["x"].kind, model.schema_["x"].n_misfits) == ("number", n)
    begun = OnlineClassifier(columns={})
    with pytest.warns(MismatchWarning, match="row 1, column 'x' holds"):
        begun.partial_fit(rows[:20], y[:20])
    begun.save(tmp_path / "begun.kesler")
    whole = load(tmp_path / "begun.kesler").partial_fit(rows[20:], y[20:])
    assert whole._input.columns.known.moments == model._input.columns.known.moments
    assert whole.schema_["x"].n_misfits == n
    with pytest.raises(KeslerError, match="row 1, column 'x' holds"):
        OnlineClassifier(columns={}, on_mismatch="raise").fit(rows, y)


@pytest.mark.parametrize("form", ["amounts", "whole thousands", "categories", "gaps"])
def test_a_file_is_read_as_a_table(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers = [150 + 370 * i % 9000 for i in range(80)]
    rows = {
        "amounts": [f"{1000 + n:,}.00;1" for n in numbers],
        "whole thousands": [f"{n:,};1".replace(",", ".") for n in numbers],
        "categories": [f"{n};{'red' if n % 3 else 'blue'}" for n in numbers],
        "gaps": [f"{n if n % 7 else ''};{n % 4}" for n in numbers],
    }[form]
    lines = [f"{row};{'ab'[n > 4500]}" for row, n in zip(rows, numbers, strict=True)]
    (tmp_path / "amounts.csv").write_text("\n".join(["sum;other;kind", *lines]))
    rows = [str(tmp_path / "amounts.csv"), "--label", "kind"]
    found = []
    for model, more in (("a", []), ("b", ["--table"])):
        assert main(["learn", str(tmp_path / model), *rows, *more]) == 0
        assert re.search(r"sum +number( \(decimal=,\))? +(\d|numbers)", capsys.readouterr().out)
        found.append(load(tmp_path / model))
    assert found[0].n_mistakes_ == found[1].n_mistakes_


ALONE: dict[str, Callable[[float], str]] = {
    "1,234.56": lambda x: f"{x:,.2f}",
    "1.234,56": lambda x: f"{x:,.2f}".translate(str.maketrans(",.", ".,")),
    "1'234.56": lambda x: f"{x:,.2f}".replace(",", "'"),
    "1 234,56": lambda x: f"{x:,.2f}".replace(",", "\u202f").replace(".", ","),
    "$1,234.56": lambda x: f"${x:,.2f}",
}


@pytest.mark.parametrize("options", [[], ["--table"], ["--number", "sum"]], ids=str)
@pytest.mark.parametrize("form", ALONE)
def test_amounts_alone_are_learnt_as_the_array_of_their_numbers(
    form: str, options: list[str], tmp_path: Path
) -> None:
    numbers = [150.25 + 370 * i % 9000 for i in range(120)]
    kinds = ["small" if n < 3000 else "middle" if n < 6000 else "large" for n in numbers]
    lines = [f'"{ALONE[form](n)}",{kind}' for n, kind in zip(numbers, kinds, strict=True)]
    (tmp_path / "sums.csv").write_text("\n".join(["sum,kind", *lines]))
    learn = ["learn", str(tmp_path / "a"), str(tmp_path / "sums.csv"), "--label", "kind"]
    assert main([*learn, *options]) == 0
    expected = OnlineClassifier().partial_fit(np.array(numbers)[:, None], kinds)
    assert load(tmp_path / "a").n_mistakes_ == expected.n_mistakes_


TIMES = {  # a text, and its seconds
    "13:45": 49500.0,
    "9:05:30": 32730.0,
    "12:00 AM": 0.0,
    "12:30 pm": 45000.0,
    "1:15 p.m.": 47700.0,
    "00:00:01.5": 1.5,
    "0:01:02,25": 62.25,
    "-0:30": -1800.0,
    "125:00": 450000.0,
    "١٣:٤٥": 49500.0,
    "13:45 Uhr": 49500.0,
    "13h45": 49500.0,
    "13:45:00+01:00": 49500.0,
    "45:03.5": 2703.5,
    "PT5H3M": 18180.0,
    "PT1.5S": 1.5,
    "P1DT2H": 93600.0,
    "5h 3m": 18180.0,
    "5 Std. 3 Min.": 18180.0,
    "1 hour, 2 minutes": 3720.0,
    "2 days, 5:03:01": 190981.0,
    "2 days 05:03:01": 190981.0,
    "-1d2h3m": -93780.0,
}
NO_TIMES = [
    "13:60",
    "13:45:60",
    "13",
    "13:45 PM",
    "0:30 AM",
    "-1:00 PM",
    "1:2",
    "a:bc",
    "13:45:00:00",
    "P",
    "PT",
    "-",
    "5 h of sleep",
    "3m 5h",
]


def test_times_and_durations_are_seconds() -> None:
    assert [amount(text, unit=":") for text in TIMES] == [*TIMES.values()]
    assert [amount(text, unit=":") for text in NO_TIMES] == [None] * len(NO_TIMES)
    assert [amount(text) for text in TIMES] == [None] * len(TIMES)


def test_durations_are_told_from_numbers_with_a_unit() -> None:
    for texts in (["5h 3m", "7 h", "12 min"], ["PT5H", "PT30M"], ["1 day, 0:00", "2:30"]):
        assert infer({"x": texts * 5}, {})["x"].options == {"unit": ":"}
    assert infer({"x": ["5 h", "7 h"]}, {})["x"].options == {"unit": "h"}
    assert infer({"x": ["5 m", "7 km"]}, {})["x"].options == {"unit": "m|km"}


@pytest.mark.parametrize("texts", [["9:30", "13:45", "0:05"], ["9:30 AM", "1:45 PM", "12:05 AM"]])
def test_a_column_of_times_holds_seconds(texts: list[str]) -> None:
    (column,) = infer({"at": texts * 20}, {})
    assert (column.kind, column.options) == ("number", {"unit": ":"})
    mixed = infer({"at": [*texts * 3, "7.5", "8"]}, {})["at"]
    assert mixed.kind != "number"
    y = ["late" if "1" in text[:2] else "early" for text in texts * 20]
    model = OnlineClassifier(columns={}).fit([{"at": text} for text in texts * 20], y)
    seconds = [{"at": amount(text, unit=":")} for text in texts]
    rows = [{"at": text} for text in texts]
    assert model.decision_function(seconds).tolist() == model.decision_function(rows).tolist()
    with pytest.raises(KeslerError, match="the column holds a time or a duration in each row"):
        OnlineClassifier(columns={}, on_mismatch="raise").fit(
            [*rows * 20, {"at": "soon"}], [*y, "a"]
        )
