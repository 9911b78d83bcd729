"""export: a fitted classifier written as a Python module, as C source or as ONNX."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal, get_args

from kesler.errors import KeslerError
from kesler.sharing.exports.c_source import c_header, c_source
from kesler.sharing.exports.predictor import CompactPredictor
from kesler.sharing.exports.python_module import identifier, python_source

Precision = Literal["double", "single"]
SUFFIXES = (".py", ".c", ".onnx")


def export(
    model: Any,
    path: str | os.PathLike[str],
    *,
    precision: Precision = "double",
    name: str | None = None,
    header: bool = False,
) -> None:
    """Write a fitted ShareBoostClassifier as a predictor that runs without Kesler.

    - ``.py``: a module that needs NumPy only, with `predict`, `decision_function` and `scores`.
    - ``.c``: C99 without dependency or allocation, with ``NAME_predict``, which returns the number
      of the class in ``NAME_classes``, and ``NAME_scores``; it reads the chosen features only.
    - ``.onnx``: standard operators only, from ``X`` to ``label`` and ``scores``.

    Parameters
    ----------
    model : ShareBoostClassifier
        Fitted; `model.at(n)` for fewer features.
    path : str or path
        Where to; the suffix says what. A file there is replaced.
    precision : {'double', 'single'}, default 'double'
        Of the numbers that C and ONNX take and compute in. ``'double'`` gives the estimator's own
        scores to rounding, but for responses of templates in ONNX, whose convolutions are single.
        ``'single'`` halves the tables and suits processors without double precision; instances
        whose best classes score nearly the same may then be predicted otherwise. Stumps are
        rounded such that they decide alike on all single numbers.
    name : str, optional
        What the names in C and the graph of ONNX begin with; by default the name of the file.
    header : bool, default False
        If True, the declarations of C are written beside ``.c`` as ``.h``.

    Raises
    ------
    NotFittedError
        If the model is not fitted.
    KeslerError
        If the suffix is another, an option does not go with it, the dictionary does not say how
        its candidates are computed, or onnx is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kesler import ShareBoostClassifier, export
    >>> from kesler.datasets import load_pendigits
    >>> pens = load_pendigits()
    >>> model = ShareBoostClassifier(6).fit(pens.X[:500] / 50 - 1, pens.y[:500])
    >>> path = Path(tempfile.mkdtemp(), "pens.c")
    >>> export(model, path)
    >>> print(path.read_text().splitlines()[-10])
    int pens_predict(const double *x)
    """
    path = Path(path)
    suffix = path.suffix.lower()
    require_exportable(path)
    _require_fit(suffix, precision, name, header)
    predictor = CompactPredictor.of(model)
    name = identifier(path.stem if name is None else name)
    single = precision == "single"
    if suffix == ".py":
        _write(path, python_source(predictor).encode())
    elif suffix == ".onnx":
        from kesler.sharing.exports.onnx_graph import onnx_model

        _write(path, onnx_model(predictor, name, single).SerializeToString())
    else:
        declared = path.with_suffix(".h") if header else None
        included = None if declared is None else declared.name
        _write(path, c_source(predictor, name, single, included).encode())
        if declared is not None:
            _write(declared, c_header(predictor, name, single).encode())


class Exportable:
    """The part of an estimator that says what its predictions cost, and writes them down."""

    @property
    def cost_(self) -> int:
        """Multiply-accumulates per instance, at most, that a prediction costs."""
        return CompactPredictor.of(self).cost

    def export(self, path: str | os.PathLike[str], **options: Any) -> None:
        """Write a predictor that runs without Kesler: see :func:`kesler.export`."""
        export(self, path, **options)


def require_exportable(path: str | os.PathLike[str]) -> None:
    """Raise a sentence if a suffix says nothing, or onnx is missing."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise KeslerError(
            f"{path} does not say what to export: let it end in {', '.join(SUFFIXES[:-1])} or "
            f"{SUFFIXES[-1]}"
        )
    if suffix == ".onnx":
        try:
            import onnx  # noqa: F401
        except ImportError as error:
            raise KeslerError(
                "exporting to ONNX needs onnx: install it with pip install 'kesler[onnx]'"
            ) from error


def _require_fit(suffix: str, precision: str, name: str | None, header: bool) -> None:
    if precision not in get_args(Precision):
        raise KeslerError(f"precision={precision!r}: choose 'double' or 'single'")
    if suffix == ".py" and (precision != "double" or name is not None):
        raise KeslerError(
            "a Python module computes in double precision and bears the name of its file: leave "
            "precision and name out"
        )
    if header and suffix != ".c":
        raise KeslerError(f"header=True goes with .c, not with {suffix}: leave it out")


def _write(path: Path, contents: bytes) -> None:
    try:
        path.write_bytes(contents)
    except OSError as error:
        raise KeslerError(f"{path} cannot be written ({error.strerror})") from error
