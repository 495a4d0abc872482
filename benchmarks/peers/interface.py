"""What the file of a library has to offer: of Bayesian networks (`Peer`), and of other ways to a distribution (`Method`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor, nn

__all__ = [
    "BATCH",
    "EXAMPLES",
    "INIT_STD",
    "MEMBERS",
    "PRIOR_STD",
    "RANK",
    "SWAG_EPOCHS",
    "Data",
    "Method",
    "Peer",
    "Run",
    "trainable",
]

Data = tuple[Tensor, Tensor]

BATCH = 256  # of a prediction
EXAMPLES = 10_000  # in the training data: what a KL is divided by
PRIOR_STD = 0.1
INIT_STD = 0.01
MEMBERS = 8  # of an ensemble
RANK = 20  # deviations that SWAG keeps
SWAG_EPOCHS = 2  # the fewest that leave two sets of weights, if it collects one an epoch


@dataclass(frozen=True)
class Run:
    """What is timed.

    Attributes:
        call: one training step, one fit, or one prediction of all inputs.
        bayesian: how many of the network's weights have a distribution in it; of an ensemble, the weights of all members.
    """

    call: Callable[[], object]
    bayesian: int


@dataclass(frozen=True)
class Peer:
    """One way of one library. Its functions import the library, so that a missing one is an error of theirs.

    Attributes:
        name: what the table calls it.
        package: the distribution that it is installed with.
        step: a training step on a batch, with one sample of the weights, by Adam; the network given is left as it is.
        predict: the average of class probabilities over samples of the weights; none where it is another peer's.
        note: what one has to know to read its rows.
    """

    name: str
    package: str
    step: Callable[[nn.Module, Tensor, Tensor], Run]
    predict: Callable[[nn.Module, Tensor, int], Run] | None
    note: str


@dataclass(frozen=True)
class Method:
    """One library's ensemble, Laplace approximation or SWAG. Its functions import the library, as those of a `Peer` do.

    Attributes:
        name: what the table calls it.
        package: the distribution that it is installed with.
        fit: an epoch of training on the data in batches, by Adam (of SWAG, `SWAG_EPOCHS`), or the whole fit where that is
            no training; the network given is left as it is.
        predict: class probabilities of inputs, once it was fitted to the data; with so many samples, or in closed form for
            ``None``. None where it is another method's.
        note: what one has to know to read its rows.
    """

    name: str
    package: str
    fit: Callable[[nn.Module, Data], Run]
    predict: Callable[[nn.Module, Data, Tensor, int | None], Run] | None
    note: str


def trainable(net: nn.Module) -> int:
    """How many weights of the network are trained."""
    return sum(p.numel() for p in net.parameters() if p.requires_grad)
