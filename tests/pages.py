"""Pages of the documentation whose code needs packages that may be missing, and so cannot be doctests."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"


def run_page(name: str) -> dict[str, Any]:
    """Run the Python blocks of a page from top to bottom, as one program; returns its names.

    A line of an error is that of the page.
    """
    path = DOCS / name
    text = path.read_text()
    names: dict[str, Any] = {"__name__": "page"}
    for block in re.finditer(r"^```python\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE):
        lines = "\n" * (text[: block.start(1)].count("\n"))
        exec(compile(lines + block[1], str(path), "exec"), names)
    return names
