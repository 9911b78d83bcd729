"""What a new user gives first, with no option: the default does about as well as named columns.

With nothing chosen, the default may make `MORE` mistakes, or `SHARE` of the rows, more than the
best of the settings that name the kinds of columns. Contacts of single rows end with the right
answer, or with a sentence that helps.
"""

from __future__ import annotations

import csv
import json
import mailbox
from collections.abc import Callable, Mapping, Sequence
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

import kesler
from first_contact.tickets import LATE, N_ROWS, select, tickets
from kesler import KeslerError, OnlineClassifier, progressive_validate
from kesler.cli import main

MORE, SHARE = 3, 0.03
ROWS, TEAMS = tickets()
TEXTS = [row["body"] for row in ROWS]
MIXED = select(ROWS, "ticket", "subject", "body", "hours", "plan", "opened")
KINDS = {
    "ticket": "ignore",
    "subject": "text",
    "body": "text",
    "hours": "number",
    "plan": "category",
    "opened": "date",
}
EXPLICIT: list[Mapping[str, str]] = [
    KINDS,
    {**KINDS, "opened": "ignore"},
    {**KINDS, "hours": "ignore", "plan": "ignore", "opened": "ignore"},
    {name: kind if kind == "text" else "ignore" for name, kind in KINDS.items()},
]
"""Settings that name the kinds of columns, of which the best counts."""


def mistakes(X: Any, y: Any = TEAMS, **settings: Any) -> int:
    return progressive_validate(OnlineClassifier(**settings), X, y).n_mistakes


def best(X: Any, settings: Sequence[Mapping[str, Any]]) -> int:
    return min(mistakes(X, columns=columns) for columns in settings)


def assert_near(found: int, wanted: int, n_rows: int = N_ROWS) -> None:
    assert found <= wanted + max(MORE, SHARE * n_rows), f"{found} mistakes, {wanted} at best"


def frame() -> pd.DataFrame:
    return pd.DataFrame(MIXED)


