"""Several machines: the result of workers equals that of one machine.

Or what a reference mixes.
"""

import logging
import os
import signal
import threading
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_wine

from kesler import (
    Ensemble,
    OnlineClassifier,
    OnlineMultilabelClassifier,
    ShareBoostClassifier,
    SoftmaxClassifier,
    load,
)
from kesler.distributed.scattered import StoredValue, n_bytes
from kesler.errors import KeslerError, MismatchWarning
from kesler.hypotheses import Grouped, PerClass, Shared
from kesler.maps import Contrast, GaussianRatio
from kesler.online.defaults import of_mapped

distributed = pytest.importorskip("distributed", reason="Dask is not installed: kesler[dask]")

from kesler.distributed import Partitions, fit, learn  # noqa: E402

X_WINE, Y_WINE = load_wine(return_X_y=True)
X_WINE = (X_WINE - X_WINE.mean(axis=0)) / X_WINE.std(axis=0)
ORDER = np.random.default_rng(7).permutation(len(Y_WINE))
X_WINE, Y_WINE = X_WINE[ORDER], Y_WINE[ORDER]


@pytest.fixture(scope="module")
def workers():
    """Two worker processes on this machine, whose nannies start others when they die."""
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


class Done:
    """The future of what is there already."""

    def __init__(self, value):
        self.value = value

    def result(self):
        return self.value


class Here:
    """What a client does, done at once in this process: for all but what workers make harder."""

    def submit(self, function, *arguments, pure):
        return Done(function(*map(resolved, arguments)))

    def map(self, function, *lists, pure):
        return [self.submit(function, *each, pure=pure) for each in zip(*lists, strict=True)]

    def gather(self, futures):
        return resolved(list(futures))


def resolved(argument):
    if isinstance(argument, list):
        return [resolved(each) for each in argument]
    return argument.value if isinstance(argument, Done) else argument


@pytest.fixture
def client():
    return Here()


def cut(X, y, n):
    """Return rows in n partitions of unequal length."""
    ends = (np.linspace(0, 1, n + 1) ** 1.3 * len(y)).astype(int)
    return [(X[a:b], y[a:b]) for a, b in pairwise(ends)]


# ---- ShareBoost and the softmax: equal to one machine -----------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"dictionary": "products", "penalty": "frobenius", "class_weight": "balanced"},
        {"choice": "full", "shortlist": 3, "bias": False, "loss": "softmax"},
        {"choice": "column", "shortlist": 3, "n_features_to_select": 2},
    ],
)
def test_shareboost_chooses_what_one_machine_chooses(client, settings):
    settings = {"n_features_to_select": 3, **settings}
    one = ShareBoostClassifier(**settings).fit(X_WINE, Y_WINE)
    many = fit(
        ShareBoostClassifier(**settings), Partitions.of(cut(X_WINE, Y_WINE, 12)), client=client
    )
    assert many.support_.tolist() == one.support_.tolist()
    assert [each.n_steps for each in many.path_] == [each.n_steps for each in one.path_]
    np.testing.assert_allclose(many.coef_, one.coef_, atol=1e-6)
    np.testing.assert_allclose(many.intercept_, one.intercept_, atol=1e-6)
    assert (many.predict(X_WINE) == one.predict(X_WINE)).all()


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("kinds", ["ff", "dd", "fd", "di", "fi"])
def test_shareboost_exports_the_precision_of_one_machine(client, form, kinds):
    halves = [
        (form(X.astype(k)), y) for k, (X, y) in zip(kinds, cut(X_WINE, Y_WINE, 2), strict=True)
    ]
    many = fit(ShareBoostClassifier(2), Partitions.of(halves), client=client)
    whole = form(X_WINE.astype(np.result_type(*kinds)))
    assert many.dtype_ == ShareBoostClassifier(2).fit(whole, Y_WINE).dtype_


