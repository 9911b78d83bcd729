"""The text of HTML."""

from __future__ import annotations

from html.parser import HTMLParser

WITHIN_WORDS = frozenset(
    "abbr acronym b bdi bdo big cite code del dfn em font i ins kbd mark nobr q s samp small span"
    " strike strong sub sup tt u var wbr".split()
)
"""Tags that separate no words."""


class _Text(HTMLParser):
    """Collects the text between the tags, except scripts and style sheets."""

    def __init__(self) -> None:
        super().__init__()
        self.texts = list[str]()
        self._hidden = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden = tag in ("script", "style")
        self._separate(tag)

    def handle_endtag(self, tag: str) -> None:
        self._hidden = False
        self._separate(tag)

    def _separate(self, tag: str) -> None:
        if tag not in WITHIN_WORDS:
            self.texts.append(" ")

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
    return "".join(parser.texts).strip()
