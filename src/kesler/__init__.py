"""Kesler: online multiclass learning, where new classes may appear at any time.

A learner combines hypotheses, which classes may share (:mod:`kesler.hypotheses`), feature maps
(:mod:`kesler.maps`), an update rule (:mod:`kesler.updates`), which computes the steps along the
constraints of a trial, a link (:mod:`kesler.links`) and a preconditioner
(:mod:`kesler.preconditioners`).
"""

__version__ = "0.1.0"


# The names and their modules stand in `__init__.pyi`. They are imported on first use, so that
# `import kesler` stays cheap; so is what reads the stub, which takes as long as all of
# `kesler mail deliver`.
def __getattr__(name: str) -> object:
    """Return a public name, and define what `attach_stub` returns in place of this function."""
    from pkgutil import iter_modules

    from lazy_loader import attach_stub

    find, listed, names = attach_stub(__name__, __file__)
    public = sorted({*names} - {module.name for module in iter_modules(__path__)})
    globals().update(__getattr__=find, __dir__=listed, __all__=public)
    return public if name == "__all__" else find(name)


def __dir__() -> list[str]:
    """Return the public names."""
    __getattr__("__all__")
    return globals()["__dir__"]()
