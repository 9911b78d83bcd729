"""Distributed learning: learners on partitions of rows on Dask workers."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kesler.distributed.batch import fit
    from kesler.distributed.parameter_mixing import Epoch, learn
    from kesler.distributed.partitions import Partitions

# Names that are imported on first use, and the modules that define them.
_MODULES = {
    "Epoch": "kesler.distributed.parameter_mixing",
    "Partitions": "kesler.distributed.partitions",
    "fit": "kesler.distributed.batch",
    "learn": "kesler.distributed.parameter_mixing",
}

__all__ = ["Epoch", "Partitions", "fit", "learn"]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'kesler.distributed' has no attribute {name!r}")
