"""Training with fastText's arguments, and loading."""

from __future__ import annotations

import os
import re
from typing import Any

from kesler.errors import KeslerError
from kesler.fasttext.binary import is_fasttext
from kesler.fasttext.features import END
from kesler.fasttext.ignored import OF_TRAINING, warn_of
from kesler.fasttext.model import Model, read_lines
from kesler.readers.fasttext import PREFIX, WORD

LOSSES = "softmax", "hs", "ns", "ova"


def train_supervised(
    input: str | os.PathLike[str],
    *,
    epoch: int | None = None,
    wordNgrams: int | None = None,
    minn: int | None = None,
    maxn: int | None = None,
    loss: str | None = None,
    label: str = PREFIX,
    pretrainedVectors: str | os.PathLike[str] | None = None,
    seed: int | None = None,
    **others: Any,
) -> Model:
    r"""Learn a classifier of texts from a file in fastText's format.

    The classifier is an :class:`~kesler.OnlineClassifier`, or an
    :class:`~kesler.OnlineMultilabelClassifier` if a line has several labels, with its defaults.

    Parameters
    ----------
    input : str or path
        A file whose lines are a text and its labels, such as ``__label__spam win cash now``;
        compressed or not. All lines are held in memory. Lines without labels, or that
        cannot be read, are left out, with a warning.
    epoch : int, 1 or more, optional
        The number of passes over the rows. More passes take longer, fit rare classes better, and
        make probabilities too high, which are calibrated by predictions of the first pass.
        By default, and always for label sets, as many as `fit` makes.
    wordNgrams : int from 1 to 3, optional
        The longest run of words that is a feature. By default 2 for short texts and 1 for others.
    minn, maxn : int from 1 to 8, optional
        The lengths of the runs of characters within words that are features, with the spaces
        around a word; 0 for none. Longer ones take more memory. `minn` without `maxn` has no
        effect, and warns. By default short texts have runs of 4 characters across words,
        names shorter ones as well, and others none.
    loss : "softmax", "hs", "ns" or "ova", optional
        "ova" learns label sets even if each line has one label; the others have no effect.
    label : str, default "__label__"
        What labels begin with.
    pretrainedVectors : str or path, optional
        A file of word vectors (.vec), which are learnt beside the words.
    seed : int, optional
        Shuffles the rows of each pass with this seed. By default they are learnt in their order.
    **others
        The other arguments of fastText have no effect, and warn.

    Returns
    -------
    Model
        The classifier, with the methods of fastText.

    Raises
    ------
    KeslerError
        If the file cannot be read or has no label, or a value is none of those above.
    TypeError
        If an argument is none of fastText's.

    Warns
    -----
    MismatchWarning
        If an argument has no effect, with what there is instead.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kesler import fasttext
    >>> path = Path(tempfile.mkdtemp(), "train.txt")
    >>> _ = path.write_text("__label__spam win cash\n__label__work see you at work\n")
    >>> fasttext.train_supervised(path).predict("cash", k=2)[0]
    ('__label__spam', '__label__work')
    """
    from kesler.fasttext.classifier import Classifier

    for name in others:
        warn_of(name, OF_TRAINING, "train_supervised")
    if loss is not None and loss not in LOSSES:
        raise KeslerError(f"loss={loss!r}: choose one of {', '.join(LOSSES)}")
    if minn and not maxn:
        warn_of("minn", OF_TRAINING, "train_supervised")
    lines = read_lines(input, label)
    has_sets = loss == "ova" or any(len(each) > 1 for each in lines.labels)
    settings = {
        "columns": _columns(wordNgrams, minn, maxn),
        "epochs": epoch,
        "vectors": pretrainedVectors,
        "random_state": seed,
        "shuffle": None if seed is None else True,
    }
    if has_sets and settings.pop("epochs") is not None:
        warn_of("epoch", OF_TRAINING, "train_supervised")
    given = {name: each for name, each in settings.items() if each is not None}
    found = Classifier.new(has_sets, given, label)
    found.fit(lines.texts, lines.labels)
    return Model(found)


def load_model(path: str | os.PathLike[str]) -> Model:
    r"""Load a model of `Model.save_model`, or one that fastText has saved.

    Parameters
    ----------
    path : str or path
        A file of `save_model`, or a ``.bin`` or ``.ftz`` file of fastText, which predicts and does
        not learn.

    Returns
    -------
    Model
        The model.

    Raises
    ------
    KeslerError
        If the file is missing, damaged, or holds no classifier of texts.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kesler import fasttext
    >>> folder = Path(tempfile.mkdtemp())
    >>> lines = "__label__spam win cash\n__label__work see you at work\n"
    >>> _ = (folder / "train.txt").write_text(lines)
    >>> fasttext.train_supervised(folder / "train.txt").save_model(folder / "mail.model")
    >>> fasttext.load_model(folder / "mail.model").predict("cash")[0]
    ('__label__spam',)
    """
    if not os.path.isfile(path):
        raise KeslerError(f"{os.fspath(path)} is no file: check the path")
    if is_fasttext(path):
        from kesler.fasttext.matrices import Matrices

        return Model(Matrices.read(path))
    from kesler.compact.layout import is_compact

    if is_compact(path):
        from kesler.fasttext.compact import Compact

        return Model(Compact.read(path))
    from kesler.fasttext.classifier import Classifier

    return Model(Classifier.read(path))


def tokenize(text: str) -> list[str]:
    """Return the words of a text as fastText finds them, between spaces.

    Parameters
    ----------
    text : str
        A text; the end of a line is the word ``</s>``.

    Examples
    --------
    >>> tokenize("Cannot log in?")
    ['Cannot', 'log', 'in?']
    """
    return [END if word == "\n" else word for word in re.findall(rf"{WORD.pattern}|\n", text)]


def _columns(ngrams: int | None, minn: int | None, maxn: int | None) -> Any:
    """Return the features of the column of texts, None if no argument says them."""
    if ngrams is None and not maxn:
        return None
    runs = {"subwords": (minn or 1, maxn)} if maxn else {}
    return {"text": {"kind": "text", "ngrams": 1 if ngrams is None else ngrams, **runs}}
