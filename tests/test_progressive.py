"""Laws of the comparison: what it counts is what progressive validation counts."""

import json
import time
from threading import Event, Timer

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kesler import KeslerError, OnlineClassifier, progressive_validate
from kesler.data.rows import Rows
from kesler.evaluation.comparison import MAX_POINTS, MOST_WAITING, Comparison, Curve, ParallelRuns
from kesler.readers import Block
from streams import learnt, make_stream

STREAM = make_stream(3, n_rows=100, n_classes=6)
METHODS = ("multi", "hybrid")


def learner(hypotheses):
    return OnlineClassifier(hypotheses, feature_map="product", update="perceptron")


def blocks(stream, size, weights=None):
    for start in range(0, len(stream), size):
        part = slice(start, start + size)
        rows = Rows.from_dense(stream.X[part])
        yield Block(rows, stream.y[part].tolist(), None if weights is None else weights[part])


def run(stream, size=1000, weights=None):
    comparison = Comparison({name: learner(name) for name in METHODS})
    return list(comparison.run(blocks(stream, size, weights))), comparison


def without_clock(line):
    return {key: value for key, value in line.to_json().items() if key != "rows_per_second"}


def test_each_method_is_counted_as_in_progressive_validation():
    lines, comparison = run(STREAM)
    for name, result in comparison.results().items():
        alone = progressive_validate(learner(name), STREAM.X, STREAM.y)
        assert result.trials.tolist() == alone.trials.tolist()
        assert result.curve.tolist() == alone.curve.tolist()
        counts = (result.n_trials, result.n_mistakes, result.n_first_seen, result.error)
        assert counts == (alone.n_trials, alone.n_mistakes, alone.n_first_seen, alone.error)
        for line in lines:
            assert line.errors[name] == alone.curve[line.n_trials - 1] / line.n_trials


def test_lines_stand_at_powers_of_two_and_at_the_end_and_add_up():
    lines, comparison = run(STREAM)
    assert [line.n_trials for line in lines] == [1, 2, 4, 8, 16, 32, 64, 100]
    assert [line.n_classes for line in lines] == [
        len(set(STREAM.y[: line.n_trials].tolist())) for line in lines
    ]
    assert (comparison.n_trials, comparison.n_classes, comparison.n_features) == (100, 6, 7)
    for name in METHODS:
        lengths = np.diff([0, *(line.n_trials for line in lines)])
        recent = lengths @ [line.recent_errors[name] for line in lines]
        assert recent == pytest.approx(100 * lines[-1].errors[name])


@pytest.mark.parametrize("size", [1, 3, 64])
def test_how_the_stream_is_cut_changes_nothing(size):
    lines, comparison = run(STREAM)
    others, other = run(STREAM, size)
    assert [without_clock(line) for line in others] == [without_clock(line) for line in lines]
    for name, result in comparison.results().items():
        assert other.results()[name].curve.tolist() == result.curve.tolist()


def test_rows_of_weight_zero_are_left_out():
    weights = np.where(np.arange(len(STREAM)) % 3 == 0, 0.0, STREAM.weights)
    lines, comparison = run(STREAM, weights=weights)
    alone = progressive_validate(learner("multi"), STREAM.X, STREAM.y, weights)
    assert comparison.results()["multi"].curve.tolist() == alone.curve.tolist()
    assert [line.n_trials for line in lines] == [1, 2, 4, 8, 16, 32, 64, 66]


def test_the_end_has_one_line_also_where_it_is_a_power_of_two():
    lines, _ = run(STREAM[:64])
    assert [line.n_trials for line in lines] == [1, 2, 4, 8, 16, 32, 64]


def test_learning_happens_as_lines_are_asked_for():
    comparison = Comparison({"multi": learner("multi")})
    lines = comparison.run(blocks(STREAM, 1000))
    assert [next(lines).n_trials for _ in range(4)] == [1, 2, 4, 8]
    assert comparison.n_trials == 8


def test_the_first_trial_is_not_timed():
    lines, comparison = run(STREAM)
    assert [line.rows_per_second is None for line in lines] == [True] + [False] * 7
    assert all(result.rows_per_second > 0 for result in comparison.results().values())
    _, comparison = run(STREAM[:1])
    assert comparison.results()["multi"].rows_per_second is None


def test_a_learner_goes_on_from_what_it_knows():
    known = learner("multi").fit(STREAM.X, STREAM.y)
    comparison = Comparison({"known": known})
    [*_] = comparison.run(blocks(STREAM, 1000))
    result = comparison.results()["known"]
    assert (result.n_trials, result.n_first_seen, known.n_trials_) == (100, 0, 200)


def test_results_and_lines_are_json():
    lines, comparison = run(STREAM)
    whole = json.loads(json.dumps(comparison.results()["multi"].to_json()))
    assert whole["trials"] == 100 and len(whole["curve"]["mistakes"]) == 100
    assert json.loads(json.dumps(lines[0].to_json()))["rows_per_second"] is None


