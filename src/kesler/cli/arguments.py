"""The arguments of the commands, and their help."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, RawDescriptionHelpFormatter

import kesler

INPUT = """\
INPUT is a file (svmlight, Vowpal Wabbit text, CSV or Parquet with --label, JSON
lines, .npz; .gz, .bz2 and .xz too), a directory of mail (a Maildir, or a tree of
folders or mbox files: the folder is the class, the Date header the order), a set
that Kesler knows (dataset:letter, dataset:pendigits and dataset:landsat come
with it), or - for standard input. Vowpal Wabbit's label-dependent features
(vw-ldf, a line for each class) are read as what sub-experts say of the classes:
for the hypotheses sub-experts and multi+sub-experts."""

EXIT = """\
exit codes: 0 done; 2 a sentence on standard error says what was wrong;
130 interrupted"""

COMPARE = f"""\
Run several methods side by side over one stream. Every method predicts each row
before it learns it; the first row of a class is no mistake. A line is printed at
each power of two: the trials so far, the classes known and, for each method, its
mistakes in % of the trials so far (error) and of those since the line above
(last). The methods learn in threads, as many at a time as there are cores.
rows/s counts the processor time that all of them together take to learn, in the
summary that of each one: not the time of reading, nor the first trial, which
loads the compiled code.

{INPUT}"""

COMPARE_EXAMPLES = f"""\
examples:
  kesler compare dataset:letter --plot letter.png
  kesler compare dataset:letter --update perceptron --bounds
  kesler compare ~/Maildir --C 0.01
  kesler compare tickets.csv --label queue --text subject,body
  kesler compare rows.svm --methods hybrid:pa1:0.01,hybrid:simproj:0.01

{EXIT}"""

LEARN = f"""\
Learn a stream with one method, print how well it did on rows that it had not
seen yet, and write the model.

{INPUT}"""

LEARN_EXAMPLES = f"""\
examples:
  kesler learn mail.jsonl --model mail.kesler --C 0.01
  kesler learn long.vw --model m.kesler --checkpoint 100000
  kesler learn long.vw --model m.kesler --checkpoint 100000 --resume

{EXIT}"""

PREDICT = f"""\
Print the class of each row, a line each. Rows need no labels. Without --format,
--label and --text, INPUT is read as that of the model was.

{INPUT}"""

PREDICT_EXAMPLES = f"""\
examples:
  kesler predict new.jsonl --model mail.kesler
  kesler predict new.jsonl --model mail.kesler --top 3
  cat new.jsonl | kesler predict - --model mail.kesler --scores --json-lines

{EXIT}"""

SHARE = f"""\
Choose few features that all classes share (ShareBoost), one after the other, and
print what each choice gave: the training loss, the gradient that made it the
choice and, with --valid or --holdout, the error on rows that had no part in it.
All rows are kept in memory.

{INPUT}"""

SHARE_EXAMPLES = f"""\
examples:
  kesler share dataset:pendigits --features 30 --holdout 0.2 --plot path.png
  kesler share rows.csv --label kind --dictionary stumps --export kinds.c
  kesler share train.svm --features 50 --valid test.svm --json path.json

{EXIT}"""

SHOW = """\
Print what a model file holds: the parts of the learner, what is done to rows
before it sees them, how far it has come, its features and classes."""

SHOW_EXAMPLES = f"""\
examples:
  kesler show mail.kesler
  kesler show mail.kesler --json