def test_shareboost_takes_sparse_rows_that_list_fewer_features(client):
    X = sparse.csr_array(np.where(X_WINE > 0, X_WINE, 0))
    one = ShareBoostClassifier(2).fit(X, Y_WINE)
    narrow = [(part[:, :13], y) for part, y in cut(X, Y_WINE, 2)]
    many = fit(ShareBoostClassifier(2), Partitions.of(narrow), client=client)
    assert many.support_.tolist() == one.support_.tolist()
    np.testing.assert_allclose(many.coef_, one.coef_, atol=1e-6)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_the_softmax_ends_where_one_machine_ends(client, kind):
    settings = {"C": 0.3, "tol": 1e-9, "sigma": 0.7}
    X = kind(X_WINE)
    one = SoftmaxClassifier(**settings).fit(X, Y_WINE)
    many = fit(SoftmaxClassifier(**settings), Partitions.of(cut(X, Y_WINE, 3)), client=client)
    np.testing.assert_allclose(many.coef_, one.coef_, atol=1e-6)
    np.testing.assert_allclose(many.intercept_, one.intercept_, atol=1e-6)
    assert many.objective_ == pytest.approx(one.objective_, rel=1e-12)
    assert many.converged_ and many.gradient_norm_ <= 1e-9


# ---- parameter mixing ---------------------------------------------------------------------------


def mixed_by_hand(X, y, epochs, mixing):
    """Return the weights of the multiclass Perceptron by class, and mu k, as Figure 3 has it."""
    classes = list(dict.fromkeys(label for labels in y for label in labels))
    W, total, were_seen = np.zeros((len(classes), X[0].shape[1])), 0.0, []
    for _ in range(epochs):
        ends, mistakes = [], []
        for rows, labels in zip(X, y, strict=True):
            V, seen, k = (
                W.copy(),
                list(were_seen),
                0,
            )  # ties go to the class seen first, on the shard
            for x, label in zip(rows, labels, strict=True):
                r = classes.index(label)
                if r in seen:
                    s = seen[int(np.argmax([V[s] @ x for s in seen]))]
                    if s != r:
                        k += 1
                        V[r], V[s] = V[r] + x, V[s] - x
                else:
                    seen.append(r)
            ends.append(V)
            mistakes.append(k)
        were_seen = range(len(classes))
        k = sum(mistakes)
        uniform = mixing == "uniform" or not k
        mu = [1 / len(X)] * len(X) if uniform else [each / k for each in mistakes]
        W = sum(share * V for share, V in zip(mu, ends, strict=True))
        total += sum(share * each for share, each in zip(mu, mistakes, strict=True))
    return classes, W, total


@pytest.mark.parametrize("mixing", ["mistakes", "uniform"])
def test_the_perceptron_is_mixed_as_by_hand(client, mixing):
    """Classes are seen in another order on each shard, and one on the last shard alone."""
    rng = np.random.default_rng(0)
    X = rng.integers(-4, 5, (90, 6)).astype(float)  # sums that float32 holds to the last digit
    y = np.array(["a", "b", "c"])[np.argmax(X[:, :3], axis=1)]
    y[80:] = np.where(X[80:, 5] > 0, "late", y[80:])
    parts = [(X[:30], y[:30]), (X[30:60][::-1], y[30:60][::-1]), (X[60:], y[60:])]
    epochs = []
    model = learn(
        OnlineClassifier("multi", update="perceptron"),
        Partitions.of(parts),
        epochs=3,
        mixing=mixing,
        client=client,
        report=epochs.append,
    )
    rows, labels = zip(*parts, strict=True)
    classes, W, total = mixed_by_hand(rows, [each.tolist() for each in labels], 3, mixing)
    assert model.classes_by_code_.tolist() == classes
    np.testing.assert_allclose(model._learner.hypothesis_weights()[0].T, W, rtol=1e-5, atol=1e-5)
    assert sum(epoch.mixed_mistakes for epoch in epochs) == pytest.approx(total)
    assert model.n_mistakes_ == sum(epoch.n_mistakes for epoch in epochs)
    assert model.n_trials_ == 3 * 90


