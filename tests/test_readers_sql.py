"""Databases of SQLite and DuckDB."""

import datetime as dt
import json
import random
import shutil
import sqlite3
import subprocess
import sys
import tracemalloc
from contextlib import closing
from uuid import UUID

import duckdb
import pytest

from commands import kesler
from kesler.errors import KeslerError
from kesler.readers import open_stream
from kesler.readers.lines import Lines
from kesler.readers.opening import format_of
from test_readers import read

needs_sqlite = pytest.mark.skipif(
    shutil.which("sqlite3") is None, reason="the program sqlite3 is not installed"
)
TICKETS = """
create table tickets (id integer primary key, team text, body text, hours real);
insert into tickets values (1, 'cards', 'lost card', 1.5), (2, 'hr', 'Ärger; late pay', null),
    (3, 'cards', 'new card', 3);
"""
TEAMS = "create table teams (team text, room integer); insert into teams values ('hr', 7);"
COLUMNS = {
    "id": [1, 2, 3],
    "body": ["lost card", "Ärger; late pay", "new card"],
    "hours": [1.5, None, 3.0],
}


def by_sqlite(path, script):
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
    return path


def by_program(path, script):
    subprocess.run(["sqlite3", str(path)], input=script, text=True, check=True)
    return path


def by_duckdb(path, script):
    with closing(duckdb.connect(str(path))) as connection:
        connection.execute(script)
    return path


WRITERS = {
    "sqlite": pytest.param(by_sqlite),
    "duckdb": pytest.param(by_duckdb),
    "sqlite3": pytest.param(by_program, marks=needs_sqlite),
}
each = pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)


def table_of(path, **options):
    (block,) = open_stream(path, as_table=True, **{"label": "team", **options})
    return block.labels, block.rows.columns


# ---- what is read -------------------------------------------------------------------------------


@each
def test_the_only_table_is_read(tmp_path, write):
    path = write(tmp_path / "desk.db", TICKETS)
    assert table_of(path) == (["cards", "hr", "cards"], COLUMNS)


@each
def test_a_query_is_an_argument_or_stands_behind_the_path(tmp_path, write):
    path = write(tmp_path / "desk.db", TICKETS + TEAMS)
    query = "select body, t.team, room from tickets t join teams using (team) where 1 < 2"
    wanted = ["hr"], {"body": ["Ärger; late pay"], "room": [7]}
    assert table_of(path, sql=query) == table_of(f"{path}?{query}") == wanted
    with pytest.raises(KeslerError, match="query behind it and in sql"):
        open_stream(f"{path}?{query}", sql=query, label="team")


@each
def test_features_and_texts(tmp_path, write):
    path = write(tmp_path / "desk.db", TICKETS)
    query = "select team, body, hours from tickets where id <> 2"
    assert read(path, label="team", sql=query) == [
        ("cards", {"body=lost card": 1.0, "hours": 1.5}),
        ("cards", {"body=new card": 1.0, "hours": 3.0}),
    ]
    assert read(path, label="team", text="body,id", sql="select * from tickets limit 1") == [
        ("cards", {"lost": 1.0, "card": 1.0, "1": 1.0})
    ]


@each
@pytest.mark.parametrize("name", ["desk.db", "desk.csv", "desk"])
def test_databases_are_known_by_their_content(tmp_path, write, name):
    path = write(tmp_path / name, TICKETS)
    wanted = "duckdb" if write is by_duckdb else "sqlite"
    assert format_of(str(path), Lines(str(path))) == wanted
    assert table_of(path)[0] == ["cards", "hr", "cards"]


def test_a_path_may_have_a_question_mark(tmp_path):
    path = by_sqlite(tmp_path / "a?b.db", TICKETS)
    assert table_of(path) == table_of(path, sql="select * from tickets")


@each
def test_views_are_tables_and_names_are_quoted(tmp_path, write):
    script = TICKETS.replace("tickets", '"a ""b"" table"')
    assert table_of(write(tmp_path / "desk.db", script)) == (["cards", "hr", "cards"], COLUMNS)
    viewed = write(tmp_path / "two.db", TICKETS + "create view late as select * from tickets;")
    with pytest.raises(KeslerError, match=r"tables 'late', 'tickets', .* from late\""):
        open_stream(viewed, label="team")


