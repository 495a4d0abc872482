"""The parts of the page's charts: SVG elements, scales, marks that carry their numbers, and rows of the forest plot."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from xml.etree.ElementTree import Element, SubElement, tostring

__all__ = ["Scale", "add", "as_text", "canvas", "forest_row", "mark", "model_class", "symbol"]

# Paths of radius one; with a colour and a dash they distinguish models in grey too, and for every kind of colour vision.
_SYMBOLS = (
    "M1 0A1 1 0 1 1 -1 0A1 1 0 1 1 1 0Z",
    "M-.9 -.9H.9V.9H-.9Z",
    "M0 -1.15L1.1 .85H-1.1Z",
    "M0 -1.25L1.25 0L0 1.25L-1.25 0Z",
    "M0 1.15L1.1 -.85H-1.1Z",
    "M-.4 -1.1H.4V-.4H1.1V.4H.4V1.1H-.4V.4H-1.1V-.4H-.4Z",
    "M0 -1.2L1.14 -.37L.71 .97H-.71L-1.14 -.37Z",
)
_COLOURS, _DASHES = 6, 7


@dataclass(frozen=True)
class Scale:
    """A linear map from numbers to positions on the page: ``low`` to ``start``, ``high`` to ``end``.

    Examples:
        >>> Scale(0, 1, 40, 240)(0.25)
        90.0
    """

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The coordinate of ``value``."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def add(parent: Element, tag: str, text: str | None = None, **attributes: str | float) -> Element:
    """Add an element to another; ``class_`` and ``text_anchor`` become ``class`` and ``text-anchor``.

    Examples:
        >>> as_text(add(Element("g"), "text", "<b>", x=1.23456, class_="tick"))
        '<text x="1.23" class="tick">&lt;b&gt;</text>'
    """
    element = SubElement(parent, tag)
    for name, value in attributes.items():
        written = value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")
        element.set(name.rstrip("_").replace("_", "-"), written)
    element.text = text
    return element


def canvas(width: float, height: float, name: str, title: str, description: str, *, class_: str, role: str = "img") -> Element:
    """An empty drawing with the title and the description for screen readers.

    The ids of both begin with ``name``, which must be unique in the page. The role is ``"group"`` if marks in the drawing can
    be focused.
    """
    labels = {"aria-labelledby": f"{name}-title", "aria-describedby": f"{name}-description"}
    root = Element("svg", {"viewBox": f"0 0 {width:g} {height:g}", "class": class_, "role": role, **labels})
    add(root, "title", title, id=f"{name}-title")
    add(root, "desc", description, id=f"{name}-description")
    return root


def mark(parent: Element, lines: Iterable[str], *, first: bool) -> Element:
    """A group that shows its numbers, one line each, when it is pointed at or focused.

    The tab key reaches the first mark of a chart; the arrow keys go on from there.
    """
    return add(parent, "g", class_="mark", role="img", tabindex="0" if first else "-1", aria_label="; ".join(lines))


def symbol(parent: Element, x: float, y: float, index: int, *, size: float = 4) -> Element:
    """Add the symbol of the model with this index."""
    path = _SYMBOLS[index % len(_SYMBOLS)]
    return add(parent, "path", d=path, class_="symbol", transform=f"translate({x:.2f} {y:.2f}) scale({size:g})")


def model_class(index: int) -> str:
    """The classes that give a model its colour and its dash; the pair repeats only after 42 models."""
    return f"model-{index % _COLOURS} dash-{index % _DASHES}"


def as_text(element: Element) -> str:
    """The drawing as SVG for the page; text and attributes are escaped."""
    return tostring(element, encoding="unicode")


def forest_row(value: float, low: float, high: float, *, reach: float, clear: bool) -> str:
    """A row of the forest plot as SVG: a difference and its interval, from ``-reach`` to ``reach``.

    The square is filled if the difference is ``clear``: the interval excludes zero. The table draws the line of no difference
    behind all rows, and shows the numbers, so the row is hidden from screen readers.
    """
    kind = "clear" if clear else "unclear"
    root = Element("svg", {"viewBox": "0 0 200 30", "class": f"forest {kind}", "aria-hidden": "true"})
    x = Scale(-reach, reach, 8, 192)
    add(root, "path", d=f"M{x(low):.1f} 11v8m0-4H{x(high):.1f}m0-4v8")
    add(root, "rect", x=x(value) - 4, y=11)  # the style sheet makes the square 8 wide: a page may have hundreds of them
    return as_text(root)
