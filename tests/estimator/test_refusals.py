"""What the classifier refuses, and what it says then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from tests.estimator.tables import classifier, iris, overlapping
from torch import nn

import calibayes as cb
from calibayes.errors import InvalidArgumentError, NetworkOutputError, UnsupportedNetworkError


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "dnn"}, "one of the methods fnn, bnn, .* but got 'dnn'. Did you mean 'fnn'?"),
        ({"lam": -1}, "`lam` to be a non-negative finite number or 'auto', but got -1"),
        ({"lam": "best"}, "'auto', but got 'best'"),
        ({"lam": 0}, "`lam` > 0 for 'ca-bnn'"),
        ({"beta": float("inf")}, "`beta` to be a non-negative finite number or 'auto', but got inf"),
        ({"beta": True}, "but got True"),
        ({"prior_std": 0}, "`prior_std` to be a positive finite number, but got 0"),
        ({"prior_std": 1e-300}, "`prior_std` to lie between 1e-15 and 1e.15, but got 1e-300"),
        ({"class_weight": {0: 0, 1: 0}}, r"some of them positive, but got \{0: 0.0, 1: 0.0\}"),
        ({"class_weight": {0: -1, 1: 1}}, r"`class_weight` to be non-negative finite .* but got \{0: -1.0, 1: 1.0\}"),
        ({"init_std": "wide"}, "`init_std` to be a positive"),
        ({"calibration": cb.WMMCE}, r"a measure such as WMMCE\(\)"),
        ({"epochs": 0}, "`epochs` to be a positive integer, but got 0"),
        ({"batch_size": 2.5}, "`batch_size` to be a positive integer, but got 2.5"),
        ({"learning_rate": -0.1}, "`learning_rate` to be a positive finite number, but got -0.1"),
        ({"optimizer": "adam"}, "`optimizer` to be a class such as torch.optim.Adam, but got 'adam'"),
        ({"samples": 0}, "`samples`"),
        ({"predict_samples": "mean"}, "`predict_samples` to be a positive integer, but got 'mean'"),
        ({"early_stopping": -2}, "`early_stopping` to be a positive integer, but got -2"),
        ({"validation_fraction": 1.0}, "`validation_fraction` to lie between 0 and 1"),
        ({"device": "nowhere"}, "`device` to be available on this machine, but got 'nowhere'"),
        ({"network": "resnet"}, "`network` to be 'auto', a function .* but got 'resnet'"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        classifier(**settings).fit(*overlapping(20))


def test_networks_that_do_not_fit() -> None:
    x, y = iris()
    with pytest.raises(NetworkOutputError, match="each of the 3 classes in `y`, but it has 4"):
        classifier(network=nn.Linear(4, 4)).fit(x, y)
    with pytest.raises(NetworkOutputError, match=r"returned \[2, 1\]"):
        classifier(network=lambda features, classes: nn.Linear(features, 1)).fit(x, y)
    with pytest.raises(UnsupportedNetworkError, match=r"to return a torch\.nn\.Module, but got int"):
        classifier(network=lambda features, classes: 3).fit(x, y)


def test_data_that_do_not_fit() -> None:
    x, y = overlapping(20)
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        classifier().fit(x, x[:, 0])
    with pytest.raises(ValueError, match="Input X contains NaN"):
        classifier().fit(np.where(x == 3, np.nan, x), y)
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=r"too large for dtype\('float32'\)"):
        classifier(standardize=False).fit(1e300 * x, y)
    np.testing.assert_array_equal(classifier().fit(sparse.csr_matrix(x), y).predict(x), classifier().fit(x, y).predict(x))
    with pytest.raises(InvalidArgumentError, match="got one class, 'a', in 20 samples"):
        classifier().fit(x, ["a"] * 20)
    with pytest.raises(InvalidArgumentError, match="got one class, 1, in 10 samples"):
        classifier().fit(x, y, sample_weight=y)
    with pytest.raises(InvalidArgumentError, match="number 3 is -2"):
        classifier().fit(x, y, sample_weight=np.where(np.arange(20) == 3, -2.0, 1.0))
    with pytest.raises(ValueError, match="zero"):
        classifier().fit(x, y, sample_weight=np.zeros(20))
    with pytest.raises(InvalidArgumentError, match="nothing to hold out for validation: each of the 2 classes has 1 sample"):
        classifier(early_stopping=True).fit(x[:2], y[:2])
    with pytest.raises(NotFittedError):
        classifier().predict(x)


def test_warm_starts_that_cannot_go_on() -> None:
    x, y = overlapping(20)
    found = classifier(warm_start=True, epochs=1).fit(x, y)
    with pytest.raises(InvalidArgumentError, match=r"classes that it had at first, \[0, 1\], but it has \[0, 2\]"):
        found.fit(x, 2 * y)
    with pytest.raises(InvalidArgumentError, match="a MeanField cannot continue as 'ca-fnn'"):
        found.set_params(method="ca-fnn").fit(x, y)
    with pytest.raises(ValueError, match="2 features, but CalibayesClassifier is expecting 3"):
        found.fit(x[:, :2], y)


def test_few_examples_are_enough() -> None:
    found = classifier("fnn", epochs=100).fit([[0.0], [1.0]], ["no", "yes"])
    assert found.predict([[0.0], [1.0]]).tolist() == ["no", "yes"]
    constant = classifier().fit(np.ones((10, 2)), np.arange(10) % 2)
    assert constant.predict_proba([[1.0, 1.0]]) == pytest.approx(0.5, abs=0.1)
