"""The page about the follow-up, made from the records: text around tables, claims and figures; no number is written by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reproduction.claim_verdicts import PaperClaim
from reproduction.experiment import Experiment
from reproduction.experiment_results import PartResults
from reproduction.followup_training import FollowUpTraining
from reproduction.printed_tables import claims_text, table_text

__all__ = ["followup_page"]

_FIGURES = {
    "ece-and-detection.png": "ECE of insiders against the probability of detecting outsiders, for both sources",
    "selection.png": "ECE and accuracy over the share of inputs that are answered",
    "shift.png": "ECE and accuracy without a shift and under two mild ones",
}
_OPENING = """# The follow-up, carried over

*Calibrating Bayesian Learning via Regularization, Confidence Minimization, and Selective Inference* (Huang, Park, Simeone 2024,
[arXiv](https://arxiv.org/abs/2404.11350)) adds two things to calibration-aware Bayesian learning (CBNN): low confidence on
inputs from outside the domain (OCM), and a selector that answers only where confidence can be trusted (SCBNN-OCM). Its
experiments train a WRN-40-2 on CIFAR-100, which takes a GPU. **Here its methods are tried on smaller data and networks, so a
verdict below is about the methods, not about its figures.**

| | the follow-up | here, images | here, texts |
|---|---|---|---|
| data | CIFAR-100 | CIFAR-10 | CLINC150, 150 intents |
| network | WRN-40-2 | ResNet-20, published weights | bag of words |
| outsiders to train on | 6,000 images of ImageNet | the same number of them | 150 out-of-scope requests |
| outsiders to test on | 4,000 others of ImageNet | some of the others | other out-of-scope requests |
| outsiders from a new source | none | CIFAR-100 | sentences of 20 Newsgroups |

As in its code, the calibration term is WMMCE with hard scores, normalised twice, beside the mean cross-entropy (λ = 3 for CFNN,
0.8 for CBNN), β is 0.00028, and OCM has a weight of 1 between means. What differs:

- Its threshold of the selector comes from the test inputs' own weights. Here the selector learns from one half of the
  validation examples, and the threshold comes from the other half.
- A step has as many outsiders as insiders, 32, rather than twice as many.
- On images, all schemes start from the same published weights, which have seen every training image. Batch norms keep their
  published statistics; the prior is centred on the published weights, and wider (0.01, not 0.001); the learning rate was chosen
  by validation NLL.
- The members of the deep ensemble on images start from these weights too, so they differ less than they could.
- The prior of the last-layer Laplace has the precision with the lowest NLL on validation examples, from which the temperatures
  come, too. The precision with the highest evidence makes it badly underconfident on CLINC150.
"""


def followup_page(results: Mapping[Experiment, Sequence[PartResults]], claims: Sequence[PaperClaim]) -> str:
    """The page in Markdown."""
    sections = [_OPENING, _commands(results), "## The claims, tested\n", _block(claims_text(claims, followup=True))]
    for experiment, parts in results.items():
        sections += [f"## {experiment.title}\n", _size(experiment, parts), _block(table_text(experiment, parts))]
        sections += [f"![{text}]({experiment.name}/{file})\n" for file, text in _FIGURES.items()]
    return "\n".join(sections)


def _commands(results: Mapping[Experiment, Sequence[PartResults]]) -> str:
    lines = [f"calibayes reproduce {experiment.name}" for experiment in results]
    return _block("\n".join([*lines, "calibayes reproduce followup-claims"]) + "\n")


def _size(experiment: Experiment, parts: Sequence[PartResults]) -> str:
    """The size of the trainings, and the time that they took."""
    first = next(part for part in parts if part.results)
    settings, counts = first.settings[0], first.results[0]["examples"]
    assert isinstance(settings, FollowUpTraining)
    hours = sum(result["training_seconds"] for part in parts for result in part.results) / 3600
    return (
        f"{settings.epochs} epochs on {counts['train']:,} examples, {counts['validation']:,} for validation and "
        f"{counts['test']:,} for tests, {len(first.results)} seeds; preset {experiment.preset}. Training took {hours:.1f} "
        "hours of one core, without the scores.\n"
    )


def _block(text: str) -> str:
    return f"```text\n{text}```\n"
