"""Texts as word indices, and vectors for the words."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from calibayes.data.glove import glove
from calibayes.data.word_indices import frequent_words, sequences, words
from calibayes.errors import DataError, InvalidArgumentError, MissingDataError


def test_every_printed_sign_separates_but_the_apostrophe() -> None:
    signs = "".join(chr(code) for code in range(33, 127) if not chr(code).isalnum() and chr(code) != "'")
    assert len(signs) == 31
    assert words(f"a{'b'.join(signs)}c".encode()) == ["a", *"b" * 30, "c"]
    assert words(b"it's\t 'quoted'\r\n\x0b\x85\xa0e-mail") == ["it's", "'quoted'", "e", "mail"]


def test_latin_letters_become_lower_case() -> None:
    text = "ÀÉÎÕÜ ÇÑØ Straße µ ×÷ ÿ"
    assert words(text.encode("latin-1")) == text.lower().split()


def test_any_byte_can_be_read() -> None:
    assert len("".join(words(bytes(range(256))))) > 100


def test_the_most_frequent_words_come_first() -> None:
    texts = [["b", "a", "b"], ["c", "a", "d"], []]
    assert frequent_words(texts, 3) == ("a", "b", "c")
    assert frequent_words(reversed(texts), 3) == ("a", "b", "c")
    assert frequent_words(texts, 99) == ("a", "b", "c", "d")


@pytest.mark.parametrize(
    ("keep", "expected"), [("end", [[4, 1, 2], [0, 0, 2], [0, 0, 0]]), ("start", [[1, 2, 4], [0, 0, 2], [0, 0, 0]])]
)
def test_longer_texts_are_cut_and_shorter_ones_padded(keep: str, expected: list[list[int]]) -> None:
    texts = [["a", "b", "?", "d", "a", "b"], ["?", "b"], []]
    found = sequences(texts, ("a", "b", "c", "d"), 3, keep)  # type: ignore[arg-type]
    assert found.dtype == torch.int64
    assert found.tolist() == expected


def test_another_end_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="`keep` to be 'start' or 'end', but got 'middle'"):
        sequences([["a"]], ("a",), 3, "middle")  # type: ignore[arg-type]


def vectors(folder: Path, content: str) -> Path:
    (folder / "glove.6B").mkdir()
    (folder / "glove.6B" / "glove.6B.100d.txt").write_text(content, encoding="utf-8")
    return folder


def test_vectors_are_found_by_their_words(tmp_path: Path) -> None:
    content = "the" + " 0.5" * 100 + "\n" + "other" + " 9" * 100 + "\n" + "café" + " -1e-2" * 99 + " 3\n"
    found = glove(("café", "nowhere", "the"), vectors(tmp_path, content))
    assert found.dtype == torch.float32
    assert found.shape == (4, 100)
    assert torch.equal(found[1], torch.tensor([-0.01] * 99 + [3.0]))
    assert torch.equal(found[3], torch.full((100,), 0.5))
    assert not found[[0, 2]].any()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("of" + " 1" * 100 + "\nthe" + " 1" * 99 + "\n", r"Line 2 of .* must have 100 numbers, but has 99"),
        ("the" + " 1" * 99 + " ?\n", r"Line 1 of .* is damaged: could not convert string to float"),
    ],
)
def test_damaged_vectors_are_named(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        glove(("the",), vectors(tmp_path, content))


def test_without_vectors_it_is_said_how_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match="calibayes data get glove"):
        glove(("the",), tmp_path)