{EXIT}"""


def parser() -> ArgumentParser:
    """Return the parser of the whole command line."""
    purpose = str(kesler.__doc__).partition("\n")[0]
    root = ArgumentParser(
        prog="kesler", description=purpose, epilog=EXIT, formatter_class=RawDescriptionHelpFormatter
    )
    root.add_argument("--version", action="version", version=f"kesler {kesler.__version__}")
    commands = root.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, summary: str, description: str, examples: str) -> ArgumentParser:
        added: ArgumentParser = commands.add_parser(
            name,
            help=summary,
            description=description,
            epilog=examples,
            formatter_class=RawDescriptionHelpFormatter,
        )
        return added

    _compare(command("compare", "several methods over one stream", COMPARE, COMPARE_EXAMPLES))
    _learn(command("learn", "learn a stream and write the model", LEARN, LEARN_EXAMPLES))
    _predict(command("predict", "print the class of each row", PREDICT, PREDICT_EXAMPLES))
    _share(command("share", "few features that all classes share", SHARE, SHARE_EXAMPLES))
    _show(command("show", "print what a model file holds", SHOW, SHOW_EXAMPLES))
    return root


def _input(command: ArgumentParser) -> None:
    command.add_argument("input", metavar="INPUT", help="where the rows are; see above")


def _reading(command: ArgumentParser) -> None:
    add = command.add_argument_group("reading").add_argument
    add(
        "--format",
        metavar="NAME",
        help="svmlight, vw, vw-ldf, csv, parquet, jsonl, npz or mail; if not given, the name of "
        "INPUT or its first line tells",
    )
    add("--label", metavar="NAME", help="column or field of the labels (jsonl: label)")
    add(
        "--text",
        metavar="NAMES",
        help="columns or fields of text, separated by commas; others are then left out "
        "(jsonl: text)",
    )
    add(
        "--skip-bad",
        action="store_true",
        help="skip and count rows that cannot be read; if not given, the first one ends the run",
    )


def _compare(command: ArgumentParser) -> None:
    _input(command)
    command.add_argument(
        "--methods",
        default="multi,single,hybrid",
        metavar="LIST",
        help="separated by commas, each HYPOTHESES[:UPDATE[:C]], where HYPOTHESES is multi, "
        "single, hybrid, sub-experts or multi+sub-experts, or default alone: the learner of those "
        "who choose nothing (default: %(default)s)",
    )
    _learning(command)
    command.add_argument(
        "--bounds",
        action="store_true",
        help="say how many mistakes a theorem allows each method, beside those that it made, for "
        "the best competitor found in hindsight: keeps all rows in memory and goes through them "
        "some 40 times more",
    )
    command.add_argument(
        "--plot",
        metavar="FILE",
        help="draw the mistakes so far against trials (.png, .svg or .pdf; needs kesler[plots])",
    )
    _reading(command)


def _learn(command: ArgumentParser) -> None:
    _input(command)
    command.add_argument("--model", required=True, metavar="FILE", help="where the model is kept")
    command.add_argument(
        "--hypotheses",
        metavar="NAME",
        help="default, multi, single, hybrid (default where an update is named), sub-experts or "
        "multi+sub-experts",
    )
    _learning(command)
    command.add_argument(
        "--checkpoint", type=_positive, metavar="N", help="write the model every N rows, too"
    )
    command.add_argument(
        "--resume",
        action="store_true",
        help="go on with the model in FILE: where it stopped if it was stopped in the middle of "
        "INPUT, else with all of INPUT",
    )
    _reading(command)


def _learning(command: ArgumentParser) -> None:
    add = command.add_argument
    add(
        "--update",
        metavar="NAME",
        help="default, perceptron, margin-perceptron, pa, pa1, pa2, simperc, conproj, simproj, "
        "mira, hinge, softmax, logistic, ovr-squared, ovr-logistic, ovr-hinge, arow, scw1 or scw2, "
        "or bank for several learners side by side",
    )
    add(
        "--C",
        type=float,
        metavar="NUMBER",
        help="how far the update goes: its aggressiveness (default 1; smaller, 0.001 to 0.1, bears "
        "noise better), the margin of margin-perceptron (1) or the step size of hinge, softmax and "
        "logistic (0.1); perceptron and pa have none",
    )
    add(
        "--link",
        metavar="NAME",
        help="geometry of the update: linear (default), exponential, positive or p-norm",
    )
    add(
        "--metric",
        metavar="NAME",
        help="step size of each weight: auto (default: the rule's own, or euclidean), euclidean, "
        "adagrad, scale-free, scale-free-adagrad or confidence",
    )
    add(
        "--newcomers",
        choices=("wait", "learn", "virtual"),  # Newcomers, whose room would import NumPy
        help="what the first row of a class does: only make it known (wait, the default where an "
        "update is named), be learnt from (learn), or also begin where a virtual class stands "
        "(virtual)",
    )
    add(
        "--averaged",
        action="store_true",
        default=None,
        help="predict new rows by the mean of the weights after each row, which bears noise better "
        "(the table itself judges the last weights)",
    )
    add(
        "--map",
        metavar="NAME",
        help="feature map of single and hybrid: auto (default), product, product-mean, frequency, "
        "contrast, distance, difference or gaussian-ratio",
    )
    add(
        "--kernel",
        metavar="NAME",
        help="learn over a Mercer kernel: rbf, polynomial or linear",
    )
    add(
        "--sigma",
        type=float,
        metavar="NUMBER",
        help="variance of the rbf kernel, exp(-distance^2 / (2 sigma)) (default: 0.04 times the "
        "median squared distance between rows so far)",
    )
    add(
        "--budget",
        type=_positive,
        metavar="N",
        help="keep the N latest support vectors of a kernel (default: all)",
    )
    add(
        "--conditioning",
        metavar="NAME",
        help="what is done to each row before its trial, from the rows so far: none (default where "
        "an update is named), counts, idf, z-scores, ranges, or auto, by the kind of the first "
        "rows",
    )
    add(
        "--half-life",
        type=float,
        metavar="ROWS",
        help="after how many rows what was learnt counts half, for streams that drift (default: "
        "nothing is forgotten)",
    )
    add(
        "--shuffle",
        type=_seed,
        metavar="SEED",
        help="take the rows in random order; reads them all into memory first",
    )
    add("--json", metavar="FILE", help="write the table and the summary there, too")


def _predict(command: ArgumentParser) -> None:
    _input(command)
    command.add_argument("--model", required=True, metavar="FILE", help="what kesler learn wrote")
    what = command.add_mutually_exclusive_group()
    what.add_argument(
        "--scores",
        action="store_true",
        help="print the class, then class:score for every class, best first, separated by tabs",
    )
    what.add_argument(
        "--top",
        type=_positive,
        metavar="K",
        help="print the K best classes, best first, separated by tabs",
    )
    command.add_argument(
        "--json-lines",
        action="store_true",
        help='print a JSON object a line instead: {"label": ...} with "scores" or "top"',
    )
    _reading(command)


def _show(command: ArgumentParser) -> None:
    command.add_argument("model", metavar="MODEL", help="what kesler learn or save wrote")
    command.add_argument("--json", action="store_true", help="print one JSON object instead")


def _share(command: ArgumentParser) -> None:
    _input(command)
    add = command.add_argument
    add(
        "--features",
        type=_positive,
        default=10,
        metavar="N",
        help="how many to choose at most (default: %(default)s)",
    )
    add(
        "--dictionary",
        # Those of ShareBoostClassifier, whose room would import NumPy.
        choices=("columns", "products", "stumps", "pieces", "templates"),
        default="columns",
        help="what to choose from: the features themselves (default), products of two, thresholds "
        "of one, linear pieces around centres, or patches of images",
    )
    add(
        "--choice",
        choices=("gradient", "line", "column", "full"),
        help="the next one is that of the largest gradient (default), or the one that lowers the "
        "loss most along its gradient (line), by its own weights (column), or with all weights "
        "solved anew (full, slow)",
    )
    add(
        "--scale",
        choices=("spread", "none"),
        help="divide gradients by the spreads of features, so that units of measurement change "
        "nothing (default), or take features as they are (none)",
    )
    add(
        "--penalty",
        choices=("frobenius", "inf-1", "2-1"),
        help="on the weights of what is chosen: the sum of their squares, or of the largest of "
        "each feature, or of the lengths of each (default: none)",
    )
    add("--alpha", type=float, metavar="NUMBER", help="what the penalty counts (default 0.001)")
    held = command.add_mutually_exclusive_group()
    held.add_argument("--valid", metavar="FILE", help="rows to take the error on, read as INPUT is")
    held.add_argument(
        "--holdout",
        type=_share_of_rows,
        metavar="SHARE",
        help="leave out this share of the rows, at random, and take the error on them",
    )
    add(
        "--plot",
        metavar="FILE",
        help="draw the error, or else the loss, against the number of features (.png, .svg or "
        ".pdf; needs kesler[plots])",
    )
    add(
        "--export",
        metavar="FILE",
        help="write a predictor that runs without Kesler: .py (NumPy only), .c (C99) or .onnx "
        "(needs kesler[onnx])",
    )
    add("--json", metavar="FILE", help="write the table there, too")
    _reading(command)


def _share_of_rows(token: str) -> float:
    try:
        share = float(token)
    except ValueError:
        share = 0.0
    if not 0 < share < 1:
        raise ArgumentTypeError(f"{token!r} is not a share between 0 and 1, as 0.2 is")
    return share


def _positive(token: str) -> int:
    return _at_least(1, token)


def _seed(token: str) -> int:
    return _at_least(0, token)


def _at_least(least: int, token: str) -> int:
    if not token.isdecimal() or int(token) < least:
        raise ArgumentTypeError(f"{token!r} is not a whole number from {least} on")
    return int(token)
