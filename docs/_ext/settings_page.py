"""The page of settings in the reference, from the table that estimators and commands use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, get_args

from public_names import kept

import kesler
from kesler.settings.codec import ESTIMATORS
from kesler.settings.table import SETTINGS, Group, Setting

if TYPE_CHECKING:
    from sphinx.application import Sphinx

MEMBERS = {
    "each": "each member",
    "weights": "members with weights",
    "gradients": "members that step along gradients",
    "alone": "makes a single learner",
    "refused": "is refused",
    "estimator": "the estimator",
}

HEAD = """\
# Settings

Every parameter of the online estimators, from the one table that signatures, files, journals and
the command line share. "auto" is the value of a setting that is not chosen: it follows from the
rows and the other settings, and `resolved_` says what is in use. The last column says what a
setting that is given does where the default is an ensemble.
"""

TABLE = """
| setting | default | option | what it is | estimators | with an ensemble |
|---|---|---|---|---|---|
"""


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the page before Sphinx looks for it."""
    app.connect("config-inited", lambda app, config: write(Path(app.srcdir) / "reference"))
    return {"parallel_read_safe": True}


def write(folder: Path) -> None:
    """Write the page."""
    kept(folder / "settings.md", HEAD + "".join(map(section, get_args(Group))))


def section(group: str) -> str:
    """Return the heading and the table of the settings of a group."""
    lines = [line_of(each) for each in SETTINGS.values() if each.group == group]
    return f"\n## {group.capitalize()}\n{TABLE}{''.join(lines)}"


def line_of(setting: Setting) -> str:
    """Return the line of a setting."""
    option = f"`{setting.option}`" if setting.read is not None else ""
    default = f"`{setting.default!r}`"
    cells = [f"`{setting.name}`", default, option, setting.summary, owners(setting.name)]
    return f"| {' | '.join([*cells, MEMBERS[setting.members]])} |\n".replace("'", '"')


def owners(name: str) -> str:
    """Return the estimators that have a setting, "all" if each has."""
    found = [each for each in ESTIMATORS if name in getattr(kesler, each)().get_params(deep=False)]
    missing = [each for each in ESTIMATORS if each not in found]
    if not missing:
        return "all"
    return f"all but {', '.join(missing)}" if len(missing) < 4 else ", ".join(found)