def with_missing(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows with a sixth of the cells missing, in all the ways of writing that."""
    rng, ways = np.random.default_rng(3), (None, "", "NA", "NULL", float("nan"))
    return [
        {name: ways[rng.integers(5)] if rng.random() < 1 / 6 else v for name, v in row.items()}
        for row in rows
    ]


TABLES: dict[str, Callable[[], Any]] = {
    "a list of mappings": lambda: MIXED,
    "a frame of pandas": frame,
    "a frame of polars": lambda: pl.DataFrame(MIXED),
    "an Arrow table": lambda: pa.Table.from_pylist(MIXED),
    "a frame with categories and its own index": lambda: (
        frame().astype({"plan": "category"}).set_index(np.arange(N_ROWS)[::-1])
    ),
}


@pytest.fixture(scope="module")
def best_of_mixed() -> int:
    return best(MIXED, EXPLICIT)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_with_texts_numbers_dates_and_an_id(name, best_of_mixed):
    assert_near(mistakes(TABLES[name]()), best_of_mixed)


@pytest.mark.parametrize("form", [list, tuple, np.array, pd.Series, pl.Series])
def test_texts(form):
    assert_near(mistakes(form(TEXTS)), best([{"body": each} for each in TEXTS], [{"body": "text"}]))


def test_rows_of_an_array_of_objects(best_of_mixed):
    assert_near(mistakes(frame().to_numpy()), best_of_mixed)


def test_missing_cells_in_any_form():
    rows = with_missing(MIXED)
    assert_near(mistakes(rows), best(rows, EXPLICIT))


def test_tags_in_lists_and_embeddings_beside_text():
    rows = select(ROWS, "body", "tags", "place")
    kinds = {"body": "text", "tags": "tags", "place": "vector"}
    others = [{**kinds, "tags": "ignore"}, {**kinds, "place": "ignore"}]
    assert_near(mistakes(rows), best(rows, [kinds, *others]))


def test_embeddings_in_a_column_of_arrays():
    rows = pd.DataFrame({"body": TEXTS, "place": [np.array(row["place"]) for row in ROWS]})
    wanted = best(rows, [{"body": "text", "place": "vector"}, {"body": "text", "place": "ignore"}])
    assert_near(mistakes(rows), wanted)


def test_numbers_alone_in_an_array_and_a_sparse_matrix():
    X = np.array([row["place"] for row in ROWS])
    wanted = best(X, [{}])
    assert_near(mistakes(X), wanted)
    # Of a sparse matrix, values are taken as counts: no kinds stand beside that.
    assert mistakes(sparse.csr_array(X)) < N_ROWS / 2


def test_a_class_that_appears_in_row_900():
    result = progressive_validate(OnlineClassifier(), MIXED, TEAMS)
    late = np.array(TEAMS) == LATE
    assert late.argmax() == 900 and result.n_first_seen == 5
    found = np.array(result.predictions)[late][-10:]
    assert (found == LATE).mean() >= 0.7


# ---- files on the command line -------------------------------------------------------------------


def error_of(path: Path, capsys: Any, *options: str) -> int:
    """Return the mistakes of the default that `kesler compare` prints."""
    json_file = path.with_name("result.json")
    arguments = ["compare", str(path), "--methods", "default", "--json", str(json_file), *options]
    assert main(arguments) == 0, capsys.readouterr().err
    (method,) = json.loads(json_file.read_text())["methods"].values()
    return int(method["mistakes"])


def write_csv(path: Path, **dialect: Any) -> Path:
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        table = csv.writer(file, lineterminator="\r\n", **dialect)
        table.writerow([*MIXED[0], "team"])
        for row, team in zip(MIXED, TEAMS, strict=True):
            cells = {**row, "body": row["body"].replace(" ", "\n", 1)}
            cells["opened"] = row["opened"].strftime("%d/%m/%Y %H:%M")
            table.writerow([*cells.values(), team])
    return path


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv_with_a_bom_crlf_and_quoted_newlines(delimiter, best_of_mixed, tmp_path, capsys):
    path = write_csv(tmp_path / "tickets.csv", delimiter=delimiter)
    assert_near(error_of(path, capsys, "--label", "team"), best_of_mixed)


def test_json_lines_with_lists_of_tags(tmp_path, capsys):
    path, rows = tmp_path / "tickets.jsonl", select(ROWS, "ticket", "body", "hours", "tags")
    with path.open("w") as file:
        for row, team in zip(rows, TEAMS, strict=True):
            file.write(json.dumps({**row, "label": team}) + "\n")
    kinds = {"ticket": "ignore", "body": "text", "hours": "number", "tags": "tags"}
    assert_near(error_of(path, capsys), best(rows, [kinds, {**kinds, "hours": "ignore"}]))


def test_parquet(best_of_mixed, tmp_path, capsys):
    path = tmp_path / "tickets.parquet"
    pq.write_table(pa.Table.from_pylist(MIXED).append_column("team", [TEAMS]), path)
    assert_near(error_of(path, capsys, "--label", "team"), best_of_mixed)


def test_a_folder_of_parquet_files_is_a_table_in_python(best_of_mixed, tmp_path):
    table = pa.Table.from_pylist(MIXED)
    for i in range(3):
        pq.write_table(table.slice(400 * i, 400), tmp_path / f"part-{i}.parquet")
    assert_near(mistakes(pq.read_table(tmp_path)), best_of_mixed)


def test_a_folder_of_parquet_files_is_refused_with_advice(tmp_path, capsys):
    pq.write_table(pa.Table.from_pylist(MIXED), tmp_path / "part-0.parquet")
    assert main(["compare", str(tmp_path), "--label", "team"]) == 2
    assert "parquet" in capsys.readouterr().err.lower()


def test_a_folder_of_mail(tmp_path, capsys):
    box = mailbox.Maildir(tmp_path / "mail")
    for team in sorted(set(TEAMS)):
        box.add_folder(team)
    for text, team in zip(TEXTS[:400], TEAMS[:400], strict=True):
        message = EmailMessage()
        message["Subject"] = "a message"
        message.set_content(text)
        box.get_folder(team).add(message)
    assert 0 < error_of(tmp_path / "mail", capsys) <= 0.1 * 400


def test_a_model_of_the_command_line_answers_raw_rows(tmp_path, capsys):
    path, model = write_csv(tmp_path / "tickets.csv"), tmp_path / "tickets.kesler"
    assert main(["learn", str(model), str(path), "--label", "team"]) == 0
    shown = capsys.readouterr().out
    assert all(f"\n{name} " in shown for name in KINDS), shown
    loaded = kesler.load(model)
    assert loaded.predict_one(MIXED[7]) in TEAMS
    assert (loaded.predict(MIXED) == np.array(TEAMS)).mean() > 0.8
    assert main(["predict", str(model), str(path), "--label", "team"]) == 0
    printed = capsys.readouterr().out.split("\n")[:-1]
    assert (np.array(printed) == np.array(TEAMS)).mean() > 0.8


# ---- single rows ---------------------------------------------------------------------------------


def learnt(rows: Any = MIXED) -> OnlineClassifier:
    return OnlineClassifier().fit(rows, TEAMS)


@pytest.mark.parametrize(
    ("row", "team"),
    [
        ({"body": "I was charged twice, please refund my card", "hours": 28}, "billing"),
        ({"body": "the screen shows an error and then a crash"}, "technics"),
        ({"subject": "Password reset", "body": None, "unheard of": 3}, "access"),
    ],
)
def test_one_mapping_with_a_text_in_it(row, team):
    assert learnt().predict_one(row) == team


def test_one_string():
    model = learnt(TEXTS)
    assert model.predict_one("my login is locked, the password expired") == "access"
    assert model.predict(["refund the invoice to my card"]).tolist() == ["billing"]


def test_one_string_for_a_table_of_several_texts_is_refused_with_advice():
    with pytest.raises(KeslerError, match="give a mapping of names of columns"):
        learnt().predict_one("refund my card")


def test_a_cell_that_does_not_fit_names_its_column():
    with pytest.warns(UserWarning, match=r"hours") as warned:
        learnt().predict_one({"hours": "many", "body": "refund"})
    assert "on_mismatch" in str(warned[0].message)


def test_one_row_to_learn_from_an_empty_model():
    model = OnlineClassifier().learn_one({"body": "refund my card", "hours": 3}, "billing")
    assert model.predict_one({"body": "refund"}) == "billing"
