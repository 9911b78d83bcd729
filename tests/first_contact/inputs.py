"""Files that people bring: one table of rows, written in as many ways as programs write it.

python tests/first_contact/inputs.py        # writes docs/guides/what-is-read.md
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import sqlite3
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from email import message_from_bytes, policy
from email.message import EmailMessage
from email.utils import format_datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from outlook import BODY, HEADERS, outlook_message

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "what-is-read.md"
N_ROWS = 160
KINDS = ("billing", "cards", "support")
Row = dict[str, Any]

LANGUAGES = {
    "English": ("invoice refund payment tax", "card lost pin blocked", "login screen error app"),
    "German": ("Rechnung Rückzahlung Überweisung", "Karte verloren gesperrt", "Anmeldung Störung"),
    "French": ("facture remboursement reçu", "carte perdue bloquée", "connexion écran erreur"),
    "Polish": ("faktura zwrot płatność", "karta zgubiona źle", "logowanie błąd ekran"),
    "Turkish": ("fatura iade ödeme", "kartım kayıp şifre", "giriş çalışmıyor ışık"),
    "Czech": ("faktura vrácení účet", "karta ztracená číslo", "přihlášení chyba"),
    "Greek": ("τιμολόγιο επιστροφή", "κάρτα χάθηκε κωδικός", "σύνδεση σφάλμα οθόνη"),
    "Russian": ("счёт возврат оплата", "карта потеряна пароль", "вход ошибка экран"),
    "Hebrew": ("חשבונית החזר תשלום", "כרטיס אבד קוד", "כניסה שגיאה מסך"),
    "Arabic": ("فَاتُورَة اِسْتِرْدَاد دَفْع", "بِطَاقَة مَفْقُودَة رَقْم", "تَسْجِيل خَطَأ شَاشَة"),
    "Persian": ("فاکتور بازپرداخت می‌پردازم", "کارت گم‌شده رمز", "ورود خطا صفحه"),
    "Hindi": ("बिल वापसी भुगतान", "कार्ड खोया पिन", "लॉगिन त्रुटि स्क्रीन"),
    "Tamil": ("விலைப்பட்டியல் பணம்", "அட்டை தொலைந்தது", "உள்நுழைவு பிழை"),
    "Korean": ("청구서 환불 결제", "카드 분실 비밀번호", "로그인 오류 화면"),
    "Vietnamese": ("hóa đơn hoàn tiền", "thẻ bị mất mã", "đăng nhập lỗi"),
    "Thai": ("ใบแจ้งหนี้ คืนเงิน ชำระ", "บัตรหาย รหัส อายัด", "เข้าสู่ระบบ ผิดพลาด จอ"),
    "Chinese": ("发票 退款 付款", "银行卡 丢失 密码", "登录 错误 屏幕"),
    "Japanese": ("請求書 返金 支払い", "カード 紛失 暗証番号", "ログイン エラー 画面"),
}
UNSPACED = {"Thai", "Chinese", "Japanese"}


def sentences(language: str) -> tuple[list[str], list[str]]:
    """Return texts of a language and their classes: words of the class, with a few of others."""
    rng, words = np.random.default_rng(0), [each.split() for each in LANGUAGES[language]]
    every = [word for some in words for word in some]
    joint = "" if language in UNSPACED else " "
    texts, labels = [], []
    for _ in range(N_ROWS):
        kind = int(rng.integers(3))
        chosen = [*rng.choice(words[kind], 3), rng.choice(every)]
        texts.append(joint.join(rng.permutation(chosen)))
        labels.append(KINDS[kind])
    return texts, labels


def rows_of(language: str = "English", told_by: str = "message") -> list[Row]:
    """Return rows as their owner means them: a text, an amount, a day and a channel.

    The class is that of the text, of the size of the amount, or of the day of the week; the other
    columns say nothing about it.
    """
    rng, (texts, labels) = np.random.default_rng(1), sentences(language)
    days = [datetime(2025, 1, 3, 9, 30) + timedelta(days=i, minutes=37 * i) for i in range(N_ROWS)]
    if told_by != "message":
        texts = [str(text) for text in rng.permutation(texts)]
    rows = []
    for text, day, label in zip(texts, days, labels, strict=True):
        amount = round(float(rng.gamma(2, 700) * rng.choice([1, 1, 1, -1])), 2)
        size = int(amount > 600) + int(amount > 1600)
        kind = {"message": label, "amount": KINDS[size], "day": KINDS[day.weekday() // 3]}[told_by]
        channel = ("web", "phone", "mail")[int(rng.integers(3))]
        values = {"message": text, "amount": amount, "day": day, "channel": channel, "team": kind}
        rows.append(values)
    return rows


# ---- cells --------------------------------------------------------------------------------------


def number(x: float, thousands: str = "", point: str = ".") -> str:
    """Return a number with two decimals in the notation of a country."""
    return f"{x:,.2f}".replace(".", "\0").replace(",", thousands).replace("\0", point)


def plain(rows: list[Row]) -> list[Row]:
    return [{**row, "day": row["day"].isoformat(" ")} for row in rows]


def with_numbers(form: Callable[[float], str]) -> Callable[[list[Row]], list[Row]]:
    return lambda rows: [{**row, "amount": form(row["amount"])} for row in plain(rows)]


def with_days(form: Callable[[datetime], str]) -> Callable[[list[Row]], list[Row]]:
    return lambda rows: [{**row, "day": form(row["day"])} for row in rows]


def with_gaps(word: Any) -> Callable[[list[Row]], list[Row]]:
    """Return what replaces each eighth amount."""
    return lambda rows: [
        {**row, "amount": word if i % 8 == 5 else row["amount"]}
        for i, row in enumerate(plain(rows))
    ]


def with_late_words(rows: list[Row]) -> list[Row]:
    """Return rows of which some amounts after the first 50 are words."""
    return [
        {**row, "amount": "pending" if i > 60 and i % 8 == 5 else row["amount"]}
        for i, row in enumerate(plain(rows))
    ]


# ---- files --------------------------------------------------------------------------------------


def csv_text(rows: list[Row], before: str = "", header: bool = True, **dialect: Any) -> str:
    out = io.StringIO(newline="")
    table = csv.writer(out, **{"lineterminator": "\n", **dialect})
    for row in [list(rows[0])] * header + [list(row.values()) for row in rows]:
        table.writerow(row)
    return before + out.getvalue()


def written(
    path: Path, rows: list[Row], encoding: str = "utf-8", packed: Any = None, **how: Any
) -> Path:
    content = csv_text(rows, **how).encode(encoding)
    path.write_bytes(packed(content) if packed else content)
    return path


def zipped(content: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("rows.csv", content)
    return out.getvalue()


def zstandard(content: bytes) -> bytes:
    import pyarrow as pa

    packed: bytes = pa.compress(content, codec="zstd", asbytes=True)
    return packed


def with_trailing_commas(path: Path, rows: list[Row]) -> Path:
    path.write_text(csv_text(rows).replace("\n", ",\n"), encoding="utf-8")
    return path


def json_file(path: Path, rows: list[Row], dump: Callable[[list[Row]], str]) -> Path:
    path.write_text(dump(rows), encoding="utf-8")
    return path


def lines_of(rows: list[Row]) -> str:
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)


def nested(rows: list[Row]) -> list[Row]:
    return [
        {"ticket": {k: v for k, v in row.items() if k != "team"}, "team": row["team"]}
        for row in plain(rows)
    ]


def parquet(path: Path, rows: list[Row]) -> Path:
    pd.DataFrame(rows).to_parquet(path)
    return path


def parquet_folder(path: Path, rows: list[Row]) -> Path:
    path.mkdir()
    for i in range(0, len(rows), 50):
        parquet(path / f"part-{i:03}.parquet", rows[i : i + 50])
    return path


def with_categories(path: Path, rows: list[Row]) -> Path:
    pd.DataFrame(rows).astype({"channel": "category", "team": "category"}).to_parquet(path)
    return path


def sqlite_file(path: Path, rows: list[Row]) -> Path:
    with sqlite3.connect(path) as database:
        database.execute("create table tickets (message, amount, day, channel, team)")
        values = [tuple(row.values()) for row in rows]
        database.executemany("insert into tickets values (?, ?, ?, ?, ?)", values)
    database.close()
    return path


def workbook(path: Path, rows: list[Row], sheet: str = "Sheet1", first: str = "") -> Path:
    with pd.ExcelWriter(path) as book:
        if first:
            pd.DataFrame({"notes": ["of 2025"]}).to_excel(book, sheet_name=first, index=False)
        pd.DataFrame(rows).to_excel(book, sheet_name=sheet, index=False)
    return path


def duckdb_file(path: Path, rows: list[Row]) -> Path:
    import duckdb

    frame = pd.DataFrame(rows)
    with duckdb.connect(path) as database:
        database.register("frame", frame)
        database.execute("create table tickets as select * from frame")
    return path


def vw_text(path: Path, rows: list[Row]) -> Path:
    lines = [f"{row['team']} | {row['message'].replace(':', ' ')}" for row in rows]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def messages(rows: list[Row]) -> Iterator[tuple[str, bytes]]:
    """Yield the folder and the message of each row."""
    for row in rows:
        message = EmailMessage()
        message["From"] = "ann@example.org"
        message["Date"] = format_datetime(row["day"].replace(tzinfo=UTC))
        message.set_content(row["message"])
        yield row["team"], bytes(message)


def mbox_of(contents: Iterable[bytes]) -> bytes:
    line = b"From ann@example.org Mon Jan  1 10:00:00 2024\n"
    return b"".join(line + content + b"\n" for content in contents)


def mboxes(path: Path, rows: list[Row], name: str = "{}.mbox", ends: bytes = b"\n") -> Path:
    for folder in KINDS:
        box = path / name.format(folder)
        box.parent.mkdir(parents=True, exist_ok=True)
        own = mbox_of(message for kind, message in messages(rows) if kind == folder)
        box.write_bytes(own.replace(b"\n", ends))
    return path


def single(path: Path, rows: list[Row], name: str, form: Callable[[bytes], bytes] = bytes) -> Path:
    """Write each message to a file of its own."""
    for i, (folder, message) in enumerate(messages(rows)):
        file = path / name.format(folder, i)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(form(message))
    return path


def takeout(path: Path, rows: list[Row]) -> Path:
    labelled = (
        f"X-Gmail-Labels: Posteingang,{folder}\n".encode() + message
        for folder, message in messages(rows)
    )
    path.write_bytes(mbox_of(labelled))
    return path


def of_outlook(message: bytes) -> bytes:
    sent = message_from_bytes(message, policy=policy.default)
    assert isinstance(sent, EmailMessage)
    headers = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
    return outlook_message({HEADERS: headers, BODY: sent.get_content()})


def of_apple(message: bytes) -> bytes:
    return b"%d\n%s<?xml?>\n<plist/>" % (len(message), message)


class Input(NamedTuple):
    """A file and how it is read.

    Parameters
    ----------
    format, variant : str
        What is written, for the table of the documentation.
    write : callable (path, rows) -> path
        Writes the rows.
    suffix : str
        The suffix of the file.
    cells : callable (rows) -> rows
        Converts the rows to what stands in the file.
    options : tuple of str
        What must be said on the command line.
    told_by : str
        The column that tells the class.
    """

    format: str
    variant: str
    write: Callable[..., Path]
    suffix: str = ".csv"
    cells: Callable[[list[Row]], list[Row]] = plain
    options: tuple[str, ...] = ("--label", "team")
    told_by: str = "message"


def table(
    variant: str,
    *options: str,
    cells: Any = plain,
    suffix: str = ".csv",
    told_by: str = "message",
    **how: Any,
) -> Input:
    own = options or ("--label", "team")
    return Input("CSV", variant, partial(written, **how), suffix, cells, own, told_by)


ENCODINGS = {
    "UTF-8 with a byte order mark": ("utf-8-sig", "German"),
    "UTF-16, as PowerShell writes it": ("utf-16", "German"),
    "UTF-16 with the high byte first": ("utf-16-be", "French"),
    "windows-1252": ("cp1252", "German"),
    "windows-1250": ("cp1250", "Polish"),
    "windows-1251": ("cp1251", "Russian"),
    "KOI8-R": ("koi8-r", "Russian"),
    "windows-1253": ("cp1253", "Greek"),
    "windows-1254": ("cp1254", "Turkish"),
    "windows-1255": ("cp1255", "Hebrew"),
    "GB18030": ("gb18030", "Chinese"),
    "Shift JIS": ("shift_jis", "Japanese"),
    "EUC-KR": ("euc-kr", "Korean"),
}
NUMBERS: dict[str, Callable[[float], str]] = {
    "1.234,56": partial(number, thousands=".", point=","),
    "1 234,56": partial(number, thousands=" ", point=","),
    "1 234,56 with a narrow space": partial(number, thousands="\u202f", point=","),
    "1'234.56": partial(number, thousands="'"),
    "1,234.56": partial(number, thousands=","),
    "1234,56": partial(number, point=","),
    "(1,234.56) below zero": lambda x: f"({number(-x, ',')})" if x < 0 else number(x, ","),
    "1,234.56- below zero": lambda x: f"{number(-x, ',')}-" if x < 0 else number(x, ","),
    "−1234.56 with the sign U+2212": lambda x: number(x).replace("-", "\u2212"),
    "€1,234.56": lambda x: f"{'-' * (x < 0)}€{number(abs(x), ',')}",
    "1.234,56 €": lambda x: f"{number(x, '.', ',')} €",
    "12.3 %": lambda x: f"{x:.1f} %",
    "12.30 kg": lambda x: f"{x:.2f} kg",
    "300 g beside 2.50 kg": lambda x: f"{x:.2f} kg" if abs(x) >= 20 else f"{1000 * x:.0f} g",
    "1.234,56€": lambda x: f"{number(x, '.', ',')}€",
    "$ (1,234.56) below zero": lambda x: f"$ ({number(-x, ',')})" if x < 0 else f"$ {number(x)}",
    "1,50 Tsd. €": lambda x: f"{x / 1000:.5f} Tsd. €".replace(".", ",", 1),
    '="1234.56" of Excel': lambda x: f'="{number(x)}"',
    "ca. 1234.56": lambda x: f"ca. {number(x)}",
}
DAYS: dict[str, Callable[[datetime], str]] = {
    "31.12.2025": lambda day: f"{day:%d.%m.%Y}",
    "31/12/2025 23:59": lambda day: f"{day:%d/%m/%Y %H:%M}",
    "12/31/2025": lambda day: f"{day:%m/%d/%Y}",
    "12/31/2025 11:59 PM": lambda day: f"{day:%m/%d/%Y %I:%M %p}",
    "2025-12-31T23:59:59Z": lambda day: f"{day:%Y-%m-%dT%H:%M:%SZ}",
    "2025-12-31T23:59:59+02:00": lambda day: day.replace(
        tzinfo=timezone(timedelta(hours=2))
    ).isoformat(),
    "Wed, 31 Dec 2025 23:59:59 +0100 (mail)": lambda day: format_datetime(
        day.replace(tzinfo=timezone(timedelta(hours=1)))
    ),
    "2025-W53-3 (ISO weeks)": lambda day: "{}-W{:02}-{}".format(*day.isocalendar()),
    "31 Dec 2025": lambda day: f"{day:%d %b %Y}",
    "20251231T235959Z": lambda day: f"{day:%Y%m%dT%H%M%SZ}",
    "2025:12:31 23:59:59 (EXIF)": lambda day: f"{day:%Y:%m:%d %H:%M:%S}",
    "[31/Dec/2025:23:59:59 +0100] (Apache)": lambda day: f"[{day:%d/%b/%Y:%H:%M:%S} +0100]",
    "23:59, 31.12.2025": lambda day: f"{day:%H:%M, %d.%m.%Y}",
    "31.12.2025 beside 2025-12-31": lambda day: f"{day:%d.%m.%Y}" if day.day % 2 else f"{day:%F}",
}
GAPS = (
    "",
    "NA",
    "N/A",
    "n/a",
    "#N/A",
    "NULL",
    "None",
    "nan",
    "-",
    "?",
    ".",
    "--",
    "k.A.",
    "#REF!",
    "\\N",
)
DIALECTS: dict[str, dict[str, Any]] = {
    "comma": {},
    "semicolon": {"delimiter": ";"},
    "tab": {"delimiter": "\t"},
    "vertical bar": {"delimiter": "|"},
    "Excel's line sep=;": {"delimiter": ";", "before": "sep=;\n"},
    "comments before the header": {"before": "# exported by a tool\n# on Monday\n"},
    "a title and an empty line before the header": {"before": "Tickets of 2025\n\n"},
    "line ends CR LF": {"lineterminator": "\r\n"},
    "all cells in quotes": {"quoting": csv.QUOTE_ALL},
    "quotes after a backslash": {"doublequote": False, "escapechar": "\\"},
}
PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "Zstandard": zstandard,
    "zip": zipped,
}


def quoted_texts(rows: list[Row]) -> list[Row]:
    """Return the rows with texts that need quotes."""
    return [{**row, "message": f'{row["message"]}, "so"\nit is'} for row in plain(rows)]


INPUTS: list[Input] = [
    *(table(name, cells=quoted_texts, **how) for name, how in DIALECTS.items()),
    table("line ends CR", lineterminator="\r"),
    table("cells in apostrophes", quotechar="'", quoting=csv.QUOTE_ALL),
    table(
        *("cells in apostrophes with quotes in them", "--label", "team", "--quote", "'"),
        cells=quoted_texts, quotechar="'", quoting=csv.QUOTE_ALL,
    ),
    table("tabs in a file named .txt", delimiter="\t", suffix=".txt"),
    table("numbers that are texts from row 60 on", cells=with_late_words, told_by="amount"),
    Input("CSV", "a comma behind the last cell of each line", with_trailing_commas),
    table("no header", "--label", "5", "--no-header", header=False),
    *(table(f"in {name}", packed=how) for name, how in PACKED.items()),
    table("compressed, with another suffix", packed=gzip.compress, suffix=".dat.csv"),
    *(
        table(f"numbers {name}", cells=with_numbers(form), told_by="amount")
        for name, form in NUMBERS.items()
    ),
    *(table(f"dates {name}", cells=with_days(form), told_by="day") for name, form in DAYS.items()),
    table(
        *("dates 20251231", "--label", "team", "--date", "day:%Y%m%d"),
        cells=with_days(lambda day: f"{day:%Y%m%d}"), told_by="day",
    ),
    *(
        table(f"missing numbers: {word or 'empty cells'}", cells=with_gaps(word), told_by="amount")
        for word in GAPS
    ),
    Input("JSON", "JSON lines", partial(json_file, dump=lines_of), ".jsonl"),
    Input("JSON", "JSON lines named .json", partial(json_file, dump=lines_of), ".json"),
    Input("JSON", "an array", partial(json_file, dump=json.dumps), ".json"),
    Input(
        "JSON", "a pretty-printed array",
        partial(json_file, dump=partial(json.dumps, indent=2)), ".json",
    ),
    Input("JSON", "objects in objects", partial(json_file, dump=lines_of), ".jsonl", nested),
    Input("JSON", "null for missing numbers", partial(json_file, dump=lines_of), ".jsonl",
          with_gaps(None), ("--label", "team"), "amount"),
    Input("Parquet", "numbers, texts and times", parquet, ".parquet", list),
    Input("Parquet", "decimals", parquet, ".parquet",
          lambda rows: [{**row, "amount": Decimal(f"{row['amount']:.2f}")} for row in rows],
          ("--label", "team"), "amount"),
    Input("Parquet", "categories", with_categories, ".parquet", list),
    Input("Parquet", "a folder of files", parquet_folder, "", list),
    Input("Parquet", "nulls", parquet, ".parquet", with_gaps(None), ("--label", "team"), "amount"),
    Input("SQLite", "the only table", sqlite_file, ".db"),
    Input("SQLite", "a query", sqlite_file, ".db", plain,
          ("--label", "team", "--sql", "select * from tickets")),
    Input("DuckDB", "the only table", duckdb_file, ".duckdb", list),
    Input("DuckDB", "a query", duckdb_file, ".duckdb", list,
          ("--label", "team", "--sql", "select * from tickets")),
    Input("Excel", "numbers, texts and times", workbook, ".xlsx", list),
    Input("Excel", "numbers that are texts 1.234,56", workbook, ".xlsx",
          with_numbers(NUMBERS["1.234,56"]), ("--label", "team"), "amount"),
    Input("Excel", "empty cells for missing numbers", workbook, ".xlsx", with_gaps(None),
          ("--label", "team"), "amount"),
    Input("Excel", "the first sheet of two", partial(workbook, sheet="2025", first="notes"),
          ".xlsx", list, ("--label", "team", "--sheet", "2025")),
    Input("Vowpal Wabbit", "words", vw_text, ".vw", list, ()),
    Input("mail", "mbox files", mboxes, "", list, ()),
    Input("mail", "mbox files with line ends CR LF", partial(mboxes, ends=b"\r\n"), "", list, ()),
    Input("mail", "mbox files with line ends CR", partial(mboxes, ends=b"\r"), "", list, ()),
    Input("mail", "KMail", partial(mboxes, name=".Work.directory/{}"), "", list, ()),
    Input("mail", "Thunderbird", partial(mboxes, name="Work.sbd/{}"), "", list, ()),
    Input("mail", "Apple Mail",
          partial(single, name="{}.mbox/9F/Messages/{}.emlx", form=of_apple), "", list, ()),
    Input("mail", "Maildir", partial(single, name=".{}/new/{}.host"), "", list, ()),
    Input("mail", "Maildir without new", partial(single, name="{}/cur/{}.host:2,S"), "", list, ()),
    Input("mail", "folders of .eml files", partial(single, name="{}/{}.eml"), "", list, ()),
    Input("mail", "folders of Outlook's .msg files",
          partial(single, name="{}/{}.msg", form=of_outlook), "", list, ()),
    Input("mail", "Google Takeout", takeout, ".mbox", list, ()),
]  # fmt: skip
"""The files of the English rows."""

OF_WORDS = ("Vowpal Wabbit", "mail")  # which hold the texts alone


REFUSED = {
    ("CSV", "two columns of one name"): (
        "rows.csv", b"team,a,a\nx,1,2\n", "has more than one column 'a': give each its own name"
    ),
    ("CSV", "a quote that is not closed"): (
        "rows.csv", b'team,message\nx,"open\ny,b\n', "line 2: it is not CSV (a quote is opened"
    ),
    ("CSV", "a row with a cell too many"): (
        "rows.csv", b"team,message\nx,a\ny,b,c\n", "line 3: it has 3 fields and the header 2"
    ),
    ("CSV", "no column of that name"): (
        "rows.csv", b"group,message\nx,a\n", "has no column 'team': it has 'group', 'message'"
    ),
    ("JSON", "a line that is no JSON"): (
        "rows.jsonl", b'{"team": "x", "a": 1}\n{"team": \n', "line 2: it is not JSON"
    ),
    ("Parquet", "a file that is damaged"): (
        "rows.parquet", b"PAR1 and then nothing", "can't be read as Parquet"
    ),
    ("any", "bytes without a format"): (
        "rows.bin", bytes(range(1, 32)) * 9, "neither its name nor its first line tells the format"
    ),
    ("any", "an empty file"): ("rows.csv", b"", "is empty: its first line should name"),
}  # fmt: skip
"""What is refused, by format and variant: the name of a file, its bytes and the sentence."""


def text_of_page() -> str:
    """Return the page of the documentation that says how each file is read."""
    lines = [
        *("# What is read", ""),
        "Every line is a file that a test writes and learns, with at most 3 mistakes, or 3 % of",
        "the rows, more than the same rows as a data frame of texts, numbers and times. What is",
        "refused says what to do; {doc}`text-and-tables` names the options.",
        *("", "| format | variant | read |", "|---|---|---|"),
    ]
    for each in INPUTS:
        own = each.options[2:]  # behind the name of the label
        how = f"with `{' '.join(_shown(own))}`" if own else "as it is"
        lines.append(f"| {each.format} | {_cell(each.variant)} | {how} |")
    lines += [f"| CSV | encoding {name} ({language}) | as it is |" for name, (_, language) in
              ENCODINGS.items()]  # fmt: skip
    lines += [
        f'| {format} | {variant} | refused: "{_cell(sentence)}" |'
        for (format, variant), (_, _, sentence) in REFUSED.items()
    ]
    lines += [f"| texts | {language} | as they are |" for language in LANGUAGES]
    return "\n".join(lines) + "\n"


def _shown(options: Sequence[str]) -> list[str]:
    return [f'"{option}"' if " " in option else option for option in options]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\u202f", " ")


if __name__ == "__main__":
    PAGE.write_text(text_of_page(), encoding="utf-8")
