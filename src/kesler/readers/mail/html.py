"""The text of HTML."""

from __future__ import annotations

from html.parser import HTMLParser


class _Text(HTMLParser):
    """Collects the text between the tags, except scripts and style sheets."""

    def __init__(self) -> None:
        super().__init__()
        self.texts = list[str]()
        self._hidden = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden = tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._hidden = False

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.texts.append(data)


def without_tags(html: str) -> str:
    r"""Return the text between the tags, except that of scripts and style sheets.

    Examples
    --------
    >>> without_tags("<style>p {}</style>Soup<br>of the&nbsp;day")
    'Soup of the\xa0day'
    """
    parser = _Text()
    try:
        parser.feed(html)
        parser.close()
    except AssertionError:
        # Some versions of Python stop at a malformed declaration; the text before it is used.
        pass
    return " ".join(parser.texts)
