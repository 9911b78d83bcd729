"""Languages of paragraphs and of five words, beside py3langid and lingua.

    python benchmarks/languages.py

This needs KESLER_DATA and the packages py3langid and lingua-language-detector. The paragraphs are
those of the Universal Declaration of Human Rights in 528 languages and scripts. Kesler learns ten
of each by `train_supervised`, with nothing chosen and with the subwords of fastText's own
identification of languages; the peers come with models of the languages that they know. Asked are
the other paragraphs of these languages, as they are and cut to five words and 40 characters. Forms
of a language that a peer does not tell apart, such as those of Quechua or before and after a reform
of spelling, count as one, and those in another script than the usual one are left out. The script
writes benchmarks/results/languages.md.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sklearn.metrics import accuracy_score, f1_score

from fasttext_race import Rows, udhr, write
from kesler.fasttext import train_supervised

sys.path.append(str(Path(__file__).parents[1] / "papers"))
from report import Report, table
from script_arguments import script_parser

WORDS, CHARACTERS = 5, 40
MOST_BELOW = 5.0  # points of macro F1 that subwords may be below a peer
SETTINGS = {"nothing chosen": {}, "minn=2, maxn=4": {"minn": 2, "maxn": 4}}
SUBWORDS = "minn=2, maxn=4"
TWO_LETTERS = dict(
    pair.split(":")
    for pair in (
        "afr:af als:sq amh:am arb:ar azj:az bel:be ben:bn bos:bs bre:br bul:bg cat:ca "
        "ces:cs cmn:zh cym:cy dan:da deu:de dzo:dz ell:el eng:en epo:eo est:et eus:eu "
        "fao:fo fin:fi fra:fr fri:fy gla:gd gle:ga glg:gl guj:gu hat:ht hau:ha heb:he "
        "hin:hi hrv:hr hun:hu hye:hy ibo:ig ind:id isl:is ita:it jav:jv jpn:ja kan:kn "
        "kat:ka kaz:kk khk:mn khm:km kin:rw kir:ky kmr:ku kor:ko lao:lo lat:la lav:lv "
        "lin:ln lit:lt ltz:lb lug:lg mal:ml mar:mr mkd:mk mlt:mt mly:ms mri:mi mya:my "
        "nep:ne nld:nl nno:nn nob:no oci:oc pan:pa pbu:ps pes:fa plt:mg pol:pl por:pt "
        "qud:qu qug:qu qul:qu quy:qu quz:qu qva:qu qvc:qu qvh:qu qvm:qu qvn:qu qwh:qu "
        "qxa:qu qxn:qu qxu:qu ron:ro rus:ru san:sa sin:si slk:sk slv:sl sme:se sna:sn "
        "som:so sot:st spa:es srp:sr swe:sv swh:sw tam:ta tat:tt tel:te tgk:tg tgl:tl "
        "tha:th tsn:tn tso:ts tuk:tk tur:tr uig:ug ukr:uk urd:ur uzn:uz vie:vi wln:wa "
        "xho:xh yor:yo zul:zu"
    ).split()
)
"""The codes of the peers for those of the declarations; of other languages they are the same."""
OTHER_SCRIPTS = {
    *("azj_cyrl", "bos_cyrl", "jav_java", "mly_arab", "san_gran", "tuk_cyrl", "uig_latn"),
    *("uzn_cyrl", "vie_han"),
}
Ask = Callable[[Sequence[str]], list[str]]


@dataclass(frozen=True)
class Peer:
    """A program that knows languages: their codes, and its answers."""

    name: str
    codes: frozenset[str]
    ask: Ask


def code_of(language: str) -> str:
    """Return the code of the peers for that of a declaration."""
    plain = language if language in OTHER_SCRIPTS else language.split("_")[0].rstrip("2")
    return TWO_LETTERS.get(plain, plain)


def cut(text: str) -> str:
    """Return the beginning of a text."""
    return " ".join(text.split()[:WORDS])[:CHARACTERS]


def py3langid() -> Peer:
    """Return py3langid, with its model."""
    from py3langid import classify, rank

    codes = frozenset(code for code, _ in rank("a text"))
    return Peer("py3langid", codes, lambda texts: [classify(text)[0] for text in texts])


def lingua() -> Peer:
    """Return lingua, which knows Bokmål as "nb", in its more accurate mode."""
    from lingua import Language, LanguageDetectorBuilder

    def code(language: Language | None) -> str:
        found = language.iso_code_639_1.name.lower() if language else ""
        return "no" if found == "nb" else found

    builder = LanguageDetectorBuilder.from_all_languages()
    detect = builder.with_preloaded_language_models().build().detect_language_of
    codes = frozenset(map(code, Language.all()))
    return Peer("lingua", codes, lambda texts: [code(detect(text)) for text in texts])


def ours(rows: Rows, settings: dict[str, int]) -> Ask:
    """Return how a model answers that has learnt the rows."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "learnt.txt"
        write(path, rows, str)
        model = train_supervised(path, **settings)

    def ask(texts: Sequence[str]) -> list[str]:
        found, _ = model.predict([" ".join(text.split()) for text in texts])
        return [code_of(labels[0].removeprefix("__label__")) for labels in found]

    return ask


