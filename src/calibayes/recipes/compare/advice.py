"""The advice that a comparison opens with: what to use, why, the command that trains it, and the check on test examples."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibayes.recipes.compare.comparison import Comparison
from calibayes.recipes.compare.contenders import Contender
from calibayes.recipes.compare.difference_words import NAMES, changed, score_words, size_words
from calibayes.recipes.compare.recommendation import LEVEL, Recommendation, is_clearly_worse

__all__ = ["Advice", "advise", "train_command"]

_WIDE = 0.05  # nats: if another choice may be better by as much as this, the data have not settled it
_YOUR_DATA = ("calibayes", "train", "data.csv", "--target", "label")
_EXTRA = "calibayes grows boosted trees with LightGBM. If it is not installed: pip install 'calibayes[boosting]'"
_TEMPERATURE = "The temperature is fitted by calibayes train, too."
_MORE = "To have what is not compared here tried, too (networks with averaged weights, averages of methods):"
_QUICK = "This was --quick: too little data and training to rely on. Run the same command without it before you decide."
_ONE_SEED = "One seed says nothing about the chance in training: do not decide by it. More seeds: --seeds 8"


@dataclass(frozen=True)
class Advice:
    """What to use and why.

    Attributes:
        reason: the recommendation, in a sentence or two.
        commands: what each does, and a command or a line of Python; the first makes what is recommended.
        remarks: what else to know about it.
        check: how the choice does on the test examples; empty if nothing is recommended.
    """

    reason: str
    commands: tuple[tuple[str, str], ...] = ()
    remarks: tuple[str, ...] = ()
    check: str = ""

    def text(self, width: int) -> str:
        """All of it in lines of at most that width; only a command may be longer, so that it can be copied."""
        lines = _wrapped(self.reason, width)
        for title, command in self.commands:
            lines += [*_wrapped(title, width), f"  {command}"]
        lines += [line for each in (*self.remarks, self.check) if each for line in _wrapped(each, width)]
        return "\n".join(lines) + "\n"


def advise(comparison: Comparison, train_words: Sequence[str] | None = None) -> Advice:
    """The advice that follows from the numbers of a comparison.

    Args:
        comparison: the results.
        train_words: the words of the command that trains on the same data, without the method; by default one for a file of
            the user's own.
    """
    verdict, use = comparison.verdict, comparison.verdict.recommended
    if use is None:
        return Advice(
            "No recommendation: every contender gives some true class a probability of zero, which makes its NLL infinite. "
            "Train for fewer epochs or with a lower learning rate, and compare again."
        )
    rival = _rival(comparison, verdict, use)
    remarks = [] if rival is None else _unsettled(comparison, use)
    remarks += [_ONE_SEED] if comparison.settings.seeds == 1 and not comparison.settings.is_quick else []
    remarks += [_QUICK] if comparison.settings.is_quick else []
    commands, others = _training(comparison, use, train_words)
    return Advice(_reason(comparison, use, rival), commands, (*others, *remarks), _check(comparison, use, rival))


def train_command(words: Sequence[str], method: str, settings: Mapping[str, Any]) -> str:
    """The command that trains a method with some settings, quoted for a shell.

    Examples:
        >>> train_command(["calibayes", "train", "my data.csv", "--target", "y"], "ca-fnn", {"lam": 3.0})
        "calibayes train 'my data.csv' --target y --method ca-fnn --set lam=3"
    """
    typed = (("--set", f"{name}={_typed(value)}") for name, value in settings.items())
    return shlex.join([*words, "--method", method, *(word for pair in typed for word in pair)])


def _typed(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)


def _rival(comparison: Comparison, verdict: Recommendation, use: Contender) -> Contender | None:
    """The contender to measure the recommended one by: the leader, or the best network, or the best of the others."""
    if verdict.leader != use:
        return verdict.leader
    others = [each for each in comparison.entries if each.scheme != use.scheme]
    networks = [each for each in others if not each.baseline]
    among = (networks if use.baseline else others) or others or [each for each in comparison.entries if each != use]
    return min(among, key=lambda each: comparison.validation.mean(each, "nll"), default=None)


def _reason(comparison: Comparison, use: Contender, rival: Contender | None) -> str:
    validation, settings = comparison.validation, comparison.settings
    seeds = f"{settings.seeds} seeds" if settings.seeds > 1 else "one seed"
    basis = f"over {seeds} and {settings.validation:,} validation {comparison.task.examples}"
    nll = f"{validation.mean(use, 'nll'):.3f}"
    if rival is None:
        return f"Use {use}, the only contender: validation NLL {nll}, {basis}."
    theirs, difference = f"{validation.mean(rival, 'nll'):.3f}", validation.between(rival, use)
    apart = f"{size_words(difference, 'nll', f'{100 * LEVEL:g} % interval ')}, {basis}"
    if comparison.verdict.leader != use:
        return (
            f"Use {use}, the simplest of those that are level with the lowest validation NLL: {nll}, higher than that of "
            f"{rival} ({theirs}) by {apart}."
        )
    others = [each for each in comparison.entries if each.scheme != use.scheme]
    networks = [each for each in others if not each.baseline]
    beaten = [each for each in others if is_clearly_worse(validation.between(each, use))]
    word = "the best network" if use.baseline and networks else "the next best"
    higher = f"{word.capitalize()}, {rival}, has {theirs}, higher by {apart}."
    if others and beaten == others:
        return f"Use {use}, the clear winner: validation NLL {nll}. {higher}"
    if use.baseline and networks and set(networks) <= set(beaten):
        return f"Use {use}, clearly better than every network: validation NLL {nll}. {higher}"
    return f"Use {use}: the lowest validation NLL ({nll}), though not clearly. {higher}"


def _unsettled(comparison: Comparison, use: Contender) -> list[str]:
    """A sentence if nothing is clearly worse and another choice may be much better."""
    above = [comparison.validation.between(each, use) for each in comparison.entries if each != use]
    gain = max((-each.low for each in above), default=0.0)
    if comparison.verdict.clearly_worse or gain <= _WIDE:
        return []
    return [
        f"The data do not settle it: the NLL of another choice may be lower by up to {gain:.3f}. "
        f"More {comparison.task.examples} would, and perhaps more seeds."
    ]


def _training(
    comparison: Comparison, use: Contender, words: Sequence[str] | None
) -> tuple[tuple[tuple[str, str], ...], list[str]]:
    """The commands that make what is recommended, and remarks about them."""
    title = "To train it:" if words is not None else "To train it on data of your own:"
    given = words or _YOUR_DATA
    settings = {} if use.baseline else _settings_of(comparison, use)
    commands = [(title, train_command(given, use.scheme, settings))]
    if words is not None:
        commands.append((_MORE, shlex.join(words)))
    remarks = [_TEMPERATURE] if use.scaled else [_EXTRA] if use.scheme == "boosted-trees" else []
    return tuple(commands), remarks


def _settings_of(comparison: Comparison, contender: Contender) -> dict[str, Any]:
    """The settings that the comparison chose or the user typed, by name."""
    run = comparison.entries[contender].run
    chosen = {name: value for name, value in (("lam", run.lam), ("beta", run.beta)) if value}
    return {**chosen, **comparison.settings.method_settings.get(contender.scheme, {})}


def _check(comparison: Comparison, use: Contender, rival: Contender | None) -> str:
    test, settings = comparison.differences, comparison.settings
    scores = comparison.entries[use].test
    means = {name: sum(float(getattr(each, name)) for each in scores) / len(scores) for name in ("nll", "accuracy", "ece")}
    shown = ", ".join(f"{NAMES[name]} {score_words(value, name)}" for name, value in means.items())
    text = f"Check on {settings.test:,} test {comparison.task.examples}, which had no part in the choice: {shown}."
    if rival is None:
        return text
    text += f" Against {rival}: {', '.join(changed(test.between(use, rival, name), name) for name in ('nll', 'accuracy'))}."
    better = [each for each in comparison.entries if each != use and is_clearly_worse(test.between(use, each))]
    return f"{text} Clearly lower NLL on them than {use}: {', '.join(map(str, better))}." if better else text


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of a text, none of which ends within the name of a contender or between a number and its unit."""
    whole = text.replace(" + T", "\u00a0+\u00a0T").replace(" %", "\u00a0%")
    lines = textwrap.wrap(whole, width, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\u00a0", " ") for line in lines]
