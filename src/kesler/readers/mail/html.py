"""The text of HTML, in time linear in its length, however broken it is."""

from __future__ import annotations

import re
from html import unescape

WITHIN_WORDS = frozenset(
    "abbr acronym b bdi bdo big cite code del dfn em font i ins kbd mark nobr q s samp small span"
    " strike strong sub sup tt u var wbr".split()
)
"""Tags that separate no words."""
TAG = re.compile(r"<(?:!--|/?([A-Za-z][^\s/>]{0,99})|[!?/])")
REST = re.compile(r"""(?:[^"'>=]|=\s*+(?:"[^"]*+"|'[^']*+'|)|["'])*+>""")
"""What is behind the name of a tag: a bracket in the value of an attribute does not end it."""
LONGEST_TAG = 2000
"""Characters in which values are respected; a longer tag ends at the next bracket."""
HIDING = re.compile(r"</(?:script|style)\b", re.IGNORECASE)
LONG_REFERENCE = re.compile(r"&#(?:\d{8,}|[xX][0-9a-fA-F]{8,});?")
"""A reference to no character, whose number is too large for Python to read."""


def without_tags(html: str) -> str:
    r"""Return the text between the tags, except that of scripts and style sheets.

    Examples
    --------
    >>> without_tags("<style>p {}</style>Soup<br>of the&nbsp;day")
    'Soup of the\xa0day'
    """
    texts, at, last_comment = list[str](), 0, html.rfind("-->")
    while found := TAG.search(html, at):
        end = _end_of(html, found, last_comment)
        if end < 0:
            break
        texts.append(_unescaped(html[at : found.start()]))
        name = (found[1] or "").lower()
        if name and name not in WITHIN_WORDS:
            texts.append(" ")
        at = end
        if name in ("script", "style") and html[found.start() + 1] != "/":
            hidden = HIDING.search(html, at)
            at = hidden.start() if hidden else len(html)
    return "".join([*texts, _unescaped(html[at:])]).strip()


def _end_of(html: str, tag: re.Match[str], last_comment: int) -> int:
    """Return where a tag or comment ends, -1 if it does not; the last comment ends as given."""
    start = tag.end()
    if tag[0] == "<!--" and start - 2 <= last_comment:
        # The two overlap, as browsers end a comment at once at <!-->.
        return html.find("-->", start - 2) + 3
    if tag[1]:
        rest = REST.match(html, start, start + LONGEST_TAG)
        if rest:
            return rest.end()
    return html.find(">", start) + 1 or -1


def _unescaped(text: str) -> str:
    return unescape(LONG_REFERENCE.sub("\ufffd", text)) if "&" in text else text
