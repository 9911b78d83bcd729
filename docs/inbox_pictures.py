"""Take the pictures of the inbox that the pages show: python docs/inbox_pictures.py.

Keys drive the pages of a server in the system's Chromium. The items are questions to a bank, of the
data that Kesler contains. It needs Playwright and PyAV: pip install playwright av.
"""

from __future__ import annotations

import io
import json
import shutil
import sys
import tempfile
import urllib.request
from pathlib import Path

import av
import matplotlib
from PIL import Image, ImageDraw, ImageFont
from playwright.sync_api import Page, sync_playwright

from kesler.datasets import load
from kesler.service import Client

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from serving import Server

STATIC = Path(__file__).parent / "_static"
SIZE = {"width": 960, "height": 640}
CAPTION = 64  # pixels below the page
PER_SECOND = 10
CODEC = {"crf": "32", "b": "0", "deadline": "good", "cpu-used": "4", "row-mt": "1"}
FONT = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"
NAMES = {
    "lost_or_stolen_phone": "lost phone",
    "apple_pay_or_google_pay": "mobile payment",
    "pin_blocked": "PIN blocked",
    "exchange_rate": "exchange rate",
    "age_limit": "age limit",
    "card_arrival": "card arrival",
    "passcode_forgotten": "passcode forgotten",
}
PHONE, PAY, PIN, RATE, AGE, ARRIVAL, PASSCODE = NAMES.values()
LEARNT = [PHONE, PAY, PIN, RATE, ARRIVAL, PASSCODE]
SHOWN = [ARRIVAL, AGE, PASSCODE, RATE, PHONE, PIN]
FILMED = [PHONE, PAY] * 3 + [PIN, PHONE] + [PIN, PAY] * 2 + [PHONE, PIN, PHONE, PAY]


def main() -> None:
    """Serve an empty database, and take a picture and a film of its pages."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Server(Path(folder) / "desk.db") as server,
        sync_playwright() as playwright,
    ):
        chromium = playwright.chromium
        browser = chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        still = {**SIZE, "height": 800}
        photograph(browser.new_page(viewport=still, device_scale_factor=2), server.url)
        film = Film(browser.new_page(viewport=SIZE, device_scale_factor=1.5), server.url)
        film.play()
        film.write(STATIC / "inbox.webm", STATIC / "inbox-film.png")


def questions() -> dict[str, list[str]]:
    """Return the short questions of each class, in the order of the data."""
    data, found = load("banking77/stream"), {name: [] for name in NAMES.values()}
    for record, label in zip(data.records, data.y, strict=True):
        if label in NAMES and 25 < len(record["text"]) < 70:
            found[NAMES[label]].append(" ".join(record["text"].split()))
    return found


def photograph(page: Page, url: str) -> None:
    """Take the picture of an inbox whose model has learnt 12 questions of each of six classes.

    One class after another appears. A class of those that are shown was never learnt.
    """
    texts = questions()
    order = sorted((3 * k + i, k, i) for k in range(len(LEARNT)) for i in range(12))
    rows = [{"text": texts[LEARNT[k]][i], "label": LEARNT[k]} for _, k, i in order]
    rows += [{"text": texts[name][12]} for name in SHOWN]
    Client(url, "bank").create()
    body = "\n".join(map(json.dumps, rows)).encode()
    request = urllib.request.Request(f"{url}/api/models/bank/import", body, method="POST")
    urllib.request.urlopen(request).close()
    page.goto(f"{url}/models/bank")
    page.evaluate("window.scrollTo(0, 0)")
    saved(Image.open(io.BytesIO(page.screenshot())), STATIC / "inbox.png")


def saved(image: Image.Image, path: Path) -> None:
    """Write an image of few colours."""
    image.quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)


class Film:
    """Images of a page, each with its time and with a sentence below it."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.images, self.sentence = page, [], ""
        self.names = {text: name for name, texts in questions().items() for text in texts}
        page.goto(url)
        page.get_by_label("Name").fill("mail")
        page.keyboard.press("Enter")
        page.wait_for_url("**/models/mail")

    def play(self) -> None:
        """Do what the film shows."""
        self.say("An inbox without items: no classes, and no list of them", 2.0)
        self.add_items()
        self.say("n, and the name of a class, which is new", 1.0)
        self.answer()
        self.answer()
        self.say("From now on, classes are suggested: 1 takes the first", 1.5)
        for _ in range(4):
            self.answer(1.1)
        self.say("A third class may come at any time: n, and its name", 1.5)
        self.answer()
        self.say("Confidences rise with every answer", 1.0)
        for _ in range(6):
            self.answer(0.8)
        self.take_back()

    def add_items(self) -> None:
        """Paste questions into the page."""
        texts = {name: iter(found) for name, found in questions().items()}
        lines = [json.dumps({"text": next(texts[name])}) for name in FILMED]
        self.page.get_by_label("Or paste lines").fill("\n".join(lines))
        self.say("Items come in: here as lines of JSON; also as tables and mail", 2.0)
        self.page.get_by_role("button", name="Add").click()
        self.page.wait_for_selector(".item")
        self.page.evaluate("window.scrollTo(0, 0)")
        self.show(1.5)

    def answer(self, seconds: float = 0.8) -> None:
        """File the marked item by a digit if its class is suggested, by its name if not."""
        item = self.page.locator(".item.current")
        name = self.names[item.locator(".text").inner_text()]
        suggested = item.locator(".answers bdi").all_inner_texts()
        if name in suggested:
            self.press(str(suggested.index(name) + 1), seconds)
        else:
            self.page.keyboard.press("n")
            for at in range(0, len(name), 2):
                self.page.keyboard.type(name[at : at + 2])
                self.show(0.1)
            self.press("Enter", 1.2)

    def take_back(self) -> None:
        """Press a wrong digit, and take the answer back."""
        self.say("A wrong key ...", 1.0)
        self.press("3", 1.5)
        self.say("... u takes it back, as if it had never been learnt", 0.5)
        self.press("u", 2.0)
        self.answer(1.0)
        self.say("kesler serve: this page, on your machine", 2.0)

    def press(self, key: str, seconds: float) -> None:
        """Press a key that sends an answer, and show the page behind it."""
        self.page.keyboard.press(key)
        self.page.wait_for_selector("body:not(.busy)")
        self.show(seconds)

    def say(self, sentence: str, seconds: float) -> None:
        """Show the page with another sentence."""
        self.sentence = sentence
        self.show(seconds)

    def show(self, seconds: float) -> None:
        """Add an image of the page as it is now."""
        shot = Image.open(io.BytesIO(self.page.screenshot())).convert("RGB")
        image = Image.new("RGB", (shot.width, shot.height + CAPTION), "#1b1f24")
        image.paste(shot)
        at = (shot.width // 2, shot.height + CAPTION // 2)
        font = ImageFont.truetype(FONT, 28)
        ImageDraw.Draw(image).text(at, self.sentence, "white", font, anchor="mm")
        self.images.append((image, round(seconds * PER_SECOND)))

    def write(self, path: Path, still: Path) -> None:
        """Write the film, and an image of it that is shown before it plays."""
        saved(self.images[-1][0], still)
        with av.open(path, "w") as film:
            stream = film.add_stream("libvpx-vp9", PER_SECOND, options=CODEC)
            stream.width, stream.height = self.images[0][0].size
            for image, count in self.images:
                for _ in range(count):
                    film.mux(stream.encode(av.VideoFrame.from_image(image)))
            film.mux(stream.encode())


if __name__ == "__main__":
    main()
