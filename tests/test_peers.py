"""The comparison with other libraries, where none of them is installed: rows, limits, errors and what is compared."""

from __future__ import annotations

import copy
from collections.abc import Callable
from importlib import import_module
from itertools import count
from pathlib import Path

import pytest
import torch
from benchmarks.peers.calibayes import PEERS as OURS
from benchmarks.peers.contest import Entry, Row, contest, tell_rows
from benchmarks.peers.epochs import mean_of_members, member_epoch
from benchmarks.peers.interface import MEMBERS, Data, Method, Peer, Run
from benchmarks.peers.ivon import natural_gradient_settings
from benchmarks.peers.layers import convolution_arguments, layered_predict, layered_step, with_layers
from benchmarks.peers.methods import METHODS, NATURAL_GRADIENT, epoch_rows, fit_rows, predict_rows
from benchmarks.peers.networks import MLP_NAME, QUICK, RESNET_NAME, StockTextCNN
from benchmarks.peers.scores import METRICS, metric_rows
from benchmarks.peers.section import PEERS, tell_versions
from benchmarks.peers.step import prediction_rows, step_rows
from benchmarks.peers.term import backward
from benchmarks.peers.torch_uncertainty_methods import packed
from benchmarks.report import Report
from benchmarks.timing import ChildFailedError, Timing, peak_memory
from torch import Tensor, nn

import calibayes as cb
from calibayes.networks import TextCNN


def absent(net: nn.Module, x: Tensor, last: Tensor | int) -> Run:
    return Run(import_module("no_such_library").step, 0)


ABSENT = Peer("nobody", "no-such-library", absent, absent, "is not there")


def told(rows: list[Row], capsys: pytest.CaptureFixture[str]) -> Report:
    report = Report("peers")
    tell_rows(report, "title", rows)
    assert capsys.readouterr().out.splitlines() == report.lines
    return report


def test_an_absent_peer_is_shown_as_absent_beside_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    report = told(step_rows(QUICK[MLP_NAME], (ABSENT, *OURS)), capsys)
    header, limit, nobody, bnn, ca_bnn = report.lines[2:]
    assert header.split()[-3:] == ["×", "limit", "quartiles"]
    assert "plain PyTorch (the limit)" in limit
    assert "1.00x" in limit
    assert nobody.split(maxsplit=1) == ["nobody", "absent: No module named 'no_such_library'"]
    assert all("x " in line and "of the weights Bayesian" in line for line in (bnn, ca_bnn))
    recorded = report.record["title"]
    assert isinstance(recorded, dict)
    assert recorded["nobody"] == {"error": "absent: No module named 'no_such_library'"}
    assert recorded["calibayes BNN"].keys() == {"seconds", "ratio", "quartiles", "bayesian"}


def test_the_limit_of_a_prediction_is_as_many_forward_passes() -> None:
    rows = prediction_rows(QUICK[RESNET_NAME], (*OURS, ABSENT), inputs=20, samples=3, repeats=2)
    assert [row.label for row in rows] == ["3 plain forward passes (the limit)", "calibayes BNN", "nobody"]
    assert [row.timing is None for row in rows] == [False, False, True]


def test_who_fails_late_fails_alone(capsys: pytest.CaptureFixture[str]) -> None:
    calls = count()

    def late() -> None:
        if next(calls) > 200:
            raise ValueError("no more\nof  this, " + 100 * "long ")

    def entry(call: Callable[[], object]) -> Callable[[], Entry]:
        return lambda: Entry(call)

    rows = contest("limit", lambda: None, {"late": entry(late), "steady": entry(list)}, repeats=2)
    assert [row.timing is None for row in rows] == [False, True, False]
    assert rows[1].error.startswith("ValueError: no more of this, long long")
    assert len(rows[1].error) <= 200
    assert all(len(line) < 140 for line in told(rows, capsys).lines)


def row(label: str, seconds: list[float], bayesian: float = 1.0) -> Row:
    return Row(label, Entry(list, "", {"bayesian": bayesian}), Timing(tuple(seconds)))


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (row("slow", [3, 3, 3, 3]), "no other library is ahead of calibayes"),
        (row("fast", [1, 1, 1, 1]), "ahead of calibayes: fast (quartiles do not overlap)"),
        (row("close", [1, 1, 3, 1.9]), "ahead of calibayes: close (quartiles overlap)"),
        (row("half", [1, 1, 1, 1], 0.5), "ahead of calibayes: half (quartiles do not overlap, 50% of the weights Bayesian)"),
        (row("calibayes CA", [1, 1, 1, 1]), "no other library is ahead of calibayes"),
        (Row("broken", error="ValueError"), "no other library is ahead of calibayes"),
    ],
)
def test_who_is_ahead_is_told_with_what_is_known_of_it(other: Row, told: str) -> None:
    report = Report("peers")
    tell_rows(report, "title", [row("limit", [1, 1, 1, 1]), row("calibayes", [2, 2, 2, 2]), other], "calibayes")
    assert report.lines[-1] == f"    → {told}"


