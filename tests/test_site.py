"""What the site says: pages of results, install commands, words that are searched, migrations."""

import importlib
import re
import sys
import tomllib

import pytest

import pages

DOCS = pages.ROOT / "docs"
sys.path.insert(0, str(DOCS / "_ext"))
results_pages = importlib.import_module("results_pages")
GUIDES = [*DOCS.glob("guides/*.md"), *DOCS.glob("start/*.md"), *DOCS.glob("theory/*.md")]
PROJECT = tomllib.loads((pages.ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def named(page):
    return str(page.relative_to(pages.ROOT))


# ---- pages of results ---------------------------------------------------------------------------


def test_every_file_of_figures_becomes_a_page(tmp_path):
    results_pages.write(tmp_path)
    for folder in ("benchmarks", "papers"):
        for file in (pages.ROOT / folder / "results").glob("*.md"):
            made = tmp_path / folder / file.name
            assert made.read_text("utf-8") == file.read_text("utf-8")
            for picture in re.findall(r"\]\(([^)]+\.png)\)", made.read_text("utf-8")):
                assert (made.parent / picture).exists()
    races = (tmp_path / "benchmarks/races.md").read_text("utf-8")
    assert "](results/)" not in races and "## Single events" in races


@pytest.mark.parametrize("page", GUIDES, ids=named)
def test_no_page_names_a_file_that_its_reader_has_not(page):
    found = re.findall(r"`(?:python )?(?:benchmarks|papers)/[^`]*`", page.read_text("utf-8"))
    assert not found


@pytest.mark.parametrize("page", [*GUIDES, DOCS / "results/index.md"], ids=named)
def test_anchors_in_pages_of_results_are_headings(page):
    races = results_pages.sources()["benchmarks/races"].read_text("utf-8")
    headings = re.findall(r"^##+ (.+)$", races, re.M)
    slugs = {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}
    assert {*re.findall(r"benchmarks/races\.md#([^)]+)\)", page.read_text("utf-8"))} <= slugs


# ---- installation -------------------------------------------------------------------------------


@pytest.mark.parametrize("page", pages.pages(), ids=named)
def test_install_commands_install_what_there_is(page):
    """The package is on no index: a clone is installed, or a wheel made of it."""
    for arguments in re.findall(r"pip install ([^`\n#]+)", page.read_text("utf-8")):
        found = [each.strip("'\"") for each in arguments.split() if not each.startswith("-")]
        assert found[0].startswith((".", "dist/")), arguments
        extras = re.findall(r"\[([\w,]+)\]", found[0])
        assert {*",".join(extras).split(",")} - {""} <= {*PROJECT["optional-dependencies"]}


def test_the_first_page_says_how_to_install():
    first = (DOCS / "index.md").read_text("utf-8")
    assert "pip install ." in first.partition("## ")[0]


# ---- search -------------------------------------------------------------------------------------

SEARCHED = {
    "imbalance": "guides/trees-and-costs",
    "docker": "service/reverse-proxy",
    "IMAP": "guides/mail",
    "confidence": "guides/uncertainty",
    "late labels": "guides/uncertainty",
    "batch or stream": "start/index",
}
"""What people type into the search of the site, and the page that tells it."""


@pytest.mark.parametrize("words", SEARCHED)
def test_what_is_searched_is_in_a_heading(words):
    """The search of the site ranks headings before text."""
    text = (DOCS / f"{SEARCHED[words]}.md").read_text("utf-8")
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    assert any(re.search(rf"\b{words}\b", each, re.I) for each in headings), headings


# ---- citation -----------------------------------------------------------------------------------


def test_the_citation_is_valid():
    cffconvert = pytest.importorskip("cffconvert", reason="needs cffconvert")
    text = (pages.ROOT / "CITATION.cff").read_text("utf-8")
    cffconvert.Citation(text).validate()


# ---- coming from elsewhere ----------------------------------------------------------------------


def test_the_calls_of_the_page_run_on_fasttext_itself(tmp_path, monkeypatch):
    """Those of training, testing and saving; a list of texts has the same form of answers."""
    pytest.importorskip("fasttext", reason="needs fasttext-wheel, fastText's package")
    monkeypatch.chdir(tmp_path)
    (block, *_) = pages.blocks(DOCS / "guides/from-fasttext.md")
    calls, _, _ = block.text.partition("labels, probabilities")
    space = {}
    for code in (calls, calls.replace("from kesler import fasttext", "import fasttext")):
        exec(code, space)
        ((first, second),), probabilities = space["model"].predict(["my invoice is wrong"], k=2)
        assert {first, second} == {"__label__billing", "__label__support"}
        assert len(probabilities[0]) == 2
        n_rows, precision, recall = space["model"].test("train.txt")
        assert n_rows == 80 and precision == recall
        space["model"].save_model("saved.bin")


def test_the_files_of_the_page_are_those_of_vowpal_wabbit(tmp_path, monkeypatch):
    package = pytest.importorskip("vowpalwabbit", reason="needs vowpalwabbit")
    monkeypatch.chdir(tmp_path)
    for block in pages.blocks(DOCS / "guides/from-vowpal-wabbit.md"):
        if block.language == "python":
            exec(block.text, {})
    for path in ("rows.vw", "tagged.vw"):
        model = package.Workspace("--oaa 3 --quiet")
        for line in (tmp_path / path).read_text().splitlines():
            model.learn(line)
        assert model.predict("| a") in (1, 2, 3)
