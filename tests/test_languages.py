"""Texts of many languages: their words, and streams in them that are learnt."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDClassifier

from kesler import OnlineClassifier, progressive_validate
from kesler.compiled.trial.events import READS_MAPPINGS
from kesler.data.rows import Vocabulary
from kesler.data.texts import counted, tokenize
from kesler.learner.events import Event

TOPICS: dict[str, tuple[str, str, str]] = {
    "Hindi": ("मेरा बिजली का बिल बहुत ज़्यादा", "कल दिल्ली में बारिश होगी", "भारत ने क्रिकेट मैच जीता"),
    "Telugu": ("నా కరెంటు బిల్లు చాలా ఎక్కువ", "రేపు వర్షం కురుస్తుంది చలిగా", "భారత్ క్రికెట్ ఆట గెలిచింది"),
    "Bengali": ("আমার বিদ্যুৎ বিল অনেক বেশি", "কাল ঢাকায় বৃষ্টি হবে মেঘলা", "বাংলাদেশ ক্রিকেট ম্যাচ জিতেছে"),
    "Tamil": (
        "என் மின்சார கட்டணம் மிக அதிகம்",
        "நாளை சென்னையில் மழை பெய்யும்",
        "இந்தியா கிரிக்கெட் போட்டியில் வென்றது",
    ),
    "Thai": ("ค่าไฟ|เดือนนี้|แพง|มาก|บิล", "พรุ่งนี้|ฝน|จะตก|อากาศ|หนาว", "ทีม|ฟุตบอล|ชนะ|การแข่งขัน|นัดนี้"),
    "Khmer": (
        "វិក្កយបត្រ|ភ្លើង|ថ្លៃ|ណាស់|ខែនេះ",
        "ស្អែក|មាន|ភ្លៀង|ធ្លាក់|ត្រជាក់",
        "ក្រុម|បាល់ទាត់|ឈ្នះ|ការប្រកួត|យប់",
    ),
    "Burmese": ("မီတာခ|ဒီလ|များ|တယ်|ငွေ", "မနက်ဖြန်|မိုး|ရွာ|မယ်|အေး", "ဘောလုံး|အသင်း|အနိုင်|ရ|ပွဲ"),
    "Lao": ("ຄ່າໄຟ|ເດືອນນີ້|ແພງ|ຫຼາຍ|ໃບບິນ", "ມື້ອື່ນ|ຝົນ|ຈະຕົກ|ອາກາດ|ໜາວ", "ທີມ|ບານເຕະ|ຊະນະ|ການແຂ່ງຂັນ|ຄືນ"),
    "Chinese": (
        "电费|账单|太高|付款|这个月",
        "明天|下雨|天气|很冷|刮风",
        "球队|比赛|赢了|足球|进球",
    ),
    "Japanese": (
        "電気代|請求書|高い|支払い|今月",
        "明日|雨|天気|寒い|風が吹く",
        "サッカー|試合|勝った|選手|ゴール",
    ),
    "Korean": (
        "전기요금이 청구서가 너무 비싸요 납부",
        "내일은 비가 날씨가 추워요 바람",
        "축구팀이 경기에서 이겼어요 선수가 골",
    ),
    "Arabic": (
        "فَاتُورَةُ الكَهْرَبَاءِ مُرْتَفِعَةٌ هٰذَا الشَّهْرَ",
        "غَدًا يَنْزِلُ المَطَرُ وَالجَوُّ بَارِدٌ",
        "فَازَ الفَرِيقُ فِي مُبَارَاةِ الكُرَةِ",
    ),
    "Hebrew": ("חֶשְׁבּוֹן הַחַשְׁמַל גָּבוֹהַּ מְאֹד תַּשְׁלוּם", "מָחָר יֵרֵד גֶּשֶׁם קַר וְרוּחַ", "הַקְּבוּצָה נִצְּחָה בְּמִשְׂחַק כַּדּוּרֶגֶל שַׁעַר"),
    "Persian": (
        "قبض برق این ماه گران‌تر می‌پردازم",
        "فردا باران می‌بارد هوا سردتر باد",
        "تیم ما بازی‌ها را برد فوتبالیست گل",
    ),
    "Vietnamese": (
        "tiền điện tháng này hóa đơn quá",
        "ngày mai trời mưa lạnh gió bão",
        "đội bóng đá thắng trận đấu đẹp",
    ),
    "Turkish": (
        "Elektrik faturası çok Yüksek İşlem",
        "Yarın İzmir yağmur Rüzgâr soğuk",
        "Takım maçı Kazandı Işıl oyuncu",
    ),
    "German": (
        "Stromrechnung größer als Maß Gebühr",
        "morgen Regen Straße naß weiß",
        "Mannschaft gewinnt Fußball Spaß Stoß",
    ),
    "Greek": (
        "ΛΟΓΑΡΙΑΣΜΟΣ λογαριασμός ρεύματος ακριβός φόρος",
        "αύριο βροχή καιρός ΚΡΥΟΣ άνεμος",
        "ομάδα αγώνας νίκη παίκτης ΠΟΔΟΣΦΑΙΡΟ",
    ),
    "Russian": (
        "счёт за свет очень большой платёж",
        "завтра дождь холодный ветер снег",
        "команда выиграла матч футбол гол",
    ),
    "emoji": ("💸 💳 🏦 🧾 👍🏽", "🌧️ ⛈️ 🥶 🌬️ ☔", "⚽ 🏆 🥅 🇧🇷 👩‍🏫"),
    "signs": ("C++ C# F# .NET g++", ":-( :( :'( =( ;-(", "??? !!! :-) :D <3"),
}
"""Words of three topics in each language; scripts without spaces have | between words."""
UNSPACED = [name for name, topics in TOPICS.items() if "|" in topics[0]]


def stream(language: str, n_rows: int = 150) -> tuple[list[str], list[str]]:
    """Return texts of two to four words of a topic, and the topics."""
    rng = np.random.default_rng(5)
    gap = "" if language in UNSPACED else " "
    topics = [topic.split("|" if not gap else None) for topic in TOPICS[language]]
    labels = rng.integers(3, size=n_rows)
    texts = [gap.join(rng.choice(topics[r], rng.integers(2, 5), replace=False)) for r in labels]
    if language == "Vietnamese":  # as two keyboards write it
        texts = [unicodedata.normalize("NFD" if i % 2 else "NFC", t) for i, t in enumerate(texts)]
    return texts, [f"topic {r}" for r in labels]


def mistakes_of_characters(texts: list[str], labels: list[str]) -> int:
    """Return the mistakes of scikit-learn with runs of 1 to 3 characters, and a linear model."""
    rows = HashingVectorizer(analyzer="char", ngram_range=(1, 3)).transform(texts)
    model, known, wrong = SGDClassifier(random_state=0), sorted(set(labels)), 0
    for i, label in enumerate(labels):
        wrong += i > 0 and model.predict(rows[i])[0] != label
        model.partial_fit(rows[i], [label], classes=known)
    return wrong


@pytest.mark.parametrize("language", TOPICS)
def test_streams_are_learnt_about_as_well_as_by_runs_of_characters(language):
    texts, labels = stream(language)
    mistakes = progressive_validate(OnlineClassifier(), texts, labels).n_mistakes
    assert mistakes <= max(3, mistakes_of_characters(texts, labels))


@pytest.mark.parametrize("language", UNSPACED)
def test_long_texts_of_scripts_without_spaces_are_learnt(language):
    texts, labels = stream(language, 60)
    long = [text * 20 + "。" for text in texts]
    assert progressive_validate(OnlineClassifier(), long, labels).n_mistakes <= 3


@pytest.mark.parametrize(
    "text, tokens",
    [
        ("पिता, पोता और पुत्र।", ["पिता", "पोता", "और", "पुत्र"]),
        ("తండ్రి কন্যা மகள்", ["తండ్రి", "কন্যা", "மகள்"]),
        ("مُدَرِّسَةٌ شَلּוֹם", ["مُدَرِّسَةٌ", "مدرسة", "شَلּוֹם", "شلום"]),
        ("카드를 ካርዱ", ["카드를", "카드", "드를", "ካርዱ", "ካር", "ርዱ"]),
        ("🏴󠁧󠁢󠁥󠁮󠁧󠁿🏴󠁧󠁢󠁳󠁣󠁴󠁿", ["🏴󠁧󠁢󠁥󠁮󠁧󠁿", "🏴󠁧󠁢󠁳󠁣󠁴󠁿"]),
        ("می‌خواهم صה״ל", ["می‌خواهم", "صה״ל"]),
        ("İZMİR’in Işık’ı", ["izmir'in", "işık'ı"]),
        ("STRASSE Straße", ["strasse", "strasse"]),
        ("ΟΔΟΣ οδός", ["οδοσ", "οδόσ"]),
        ("ＦＵＬＬ ｶﾞ ﬁn", ["full", "ガ", "fin"]),
        ("ab\u00adc x\ufe0f", ["abc", "x"]),
        ("iPhone手机", ["iphone", "手", "机", "手机"]),
        ("น้ำ", ["น้ํ", "า", "น้ํา"]),
        ("👩🏽‍🚀🇩🇪🇫🇷❤️😡😡", ["👩🏽‍🚀", "🇩🇪", "🇫🇷", "❤", "😡", "😡"]),
        ("C++, c# und a+b: C++11", ["c++", "c#", "und", "a", "b", "c++", "11"]),
        (
            "good :-) http://x.org 10:30 (a: b) wow!! <3",
            "good :-) http x org 10 30 a b wow !! <3".split(),
        ),
        ('Well, he said: "no!" (x=3; y)...', ["well", "he", "said", "no", "x", "3", "y"]),
    ],
)
def test_words_of_languages(text, tokens):
    assert tokenize(text) == [unicodedata.normalize("NFKC", token) for token in tokens]


WORDS = sorted(
    {word for topics in TOPICS.values() for t in topics for word in t.replace("|", " ").split()}
)


@settings(deadline=None)
@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6))
def test_tokens_do_not_depend_on_the_form_or_the_case_of_letters(words):
    text = " ".join(words)
    tokens = tokenize(text)
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert tokenize(unicodedata.normalize(form, text)) == tokens
    if "ı" not in text:  # whose capital is that of i
        assert tokenize(text.upper()) == tokenize(text.lower()) == tokens


@pytest.mark.skipif(not READS_MAPPINGS, reason="Python code reads texts")
@pytest.mark.parametrize("language", TOPICS)
def test_texts_are_read_as_python_reads_them(language):
    event = Event()
    for text in stream(language, 20)[0]:
        names = Vocabulary()
        assert event.read_text(text, names, joins=True)
        assert names.names == list(counted([text]))


def test_long_texts_without_spaces_take_time_in_proportion():
    assert len(tokenize("天气很冷" * 5000)) < 3 * 20000