def test_mixed_mistakes_stay_below_the_bound(client):
    """Theorem 3 of McDonald, Hall and Mann (2010), on rows that a known u of norm 1 separates."""
    rng = np.random.default_rng(1)
    U = rng.normal(size=(4, 8))
    X = rng.normal(size=(800, 8))
    scores = np.sort(X @ U.T, axis=1)
    X = X[scores[:, -1] - scores[:, -2] > 0.5]
    y = np.argmax(X @ U.T, axis=1)
    scores = np.sort(X @ U.T, axis=1)
    gamma = (scores[:, -1] - scores[:, -2]).min() / np.linalg.norm(U)
    R2 = 2 * (X**2).sum(axis=1).max()
    for mixing in ("mistakes", "uniform"):
        epochs = []
        model = OnlineClassifier("multi", update="perceptron")
        rows = Partitions.of(cut(X, y, 4))
        learn(model, rows, epochs=6, mixing=mixing, client=client, report=epochs.append)
        found = sum(epoch.mixed_mistakes for epoch in epochs)
        print(f"{mixing}: sum of mu k = {found:.1f}, R^2 / gamma^2 = {R2 / gamma**2:.1f}")
        assert 0 < found <= R2 / gamma**2
        assert epochs[-1].n_mistakes < epochs[0].n_mistakes / 2


LEARNERS = {
    "default": OnlineClassifier(**of_mapped()),
    "averaged": OnlineClassifier("multi", update="pa1", averaged=True),
    "arow": OnlineClassifier("multi", update="arow"),
    "hybrid": OnlineClassifier("hybrid", update="pa1", feature_map="product-mean"),
    "first": OnlineClassifier("hybrid", update="pa1", feature_map="product"),
    "contrast": OnlineClassifier([PerClass(), Shared(Contrast(), begins_at=0.1)], update="softmax"),
    "gaussian": OnlineClassifier([Shared(GaussianRatio())], update="softmax"),
    "grouped": OnlineClassifier([Grouped(lambda y: [y % 2, "all"]), PerClass()], update="pa1"),
    "scale-free": OnlineClassifier("multi", update="hinge", preconditioner="scale-free-adagrad"),
    "pace": OnlineClassifier("multi", update="pa1", preconditioner="distance-adagrad"),
    "ng": OnlineClassifier("multi", update="hinge", preconditioner="scale-free"),
    "inherit": OnlineClassifier("multi", update="ovr-hinge", on_new_class="inherit"),
    "ranges": OnlineClassifier("multi", update="pa1", preprocessing="ranges"),
    "idf": OnlineClassifier("multi", update="pa1", preprocessing="idf"),
    "information": OnlineClassifier("multi", update="pa1", preprocessing="information"),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_one_shard_is_one_machine(client, name):
    """All state is mixed correctly: with one shard, the mixture equals the input."""
    X, learner = X_WINE.astype(np.float32)[:60], LEARNERS[name]
    y = Y_WINE[:60]
    model = learn(learner, Partitions.of([(X, y)]), epochs=2, client=client)
    one = learner.__class__(**learner.get_params(deep=False)).partial_fit(X, y).partial_fit(X, y)
    found, wanted = model._learner.arrays(), one._learner.arrays()
    assert found.keys() == wanted.keys()
    for key, array in wanted.items():
        if "statistics.moments" in wanted and key in ("statistics.sums", "statistics.pooled"):
            continue  # follows from moments, whose last changes the others took in at once
        near = 2e-3 if "statistics.moments" in wanted else 1e-5
        np.testing.assert_allclose(
            found[key], array, rtol=2e-4, atol=near, err_msg=f"{name}: {key}"
        )
    if "statistics.moments" in found:
        assert (model.predict(X) == one.predict(X)).mean() > 0.95
        return
    np.testing.assert_allclose(
        model.decision_function(X), one.decision_function(X), rtol=1e-3, atol=1e-3
    )


def test_sums_over_rows_are_those_of_all_shards(client):
    """Counts, means and deviations of two shards are those of one machine that saw both."""
    X, y = X_WINE.astype(np.float32) * 3 + 100, Y_WINE
    for name, key in [
        ("gaussian", "statistics.moments"),
        ("default", "preprocessing.statistics"),
        ("idf", "preprocessing.statistics"),
    ]:
        model = learn(LEARNERS[name], Partitions.of(cut(X, y, 3)), epochs=1, client=client)
        one = OnlineClassifier(**LEARNERS[name].get_params(deep=False)).fit(X, y)
        found, wanted = model._learner.arrays()[key], one._learner.arrays()[key]
        if key == "statistics.moments":
            labels = model._learner.classes.labels
            wanted = wanted[:, [one._learner.classes.code(label) for label in labels]]
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
        assert model.n_trials_ == one.n_trials_


def test_names_and_classes_are_merged(client):
    """Each shard has names and classes of its own, and shares some."""
    texts = [
        [({"cash": 1.0, "win": 1.0}, "spam"), ({"team": 1.0, "lunch": 1.0}, "work")],
        [({"lunch": 2.0, "mum": 1.0}, "home"), ({"team": 1.0, "plan": 1.0}, "work")],
    ]
    parts = [([x for x, _ in each], [y for _, y in each]) for each in texts]
    model = learn(OnlineClassifier(), Partitions.of(parts), epochs=3, client=client)
    assert model.vocabulary_.names == ["cash", "win", "team", "lunch", "mum", "plan"]
    assert model.classes_by_code_.tolist() == ["spam", "work", "home"]
    asked = [{"cash": 1.0}, {"plan": 1.0}, {"mum": 1.0}]
    assert [model.predict_one(x) for x in asked] == ["spam", "work", "home"]
    model.learn_one({"holiday": 1.0}, "home")
    assert model.predict_one({"holiday": 1.0}) == "home"


def test_label_sets_are_mixed_too(client):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 5))
    Y = [[k for k in range(3) if x[k] > 0] for x in X]
    parts = [(X[:60], Y[:60]), (X[60:], Y[60:])]
    learner = OnlineMultilabelClassifier("multi", update="simproj", intercept=1.0)
    model = learn(learner, Partitions.of(parts), epochs=4, client=client)
    assert model.classes_.tolist() == [0, 1, 2]
    assert (model.predict(X) == (X[:, :3] > 0)).mean() > 0.85