def test_no_method_is_refused():
    with pytest.raises(KeslerError, match="give at least one learner"):
        Comparison({})


def test_nothing_learnt_is_no_mistake():
    comparison = Comparison({"multi": learner("multi")})
    assert list(comparison.run([])) == []
    assert comparison.results()["multi"].error == 0


@given(st.lists(st.integers(0, 3000), min_size=1, max_size=8), st.integers(0, 2**32 - 1))
def test_a_thinned_curve_is_exact_at_its_points(lengths, seed):
    wrong = np.random.default_rng(seed).random(sum(lengths)) < 0.3
    curve = Curve()
    for piece in np.split(wrong, np.cumsum(lengths)[:-1]):
        curve.extend(piece)
    trials, mistakes = curve.trials, curve.mistakes
    assert mistakes.tolist() == np.cumsum(wrong)[trials - 1].tolist()
    assert (curve.n_trials, curve.n_mistakes) == (len(wrong), wrong.sum())
    stride = next(2**k for k in range(64) if len(wrong) // 2**k <= MAX_POINTS)
    assert set(trials.tolist()) == {*range(stride, len(wrong) + 1, stride), len(wrong)} - {0}
    assert (np.diff(trials) > 0).all()


# ---- in threads ---------------------------------------------------------------------------------


class Recorder:
    """A mock learner: records its arguments, and may raise, or wait for an event."""

    def __init__(self, refuses=(), waits=None):
        self.seen, self.refuses, self.waits = [], refuses, waits
        self.begun = Event()

    def __call__(self, piece):
        self.begun.set()
        if self.waits is not None:
            assert self.waits.wait(20)
        if piece.labels[0] in self.refuses:
            raise KeslerError(f"{piece.labels[0]} refused")
        self.seen.append(piece.labels[0])


def pieces(n):
    return [Block(Rows.empty(1), [number]) for number in range(n)]


def go_through(runs, n_threads, n_pieces):
    with ParallelRuns(runs, n_threads) as parallel:
        for piece in pieces(n_pieces):
            parallel.put(piece)
        parallel.finish()


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_threads_change_no_line_and_no_result(n_threads):
    stream = make_stream(8, n_rows=700, n_classes=6)
    weights = np.where(np.arange(700) % 5 == 2, 0.0, 1.0)
    methods = {"multi": "pa1", "hybrid": "perceptron", "single": "simproj"}
    compared = []
    for n in (1, n_threads):
        learners = {name: OnlineClassifier(name, update=rule) for name, rule in methods.items()}
        comparison = Comparison(learners, n)
        lines = [without_clock(line) for line in comparison.run(blocks(stream, 50, weights))]
        compared.append((lines, comparison.n_trials, comparison.results(), learners))
    (lines, n_trials, results, learners), (others, n_others, in_threads, same) = compared
    assert (lines, n_trials) == (others, n_others)
    for name in methods:
        assert results[name].curve.tolist() == in_threads[name].curve.tolist()
        assert results[name].seconds > 0 and in_threads[name].seconds > 0
        assert learnt(learners[name]) == learnt(same[name])


def test_a_lane_runs_ahead_of_a_slow_one_but_not_far():
    sign = Event()
    slow, fast = Recorder(waits=sign), Recorder()
    Timer(0.5, sign.set).start()
    with ParallelRuns([slow, fast], 2) as parallel:
        for piece in pieces(MOST_WAITING):
            parallel.put(piece)
        while len(fast.seen) < MOST_WAITING:
            time.sleep(0.001)
        assert slow.seen == [] and not sign.is_set()
        parallel.put(Block(Rows.empty(1), [MOST_WAITING]))
        assert sign.is_set()
        parallel.finish()
    assert slow.seen == fast.seen == list(range(MOST_WAITING + 1))


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_of_several_faults_the_first_is_raised(n_threads):
    runs = [Recorder([7]), Recorder([5]), Recorder([5, 6])]
    for _ in range(20):
        with pytest.raises(KeslerError, match="5 refused"):
            go_through(runs, n_threads, 12)


def test_what_was_read_before_a_fault_of_the_reader_is_learnt_and_what_waits_for_ctrl_c_is_not():
    for fault, n_seen in ((KeslerError("bad row"), 10), (KeyboardInterrupt(), 1)):
        sign = Event()
        recorder = Recorder(waits=sign)
        Timer(0.2, sign.set).start()
        with pytest.raises(type(fault)), ParallelRuns([recorder], 2) as parallel:
            for piece in pieces(10):
                parallel.put(piece)
            assert recorder.begun.wait(20)
            raise fault
        assert len(recorder.seen) == n_seen


def test_no_threads_are_too_few():
    with pytest.raises(KeslerError, match="n_threads=0"):
        Comparison({"multi": learner("multi")}, 0)
