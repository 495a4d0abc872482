"""The λ-sweep: medians and quantiles against numpy, on every scale of λ."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import FillBetweenPolyCollection
from matplotlib.figure import Figure

from calibayes.displays import SweepDisplay
from calibayes.errors import InvalidArgumentError

LAMS = [0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0]
SEEDS = np.random.default_rng(0).normal(scale=0.005, size=(4, len(LAMS), 7))
VALUES: dict[str, Any] = {
    "fnn": (0.10 + SEEDS[0, 0]).tolist(),
    "bnn": (0.07 + SEEDS[1, 0]).tolist(),
    "ca-fnn": {lam: (0.10 - 0.001 * lam + SEEDS[2, i]).tolist() for i, lam in enumerate(LAMS)},
    "ca-bnn": {lam: (0.07 - 0.001 * lam + SEEDS[3, i]).tolist() for i, lam in enumerate(LAMS)},
}


def drawn(display: SweepDisplay, size: tuple[float, float] = (6, 4), **options: Any) -> Axes:
    return display.plot(Figure(figsize=size, layout="constrained").add_subplot(), **options).ax_


def line(ax: Axes, label: str) -> Any:
    (match,) = [each for each in ax.lines if each.get_label() == label]
    return match


def written(ax: Axes) -> list[str]:
    return [label.get_text() for label in ax.get_xticklabels()]


def test_lines_are_medians_and_bands_the_central_quantiles() -> None:
    ax = drawn(SweepDisplay(VALUES))
    bands = [each for each in ax.collections if isinstance(each, FillBetweenPolyCollection)]
    for scheme, band in zip(("ca-fnn", "ca-bnn"), bands, strict=True):
        runs = np.array([VALUES[scheme][lam] for lam in LAMS])
        assert np.asarray(line(ax, scheme.upper()).get_xdata()).tolist() == LAMS
        assert np.asarray(line(ax, scheme.upper()).get_ydata()) == pytest.approx(np.median(runs, axis=1))
        corners = {(round(x, 9), round(y, 9)) for x, y in np.asarray(band.get_paths()[0].vertices).tolist()}
        for share in (0.2, 0.8):
            edge = np.quantile(runs, share, axis=1)
            assert {(round(lam, 9), round(y, 9)) for lam, y in zip(LAMS, edge.tolist(), strict=True)} <= corners


def test_schemes_without_lam_are_dashed_lines_with_their_band() -> None:
    display = SweepDisplay(VALUES)
    ax = drawn(display)
    assert list(display.references) == ["fnn", "bnn"]
    assert list(display.curves) == ["ca-fnn", "ca-bnn"]
    for scheme, band in zip(("fnn", "bnn"), ax.patches, strict=True):
        reference = line(ax, scheme.upper())
        assert reference.get_linestyle() == "--"
        assert reference.get_ydata() == pytest.approx([np.median(VALUES[scheme])] * 2)
        low, high = np.quantile(VALUES[scheme], [0.2, 0.8])
        assert (band.get_y(), band.get_height()) == pytest.approx((low, high - low))  # type: ignore[attr-defined]
    legend: Any = ax.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["CA-FNN", "CA-BNN", "FNN", "BNN"]
    assert line(ax, "FNN").get_color() == line(ax, "CA-FNN").get_color() != line(ax, "CA-BNN").get_color()


def test_the_interval_can_be_chosen() -> None:
    assert SweepDisplay(VALUES, interval=1.0).references["fnn"][2:] == (min(VALUES["fnn"]), max(VALUES["fnn"]))
    low, high = SweepDisplay(VALUES, interval=0.9).references["fnn"][2:]
    assert (low, high) == pytest.approx(tuple(np.quantile(VALUES["fnn"], [0.05, 0.95])))
    single = SweepDisplay({"ca-fnn": {1: [0.5], 2: [0.25]}}).curves["ca-fnn"]
    assert [point[1:] for point in single] == [(0.5, 0.5, 0.5), (0.25, 0.25, 0.25)]


def test_lam_is_put_in_order() -> None:
    shuffled = {"ca-bnn": {lam: VALUES["ca-bnn"][lam] for lam in (10.0, 0.0, 30.0, 1.0)}}
    assert [point.lam for point in SweepDisplay(shuffled).curves["ca-bnn"]] == [0, 1, 10, 30]


def test_a_data_frame_gives_the_same_as_a_mapping() -> None:
    runs = []
    for scheme, values in VALUES.items():
        by_lam = values if isinstance(values, dict) else {None: values}
        runs += [
            {"scheme": scheme, "lam": lam, "seed": i, "ece": x} for lam, each in by_lam.items() for i, x in enumerate(each)
        ]
    frame = pd.DataFrame(runs).sample(frac=1, random_state=0)
    display, same = SweepDisplay.from_frame(frame), SweepDisplay(VALUES)
    for scheme, points in same.curves.items():
        assert np.asarray(display.curves[scheme]) == pytest.approx(np.asarray(points))
    assert {scheme: display.references[scheme] for scheme in same.references} == {
        scheme: pytest.approx(point) for scheme, point in same.references.items()
    }
    renamed = frame.rename(columns={"scheme": "method", "lam": "weight", "ece": "nll"})
    other = SweepDisplay.from_frame(renamed, metric="nll", scheme="method", lam="weight")
    assert other.curves == display.curves


def test_a_scheme_run_at_zero_only_is_a_reference() -> None:
    frame = pd.DataFrame({"scheme": ["fnn", "fnn", "ca-fnn", "ca-fnn"], "lam": [0, 0, 1, 10], "ece": [0.1, 0.3, 0.2, 0.1]})
    display = SweepDisplay.from_frame(frame)
    assert display.references["fnn"].median == pytest.approx(0.2)
    assert list(display.curves) == ["ca-fnn"]


def test_the_scale_of_lam() -> None:
    with_zero, without = SweepDisplay(VALUES), SweepDisplay({"ca-bnn": {lam: VALUES["ca-bnn"][lam] for lam in LAMS[1:]}})
    assert drawn(with_zero).get_xscale() == "symlog"
    assert drawn(without).get_xscale() == "log"
    assert drawn(without, xscale="symlog").get_xscale() == "symlog"
    assert drawn(with_zero, xscale="linear").get_xscale() == "linear"
    with pytest.raises(InvalidArgumentError, match="λ = 0 has no place on a logarithmic axis"):
        drawn(with_zero, xscale="log")


@pytest.mark.parametrize("scale", ["symlog", "linear"])
def test_every_lam_is_seen_with_room_beside_it(scale: str) -> None:
    ax = drawn(SweepDisplay(VALUES), xscale=scale)
    places = ax.transAxes.inverted().transform(ax.transData.transform([(lam, 0) for lam in LAMS]))[:, 0]
    assert places[0] == pytest.approx(1 - places[-1])
    assert 0.02 < places[0] < 0.1
    assert (np.diff(places) > 0).all()
    ticks = {*ax.get_xticks(), *ax.get_xticks(minor=True)}
    assert ticks == set(LAMS), "every one has its tick"


def test_a_zero_stands_a_decade_below_the_smallest() -> None:
    ax = drawn(SweepDisplay({"ca-fnn": {0: [1.0], 1: [1.0], 10: [1.0], 100: [1.0]}}))
    places = ax.transData.transform([(lam, 0) for lam in (0, 1, 10, 100)])[:, 0]
    steps = np.diff(places)
    assert steps[1] == pytest.approx(steps[2])
    assert 0.5 < steps[0] / steps[1] < 2


def test_as_many_are_labelled_as_there_is_room_for() -> None:
    assert written(drawn(SweepDisplay(VALUES), (8, 4))) == ["0", "0.1", "0.3", "1", "3", "10", "30"]
    assert written(drawn(SweepDisplay(VALUES), (2.2, 2))) == ["0", "0.1", "1", "10"]
    crowded = {"ca-fnn": {lam: [1.0] for lam in np.linspace(2.0, 2.3, 10).tolist()}}
    assert written(drawn(SweepDisplay(crowded), (2.2, 2))) == ["2", "2.3"]
    assert written(drawn(SweepDisplay({"ca-fnn": {10.0: [1.0]}}))) == ["10"]
    assert written(drawn(SweepDisplay({"fnn": [1.0]}))) == []


def test_the_vertical_axis_names_the_metric_and_what_is_better() -> None:
    assert drawn(SweepDisplay(VALUES)).get_ylabel() == "ECE (lower is better)"
    assert drawn(SweepDisplay(VALUES, metric="accuracy")).get_ylabel().endswith("(higher is better)")
    assert drawn(SweepDisplay(VALUES, metric="seconds a step")).get_ylabel() == "seconds a step"


def test_schemes_of_any_name_can_be_distinguished_without_colour() -> None:
    values = {name: {1.0: [0.1], 10.0: [0.2]} for name in ("mixup", "dropout", "labels", "focal")} | {"plain": [0.3]}
    ax = drawn(SweepDisplay(values))
    assert [each.get_label() for each in ax.lines] == [*list(values)]
    assert len({(each.get_marker(), str(each._dash_pattern)) for each in ax.lines}) == 5  # type: ignore[attr-defined]


def test_axes_in_axes_out() -> None:
    display = SweepDisplay(VALUES)
    ax = Figure().add_subplot()
    assert display.plot(ax) is display
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert not plt.get_fignums(), "given axes, nothing is registered with pyplot"
    assert display.plot(legend=False).ax_.get_legend() is None
    assert display.figure_ is plt.gcf()


@pytest.mark.parametrize(("size", "layout"), [((2.2, 2.0), "constrained"), ((4.6, 3.4), "constrained"), ((6.4, 4.8), None)])
def test_everything_stays_inside_the_figure(size: Any, layout: Any, inside: Callable[[Figure], None]) -> None:
    figure = Figure(figsize=size, layout=layout)
    ax = SweepDisplay(VALUES).plot(figure.add_subplot()).ax_
    inside(figure)
    legend: Any = ax.get_legend()
    assert legend.get_window_extent().y0 >= ax.get_window_extent().y1 - 1, "the legend hides nothing"
    labels = [label.get_window_extent() for label in ax.get_xticklabels()]
    assert all(left.x1 < right.x0 for left, right in pairwise(labels))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "at least one scheme"),
        ({"fnn": []}, "at least one value of 'ece' for 'fnn' at λ = 0"),
        ({"ca-fnn": {1.0: [0.1, float("inf")]}}, r"finite values of 'ece', but 'ca-fnn' at λ = 1 has inf"),
        ({"ca-fnn": {-1.0: [0.1]}}, "at least 0, but got -1.0"),
        ({"ca-fnn": {"one": [0.1]}}, "at least 0, but got 'one'"),
        ({"ca-fnn": {None: [0.1], 1.0: [0.1]}}, "at least 0, but got None"),
    ],
)
def test_values_that_cannot_be_drawn_are_quoted(values: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        SweepDisplay(values)


@pytest.mark.parametrize("interval", [0, -0.1, 1.5, True, "60%"])
def test_bad_intervals_are_quoted(interval: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=f"`interval` to be above 0 and at most 1, but got {interval!r}"):
        SweepDisplay(VALUES, interval=interval)


def test_other_mistakes_are_explained() -> None:
    with pytest.raises(InvalidArgumentError, match=r"no column 'nll': it has \['scheme', 'lam', 'ece'\]"):
        SweepDisplay.from_frame(pd.DataFrame({"scheme": ["fnn"], "lam": [0], "ece": [0.1]}), metric="nll")
    wrong: Any = "logit"
    with pytest.raises(InvalidArgumentError, match=r"`xscale` to be one of .*, but got 'logit'"):
        drawn(SweepDisplay(VALUES), xscale=wrong)
