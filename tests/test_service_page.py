"""The page of the service in a browser: what a person does by keyboard, and what the page says."""

import json
import re
import shutil
import urllib.request

import pytest

from kesler.datasets import load
from kesler.service import Client
from serving import Server
from test_report_page import CONTRASTS

sync_api = pytest.importorskip("playwright.sync_api")
expect = sync_api.expect
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None,
    reason="needs Chromium: install the package chromium of the system, and playwright by pip",
)

BANKING = load("banking77/stream")
TEXTS = [(r["text"], str(y)) for r, y in zip(BANKING.records, BANKING.y, strict=True)]
SCRIPT = "<script>document.title = 'hacked'</script><img src=x onerror=\"document.title='hacked'\">"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("page") / "desk.db") as server:
        yield server


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        # Containers run as root, where the sandbox of Chromium cannot start.
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


@pytest.fixture
def opened(browser, server):
    """Open a page; whatever it says or asks of others is an error in the end."""
    contexts, faults = [], []

    def open_page(path="/", width=1280, scheme="light", **options):
        viewport = {"width": width, "height": 900}
        contexts.append(browser.new_context(viewport=viewport, color_scheme=scheme, **options))
        page = contexts[-1].new_page()
        page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("dialog", lambda dialog: (faults.append(dialog.message), dialog.dismiss()))
        page.on(
            "request",
            lambda r: None if r.url.startswith((server.url, "data:")) else faults.append(r.url),
        )
        page.goto(server.url + path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not [each for each in faults if "status of 4" not in each]


def model(server, name, n_taught=0, n_items=0):
    """A model with rows taught and items waiting, of which one is hostile."""
    client = Client(server.url, name)
    client.create()
    if n_taught:
        client.learn_many(TEXTS[:n_taught])
    rows = [{"text": text} for text, _ in TEXTS[n_taught : n_taught + n_items]]
    if rows:
        rows[-1] = {"text": SCRIPT, "subject": SCRIPT}
        body = "\n".join(map(json.dumps, rows)).encode()
        url = f"{server.url}/api/models/{name}/import"
        urllib.request.urlopen(urllib.request.Request(url, body, method="POST")).read()
    return client


@pytest.fixture(scope="module")
def filled(server):
    model(server, "filled", 300, 30)
    return "/models/filled"


@pytest.fixture(scope="module")
def named(server):
    """Names of models, of which the longest does not fit in a narrow window."""
    names = ["tickets", "complaints", "invoices-2026", "a" * 64]
    for name in names:
        model(server, name, 20)
    return names


class Person:
    """Somebody who has nothing but a keyboard, and reads the page."""

    def __init__(self, page):
        self.page = page

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)

    def tab_to(self, name, most=400):
        """Press Tab until a control of that name has the focus."""
        for _ in range(most):
            self.page.keyboard.press("Tab")
            said = self.page.evaluate(
                "() => { const e = document.activeElement; return e.labels?.length ?"
                " e.labels[0].textContent : e.textContent; }"
            )
            if re.fullmatch(name, " ".join(said.split())):
                return
        raise AssertionError(f"Tab does not reach {name}")

    def tile(self, name):
        tiles = self.page.locator(".tiles div")
        for i in range(tiles.count()):
            if tiles.nth(i).locator("dt").inner_text() == name:
                return tiles.nth(i).locator("dd").inner_text()
        raise AssertionError(name)

    def message_count(self):
        return self.page.locator("#message").count()

    def message(self):
        return self.page.locator("#message").inner_text()

    def marked(self):
        """The text of the marked item, as it is read."""
        return self.page.locator(".item.current .text").inner_text()

    def file(self, label):
        """File the marked item by a digit if the class is offered, by n and its name if not."""
        before = self.tile("filed")
        item = self.page.locator(".item.current")
        offered = [each.strip() for each in item.locator(".answers bdi").all_inner_texts()]
        digit = offered.index(label) + 1 if label in offered else None
        if digit:
            self.press(str(digit))
        else:
            self.press("n")
            self.page.keyboard.type(label)
            self.press("Enter")
        expect(self.page.locator(".tiles dd").nth(1)).not_to_have_text(before)
        return digit is not None


