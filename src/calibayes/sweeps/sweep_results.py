"""The results of a sweep: its trials with their settings and results, as a list and as a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibayes.errors import DataError
from calibayes.sweeps.records import DamagedError, Failure, Record, Store
from calibayes.sweeps.settings_grid import varying

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Sweep", "Trial", "read"]


@dataclass(frozen=True)
class Trial:
    """A trial that is done.

    Attributes:
        path: its file.
        record: the contents of the file, without a ``result`` that has tensors, which `result` reads.
    """

    path: Path
    record: Record = field(repr=False)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that it was called with."""
        return self.record.settings

    @property
    def result(self) -> dict[str, Any] | None:
        """Its result, or ``None`` if it failed; one with arrays or tensors is read from the file each time."""
        if self.path.suffix == ".json":
            return self.record.result
        try:
            record = Store(self.path.parent).read(self.path)
        except DamagedError as error:
            raise DataError(f"{error}. Start the sweep again to compute it again.") from error
        if record is None:
            raise DataError(f"Expected a result in {str(self.path)!r}, but the file no longer exists.")
        return record.result

    @property
    def error(self) -> Failure | None:
        """The reason why it failed, or ``None`` if it did not."""
        return self.record.error

    @property
    def seconds(self) -> float:
        """The time it took, in seconds."""
        return self.record.seconds


@dataclass(frozen=True)
class Sweep:
    """The trials of a sweep, in the order of the settings; a sequence of `Trial`.

    Attributes:
        trials: all of them.
        kept: the number of trials with a result from before.
        damaged: files that `read` could not read.
    """

    trials: tuple[Trial, ...]
    kept: int = 0
    damaged: tuple[Path, ...] = ()

    def __iter__(self) -> Iterator[Trial]:
        return iter(self.trials)

    def __len__(self) -> int:
        return len(self.trials)

    def __getitem__(self, place: int) -> Trial:
        return self.trials[place]

    @property
    def failed(self) -> list[Trial]:
        """The trials that have an error instead of a result."""
        return [trial for trial in self.trials if trial.error is not None]

    def results(self) -> list[dict[str, Any]]:
        """The results of the trials that have one."""
        return [result for trial in self.trials if (result := trial.result) is not None]

    def varying(self) -> list[str]:
        """The names of the settings that are not the same in all trials."""
        return varying(trial.settings for trial in self.trials)

    def frame(self) -> pd.DataFrame:
        """A table with a row for each trial: its settings, the single numbers and texts of its result, seconds and error.

        Nested values of a result are named by their path, such as ``test.nll``; one with the name of a setting gets the prefix
        ``result.``.
        """
        import pandas as pd

        rows = []
        for trial in self.trials:
            ends = {"seconds": trial.seconds, "error": None if trial.error is None else str(trial.error)}
            taken = {**trial.settings, **ends}
            values = single_values(trial.result or {})
            row = {f"result.{name}" if name in taken else name: value for name, value in values.items()}
            rows.append({**trial.settings, **row, **ends})
        return pd.DataFrame(rows)


def read(folder: str | Path, trial: str | None = None) -> Sweep:
    """Read a folder of results without running anything.

    Args:
        folder: the folder of a sweep.
        trial: the name ``module:function`` of the trials to read; all by default.
    """
    store, damaged = Store(Path(folder)), list[Path]()
    if not store.folder.is_dir():
        raise DataError(f"Expected a folder of results, but there is no folder {str(folder)!r}.")
    records = store.records(lambda path, _: damaged.append(path))
    trials = [done_trial(path, record, record.settings) for path, record in records if trial in (None, record.trial)]
    trials.sort(key=lambda each: _order(each.settings))
    return Sweep(tuple(trials), kept=len(trials), damaged=tuple(damaged))


def done_trial(path: Path, record: Record, settings: dict[str, Any]) -> Trial:
    """A trial with its settings in the original order; tensors stay in the file."""
    return Trial(path, replace(record, settings=settings, result=record.result if path.suffix == ".json" else None))


def single_values(result: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """The numbers and texts of a result, by their paths.

    Examples:
        >>> single_values({"test": {"nll": 0.4, "bins": [1, 2]}, "name": "a"})
        {'test.nll': 0.4, 'name': 'a'}
    """
    values: dict[str, Any] = {}
    for name, value in result.items():
        if isinstance(value, dict):
            values |= single_values(value, f"{prefix}{name}.")
        elif value is None or isinstance(value, bool | int | float | str):
            values[f"{prefix}{name}"] = value
    return values


def _order(settings: dict[str, Any]) -> list[tuple[str, bool, Any]]:
    """Sort numbers by size and texts alphabetically, name by name."""
    numbers = {name: isinstance(value, int | float) for name, value in settings.items()}
    return [(name, not numbers[name], value if numbers[name] else str(value)) for name, value in sorted(settings.items())]
