"""The page of a report: its markup, and what a browser makes of it."""

import importlib.util
import re
import shutil
import sys
from dataclasses import dataclass
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest

from kesler import KeslerError
from kesler.evaluation.reports.coding import ScoredRows
from kesler.evaluation.reports.report import Report

ALERT, IMAGE = "<script>alert(1)</script>", '"><img src="https://example.org/x" onerror=alert(2)>'
HOSTILE = [
    ALERT,
    IMAGE,
    "</style></script><script>alert(3)</script>",
    "{{ 7 * 7 }}{% raw %}",
    "\x00\x1b[31m\ud800\u202egnp.exe",
    "javascript:alert(4)",
    "a very long name " * 40,
    "ordinary",
]

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
HAS_PLAYWRIGHT = importlib.util.find_spec("playwright") is not None
needs_browser = pytest.mark.skipif(
    CHROMIUM is None or not HAS_PLAYWRIGHT,
    reason="needs Chromium: install the package chromium of the system, and playwright by pip",
)


@dataclass
class Contribution:
    feature: str
    margin: float


@dataclass
class Explanation:
    contributions: list[Contribution]
    remainder: Contribution


def scored(n=2000, labels=HOSTILE, *, learns=True, confident=True):
    """Rows whose error falls with time and confidence; the last class is never a target."""
    rng, k = np.random.default_rng(0), len(labels)
    answers = np.concatenate([[0], rng.integers(k - 1, size=n - 1)]).astype(np.int32)
    p = rng.random(n) if confident else np.full(n, np.nan)
    errs = rng.random(n) < (1 - np.nan_to_num(p)) * (0.2 + 1 / np.sqrt(np.arange(1, n + 1)))
    predicted = np.where(errs, (answers + 1 + rng.integers(2, size=n)) % k, answers)
    unseen = np.zeros(n, dtype=bool)
    unseen[np.unique(answers, return_index=True)[1]] = True
    return ScoredRows(labels, predicted.astype(np.int32), answers, unseen, p, p / 2, learns)


@pytest.fixture(scope="module")
def report():
    return Report.of(scored(), notes=(f"A note with {ALERT}",))


@pytest.fixture(scope="module")
def path(report, tmp_path_factory):
    """The page, with texts and explanations."""
    rows = [each.row for each in report.surely_wrong]
    texts = {row: f"{HOSTILE[i % 6]} text {i}" for i, row in enumerate(rows)}
    why = Explanation([Contribution(IMAGE, 1.5), Contribution("cash", -0.25)], Contribution("", 2))
    file = tmp_path_factory.mktemp("page") / "page.html"
    explanations = dict.fromkeys(rows[:2], why)
    report.to_html(file, title=f"Tickets {ALERT}", texts=texts, explanations=explanations)
    return file


# ---- markup -------------------------------------------------------------------------------------