def test_a_new_user_files_fifty_texts_by_keyboard(opened, server, tmp_path):
    """The whole way from an empty server; every claim is read from the page."""
    page = opened()
    person = Person(page)
    answers = dict(TEXTS[:60])

    # A model, and its items, pasted as lines.
    person.tab_to("Name")
    page.keyboard.type("bank")
    person.press("Enter")
    page.wait_for_url("**/models/bank")
    assert page.get_by_text("Nothing waits for an answer.").is_visible()
    person.tab_to("Or paste lines")
    page.keyboard.insert_text("\n".join(json.dumps({"text": text}) for text, _ in TEXTS[:60]))
    person.tab_to("Add")
    person.press("Enter")
    page.wait_for_selector(".item")
    assert person.message() == "60 items added." and person.tile("waiting") == "60"
    assert page.locator("#live").get_attribute("aria-live") == "polite"

    # Fifty answers: digits where the class is offered, names for the others. Two classes are new.
    person.press("Escape")
    page.locator("main").focus()
    n_digits = 0
    for i in range(50):
        label = {10: "my own class", 20: "another class"}.get(i) or answers[person.marked()]
        n_digits += person.file(label)
        assert person.message() == f"Filed as {label}."
        assert person.tile("filed") == str(i + 1) and person.tile("waiting") == str(59 - i)
    assert n_digits > 20
    n_classes = int(person.tile("classes"))

    # Three answers are taken back: the last two by u, one in the history.
    for i in (1, 2):
        text = page.locator("#undo").inner_text()
        person.press("u")
        expect(page.locator(".tiles dd").first).to_have_text(str(10 + i))
        assert "Taken back" in person.message() and person.tile("filed") == str(50 - i)
        assert "Take back" in text
    person.tab_to("History")
    person.press("Enter")
    page.wait_for_url("**/history")
    undone = page.locator(".events li.gone")
    assert undone.count() == 2
    assert (
        sum(each.startswith("Took back") for each in page.locator(".what").all_inner_texts()) == 2
    )
    whats = page.locator(".events li:not(.gone) .what").all_inner_texts()
    what = next(each for each in whats if each.startswith("Filed as"))
    person.tab_to(f"Take back: {what}")
    person.press("Enter")
    expect(page.locator(".events li.gone")).to_have_count(3)
    assert "The item waits again" in person.message()

    # A class is renamed, and two are merged.
    person.tab_to("Classes")
    person.press("Enter")
    page.wait_for_url("**/classes")
    cards = page.locator(".classes h2").all_inner_texts()
    assert "my own class" in cards and "another class" in cards
    person.tab_to("Change my own class")
    person.press("Enter")
    person.tab_to("New name of my own class")
    page.keyboard.press("Control+a")
    page.keyboard.type("renamed class")
    person.press("Enter")
    page.wait_for_selector("[data-class='renamed class']")
    assert person.message() == "Renamed my own class to renamed class."
    person.tab_to("Change another class")
    person.press("Enter")
    person.tab_to("Merge another class into")
    page.keyboard.type("renamed class")
    person.tab_to("Merge")
    person.press("Enter")
    page.wait_for_selector("[data-class='another class']", state="detached")
    assert person.message() == "Merged another class into renamed class."
    card = page.locator("[data-class='renamed class']")
    assert card.locator("dd").first.inner_text() == "2"

    # The counts hold, and hold after the page is loaded anew.
    page.goto(server.url + "/models/bank")
    assert (person.tile("filed"), person.tile("waiting")) == ("47", "13")
    assert int(person.tile("classes")) in range(n_classes - 4, n_classes)
    page.goto(server.url + "/models/bank/history")
    sentences = page.locator(".what").all_inner_texts()
    assert "Renamed my own class to renamed class" in sentences
    assert "Merged another class into renamed class" in sentences


def test_of_many_classes_those_typed_are_suggested(server, opened):
    client = model(server, "many")
    client.learn_many([(f"word{i}", f"class {i:03d} <b>") for i in range(150)])
    body = b'{"text": "word3"}'
    url = f"{server.url}/api/models/many/import"
    urllib.request.urlopen(urllib.request.Request(url, body, method="POST")).read()
    page = opened("/models/many")
    options = page.locator("#classes option")
    assert options.count() == 100 and "50 more by parts of their names" in page.content()
    field = page.locator("#other-1")
    field.fill("Class 14")
    expect(options).to_have_count(10)
    found = [each.get_attribute("value") for each in options.all()]
    assert found == [f"class {i} <b>" for i in range(140, 150)]
    field.fill("class 147 <b>")
    field.press("Enter")
    expect(page.locator("#message")).to_have_text("Filed as class 147 <b>.")
    assert client.figures()["n_classes"] == 150


