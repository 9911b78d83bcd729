"""Kesler: online multiclass learning, where new classes may appear at any time.

A learner combines hypotheses, which classes may share (:mod:`kesler.hypotheses`), feature maps
(:mod:`kesler.maps`), an update rule (:mod:`kesler.updates`), which computes the steps along the
constraints of a trial, a link (:mod:`kesler.links`) and a preconditioner
(:mod:`kesler.preconditioners`).
"""

from pkgutil import iter_modules

from lazy_loader import attach_stub

__version__ = "0.1.0"

# The names and their modules stand in `__init__.pyi`. They are imported on first use, so that
# `import kesler` stays cheap.
__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
__all__ = sorted({*__all__} - {module.name for module in iter_modules(__path__)})
