"""Figures without a screen, and checks that every picture must pass."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from torch import Tensor


@pytest.fixture(autouse=True)
def _without_a_screen() -> Iterator[None]:
    mpl.use("Agg")
    yield
    plt.close("all")


@pytest.fixture(scope="session")
def simulated() -> tuple[Tensor, Tensor]:
    """Predictions of ten classes by an overconfident classifier, and the truth."""
    generator = torch.Generator().manual_seed(0)
    targets = torch.randint(10, (2000,), generator=generator)
    strength = 1 + 3 * torch.rand(2000, 1, generator=generator, dtype=torch.float64)
    logits = torch.randn(2000, 10, generator=generator, dtype=torch.float64)
    logits[torch.arange(2000), targets] += strength[:, 0]
    return (2 * strength * logits).softmax(-1), targets


@pytest.fixture
def inside() -> Callable[[Figure], None]:
    """Fails unless everything drawn in a figure, especially text, lies within it."""

    def check(figure: Figure) -> None:
        figure.savefig(io.BytesIO())  # drawing computes the layout
        every: list[Any] = figure.findobj(Axes)
        boxes: list[Any] = [ax.get_tightbbox() for ax in every]
        boxes += [text.get_window_extent() for ax in every for text in ax.texts]
        boxes += [text.get_window_extent() for legend in figure.findobj(Legend) for text in legend.get_texts()]
        for box in boxes:
            # The constrained layout stops iterating a pixel or two before it has converged.
            assert box.x0 >= -2
            assert box.y0 >= -2
            assert box.x1 <= figure.bbox.x1 + 2
            assert box.y1 <= figure.bbox.y1 + 2

    return check
