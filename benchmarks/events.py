"""Time per event: predict a dictionary of 80 named features, then learn it.

    python benchmarks/events.py [--quick] [--cpu haswell] [--events 4000]

Events are texts of about 80 words in 20 classes, as dictionaries {word: 1}; one in ten has the
words of another class. Each contestant receives the dictionary first, then the label. With two
calls, one predicts and one learns; with one call (a trial), the learner learns and returns its
prediction from before. Vowpal Wabbit receives a line of text made from the dictionary, or the
example parsed from it; scikit-learn hashes the dictionary and learns by `partial_fit`; river takes
the dictionary as it is. All learn some events beforehand. Errors are those on the timed events, and
no event is used twice; slow peers run on fewer events, as the table shows, and have learnt from
fewer. A second table compares the forms of an event that Kesler accepts, and a third shows the time
per event as its features grow. A fourth compares an explanation of an event, the ten words that
contribute most to its class, with a prediction, by the default learner.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count, pairwise
from typing import Any

import numpy as np

from kesler import OnlineClassifier
from racing import Contestant, Figures, Growth, Laps, Race, command_line, times_faster
from text_stream import make_text_stream

N_CLASSES, N_WORDS = 20, 80
SIZES = (20, 80, 320, 1280)
"""Numbers of features per event at which the time is measured."""
OURS = ("kesler PA-I", "kesler default")
PEERS = {"vw": 2, "river": 30, "scikit-learn": 500}
"""The least ratio of the events per second of PA-I to theirs, each in its fastest form."""
EXPLAINED = 150
"""The most microseconds that an explanation of an event may take."""
LINEAR = 1.1
"""The largest exponent of the time in the number of features."""

Entry = dict[str, float]
Learner = Callable[[Any, int], Any]
"""Predicts an event, learns it with its label, and returns the prediction."""


def events_of(n_events: int, n_words: int = N_WORDS) -> list[tuple[Entry, int]]:
    """Return events; each has its own strings for its words, as if a parser had made them."""
    n_texts = -(-n_words // N_WORDS)
    X, y = make_text_stream(n_events * n_texts, N_CLASSES)
    ends = X.indptr[::n_texts].tolist()
    found = []
    for (start, end), label in zip(pairwise(ends), y[::n_texts].tolist(), strict=True):
        words = list(dict.fromkeys(X.indices[start:end].tolist()))[:n_words]
        found.append(({f"word{word}": 1.0 for word in words}, label))
    return found


# ---- contestants ----------------------------------------------------------------------------


def in_two_calls(model: Any) -> Learner:
    """Return a function that predicts, then learns, by the methods that Kesler and river share."""

    def step(x: Any, y: int) -> Any:
        predicted = model.predict_one(x) if getattr(model, "n_known_", 1) else None
        model.learn_one(x, y)
        return predicted

    return step


def default() -> OnlineClassifier:
    """Return our default learner."""
    return OnlineClassifier()


def pa1() -> OnlineClassifier:
    """Return our PA-I."""
    return OnlineClassifier("multi", update="pa1")


def river() -> Learner:
    """Return river's one-vs-rest passive-aggressive learner."""
    from river.linear_model import PAClassifier
    from river.multiclass import OneVsRestClassifier

    return in_two_calls(OneVsRestClassifier(PAClassifier(C=1.0, mode=1)))


def river_softmax() -> Learner:
    """Return river's softmax regression."""
    from river.linear_model import SoftmaxRegression

    return in_two_calls(SoftmaxRegression())


class VowpalWabbit:
    """Vowpal Wabbit's one-against-all, on lines made from dictionaries."""

    def __init__(self) -> None:
        from vowpalwabbit import Workspace

        self.workspace = Workspace(f"--oaa {N_CLASSES} -b 22 --quiet")

    def line(self, x: Entry) -> str:
        """Return the features as a line of its text format."""
        return "| " + " ".join([f"{name}:{value}" for name, value in x.items()])

    def in_two_calls(self, x: Entry, y: int) -> int:
        """Predict a line, then learn it with its label."""
        line = self.line(x)
        predicted = self.workspace.predict(line)
        self.workspace.learn(f"{y + 1} {line}")
        return int(predicted) - 1

    def in_one(self, x: Entry, y: int) -> int:
        """Learn an example that is parsed once, and return its prediction."""
        example = self.workspace.example(f"{y + 1} {self.line(x)}")
        self.workspace.learn(example)
        predicted = example.get_prediction()
        self.workspace.finish_example(example)
        return int(predicted) - 1


class Hashed:
    """scikit-learn's PA-I on hashed names."""

    def __init__(self) -> None:
        from sklearn.feature_extraction import FeatureHasher
        from sklearn.linear_model import SGDClassifier

        self.hasher = FeatureHasher(2**18)
        self.model = SGDClassifier(loss="hinge", penalty=None, learning_rate="pa1", eta0=1.0)
        self.is_fitted = False

    def __call__(self, x: Entry, y: int) -> Any:
        """Predict an event, then learn it."""
        row = self.hasher.transform([x])
        predicted = self.model.predict(row)[0] if self.is_fitted else None
        self.model.partial_fit(row, [y], classes=range(N_CLASSES))
        self.is_fitted = True
        return predicted


