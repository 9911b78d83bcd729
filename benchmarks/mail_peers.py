"""What mail is filed by otherwise: naive Bayes, a model that is fitted again each night, threads.

Each function returns what it predicts of each message before it learns it, None for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.svm import LinearSVC

from enron import count_words
from kesler.mail.threads import Keys, Threads

Predictions = list[str | None]


def naive_bayes(texts: Sequence[str], folders: Sequence[str]) -> Predictions:
    """Predict by multinomial naive Bayes on counts of words, with add-one smoothing."""
    rows, classes = count_words(texts), list(dict.fromkeys(folders))
    n_of = np.zeros((len(classes), rows.shape[1]))
    prior, known, seen, found = np.zeros(len(classes)), 0, np.zeros(rows.shape[1], bool), []
    numbers = {folder: k for k, folder in enumerate(classes)}
    for i, folder in enumerate(folders):
        row = slice(rows.indptr[i], rows.indptr[i + 1])
        words, counts = rows.indices[row], rows.data[row]
        seen[words] = True
        each, total = n_of[:known, words] + 1, n_of[:known].sum(axis=1) + seen.sum()
        scores = np.log(prior[:known]) + (np.log(each) - np.log(total)[:, None]) @ counts
        found.append(classes[int(scores.argmax())] if known else None)
        known = max(known, numbers[folder] + 1)
        n_of[numbers[folder], words] += counts
        prior[numbers[folder]] += 1
    return found


def nightly(texts: Sequence[str], folders: Sequence[str], days: Sequence[int]) -> Predictions:
    """Predict by TF-IDF and LinearSVC, fitted at the start of each day to all before it."""
    found: Predictions = []
    counts = sparse.csr_matrix(count_words(texts))
    starts = [i for i, day in enumerate(days) if not i or day != days[i - 1]]
    for start, end in zip(starts, [*starts[1:], len(days)], strict=True):
        known = sorted(set(folders[:start]))
        if len(known) < 2:
            found += [known[0] if known else None] * (end - start)
            continue
        before = counts[:start]
        words = np.flatnonzero(before.getnnz(axis=0))  # others are unknown to a vectorizer
        weights = TfidfTransformer()
        model = LinearSVC().fit(weights.fit_transform(before[:, words]), folders[:start])
        found += model.predict(weights.transform(counts[start:end][:, words])).tolist()
    return found


def threads_alone(keys: Sequence[Keys], folders: Sequence[str]) -> Predictions:
    """Predict the folder of the thread, else of the sender's last message, else the last folder."""
    threads, last, found = Threads(), None, []
    for each, folder in zip(keys, folders, strict=True):
        known = threads.found(each)
        found.append(known.get("thread") or known.get("sender") or last)
        threads.learn(each, folder)
        last = folder
    return found