def test_keys_move_search_and_can_be_turned_off(opened, filled):
    page = opened(filled)
    person = Person(page)
    texts = page.locator(".item .text").all_inner_texts()
    assert person.marked() == texts[0]
    person.press("j", "ArrowDown", "k", "j")
    assert person.marked() == texts[2]
    person.press("ArrowUp")
    assert person.marked() == texts[1]
    person.press("/")
    page.keyboard.type("u1")
    assert page.locator("#q").input_value() == "u1" and person.message_count() == 0
    person.press("Escape")
    page.locator("#use-keys").uncheck()
    page.locator("h1").click()
    before = person.tile("filed")
    person.press("1", "j", "u")
    assert person.tile("filed") == before and person.marked() == texts[1]
    page.reload()
    assert not page.locator("#use-keys").is_checked()


def confidences(page):
    said = page.locator("#items").inner_text()
    return [int(each) for each in re.findall(r"confidence (\d+)\s%", said)]


@pytest.mark.parametrize("width", [1280, 390])
def test_an_item_has_one_confidence_and_reasons_in_words(opened, server, filled, width):
    page = opened(filled, width)
    said = Client(server.url, "filled")
    n_marked = 0
    for item in page.locator(".item").all():
        text = item.locator(".text").inner_text()
        answer = said.predict(text, explain=100)
        label, confidence = item.locator("strong").inner_text(), confidences(page)
        assert label == answer["label"]
        shares = item.locator(".share").all_inner_texts()
        first = f"{100 * answer['confidence']:.0f}\N{NO-BREAK SPACE}%"
        assert shares[0] == first and f"confidence {first}" in item.locator(".said").inner_text()
        assert len(confidence) == 10
        assert sum(int(re.sub(r"\D", "", each)) for each in shares if "<" not in each) <= 102
        names = {each["feature"] for each in answer["explanation"]["contributions"]}
        why = item.locator(".why bdi").all_inner_texts()
        assert why and {name for each in why for name in each.split(", ")} <= names
        marks = item.locator("mark").all_inner_texts()
        assert {each.lower() for each in marks} <= {*re.findall(r"[\w']+", text.lower())}
        n_marked += len(marks)
        page.keyboard.press("j")
    assert n_marked > 10


def test_cells_are_marked_and_the_person_is_called_so(opened, server):
    client = Client(server.url, "cells")
    client.create()
    rows = [{"subject": text[:20], "body": text, "amount": len(text)} for text, _ in TEXTS[:60]]
    client.learn_many([(row, ("card" if "card" in row["body"] else "other")) for row in rows])
    row = {"subject": "My card", "body": "where is my card?", "amount": 20, "person": "ann@b.org"}
    url = f"{server.url}/api/models/cells/import"
    body = json.dumps(row).encode()
    urllib.request.urlopen(urllib.request.Request(url, body, method="POST")).read()
    page = opened("/models/cells")
    text = page.locator(".item .text").inner_text()
    assert text == "subject: My card\nbody: where is my card?\namount: 20"
    marks = page.locator("mark").all_inner_texts()
    assert "card" in marks and not {"subject", "body", "amount"} & {*marks}
    assert "body: card" in page.locator(".why").inner_text()
    assert page.locator(".subject").inner_text() == "person: ann@b.org"


def test_search_and_order_choose_the_items(opened, filled):
    page = opened(f"{filled}?q=CARD")
    texts = page.locator(".item .text").all_inner_texts()
    assert texts and all("card" in text.lower() for text in texts)
    page.locator("#order").select_option("useful")
    page.locator("#q").fill("")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**order=useful*")
    assert "A label budget would ask about these first" in page.locator(".count").inner_text()
    sure = confidences(page)
    page.locator("#order").select_option("arrival")
    page.get_by_role("button", name="Show", exact=True).click()
    page.wait_for_url("**order=arrival*")
    rest = confidences(page)
    assert len(sure) == len(rest) == 10 and sum(sure) < sum(rest)


