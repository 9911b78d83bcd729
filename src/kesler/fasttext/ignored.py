"""The arguments of fastText that mean nothing here, with what there is instead."""

from __future__ import annotations

from kesler.errors import MismatchWarning, warn

RATE = "the default needs no step size; a rule of OnlineClassifier(update=...) has one, eta or C"
CLASSES = "the default learns thousands of classes with a list of candidates for each row"
OF_TRAINING = {
    **dict.fromkeys(["lr", "lrUpdateRate"], RATE),
    "dim": "texts have no hidden vectors; the weights of each word are learnt for each label",
    **dict.fromkeys(["ws", "t", "model"], "it is of word vectors, which are not learnt here"),
    **dict.fromkeys(
        ["minCount", "minCountLabel"], "rare words and labels are learnt from their first row on"
    ),
    **dict.fromkeys(["neg"], CLASSES),
    "epoch": "label sets are learnt in as many passes as `fit` makes",
    "bucket": "features are stored by name, without collisions",
    "minn": "the longest run is missing; give maxn beside it",
    "thread": "a model learns in one thread; kesler.distributed.learn takes several machines",
    "verbose": "kesler.show_progress(True) prints the progress",
    **dict.fromkeys(
        [
            "autotuneValidationFile",
            "autotuneMetric",
            "autotunePredictions",
            "autotuneDuration",
            "autotuneModelSize",
        ],
        "the default needs no tuning",
    ),
}
"""The arguments of `train_supervised` in fastText that mean nothing here."""

OF_QUANTIZE = {
    **dict.fromkeys(
        ["input", "retrain", "epoch", "lr"],
        "the weights that were learnt are kept, not learnt again",
    ),
    **dict.fromkeys(
        ["qout", "qnorm", "dsub"], "weights are rounded one by one; give bits, or max_bytes"
    ),
    "thread": "it takes one thread, for seconds",
    "verbose": "nothing is printed",
}
"""The arguments of `quantize` in fastText that mean nothing here."""


def warn_of(name: str, known: dict[str, str], function: str) -> None:
    """Warn of an argument without effect; raise TypeError if it is none of fastText's."""
    if name not in known:
        raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
    warn(f"{name} has no effect: {known[name]}", MismatchWarning)
