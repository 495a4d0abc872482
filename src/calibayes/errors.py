"""The named errors of calibayes: each quotes the offending value and says what to do."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

__all__ = [
    "CalibayesError",
    "CheckpointError",
    "DataError",
    "DataOverlapError",
    "DownloadError",
    "DriftError",
    "EmptySelectionError",
    "ExportError",
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
    "WorkerDiedError",
]


class CalibayesError(Exception):
    """The base class of all errors of calibayes."""


class InvalidArgumentError(CalibayesError, ValueError):
    """An argument or setting has an invalid value."""


class InvalidProbabilitiesError(CalibayesError, ValueError):
    """Values that are not class probabilities: negative, not summing to one, NaN, or of the wrong shape."""


class InvalidTargetsError(CalibayesError, ValueError):
    """Labels are not integers in ``0 … K-1``, or their number does not fit."""


class DriftError(CalibayesError, RuntimeError):
    """Processes that train together have different weights."""


class EmptySelectionError(CalibayesError, ValueError):
    """No parameter is selected where at least one is needed."""


class UnsupportedNetworkError(CalibayesError, TypeError):
    """The network is not supported; the message names the part, and what to pass instead."""


class NetworkOutputError(CalibayesError, ValueError):
    """The network's output is not one row of logits per example."""


class DataError(CalibayesError, ValueError):
    """A data set is empty, of an unknown kind, or its parts do not fit together."""


class DataOverlapError(DataError):
    """Two data sets that must be disjoint share examples."""


class MissingDataError(DataError):
    """A data set is not on this machine; the message says how to get it."""


class DownloadError(CalibayesError, OSError):
    """A data set cannot be downloaded or unpacked; the message says why, and how to put it in place by hand."""


class PredictionFileError(DataError):
    """A file of predictions cannot be read; the message names the file, the row, the column and the value."""


class OptimizerError(CalibayesError, ValueError):
    """The optimiser of a factory cannot train this posterior."""


class NonFiniteLossError(CalibayesError, ArithmeticError):
    """A term of the loss became infinite or NaN.

    Attributes:
        term: the name of the loss or term, ``"kl"`` or ``"gradient"``.
        epoch: the epoch, counted from 1.
        step: the optimiser step since the start of training, counted from 1.
    """

    def __init__(self, message: str, *, term: str, epoch: int, step: int) -> None:
        super().__init__(message)
        self.term = term
        self.epoch = epoch
        self.step = step

    def __reduce__(self) -> tuple[Callable[..., NonFiniteLossError], tuple[str]]:
        # Exceptions are pickled with their positional arguments only.
        return partial(NonFiniteLossError, term=self.term, epoch=self.epoch, step=self.step), (str(self),)


class CheckpointError(CalibayesError, RuntimeError):
    """A checkpoint cannot be used: it belongs to another run, or all are damaged."""


class ModelFileError(CalibayesError, RuntimeError):
    """A model file cannot be loaded: truncated, of another kind, or of another architecture."""


class ExportError(CalibayesError, RuntimeError):
    """A model cannot be exported, or what was exported does not agree with it; the message says why, and what to do."""


class SweepError(CalibayesError, RuntimeError):
    """A sweep cannot continue; finished trials are kept."""


class WorkerDiedError(CalibayesError, RuntimeError):
    """A process that predicted rows of a file ended unexpectedly."""


class MissingExtraError(CalibayesError, ImportError):
    """A package is needed that is not part of every installation; the message says how to get it."""
