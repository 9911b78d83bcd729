"""Labels of Gmail, which an export by Google Takeout has in a header of each message."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kesler.readers.mail.charsets import text_of
from kesler.readers.mail.message import decoded_words

if TYPE_CHECKING:
    from kesler.readers.mail.index import Place

LABELS = re.compile(rb"^x-gmail-labels:(.*(?:\n[ \t].*)*)", re.IGNORECASE | re.MULTILINE)
OF_ANY = r"Chats?|IMAP_.*|\[(?:Gmail|Google Mail)\].*"
BY_LANGUAGE = {
    "English": r"Inbox|Opened|Unread|Sent|Starred|Important|Archived|Drafts?|(?:Trash|Bin)|Muted"
    r"|Snoozed|Scheduled|Read Receipt Sent|Category[ _:].*",
    "German": r"Posteingang|Geöffnet|Ungelesen|(?:Als )?gelesen(?: markiert)?|Gesendet|Markiert"
    r"|Wichtig|Archiviert|Entwurf|Entwürfe|Papierkorb|Stummgeschaltet|Zurückgestellt|Geplant"
    r"|Kategorie[ _:].*",
    "French": r"Boîte de réception|Ouverts?|Non lus?|(?:(?:Messages|Mails) )?envoyés?|Suivis?"
    r"|Favoris|Importants?|(?:Messages )?archivés?|Brouillons?|Corbeille|En attente|Planifiés?"
    r"|Programmés?|Catégorie[ _:].*",
    "Spanish": r"Recibidos|Bandeja de entrada|Abiertos?|No leídos?|Enviados?|Destacados?"
    r"|Importantes?|Archivados?|Borrador(?:es)?|Papelera|Pospuestos?|Programados?"
    r"|Categoría[ _:].*",
    "Italian": r"Posta in arrivo|Apert[aei]|Da leggere|Non lett[aei]|Posta inviata|Inviat[aei]"
    r"|Special[ei]|Important[ei]|Archiviat[aei]|Bozz[ae]|Cestino|Posticipat[aei]"
    r"|Programmat[aei]|Categoria[ _:].*",
    "Portuguese": r"Caixa de entrada|Abert[ao]s?|Não lid[ao]s?|Enviad[ao]s?|Com estrela"
    r"|Importantes?|Arquivad[ao]s?|Rascunhos?|Lixeira|Lixo|Adiad[ao]s?|Suspens[ao]s?"
    r"|Programad[ao]s?|Agendad[ao]s?|Categoria[ _:].*",
    "Romanian": r"Mesaje primite|Deschis[eă]?|Necitit[eă]?|(?:Mesaje )?trimise?|Cu stea"
    r"|Importante?|Arhivat[eă]?|Ciorn[ăe]|Schiț[ăe]|Mesaje nefinalizate|Coș(?: de gunoi)?"
    r"|Amânat[eă]?|Programat[eă]?|Categori[ae][ _:].*",
    "Dutch": r"Postvak IN|Geopend|Ongelezen|Verzonden|Met ster|Belangrijk|Gearchiveerd"
    r"|Concept(?:en)?|Prullenbak|Gesnoozed|Gepland|Categorie[ _:].*",
    "Swedish": r"Inkorg(?:en)?|Öppna[dt]e?|Olästa?|Skicka[dt]e?|Stjärnmärkta?|Viktigt?|Viktiga"
    r"|Arkivera[dt]e?|Utkast|Papperskorg(?:en)?|Snooza[dt]e?|Schemalag[dt]a?"
    r"|Kategori[ _:].*",
    "Danish": r"Indbakke|Åbne[dt]e?|Ulæste?|Sendte?|Stjernemarkere[dt]e?|Vigtigt?|Vigtige"
    r"|Arkivere[dt]e?|Kladder?|Papirkurv|Udsatt?e?|Planlagte?|Kategori[ _:].*",
    "Norwegian": r"Innboks|Åpnet|Åpnede|Uleste?|Sendte?|(?:Stjernemerkede?|Stjernemerket"
    r"|Med stjerne)|Viktige?|Arkiverte?|Utkast|Papirkurv|Slumret|Planlagte?|Kategori[ _:].*",
    "Finnish": r"Postilaatikko|Saapuneet|Avatt?u|Avatut|Lukematon|Lukemattomat|Lähetet(?:ty|yt)"
    r"|Tähdellä merkit(?:ty|yt)|Tärkeät?|Arkistoi(?:tu|dut)|Luonnos|Luonnokset|Roskakori"
    r"|Torkut(?:ettu|etut)|Ajoit(?:ettu|etut)|Luokka[ _:].*|Kategoria[ _:].*",
    "Polish": r"Odebrane|Otwarte|Nieprzeczytane|Wysłane|Oznaczone gwiazdką|Ważne|Zarchiwizowane"
    r"|Wersje robocze|Kosz|Odłożone|Zaplanowane|Kategoria[ _:].*",
    "Czech": r"Doručená pošta|Otevřen[áéoý]|Nepřečten[áéoý]|Odeslan[áéoý](?: pošta)?"
    r"|S hvězdičkou|Důležit[áéý]|Archivov[áa]n[aéoý]|Koncepty?|Koš|Odložen[áéoý]"
    r"|Naplánov[áa]n[aéoý]|Kategorie[ _:].*",
    "Slovak": r"Doručená pošta|Otvoren[áéoý]|Neprečítan[áéoý]|Odoslan[áéoý](?: pošta)?"
    r"|S hviezdičkou|Dôležit[áéý]|Archivovan[áéoý]|Koncepty?|Kôš|Odložen[áéoý]"
    r"|Naplánovan[áéoý]|Kategória[ _:].*",
    "Hungarian": r"Beérkez(?:ő|ett)(?: levelek| üzenetek)?|Megnyit(?:va|ott)|Olvasatlan"
    r"|Elküld(?:ve|ött)(?: levelek| üzenetek)?|Csillagozott|Fontos|Archivál(?:va|t)"
    r"|Piszkozat(?:ok)?|Kuka|Elhalaszt(?:va|ott)|Ütemez(?:ve|ett)|Kategória[ _:].*",
    "Turkish": r"Gelen Kutusu|Açıl(?:dı|mış|anlar)|Okunma(?:dı|mış)|Gönderil(?:di|miş|enler)"
    r"(?: Postalar)?|Yıldızlı|Önemli|Arşivlen(?:di|miş)|Arşiv|Taslak(?:lar)?|Çöp Kutusu"
    r"|Ertelen(?:di|miş|enler)|Planlan(?:dı|mış)|Kategori[ _:].*",
    "Indonesian": r"Kotak Masuk|Dibuka|Belum dibaca|Terkirim|Berbintang|Penting|Diarsipkan"
    r"|Draf|Sampah|Ditunda|Terjadwal|Kategori[ _:].*",
    "Vietnamese": r"Hộp thư đến|Đã mở|Chưa đọc|(?:Thư )?đã gửi|(?:Có|Đã) gắn (?:dấu )?sao"
    r"|Quan trọng|Đã lưu trữ|(?:Thư|Bản) nháp|Thùng rác|(?:Đã )?tạm ẩn|Đã lên lịch"
    r"|Danh mục.*",
    "Greek": r"Εισερχόμενα|Ανοιγμένα|Ανοίχτηκε|Μη αναγνωσμένα|Απεσταλμένα|Με αστέρι"
    r"|Σημαντικά|Αρχειοθετημένα|Πρόχειρα|Κάδος|Σε αναβολή|Προγραμματισμένα|Κατηγορία[ _:].*",
    "Russian": r"Входящие|Открыт(?:ые|о)|Непрочитанн(?:ые|ое)|Отправленн(?:ые|ое)"
    r"|Помеченн(?:ые|ое)|Важн(?:ые|ое)|Архив(?:ные|ировано|ированные)?|Черновики?|Корзина"
    r"|Отложенн(?:ые|ое)|Запланированн(?:ые|ое)|Категория[ _:].*",
    "Ukrainian": r"Вхідні|Відкрит[еіо]|Непрочитан[еі]|Надіслан[еі]|Із зірочкою|Важлив[еі]"
    r"|(?:За)?архівован[еіо]|Архів|Чернетк[аи]|Кошик|Відкладен[еі]|Заплановані?"
    r"|Категорія[ _:].*",
    "Arabic": r"البريد الوارد|تم الفتح|تم فتح(?:ه|ها)|غير مقروءة?|البريد المرسل|(?:ال)?مرسلة?"
    r"|(?:ال)?مميزة? بنجمة|(?:مهم|هام)ة?|(?:ال)?مؤرشفة?|تمت? (?:ال)?أرشف(?:ة|ته|تها)"
    r"|(?:ال)?مسود(?:ة|ات)|(?:سلة )?المهملات|(?:ال)?مؤجلة?|(?:ال)?مجدولة?|(?:ال)?فئة.*",
    "Hebrew": r"דואר נכנס|נפתחו?|לא נקראו?|(?:דואר )?שנשלח|נשלחו?|מסומ(?:ן|נים) בכוכב|חשוב(?:ים)?"
    r"|בארכיון|הועברו? לארכיון|טיוט(?:ה|ות)|אשפה|נדחו?|מתוזמ(?:ן|נים)|קטגוריה.*",
    "Thai": r"กล่องจดหมาย|เปิดแล้ว|ยังไม่ได้อ่าน|ส่งแล้ว|จดหมายที่ส่งแล้ว|ติดดาว|สำคัญ|เก็บแล้ว"
    r"|จดหมายร่าง|ร่างจดหมาย|ถังขยะ|เลื่อนแล้ว|ตั้งเวลาแล้ว|หมวดหมู่.*",
    "Japanese": r"受信トレイ|開封済み|未読|送信済み|スター付き|重要|アーカイブ済み|下書き|ゴミ箱"
    r"|スヌーズ中|送信予定|カテゴリ.*",
    "Korean": r"받은편지함|열어봄|열림|읽지 ?않음|안읽음|보낸편지함|별표(?:편지함)?|중요(?:편지함)?"
    r"|보관(?:됨|함|처리됨)?|임시보관함|휴지통|다시 알림|예약(?:됨|편지함)?|카테고리.*",
    "Simplified Chinese": r"收件箱|已?打开|未读|已发(?:送)?(?:邮件)?|已加星标|重要(?:邮件)?|已?归档"
    r"|草稿|已删除(?:邮件)?|已延后|已安排时间|类别.*",
    "Traditional Chinese": r"收件匣|已開啟|未讀(?:取)?|寄件備份|已寄出|已加星號|重要(?:郵件)?"
    r"|已?封存|草稿|垃圾桶|已延後|已排定時間|類別.*",
}
OF_SYSTEM = [re.compile(f"{OF_ANY}|{each}", re.IGNORECASE) for each in BY_LANGUAGE.values()]
"""Labels that Gmail gives by itself, in the language of its owner; they say where a message is and
not what it is about."""
NEARLY_ALL = 0.9


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


def common_in(found: Iterable[Sequence[str]]) -> dict[str, int]:
    """Return the labels of nearly all messages with several, and on how many of them these are.

    They say as little as those of the system, of which they can be in an unknown language.

    Examples
    --------
    >>> common_in([["Bandexa", "Bills"], ["Bandexa", "Team"], ["Bandexa"]])
    {'Bandexa': 2}
    """
    several = [labels for labels in found if len(labels) > 1]
    counts = Counter(label for labels in several for label in set(labels))
    if len(several) < 2:
        return {}
    return {label: n for label, n in counts.items() if n >= NEARLY_ALL * len(several)}


def how_labelled(places: Iterable[Place], are_required: bool, are_sets: bool) -> str:
    """Say which labels of Gmail are no classes, and how many messages that concerns.

    The result is empty if no message is of Gmail.

    Parameters
    ----------
    places : the messages.
    are_required : whether messages without labels of the user's are left out.
    are_sets : whether all labels of a message are its classes.
    """
    found = [(each.labels, each.of_system) for each in places if each.labels is not None]
    if not found:
        return ""
    system = Counter(each for _, labels in found for each in labels)
    n_own = Counter(len(labels) for labels, _ in found)
    what = "labels of a message are those" if are_sets else "class of a message is its label"
    line = f"the {what} of Gmail"
    if system:
        listed = ", ".join(f"{label} ({n})" for label, n in system.most_common())
        line += f"; labels of the system are no classes: {listed}"
    if n_own[0]:
        what = "of no class" if are_sets or not are_required else "left out"
        line += f"; {n_own[0]} messages without another label are {what}"
    n_several = sum(n for number, n in n_own.items() if number > 1)
    if n_several and not are_sets:
        line += f"; {n_several} have several, of which the first is the class"
        common = common_in(labels for labels, _ in found)
        for label, n in common.items():
            line += f"; {label} is the class only without another, as {n} of these have it"
    return line
