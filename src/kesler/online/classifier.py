"""OnlineClassifier: an online multiclass classifier, as a scikit-learn estimator."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from kesler.data.inputs import label_list, require_lengths
from kesler.data.labels import NEW
from kesler.errors import keep_settings
from kesler.hypotheses import Part
from kesler.kernels.mercer import MercerKernel
from kesler.learner.classes import ClassTable, OnNewClass
from kesler.learner.support_vectors import Limit
from kesler.learner.uncertainty import Use
from kesler.links.link import Link
from kesler.maps.feature_map import FeatureMap
from kesler.online.answers import ClassAnswer
from kesler.online.base import OnlineLearner
from kesler.online.contract import between_trials, tags_of_classifier
from kesler.online.making import Maker
from kesler.online.uncertain import assessed_one, assessed_rows, confident
from kesler.preconditioners import Preconditioner
from kesler.preprocessing import Preprocessing
from kesler.preprocessing.replay import Replay
from kesler.updates.rule import UpdateRule

if TYPE_CHECKING:
    from kesler.candidates import Candidates
    from kesler.costs import Costs
    from kesler.queries.query import Query
    from kesler.trees.paths import PathAnswer
    from kesler.trees.tree import Given


class OnlineClassifier(OnlineLearner):
    r"""A multiclass classifier that learns online and adds classes as they appear.

    The score of class r is the sum over the hypotheses t that contain it,

    .. math:: h(x, r) = \sum_{t \ni r} \langle w^t, \phi^t(x, r) \rangle, \quad
        \hat y = \arg\max_r h(x, r)

    over the classes seen so far. Each row updates the hypotheses with the step sizes of an update
    rule, :math:`w^t \mathrel{+}= \sum_s \alpha_s (\phi^t(x, y) - \phi^t(x, s))`. Parameter
    `on_new_class` defines the effect of the first row of a class.

    Parameters
    ----------
    hypotheses : "auto", "multi", "single", "hybrid", "sub-experts" or list of parts, \
default "auto"
        How classes share weights: one vector for each class, one vector for all classes over a
        feature map, both (the scores are summed), one weight for each sub-expert that rates the
        classes (:class:`~kesler.maps.SubExperts`), or any list of
        :class:`~kesler.hypotheses.PerClass`, :class:`~kesler.hypotheses.Shared` and
        :class:`~kesler.hypotheses.Grouped`. Names can be combined: "multi+sub-experts".
    feature_map : "auto", "product", "product-mean", "frequency", "contrast", "distance", \
"difference", "gaussian-ratio" or map, default "auto"
        The feature map of the shared vector; not used by "multi". "auto" selects "frequency" if
        the first rows are sparse or named, "distance" if they are dense, and "difference" if they
        are dense and there is a kernel.
    update : "perceptron", "margin-perceptron", "pa", "pa1", "pa2", "simperc", "conproj", \