def known(rows: Rows, codes: Iterable[str]) -> Rows:
    """Return the rows whose languages have these codes."""
    return [(text, language) for text, language in rows if code_of(language) in codes]


def figures(ask: Ask, asked: Rows, form: Callable[[str], str]) -> list[float]:
    """Return accuracy and macro F1 in %, and microseconds of the processor for a text."""
    texts, right = [form(text) for text, _ in asked], [code_of(language) for _, language in asked]
    start = time.process_time()
    found = ask(texts)
    each = 1e6 * (time.process_time() - start) / len(texts)
    f1 = f1_score(right, found, labels=sorted({*right}), average="macro", zero_division=0)
    return [100 * accuracy_score(right, found), 100 * f1, each]


def compare(page: Report, peer: Peer, learnt: Rows, asked: Rows, of_all: dict[str, Ask]) -> None:
    """Add a table of the languages that a peer knows."""
    asked, own = known(asked, peer.codes), known(learnt, peer.codes)
    n = len({code_of(language) for _, language in asked})
    learners = {peer.name: peer.ask}
    learners |= {f"Kesler, {name}": ours(own, each) for name, each in SETTINGS.items()}
    learners |= {f"Kesler, {name}, 528 languages": ask for name, ask in of_all.items()}
    found = {
        name: [figures(ask, asked, form) for form in (str, cut)] for name, ask in learners.items()
    }
    head = ["", "accuracy", "macro F1", "us", "of 5 words: accuracy", "macro F1", "us"]
    rows = [
        [name, *(f"{v:.{d}f}" for each in pair for v, d in zip(each, (2, 2, 0), strict=True))]
        for name, pair in found.items()
    ]
    page.add(f"## {peer.name}: {n} languages, {len(asked):,} texts", table(head, rows))
    for i, form in enumerate(("paragraphs", "five words")):
        mine, other = found[f"Kesler, {SUBWORDS}"][i][1], found[peer.name][i][1]
        claim = f"{form}, {SUBWORDS}: macro F1 {mine:.2f}, {peer.name} {other:.2f}"
        page.check(f"{claim}: at most {MOST_BELOW:g} below", mine >= other - MOST_BELOW)


def main() -> int:
    """Run the comparison and write its page."""
    options = script_parser(__doc__, __file__).parse_args()
    page = Report("languages", "Languages of texts", options.results)
    page.add(ABOUT)
    split = udhr()
    of_all = {name: ours(split.learnt, each) for name, each in SETTINGS.items()}
    for peer in (py3langid(), lingua()):
        compare(page, peer, split.learnt, split.asked, of_all)
    return page.write()


ABOUT = f"""\
Paragraphs of the Universal Declaration of Human Rights, of which Kesler has learnt ten of each
language: other paragraphs of the same text, which the peers may or may not have seen. Kesler has
learnt the languages that the peer knows, or all 528, among which it then has to choose. Five words
are at most {CHARACTERS} characters. Figures are in %, and microseconds of the processor for a
text."""


if __name__ == "__main__":
    sys.exit(main())
