"""Bytes of mail whose charset is declared, declared wrongly, or not at all."""

from email.message import EmailMessage

import pytest

from kesler.data.texts import tokenize
from kesler.readers.mail import message_tokens
from kesler.readers.mail.charsets import text_of

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
        ("lunch", "utf-16", "ascii"),
        ("обед", "utf-16", "utf-16"),
        ("обед", "utf-7", "utf-7"),
    ],
)
def test_a_declared_charset_stands_for_the_one_that_contains_it(text, declared, charset):
    assert text_of(text.encode(charset), declared) == text


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
