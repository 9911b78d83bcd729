"""Messages as rows: what is read of them, the threads that they belong to, and hostile mail."""

from __future__ import annotations

import json
import random
import resource
from email.message import EmailMessage
from email.policy import SMTP

import pytest

from kesler.mail.messages import row_of
from kesler.mail.threads import Threads, keys_of, plain_subject
from kesler.readers.mail.html import without_tags
from kesler.readers.mail.message import parsed_message

MIB = 1 << 20
SECONDS = 8  # of processor time; the slowest take 2


def written(subject="Lunch", sender="Ann <ann@a.org>", text="At one", **headers):
    message = EmailMessage(policy=SMTP)
    message["Subject"], message["From"] = subject, sender
    for name, value in headers.items():
        message[name.replace("_", "-")] = value
    message.set_content(text)
    return message


def keys(message):
    return keys_of(parsed_message(bytes(message)))


# ---- what is read ---------------------------------------------------------------------------


def test_a_row_holds_the_words_of_text_and_headers_as_often_as_they_occur():
    row = row_of(bytes(written("Lunch lunch", To="bob@b.org", text="lunch at one one")))
    assert row["lunch"] == 3 and row["one"] == 2 and row["bob"] == 1


def test_facts_have_their_kind_before_them():
    row = row_of(bytes(written("Re: Soup", List_Id="Team list <team.a.org>")))
    facts = {name for name in row if ":" in name}
    assert facts == {"subject:soup", "from:ann@a.org", "domain:a.org", "list:team.a.org"}


@pytest.mark.parametrize(
    ("date", "parts"),
    [
        ("Mon, 2 Apr 2001 23:29:00 -0700 (PDT)", ["weekday:1", "day:2", "month:4", "year:2001"]),
        ("29 Feb 04 00:00", ["weekday:7", "day:29", "month:2", "year:2004"]),
        *((date, []) for date in ("", "today", "30 Feb 2001 10:00", f"1 Jan {9**30} 10:00")),
    ],
)
def test_the_day_of_a_message_is_that_of_its_sender(date, parts):
    row = row_of(f"Date: {date}\nSubject: a\n\nhi".encode())
    assert [name for name in row if ":" in name] == ["subject:a", *parts]


def test_attachments_are_known_by_type_and_suffix_and_not_by_content():
    message = written()
    message.add_attachment(b"secret", maintype="application", subtype="pdf", filename="Bill 7.PDF")
    row = row_of(bytes(message))
    assert {"attachment:application/pdf", "attachment:.pdf", "bill"} <= set(row)
    assert "secret" not in row


def test_text_of_html_is_read_without_tags_and_styles():
    message = written()
    message.add_alternative("<style>p{}</style><p>Soup &amp; <b>br</b>ead</p>", subtype="html")
    assert {"soup", "bread"} <= set(row_of(bytes(message)))
    assert "p" not in row_of(bytes(message))


@pytest.mark.parametrize(
    "name", ["X-Folder", "X-Gmail-Labels", "Message-ID", "Received", "DKIM-Signature", "X-FileName"]
)
def test_headers_that_tell_the_folder_or_the_way_are_left_out(name):
    plain = bytes(written())
    assert row_of(name.encode() + b": <zebra@a.org>\r\n" + plain) == row_of(plain)


def test_a_message_and_its_bytes_are_one_row():
    assert row_of(written()) == row_of(bytes(written()))


def test_a_message_of_nothing_has_a_feature():
    assert row_of(b"") == row_of(b"\n\n") == {"empty:": 1.0}


# ---- threads --------------------------------------------------------------------------------


@pytest.mark.parametrize("prefix", ["Re: ", "RE: Fwd: ", "AW[2]: ", "Sv: ", "Re (3): ", "re:re:"])
def test_prefixes_of_replies_are_no_part_of_a_subject(prefix):
    assert plain_subject(f"{prefix}Lunch  at one") == "lunch at one"


@pytest.mark.parametrize("subject", ["Reading list", "Fw", "Report: May", "I think: no"])
def test_words_that_begin_like_a_prefix_stay(subject):
    assert plain_subject(subject) == subject.lower()


def test_a_thread_is_found_by_the_nearest_message_that_is_known():
    threads = Threads()
    for name, folder in (("a", "old"), ("b", "new")):
        threads.learn(keys(written(name, f"{name}@x", Message_ID=f"<{name}@x>")), folder)
    answer = written("c", "c@x", References="<a@x> <b@x> <lost@x>", In_Reply_To="<lost@x>")
    assert threads.found(keys(answer)) == {"thread": "new"}
    only = written("a", "c@x", In_Reply_To="<b@x>")
    assert threads.found(keys(only))["thread"] == "new", (
        "the message answered is before the subject"
    )
    assert threads.found(keys(written("Re: A", "c@x"))) == {"thread": "old"}


