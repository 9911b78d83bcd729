"""kesler explain: the words, pairs and cells that speak for the predicted class of each row."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from typing import Any

from kesler.cli.methods import loaded
from kesler.cli.model_input import blocks_for, opened_for
from kesler.errors import KeslerError
from kesler.learner.explanations import Explanation
from kesler.online.blocks import explain_rows
from kesler.online.classifier import OnlineClassifier


def run(options: Namespace) -> None:
    """Print a table, or a JSON object, for each row."""
    model = loaded(options)
    label = _known(model, "--class", options.explained)
    rival = _known(model, "--rival", options.rival)
    if rival is not None and rival == label:
        raise KeslerError(f"--rival {rival} is the class of --class: name another one")
    stream = opened_for(model, options, require_labels=False)
    write = _json_line if options.json_lines else str
    ending = "\n" if options.json_lines else "\n\n"
    for block in blocks_for(model, stream, options):
        asked = model, block.rows, label, rival, options.n
        for why in explain_rows(*asked, features=options.features):
            sys.stdout.write(write(why) + ending)
        sys.stdout.flush()


def _known(model: OnlineClassifier, option: str, text: str | None) -> Any:
    """Return the label that is written like this; None if none is given."""
    if text is None:
        return None
    labels = model.classes_by_code_.tolist()
    found = [label for label in labels if str(label) == text]
    if not found:
        some = ", ".join(map(str, labels[:5])) + (", ..." if len(labels) > 5 else "")
        raise KeslerError(f"{option} {text} is not a class of the model: choose of {some}")
    return found[0]


def _json_line(why: Explanation) -> str:
    return json.dumps(why.to_dict(), ensure_ascii=False)