def test_shards_without_rows_and_of_one_class(client):
    X, y = X_WINE[np.argsort(Y_WINE)], np.sort(Y_WINE)
    nothing = (X[:0], y[:0])
    parts = [nothing, (X[:59], y[:59]), (X[59:130], y[59:130]), nothing, (X[130:], y[130:])]
    model = learn(OnlineClassifier(), Partitions.of(parts), epochs=4, client=client)
    assert model.score(X, y) > 0.95
    one = ShareBoostClassifier(2).fit(X, y)
    assert fit(ShareBoostClassifier(2), Partitions.of(parts), client=client).support_.tolist() == (
        one.support_.tolist()
    )


# ---- where rows come from -----------------------------------------------------------------------


def test_row_groups_of_parquet_files_are_partitions(client, tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {f"x{j}": X_WINE[:, j] for j in range(13)} | {
        "kind": np.array(["a", "b", "c"])[Y_WINE]
    }
    for number, rows in enumerate(np.array_split(np.arange(len(Y_WINE)), 2)):
        table = pa.table({name: values[rows] for name, values in columns.items()})
        pq.write_table(table, tmp_path / f"{number}.parquet", row_group_size=50)
    rows = Partitions.from_parquet(tmp_path, label="kind")
    assert len(rows) == 4
    one = ShareBoostClassifier(2).fit(X_WINE, columns["kind"])
    many = fit(ShareBoostClassifier(2), rows, client=client)
    assert many.support_.tolist() == one.support_.tolist()
    assert many.feature_names_in_.tolist() == [f"x{j}" for j in range(13)]
    model = learn(OnlineClassifier(), rows, epochs=2, client=client)
    frame = pd.DataFrame(X_WINE, columns=model.feature_names_in_)
    assert model.score(frame, columns["kind"]) > 0.9
    with pytest.raises(KeslerError, match="has no column 'team'"):
        learn(OnlineClassifier(), Partitions.from_parquet(tmp_path, label="team"), client=client)


# ---- tables -------------------------------------------------------------------------------------

WORDS = np.array([f"word{i}" for i in range(40)])


def table(n=300):
    """A frame of columns of all kinds, whose texts tell the class and are never repeated."""
    random = np.random.default_rng(3)
    classes = random.integers(0, 3, n)
    size = random.normal(size=n) + classes
    size[[4, 60, 280]] = np.nan
    return pd.DataFrame(
        {
            "body": [" ".join(random.choice(WORDS[10 * c : 10 * c + 20], 8)) for c in classes],
            "size": size,
            "team": np.where(random.random(n) < 0.1, None, random.choice(list("xyz"), n)),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 900, n), "D"),
            "kind": np.array(["a", "b", "c"])[classes],
        }
    )