def test_people_are_those_of_a_message_whoever_wrote_it():
    threads = Threads()
    threads.learn(keys(written("a", "ann@a", To="bob@b, cid@c")), "team")
    found = threads.found(keys(written("b", "bob@b", To="cid@c", Cc="ANN@a")))
    assert found == {"people": "team"}
    assert threads.found(keys(written("c", "ann@a", To="cid@c"))) == {"sender": "team"}


def test_the_sender_of_a_list_is_the_list():
    threads = Threads()
    threads.learn(keys(written("a", "ann@a", List_Id="<l.a>")), "lists")
    assert threads.found(keys(written("b", "bob@b", List_Id="L <l.a>"))) == {"sender": "lists"}
    assert threads.found(keys(written("b", "ann@a"))) == {"people": "lists"}


def test_a_message_learnt_again_is_moved_and_nothing_is_known_before():
    threads, message = Threads(), keys(written(Message_ID="<1@a>"))
    assert threads.found(message) == {}
    threads.learn(message, "wrong")
    threads.learn(message, "right")
    assert {*threads.folders.values()} == {"right"}
    again = Threads(json.loads(json.dumps(threads.folders)))
    assert again.found(message) == threads.found(message)


def test_keys_that_were_not_learnt_for_long_are_dropped_first():
    threads, kept = Threads(most=9), keys(written("kept", "kept@x"))
    for i in range(50):
        threads.learn(keys(written(f"s{i}", f"p{i}@x")), str(i))
        assert not i or threads.found(kept)["thread"] == "kept"
        threads.learn(kept, "kept")
    assert len(threads.folders) == 9
    assert threads.found(keys(written("s49", "p49@x")))["thread"] == "49"
    assert threads.found(keys(written("s1", "p1@x"))) == {}


def test_a_row_names_the_folders_and_learns_nothing():
    threads = Threads()
    threads.learn(keys(written()), "friends")
    before = dict(threads.folders)
    row = row_of(bytes(written("Re: Lunch")), threads)
    assert {name for name in row if " in:" in name} == {
        "thread in:friends",
        "people in:friends",
        "series in:friends",
        "sender in:friends",
    }
    assert threads.folders == before


# ---- hostile mail ---------------------------------------------------------------------------

