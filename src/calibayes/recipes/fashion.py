"""One training on the embedded Fashion-MNIST: what `calibayes sweep` runs unless it is told otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, Self

from calibayes.checks import positive_integer
from calibayes.data import Splits
from calibayes.networks import SmallCNN
from calibayes.recipes.compare.task import FASHION_MNIST
from calibayes.recipes.reproduce.training import Training, trained
from calibayes.recipes.schemes import is_bayesian, is_calibration_aware

__all__ = ["FashionTraining", "fashion_trial"]


@dataclass(frozen=True, kw_only=True)
class FashionTraining(Training):
    """`Training` of a small convolutional network on images of clothes that come with calibayes.

    Attributes:
        train: training images.
        validation: validation images.
        test: test images.
    """

    epochs: int = 10
    optimizer: Literal["rmsprop", "adam"] = "adam"
    train: int = 3000
    validation: int = 1000
    test: int = 6000

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("train", "validation", "test"):
            positive_integer(name, getattr(self, name))

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        r"""The settings as a mapping names them; $\lambda$ is 10 and $\beta$ is 0.1 where the scheme has them.

        Examples:
            >>> FashionTraining.of({"scheme": "ca-fnn", "epochs": 2}).lam
            10.0
        """
        scheme = settings.get("scheme", cls.scheme)
        usual = {"lam": 10.0 if is_calibration_aware(scheme) else 0.0, "beta": 0.1 if is_bayesian(scheme) else 0.0}
        return super().of({**usual, **settings})


def fashion_trial(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Train and test as the settings say; names are those of `FashionTraining`."""
    chosen = FashionTraining.of(settings)
    return trained(chosen, _images(chosen.train, chosen.validation, chosen.test), SmallCNN)


@lru_cache(maxsize=1)
def _images(train: int, validation: int, test: int) -> Splits:
    return FASHION_MNIST.load(train, validation, test)
