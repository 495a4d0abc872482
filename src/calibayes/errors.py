"""The named errors of calibayes: each quotes the offending value and says what to do."""

from __future__ import annotations

from collections.abc import Callable

__all__ = [
    "CalibayesError",
    "CheckpointError",
    "DataError",
    "DataOverlapError",
    "DownloadError",
    "DriftError",
    "EmptySelectionError",
    "InvalidArgumentError",
    "InvalidProbabilitiesError",
    "InvalidTargetsError",
    "MissingDataError",
    "MissingExtraError",
    "ModelFileError",
    "NetworkOutputError",
    "NonFiniteLossError",
    "OptimizerError",
    "PredictionFileError",
    "SweepError",
    "UnsupportedNetworkError",
]


class CalibayesError(Exception):
    """Whatever calibayes refuses to do; catch this to catch them all."""


class InvalidArgumentError(CalibayesError, ValueError):
    """A setting has a value that it cannot have."""


class InvalidProbabilitiesError(CalibayesError, ValueError):
    """Values that are not class probabilities: negative, not summing to one, NaN, or of the wrong shape."""


class InvalidTargetsError(CalibayesError, ValueError):
    """Labels are not integers in ``0 … K-1``, or their number does not fit."""


class DriftError(CalibayesError, RuntimeError):
    """Processes that train together have come to different weights."""


class EmptySelectionError(CalibayesError, ValueError):
    """No parameter was chosen where at least one is needed."""


class UnsupportedNetworkError(CalibayesError, TypeError):
    """The network cannot be handled as it is; the message says which part, and what to pass instead."""


class NetworkOutputError(CalibayesError, ValueError):
    """The network's output is not one row of logits per example."""


class DataError(CalibayesError, ValueError):
    """A data set is empty, of an unknown kind, or its parts do not fit together."""


class DataOverlapError(DataError):
    """Two data sets that must be apart share examples."""


class MissingDataError(DataError):
    """A data set is not on this machine; the message says how to get it."""


class DownloadError(CalibayesError, OSError):
    """A data set cannot be downloaded or unpacked; the message says why, and how to put it in place by hand."""


class PredictionFileError(DataError):
    """A file of predictions cannot be read; the message names the file, the row, the column and the value."""


class OptimizerError(CalibayesError, ValueError):
    """The optimiser that a factory made cannot train this posterior as it stands."""


class NonFiniteLossError(CalibayesError, ArithmeticError):
    """A term of the loss became infinite or NaN.

    Attributes:
        term: the name of the loss or term that it was, ``"kl"`` or ``"gradient"``.
        epoch: the epoch, counted from 1.
        step: the optimiser step since the start of training, counted from 1.
    """

    def __init__(self, message: str, *, term: str, epoch: int, step: int) -> None:
        super().__init__(message)
        self.term = term
        self.epoch = epoch
        self.step = step

    def __reduce__(self) -> tuple[Callable[..., NonFiniteLossError], tuple[object, ...]]:
        # Exceptions are pickled by their positional arguments alone; this one has to cross process borders whole.
        return _non_finite, (str(self), self.term, self.epoch, self.step)


def _non_finite(message: str, term: str, epoch: int, step: int) -> NonFiniteLossError:
    return NonFiniteLossError(message, term=term, epoch=epoch, step=step)


class CheckpointError(CalibayesError, RuntimeError):
    """A checkpoint cannot be used: it belongs to another run, or no whole one is left."""


class ModelFileError(CalibayesError, RuntimeError):
    """A model file cannot be loaded: torn, of another kind, or of another architecture."""


class SweepError(CalibayesError, RuntimeError):
    """A sweep cannot go on; what is finished is kept."""


class MissingExtraError(CalibayesError, ImportError):
    """A package is needed that is not part of every installation; the message says how to get it."""
