"""HTML read strictly into a tree: errors that a browser would silently repair are raised."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = {"meta", "link", "br", "img", "input", "hr"}


@dataclass
class Node:
    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Node | str] = field(default_factory=list)

    def __iter__(self) -> Iterator[Node]:
        """The node and all below it, in the order of the page."""
        yield self
        for child in self.children:
            if isinstance(child, Node):
                yield from child

    @property
    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    @property
    def classes(self) -> list[str]:
        return self.attributes.get("class", "").split()

    def all(self, tag: str = "", class_: str = "") -> list[Node]:
        return [node for node in self if tag in ("", node.tag) and (not class_ or class_ in node.classes)]

    def one(self, tag: str = "", class_: str = "", **attributes: str) -> Node:
        matches = [node for node in self.all(tag, class_) if attributes.items() <= node.attributes.items()]
        assert len(matches) == 1, (tag, class_, attributes, len(matches))
        return matches[0]

    def numbers(self) -> list[str]:
        return [node.attributes["data-value"] for node in self if "data-value" in node.attributes]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open = [Node("document")]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {name: value or "" for name, value in attrs})
        assert len(node.attributes) == len(attrs), f"<{tag}> has an attribute twice"
        self.open[-1].children.append(node)
        if tag not in _VOID:
            self.open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert any(node.tag == "svg" for node in self.open), f"<{tag}/> outside SVG"
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def parsed(html: str) -> Node:
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert len(reader.open) == 1, f"not closed: {[node.tag for node in reader.open[1:]]}"
    return reader.open[0]
