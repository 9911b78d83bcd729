"""Suggestions of Omikuji for `subjects.py`, run by a Python that has it: PATH BEGINNING N_BEST."""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
import time
from pathlib import Path

import omikuji
from sklearn.feature_extraction.text import TfidfVectorizer

SETTINGS = {
    "Omikuji, Bonsai": {"cluster_balanced": False, "cluster_k": 100, "max_depth": 3},
    "Omikuji, Parabel": {},
}


def suggested(texts, sets, first, last, n_best, settings):
    """Learn the first documents; return suggestions for those up to `last`, and the seconds."""
    vectorizer = TfidfVectorizer()
    X, numbers = vectorizer.fit_transform(texts[:first]), {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.txt"
        lines = []
        for i, own in enumerate(sets[:first]):
            labels = ",".join(str(numbers.setdefault(label, len(numbers))) for label in own)
            row = X[i]
            row.sort_indices()
            entries = (f"{j}:{v:.7g}" for j, v in zip(row.indices, row.data, strict=True))
            lines.append(f"{labels} {' '.join(entries)}")
        header = f"{first} {X.shape[1]} {len(numbers)}"
        path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
        chosen = omikuji.Model.default_hyper_param()
        for name, value in settings.items():
            setattr(chosen, name, value)
        start = time.process_time()
        model = omikuji.Model.train_on_data(str(path), chosen, n_threads=1)
        seconds = time.process_time() - start
    labels, found = list(numbers), []
    for row in vectorizer.transform(texts[first:last]):
        pairs = list(zip(row.indices.tolist(), row.data.tolist(), strict=True))
        found.append([labels[i] for i, _ in model.predict(pairs, top_k=n_best)])
    return found, seconds


def main() -> None:
    """Print the suggestions of all settings as JSON."""
    path, first, n_best = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [each.rstrip("\n").split("\t") for each in lines]
    texts, sets = [text for text, _ in rows], [own.split() for _, own in rows]
    n, found = len(texts), {}
    for name, settings in SETTINGS.items():
        split, seconds = suggested(texts, sets, 4 * n // 5, n, n_best, settings)
        stream, start = [], first
        while start < n:
            stream += suggested(texts, sets, start, min(2 * start, n), n_best, settings)[0]
            start *= 2
        found[name] = {"split": split, "stream": stream, "seconds": seconds}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