"simproj", "mira", "hinge", "softmax", "logistic", "ovr-squared", "ovr-logistic", "ovr-hinge", \
"least-squares", "arow", "scw1", "scw2", "ensemble", "auto", rule or list of learners, \
default "auto"
        The update rule, which computes the step sizes. "auto" selects the settings described
        in Notes. With a named rule, the other parameters left at "auto" follow the source of
        the rule: hybrid hypotheses, no preprocessing, first rows of classes that only register the
        class, and no intercept. A name stands for the rule of :mod:`kesler.updates`, with C = 1
        unless `C` is given; smaller C (0.001 to 0.1) is more robust to noise, especially on text.
        :class:`~kesler.forests.ExtraTrees` counts rows in trees in place of weights. A list of
        learners, each with its own settings, is combined as in :class:`~kesler.Ensemble`;
        "ensemble" stands for the default list.
    link : "linear", "exponential", "positive", "p-norm" or link, default "linear"
        The link function of the updates: additive updates, multiplicative updates (with weights of
        either sign, or positive weights only), p-norm updates between the two, or any link of
        :mod:`kesler.links`. "exponential" makes fewer mistakes if few of many features are
        relevant.
    averaged : bool, default False
        Whether to predict with the mean of the weights after each row, which is more robust to
        noise than the last weights. Learning does not depend on it. A prediction costs up to twice
        as much, as the means of the weights that it reads are computed first. With a link, these
        are the weights that follow from the sums; over a kernel, the means of the coefficients,
        without a `budget` that removes support vectors. Not with `half_life`.
    costs : mapping {(right, wrong): cost}, callable, Costs or None, default None
        The cost of predicting one class where another is right, 1 for pairs not given. Rules with
        margins require a margin in proportion to the cost, so that expensive confusions become
        rarer. ``Costs(..., "steps")`` limits the steps of projections by costs instead; see
        :class:`~kesler.costs.Costs`.
    intercept : float or "auto", default "auto"
        The value of a constant feature added to every row, 0 for none. With a hypothesis for each
        class its weights are the intercepts of the classes, which learn how common each is; with
        sub-experts they are Mesterharm's threshold sub-experts. With larger values intercepts are
        learnt faster. "auto" is 1 for the default learners of texts and of measurements, and 0
        with a named update rule, with a kernel, in trees, and for the words of tables.
    kernel : "rbf", "polynomial", "linear", kernel or None, default None
        A Mercer kernel of :mod:`kesler.kernels` or the user's own (:func:`~kesler.mercer_kernel`):
        hypotheses are then sums of K over the rows, or feature maps of rows, of their updates,
        :math:`h(x, r) = \sum_j \beta_{j,r} K(\phi_j, \phi(x, r))`. None for weight vectors.
    sigma : "auto" or float above 0, default "auto"
        The variance of "rbf", :math:`K(x, z) = e^{-\|x - z\|^2 / (2 \sigma)}`; other
        kernels ignore it, and without a kernel it is refused. Larger values give smoother
        boundaries. "auto" is 0.04 times the median squared distance between rows seen so far.
    budget : int, :class:`~kesler.budgets.Budget` or None, default None
        The maximum number of support vectors of each part of the hypotheses; beyond a number the
        oldest one is removed (Cavallanti, Cesa-Bianchi and Gentile 2007, least recent), and a
        `Budget` names another policy, such as "projectron", which makes far fewer mistakes. Larger
        values mean fewer mistakes and slower predictions; None means no limit.
    preconditioner : "auto", "euclidean", "adagrad", "distance-adagrad", "scale-free", \
"scale-free-adagrad", "confidence", "coin-betting", "second-order" or preconditioner, \
default "auto"
        The step size of each weight: the same for all weights, smaller where gradients were large,
        relative to the largest value of the feature, smaller with growing confidence in the
        weight, or found without a parameter, where eta and C have no effect ("distance-adagrad",
        and "coin-betting" for rules that follow a gradient); see :mod:`kesler.preconditioners`, and
        :func:`kesler.preconditioner` for user-defined ones. "auto" is the preconditioner of the
        rule if it has one, or "euclidean".
    on_new_class : "register", "learn", "inherit", "unseen" or "auto", default "auto"
        The effect of the first row of a class: "register" adds the class without an update, as the
        theorems assume; "learn" also learns from the row; "inherit" learns from it with the
        weights of a virtual class, which is wrong on every row and never predicted, as initial
        weights; "unseen" learns from it with the ratings of unseen classes by sub-experts, see
        :class:`~kesler.LinearMax`. See :data:`~kesler.learner.classes.OnNewClass`.
    preprocessing : "scale", "counts", "idf", "information", "z-scores", "ranges", "bins", \