TABLE = table()
CELLS = TABLE.drop(columns="kind")
PA1 = OnlineClassifier("multi", update="pa1", uncertainty=False)


def parted(frame, form, folder):
    """The rows of a frame in four partitions of a form."""
    if form == "parquet":
        pytest.importorskip("pyarrow")
        frame.to_parquet(folder / "rows.parquet", row_group_size=80, index=False)
        return Partitions.from_parquet(folder / "rows.parquet", label="kind")
    parts = [frame[start : start + 80] for start in range(0, len(frame), 80)]
    if form == "csv":
        for number, part in enumerate(parts):
            part.to_csv(folder / f"{number}.csv", index=False)
        return Partitions.from_files(folder, label="kind")
    rows = [(each.drop(columns="kind"), each["kind"]) for each in parts]
    if form == "mappings":
        return Partitions.of((x.to_dict("records"), y.tolist()) for x, y in rows)
    return Partitions.of(rows)


@pytest.mark.parametrize("form", ["parquet", "csv", "mappings", "frames"])
def test_tables_have_the_kinds_of_one_machine(form, client, tmp_path):
    one = OnlineClassifier().fit(CELLS, TABLE["kind"])
    many = learn(OnlineClassifier(), parted(TABLE, form, tmp_path), client=client)
    found = {each.name: each.kind for each in many.schema_}
    assert found == {"body": "text", "size": "number", "team": "category", "day": "date"}
    assert list(found) == one.schema_.names
    assert many.score(CELLS, TABLE["kind"]) > 0.97
    assert not any(name.startswith("body=") for name in many.vocabulary_.names)
    new = table(400)[300:]  # whose texts no partition has
    assert many.score(new.drop(columns="kind"), new["kind"]) > 0.9


def test_a_table_in_one_partition_is_learnt_as_on_one_machine(client):
    """Texts and categories do not depend on the rows before: weights are equal to the last bit."""
    cells = CELLS[["body", "team"]]
    many = learn(PA1, Partitions.of([(cells, TABLE["kind"])]), epochs=1, client=client)
    one = clone(PA1).fit(cells, TABLE["kind"])
    assert many.vocabulary_.names == one.vocabulary_.names
    assert (many.decision_function(cells) == one.decision_function(cells)).all()


@pytest.mark.parametrize("cells", [CELLS, CELLS[["body", "team"]], CELLS.to_dict("records")])
def test_partitions_of_tables_without_rows_change_nothing(cells, client):
    parts = [
        (cells[a:b], TABLE["kind"][a:b]) for a, b in ((0, 0), (0, 150), (150, 150), (150, 300))
    ]
    one, other = (learn(PA1, Partitions.of(each), client=client) for each in (parts, parts[1::2]))
    assert (one.decision_function(cells) == other.decision_function(cells)).all()
    with pytest.raises(KeslerError, match="no partition has a row"):
        learn(PA1, Partitions.of(parts[::2]), client=client)


