"""Every code block of the README and of the documentation runs as printed."""

import re

import pytest

import pages

NEED_A_SERVER = {"docs/guides/mail.md"}  # which tests/test_mail_cli.py runs
WITH_CODE = [
    p
    for p in pages.pages()
    if any(b.language in ("python", "console") for b in pages.blocks(p))
    and str(p.relative_to(pages.ROOT)) not in NEED_A_SERVER
]
LANGUAGES = {
    "python",
    "console",
    "text",
    "sh",
    "c",
    "json",
    "toml",
    "yaml",
    "csv",
    "ini",
    "nginx",
    "math",
}


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(pages.ROOT)))
def test_the_blocks_of_a_page_run_as_printed(page, monkeypatch):
    monkeypatch.delenv("KESLER_DATA", raising=False)
    found = list(pages.faults(page))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("page", pages.pages(), ids=lambda page: str(page.relative_to(pages.ROOT)))
def test_no_block_escapes_by_its_language(page):
    plain = {b.language for b in pages.blocks(page) if not b.language.startswith("{")}
    assert plain <= LANGUAGES


@pytest.mark.parametrize("page", pages.pages(), ids=lambda page: str(page.relative_to(pages.ROOT)))
def test_a_page_holds_its_code(page):
    assert not any(block.language == "{literalinclude}" for block in pages.blocks(page))


@pytest.mark.parametrize("page", pages.pages(), ids=lambda page: str(page.relative_to(pages.ROOT)))
def test_what_is_not_run_needs_a_network_or_make(page):
    for block in pages.blocks(page):
        if block.language == "sh":
            commands = re.findall(r"^(?!#)(\S+)", block.text, re.M)
            assert set(commands) <= {
                "pip",
                "python",
                "git",
                "make",
                "cd",
                "sudo",
                "vw",
                "docker",
            }, block


def write(folder, text):
    page = folder / "page.md"
    page.write_text(text)
    return page


@pytest.fixture
def faults_of(tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    return lambda text: list(pages.faults(write(tmp_path, text)))


def test_a_wrong_output_is_a_fault(faults_of):
    page = "```python\nprint(1)\n```\n\n```text\n{}\n```\n"
    assert not faults_of(page.format("1"))
    assert len(faults_of(page.format("2"))) == 1


def test_an_output_that_is_not_shown_is_a_fault(faults_of):
    assert len(faults_of("```python\nprint(1)\n```\n\nProse.\n\n```text\n1\n```\n")) == 1


def test_a_block_that_fails_is_a_fault(faults_of):
    assert "ZeroDivisionError" in faults_of("```python\n1 / 0\n```\n")[0]


def test_a_command_that_prints_something_else_is_a_fault(faults_of):
    assert not faults_of("```console\n$ echo one\none\n$ echo two\n...\n```\n")
    assert len(faults_of("```console\n$ echo one\ntwo\n```\n")) == 1


def test_commands_find_the_programs_in_c(faults_of):
    page = "```c\n/* main.c */\nint main;\n```\n\n```console\n$ tail -n 1 main.c\nint main;\n```\n"
    assert not faults_of(page)
    assert "name the file" in faults_of(page.replace("/* main.c */\n", ""))[0]


def test_a_command_over_two_lines_is_one_command():
    assert pages.commands("$ echo a \\\n  b\na b\n") == [("echo a \\\n  b", "a b\n")]


def test_the_readme_has_at_most_a_thousand_words():
    assert len((pages.ROOT / "README.md").read_text("utf-8").split()) <= 1000
