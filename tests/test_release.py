"""The files of a release agree: one version, its entry, lower bounds; workflows are YAML."""

import re
import tomllib
from pathlib import Path

import pytest

import kesler

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[1]
VERSION = kesler.__version__
YAML = [*ROOT.glob(".github/**/*.yml"), ROOT / "conda" / "recipe.yaml", ROOT / "CITATION.cff"]
PIN = re.compile(r"^([\w.-]+/[\w./-]+)@v\d+\.\d+\.\d+$|^\./")
"""An action of an exact version, or a workflow of this repository."""


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def read(path: Path) -> dict:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def release_date() -> str | None:
    """Return the date of this version in the changelog, None before its release."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    entry = re.search(rf"^## \[{re.escape(VERSION)}\] - (.+)$", text, re.MULTILINE)
    assert entry, f"CHANGELOG.md has no entry for {VERSION}"
    date = entry[1].strip()
    assert date == "not yet released" or re.fullmatch(r"\d{4}-\d\d-\d\d", date)
    return None if date == "not yet released" else date


def test_the_version_has_one_place():
    said = project()
    assert "version" in said["project"]["dynamic"] and "version" not in said["project"]
    assert said["tool"]["hatch"]["version"]["path"] == "src/kesler/__init__.py"


def test_changelog_citation_and_recipe_have_the_version():
    citation, recipe = read(ROOT / "CITATION.cff"), read(ROOT / "conda" / "recipe.yaml")
    assert citation["version"] == recipe["context"]["version"] == VERSION
    assert str(citation.get("date-released") or None) == str(release_date())


@pytest.mark.parametrize("path", YAML, ids=lambda path: path.name)
def test_files_are_valid_yaml(path):
    assert isinstance(read(path), dict)


@pytest.mark.parametrize(
    "path", [*ROOT.glob(".github/workflows/*.yml")], ids=lambda path: path.name
)
def test_actions_have_exact_versions_and_jobs_the_least_rights(path):
    workflow = read(path)
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        used = [job.get("uses"), *(step.get("uses") for step in job.get("steps", []))]
        assert [each for each in used if each and not PIN.match(each)] == []


def names_of(requirements: list[str], sign: str) -> dict[str, str]:
    """Return versions after a sign, by the names before it."""
    pairs = (re.match(rf"([\w-]+)\s*{sign}([\w.]+)", each) for each in requirements)
    return {pair[1]: pair[2] for pair in pairs if pair}


def test_the_oldest_versions_are_the_lower_bounds():
    lines = (ROOT / "wheels" / "oldest.txt").read_text(encoding="utf-8").splitlines()
    oldest = names_of(lines, "==")
    for name, bound in names_of(project()["project"]["dependencies"], ">=").items():
        assert oldest[name].removesuffix(".0").startswith(bound.removesuffix(".0")), name


def test_the_recipe_asks_for_the_same_versions():
    requirements = read(ROOT / "conda" / "recipe.yaml")["requirements"]["run"]
    recipe = {name.removeprefix("python-"): v for name, v in names_of(requirements, ">=").items()}
    bounds = names_of(project()["project"]["dependencies"], ">=")
    assert {name: recipe[name] for name in bounds} == bounds