def test_files_are_dropped_and_chosen(opened, server, tmp_path):
    model(server, "files")
    page = opened("/models/files")
    file = tmp_path / "rows.csv"
    file.write_text("text,label\nwin cash,spam\nteam lunch,\n")
    page.locator("#file").set_input_files(file)
    page.wait_for_selector(".item")
    assert page.locator("#message").inner_text() == "1 item added, 1 row learnt."
    page.evaluate(
        """() => {
          const data = new DataTransfer();
          data.items.add(new File(['{"text": "dropped"}\\n'], "rows.jsonl"));
          document.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true }));
        }"""
    )
    expect(page.locator(".item")).to_have_count(2)
    file.write_text("text,label\nbroken\n")
    page.locator("#file").set_input_files(file)
    page.wait_for_selector("#message.failed")
    assert "line 2 of the file: it has 1 fields" in page.locator("#message").inner_text()
    file.write_text("text,label\nbroken\nteam dinner,\n")
    page.locator("#skip-bad").check()
    page.locator("#file").set_input_files(file)
    expect(page.locator(".item")).to_have_count(3)
    assert "1 refused (line 2 of the file: it has 1 fields" in page.locator("#message").inner_text()
    with page.expect_download() as download:
        page.goto(f"{server.url}/models/files/files")
        page.get_by_role("link", name="As CSV").click()
    assert download.value.path().read_text().startswith("text,row,label,id,person\n")


def test_items_are_never_executed(opened, filled, server):
    model(server, "hostile", 0, 3)
    Client(server.url, "hostile").learn(SCRIPT, SCRIPT, subject=SCRIPT)
    for path in ("", "/classes", "/history", "/error"):
        page = opened(f"/models/hostile{path}")
        assert "hacked" not in page.title() and page.locator("main img").count() == 0
        assert page.locator("script").count() == 1
    page = opened("/models/hostile")
    assert SCRIPT in page.locator("#items").inner_text()


def test_without_script_forms_do_the_same(opened, server):
    model(server, "plain", 20, 3)
    page = opened("/models/plain", java_script_enabled=False)
    assert page.locator(".answers").first.is_visible()
    label = page.locator(".answers bdi").first.inner_text()
    page.locator(".answers button").first.click()
    assert page.locator("#message").inner_text() == f"Filed as {label}."
    page.locator("#undo").click()
    assert "Taken back" in page.locator("#message").inner_text()
    page.locator("#lines").fill("text\nanother item\n")
    page.get_by_role("button", name="Add").click()
    assert page.locator("#message").inner_text() == "1 item added."


def chosen(page):
    return [each.get_attribute("value") for each in page.locator("[form=several]:checked").all()]


def test_several_events_are_taken_back_by_keyboard(opened, server):
    client = model(server, "several", 40)
    client.rename(TEXTS[0][1], "renamed")
    ids = [each["id"] for each in client.history()]
    page = opened("/models/several/history")
    person = Person(page)
    person.tab_to("Filed as .*")
    assert page.evaluate("document.activeElement.value") == ids[1]
    person.press(
        "Space", "ArrowDown", "ArrowDown", "Space", "ArrowUp", "ArrowUp", "ArrowUp", "Space"
    )
    assert chosen(page) == [ids[0], ids[1], ids[3]]
    expect(page.get_by_role("button", name="Take back the selected (3)")).to_be_visible()
    person.press("Enter")
    expect(page.locator(".events li.gone")).to_have_count(3)
    assert person.message() == "3 taken back, 2 items to be filed again."
    assert {each["id"] for each in client.history() if each["taken_back"]} == {
        ids[0], ids[1], ids[3]
    }  # fmt: skip
    assert client.figures()["waiting"] == 2 and "renamed" not in client.figures()["classes"]

    # All of a page, whose button is in sight wherever the page stands; then all again.
    page.locator("a[rel=next]").click()
    page.wait_for_url("**/history?before=*")
    person.tab_to("Select all of this page")
    person.press("Space")
    n = page.locator("[form=several]").count()
    page.keyboard.press("Home")
    assert len(chosen(page)) == n and page.locator("#several").is_visible()
    person.tab_to(rf"Take back the selected \({n}\)")
    person.press("Enter")
    expect(page.locator("#message")).to_contain_text(f"{n} taken back")
    assert page.locator("[form=several]").count() == 0
    assert client.figures()["rows"] == 40 - 2 - n
    page.goto(f"{server.url}/models/several/history")
    page.locator("#select-all").check()
    page.locator("[form=several]").first.uncheck()
    assert not page.locator("#select-all").is_checked()