class Stream:
    """The events of one learner, consumed in runs; no event is used twice.

    Parameters
    ----------
    make : callable
        Returns a new learner.
    events : sequence
        All events.
    n_timed : int
        The number of events per run.
    """

    def __init__(self, make: Callable[[], Learner], events: Sequence[Any], n_timed: int) -> None:
        self.make, self.events, self.n_timed = make, events, n_timed
        self.n_seen = self.n_wrong = 0

    def prepare(self) -> None:
        """Make the learner, and learn the events of one run."""
        self.learner = self.make()
        self._next_wrong()

    def run(self) -> Figures:
        """Predict and learn the next events."""
        self.n_wrong += self._next_wrong()
        return {"error %": 100 * self.n_wrong / (self.n_seen - self.n_timed)}

    def _next_wrong(self) -> int:
        start = self.n_seen % len(self.events)
        events, learner = self.events[start : start + self.n_timed], self.learner
        self.n_seen += len(events)
        return sum([learner(x, y) != y for x, y in events])

    def contestant(self, name: str, package: str = "") -> Contestant:
        """Return a contestant that runs this stream."""
        return Contestant(name, self.run, self.n_timed, package, prepare=self.prepare)


def contestants(events: Sequence[Any], n_timed: int) -> Iterator[Contestant]:
    """Yield our learners and the peers; slow peers have few events per run."""
    for name, make in {"kesler PA-I": pa1, "kesler default": default}.items():
        yield Stream(lambda make=make: in_two_calls(make()), events, n_timed).contestant(name)
        one_call = f"{name}, one call"
        yield Stream(lambda make=make: make().learn_predict_one, events, n_timed).contestant(
            one_call
        )
    slow, slowest = max(20, n_timed // 20), max(5, n_timed // 200)
    for name, of_peer, n, package in (
        ("vw", lambda: VowpalWabbit().in_two_calls, n_timed, "vowpalwabbit"),
        ("vw, one call", lambda: VowpalWabbit().in_one, n_timed, "vowpalwabbit"),
        ("river, one-vs-rest PA", river, slow, "river"),
        ("river, softmax", river_softmax, slow, "river"),
        ("scikit-learn", Hashed, slowest, "scikit-learn"),
    ):
        yield Stream(of_peer, events, n).contestant(name, package)


def forms(events: Sequence[tuple[Entry, int]], n_timed: int) -> Iterator[Contestant]:
    """Yield PA-I, with one call, on the same events in each form that it accepts."""
    numbers: dict[str, int] = {}
    for x, _ in events:
        for name in x:
            numbers.setdefault(name, len(numbers))
    pairs = []
    for x, y in events:
        indices = np.sort([numbers[name] for name in x])
        pairs.append(((indices, np.ones(len(x))), y))
    texts = [(" ".join(x), y) for x, y in events]
    for name, given in {"dictionaries": events, "(indices, values)": pairs, "texts": texts}.items():
        yield Stream(lambda: pa1().learn_predict_one, given, n_timed).contestant(name)


def asking(ask: Callable[[OnlineClassifier, Entry], Any], n_learnt: int) -> Learner:
    """Return the default, which learns some events and is then only asked."""
    model, numbers = default(), count()

    def step(x: Entry, y: int) -> Any:
        if next(numbers) < n_learnt:
            model.learn_one(x, y)
            return y
        return ask(model, x)

    return step


ASKED: dict[str, Callable[[OnlineClassifier, Entry], Any]] = {
    "predict_one": lambda model, x: model.predict_one(x),
    "explain_one": lambda model, x: model.explain_one(x).label,
}


def questions(events: Sequence[tuple[Entry, int]], n_timed: int) -> Iterator[Contestant]:
    """Yield predictions and explanations by the default learner, on dictionaries and on texts."""
    texts = [(" ".join(x), y) for x, y in events]
    for form, given in {"dictionary": events, "text": texts}.items():
        for name, ask in ASKED.items():
            stream = Stream(lambda ask=ask: asking(ask, n_timed), given, n_timed)
            yield stream.contestant(f"{name}, {form}")


def growth(n_timed: int) -> Growth:
    """Return the growth of the time per event with its features."""

    def prepare(size: int) -> Callable[[], Figures]:
        stream = Stream(lambda: in_two_calls(pa1()), events_of(8 * n_timed, size), n_timed)
        stream.prepare()
        return stream.run

    return Growth("features per event", SIZES, prepare, LINEAR)


def fastest(laps: Mapping[str, Laps], name: str, clock: str) -> str:
    """Return the fastest of the contestants whose names start with a given text."""
    named = [each for each in laps if each.startswith(name)]
    return min(named, key=lambda each: laps[each].each(clock), default=name)


def main() -> int:
    """Run the race."""
    parser = command_line(__doc__)
    parser.add_argument("--events", type=int, default=4000, help="events per run (default 4,000)")
    arguments = parser.parse_args()
    race = Race("events", "Single events", __doc__, arguments)
    n_timed = 1000 if race.is_quick else arguments.events
    events = events_of(n_timed * (1 + race.repeats))
    laps = race.run(
        "Prediction and learning of one dictionary", contestants(events, n_timed), "events"
    )
    for peer, target in PEERS.items():
        theirs = fastest(laps, peer, race.clock)
        ours, by_default = (fastest(laps, name, race.clock) for name in OURS)
        faster = times_faster(laps, ours, theirs, race.clock)
        race.at_least(f"{ours}, times the events per second of {theirs}", faster, target)
        faster = times_faster(laps, by_default, theirs, race.clock)
        race.add(f"{by_default}: {faster:.3g} times the events per second of {theirs}.")
    race.run("Forms of the same events, PA-I, one call", forms(events, n_timed), "events")
    laps = race.run("Explanation of one event, default", questions(events, n_timed), "events")
    for form in ("dictionary", "text"):
        microseconds = 1e6 * laps[f"explain_one, {form}"].each(race.clock)
        faster = EXPLAINED / microseconds
        race.at_least(f"explain_one of a {form}, times as fast as {EXPLAINED} us", faster, 1)
    race.grow("Time per event", [growth(max(100, n_timed // 10))])
    return race.write()


if __name__ == "__main__":
    sys.exit(main())
