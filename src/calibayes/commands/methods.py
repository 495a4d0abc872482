"""`calibayes methods`: the methods for `--scheme`, `--methods` and `CalibayesClassifier`, and their settings."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from typer.core import TyperCommand

from calibayes.terminal import print_results, stdout_console

__all__ = ["CommandWithMethods", "method_settings", "methods"]


def methods() -> None:
    """List all methods: what each is, and what can be set with --set, with the defaults.

    Other packages can add methods of their own, which are then listed here too.
    """
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from calibayes.methods import METHODS, MethodSettings, method_named

    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("method", style="bold", no_wrap=True)
    table.add_column("what it is")
    table.add_column("settings")
    common = {field.name: field.default for field in fields(MethodSettings)}
    for name in METHODS:
        method = method_named(name)
        defaults = {each: method.default(each) for each in method.setting_names()}
        own = {each: value for each, value in defaults.items() if each not in common or value != common[each]}
        table.add_row(name, method.summary, _shown(own))
    footer = f"All methods have the settings {_shown(common)}, unless the table shows another value."
    print_results(stdout_console(), Group(table, Text(footer)))


class CommandWithMethods(TyperCommand):
    """A command whose help ends with the methods, looked up when the help is shown: other packages may add some."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        from calibayes.methods import METHODS, method_named

        lines = [f"{name}: {method_named(name).summary}" for name in METHODS]
        self.epilog = "\n\n".join(["Methods:", *lines, "Their settings: calibayes methods"])
        super().format_help(ctx, formatter)


def method_settings(words: list[str] | None) -> dict[str, Any]:
    """Return the settings of a method that were typed, one value each: ``members=3``."""
    from calibayes.errors import InvalidArgumentError
    from calibayes.sweeps.sweep_plan import choices

    typed = choices(words or [])
    for name, values in typed.items():
        if len(values) > 1:
            raise InvalidArgumentError(f"Expected one value of {name!r} after --set, but got {len(values)}: {values}.")
    return {name.replace("-", "_"): values[0] for name, values in typed.items()}


def _shown(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in settings.items())