def test_types_of_duckdb(tmp_path):
    path = by_duckdb(
        tmp_path / "desk.duckdb",
        """create table t as select 'a' team, 1.5::decimal(5, 2) amount, time '08:30' began,
        interval 3 day took, uuid '00000000-0000-0000-0000-000000000001' ticket, [1.5, 2] vec,
        {'p': 1, 'q': {'r': 'x'}} st, map {'k': 2.5} m, map {3: true} n, 'u'::enum ('u', 'v') e,
        timestamptz '2024-02-29 10:00:00+00' tz, date '2024-02-29' as on_day, 170::hugeint h""",
    )
    labels, columns = table_of(path)
    zone = columns.pop("tz")
    assert labels == ["a"] and isinstance(zone[0], dt.datetime)
    assert columns == {
        "amount": [1.5],
        "began": [30_600.0],
        "took": [259_200.0],
        "ticket": [str(UUID(int=1))],
        "vec": [[1.5, 2.0]],
        "st.p": [1],
        "st.q.r": ["x"],
        "m.k": [2.5],
        "n.3": [True],
        "e": ["u"],
        "on_day": [dt.datetime(2024, 2, 29)],
        "h": [170],
    }


def test_a_schema_of_duckdb_is_part_of_the_name(tmp_path):
    script = "create schema office; " + TICKETS.replace("tickets", "office.tickets")
    path = by_duckdb(tmp_path / "desk.duckdb", script)
    assert table_of(path) == (["cards", "hr", "cards"], COLUMNS)
    by_duckdb(path, TEAMS)
    with pytest.raises(KeslerError, match=r"tables 'teams', 'office\.tickets'"):
        open_stream(path, label="team")


@each
def test_rows_are_read_in_blocks(tmp_path, write):
    path = write(tmp_path / "desk.db", "create table t (team text);")
    wide = f"'{'x' * 2_000}'"
    query = (
        f"with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000) "
        f"select {wide} as body, 'a' as team from n"
    )
    tracemalloc.start()
    n_rows = sum(len(block) for block in open_stream(path, label="team", text="body", sql=query))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert n_rows == 20_000 and peak < 15e6


# ---- only reading -------------------------------------------------------------------------------

WRITES = [
    "delete from tickets",
    "drop table tickets",
    "insert into tickets values (9, 'x', 'y', 1) returning team",
    "create table other (x integer)",
    "attach '{other}' as other",
    "vacuum into '{other}'",
    "copy tickets to '{other}'",
    "pragma writable_schema = 1",
    "set threads = 1",
    "select team from tickets; drop table tickets",
    "select load_extension('{other}')",
    "select * from read_csv('{secret}')",
    "select * from '{secret}'",
    "select",
    "no query",
]


@each
@pytest.mark.parametrize("query", WRITES)
def test_a_query_can_only_read(tmp_path, write, query):
    path, other = write(tmp_path / "desk.db", TICKETS), tmp_path / "other.db"
    secret = tmp_path / "secret.csv"
    secret.write_text("team\nsecret\n")
    before = path.read_bytes()
    with pytest.raises(KeslerError, match=r"query cannot be run on .*desk\.db \(.*tables are 'tic"):
        open_stream(path, label="team", sql=query.format(other=other, secret=secret))
    assert path.read_bytes() == before
    assert {each.name for each in tmp_path.iterdir()} == {"desk.db", "secret.csv"}


@each
def test_a_database_that_others_write_to_is_read(tmp_path, write):
    path = write(tmp_path / "desk.db", TICKETS)
    path.chmod(0o444)
    assert table_of(path)[0] == ["cards", "hr", "cards"]


def test_a_database_with_a_journal_of_writes_is_read(tmp_path):
    path = tmp_path / "desk.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma journal_mode = wal")
        connection.executescript(TICKETS)
        assert table_of(path)[0] == ["cards", "hr", "cards"]


# ---- errors -------------------------------------------------------------------------------------


@each
def test_what_is_wrong_is_a_sentence(tmp_path, write):
    path = write(tmp_path / "desk.db", TICKETS + TEAMS)
    for options, sentence in {
        "": r"tables 'teams', 'tickets', of which one is read: .* sql=\"select \* from teams\"",
        "select nothing from tickets": r"cannot be run .*nothing.*tables are 'teams', 'tickets'",
        "select * from tickets, teams": "more than one column 'team'",
        "select body from tickets": "has no column 'team': it has 'body'",
        "select team from tickets where 1 > 2": "holds no rows",
        "select null as team, 1 as x": "row 1: there is no label",
    }.items():
        with pytest.raises(KeslerError, match=sentence):
            read(path, label="team", sql=options or None)
    empty = write(tmp_path / "empty.db", "create table t (x text); drop table t;")
    with pytest.raises(KeslerError, match=r"empty\.db has no tables"):
        open_stream(empty, label="team")


