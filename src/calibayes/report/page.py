"""The study as one HTML file: no network, no framework, readable on a phone, on paper and without JavaScript."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

from calibayes.atomic_file import atomic_file
from calibayes.errors import InvalidArgumentError

__all__ = ["render_page", "write_page"]

# What could end the block early or is no character of its own; JSON reads the escapes as what they stand for.
_UNSAFE_IN_JSON = re.compile("[<>&\u2028\u2029\ud800-\udfff]")


def render_page(study: dict[str, Any]) -> str:
    """The page that says in plain words, tables and charts how far each model's confidence can be trusted.

    The page loads nothing: styles, script, charts and the numbers themselves are in it, and its content security policy
    forbids everything else, by hash. Names from the data are escaped. Numbers are rounded to be read; the exact one is in
    the ``data-value`` of its element.

    Args:
        study: what `Study.to_dict` returns and ``--json`` writes.

    Returns:
        The HTML text; the same study gives the same text.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    from calibayes.report import page_numbers
    from calibayes.report.page_view import view

    loader = PackageLoader("calibayes.report", "templates")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    for name in ("count", "exact", "percent", "rounded", "sentence", "signed"):
        environment.filters[name] = getattr(page_numbers, name)
    style, script = (_lines(loader.get_source(environment, name)[0]) for name in ("page.css", "page.js"))
    text = environment.get_template("page.html").render(
        **view(study),
        style=Markup(style),
        script=Markup(script),
        json=Markup(_embedded(study)),
        policy=_policy(style, script),
    )
    # A file name that is not text cannot be written as UTF-8: show a question mark in its place.
    return text.encode("utf-8", "replace").decode("utf-8")


def write_page(study: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Write the page of a study; whoever reads ``path`` finds the old file or the whole new one.

    Args:
        study: what `Study.to_dict` returns.
        path: the HTML file to write.

    Raises:
        InvalidArgumentError: the file cannot be written there.
    """
    page = render_page(study).encode("utf-8")
    target = Path(path)
    try:
        if target.is_dir():
            raise IsADirectoryError(f"it is a folder; name a file in it, such as {str(target / 'report.html')!r}")
        with atomic_file(target) as unfinished:
            unfinished.write_bytes(page)
    except (OSError, ValueError) as error:
        raise InvalidArgumentError(f"The page cannot be written to {str(path)!r}: {error}.") from error


def _embedded(study: dict[str, Any]) -> str:
    """The study as JSON that can stand inside an HTML element."""
    try:
        text = json.dumps(study, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError as error:
        raise InvalidArgumentError(
            'Expected a study without NaN or infinite numbers (null and "Infinity" stand for them, as Study.to_dict writes '
            f"them), but got one that JSON cannot hold: {error}."
        ) from error
    return _UNSAFE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _policy(style: str, script: str) -> str:
    """The content security policy: this style, this script, pictures inside the page, and nothing else."""
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _lines(source: str) -> str:
    # A browser reads every line end as \n before it takes the hash.
    return "\n".join(source.splitlines())
