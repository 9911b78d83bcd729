"""Whether this copy of the compiled package is interpreted by Python instead of compiled."""

from __future__ import annotations

from numba import config

from kesler.compiled.jit.interpreted import COPY

IS_COPY = __name__.startswith(f"{COPY}.")
"""Whether this module belongs to the copy whose functions stand in for kernels not yet compiled."""

IS_INTERPRETED = bool(config.DISABLE_JIT) or IS_COPY
"""Whether decorators return functions as they are."""
