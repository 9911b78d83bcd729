"""The backend of Annif: Annif's program and its server suggest what the model predicts."""

import gzip
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import kesler.annif
from kesler import OnlineMultilabelClassifier

pytest.importorskip("annif", reason="needs Annif: pip install 'kesler[annif]'")

from annif.corpus import Document, DocumentList, SubjectSet
from annif.exception import (
    ConfigurationException,
    NotInitializedException,
    NotSupportedException,
    OperationFailedException,
)
from annif.registry import AnnifRegistry
from annif.vocab import VocabFileTSV

PROJECTS = """
[terms]
name=terms
language=en
backend=kesler
vocab=terms
allow_learn=true

[part]
name=part
language=en
backend=kesler
vocab=terms(exclude=http://a/1)
"""
TERMS = ["birds", "boats", "bread", "books", "beets", "bells"]
URIS = [f"http://a/{i}" for i in range(len(TERMS))]


def documents(n, seed=0):
    """Return texts with two or three subjects, and their words and other words."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(n):
        own = rng.choice(len(TERMS), rng.integers(2, 4), replace=False).tolist()
        words = [TERMS[i] for i in own] + [f"w{j}" for j in rng.integers(0, 40, 6)]
        found.append((" ".join(rng.permutation(words).tolist()), [URIS[i] for i in own]))
    return found


def write_vocabulary(path, uris):
    path.write_text("".join(f"<{uri}>\tterm {i}\n" for i, uri in enumerate(uris)))


@pytest.fixture
def folder(tmp_path):
    kesler.annif.register()
    (tmp_path / "projects.cfg").write_text(PROJECTS)
    write_vocabulary(tmp_path / "terms.tsv", URIS)
    registry_of(tmp_path).get_vocab("terms").load_vocabulary(
        VocabFileTSV(str(tmp_path / "terms.tsv"), "en")
    )
    return tmp_path


def registry_of(folder):
    return AnnifRegistry(str(folder / "projects.cfg"), str(folder / "data"), init_projects=False)


def project_of(folder, name="terms"):
    """Return a project, as another process would read it."""
    return registry_of(folder).get_project(name)


def corpus(project, rows):
    by_uri = project.subjects.by_uri
    return DocumentList([Document(t, SubjectSet(map(by_uri, uris))) for t, uris in rows])


def suggested(project, texts, limit=100):
    """Return the probabilities of the suggestions of texts, by subject."""
    parameters = {"kesler": {"limit": limit}}
    found = project.suggest([Document(each) for each in texts], parameters)
    uris = project.subjects
    return [{uris[each.subject_id].uri: each.score for each in of_text} for of_text in found]


def expected(rows, texts, limit=100):
    """Return what a model says that has learnt the rows, each on its own."""
    model = OnlineMultilabelClassifier()
    for text, uris in rows:
        model.partial_fit([text], [uris])
    best = [model.predict_top_one(each, limit) for each in texts]
    return [{each.label: pytest.approx(each.probability, rel=1e-4) for each in b} for b in best]


ROWS, ASKED = documents(70), [text for text, _ in documents(9, seed=1)]


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_suggestions_are_those_of_the_model(folder, limit):
    project = project_of(folder)
    project.train(corpus(project, ROWS))
    assert suggested(project, ASKED, limit) == expected(ROWS, ASKED, limit)
    assert project.is_trained and project_of(folder).is_trained


@pytest.mark.parametrize("limit", ["0", "-3", "abc", "2.5", ""])
def test_a_limit_that_is_no_number_of_suggestions_is_refused(folder, limit):
    project = project_of(folder)
    project.train(corpus(project, ROWS[:20]))
    with pytest.raises(ConfigurationException, match=f"limit={limit}: give the number of sugg"):
        suggested(project, ASKED, limit)
    assert len(suggested(project, ASKED[:1], "2")[0]) == 2


def test_what_is_learnt_later_is_as_if_it_had_been_trained(folder):
    project, another = project_of(folder), project_of(folder)
    project.train(corpus(project, ROWS[:40]))
    suggested(another, ASKED)
    project.learn(corpus(project, ROWS[40:]))
    for each in (project, another, project_of(folder)):
        assert suggested(each, ASKED) == expected(ROWS, ASKED)


def test_a_project_learns_from_nothing_and_training_begins_anew(folder):
    project = project_of(folder)
    project.learn(corpus(project, ROWS[:20]))
    assert suggested(project, ASKED) == expected(ROWS[:20], ASKED)
    project.train(corpus(project, ROWS[20:]))
    assert suggested(project, ASKED) == expected(ROWS[20:], ASKED)


def test_two_that_learn_at_once_lose_nothing(folder):
    def learn(rows):
        project = project_of(folder)
        for row in rows:
            project.learn(corpus(project, [row]))

    threads = [threading.Thread(target=learn, args=(ROWS[i:12:2],)) for i in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    project = project_of(folder)
    project.backend.initialize()
    assert project.backend._model.n_trials_ == 12


def test_documents_without_subjects_are_left_out_and_counted(folder):
    project = project_of(folder)
    bare = [("birds and boats", []), ("unknown", ["http://a/none"])]
    with pytest.raises(NotSupportedException, match="none of 2 documents has a subject"):
        project.train(corpus(project, bare))
    assert not project.is_trained
    said = []
    project.backend.warning = said.append
    project.train(corpus(project, [*ROWS[:30], *bare, *ROWS[30:]]))
    assert said == ["2 documents without a subject are left out"]
    assert suggested(project, ASKED) == expected(ROWS, ASKED)


def test_subjects_that_the_vocabulary_no_longer_has_are_not_suggested(folder):
    project = project_of(folder)
    project.train(corpus(project, ROWS))
    write_vocabulary(folder / "fewer.tsv", URIS[:4])
    project.vocab.load_vocabulary(VocabFileTSV(str(folder / "fewer.tsv"), "en"))
    assert {uri for each in suggested(project_of(folder), ASKED) for uri in each} == {*URIS[:4]}


def test_subjects_that_a_project_excludes_are_neither_learnt_nor_suggested(folder):
    project = project_of(folder, "part")
    project.train(corpus(project, ROWS))
    assert {uri for each in suggested(project, ASKED) for uri in each} == {*URIS} - {URIS[1]}
    assert URIS[1] not in project.backend._model.classes_


def test_what_cannot_be_done_is_said_in_the_words_of_annif(folder):
    project = project_of(folder)
    with pytest.raises(NotInitializedException, match=r"model\.kesler is missing"):
        project.backend.suggest([Document("birds")])
    with pytest.raises(NotSupportedException, match="not kept after training"):
        project.train("cached")
    Path(project.datadir, "model.kesler").write_bytes(b"no model")
    with pytest.raises(OperationFailedException, match=r"model\.kesler: not a model file"):
        project.backend.suggest([Document("birds")])


# ---- Annif's own programs ---------------------------------------------------------------------


def annif(folder, *command, text=""):
    """Run a command of Annif."""
    paths = {"ANNIF_PROJECTS": str(folder / "projects.cfg"), "ANNIF_DATADIR": str(folder / "data")}
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        input=text,
        env=os.environ | paths,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


SERVED = """
import json
from kesler.annif import create_app

