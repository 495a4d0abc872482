"""Labels meet classes: as texts, as numbers, as places, and as the two sides of one column."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.data.predictions.written import refused, text, write_npz

from calibayes.data.predictions import read_predictions


@pytest.mark.parametrize(
    ("names", "labels", "targets"),
    [
        (("3", "7"), ("3", "7.0"), [0, 1]),
        (("3.0", "7.0"), ("3", "07"), [0, 1]),
        (("-1", "1"), ("1.0", "-1.0"), [1, 0]),
        (("True", "False"), ("false", "TRUE"), [1, 0]),
        (("a", "b"), (" b", "a "), [1, 0]),
        (("a", "a "), ("a ", "a"), [1, 0]),
        (("a", "A"), ("A", "a"), [1, 0]),
        (("03", "3"), ("3", "03"), [1, 0]),
        (("cat", "dog"), ("0", "1"), [0, 1]),
        (("cat", "dog"), ("1.0", "1.0"), [1, 1]),
        (("1", "0"), ("0", "1"), [1, 0]),
    ],
)
def test_labels_match_classes(tmp_path: Path, names: tuple[str, str], labels: tuple[str, str], targets: list[int]) -> None:
    table = read_predictions(text(tmp_path, f"label,p_{names[0]},p_{names[1]}\n" + "".join(f"{x},0.5,0.5\n" for x in labels)))
    assert table.class_names == names
    assert table.targets.tolist() == targets


@pytest.mark.parametrize(
    ("names", "labels", "row", "said"),
    [
        (("cat", "dog"), ("cat", "dog", "bird"), 4, ("'bird'", "'cat', 'dog'", "--label", "--columns")),
        (("cat", "dog"), ("1", "2"), 3, ("'2'", "'cat', 'dog'", "from 0 to 1")),
        (("1", "2"), ("0", "1"), 2, ("'0'", "'1', '2'", "from 0 to 1")),
        (("cat", "dog"), ("Cat",), 2, ("'Cat'", "'cat', 'dog'")),
        (("cat", "dog"), ("cat", "0"), 3, ("'0'", "'cat', 'dog'")),
        (("0", "1"), ("-1",), 2, ("'-1'", "'0', '1'")),
        (("0", "1"), ("0.5",), 2, ("'0.5'", "'0', '1'")),
        (("a", "a "), (" a",), 2, ("' a'", "'a', 'a '")),
        (("cat", "dog"), ("cat", ""), 3, ("empty",)),
    ],
)
def test_unknown_labels(
    tmp_path: Path, names: tuple[str, str], labels: tuple[str, ...], row: int, said: tuple[str, ...]
) -> None:
    content = f"label,p_{names[0]},p_{names[1]}\n" + "".join(f"{label},0.5,0.5\n" for label in labels)
    refused(text(tmp_path, content), f"line {row}, column 'label'", *said)


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (("0", "1"), ("0", "1")),
        (("1", "0", "1.0"), ("0", "1")),
        (("yes", "no"), ("no", "yes")),
        (("True", "False"), ("False", "True")),
        (("10", "9"), ("9", "10")),
        (("1", "-1"), ("-1", "1")),
        (("spam", "ham"), ("ham", "spam")),
        (("1", "1"), ("0", "1")),
        (("0.0",), ("0.0", "1")),
        (("No", "No"), ("No", "yes")),
        (("true",), ("False", "true")),
    ],
)
@pytest.mark.parametrize("column", ["p", "prob", "Probability", "score", "confidence", "y_score", "p_hat", "p_1", "prob1"])
def test_one_column_is_the_probability_of_the_label_that_says_yes(
    tmp_path: Path, labels: tuple[str, ...], names: tuple[str, str], column: str
) -> None:
    table = read_predictions(text(tmp_path, f"{column},age,label\n" + "".join(f"0.25,3,{label}\n" for label in labels)))
    assert table.class_names == names
    assert table.probs.tolist() == [[0.75, 0.25]] * len(labels)
    own = [names.index(label) if label in names else 1 for label in labels]
    assert table.targets.tolist() == own
    assert f"probabilities of class {names[1]!r} from {column!r}" in table.describe()


@pytest.mark.parametrize(
    ("column", "labels", "positive", "names"),
    [
        ("prob_no", ("no", "yes"), None, ("yes", "no")),
        ("prob_yes", ("no", "yes"), None, ("no", "yes")),
        ("p0", ("no", "yes"), None, ("yes", "no")),
        ("p_0", ("0", "1"), None, ("1", "0")),
        ("p", ("n", "p"), None, ("n", "p")),
        ("p", ("no", "yes"), "no", ("yes", "no")),
        ("p", ("0", "1"), "1.0", ("0", "1")),
        ("p_no", ("0", "1"), "0", ("1", "0")),
        ("p", ("ill", "ill"), "ill", ("not ill", "ill")),
        ("p", ("ill", "ill"), "well", ("ill", "well")),
        ("p", ("yes", "yes"), "no", ("yes", "no")),
    ],
)
def test_which_class_one_column_speaks_of(
    tmp_path: Path, column: str, labels: tuple[str, str], positive: str | None, names: tuple[str, str]
) -> None:
    path = text(tmp_path, f"label,{column}\n{labels[0]},0.25\n{labels[1]},1\n")
    table = read_predictions(path, positive=positive)
    assert table.class_names == names
    assert table.probs.tolist() == [[0.75, 0.25], [0, 1]]
    assert [names[target] for target in table.targets] == list(labels)


def test_one_logit_is_the_logit_of_the_second_label(tmp_path: Path) -> None:
    path = text(tmp_path, "label,logit\nno,-2\nyes,800\nno,-800\n")
    table = read_predictions(path)
    assert (table.kind, table.class_names) == ("logits", ("no", "yes"))
    np.testing.assert_allclose(table.probs[:, 1], [1 / (1 + np.exp(2)), 1, 0], rtol=1e-14)
    assert table.logits is not None
    assert table.logits.tolist() == [[0, -2], [0, 800], [0, -800]]
    asked = read_predictions(text(tmp_path, "label,score\nno,-2\nyes,3\n"), logits=True)
    np.testing.assert_allclose(asked.probs[:, 1], 1 / (1 + np.exp([2, -3])), rtol=1e-14)


def test_huge_logits_do_not_overflow(tmp_path: Path) -> None:
    table = read_predictions(text(tmp_path, "label,logit_a,logit_b\na,1.5e308,1e308\nb,-1.7e308,1.7e308\n"))
    assert table.probs.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("content", "positive", "said"),
    [
        (
            "label,p\na,0.5\nb,0.5\nc,0.5\n",
            None,
            ("one column of probabilities", "'p'", "3 label values", "'a', 'b', 'c'", "--columns"),
        ),
        ("label,p_a\na,0.5\nb,0.5\nc,0.5\n", None, ("one column of probabilities", "'p_a'", "3 label values")),
        ("label,p\na,0.5\nb,0.5\n", "c", ("--positive 'c'", "'a', 'b'")),
        ("label,p\nfraud,0.5\nlegit,0.5\n", None, ("'p' may be for 'fraud' or for 'legit'", "--positive")),
        ("label,logit\na,0.5\na ,-0.5\n", None, ("'logit' may be for 'a' or for 'a '", "--positive")),
        ("label,p\nill,0.5\n", None, ("every label is 'ill'", "'p'", "--positive")),
        ("label,p_cat\n0,0.5\n1,0.5\n", None, ("'p_cat' is for 'cat'", "'0', '1'", "--positive")),
        ("label,p_a,p_b,p_c\na,0.5,0.5,0\n", "a", ("--positive 'a'", "3 classes", "'a', 'b', 'c'")),
        ("label,p_a,p_b\na,0.5,0.5\n", "c", ("--positive 'c'", "2 classes")),
    ],
)
def test_one_column_that_is_not_clear(tmp_path: Path, content: str, positive: str | None, said: tuple[str, ...]) -> None:
    refused(text(tmp_path, content), *said, positive=positive)


def test_npz_labels_that_may_be_names_or_places(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "a.npz", np.eye(3), [1, 2, 1], [1, 2, 3])
    refused(path, "'1', '2'", "'1', '2', '3'", "count from 0", "astype(str)")
    path = write_npz(tmp_path / "b.npz", np.eye(3), ["1", "2", "1"], [1, 2, 3])
    assert read_predictions(path).targets.tolist() == [0, 1, 0]
    refused(write_npz(tmp_path / "c.npz", np.eye(2), [0, 2], ["a", "b"]), "row 2", "'targets'", "'2'", "'a', 'b'")
