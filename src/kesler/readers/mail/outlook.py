"""Messages in Outlook's own format (.msg), as mail programs send them."""

from __future__ import annotations

from collections.abc import Iterator
from email.header import Header
from email.message import Message
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from email.utils import format_datetime, formataddr
from importlib.util import find_spec
from typing import TYPE_CHECKING

from kesler.readers.mail.charsets import text_of
from kesler.readers.reader import BadRow

if TYPE_CHECKING:
    from oxmsg import Message as Stored

OF_MESSAGE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""How a message (.msg) begins."""
ARCHIVES = {
    b"!BDN": "it is an archive of Outlook: export its folders as mbox, or messages as .eml",
    b"\xcf\xad\x12\xfe": "it is a folder of Outlook Express: import it into Thunderbird, whose "
    "folders are read, or save its messages as .eml",
}
"""How archives (.pst, .dbx) begin, and what to do with them."""
OF_CONTENT = ("content-", "mime-version")  # headers of what was sent, of which the parts are left


def as_sent(content: bytes) -> bytes:
    """Return a message of Outlook as headers and parts.

    Attachments are left out but for their names. Formatted text (RTF) is left out, beside which
    Outlook keeps the plain text.

    Raises
    ------
    BadRow
        If python-oxmsg is not installed, or cannot read the message.
    """
    if find_spec("oxmsg") is None:
        raise BadRow(
            "it is in Outlook's own format: install python-oxmsg with pip install "
            "'kesler[outlook]', or save it as .eml"
        )
    from oxmsg import Message as Stored

    try:
        return _mail(Stored.load(content)).as_bytes()
    except Exception as error:
        # For broken files, the package and olefile raise undocumented errors.
        raise BadRow(f"it cannot be read as a message of Outlook ({error})") from None


def _mail(stored: Stored) -> Message:
    mail = MIMEMultipart(boundary="=_outlook_=")  # a random one would be another word each time
    headers = [*stored.message_headers.items()] or [*_headers(stored)]
    for name, value in headers:
        if not name.lower().startswith(OF_CONTENT):
            line = " ".join(value.split())
            mail[name] = line if line.isascii() else Header(line, "utf-8").encode()
    if stored.body is not None:
        mail.attach(MIMEText(stored.body, "plain", "utf-8"))
    elif (page := _page(stored)) is not None:
        mail.attach(MIMEText(page, "html", "utf-8"))
    for each in stored.attachments:
        part = Message()
        part.add_header("Content-Disposition", "attachment", filename=each.file_name or "")
        mail.attach(part)
    return mail


def _headers(stored: Stored) -> Iterator[tuple[str, str]]:
    """Yield the headers of a message that was never sent, which has none."""
    from oxmsg.domain.constants import PID_MESSAGE_DELIVERY_TIME

    if stored.sender is not None:
        yield "From", stored.sender
    for each in stored.recipients:
        yield "To", formataddr((each.name, each.email_address))
    yield "Subject", stored.subject
    date = stored.sent_date or stored.properties.date_prop_value(PID_MESSAGE_DELIVERY_TIME)
    if date is not None:
        yield "Date", format_datetime(date)


def _page(stored: Stored) -> str | None:
    """Return the text as HTML, which is bytes in a code page that may be wrong or unknown."""
    from oxmsg.domain.constants import PID_BODY_HTML, PID_HTML, PID_INTERNET_CODEPAGE

    properties = stored.properties
    page = properties.binary_prop_value(PID_HTML)
    if page is None:
        return properties.str_prop_value(PID_BODY_HTML)
    return text_of(page, f"cp{properties.int_prop_value(PID_INTERNET_CODEPAGE)}")
