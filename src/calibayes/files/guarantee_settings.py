"""From what users type or set to what is asked of predictions, and the rows that are set aside for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibayes.acting.guarantee_request import CertifyRequest, GuaranteeRequest
from calibayes.crossfit.set_aside import check_share
from calibayes.errors import InvalidArgumentError
from calibayes.files.cost_file import read_cost_file
from calibayes.tables import TableOptions

if TYPE_CHECKING:
    from calibayes.files.settings import TrainSettings

__all__ = ["check_guarantees", "request_of", "request_to_evaluate", "request_to_train", "share_to_set_aside"]

_SHARE = 0.2


def share_to_set_aside(settings: TrainSettings) -> float | None:
    """Return the share of the rows to set aside, or None for no rows."""
    if settings.set_aside is not None:
        return settings.set_aside
    return None if settings.sets is None and settings.certify is None else _SHARE


def check_guarantees(settings: TrainSettings) -> None:
    """Raise if what is asked for is no coverage, no measure to certify, or incomplete; the costs are read later."""
    if settings.set_aside is not None:
        check_share(settings.set_aside)
    GuaranteeRequest(sets=settings.sets, score=settings.sets_score)
    _check_sets(settings.sets, settings.sets_score != "lac", settings.sets_by_class)
    certify = None if settings.certify is None else CertifyRequest.parsed(settings.certify)
    if (settings.costs is not None) != (certify is not None and certify.measure == "cost"):
        raise InvalidArgumentError(
            "Expected --costs and --certify cost=… together: a model is trained for a mean cost that is certified. To decide "
            "by costs without a guarantee, pass --costs to calibayes predict."
        )


def request_to_train(settings: TrainSettings, classes: tuple[str, ...]) -> GuaranteeRequest:
    """Return what the settings of a training ask for, with the costs that they name."""
    names = ("sets", "sets_score", "sets_by_class", "certify", "costs")
    return request_of(classes, TableOptions(), **{name: getattr(settings, name) for name in names})


def request_to_evaluate(classes: tuple[str, ...], options: Mapping[str, Any], **asked: Any) -> GuaranteeRequest:
    """Return what is asked of predictions from anywhere.

    Args:
        classes: the names of the classes; none if only confidences are known.
        options: of the text of a file of costs, by the names of `TableOptions`.
        asked: ``sets``, ``sets_score``, ``sets_by_class``, ``certify`` and ``costs``.
    """
    if asked["costs"] is not None and (asked["certify"] is None or not classes):
        what = "--certify cost=… with --costs" if classes else "no --costs for confidences without the probabilities of classes"
        raise InvalidArgumentError(f"Expected {what}, but got --costs {str(asked['costs'])!r}.")
    return request_of(classes, TableOptions(**options), **asked)


def request_of(
    classes: tuple[str, ...],
    options: TableOptions,
    base: GuaranteeRequest | None = None,
    *,
    sets: float | None = None,
    sets_score: Any = None,
    sets_by_class: bool | None = None,
    certify: str | None = None,
    costs: str | Path | None = None,
) -> GuaranteeRequest:
    """Return what is asked for; what is left out is as in ``base``.

    Args:
        classes: the names of the classes, for the file of costs.
        options: of the text in that file.
        base: what a model was trained for.
        sets: the coverage of prediction sets.
        sets_score: their score.
        sets_by_class: whether each class must be covered as often.
        certify: what to certify, as text.
        costs: a file of costs.
    """
    base = base or GuaranteeRequest()
    level = base.sets if sets is None else sets
    _check_sets(level, sets_score not in (None, "lac"), bool(sets_by_class))
    asked = None if certify is None else CertifyRequest.parsed(certify)
    table = None if costs is None else read_cost_file(Path(costs), classes, options)
    if asked is None and table is None:
        asked, table = base.certify, base.costs
    elif asked is not None and asked.measure == "cost" and table is None:
        table = base.costs
    return GuaranteeRequest(
        sets=level,
        score=base.score if sets_score is None else sets_score,
        by_class=base.by_class if sets_by_class is None else sets_by_class,
        certify=asked,
        costs=table,
    )


def _check_sets(level: float | None, score: bool, by_class: bool) -> None:
    if level is None and (score or by_class):
        raise InvalidArgumentError(
            f"Expected --sets, the coverage of the sets, with {'--sets-score' if score else '--sets-by-class'}, for example "
            "--sets 0.9."
        )
