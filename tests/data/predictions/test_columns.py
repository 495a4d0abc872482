"""Columns are found by themselves where there is one way to read them, named by arguments otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from tests.data.predictions.written import refused, text

from calibayes.data.predictions import PredictionTable, read_predictions


def read(tmp_path: Path, header: str, *rows: str, **settings: Any) -> PredictionTable:
    return read_predictions(text(tmp_path, "\n".join((header, *rows)) + "\n"), **settings)


@pytest.mark.parametrize(
    "name", ["label", "Label", " LABEL", "target", "y", "Y", "y_true", "true", "class", "truth", "ground_truth", "gold"]
)
def test_label_columns_that_are_found(tmp_path: Path, name: str) -> None:
    table = read(tmp_path, f"p_a,{name},p_b", "0.25,b,0.75")
    assert (table.columns.label, table.targets.tolist()) == (name, [1])


def test_the_likeliest_label_column_wins_and_a_named_one_always(tmp_path: Path) -> None:
    header, row = "y,label,truth,p_a,p_b", "a,b,a,0.25,0.75"
    assert read(tmp_path, header, row).columns.label == "label"
    assert read(tmp_path, header, row, label="truth").targets.tolist() == [0]
    assert read(tmp_path, header, row, label="TRUTH ").columns.label == "truth"


@pytest.mark.parametrize("prefix", ["p_", "P_", "prob_", "proba_", "probability_", "Probs_", "prob.", " p_"])
def test_prefixes_of_probabilities(tmp_path: Path, prefix: str) -> None:
    table = read(tmp_path, f"label,age,{prefix}b,{prefix}a", "a,40,0.25,0.75")
    assert (table.class_names, table.kind, table.targets.tolist()) == (("b", "a"), "probabilities", [1])
    assert table.columns.ignored == ("age",)
    assert table.columns.scores == (f"{prefix}b", f"{prefix}a")


@pytest.mark.parametrize("header", ["label,b_prob,a_prob", "label,b.probability,a.probability"])
def test_suffixes_of_probabilities(tmp_path: Path, header: str) -> None:
    assert read(tmp_path, header, "a,0.25,0.75").class_names == ("b", "a")


def test_numbers_right_after_p_are_classes(tmp_path: Path) -> None:
    table = read(tmp_path, "y,p0,p1,p2", "2,0,0.25,0.75")
    assert (table.class_names, table.targets.tolist()) == (("0", "1", "2"), [2])


@pytest.mark.parametrize("header", ["label,logit_a,logit_b", "label,Logits_a,Logits_b", "label,a_logit,b_logit"])
def test_logits_are_known_by_their_names(tmp_path: Path, header: str) -> None:
    table = read(tmp_path, header, "b,3,-1", "a,1000,-1000")
    assert (table.kind, table.class_names) == ("logits", ("a", "b"))
    odds = np.exp(-4.0)
    np.testing.assert_allclose(table.probs, [[1 / (1 + odds), odds / (1 + odds)], [1, 0]], rtol=1e-15)
    assert table.logits is not None
    assert table.logits.tolist() == [[3, -1], [1000, -1000]]


def test_classes_called_logit_are_not_logits(tmp_path: Path) -> None:
    table = read(tmp_path, "label,logit_a,logit_b,p", "logit_a,0.25,0.75,3", "logit_b,0.5,0.5,3")
    assert (table.kind, table.class_names) == ("probabilities", ("logit_a", "logit_b"))
    assert read(tmp_path, "label,m_logitech,m_other", "other,0.25,0.75", columns="m_*").kind == "probabilities"
    assert read(tmp_path, "y,logit0,logit1", "1,2,3").kind == "logits"
    assert read(tmp_path, "y,mine_logit_0,mine_logit_1", "1,2,3", columns="mine_logit_*").kind == "logits"


def test_logits_are_never_guessed_from_values(tmp_path: Path) -> None:
    header, row = "label,p_a,p_b", "b,0.25,0.75"
    assert read(tmp_path, header, row).kind == "probabilities"
    asked = read(tmp_path, header, row, logits=True)
    assert asked.kind == "logits"
    np.testing.assert_allclose(asked.probs[0, 1], 1 / (1 + np.exp(-0.5)), rtol=1e-15)
    assert read(tmp_path, "label,logit_a,logit_b", row, logits=False).kind == "probabilities"


def test_probabilities_and_logits_side_by_side_need_a_word(tmp_path: Path) -> None:
    header, row = "label,p_a,p_b,logit_a,logit_b", "b,0.25,0.75,5,7"
    refused(text(tmp_path, f"{header}\n{row}\n"), "2 columns 'p_*'", "2 columns 'logit_*'", "--columns", "--logits")
    assert read(tmp_path, header, row, logits=True).columns.scores == ("logit_a", "logit_b")
    assert read(tmp_path, header, row, logits=False).columns.scores == ("p_a", "p_b")
    assert read(tmp_path, header, row, columns="p_*").kind == "probabilities"
    assert read(tmp_path, header, row, columns="logit_*").kind == "logits"


def test_two_groups_of_probabilities_need_a_word(tmp_path: Path) -> None:
    header, row = "label,p_a,p_b,prob_a,prob_b", "b,0.25,0.75,1,0"
    message = refused(text(tmp_path, f"{header}\n{row}\n"), "2 columns 'p_*'", "2 columns 'prob_*'", "--columns 'p_*'")
    assert "--logits" not in message
    assert read(tmp_path, header, row, columns="prob_*").probs.tolist() == [[1, 0]]


def test_columns_called_like_the_labels(tmp_path: Path) -> None:
    table = read(tmp_path, "age,dog,label,cat,size", "3,0.25,cat,0.75,10", "4,0.5,dog,0.5,11")
    assert (table.class_names, table.targets.tolist()) == (("dog", "cat"), [1, 0])
    table = read(tmp_path, "label,0,1,2", "2.0,0,0.25,0.75", "1,0,0,1", "0,1,0,0")
    assert (table.class_names, table.targets.tolist()) == (("0", "1", "2"), [2, 1, 0])
    assert read(tmp_path, "label,a,b,flag", "a,0.5,0.5,0", "b,1,0,0").class_names == ("a", "b")
    table = read(tmp_path, "label,a,b", "a,2,1", "b,0,7", logits=True)
    assert (table.kind, table.class_names) == ("logits", ("a", "b"))


def test_labels_that_look_like_prefixed_columns(tmp_path: Path) -> None:
    table = read(tmp_path, "label,p_a,p_b,c", "p_a,0.5,0.25,0.25", "p_b,1,0,0", "c,0,0,1")
    assert (table.class_names, table.targets.tolist()) == (("p_a", "p_b", "c"), [0, 1, 2])


def test_a_class_without_examples_keeps_its_column(tmp_path: Path) -> None:
    table = read(tmp_path, "label,a,b,c", "a,0.5,0.25,0.25", "b,0.5,0,0.5")
    assert table.class_names == ("a", "b", "c")
    refused(text(tmp_path, "label,a,b,c\na,5,1,1\nb,0,7,7\n"), "'a', 'b'", "'c'", "--columns", logits=True)


def test_all_columns_of_numbers_if_their_rows_sum_to_one(tmp_path: Path) -> None:
    table = read(tmp_path, ",text,y,red,green,y_pred", "0,x,1,0.25,0.75,1", "1,y,0,0.5,0.5,0")
    assert (table.class_names, table.targets.tolist()) == (("red", "green"), [1, 0])
    assert table.columns.ignored == ("", "text", "y_pred")
    path = text(tmp_path, "y,red,green,age\n1,0.25,0.75,30\n0,0.5,0.5,40\n")
    refused(path, "'red', 'green', 'age'", "do not sum to 1", "--columns", "--logits")
    assert read_predictions(path, columns="red,green").targets.tolist() == [1, 0]


def test_one_bad_row_is_named_rather_than_taken_for_another_layout(tmp_path: Path) -> None:
    rows = ["1,0.25,0.75", "0,0.5,0.5", "0,0.5,0.25", "1,0,1"]
    refused(text(tmp_path, "\n".join(["y,red,green", *rows])), "line 4", "'red'", "sum to 0.75")


def test_what_columns_share_is_not_part_of_the_class(tmp_path: Path) -> None:
    table = read(tmp_path, "label,class_cat,class_cow", "cow,0.25,0.75", "cat,0,1")
    assert (table.class_names, table.targets.tolist()) == (("cat", "cow"), [1, 0])


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        ("m_*", ("a", "b")),
        ("m_?", ("m_a", "m_b")),
        (["m_a", "m_b"], ("m_a", "m_b")),
        (("m_b", "m_a"), ("m_b", "m_a")),
        ("m_b, m_a", ("m_b", "m_a")),
        (["m_*"], ("a", "b")),
        ("[m]_*", ("m_a", "m_b")),
    ],
)
def test_columns_can_be_named(tmp_path: Path, columns: str | list[str], names: tuple[str, ...]) -> None:
    table = read(tmp_path, "y,m_a,m_b,p_x,p_y", "1,0.25,0.75,1,0", columns=columns)
    assert table.class_names == names
    assert table.targets.tolist() == [1]
    assert table.probs[0].tolist() == [{"a": 0.25, "b": 0.75}[name[-1]] for name in names]


def test_a_name_that_looks_like_a_glob_is_a_name_first(tmp_path: Path) -> None:
    table = read(tmp_path, "y,p[0],p[1],p0", "1,0.25,0.75,1", columns=["p[0]", "p[1]"])
    assert table.columns.scores == ("p[0]", "p[1]")
    assert read(tmp_path, 'label,"a,b",c', "c,0.25,0.75", columns=["a,b", "c"]).class_names == ("a,b", "c")


def test_a_glob_leaves_label_weights_and_id_alone(tmp_path: Path) -> None:
    table = read(tmp_path, "label,a,b,w,id", "b,0.25,0.75,2,x", columns="*", weights="w", id="id")
    assert table.columns.scores == ("a", "b")
    assert table.weights is not None
    assert (table.weights.tolist(), table.ids) == ([2.0], ("x",))


def test_weights_and_ids_are_used_only_when_named(tmp_path: Path) -> None:
    header, row = "label,p_a,p_b,weight,id", "b,0.25,0.75,2,007"
    plain = read(tmp_path, header, row)
    assert plain.weights is None
    assert plain.ids is None
    named = read(tmp_path, header, row, weights="weight", id="id")
    assert named.weights is not None
    assert (named.weights.tolist(), named.ids) == ([2.0], ("007",))
    assert (named.columns.weights, named.columns.id, named.columns.ignored) == ("weight", "id", ())
    assert "weights from 'weight'; ids from 'id'" in named.describe()


def test_confidence_in_a_decision_is_not_the_probability_of_a_class(tmp_path: Path) -> None:
    path = text(tmp_path, "label,prediction,confidence\n0,0,0.9\n1,0,0.6\n")
    refused(path, "'confidence'", "'prediction'", "--columns 'confidence'", "p_<class>")
    assert read_predictions(path, columns="confidence").probs[:, 1].tolist() == [0.9, 0.6]
    assert read(tmp_path, "label,prediction,confidence", "0,0,0.1", "1,1,0.6").columns.scores == ("confidence",)
    assert read(tmp_path, "label,prediction,logit", "0,0,0.9", "1,1,0.6").kind == "logits"


def test_parquet_columns_are_found_in_the_same_way(tmp_path: Path) -> None:
    for header, rows in (
        ("label,p_a,p_b,logit_a", "b,0.25,0.75,3\na,1,0,4\n"),
        ("age,dog,label,cat", "3,0.25,cat,0.75\n4,0.5,dog,0.5\n"),
        ("label,a,b,c", "a,0.5,0.25,0.25\nb,0.5,0,0.5\n"),
        ("text,y,red,green,y_pred", "x,1,0.25,0.75,1\ny,0,0.5,0.5,0\n"),
        ("label,score", "no,0.25\nyes,1.0\n"),
    ):
        path = text(tmp_path, f"{header}\n{rows}")
        pq.write_table(pc.read_csv(path), tmp_path / "model.parquet")
        delimited, parquet = read_predictions(path), read_predictions(tmp_path / "model.parquet")
        assert delimited.columns == parquet.columns
        assert delimited.class_names == parquet.class_names
        assert (delimited.probs == parquet.probs).all()
        assert (delimited.targets == parquet.targets).all()


@pytest.mark.parametrize(
    ("header", "settings", "said"),
    [
        ("red,p_a,p_b", {}, ("label, target, y", "'red', 'p_a', 'p_b'", "--label")),
        (
            "label,p_a,p_b",
            {"label": "lable"},
            ("no column 'lable' (--label)", "'label', 'p_a', 'p_b'", "Did you mean 'label'?"),
        ),
        ("label,p_a,p_b", {"weights": "w"}, ("no column 'w' (--weights)", "'label', 'p_a', 'p_b'")),
        ("label,p_a,p_b", {"id": "w"}, ("no column 'w' (--id)",)),
        ("label,p_a,p_b", {"columns": "q_*"}, ("no column 'q_*' (--columns)", "'label', 'p_a', 'p_b'")),
        ("label,p_a,p_b", {"columns": ["p_a", "p_c"]}, ("no column 'p_c' (--columns)",)),
        ("label,p_a,p_b", {"columns": []}, ("--columns names no column",)),
        ("label,p_a,p_b", {"columns": ["label", "p_b"]}, ("'label'", "--columns", "also the label")),
        ("label,p_a,p_b", {"weights": "p_a", "id": "p_a"}, ("the same column twice", "'p_a'", "--weights", "--id")),
        ("label,p_a,p_a", {}, ("line 1", "'p_a' occurs 2 times (columns 2, 3)", "Rename")),
        ("b,0.25,0.25", {}, ("line 1", "'0.25' occurs 2 times")),
        ("1,0.25,0.25", {}, ("line 1", "'1', '0.25', '0.25'", "looks like data", "header line")),
        ("1,0.25,0.75", {}, ("header line missing", "--label")),
        ("label,x,z", {}, ("'label', 'x', 'z'", "--columns 'p_*'", "--logits")),
        ("label,p,score", {"logits": True}, ("'p', 'score'", "--columns 'p'")),
    ],
)
def test_what_is_not_clear_is_refused(tmp_path: Path, header: str, settings: dict[str, Any], said: tuple[str, ...]) -> None:
    refused(text(tmp_path, f"{header}\nb,0.5,0.25\na,0.5,0.25\n"), *said, **settings)
