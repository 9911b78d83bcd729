"""Links: how weights follow from the accumulated updates."""

from kesler.parts.links import LINKS, resolve_link
from kesler.parts.links.exponential import Exponential
from kesler.parts.links.link import CustomLink, Linear, Link, link_function
from kesler.parts.links.p_norm import PNorm

__all__ = [
    "LINKS",
    "CustomLink",
    "Exponential",
    "Linear",
    "Link",
    "PNorm",
    "link_function",
    "resolve_link",
]
