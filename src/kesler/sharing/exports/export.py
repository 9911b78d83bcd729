"""export: write a fitted classifier as a Python module, C source or ONNX."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal, get_args

from kesler.errors import KeslerError
from kesler.sharing.exports.c_source import c_header, c_source, write_c
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

    - ``.py``: a module that needs only NumPy, with `predict`, `decision_function` and `scores`.
    - ``.c``: C99 without dependencies or allocations, with ``NAME_predict``, which returns the
      index of the class in ``NAME_classes``, and ``NAME_scores``; it reads only the chosen
      features.
    - ``.onnx``: a graph of standard operators with input ``X``, of the precision of the rows of
      `fit`, and outputs ``label`` and ``scores``.

    Parameters
    ----------
    model : ShareBoostClassifier or MixedNormClassifier
        A fitted model; use `model.at(n)` for fewer features.
    path : str or path
        The file to write; its suffix determines the format. An existing file is replaced.
    precision : {'double', 'single'}, default 'double'
        The precision of computations in C and ONNX, and of inputs in C; in ONNX, inputs have single
        precision also if the rows of `fit` had. ``'double'`` gives the estimator's scores up to
        rounding, except for templates in ONNX, whose convolutions are in single precision.
        ``'single'`` halves the tables and suits processors without double precision; predictions
        may differ for instances whose best classes have nearly equal scores. Thresholds of stumps
        are rounded such that decisions are the same for all single-precision inputs.
    name : str, optional
        The prefix of the names in C, and the name of the graph in ONNX; by default the stem of the
        file name. Runs of characters other than ASCII letters and digits become ``_``, and
        ``model_`` is put before what does not begin with a letter then: "2nd-try" becomes
        ``model_2nd_try``.
    header : bool, default False
        If True, write the declarations in C to a file with the suffix ``.h``, whose name must not
        contain quotes, backslashes or line ends.

    Raises
    ------
    NotFittedError
        If the model is not fitted.
    KeslerError
        If the model is of another class, the suffix is unknown, an option does not apply to the
        format, the dictionary does not define steps, onnx is not installed, or UTF-8 or a text in C
        cannot represent a label, or ``#include`` cannot name the header.

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
    from kesler.data.whole_file import write_whole

    path = Path(path)
    suffix = path.suffix.lower()
    require_exportable(path)
    _require_fit(suffix, precision, name, header)
    predictor = CompactPredictor.of(model)
    name = identifier(path.stem if name is None else name)
    single = precision == "single"
    if suffix == ".py":
        write_whole(path, python_source(predictor).encode())
    elif suffix == ".onnx":
        from kesler.sharing.exports.onnx_graph import onnx_model

        write_whole(path, onnx_model(predictor, name, single).SerializeToString())
    else:
        own = predictor, name, single
        write_c(
            path,
            header=header,
            source=lambda included: c_source(*own, included),
            declared=lambda: c_header(*own),
        )


def require_exportable(path: str | os.PathLike[str]) -> None:
    """Raise if the suffix of a path is unknown, or onnx is not installed."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise KeslerError(
            f"the suffix of {path} is not a format of exports: use {', '.join(SUFFIXES[:-1])} or "
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
            "a Python module computes in double precision and has the name of its file: leave "
            "precision and name out"
        )
    if header and suffix != ".c":
        raise KeslerError(f"header=True applies to .c only, not to {suffix}: leave it out")