def test_who_is_ahead_with_fewer_weights_is_told_so() -> None:
    def weighing(label: str, seconds: float, weights: int) -> Row:
        return Row(label, Entry(list, "", {"weights": weights}), Timing(4 * (seconds,)))

    report = Report("peers")
    rows = [row("first", [1, 1, 1, 1]), weighing("calibayes", 3, 100), weighing("small", 2, 25), weighing("same", 2, 100)]
    tell_rows(report, "title", rows, "calibayes", base="first")
    told = "small (quartiles do not overlap, with 25% of its weights), same (quartiles do not overlap)"
    assert report.lines[-1] == f"    → ahead of calibayes: {told}"
    assert report.lines[2].split()[-3:] == ["×", "first", "quartiles"]


def test_versions_say_who_is_absent() -> None:
    report = Report("peers")
    tell_versions(report, (*PEERS, ABSENT))
    versions = report.record["versions"]
    assert isinstance(versions, dict)
    assert versions["no-such-library"] == "absent"
    assert versions["calibayes"] == cb.__version__
    assert versions.keys() >= {"bayesian-torch", "torch-uncertainty", "blitz-bayesian-pytorch", "posteriors", "netcal"}


def test_pinned_versions_are_exact_and_those_of_the_constraints() -> None:
    def pins(path: str) -> dict[str, str]:
        lines = (Path(__file__).parents[1] / path).read_text().splitlines()
        return dict(line.split("==") for line in lines if line and not line.startswith("#"))

    peers, constraints = pins("benchmarks/peers/requirements.txt"), pins("constraints.txt")
    compared: tuple[Peer | Method, ...] = (*PEERS, *METHODS, *NATURAL_GRADIENT)
    assert {each.package for each in compared} - {"calibayes"} < peers.keys()
    assert {name: peers[name] for name in peers.keys() & constraints.keys()}.items() <= constraints.items()
    assert not peers.keys() & {"torch", "torchvision"}


def test_only_stock_layers_are_replaced_and_counted() -> None:
    class Own(nn.Linear):
        pass

    net = nn.Sequential(nn.Conv2d(3, 4, 3, stride=2, padding=1, bias=False), nn.Flatten(), Own(64, 8), nn.Linear(8, 3))
    weights = 8 * 3 + 3
    x, y = torch.randn(5, 3, 8, 8), torch.randint(3, (5,))

    class Bayesian(nn.Linear):
        """Other names for the weights are enough to be taken for means and scales."""

        def __init__(self, inputs: int, outputs: int) -> None:
            super().__init__(inputs, outputs)
            self.mean, self.weight = self.weight, None  # type: ignore[assignment]
            self.shift, self.bias = self.bias, None  # type: ignore[assignment]

        def forward(self, x: Tensor) -> Tensor:
            return nn.functional.linear(x, self.mean, self.shift)

    bayesian = with_layers(net, {nn.Linear: lambda layer: Bayesian(layer.in_features, layer.out_features)})
    assert [type(layer) for layer in bayesian.children()] == [nn.Conv2d, nn.Flatten, Own, Bayesian]
    assert isinstance(net[-1], nn.Linear)
    same = nn.Conv2d(**convolution_arguments(net[0]))
    assert repr(same) == repr(net[0])
    predict = layered_predict(net, bayesian, x, 3)
    before = predict.call()
    assert isinstance(before, Tensor)
    assert torch.allclose(before.sum(-1), torch.ones(5))
    step = layered_step(net, bayesian, x, y, lambda _: torch.zeros(1))
    assert step.bayesian == predict.bayesian == weights
    step.call()
    assert bayesian.training
    assert all(p.grad is not None and p.grad.any() for p in bayesian.parameters())


def absent_method(net: nn.Module, data: Data, *others: object) -> Run:
    return Run(import_module("no_such_library").fit, 0)


