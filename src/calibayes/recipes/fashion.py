"""One training on the embedded Fashion-MNIST, the default trial of `calibayes sweep`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any, Literal, Self

from calibayes.checks import positive_integer
from calibayes.data import Splits
from calibayes.methods import METHODS, method_named
from calibayes.methods.term_weights import check_method_settings, has_beta, has_lam
from calibayes.networks import SmallCNN
from calibayes.objective import SCHEMES
from calibayes.recipes.compare.comparison_task import FASHION_MNIST
from calibayes.recipes.single_training import TrainingSettings, train_and_score

__all__ = ["FashionTraining", "fashion_trial"]


@dataclass(frozen=True, kw_only=True)
class FashionTraining(TrainingSettings):
    """The settings of a training of a small convolutional network on images of clothes that come with calibayes."""

    epochs: int = 10
    optimizer: Literal["rmsprop", "adam"] = "adam"
    train: int = 3000  # training images
    validation: int = 1000  # validation images
    test: int = 6000  # test images
    method_settings: Mapping[str, Any] = field(default_factory=dict)  # further settings of the method, by name

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("train", "validation", "test"):
            positive_integer(name, getattr(self, name))
        own = {field.name: f"the setting {field.name!r} itself" for field in fields(self)}
        check_method_settings(self.scheme, self.method_settings, {**own, "calibration": "the setting 'measure'"})

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        r"""The settings in a mapping, including those of the method.

        Others have the method's defaults; for the paper's four schemes $\lambda$ is 10 and $\beta$ is 0.1.

        Examples:
            >>> FashionTraining.of({"scheme": "ca-fnn", "epochs": 2}).lam
            10.0
            >>> FashionTraining.of({"scheme": "ensemble", "members": 2}).method_settings
            {'members': 2}
        """
        method = method_named(settings.get("scheme", cls.scheme))
        if method.name in SCHEMES:
            usual = {"lam": 10.0 if has_lam(method.name) else 0.0, "beta": 0.1 if has_beta(method.name) else 0.0}
        else:
            usual = {name: method.default(name) for name in ("lam", "beta", "prior_std", "init_std") if method.has(name)}
        known = {field.name for field in fields(cls)}
        others = {name: value for name, value in settings.items() if name not in known}
        # A name that no method has is left for the check below, which suggests the closest one.
        of_method = {name: value for name, value in others.items() if any(method_named(each).has(name) for each in METHODS)}
        method.configured(**of_method)
        own = {name: value for name, value in settings.items() if name not in of_method}
        return super().of({**usual, **own, "method_settings": {**settings.get("method_settings", {}), **of_method}})

    def of_method(self, steps: int) -> dict[str, Any]:
        """The settings of the method, by name; as in `TrainingSettings`."""
        return super().of_method(steps) | dict(self.method_settings)


def fashion_trial(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Train and test with these settings; names are those of `FashionTraining`."""
    chosen = FashionTraining.of(settings)
    return train_and_score(chosen, _images(chosen.train, chosen.validation, chosen.test), SmallCNN)


@lru_cache(maxsize=1)
def _images(train: int, validation: int, test: int) -> Splits:
    return FASHION_MNIST.load(train, validation, test)