def test_numbers_are_scaled_by_all_rows_of_all_partitions(client, tmp_path):
    moments = [
        learn(PA1, parted(TABLE, form, tmp_path), client=client)._input.columns.known.moments
        for form in ("parquet", "frames")
    ]
    size = TABLE["size"].dropna().to_numpy()
    days = TABLE["day"].to_numpy().astype("datetime64[s]").astype(float)
    for found in moments:
        for name, numbers in (("size", size), ("day", days)):
            expected = len(numbers), numbers.mean(), ((numbers - numbers.mean()) ** 2).sum()
            np.testing.assert_allclose(found[name], expected, rtol=1e-9)


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_the_kinds_of_the_first_partition_are_those_of_all(form, client, tmp_path):
    """Alone, the second would have a category, amounts below 10 and days that could be months."""
    random, n = np.random.default_rng(5), 80
    amounts, days = random.integers(1, 9, 2 * n) * 1000, random.integers(1, 12, 2 * n)
    signs = [f"{a // 1000}.{a % 1000:03}" for a in amounts]
    signs[:n] = [f"{each},00" for each in signs[:n]]
    months = [f"{day:02}/03/2026" for day in days]
    days[:n:2], months[:n:2] = 25, ["25/03/2026"] * (n // 2)
    frame = pd.DataFrame(
        {
            "body": [*table()["body"][:n], *random.choice(["card lost again", "fee twice"], n)],
            "amount": signs,
            "day": months,
            "kind": random.choice(["a", "b"], 2 * n),
        }
    )
    model = learn(PA1, parted(frame, form, tmp_path), client=client)
    found = {each.name: each.kind for each in model.schema_}
    assert found == {"body": "text", "amount": "number", "day": "date"}
    assert {"body:twice", "body:card lost"} <= set(model.vocabulary_.names)
    dates = pd.to_datetime([f"2026-03-{day:02}" for day in days]).as_unit("s").astype(np.int64)
    for name, numbers in (("amount", amounts), ("day", dates.to_numpy())):
        expected = 2 * n, numbers.mean(), ((numbers - numbers.mean()) ** 2).sum()
        np.testing.assert_allclose(model._input.columns.known.moments[name], expected, rtol=1e-9)


def test_workers_learn_tables_as_this_process_does(workers, client, tmp_path):
    rows = parted(TABLE, "parquet", tmp_path)
    one, other = (learn(OnlineClassifier(), rows, client=each) for each in (client, workers))
    assert (one.decision_function(CELLS) == other.decision_function(CELLS)).all()


def test_a_model_of_tables_is_saved_and_learns_on(client, tmp_path):
    model = learn(OnlineClassifier(), parted(TABLE, "parquet", tmp_path), client=client)
    model.save(tmp_path / "model")
    found = load(tmp_path / "model")
    for each in (model, found):
        each.partial_fit(CELLS[:50], TABLE["kind"][:50])
    assert (found.decision_function(CELLS) == model.decision_function(CELLS)).all()
    assert clone(found).fit(CELLS, TABLE["kind"]).score(CELLS, TABLE["kind"]) > 0.97


@pytest.mark.parametrize("with_missing", ["no partition", "some partitions"])
def test_columns_of_numbers_are_learnt_as_an_array(with_missing, client, tmp_path):
    """With cells missing in some partitions alone, all of them take the place of an array's."""
    frame = pd.DataFrame(X_WINE, columns=[f"x{j}" for j in range(13)])
    if with_missing == "some partitions":
        frame.loc[100:105, "x3"] = np.nan
    rows = parted(frame.assign(kind=Y_WINE), "parquet", tmp_path)
    model = learn(OnlineClassifier(), rows, client=client)
    assert model.score(frame, Y_WINE) > 0.95
    model.save(tmp_path / "model")
    found = load(tmp_path / "model")
    assert (found.decision_function(frame) == model.decision_function(frame)).all()
    parts = [(frame[a : a + 80].to_numpy(), Y_WINE[a : a + 80]) for a in range(0, 178, 80)]
    if with_missing == "no partition":
        alike = learn(OnlineClassifier(), Partitions.of(parts), client=client)
        assert (alike.decision_function(frame.to_numpy()) == model.decision_function(frame)).all()


def test_columns_that_only_later_partitions_fill_are_learnt(client):
    late = CELLS.assign(note=[None] * 200 + ["seen twice a day"] * 100)
    parts = [(late[a : a + 100], TABLE["kind"][a : a + 100]) for a in (0, 100, 200)]
    model = learn(OnlineClassifier(), Partitions.of(parts), client=client)
    assert model.schema_.names[-1] == "note" and model.score(late, TABLE["kind"]) > 0.97


def test_cells_that_do_not_fit_their_column_are_counted_or_refused(client):
    odd = CELLS.astype({"size": object})
    odd.loc[[120, 250], "size"] = ["unknown", "n.n."]
    parts = [(odd[a : a + 100], TABLE["kind"][a : a + 100]) for a in (0, 100, 200)]
    with pytest.warns(MismatchWarning, match="2 of 297 cells were no numbers, missing: 'unknown'"):
        model = learn(OnlineClassifier(), Partitions.of(parts), client=client)
    assert model.schema_["size"].n_misfits == 2
    with pytest.raises(KeslerError, match=r"partition 1, row 21, column 'size'.*'unknown'"):
        learn(OnlineClassifier(on_mismatch="raise"), Partitions.of(parts), client=client)


def test_what_cannot_be_a_table_is_refused(client):
    tables = (CELLS[:50], TABLE["kind"][:50])
    with pytest.raises(KeslerError, match="columns=None learns numbers by their names"):
        learn(OnlineClassifier(columns=None), Partitions.of([tables]), client=client)
    named = ([{"size": 1.0}, {"size": 2.0}], ["a", "b"])
    with pytest.raises(KeslerError, match="partition 1 has named rows, but partition 0 table ones"):
        learn(OnlineClassifier(), Partitions.of([tables, named]), client=client)
    with pytest.raises(KeslerError, match="all columns are ignored"):
        ignored = dict.fromkeys(CELLS.columns, "ignore")
        learn(OnlineClassifier(columns=ignored), Partitions.of([tables]), client=client)


def test_text_and_missing_values_in_parquet_are_columns_of_a_table(client, tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table(
        {
            "colour": ["red", "blue", None, "red"],
            "size": [1, 2, None, 3],
            "kind": ["a", "b", "b", "a"],
        }
    )
    pq.write_table(table, tmp_path / "0.parquet", row_group_size=2)
    rows = Partitions.from_parquet(str(tmp_path / "*.parquet"), label="kind")
    model = learn(OnlineClassifier(), rows, epochs=2, client=client)
    assert {each.name: each.kind for each in model.schema_} == {
        "colour": "category",
        "size": "number",
    }
    with pytest.raises(KeslerError, match="columns of text, or cells that are missing: give num"):
        fit(SoftmaxClassifier(), rows, client=client)


def test_svmlight_files(client, tmp_path):
    for number, lines in enumerate(["1 0:1 2:3\n2 1:1\n", "3 5:1\n1 0:2\n"]):
        (tmp_path / f"{number}.svm").write_text(lines)
    rows = Partitions.from_files(tmp_path, format="svmlight")
    model = learn(OnlineClassifier("multi", update="pa1"), rows, epochs=2, client=client)
    assert model.classes_.tolist() == [1, 2, 3] and model.n_features_in_ == 6


# ---- what is refused ----------------------------------------------------------------------------

FEW = (X_WINE[:4], Y_WINE[:4])


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ([FEW, (X_WINE[:4, :5], Y_WINE[:4])], "partition 1 has 5 features, but partition 0 13"),
        ([FEW, (sparse.csr_array(X_WINE[:4]), Y_WINE[:4])], "partition 1 has sparse rows, but"),
        ([FEW, (X_WINE[:4], Y_WINE[:3])], "partition 1 has 4 rows and 3 labels"),
        ([FEW, (X_WINE[:2], [1, None])], "label None is no class"),
        ([FEW, (X_WINE[:2] * np.inf, Y_WINE[:2])], "infinity"),
        ([FEW, (X_WINE[:2], ["a", "b"])], "cannot be ordered"),
        ([(X_WINE[:0], Y_WINE[:0])], "no partition has a row"),
    ],
)
def test_partitions_that_do_not_go_together(client, parts, sentence):
    """A worker's sentence is what the user reads."""
    for call in (learn, fit):
        estimator = OnlineClassifier() if call is learn else SoftmaxClassifier()
        with pytest.raises(KeslerError, match=sentence):
            call(estimator, Partitions.of(parts), client=client)