class Outline(HTMLParser):
    """The elements of a page in order, with their attributes, and its texts."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append(data)

    def all(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]


@pytest.fixture(scope="module")
def outline(path):
    return Outline(path.read_text("utf-8"))


def test_labels_and_texts_are_no_markup(outline):
    assert len(outline.all("script")) == 1 and not outline.all("img") and not outline.all("iframe")
    text = "".join(outline.texts)
    for label in (ALERT, IMAGE, "{{ 7 * 7 }}{% raw %}", "</style></script><script>alert(3)"):
        assert label in text
    assert "\\x00\\x1b[31m\\ud800" in text
    assert not any(name.startswith("on") for _, attrs in outline.elements for name in attrs)
    assert not any("style" in attrs for _, attrs in outline.elements)


def test_nothing_is_referred_to(outline):
    links = [attrs["href"] for attrs in outline.all("a")]
    ids = {attrs["id"] for _, attrs in outline.elements if "id" in attrs}
    assert links and all(link.startswith("#") and link[1:] in ids for link in links)
    assert not any(
        name in ("src", "action", "data") for _, attrs in outline.elements for name in attrs
    )
    assert not outline.all("link")


def test_the_policy_allows_the_own_style_and_script_alone(outline):
    [policy] = [a["content"] for a in outline.all("meta") if a.get("http-equiv")]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules.pop("default-src") == rules.pop("base-uri") == rules.pop("form-action") == "'none'"
    assert set(rules) == {"style-src", "script-src"}
    assert all(re.fullmatch(r"'sha256-[A-Za-z0-9+/]{43}='", rule) for rule in rules.values())


def test_headings_are_nested_and_tables_named(outline):
    levels = [int(tag[1]) for tag, _ in outline.elements if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))
    assert len(outline.all("caption")) == len(outline.all("table")) >= 9
    assert all(attrs.get("scope") in ("col", "row") for attrs in outline.all("th"))
    ids = [attrs["id"] for _, attrs in outline.elements if "id" in attrs]
    assert len(ids) == len(set(ids))


def test_every_chart_has_a_title_a_description_and_its_numbers(outline):
    pictures = outline.all("svg")
    assert len(pictures) == 6 and len(outline.all("desc")) == 6 and len(outline.all("figure")) == 6
    ids = {attrs["id"] for _, attrs in outline.elements if "id" in attrs}
    assert all(ids.issuperset(attrs["aria-labelledby"].split()) for attrs in pictures)
    assert len(outline.all("details")) == 6 + 2  # and two explanations


def test_positions_are_within_the_drawing(path):
    for points in re.findall(r'points="([^"]*)"', path.read_text("utf-8")):
        pairs = np.array([pair.split(",") for pair in points.split()], dtype=float)
        assert (pairs >= 0).all() and (pairs[:, 0] <= 360).all() and (pairs[:, 1] <= 220).all()


def test_without_confidences_their_sections_are_left_out(tmp_path):
    Report.of(scored(confident=False)).to_html(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text("utf-8")
    assert 'id="confidence"' not in text and 'id="wrong"' not in text
    assert "The predictions have no confidences" in text


@pytest.mark.parametrize("n", [1, 2, 9])
@pytest.mark.parametrize("learns", [True, False])
def test_few_rows_have_a_page(tmp_path, n, learns):
    Report.of(scored(n, learns=learns)).to_html(tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size > 5000


def test_many_classes_are_cut(tmp_path):
    labels = [f"class {i}" for i in range(700)]
    Report.of(scored(4000, labels)).to_html(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text("utf-8")
    assert re.search(r"The 500 of \d{3} classes", text)
    assert "The 15 classes with the most rows" in text


def test_a_path_that_cannot_be_written_is_a_sentence(report, tmp_path):
    with pytest.raises(KeslerError, match="cannot be written"):
        report.to_html(tmp_path / "no folder" / "page.html")
    with pytest.raises(KeslerError, match="cannot be written"):
        report.to_html(tmp_path)


def test_without_jinja_the_extra_is_named(report, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(KeslerError, match=r"pip install 'kesler\[report\]'"):
        report.to_html(tmp_path / "page.html")


# ---- in a browser -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Containers run as root, where the sandbox of Chromium cannot start.
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


@pytest.fixture
def opened(browser, path):
    """Open the page; whatever it says, asks for or requests is an error in the end."""
    contexts, faults = [], []

    def open_page(width=1280, scheme="light", **options):
        viewport = {"width": width, "height": 900}
        contexts.append(browser.new_context(viewport=viewport, color_scheme=scheme, **options))
        page = contexts[-1].new_page()
        page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("dialog", lambda dialog: (faults.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: faults.append(request.url))
        page.goto(path.as_uri())
        assert faults.pop(0) == path.as_uri()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not faults


@needs_browser
@pytest.mark.parametrize("width", [1280, 768, 390, 320])
def test_the_page_is_not_wider_than_the_window(opened, width):
    page = opened(width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("h1").inner_text() == f"Tickets {ALERT}"
    assert page.locator("h2").count() == 5 and page.locator("svg").count() == 6
    for i in range(page.locator("summary").count()):
        page.locator("summary").nth(i).click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


CONTRASTS = """
() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => v / 255)
      .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const over = (top, below) => {
    const a = top.length > 3 ? top[3] : 1;
    return below.map((v, i) => a * top[i] + (1 - a) * v);
  };
  const behind = (element) => {
    if (element === null) return [255, 255, 255];
    return over(parse(getComputedStyle(element).backgroundColor), behind(element.parentElement));
  };
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !element.getClientRects().length || ["SCRIPT", "STYLE"].includes(element.tagName))
      continue;
    const style = getComputedStyle(element);
    const ink = parse(element instanceof SVGElement ? style.fill : style.color);
    const [a, b] = [light(ink), light(behind(element))].sort((x, y) => y - x);
    found.push([(a + 0.05) / (b + 0.05), element.tagName, element.textContent.slice(0, 40)]);
  }
  return found;
}
"""


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_are_legible_on_light_and_dark(opened, scheme):
    page = opened(scheme=scheme)
    found = page.evaluate(CONTRASTS)
    assert len(found) > 200
    assert min(found)[0] >= 4.5, min(found)
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", ground)[:3])) > 380) == (scheme == "light")


FOCUSABLE = "a[href], button, summary, [tabindex='0']"
VISIBLE = f"""
[...document.querySelectorAll("{FOCUSABLE}")].filter((each) => each.checkVisibility()).length
"""
FOCUSED = """
() => {
  const all = [...document.querySelectorAll("*")], style = getComputedStyle(document.activeElement);
  return [all.indexOf(document.activeElement), style.outlineStyle, document.activeElement.tagName];
}
"""


@needs_browser
def test_the_tab_key_reaches_every_control(opened):
    page, reached = opened(390), []
    for _ in range(200):
        page.keyboard.press("Tab")
        place, outline, tag = page.evaluate(FOCUSED)
        if tag == "BODY" or place in reached:
            break
        assert outline != "none"
        reached.append(place)
    assert len(reached) == page.evaluate(VISIBLE) > 25
    assert reached == sorted(reached)  # in the order of the page


@needs_browser
def test_enter_sorts_the_table_of_classes(opened, report):
    page = opened()
    button = page.get_by_role("button", name="recall")
    heading = page.locator("table.sortable thead th").nth(5)
    by_label = sorted(each.recall for each in report.classes if each.recall == each.recall)
    for order, expected in (("descending", by_label[::-1]), ("ascending", by_label)):
        button.focus()
        page.keyboard.press("Enter")
        assert heading.get_attribute("aria-sort") == order
        shown = page.locator("table.sortable tbody td:nth-child(6)").all_inner_texts()
        assert shown == [*(f"{100 * value:.2f} %" for value in expected), "-"]
    page.get_by_role("button", name="class", exact=True).click()
    assert heading.get_attribute("aria-sort") is None
    names = page.locator("table.sortable tbody th").all_inner_texts()
    words = [name for name in names if name[0].isalpha()]
    assert len(names) == 8 and len(words) == 3 and words == sorted(words)


@needs_browser
def test_enter_opens_the_numbers_of_a_chart(opened, report):
    page = opened()
    figure = page.locator("#error-by-age")
    assert not figure.locator("table").is_visible()
    figure.locator("summary").focus()
    page.keyboard.press("Enter")
    cells = figure.locator("tbody tr").first.locator("td").all_inner_texts()
    first = report.ages[0]
    assert cells == [str(first.rows), str(first.mistakes), f"{100 * first.error:.2f} %"]
    reasons = page.locator("#wrong + p + ol details").first
    reasons.locator("summary").click()
    assert reasons.locator("tbody th").all_inner_texts()[0] == IMAGE


@needs_browser
def test_without_script_the_page_is_whole(opened):
    page = opened(java_script_enabled=False)
    assert page.locator("button").count() == 0
    assert page.locator("table.sortable tbody tr").count() == 8
    assert page.locator("table.sortable thead th").first.inner_text() == "class"


@needs_browser
def test_the_browser_refuses_whatever_else_is_put_in(browser, path):
    page = browser.new_page()
    page.goto(path.as_uri())
    page.evaluate(
        """() => {
          window.refused = [];
          addEventListener("securitypolicyviolation", (e) => refused.push(e.effectiveDirective));
          const script = document.createElement("script");
          script.textContent = "window.ran = true";
          document.body.append(script);
          new Image().src = "https://example.org/x.png";
        }"""
    )
    page.wait_for_function("refused.length === 2")
    assert sorted(page.evaluate("refused")) == ["img-src", "script-src-elem"]
    assert page.evaluate("window.ran") is None
    page.close()
