"""Tables, numbers and figures of experiments under shift, from made-up results."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.reproduction.shift.made_up_shift import made_up_parts, nll

from reproduction.experiments import experiment, outputs_of
from reproduction.shift.shift_experiments import METHODS_UNDER_SHIFT
from reproduction.shift.shift_scores import by_seed, curve
from reproduction.shift.shift_tables import SCORE_COLUMNS, people_rows, severity_rows, shift_summary


def test_a_score_at_a_severity_is_the_mean_over_shifts() -> None:
    bnn = made_up_parts("shift-digits")[1]
    expected = {seed: np.mean([nll("bnn", seed, shift, 4, "plain") for shift in range(3)]) for seed in range(3)}
    assert by_seed(bnn, "plain", "nll", 4) == pytest.approx(expected)
    assert by_seed(bnn, "scaled", "nll", 2, "missing_cells")[1] == pytest.approx(nll("bnn", 1, 2, 2, "scaled"))
    assert by_seed(bnn, "plain", "nll", 0)[0] == pytest.approx(nll("bnn", 0, 0, 0, "plain"))


def test_the_interval_is_students_over_seeds() -> None:
    """Three seeds at 0, 0.001 and 0.002: a standard error of 0.001/√3, times 4.3027."""
    points = curve(made_up_parts("shift-digits")[0], "plain", "nll")
    assert points.mean.shape == (6,)
    np.testing.assert_allclose(points.high - points.mean, 4.3027 * 0.001 / np.sqrt(3), rtol=1e-3)
    np.testing.assert_allclose(points.mean - points.low, points.high - points.mean)


def test_one_seed_has_no_interval() -> None:
    part = made_up_parts("shift-digits")[0]
    alone = replace(part, settings=part.settings[:1], results=part.results[:1])
    points = curve(alone, "plain", "nll")
    assert np.isfinite(points.mean).all()
    assert np.isnan(points.low).all()


def test_rows_compare_with_the_plain_network_and_its_temperature() -> None:
    heads, rows = severity_rows(made_up_parts("shift-newsgroups"), SCORE_COLUMNS[0])
    assert heads == ("0", "1", "2", "3", "4", "5", "against FNN + T")
    cells = {row[0]: row[1:] for row in rows}
    assert cells["FNN + T"][-1] == "+0.000 (+0.000 to +0.000)"
    assert cells["FNN"][-1] == "+0.050 (+0.050 to +0.050)"
    assert cells["CA-FNN + T"][-1] == "+0.020 (+0.020 to +0.020)"
    assert cells["BNN"][0] == "1.011 ± 0.001"
    assert cells["BNN"][5] == "2.061 ± 0.001"  # 1 + 0.2 · 5 + 0.01, the mean seed's 0.001, and the mean shift's 0.05
    _, rows = severity_rows(made_up_parts("shift-newsgroups"), SCORE_COLUMNS[-1])
    assert [row[0] for row in rows][:2] == ["FNN", "BNN"]  # a temperature does not change decisions


def test_people_stand_only_beside_cifar10() -> None:
    assert people_rows(made_up_parts("shift-fashion"))[1] == []
    heads, rows = people_rows(made_up_parts("shift-cifar10"))
    assert len(rows) == 2 * len(METHODS_UNDER_SHIFT)
    assert dict(zip(heads, rows[0][1:], strict=True))["KL(people‖model)"] == "0.1001 (0.0901 to 0.1101)"


def test_the_numbers_can_be_written_down() -> None:
    (first, *_) = json.loads(json.dumps(shift_summary(made_up_parts("shift-cifar10"))))
    assert first["seeds"] == [0, 1, 2]
    assert first["scores"]["plain nll"]["fog"][5] == pytest.approx([nll("fnn", seed, 9, 5, "plain") for seed in range(3)])
    assert first["people"][0]["plain"]["kl"] == pytest.approx(0.1)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "people"), [("shift-cifar10", True), ("shift-newsgroups", False)])
def test_figures_and_tables_are_written(name: str, people: bool, tmp_path: Path) -> None:
    parts, asked = made_up_parts(name), experiment(name)
    outputs = outputs_of(asked)
    files = outputs.draw(name, parts, tmp_path)
    assert files == ["severity.png", "severity-temperature.png", "shifts.png", *(["people.png"] if people else [])]
    assert all((tmp_path / file).stat().st_size > 10_000 for file in files)
    text = outputs.table_text(asked, parts)
    assert ("CIFAR-10H" in text) == people
    assert "missing" not in text
    fewer = [replace(parts[0], settings=parts[0].settings[:2], results=parts[0].results[:2]), *parts[1:]]
    assert "1 training is missing." in outputs.table_text(asked, fewer)


def test_a_part_without_results_is_left_out(tmp_path: Path) -> None:
    parts = made_up_parts("shift-digits")
    parts[3] = replace(parts[3], settings=(), results=())
    asked = experiment("shift-digits")
    assert "CA-BNN" not in outputs_of(asked).table_text(asked, parts)