HALF = "=?utf-7?Q?+2AA-x?="  # half a character, which no text can hold
HOSTILE = {
    "half a character": (
        f"From: {HALF} <{HALF}@a.org>\nSubject: {HALF}\nList-Id: <{HALF}.x>\n"
        f'Content-Type: text/plain; charset=utf-7; name="{HALF}.b{HALF}c"\n\nlunch +2AA- +3AA-'
    ).encode(),
    "half a character in a name": (
        b"Content-Disposition: attachment; filename*=utf-7''b.%2B2AA-c\n\n1"
    ),
    "of 50 MB": b"Subject: a\n\n" + b"word soup of the day\n" * 2_400_000,
    "of one line": b"Subject: a\n\n" + b"x" * 50 * MIB,
    "10,000 parts in parts": b"".join(
        b'Content-Type: multipart/mixed; boundary="b%d"\n\n--b%d\n' % (i, i) for i in range(10_000)
    ),
    "10,000 forwarded": b"Content-Type: message/rfc822\n\n" * 10_000 + b"Subject: x\n\nhi",
    "50,000 parts": b"Content-Type: multipart/mixed; boundary=b\n\n" + b"--b\n\n" * 50_000,
    "a subject of 1 MB": b"Subject: " + b"w " * (MIB // 2) + b"\n\nhi",
    "addresses of 1 MB": b"To: " + b"a@b.c, " * (MIB // 7) + b"\n\nhi",
    "comments in comments": b"From: " + b"(" * MIB + b"\n\nhi",
    "encoded words not closed": b"Subject: " + b"=?a?q?" * (MIB // 6) + b"\n\nhi",
    "references of 1 MB": b"References: " + b"<a@b> " * (MIB // 6) + b"\n\nhi",
    "parameters of 1 MB": b"Content-Type: text/plain" + b";" * MIB + b"\n\nhi",
    "a header of no name": b"???\n" * (MIB // 4) + b"Subject: a\n\nhi",
    "150,000 headers": b"X-A: b\n" * (MIB // 7) + b"\nhi",
    "tags not closed": b"Content-Type: text/html\n\n" + b"<a " * (MIB // 3),
    "comments not closed": b"Content-Type: text/html\n\n" + b"<!--x>" * (MIB // 6),
    "a long reference": b"Content-Type: text/html\n\n&#" + b"1" * 10_000,
    "zeros": b"\0" * MIB,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_messages_are_read_in_bounded_time_and_memory(name):
    before = resource.getrusage(resource.RUSAGE_SELF)
    row = row_of(HOSTILE[name], Threads())
    assert "\n".join(row).encode()
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert row
    assert all(isinstance(key, str) and value > 0 for key, value in row.items())
    assert after.ru_utime - before.ru_utime < SECONDS
    assert after.ru_maxrss - before.ru_maxrss < 200_000, "kB"


def changed(rng, message):
    """Return a message with random bytes changed, cut, doubled and put in."""
    found = bytearray(message)
    for _ in range(rng.randint(1, 12)):
        at, n = rng.randrange(len(found) + 1), rng.randint(1, 40)
        piece = rng.choice([rng.randbytes(n), rng.choice(PIECES), bytes(found[at : at + n])])
        found[at : at + rng.choice([0, n])] = piece * rng.choice([1, 1, 1, 30])
    return bytes(found)


PIECES = [
    *(
        b"\n\n",
        b"\r\n",
        b"\r",
        b"\0",
        b"=?utf-8?b?",
        b"?=",
        b"--b",
        b"--b--\n",
        b"\xff\xfe",
        b"<!--",
    ),
    *(b"Content-Type: multipart/mixed; boundary=b\n", b"Content-Type: message/rfc822\n\n", b"&#"),
    *(
        b"Content-Transfer-Encoding: base64\n",
        b"charset=utf-7",
        b"filename*0*=x''%",
        b"(",
        b"<a b='",
    ),
    *(b"From ann Mon Jan  1 10:00:00 2024\n", b"charset=unknown", b"\x1b$B", b"Subject: ", b'"\\'),
]


def seeds():
    """Return messages to change: with HTML, attachments, a forwarded message, other charsets."""
    rich = written("Grüße", To="Jörg <j@b.org>", text="Straße 7\n" * 3, References="<1@a> <2@a>")
    rich.add_alternative("<p class='x>y'>Soup &amp; <b>br</b>ead</p>", subtype="html")
    rich.add_attachment(b"abc" * 20, maintype="image", subtype="png", filename="Bäume.png")
    forwarding = written("Fwd: Lunch")
    forwarding.add_attachment(written("Inner", "bob@b.org"))
    asian = "Subject: =?gb2312?B?zcu/7g==?=\nContent-Type: text/plain; charset=gbk\n\n退款"
    return [bytes(rich), bytes(forwarding), asian.encode("gbk"), b"Subject: a\n\nhi"]


def test_messages_changed_at_random_are_read():
    rng, threads = random.Random(0), Threads()
    for i in range(600):
        message = changed(rng, rng.choice(seeds()))
        row = row_of(message, threads)
        assert row, i
        assert json.loads(json.dumps(row)) == row
        threads.learn(keys_of(parsed_message(message[:1000])), str(i))
    assert row_of(message, threads) == row_of(message, threads)


TAGS = (
    *("<p>", "</p>", "<b>", "</b>", "<br/>", "<a href='x>y'>", "</a>", "word", "two words", " "),
    *("&amp;", "&lt;", "&#8217;", "&nbsp;", "<!-- a <b> c -->", "<style>p {}</style>", "\n", "é"),
    *("<script>if (a<b) x='</p>'</script>", '<IMG SRC="a.png" alt=x>', "<!DOCTYPE html>", "3<4"),
    *("<?xml a?>", "a < b", "<td\nclass=q>", "<o:p>", "<![if !mso]>", '<a href="x\'y">'),
)


def test_the_text_of_html_is_that_of_the_parser_of_python():
    from html.parser import HTMLParser

    class Oracle(HTMLParser):
        hidden, texts = False, ()

        def handle_starttag(self, tag, attrs):
            self.hidden = tag in ("script", "style")
            self.texts += () if tag == "b" else (" ",)

        def handle_endtag(self, tag):
            self.hidden = False
            self.texts += () if tag == "b" else (" ",)

        def handle_data(self, data):
            self.texts += () if self.hidden else (data,)

    rng = random.Random(0)
    for _ in range(2000):
        html = "".join(rng.choice(TAGS) for _ in range(rng.randint(1, 25)))
        oracle = Oracle()
        oracle.feed(html)
        oracle.close()
        # Tags within words other than <b> separate nothing, here or there.
        assert "".join(without_tags(html).split()) == "".join("".join(oracle.texts).split()), html