def test_text_that_is_not_utf8_is_a_bad_row(tmp_path):
    script = "create table t (team text, x text); insert into t values ('a', cast(x'ff' as text));"
    path = by_sqlite(tmp_path / "desk.db", script + "insert into t values ('b', 'fine')")
    with pytest.raises(KeslerError, match=r"desk\.db, row 1: character 2 is not UTF-8"):
        read(path, label="team")
    assert read(path, label="team", skip_bad=True) == [("b", {"x=fine": 1.0})]


def test_other_formats_take_no_query(tmp_path):
    tmp_path.joinpath("rows.csv").write_text("team,x\na,1\n")
    for source, options in (
        (f"{tmp_path}/rows.csv?select 1", {}),
        (tmp_path / "rows.csv", {"sql": "x"}),
    ):
        with pytest.raises(KeslerError, match=r"without sql=\.\.\.: .* for sqlite, duckdb"):
            open_stream(source, label="team", **options)
    with pytest.raises(KeslerError, match=r"absent\.db\?select 1 does not exist"):
        open_stream(tmp_path / "absent.db?select 1", label="team")


def test_the_extra_is_named(tmp_path, monkeypatch):
    path = by_duckdb(tmp_path / "desk.db", TICKETS)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(KeslerError, match=r"pip install 'kesler\[duckdb\]'"):
        open_stream(path, label="team")


@each
@pytest.mark.filterwarnings("ignore::kesler.errors.ReadingWarning")
def test_altered_bytes_are_rows_or_a_sentence(tmp_path, write):
    random.seed(5)
    rows = ", ".join(f"({i}, 'a', 'body {i}', {i}.5)" for i in range(4, 300))
    path = write(tmp_path / "desk.db", f"{TICKETS} insert into tickets values {rows};")
    content = path.read_bytes()
    name, found = "duckdb" if write is by_duckdb else "sqlite", set()
    for i in range(80):
        changed = bytearray(content)
        for _ in range(random.randint(1, 20)):
            changed[random.randrange(len(content))] = random.randrange(256)
        path.write_bytes(changed if i % 4 else content[: random.randrange(len(content))])
        try:
            read(path, label="team", skip_bad=True, format=name)
            found.add(True)
        except KeslerError as error:
            assert "desk.db" in str(error)
            found.add(False)
    assert False in found


# ---- commands -----------------------------------------------------------------------------------


@each
def test_commands_take_queries(tmp_path, capsys, write):
    rows = ", ".join(
        f"({i}, '{'hr' if i % 2 else 'it'}', '{i % 2} words', 1)" for i in range(4, 64)
    )
    path = write(tmp_path / "desk.db", f"{TICKETS}{TEAMS} insert into tickets values {rows};")
    query = "select team, body from tickets where id > 3 order by id"
    models, answers = [tmp_path / name for name in ("a", "b")], []
    for model, given in zip(models, ((f"{path}?{query}",), (path, "--sql", query)), strict=True):
        learnt = kesler(capsys, "learn", model, *given, "--label", "team")
        assert (learnt.code, learnt.err) == (0, "") and "60 rows" in learnt.out
        answers.append(kesler(capsys, "predict", model, *given, "--scores").out)
    assert answers[0] == answers[1] == kesler(capsys, "predict", models[0], path, "--scores").out
    tested = kesler(capsys, "test", models[0], path, "--json", "-")
    assert json.loads(tested.out)["n_rows"] == 60
    compared = kesler(
        capsys,
        "compare",
        f"{path}?{query}",
        f"{path}?{query} limit 9",
        "--label",
        "team",
        "--methods",
        "default",
    )
    assert "60 rows" in compared.out and "9 rows" in compared.out
    refused = kesler(capsys, "compare", path, "--label", "team")
    assert 'of which one is read: name it in a query, such as --sql "select' in refused.err
    twice = kesler(capsys, "compare", f"{path}?{query}", "--sql", query, "--label", "team")
    assert twice.code == 2 and "query behind it and in --sql" in twice.err
    more = kesler(capsys, "predict", models[0], f"{path}?{query}", "--sql", query)
    assert more.code == 2 and "there are two queries" in more.err


def test_a_database_that_grew_is_continued(tmp_path, capsys):
    path, model = by_sqlite(tmp_path / "desk.db", TICKETS), tmp_path / "m"
    assert kesler(capsys, "learn", model, path, "--label", "team").code == 0
    by_sqlite(path, "insert into tickets values (4, 'hr', 'more pay', 2)")
    again = kesler(capsys, "learn", model, path, "--resume")
    assert "desk.db: 1 row," in again.out and "(4 trials" in again.out