"random-fourier", "pairs", "auto", preprocessing, list or None, default "auto"
        The transformation of each row before its trial, with running statistics of the rows before
        it only; see :mod:`kesler.preprocessing`. "counts", "idf" and "information" are for words,
        "z-scores" for measurements with different units, "ranges" for measurements with a kernel;
        "bins", "random-fourier" and "pairs" replace measurements by features over which linear
        hypotheses are other functions of them; a list concatenates such blocks. "scale" selects
        "counts" if the first rows are sparse or named; if they are dense, it selects "ranges" for
        a kernel without feature maps and "z-scores" otherwise. None does not transform rows.
    half_life : float, 1 or more, or None, default None
        The number of rows after which the influence of a row has decayed by half, for streams with
        drift. With larger values the model forgets more slowly: use thousands for rare features
        such as words, hundreds for others; an :class:`~kesler.Ensemble` can combine learners with
        different values. None means no decay. Linear link only, without averaging.
    replay : int, 0 or more, or Replay, default 0
        The number of earlier rows that are learnt again after each new row, drawn from a reservoir
        of 1,000 rows that is part of the model; for another size or seed,
        :class:`~kesler.preprocessing.Replay`. Larger values learn more from few rows, and each
        costs as much as a row. Rows learnt again are not counted, and are not added to statistics
        of rows; the step sizes of preconditioners count them. Without kernel, sub-experts,
        `candidates` and `memory_limit`. In an :class:`~kesler.Ensemble`, each learner has its own;
        with the default settings, the learners replay that step along gradients.
    candidates : "auto", int of 2 or more, Candidates or None, default "auto"
        The number of classes that each row is compared with where there are more: those whose rows
        had its features, see :class:`~kesler.candidates.Candidates`. Larger values find the right
        class more often, and cost time in proportion. "auto" compares all of up to 128 classes,
        and 64 of more; None compares all. For the default learner of texts and other rows that
        list non-zeros.
    memory_limit : int, text such as "200 MB", or None, default None
        The maximum number of bytes that the model holds, for streams of ever new words. If it holds
        more before row 256, 512, ..., features are dropped until three quarters are left: those of
        the smallest product of the number of rows that had them, in which older rows count less,
        and their largest weight. A dropped word is new when it comes again, and `n_dropped_` counts
        it. Classes are kept. With larger values fewer words are forgotten. For texts, mappings of
        names and tables, without a kernel, and not for ensembles. None means no limit.
    epochs : "auto" or int, 1 or more, default "auto"
        The number of times that `fit` learns all rows. Larger values fit the rows more closely, and
        each pass beyond the first costs as much as the first, of the default ensemble about an
        eighth. "auto" is 10 for ensembles that learn in a random order, as the default does with
        measurements (9 to 2 for more than 100,000 rows, and 2 for texts with vectors), else 1. Of
        ensembles, only members that step along gradients learn in further passes: the combination,
        trees, probabilities, uncertainty and `n_trials_` remain those of the first pass; of others
        `n_trials_` counts every pass, and uncertainty the first. Trees alone would count each row
        again, and refuse 2 or more. `partial_fit` and `learn_one` learn each row once.
    shuffle : "auto", True or False, default "auto"
        Whether `fit` learns rows in a random order, another one at each pass, instead of the order
        given. "auto" does so unless an update rule is named, whose source knows an order, or
        `half_life` or `memory_limit` is given. Shuffled rows are held in memory once more, as
        float32. `partial_fit` and `learn_one` keep the order.
    random_state : int, 0 or more, default 0
        The seed of the orders of `shuffle`; the same seed gives the same model.
    class_weight : mapping {label: weight}, "balanced" or None, default None
        What the sample weights of the rows of each class are multiplied by; a class that is not
        named has the weight 1. Weights are between 1/1,048,576 and 1,048,576; with larger ones a
        class is predicted more often. "balanced" is n_rows / (n_classes * n_rows of the class), for
        `fit` only: `partial_fit` and `learn_one`, which do not know the rows to come, refuse it.
        With weights, `learn_one` takes the time of a batch of one row.
    C, eta, delta, r : float or None, default None
        The parameters of a rule that is named by `update`, as in :mod:`kesler.updates`; None for
        the default. In searches they may also be written ``update__C``, as for rule objects.
    columns : "auto", mapping of names to kinds, or None, default "auto"
        The kinds of the columns of a table: "text", "category", "number", "date", "vector",
        "tags", "sequence" (of DNA or proteins), "identifier" or "ignore"; with options, a mapping
        such as ``{"kind": "text", "features": "subwords"}`` ("words", "characters" or "subwords"),
        ``{"kind": "text", "ngrams": 2, "chars": (3, 5)}``, ``{"kind": "text", "subwords": (3, 6)}``
        or ``{"kind": "sequence", "k": 7, "reverse_complement": True}``. Kinds that are not
        given are inferred from the first 50 rows, and `schema_` reports them. "auto" infers
        all kinds if the first rows hold anything but numbers; mappings of the same numbers
        in most rows are learnt as an array, by learners that take missing values or need
        every feature, and other mappings as words. With None, rows are numbers, and
        mappings words. With a mapping, which may be empty, rows of numbers are a table as
        well.
    on_mismatch : "missing" or "raise", default "missing"
        The effect of a cell that its column cannot hold: a missing cell, which `schema_` counts and
        the first of which in a column is a `MismatchWarning`; or an error.
    vectors : file, function or None, default None
        Word vectors that have been learnt from other texts, so that words that no row has had yet
        help: the vectors of all texts are learnt by a further member of the ensemble that the
        default is then. A file holds lines of a word and its numbers (``.vec`` or ``.txt``, as
        those of GloVe, word2vec and fastText, compressed or not), or is a ``.npz`` of the arrays
        ``words`` and ``vectors``, or a ``.npy`` beside a ``.txt`` with a word in each line; the
        vector of a text is the mean of those of its words, of length 1. A function returns an
        array with a row for each of a list of texts. Columns of lists of numbers are learnt in the
        same way without this parameter. It needs the default `update`, or "ensemble"; a row costs
        O(k length) more, of k classes.
    uncertainty : "auto", True, "full" or False, default "auto"
        Whether the probability of a new class, the confidence of predictions and prediction sets
        are learnt, as part of the model: True costs O(k) more for each row of k classes. "auto"
        does so unless an update rule is named. "full", which "auto" is where rows have vectors,
        also remembers the last 1,000 rows, whose distances are the best evidence of a new class
        among measurements, and costs O(1,000 n_features) more; for rows that list only non-zeros
        it is the same as True. Every row counts once, whatever its sample weight. See
        :mod:`kesler.learner.uncertainty`.
    tree : mapping {child: parent}, text, callable, Tree or None, default None
        A tree of classes (:class:`~kesler.trees.Tree`): hypotheses of its nodes, unless each class
        is learnt against the rest, and its distances as costs if the rule has a margin and `costs`
        is None. Gradients without a margin, such as the default, predict the class of the least
        expected distance. `hang` places later classes.
    ranks : str or None, default None
        What separates the names of labels that are paths, such as ";" in
        ``k__Fungi;p__Ascomycota;g__Tuber``. Then each rank above the last has a learner of the same
        settings, which learns the labels that are cut behind its names, and
        `predict_path` combines all: classes with a row or two learn from the others of their genus.
        A row costs as much again at each rank. `predict` and `predict_proba` remain those of the
        whole labels.
    label_budget : float above 0, at most 1, rule or None, default None
        Which rows `query_one` asks about: the share of the rows whose label is asked for, those
        about which the doubt is largest (:class:`~kesler.queries.LabelBudget`), or a rule of
        :mod:`kesler.queries`. With larger values more is learnt. It has no effect on `fit`,
        `partial_fit` and `learn_one`, which learn every row. None asks about no row.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels seen so far or declared as `classes` of `partial_fit`, sorted.
    coef_, intercept_ : float32 arrays of shape (n_classes, n_features) and (n_classes,)
        The weights of "multi" hypotheses without preprocessing; (1, n_features) and (1,) for two
        classes.
    n_trials_, n_mistakes_ : int
        Number of rows learnt from, and number of rows of a known class for which another class was
        predicted before the target was used (progressive validation: one pass over new data is an
        unbiased test).
    n_imperfect_ : int
        Number of rows of a known class that another class outscored or equalled: the trials that
        Theorem 1 of Amit et al. (2006) bounds. Not of ensembles.
    feature_map_ : FeatureMap or None
        The feature map in use, None for "multi".
    n_support_vectors_ : list of int
        With a kernel, the number of support vectors of each part of the hypotheses; else empty.
    sigma_ : float or None
        The current value of sigma="auto".
    preprocessing_ : Preprocessing or None
        The preprocessing in use.
    resolved_ : OnlineClassifier
        An unfitted estimator in which every default has been replaced by the value in use.
    schema_ : Schema or None
        The columns of the table that the model learns from, printed as a table; None if its rows
        are numbers.
    n_features_in_, feature_names_in_
        As in scikit-learn; not set when learning from named features, whose number grows.

    Raises
    ------
    KeslerError
        If an argument is unknown, a label cannot be ordered among the others, or a row contains NaN
        or infinity, has the wrong number of features, or is sparse while the feature map is not
        zero at zero. The model is then unchanged.

    Notes
    -----
    Parameters left at "auto" depend on the kind of the first rows
    (:mod:`kesler.online.defaults`). If rows list only non-zeros, such as words, the defaults are:
    damped counts, weighed by what each word has said of the classes, and rows normalised to length
    1; one-vs-rest hinge loss with the AdaGrad preconditioner and steps that never overshoot; one
    hypothesis for each class, with an intercept, and two for all classes, over the relative and the
    plain contrast of word frequencies; of short texts also pairs of words and runs of characters,
    of long ones the words of the beginning, see `fit`.

    If rows list every feature, the default is an ensemble of five learners: softmax with AdaGrad
    over z-scores, bins and pairs of bins; least squares with the second-order preconditioner over
    random Fourier features; softmax by small steps over z-scores; an RBF kernel of at most 1,000
    rows; and :class:`~kesler.forests.ExtraTrees`. Like every ensemble by fixed share it also learns
    whether the last class comes again, see :class:`~kesler.Ensemble`. A parameter that is given
    applies to each learner for which it means something: to trees none does, `half_life` to those
    with weights, and `replay` to those that step along gradients.
    One that chooses another kind of learner, as `kernel`, `link`, `costs`, `tree`, `feature_map`,
    `preconditioner`, hypotheses over a map and blocks of features do, leaves a single learner, the
    first, with random features in place of pairs, and with a feature map z-scores only; `resolved_`
    says which learner is in use. A parameter without effect is refused. All learn from the first
    row of a class.

    `benchmarks/results/defaults.md` compares the mistakes of these settings with tuned ones, and
    `benchmarks/results/texts.md` the parts of those for words.

    With `half_life` the stored weights and sums decay after each row, before the row is added:

    .. math:: w \leftarrow b + \gamma (w - b), \quad S \leftarrow \gamma S + s_t, \quad
        \gamma = 2^{-1 / \text{half\_life}}

    for weights with initial value b and for the sums S of class statistics, preconditioners and
    preprocessing. With :class:`~kesler.preconditioners.SecondOrder`, the second moments decay in
    place of the weights. First instances and largest values of features do not decay, nor do
    probabilities, which have their own discounts. The decay is applied to a common scale: a row
    costs O(k) more, and every 20 half-lives all stored values are rescaled once.

    Learning row by row, in batches of any size, or all at once gives the same weights bit for bit.
    A row costs O(nnz k) for k classes: about 1 us with 80 non-zeros and 20 classes. Memory is
    4 bytes for each feature and hypothesis, and with a map 4 more for each feature and class
    (twice for a mean, 28 bytes under "gaussian-ratio"), both rounded up to 16.
    `sample_weight` is 0 or between 1/1,048,576 and 1,048,576: it multiplies C, or the Perceptron's
    step size ("pa" has neither), and the weight of the row in the statistics of its class; a row of
    weight 0 is skipped. Values are stored as float32. The class statistics of feature maps are not
    updated further once the sample weights of a class sum to more than 16,777,216. A step that
    float32 cannot hold is skipped; the error is raised after the other rows have been learnt.

    References
    ----------
    Fink, Shalev-Shwartz, Singer and Ullman (2006); Amit, Shalev-Shwartz and Singer (2006); Crammer
    and Singer (2003); Crammer, Dekel, Keshet, Shalev-Shwartz and Singer (2006); Lin (1992), for
    replay, and Vitter (1985), for its reservoir.

    Examples
    --------
    >>> from kesler import OnlineClassifier
    >>> mail = OnlineClassifier(update="perceptron")
    >>> for words, folder in [("win cash", "spam"), ("team lunch", "work"), ("cash prize", "spam")]:
    ...     mail = mail.learn_one(dict.fromkeys(words.split(), 1.0), folder)
    >>> mail.predict_one({"cash": 1.0}), mail.n_trials_, mail.classes_.tolist()
    ('spam', 3, ['spam', 'work'])
    """

    answer: ClassVar[ClassAnswer] = ClassAnswer()
    _maker: ClassVar[Maker] = Maker(answer)

    def __init__(
        self,
        hypotheses: str | Part | list[Part] = "auto",
        feature_map: str | FeatureMap = "auto",
        update: str | UpdateRule | list[OnlineClassifier] = "auto",
        link: str | Link = "linear",
        averaged: bool = False,
        costs: Mapping[Any, float] | Callable[[Any, Any], float] | Costs | None = None,
        intercept: float | str = "auto",
        kernel: str | MercerKernel | None = None,
        sigma: float | Literal["auto"] = "auto",
        budget: Limit = None,
        preconditioner: str | Preconditioner = "auto",
        on_new_class: OnNewClass | str = "auto",
        preprocessing: str | Preprocessing | None = "auto",
        half_life: float | None = None,
        replay: int | Replay = 0,
        candidates: int | str | Candidates | None = "auto",
        memory_limit: int | str | None = None,
        epochs: int | str = "auto",
        shuffle: bool | str = "auto",
        random_state: int = 0,
        class_weight: Mapping[Any, float] | str | None = None,
        C: float | None = None,
        eta: float | None = None,
        delta: float | None = None,
        r: float | None = None,
        columns: Mapping[str, Any] | str | None = "auto",
        on_mismatch: str = "missing",
        vectors: str | os.PathLike[str] | Callable[[list[str]], Any] | None = None,
        uncertainty: Use = "auto",
        tree: Given | None = None,
        ranks: str | None = None,
        label_budget: float | Query | None = None,
    ) -> None:
        keep_settings(self, locals())

    # ---- predictions ------------------------------------------------------------------------

    @between_trials
    def predict(self, X: Any, min_confidence: float | None = None) -> npt.NDArray[Any]:
        """Return the class of highest score of each row; ties go to the class seen first.

        Parameters
        ----------
        X : rows as in `fit`; features not seen before have the initial weights.
        min_confidence : float from 0 to 1 or None, default None
            Rows whose `confidence` is lower have the prediction None. Larger values answer fewer
            rows, with fewer mistakes; see `threshold_for` of the results of
            :func:`~kesler.progressive_validate`. None answers all.

        Returns
        -------
        Array of shape (n_rows,) of labels; of objects with `min_confidence`.
        """
        if min_confidence is not None:
            return confident(self, X, min_confidence)
        learner = self._fitted()
        codes = [learner.predict(rows) for rows in self._input.rows_to_score(self, X)]
        labels: npt.NDArray[Any] = learner.classes.by_code[np.concatenate(codes)]
        return labels

    @property
    def candidate_recall_(self) -> float:
        """The share of rows whose class was a candidate, of those of known classes; 1 before any.

        It counts the rows since there are more classes than each row is compared with.
        """
        comparing = self._fitted().comparing
        return 1.0 if comparing is None else comparing.recall

    @between_trials
    def decision_function(self, X: Any) -> npt.NDArray[np.float32]:
        """Return the score of each class, in the order of `classes_`.

        Returns
        -------
        Array of shape (n_rows, n_classes); for two classes, of shape (n_rows,): the score of
        classes_[1] minus that of classes_[0]. The score of a declared class is -inf before its
        first row, as such a class is never predicted.
        """
        scores = self._in_columns(self._scores(X), -np.inf)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    @between_trials
    def predict_proba(self, X: Any, new: bool = False) -> npt.NDArray[np.float64]:
        """Return the probability of each class, in the order of `classes_`.

        The probabilities are the softmax of the scores at a temperature that is learnt online, from
        each target before the weights are updated; see :mod:`kesler.learner.calibration`. A
        declared class has the probability 0 before its first row. The class that `predict` returns
        has the highest probability.

        Parameters
        ----------
        X : rows as in `predict`.
        new : bool, default False
            Whether a last column holds the probability that the class of a row has not been seen
            yet, learnt online from how often new classes have come and from how well the row fits
            the known ones. The others are multiplied by one minus it. Uncertainty must be
            estimated.

        Returns
        -------
        Array of shape (n_rows, n_classes), or of one column more; each row sums to 1.

        Raises
        ------
        KeslerError
            If that is more than 2^29 numbers, 4 GiB: `predict_top` returns the most probable.
        """
        if new:
            pieces = (assessed_rows(self, rows) for rows in self._input.few_rows_to_score(self, X))
            said = np.concatenate([each.with_new for piece in pieces for each in piece])
            return np.column_stack([self._in_columns(said[:, :-1], 0.0), said[:, -1:]])
        learner = self._fitted()
        found = [learner.probabilities(rows) for rows in self._input.few_rows_to_score(self, X)]
        probabilities: npt.NDArray[np.float64] = self._in_columns(np.concatenate(found), 0.0)
        return probabilities

    @property
    def mistakes_of_ranks_(self) -> list[int]:
        """Number of mistakes at each rank of labels that are paths, from the first (`ranks`)."""
        learner = self._fitted()
        above = [] if learner.ranks is None else learner.ranks.learners
        return [each.n_mistakes for each in (*above, learner)]

    @between_trials
    def predict_path(
        self, X: Any, min_confidence: float = 0.9, separator: str | None = None
    ) -> list[PathAnswer]:
        r"""Return for each row the deepest node that is sure enough, where labels are paths.

        The probability of a node v at depth d, such as a genus, is the sum over the classes below,

        .. math:: P(v \mid x) = (1 - p_{new, d}) \sum_{r \text{ below } v} p(r \mid x), \quad
            p_{new, d} = p_{new} \, \frac{k_d / k + |\{r \in S : n_{r, d} = 1\}|}{1 + |S|}

        From the root, the path goes to the most probable node below, and the answer is its last
        node of at least the probability `min_confidence`. That a class is new
        (:data:`kesler.NEW`) is no class of the sums: a new species may be of a known genus. The
        second formula is the probability that a path is new down to a rank: of the classes S of one
        row, each new when its row came, those count whose node at depth d no other row has (n = 1),
        and in advance, as one class, the number of nodes at depth d for each of the k classes.
        Without estimates of uncertainty it is 0: all paths are taken for known.

        If the ranks were learnt (parameter `ranks`), with :math:`q_d` the probabilities of the
        learner of rank d and :math:`m = q` at the last,

        .. math:: m_d(v) \propto \sqrt{q_d(v) \sum_{u \text{ below } v} m_{d+1}(u)}, \quad
            P(v \mid x) = (1 - p_{new, d}) \pi_d(v), \quad \pi_d(v) = \pi_{d-1}(a)
            \frac{m_d(v)}{\sum_{u \text{ below } a} m_d(u)}

        where a is the node above v; :math:`p_{new, d}` is the estimate of the learner of the rank,
        at least that of the rank above it.

        Parameters
        ----------
        X : rows as in `predict`.
        min_confidence : float from 0 to 1, default 0.9
            Larger values stop at higher ranks, with fewer mistakes. With 0, paths are followed to
            their ends.
        separator : str or None, default None
            What separates the names of a label; None is that of `ranks`, or ";". Paths may differ
            in depth; empty ranks such as ``s__`` at the end of a label end its path. Equal names on
            different paths are different nodes.

        Returns
        -------
        A :class:`~kesler.trees.PathAnswer` for each row: the path, "" if no rank is sure enough,
        its probability, those of all nodes of the most probable path, and P(new) at their ranks.

        Raises
        ------
        KeslerError
            If a label is no path, an argument is out of its range, or the separator is not that of
            `ranks`.

        Notes
        -----
        A row costs O(nodes) besides its scores.

        References
        ----------
        Good (1953), the frequency of what is new; Bokulich et al. (2018), for answers that stop at
        a rank.

        Examples
        --------
        >>> from kesler import OnlineClassifier
        >>> rows = [{"cap": 1, "red": 1}, {"cap": 1, "brown": 1}, {"crust": 1}] * 50
        >>> names = ["fungi;agarics;amanita", "fungi;agarics;bolete", "fungi;rust"] * 50
        >>> model = OnlineClassifier().fit(rows, names)
        >>> [each.path for each in model.predict_path([{"cap": 1}, {"crust": 1}], 0.8)]
        ['fungi;agarics', 'fungi;rust']
        """
        from kesler.online.backing_off import path_answers

        blocks = self._input.rows_to_score(self, X)
        return [*path_answers(self._fitted(), blocks, min_confidence, separator)]

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The labels seen so far or declared as `classes`, sorted: the columns of predictions."""
        return self._columns().in_order

    def _columns(self) -> ClassTable:
        """Return the classes seen, and after them those that have only been declared."""
        known = self._fitted().classes
        declared = [label for label in self._declared if label not in known]
        if not declared:
            return known
        return ClassTable([*known.labels, *declared], known.n_virtual, known.declared)

    def _in_columns(self, found: npt.NDArray[Any], unseen: float) -> npt.NDArray[Any]:
        """Return values of classes by number in the order of `classes_`."""
        columns = self._columns()
        beyond = len(columns) - found.shape[1]
        if beyond:
            found = np.pad(found, ((0, 0), (0, beyond)), constant_values=unseen)
        return found[:, columns.order]

    # ---- events -----------------------------------------------------------------------------

    def predict_proba_one(self, x: Any, new: bool = False) -> dict[Any, float]:
        """Return the probability of each label for one row, as in `learn_one`.

        With `new`, that of a class that has not been seen yet has the key :data:`kesler.NEW`.
        """
        learner, declared = self._fitted(), dict.fromkeys(self._declared, 0.0)
        with learner.lock:
            labels = learner.classes.labels
            if new:
                known = assessed_one(self, x).with_new[0].tolist()
                return {**declared, **dict(zip([*labels, NEW], known, strict=True))}
            found = learner.probabilities(self._input.row_to_score(self, x, learner))[0].tolist()
            return {**declared, **dict(zip(labels, found, strict=True))}

    def predict_path_one(
        self, x: Any, min_confidence: float = 0.9, separator: str | None = None
    ) -> PathAnswer:
        """Return the answer of `predict_path` for one row, given as in `learn_one`."""
        from kesler.online.backing_off import path_answers

        learner = self._fitted()
        with learner.lock:
            row = self._input.row_to_score(self, x, learner)
            return next(path_answers(learner, [row], min_confidence, separator))

    # ---- attributes -------------------------------------------------------------------------

    @property
    def coef_(self) -> npt.NDArray[np.float32]:
        """The weights of the features, of shape (n_classes, n_features), ordered as `classes_`.

        For two classes they have one row, the weights of classes_[1] minus those of classes_[0], as
        in scikit-learn. Up to rounding, ``decision_function(X) == X @ coef_.T + intercept_``.
        They exist where scores are such sums: for "multi" hypotheses, without kernel, preprocessing
        and ensemble. Each access computes them, in the time of scoring `n_features` rows.
        """
        from kesler.online.linear_weights import weights_and_intercepts

        weights = self._in_columns(weights_and_intercepts(self._fitted(), "coef_")[0], 0.0)
        return (weights[:, 1:] - weights[:, :1]).T if weights.shape[1] == 2 else weights.T

    @property
    def intercept_(self) -> npt.NDArray[np.float32]:
        """The scores of a row of zeros, of shape (n_classes,), or (1,) for two classes.

        They exist where `coef_` does. That of a declared class is -inf before its first row.
        """
        from kesler.online.linear_weights import weights_and_intercepts

        found = weights_and_intercepts(self._fitted(), "intercept_")[1]
        scores = self._in_columns(found, -np.inf)[0]
        return scores[1:] - scores[:1] if len(scores) == 2 else scores

    @property
    def seconds_in_threads_(self) -> float:
        """Processor time of the threads that an ensemble starts for large blocks, in seconds."""
        return 0.0 if self._learner is None else self._learner.seconds_in_threads

    # ---- the interface of scikit-learn ------------------------------------------------------

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows, by their weights, whose class is predicted right."""
        labels, predicted = label_list(y), self.predict(X).tolist()
        require_lengths(len(predicted), labels)
        right = [each == label for each, label in zip(predicted, labels, strict=True)]
        return float(np.average(right, weights=sample_weight))

    def __sklearn_tags__(self) -> Any:
        return tags_of_classifier(super().__sklearn_tags__())
