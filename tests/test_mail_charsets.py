"""Bytes of mail whose charset is declared, declared wrongly, or not at all."""

from email.message import EmailMessage

import pytest

from kesler.data.texts import tokenize
from kesler.readers.mail.charsets import text_of
from kesler.readers.mail.message import message_tokens

TEXTS = {
    "koi8-r": "Завтра обед в полдень",
    "windows-1251": "Оплатите счёт до пятницы",
    "shift_jis": "請求書を送ります",
    "iso-2022-jp": "明日の会議について",
    "euc-jp": "昼食の予定",
    "gb2312": "请付发票",
    "big5": "請付發票",
    "euc-kr": "점심 약속입니다",
    "windows-1256": "فاتورة شهر مارس",
    "iso-8859-8": "ארוחת צהריים",
    "iso-8859-7": "Το τιμολόγιο του Μαρτίου",
    "iso-8859-9": "Öğle yemeği için",
    "tis-620": "ใบแจ้งหนี้",
    "iso-8859-2": "Zaplaťte účet včas",
    "iso-8859-1": "Grüße aus Köln für Zoë",
}
every = pytest.mark.parametrize("charset, text", TEXTS.items())


def words(text):
    return set(tokenize(text))


@every
def test_text_in_its_charset(charset, text):
    content = text.encode(charset)
    assert text_of(content, charset) == text
    headers = f"A: \nContent-Type: text/plain; charset={charset}\n\n".encode()
    assert words(text) <= message_tokens(headers + content).keys()


@every
def test_utf8_is_found_whatever_is_declared(charset, text):
    for declared in (charset, None, "us-ascii", "nonsense", "hex"):
        assert text_of(text.encode(), declared) == text


@every
def test_raw_headers_are_in_the_charset_of_the_text(charset, text):
    typed = f"\nContent-Type: text/plain; charset={charset}\n\n".encode()
    raw = b"Subject: " + text.encode(charset) + typed
    assert words(text) <= message_tokens(raw + text.encode(charset)).keys()
    assert words(text) <= message_tokens(b"Subject: " + text.encode() + typed).keys()


@every
@pytest.mark.parametrize("encoding", ["base64", "quoted-printable"])
def test_encoded_text_and_headers(charset, text, encoding):
    made = EmailMessage()
    made["Subject"] = text
    made.set_content("x")
    made.add_attachment(text, charset=charset, cte=encoding, disposition="inline")
    made.add_attachment(b"", maintype="image", subtype="png", filename=f"{text}.png")
    tokens = message_tokens(bytes(made))
    assert words(text) <= tokens.keys()


@pytest.mark.parametrize(
    "text, declared, charset",
    [
        ("“Größe” – 5 €", "iso-8859-1", "windows-1252"),
        ("“Größe” – 5 €", "us-ascii", "windows-1252"),
        ("“Größe” – 5 €", "x-unknown", "windows-1252"),
        ("“Größe” – 5 €", None, "windows-1252"),
        ("朱镕基", "gb2312", "gbk"),
        ("朱镕基", "x-gbk", "gb18030"),
        ("똠방각하", "euc-kr", "cp949"),
        ("똠방각하", "ks_c_5601-1987", "cp949"),
        ("髙橋①", "shift_jis", "cp932"),
        ("髙橋①", "x-sjis", "cp932"),
        ("啲嘢", "big5", "big5hkscs"),
        ("“İş”", "iso-8859-9", "windows-1254"),
        ("שלום", "iso-8859-8-i", "iso-8859-8"),
        ("שלום", '"windows-1255";', "windows-1255"),
        ("ｶﾀｶﾅ", "iso-2022-jp", "iso2022_jp_ext"),
        ("会議", None, "iso-2022-jp"),
        ("обед", "koi8-r*ru", "koi8-r"),
        ("обед", "cp-1251", "windows-1251"),
        ("обед", "windows1251", "windows-1251"),
        ("обед", "win-1251", "windows-1251"),
        ("обед", "koi8r", "koi8-r"),
        ("обед", "koi8u", "koi8-u"),
        ("обед", "unicode", "utf-16"),
        ("ขอเงินคืน", "windows-874", "cp874"),
        ("会議", "windows-31j", "cp932"),
        ("会議", "cseucpkdfmtjapanese", "euc-jp"),
        ("Größe", "x-mac-roman", "mac-roman"),
        ("Größe", "DOS-850", "cp850"),
        ("Größe", "IBM437", "cp437"),
        ("žluťoučký kůň", "iso-8859-2", "windows-1250"),
        ("žluťoučký kůň", "iso-8859-2", "iso-8859-2"),
        ("“обед”", "iso-8859-5", "windows-1251"),
        ("“Größe” – 5 €", "iso-8859-15", "windows-1252"),
        ("5 €", "iso-8859-15", "iso-8859-15"),
        ("会議の件について、ご連絡いたします", None, "cp932"),
        ("会議の件について、ご連絡いたします", "nonsense", "euc-jp"),
        ("Завтра обед в полдень, приходите", None, "windows-1251"),
        ("Завтра обед в полдень, приходите", "us-ascii", "koi8-r"),
        ("lunch", "utf-16", "ascii"),
        ("обед", "utf-16", "utf-16"),
        ("обед", "utf-7", "utf-7"),
    ],
)
def test_a_declared_charset_stands_for_the_one_that_contains_it(text, declared, charset):
    assert text_of(text.encode(charset), declared) == text


def test_signs_that_microsoft_has_added_to_japanese():
    # ① is at row 13, column 1, and 髙 at row 92, column 94 less 69 of the rows that NEC selected.
    jis = "会議".encode("iso2022_jp").removesuffix(b"\x1b(B") + b"\x2d\x21" + b"\x4e\x37\x1b(B z"
    assert (
        text_of(jis, "iso-2022-jp") == "会議①" + b"\x1b$B\x4e\x37\x1b(B".decode("iso2022_jp") + " z"
    )
    euc = "会議".encode("euc_jp") + b"\xad\xa1" + "の件".encode("euc_jp")
    assert text_of(euc, "euc-jp") == "会議①の件"
    assert text_of(b"\x1b$B\x7c\x62\x1b(B", "iso-2022-jp") == b"\xee\xe0".decode("cp932") == "髙"


def test_a_raw_subject_in_iso_2022_jp():
    subject = b"Subject: " + "会議の件".encode("iso2022_jp")
    for typed in (b"", b"\nContent-Type: text/plain; charset=iso-2022-jp"):
        assert words("会議の件") <= message_tokens(subject + typed + b"\n\nx").keys()


def test_bytes_that_fit_nothing_are_read_one_by_one():
    assert text_of("für ".encode() + "Größe".encode("latin-1"), "utf-8") == "für Größe"
    assert text_of("请付".encode("gbk") + b"\xff!", "gb2312") == "请付ÿ!"
    assert text_of(bytes(range(256)), "utf-8") == bytes(range(256)).decode(
        "cp1252", "kesler.windows-1252"
    )


@pytest.mark.parametrize(
    "declared", ["undefined", "idna", "punycode", "\0", "", "rot13", "a" * 999]
)
def test_names_that_are_no_charsets(declared):
    assert text_of("Größe".encode("latin-1"), declared) == "Größe"


def test_html_may_declare_its_charset_itself():
    html = "<meta charset=windows-1251><p>Счёт".encode("windows-1251")
    assert "счёт" in message_tokens(b"A: \nContent-Type: text/html\n\n" + html)
