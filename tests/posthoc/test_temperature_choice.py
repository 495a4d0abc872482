from __future__ import annotations

import numpy as np
import pytest
import torch

from calibayes.posthoc import TemperatureScaling
from calibayes.posthoc.temperature_choice import temperature_or_identity


def test_data_that_settle_a_temperature_have_it() -> None:
    probs, labels = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]]), torch.tensor([0, 1, 1])
    scaling, why_none = temperature_or_identity(probs, labels)
    assert why_none is None
    assert scaling.temperature == TemperatureScaling().fit(probs, labels).temperature != 1


@pytest.mark.parametrize(("labels", "why"), [([0, 1], "Every held-out example is decided right"), ([1, 0], "no likelier than")])
def test_without_one_probabilities_stay_as_they_are(labels: list[int], why: str) -> None:
    probs = np.array([[0.9, 0.1], [0.2, 0.8]])
    scaling, why_none = temperature_or_identity(probs, np.array(labels))
    assert scaling.temperature == 1
    np.testing.assert_allclose(scaling.transform(probs), probs)
    assert why_none is not None
    assert why in why_none
    assert why_none.endswith("fit ever better. No temperature is used.")