def test_events_that_somebody_else_took_back_are_counted(opened, server):
    client = model(server, "both", 5)
    page = opened("/models/both/history", java_script_enabled=False)
    page.get_by_role("button", name="Take back the selected").click()
    assert "nothing is selected" in page.locator("#message.failed").inner_text()
    for each in page.locator("[form=several]").all()[:3]:
        each.check()
    first, second, _ = chosen(page)
    client.undo(first)
    client.forget(id=second)
    page.get_by_role("button", name="Take back the selected").click()
    said = page.locator("#message").inner_text()
    assert said.startswith(
        "1 taken back, 1 item to be filed again, 1 had been taken back already, 1 refused (both has"
    )
    assert client.figures()["rows"] == 2


PATHS = ["/", "", "/classes", "/history", "/error", "/files"]


@pytest.mark.parametrize("width", [1280, 390, 320])
def test_no_page_is_wider_than_the_window(opened, filled, width):
    for path in PATHS:
        page = opened(path if path == "/" else filled + path, width)
        for i in range(min(3, page.locator("summary").count())):
            page.locator("summary").nth(i).click()
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path


LINES = """() => [...document.querySelectorAll("th")].map((cell) => {
  const words = document.createRange(), texts = [...cell.querySelectorAll("*"), cell]
    .flatMap((each) => [...each.childNodes].filter((node) => node.nodeType === 3));
  return texts.flatMap((node) => [...node.data.matchAll(/\\S+/g)].map((word) => {
    words.setStart(node, word.index);
    words.setEnd(node, word.index + word[0].length);
    return [word[0], new Set([...words.getClientRects()].map((box) => box.top)).size];
  }));
}).flat()"""
"""The words of the headers of a table, and in how many lines each is."""


@pytest.mark.parametrize("width", [1280, 390, 320])
def test_words_in_headers_of_tables_are_not_broken(opened, named, filled, width):
    for path in ["/", f"{filled}/error"]:
        page = opened(path, width)
        lines = dict(page.evaluate(LINES))
        assert lines and {n for word, n in lines.items() if len(word) < 15} == {1}, (path, lines)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
    lines = dict(opened("/", width).evaluate(LINES))
    assert lines.keys() >= {*named} and (lines["a" * 64] > 1 or width == 1280)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_are_legible_on_light_and_dark(opened, filled, scheme):
    for path in PATHS:
        page = opened(path if path == "/" else filled + path, scheme=scheme)
        found = page.evaluate(CONTRASTS)
        assert len(found) > 5
        assert min(found)[0] >= 4.5, (path, min(found))


def test_every_control_has_a_name_and_every_page_its_landmarks(opened, filled):
    for path in PATHS:
        page = opened(path if path == "/" else filled + path)
        assert page.locator("main").count() == page.locator("h1").count() == 1
        assert page.locator("header").count() == 1 and page.locator("html[lang]").count() == 1
        nameless = page.evaluate(
            """() => [...document.querySelectorAll("input:not([type=hidden]), select, textarea")]
              .filter((e) => !e.labels.length && !e.ariaLabel).map((e) => e.outerHTML)"""
        )
        assert nameless == []
        ids = page.evaluate("[...document.querySelectorAll('[id]')].map((e) => e.id)")
        assert len(ids) == len(set(ids))
    page = opened(filled)
    assert page.get_by_role("navigation").count() >= 1 and page.get_by_role("search").count() == 1
    item = page.locator(".item").first
    said = item.get_attribute("aria-labelledby").split()
    assert all(page.locator(f"#{each}").count() == 1 for each in said)


def test_a_server_that_is_gone_is_said(browser, tmp_path):
    with Server(tmp_path / "desk.db") as server:
        model(server, "mail", 20, 3)
        page = browser.new_page()
        page.goto(f"{server.url}/models/mail")
        server.kill()
        page.keyboard.press("1")
        page.wait_for_selector("#message.failed")
        assert "could not be reached" in page.locator("#message").inner_text()
        server.start()
        page.keyboard.press("1")
        expect(page.locator("#message")).to_contain_text("Filed as")
        page.close()
