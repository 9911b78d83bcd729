"""Give a wheel the loops of one version of Python on one platform, and the tag that says so.

Hatch calls this when it builds a wheel. Without compiled loops in src/kesler/compiled/shipped/, the
wheel is good for every platform, and compiles them where it is used.
"""

from __future__ import annotations

import platform
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SHIPPED = "src/kesler/compiled/shipped"
MANYLINUX = "manylinux_2_17"
"""The loops call no library but Python, Numba and the C library's mathematics."""


class TagWheel(BuildHookInterface):  # type: ignore[misc, type-arg]
    """Choose the folder of compiled loops, and the tag."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Change what Hatch is about to build."""
        if version == "editable":
            return
        folders = shipped_folders(Path(self.root))
        if folders:
            build_data["artifacts"] += [f"{SHIPPED}/{folder}/" for folder in folders]
            build_data["pure_python"] = False
            build_data["tag"] = tag()


def shipped_folders(root: Path) -> list[str]:
    """Return the folders of loops for this Python and platform."""
    name = f"{sys.implementation.cache_tag}-*-{sys.platform}-{platform.machine()}"
    return sorted(folder.name for folder in (root / SHIPPED).glob(name))


def tag() -> str:
    """Return the tag of a wheel for this Python and platform."""
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    system = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return f"{python}-{python}-{system.replace('linux', MANYLINUX, 1)}"
