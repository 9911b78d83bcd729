"""Links between the README, the pages of the documentation and the files of the repository hold."""

import importlib
import re
import sys

import pytest

import pages

sys.path.insert(0, str(pages.ROOT / "docs/_ext"))
results_pages = importlib.import_module("results_pages")

LINK = re.compile(r"\[[^\]]*\]\((?!https?:|mailto:|#)([^)\s#]+)(?:#[^)]*)?\)")
DOC = re.compile(r"\{doc\}`(?:[^`<]*<)?([^`>]+)>?`")
TREE = re.compile(r"```\{toctree\}(.*?)```", re.S)
OTHERS = ["CONTRIBUTING.md", "CHANGELOG.md", "ROADMAP.md", "SECURITY.md"]
ALL = [*pages.pages(), *(p for p in map(pages.ROOT.joinpath, OTHERS) if p.exists())]
MADE = ("examples/", "reference/", *(f"results/{name}" for name in results_pages.sources()))
"""Folders and pages of the documentation that are made when it is built."""


def dead(page):
    """Yield the links of a page that lead nowhere."""
    text = page.read_text("utf-8")
    for target in LINK.findall(text):
        if not (page.parent / target).exists() and not is_page(page, target):
            yield target
    for target in DOC.findall(text):
        if not is_page(page, target):
            yield target
    for tree in TREE.findall(text):
        entries = [
            e.strip() for e in tree.splitlines() if e.strip() and not e.strip().startswith(":")
        ]
        yield from (e for e in entries if "*" not in e and not is_page(page, e))


def is_page(page, target):
    """Return whether a name of a page, as Sphinx reads it, is one."""
    docs = pages.ROOT / "docs"
    base = docs / target.lstrip("/") if target.startswith("/") else page.parent / target
    made = docs in base.parents and str(base.resolve().relative_to(docs)).startswith(MADE)
    return made or any(base.with_name(base.name + end).exists() for end in (".md", ".rst"))


@pytest.mark.parametrize("page", ALL, ids=lambda page: str(page.relative_to(pages.ROOT)))
def test_no_link_is_dead(page):
    assert not list(dead(page))


@pytest.mark.parametrize("link", ["[a](gone.md)", "{doc}`gone`", "```{toctree}\ngone\n```"])
def test_a_dead_link_is_found(link, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"# Title\n\n{link}\n")
    assert list(dead(page)) == ["gone.md" if "(" in link else "gone"]
