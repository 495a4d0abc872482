"""The page on Lightning runs as it stands."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.pages import run_page

import calibayes as cb

pytest.importorskip("lightning")
from tests.lightning.toy import MARKS

pytestmark = MARKS


def test_the_page_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = run_page("how-to/lightning.md")
    assert found["logged"].keys() >= {"train_loss", "cross_entropy", "calibration", "kl", "val_ece"}
    assert found["probs"].shape == (200, 3)
    assert found["module"].scores["val"].n == 200
    assert found["module"].scores["val"].accuracy > 0.6  # 1/3 by chance
    assert isinstance(cb.load(tmp_path / "model.safetensors", found["net"]), cb.MeanField)
    assert found["own_trainer"].global_step == 10
