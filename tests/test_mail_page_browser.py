"""Suggestions for mail in a browser: accepted and corrected by keyboard, a thousand of them."""

import pytest

pytest.importorskip("imapclient", reason="needs the extra mail")

from kesler.durable import Journal
from kesler.mail.settings import MailSettings
from kesler.mail.sorter import Sorter
from serving import Server
from test_mail_failures import InMemory, message
from test_service_page import CHROMIUM, Person, browser, expect, opened

__all__ = ["browser", "opened"]  # fixtures
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")

WAITING = 1000


@pytest.fixture(scope="module")
def mailbox():
    found = InMemory()
    for number in range(60):
        folder = ("Bills", "Team")[number % 2]
        found.put(folder, message(number, folder))
    return found


@pytest.fixture(scope="module")
def sorter(mailbox, tmp_path_factory):
    """A sorter that may move messages, but is never sure enough to do so by itself."""
    values = {"server": "h", "user": "u", "error": 0.0001, "page": "subjects", "action": "move"}
    with Journal(tmp_path_factory.mktemp("mail") / "mail.db") as journal:
        found = Sorter(journal, MailSettings(values))
        list(found.look(mailbox, predict=False))
        for number in range(WAITING):
            mailbox.put("INBOX", message(500 + number, ("Bills", "Team")[number % 2]))
        list(found.look(mailbox))
        yield found


@pytest.fixture(scope="module")
def server(sorter):
    with Server(sorter._path) as server:
        yield server


def test_suggestions_are_accepted_and_corrected_by_keyboard(opened, sorter, mailbox):
    page = opened("/models/mail")
    person = Person(page)
    assert person.tile("waiting") == f"{WAITING:,}"
    assert person.marked() == "note 500\nann@example.org"
    item = page.get_by_role("listitem").filter(has_text="note 500")
    assert item.get_attribute("aria-labelledby") == "said-1 text-1"
    assert page.locator("#said-1").inner_text().startswith("Suggested: Bills,")

    first = page.locator(".answers bdi").first.inner_text()
    person.press("1")  # accepted
    expect(page.locator("#message")).to_have_text(f"Filed as {first}.")
    assert person.marked() == "note 501\nann@example.org" and first == "Bills"
    assert person.file("Bills")  # corrected: Team was suggested
    person.press("n")
    page.keyboard.type("Tema")
    person.press("Enter")
    expect(page.locator("#message")).to_contain_text("Tema cannot be chosen here")
    assert person.tile("waiting") == f"{WAITING - 2:,}"
    person.press("n")
    page.keyboard.type("Team")
    person.press("Enter")
    expect(page.locator("#message")).to_have_text("Filed as Team.")

    done = [tuple(each)[:3] for each in sorter.look(mailbox)]
    answers = {"<500@x>": "Bills", "<501@x>": "Bills", "<502@x>": "Team"}
    for what in ("learnt", "moved"):
        assert {i: folder for each, i, folder in done if each == what} == answers
    assert list(sorter.look(mailbox)) == []

    person.press("u")  # the last one is taken back, and moved back
    expect(page.locator("#message")).to_have_text("Taken back. The item waits again.")
    done = [tuple(each)[:3] for each in sorter.look(mailbox)]
    assert done == [("taken back", "<502@x>", "INBOX")]
    assert list(sorter.look(mailbox)) == []
    page.goto(page.url + "?q=note+502")
    assert person.marked() == "note 502\nann@example.org"


def test_every_control_of_a_suggestion_has_a_name(opened):
    page = opened("/models/mail")
    assert page.locator("#items > li").count() == 10
    for role in ("button", "textbox", "combobox", "link", "listitem"):
        for each in page.locator("#items").get_by_role(role).all():
            said = each.evaluate("e => e.ariaLabel || e.labels?.[0]?.textContent || e.textContent")
            assert said.strip(), each
    shown = page.locator("#classes option").evaluate_all("all => all.map((each) => each.value)")
    assert shown == ["Bills", "Team"]
    assert page.get_by_label("Another class").count() == 10
    assert page.get_by_role("heading", name="Keys").count() == 1
    assert page.get_by_role("heading", name="Add items").count() == 0  # mail comes by itself


@pytest.mark.parametrize("query", ["?order=useful", "?start=990", "?q=note%201499"])
def test_pages_of_a_thousand_suggestions_show_those_that_are_asked_for(opened, query):
    page = opened("/models/mail" + query)
    texts = page.locator("#items .text").all_inner_texts()
    assert 1 <= len(texts) <= 10 and all(each.startswith("note ") for each in texts)
    if "q=" in query:
        assert texts == ["note 1499\nann@example.org"]