def test_methods_are_timed_beside_plain_epochs_and_passes() -> None:
    case, methods = QUICK[MLP_NAME], (Method("nobody", "no-such-library", absent_method, absent_method, "is not there"),)
    limits = {
        "8 plain networks in turn (the limit)": epoch_rows(case, methods, examples=40, members=8, repeats=1),
        "plain PyTorch (the limit)": epoch_rows(case, methods, examples=40, members=1, repeats=1),
        "a plain forward pass (the limit)": fit_rows(case, methods, examples=40, repeats=1),
        "3 plain forward passes (the limit)": predict_rows(
            case, methods, examples=40, inputs=20, samples=3, passes=3, repeats=1
        ),
    }
    for limit, rows in limits.items():
        assert [row.label for row in rows] == [limit, "nobody"]
        assert [row.error for row in rows] == ["", "absent: No module named 'no_such_library'"]


def test_an_epoch_of_members_at_once_is_that_of_each() -> None:
    """Adam takes each member's gradient apart, so one loss of all members trains them as their own losses do."""

    class Members(nn.Module):
        def __init__(self, nets: list[nn.Module]) -> None:
            super().__init__()
            self.nets = nn.ModuleList(nets)

        def forward(self, x: Tensor) -> Tensor:
            return torch.cat([net(x) for net in self.nets])

    torch.manual_seed(0)
    alone = [nn.Linear(4, 3, dtype=torch.float64) for _ in range(3)]
    together = Members([copy.deepcopy(net) for net in alone])
    data = (torch.randn(300, 4, dtype=torch.float64), torch.randint(3, (300,)))
    for net in alone:
        member_epoch(net, data)()
    steps = count()
    member_epoch(together, data, members=3, after_step=lambda: next(steps))()
    assert next(steps) == 3
    for net, member in zip(alone, together.nets, strict=True):
        assert isinstance(member, nn.Linear)
        assert torch.allclose(net.weight, member.weight, rtol=0, atol=1e-10)
    expected = torch.stack([net(data[0]).softmax(-1) for net in alone]).mean(0)
    assert torch.allclose(mean_of_members(together(data[0]), 3), expected)


def test_packed_layers_know_the_first_and_the_last() -> None:
    made = []

    def layer(inputs: int, outputs: int, **settings: object) -> nn.Module:
        made.append((inputs, outputs, settings))
        return nn.Identity()

    net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Sequential(nn.Linear(16, 8, bias=False)), nn.Linear(8, 3))
    copied = packed(layer, 2, net)
    assert [type(part) for part in copied.modules() if not list(part.children())] == [
        nn.Identity,
        nn.ReLU,
        nn.Identity,
        nn.Identity,
    ]
    assert isinstance(net[0], nn.Linear)
    shared = {"alpha": 2, "num_estimators": MEMBERS}
    assert made == [
        (4, 16, {**shared, "bias": True, "first": True, "last": False}),
        (16, 8, {**shared, "bias": False, "first": False, "last": False}),
        (8, 3, {**shared, "bias": True, "first": False, "last": True}),
    ]


def test_ivon_starts_as_wide_as_the_mean_field() -> None:
    settings = natural_gradient_settings(examples=500, beta=0.1, prior_std=0.2, init_std=0.03)
    precision = settings["ess"] * (settings["hess_init"] + settings["weight_decay"])
    assert precision**-0.5 == pytest.approx(0.03)
    assert (settings["ess"] * settings["weight_decay"]) ** -0.5 == pytest.approx(0.2)


def test_the_text_network_of_stock_layers_is_that_of_calibayes() -> None:
    ours = TextCNN(torch.randn(50, 6), classes=3, channels=8, hidden=8, pool=2)
    stock = StockTextCNN(torch.zeros(50, 6), classes=3, channels=8, pool=2)
    stock.load_state_dict(ours.state_dict())
    tokens = torch.randint(50, (4, 40))
    assert torch.allclose(stock(tokens), ours(tokens), atol=1e-5)


def test_libraries_compute_the_same() -> None:
    assert backward("netcal MMCEPenalty", 300)() == pytest.approx(backward("calibayes WMMCE, hard scores", 300)(), rel=1e-4)
    limit, *rows = metric_rows("ECE", 2000, repeats=1)
    assert limit.label == "torch.max of the array (the limit)"
    values = [row.entry.facts["value"] for row in rows if row.entry]
    assert values == pytest.approx(len(METRICS["ECE"]) * [values[0]], rel=1e-4)


def test_peak_memory_is_that_of_the_process_measured() -> None:
    held = bytearray(300_000_000)
    del held
    used = peak_memory("import time", "kept = bytearray(40_000_000)")
    assert used == pytest.approx(40e6, rel=0.1)
    with pytest.raises(ChildFailedError, match="MemoryError"):
        peak_memory("", "kept = bytearray(400_000_000)", bound=100_000_000)
