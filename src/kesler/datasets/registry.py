"""The table of real sets: adding one is a row here and, if its files are new in kind, a parser."""

from __future__ import annotations

from functools import partial

from kesler.datasets import homes
from kesler.datasets.fetching import Home
from kesler.datasets.parsers import isolet, multilabel, questions, ranking, records, table
from kesler.datasets.source import Source

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
        # The number of a file in its folder counts the folder's messages: it betrays the folder.
        partial(records, label="folder", hidden=("n",)),
        "Bekkerman, McCallum and Huang (2004), enron_flat.tar.gz, folders of "
        f"{user} in the Enron corpus, https://www.cs.cmu.edu/~enron/",
        "none stated: real people's mail, released by the US regulator FERC; for research",
    )


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
        homes.MNIST,
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
        # Posts are numbered within their group, so the number tells the group.
        partial(records, label="group", hidden=("id",)),
        "Lang (1995), 20news-bydate, http://qwone.com/~jason/20Newsgroups/",
        UNSTATED,
        homes.NEWSGROUPS,
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
        homes.TREC,
    ),
    "ag_news": Source(
        ("text_multiclass/ag_news-test.jsonl.gz",),
        partial(records, label="label"),
        "test part of AG's news (Zhang, Zhao and LeCun, 2015; 1 world, 2 sports, 3 business, "
        "4 science), https://github.com/mhjabreel/CharCnn_Keras",
        UNSTATED,
        homes.AG_NEWS,
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
        home=homes.KEEL,
    ),
    "segment": _uci(
        "uci_misc/segment", "Brodley (1990)", "147/statlog+image+segmentation", home=homes.KEEL
    ),
    "optdigits": _uci(
        "uci_misc/optdigits",
        "Alpaydin and Kaynak (1998)",
        "80/optical+recognition+of+handwritten+digits",
        home=homes.KEEL,
    ),
    "movement_libras": _uci(
        "uci_misc/movement_libras", "Dias et al. (2009)", "181/libras+movement", home=homes.KEEL
    ),
    "led7digit": _uci(
        "uci_misc/led7digit", "Breiman et al. (1984)", "57/led+display+domain", home=homes.KEEL
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
            homes.CALIFORNIA if name == "california_housing" else None,
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
