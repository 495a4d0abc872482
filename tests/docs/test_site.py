"""The documentation builds as a site without a warning, and the site needs nothing from elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote, urlsplit

import pytest

pytestmark = pytest.mark.docs
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = [value for name, value in attrs if name in ("href", "src") and value]
        self.links += found
        if tag in ("script", "img", "link"):
            self.loaded += found


def read(page: Path) -> _Links:
    parser = _Links()
    parser.feed(page.read_text(encoding="utf-8"))
    return parser


def test_every_page_is_there(site: Path) -> None:
    docs = ROOT / "docs"
    pages = {path.relative_to(docs).with_suffix("") for path in docs.rglob("*.md") if path.stem != "README"}
    built = {path.parent.relative_to(site) for path in site.rglob("index.html")}
    assert built >= pages | {Path("contributing"), Path("changelog")}


def test_every_link_inside_the_site_leads_somewhere(site: Path) -> None:
    dead = []
    for page in site.rglob("*.html"):
        for link in read(page).links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or not parts.path or page.name == "404.html":
                continue
            target = (page.parent / unquote(parts.path)).resolve()
            if not (target.is_file() or (target / "index.html").is_file()):
                dead.append(f"{page.relative_to(site)}: {link}")
    assert dead == []


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    loaded = {link for page in site.rglob("*.html") for link in read(page).loaded}
    assert loaded
    assert [link for link in loaded if urlsplit(link).netloc] == []


def test_formulas_are_drawn_by_the_browser_itself(site: Path) -> None:
    text = (site / "explanation" / "objective" / "index.html").read_text(encoding="utf-8")
    assert "<math" in text
    assert "arithmatex" not in text


def test_everything_public_is_in_the_reference(site: Path) -> None:
    import calibayes

    text = (site / "reference" / "api" / "index.html").read_text(encoding="utf-8")
    described = set(re.findall(r'id="calibayes\.([\w.]+)"', text))
    assert len(described) > 50
    public = [name for name in dir(calibayes) if not name.startswith("_") and name != "annotations"]
    own = [name for name in public if not isinstance(getattr(calibayes, name), ModuleType)]
    assert set(own) - described == set()