@pytest.mark.parametrize(
    ("learner", "sentence"),
    [
        (OnlineClassifier("multi", update="pa1", kernel="rbf"), "support vectors"),
        (Ensemble([OnlineClassifier(), OnlineClassifier("multi")]), "ensembles cannot be mixed"),
        (OnlineClassifier(update="hinge", preconditioner="coin-betting"), "wealth for each"),
        (OnlineClassifier("multi", update="pa1", half_life=100), "half_life needs an order"),
        (
            OnlineClassifier("multi", update="perceptron", link="exponential"),
            "no mean that follows from sums",
        ),
        (OnlineClassifier(update="pa1", uncertainty=True), "shards are learnt apart"),
        (OnlineClassifier(uncertainty="full"), "shards are learnt apart"),
        (OnlineClassifier(uncertainty="maybe"), "uncertainty='maybe' is unknown"),
        (SoftmaxClassifier(), "is not an online learner"),
    ],
)
def test_learners_that_cannot_be_mixed(client, learner, sentence):
    with pytest.raises(KeslerError, match=sentence):
        learn(learner, Partitions.of([FEW]), client=client)


def test_arguments_that_are_refused(client):
    rows = Partitions.of([FEW])
    with pytest.raises(KeslerError, match="epochs=0 must be"):
        learn(OnlineClassifier(), rows, epochs=0)
    with pytest.raises(KeslerError, match="mixing='mean' is unknown"):
        learn(OnlineClassifier(), rows, mixing="mean")
    with pytest.raises(KeslerError, match="cannot be fitted on partitions"):
        fit(OnlineClassifier(), rows, client=client)
    with pytest.raises(KeslerError, match="learns its candidates from all rows"):
        fit(ShareBoostClassifier(2, dictionary="stumps"), rows, client=client)
    with pytest.raises(KeslerError, match="separate weights for each class"):
        fit(SoftmaxClassifier(hypotheses="single"), rows, client=client)
    with pytest.raises(KeslerError, match="one class only"):
        fit(SoftmaxClassifier(), Partitions.of([(X_WINE[:2], [1, 1])]), client=client)
    with pytest.raises(KeslerError, match="there is no partition"):
        Partitions.of([])
    with pytest.raises(KeslerError, match="matches no file"):
        Partitions.from_files("nowhere/*.svm")


