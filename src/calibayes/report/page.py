"""The study as one HTML file: no network, no framework, readable on a phone, on paper and without JavaScript."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from calibayes.atomic_file import atomic_file
from calibayes.errors import InvalidArgumentError

__all__ = ["render_page", "render_template", "write_html", "write_page"]

# Characters that could end the block early, or are not characters by themselves; JSON reads their escapes as the same.
_UNSAFE_IN_JSON = re.compile("[<>&\u2028\u2029\ud800-\udfff]")


def render_page(study: dict[str, Any]) -> str:
    """The page that explains, in words, tables and charts, how far each model's confidence can be trusted, as HTML.

    The page loads nothing: styles, script, charts and the numbers themselves are in it, and its content security policy
    forbids everything else, by hash. Names from the data are escaped. Numbers are rounded to be read; the exact one is in
    the ``data-value`` of its element. The same study gives the same text.

    Args:
        study: the result of `Study.to_dict`, which ``--json`` writes.
    """
    from calibayes.report.page_view import view

    return render_template("page.html", view(study), study)


def render_template(
    name: str, variables: Mapping[str, Any], content: dict[str, Any], *, styles: Sequence[str] = ("page.css",)
) -> str:
    """A template as a page that holds its styles, its script and its numbers.

    Args:
        name: the template's file.
        variables: its variables.
        content: the numbers, as JSON has them.
        styles: the style sheets, one after the other.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    from calibayes.report import page_numbers

    loader = PackageLoader("calibayes.report", "templates")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    for each in ("count", "exact", "percent", "rounded", "sentence", "signed"):
        environment.filters[each] = getattr(page_numbers, each)
    # A browser reads every line end as \n before it takes the hash.
    style, script = (
        "\n".join(line for file in files for line in loader.get_source(environment, file)[0].splitlines())
        for files in (styles, ("page.js",))
    )
    text = environment.get_template(name).render(
        **variables,
        style=Markup(style),
        script=Markup(script),
        json=Markup(_embedded(content)),
        policy=_policy(style, script),
    )
    # A file name that is not valid Unicode cannot be written as UTF-8: show question marks in its place.
    return text.encode("utf-8", "replace").decode("utf-8")


def write_page(study: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Write the page of a study, atomically; raise `InvalidArgumentError` if ``path`` cannot be written.

    Args:
        study: the result of `Study.to_dict`.
        path: the HTML file to write.
    """
    write_html(render_page(study), path)


def write_html(page: str, path: str | os.PathLike[str]) -> None:
    """Write a page, atomically; raise `InvalidArgumentError` if ``path`` cannot be written."""
    target = Path(path)
    try:
        if target.is_dir():
            raise IsADirectoryError(f"it is a folder; name a file in it, such as {str(target / 'report.html')!r}")
        with atomic_file(target) as unfinished:
            unfinished.write_bytes(page.encode("utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidArgumentError(f"The page cannot be written to {str(path)!r}: {error}.") from error


def _embedded(study: dict[str, Any]) -> str:
    """The study as JSON that can be put inside an HTML element."""
    try:
        text = json.dumps(study, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError as error:
        raise InvalidArgumentError(
            'Expected a study without NaN or infinite numbers (null and "Infinity" stand for them, as Study.to_dict writes '
            f"them), but got one that JSON cannot hold: {error}."
        ) from error
    return _UNSAFE_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _policy(style: str, script: str) -> str:
    """The content security policy: this style, this script, images inside the page, and nothing else."""
    style_hash, script_hash = (
        "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)
    )
    return (
        f"default-src 'none'; style-src '{style_hash}'; script-src '{script_hash}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
