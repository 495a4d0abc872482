"""Texts with words replaced or left out."""

from __future__ import annotations

import pytest
import torch

from calibayes.data.corrupt import SEVERITIES, TEXT_CORRUPTIONS, corrupt_texts
from calibayes.errors import DataError, InvalidArgumentError

SHARES = (0.1, 0.2, 0.3, 0.45, 0.6)
OTHERS = [f"other{number}" for number in range(50)]


def texts(count: int = 40, length: int = 100) -> list[list[str]]:
    return [[f"word{(7 * text + place) % 90}" for place in range(length)] for text in range(count)]


def indices(count: int = 40, length: int = 60) -> torch.Tensor:
    """Word indices with more and more padding at their start."""
    index = torch.randint(1, 500, (count, length), generator=torch.Generator().manual_seed(0))
    for row, text in enumerate(index):
        text[:row] = 0
    return index


@pytest.mark.parametrize(("severity", "share"), list(zip(SEVERITIES, SHARES, strict=True)))
def test_a_share_of_the_words_changes(severity: int, share: float) -> None:
    before = texts()
    replaced = corrupt_texts(before, "word_replacement", severity, seed=0, others=OTHERS)
    changed = [new != old for text, other in zip(before, replaced, strict=True) for old, new in zip(text, other, strict=True)]
    assert sum(changed) / len(changed) == pytest.approx(share, abs=0.03)
    dropped = corrupt_texts(before, "word_dropping", severity, seed=0)
    assert sum(map(len, dropped)) / 4000 == pytest.approx(1 - share, abs=0.03)


def test_dropping_keeps_the_order_of_the_others() -> None:
    numbered = [[str(place) for place in range(80)]]
    (left,) = corrupt_texts(numbered, "word_dropping", 4, seed=0)
    assert [int(word) for word in left] == sorted(map(int, left))


def test_what_changes_at_a_severity_changes_at_higher_ones_in_the_same_way() -> None:
    (text,) = texts(1)
    milder = corrupt_texts([text], "word_replacement", 1, seed=0, others=OTHERS)[0]
    for severity in SEVERITIES[1:]:
        worse = corrupt_texts([text], "word_replacement", severity, seed=0, others=OTHERS)[0]
        assert all(new == mild for old, mild, new in zip(text, milder, worse, strict=True) if mild != old)
        milder = worse


def test_a_replacement_is_another_word() -> None:
    (text,) = corrupt_texts([["a"] * 50], "word_replacement", 5, seed=0, others=["a", "a", "a", "b"])
    assert 10 < text.count("b") < 50


@pytest.mark.parametrize("name", TEXT_CORRUPTIONS)
def test_a_text_does_not_depend_on_the_others(name: str) -> None:
    before = texts(6)
    whole = corrupt_texts(before, name, 3, seed=5, others=OTHERS)
    assert corrupt_texts(before[4:5], name, 3, seed=5, others=OTHERS) == whole[4:5]
    assert corrupt_texts(before, name, 3, seed=6, others=OTHERS) != whole
    x = indices()
    rows = corrupt_texts(x, name, 3, seed=5, others=range(1, 500))
    assert torch.equal(corrupt_texts(x[7:9], name, 3, seed=5, others=range(1, 500)), rows[7:9])


def test_indices_keep_shape_type_and_padding() -> None:
    x = indices()
    replaced = corrupt_texts(x, "word_replacement", 3, seed=0, others=torch.arange(1, 500))
    assert replaced.shape == x.shape
    assert replaced.dtype == x.dtype
    assert torch.equal(replaced == 0, x == 0)
    dropped = corrupt_texts(x, "word_dropping", 3, seed=0)
    for row, text in zip(dropped.tolist(), x.tolist(), strict=True):
        words = [word for word in row if word]
        assert row == [0] * (60 - len(words)) + words
        assert 0 < len(words) <= sum(word != 0 for word in text)
    at_end = corrupt_texts(x, "word_dropping", 3, seed=0, pad="end")
    for row, other in zip(dropped.tolist(), at_end.tolist(), strict=True):
        assert [word for word in row if word] + [0] * row.count(0) == other


def test_words_and_their_indices_drop_alike_where_there_are_few() -> None:
    assert corrupt_texts([["alone"]], "word_dropping", 5, seed=0) == [["alone"]]
    assert corrupt_texts([[]], "word_dropping", 5, seed=0) == [[]]
    assert corrupt_texts(torch.zeros(1, 4, dtype=torch.long), "word_dropping", 5, seed=0).tolist() == [[0, 0, 0, 0]]
    for seed in range(30):
        assert corrupt_texts([["a", "b"]], "word_dropping", 5, seed=seed)[0]


def test_errors_name_the_value() -> None:
    with pytest.raises(InvalidArgumentError, match=r"but got 'word_droping'\. Did you mean 'word_dropping'"):
        corrupt_texts(texts(1), "word_droping", 1, seed=0)
    with pytest.raises(InvalidArgumentError, match="`others` to be the words that replacements are drawn from, but got None"):
        corrupt_texts(texts(1), "word_replacement", 1, seed=0)
    with pytest.raises(InvalidArgumentError, match=r"two different words, but got \['a', 'a'\]"):
        corrupt_texts(texts(1), "word_replacement", 1, seed=0, others=["a", "a"])
    with pytest.raises(InvalidArgumentError, match="but got 6"):
        corrupt_texts(texts(1), "word_dropping", 6, seed=0)
    with pytest.raises(InvalidArgumentError, match="'start' or 'end', but got 'left'"):
        corrupt_texts(indices(1), "word_dropping", 1, seed=0, pad="left")  # type: ignore[call-overload]
    with pytest.raises(DataError, match=r"Expected text 1 to be a list of words, but got 'a sentence'"):
        corrupt_texts([["a"], "a sentence"], "word_dropping", 1, seed=0)
    with pytest.raises(DataError, match=r"but got \[3\] of torch.int64"):
        corrupt_texts(torch.arange(3), "word_dropping", 1, seed=0)
    with pytest.raises(DataError, match=r"of torch.float32"):
        corrupt_texts(torch.zeros(2, 3), "word_dropping", 1, seed=0)
