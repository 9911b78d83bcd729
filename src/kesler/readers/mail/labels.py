"""Labels of Gmail, which an export by Google Takeout has in a header of each message."""

from __future__ import annotations

import csv
import logging
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from kesler.readers.mail.charsets import text_of
from kesler.readers.mail.message import decoded_words

LABELS = re.compile(rb"^x-gmail-labels:(.*(?:\n[ \t].*)*)", re.IGNORECASE | re.MULTILINE)
OF_ANY = r"Chats?|IMAP_.*|\[(?:Gmail|Google Mail)\].*"
BY_LANGUAGE = {
    "English": r"Inbox|Opened|Unread|Sent|Starred|Important|Archived|Drafts?|(?:Trash|Bin)|Muted"
    r"|Read Receipt Sent|Category[ _:].*",
    "German": r"Posteingang|Geöffnet|Ungelesen|Gesendet|Markiert|Wichtig|Archiviert|Entwurf"
    r"|Entwürfe|Papierkorb|Stummgeschaltet|Kategorie[ _:].*",
    "French": r"Boîte de réception|Ouverts?|Non lus?|(?:(?:Messages|Mails) )?envoyés?|Suivis?"
    r"|Favoris|Importants?|(?:Messages )?archivés?|Brouillons?|Corbeille|Catégorie[ _:].*",
    "Spanish": r"Recibidos|Bandeja de entrada|Abiertos?|No leídos?|Enviados?|Destacados?"
    r"|Importantes?|Archivados?|Borrador(?:es)?|Papelera|Categoría[ _:].*",
    "Italian": r"Posta in arrivo|Apert[aei]|Da leggere|Non lett[aei]|Posta inviata|Inviat[aei]"
    r"|Special[ei]|Important[ei]|Archiviat[aei]|Bozz[ae]|Cestino|Categoria[ _:].*",
    "Portuguese": r"Caixa de entrada|Abert[ao]s?|Não lid[ao]s?|Enviad[ao]s?|Com estrela"
    r"|Arquivad[ao]s?|Rascunhos?|Lixeira|Lixo",
    "Dutch": r"Postvak IN|Geopend|Ongelezen|Verzonden|Met ster|Belangrijk|Gearchiveerd"
    r"|Concept(?:en)?|Prullenbak|Categorie[ _:].*",
    "Polish": r"Odebrane|Otwarte|Nieprzeczytane|Wysłane|Oznaczone gwiazdką|Ważne|Zarchiwizowane"
    r"|Wersje robocze|Kosz|Kategoria[ _:].*",
    "Russian": r"Входящие|Открытые|Непрочитанные|Отправленные|Помеченные|Важное"
    r"|Архив(?:ированные)?|Черновики|Корзина|Категория[ _:].*",
    "Japanese": r"受信トレイ|開封済み|未読|送信済み|スター付き|重要|アーカイブ済み|下書き|ゴミ箱"
    r"|カテゴリ.*",
    "Chinese": r"收件箱|已打开|未读|已发(?:送)?邮件|已加星标|重要(?:邮件)?|已归档|草稿|已删除邮件"
    r"|类别.*",
}
OF_SYSTEM = [re.compile(f"{OF_ANY}|{each}", re.IGNORECASE) for each in BY_LANGUAGE.values()]
"""Labels that Gmail gives by itself, in the language of its owner; they say where a message is and
not what it is about."""
LOGGER = logging.getLogger("kesler")


def labels_of(header: bytes) -> tuple[str, ...] | None:
    r"""Return the labels in the headers of a message, None if it is not of Gmail.

    Examples
    --------
    >>> labels_of(b'X-Gmail-Labels: Inbox,"Bills, paid",=?UTF-8?Q?Entw=C3=BCrfe?=\n')
    ('Inbox', 'Bills, paid', 'Entwürfe')
    """
    # Most mail is not of Gmail, and looking for the name alone takes a tenth of the time.
    found = LABELS.search(header) if b"gmail-labels" in header.lower() else None
    if found is None:
        return None
    line = " ".join(decoded_words(text_of(found[1], None)).split())
    return tuple(filter(None, map(str.strip, next(csv.reader([line], skipinitialspace=True), []))))


def system_of(found: Iterable[Sequence[str]]) -> re.Pattern[str]:
    """Return the expression of the system's labels in the language of which most occur.

    A label of the user's may be one of the system's in another language.

    Examples
    --------
    >>> system = system_of([["Inbox", "Concept"], ["Inbox", "Opened"]])
    >>> [system.fullmatch(each) is not None for each in ("Inbox", "Concept", "Posteingang")]
    [True, False, False]
    """
    counts = Counter(label for labels in found for label in labels)

    def n_known(system: re.Pattern[str]) -> int:
        return sum(n for label, n in counts.items() if system.fullmatch(label))

    return max(OF_SYSTEM, key=n_known)


def report(
    source: str,
    found: Sequence[tuple[Sequence[str], Sequence[str]]],
    are_required: bool,
    are_sets: bool,
) -> None:
    """Log a line that says which labels are no classes, and how many messages that concerns.

    Parameters
    ----------
    source : what is read.
    found : the user's and the system's labels of each message that has any.
    are_required : whether messages without labels of the user's are left out.
    are_sets : whether all labels of a message are its classes.
    """
    system = Counter(each for _, labels in found for each in labels)
    n_own = Counter(len(labels) for labels, _ in found)
    what = "labels of a message are those" if are_sets else "class of a message is its label"
    line = f"{source}: the {what} of Gmail"
    if system:
        listed = ", ".join(f"{label} ({n})" for label, n in system.most_common())
        line += f"; labels of the system are no classes: {listed}"
    if n_own[0]:
        what = "of no class" if are_sets or not are_required else "left out"
        line += f"; {n_own[0]} messages without another label are {what}"
    n_several = sum(n for number, n in n_own.items() if number > 1)
    if n_several and not are_sets:
        line += f"; {n_several} have several, of which the first is the class"
    LOGGER.warning("%s", line)