# ---- on processes -------------------------------------------------------------------------------


def test_processes_do_what_this_one_does(workers):
    """Rows may be those that Dask has; the client is the one that is there."""
    import dask

    parts = cut(X_WINE, Y_WINE, 3)
    lazy = [(dask.delayed(X), dask.delayed(y)) for X, y in parts]
    here, there = Partitions.of(parts), Partitions.of(lazy)
    learner, chooser = OnlineClassifier(), ShareBoostClassifier(1, dictionary="products")
    found, wanted = (learn(learner, there, epochs=2), learn(learner, here, epochs=2, client=Here()))
    np.testing.assert_allclose(
        found.decision_function(X_WINE), wanted.decision_function(X_WINE), rtol=1e-4, atol=1e-5
    )
    found, wanted = fit(chooser, there), fit(chooser, here, client=Here())
    assert found.support_.tolist() == wanted.support_.tolist()
    np.testing.assert_allclose(found.coef_, wanted.coef_, atol=1e-9)
    likely = SoftmaxClassifier(C=1e-3)
    found, wanted = fit(likely, there), fit(likely, here, client=Here())
    np.testing.assert_allclose(found.coef_, wanted.coef_, atol=1e-6)


def test_the_sentence_of_a_worker_is_what_the_user_reads(workers):
    rows = Partitions.of([FEW, (X_WINE[:2], [1, None])])
    with pytest.raises(KeslerError, match="label None is no class: leave out rows without"):
        learn(OnlineClassifier(), rows, client=workers)


def test_a_worker_that_dies_costs_time_alone(workers):
    """Killed in the middle: what comes out is the same to the last bit."""
    rows = Partitions.of(cut(X_WINE, Y_WINE, 3))

    def kill(given=None):
        os.kill(next(iter(workers.run(os.getpid).values())), signal.SIGKILL)

    learner, chooser = OnlineClassifier("multi", update="pa1"), ShareBoostClassifier(2)
    whole = learn(learner, rows, epochs=2, client=workers)
    survived = learn(learner, rows, epochs=2, client=workers, report=once(kill))
    np.testing.assert_array_equal(
        survived._learner.hypothesis_weights()[0], whole._learner.hypothesis_weights()[0]
    )
    whole = fit(chooser, rows, client=workers)
    timer = threading.Timer(0.3, kill)
    timer.start()
    survived = fit(chooser, rows, client=workers)
    timer.join()
    np.testing.assert_array_equal(survived.coef_, whole.coef_)
    assert survived.support_.tolist() == whole.support_.tolist()


def once(function):
    """Return a function that does what another does, the first time that it is called."""
    calls = iter([function])
    return lambda given: next(calls, lambda _: None)(given)


def test_the_size_of_a_stored_value_counts_each_array_once_also_in_cycles():
    part, whole = SimpleNamespace(array=np.zeros(3)), SimpleNamespace(kind=dict)
    part.whole, whole.parts = whole, [part, part]
    assert n_bytes(StoredValue(whole)) == 24
