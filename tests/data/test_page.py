"""The longer examples of docs/reference/data.md, which need the data sets, run; `fit` sees a few of the examples."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.data.real import needs

import calibayes
from calibayes.data import Augmented
from calibayes.data.fetching import SETS

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "data.md").read_text(encoding="utf-8")
BLOCKS = [block for block in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL) if not block.startswith(">>>")]


@needs("newsgroups", "cifar10", "glove", "resnet20")
def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fit, steps = calibayes.fit, []

    def short(posterior: Any, train: Any, objective: Any, *, validation: Any, **settings: Any) -> None:
        few = train.data if isinstance(train, Augmented) else train
        few = few[0][:8], few[1][:8]
        held_out = validation[0][:8], validation[1][:8]
        few = Augmented(few) if isinstance(train, Augmented) else few
        history = fit(posterior, few, objective, epochs=1, batch_size=4, validation=held_out, **settings)
        steps.append(len(history.steps))

    monkeypatch.setattr(calibayes, "fit", short)
    monkeypatch.chdir(tmp_path)
    assert len(BLOCKS) == 3
    for block in BLOCKS:
        exec(block, {})
    assert steps == [2, 2]


def test_the_page_has_every_address_and_checksum() -> None:
    for each in SETS.values():
        assert each.archive in PAGE
        assert each.place.split("/")[0] in PAGE
        for fact in (*each.remote.urls, each.remote.sha256):
            assert fact in PAGE
