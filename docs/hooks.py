"""What makes a site of the pages: links to the repository's other files, and maths that needs no script."""

from __future__ import annotations

import html
import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Pages that lie at the top of the repository, and what they are called in the site."""

_UP = re.compile(r"\[([^\]]*)\]\((\.\./[^)#\s]+)(#[^)\s]*)?\)")
_DOWN = re.compile(r"\]\(docs/([^)\s]+)\)")
_HERE = re.compile(r"\]\((?!https?:|docs/|#)([^)\s]+)\)")
_MATHS = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def on_files(files: Any, config: Any) -> Any:
    """Add what the pages link to outside their folder: pages as pages, everything else as it is."""
    from mkdocs.structure.files import File

    for name, page in PAGES.items():
        files.append(File.generated(config, page, content=_from_top((ROOT / name).read_text(encoding="utf-8"))))
    for name in sorted(_linked(files)):
        files.append(File.generated(config, f"repository/{name}", abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links at what `on_files` added; a folder of the repository is named, not linked."""
    folder = posixpath.dirname(page.file.src_uri)
    return _UP.sub(lambda match: _link(match, folder), markdown)


def on_page_content(content: str, **_: Any) -> str:
    """Formulas as MathML, which browsers draw themselves."""
    return _MATHS.sub(_mathml, content)


def _from_top(markdown: str) -> str:
    """A page of the top folder as one that lies beside the others."""
    return _DOWN.sub(r"](\1)", _HERE.sub(r"](../\1)", markdown))


def _linked(files: Any) -> set[str]:
    """Files of the repository that pages link to, besides those that are pages of the site."""
    found = {
        _target(match[2], posixpath.dirname(file.src_uri))
        for file in files.documentation_pages()
        for match in _UP.finditer(file.content_string)
    }
    return {name for name in found if name not in PAGES and not name.startswith("docs/") and (ROOT / name).is_file()}


def _target(link: str, folder: str) -> str:
    """The path, from the repository's root, that a page in a folder of `docs` links to."""
    return posixpath.normpath(posixpath.join("docs", folder, link))


def _link(match: re.Match[str], folder: str) -> str:
    text, name, anchor = match[1], _target(match[2], folder), match[3] or ""
    if name.startswith("docs/"):
        return match[0]
    if (ROOT / name).is_dir():
        return text
    place = PAGES.get(name, name if name == "README.md" else f"repository/{name}")
    return f"[{text}]({posixpath.relpath(place, folder or '.')}{anchor})"


def _mathml(match: re.Match[str]) -> str:
    from latex2mathml.converter import convert

    return str(convert(html.unescape(match[2]), display="block" if match[1] == "div" else "inline"))