with create_app().test_client() as client:
    rows = json.loads(input())
    body = [{"text": t, "subjects": [{"uri": u, "label": ""} for u in uris]} for t, uris in rows]
    said = client.post("/v1/projects/terms/learn", json=body)
    assert said.status_code == 204, said.text
    for _ in range(2):
        said = client.post("/v1/projects/terms/suggest", data={"text": input(), "limit": 2})
        print(json.dumps([[each["uri"], each["score"]] for each in said.json()["results"]]))
"""


def test_the_server_of_annif_learns_and_suggests(folder):
    said = annif(folder, "-c", SERVED, text="\n".join([json.dumps(ROWS), *ASKED[:2]]))
    found = [dict(json.loads(line)) for line in said.splitlines()]
    assert found == expected(ROWS, ASKED[:2], 2)


def f1_at_5(rows, asked):
    """Return the mean F1 of the five best suggestions of each document."""
    found = expected(rows, [text for text, _ in asked], 5)
    hits = [len({*best} & {*own}) for best, (_, own) in zip(found, asked, strict=True)]
    sizes = [5 + len(own) for _, own in asked]
    return float(np.mean(2 * np.array(hits) / np.array(sizes)))


@pytest.mark.data
def test_the_program_learns_records_of_a_library(folder):
    path = Path(os.environ["KESLER_DATA"]) / "subjects" / "tib_core_dev.tsv.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        lines = [next(file) for _ in range(900)]
    rows = [line.rstrip("\n").split("\t") for line in lines]
    write_vocabulary(folder / "subjects.tsv", {u.strip("<>") for _, s in rows for u in s.split()})
    for name, part in (("first", lines[:400]), ("next", lines[400:600]), ("asked", lines[600:])):
        (folder / f"{name}.tsv").write_text("".join(part), encoding="utf-8")
    command = ("-m", "kesler.annif")
    annif(folder, *command, "load-vocab", "-L", "en", "-f", "terms", "subjects.tsv")
    annif(folder, *command, "train", "terms", "first.tsv")
    before = annif(folder, *command, "suggest", "-l", "3", "terms", text=rows[500][0])
    annif(folder, *command, "learn", "terms", "next.tsv")
    after = annif(folder, *command, "suggest", "-l", "3", "terms", text=rows[500][0])
    own = rows[500][1].split()
    assert len(before.splitlines()) == 3 and not any(uri in before for uri in own)
    assert any(uri in after for uri in own)
    figures = annif(folder, *command, "eval", "terms", "asked.tsv")
    split = [(text, [u.strip("<>") for u in uris.split()]) for text, uris in rows]
    found = next(line.split()[-1] for line in figures.splitlines() if line.startswith("F1@5"))
    assert float(found) == pytest.approx(f1_at_5(split[:600], split[600:]), abs=2e-3)
