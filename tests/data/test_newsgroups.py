"""20 Newsgroups: articles that were made up, and the real ones where they are."""

from __future__ import annotations

import math
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.data.real import needs, place

from calibayes.data import Texts, newsgroups, newsgroups_articles
from calibayes.data.newsgroups import ARTICLES
from calibayes.errors import DataError, InvalidArgumentError, MissingDataError

FEW = {"train": 300, "test": 90}


@pytest.fixture
def made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A few articles in two groups; each has a word of its own."""
    folder = tmp_path / "made-up"
    for part, count in FEW.items():
        monkeypatch.setitem(ARTICLES, part, count)
        for group in ("alt.one", "sci.two"):
            (folder / "20news-bydate" / f"20news-bydate-{part}" / group).mkdir(parents=True)
        for number in range(count):
            group = "alt.one" if number % 3 else "sci.two"
            path = folder / "20news-bydate" / f"20news-bydate-{part}" / group / str(number)
            path.write_text(f"Subject: secret\nLines: 1\n\n{group} body {part}{number}\n\nend")
    (folder / "glove.6B").mkdir()
    (folder / "glove.6B" / "glove.6B.100d.txt").write_text("body" + " 0.25" * 100 + "\n")
    return folder


def test_headers_are_cut_and_labels_are_those_of_the_folder(made_up: Path) -> None:
    texts = newsgroups(length=6, vocabulary=5, validation=50, folder=made_up)
    assert texts.classes == ("alt.one", "sci.two")
    assert set(texts.vocabulary) == {"alt", "body", "end", "one", "sci"}  # and "two", which is as frequent as "sci"
    index = {word: number for number, word in enumerate(texts.vocabulary, start=1)}
    for (x, y), count in ((texts.train, 250), (texts.validation, 50), (texts.test, 90)):
        assert len(x) == count
        assert torch.equal(y, (x == index["sci"]).any(1).long())
        assert (x[y == 1] == torch.tensor([0, 0, 0, index["sci"], index["body"], index["end"]])).all()
    with_headers = newsgroups(length=6, vocabulary=10, validation=50, headers=True, folder=made_up)
    assert "secret" in with_headers.vocabulary


def test_articles_are_strings_group_by_group(made_up: Path) -> None:
    (made_up / "20news-bydate" / "20news-bydate-test" / "alt.one" / "1").write_bytes(b"Lines: 1\n\nDon't PANIC, se\xf1or")
    texts, targets, classes = newsgroups_articles("test", folder=made_up)
    assert classes == ("alt.one", "sci.two")
    assert targets.tolist() == [0] * 60 + [1] * 30
    assert texts[0] == "Don't PANIC, señor"
    assert texts[-30] == "sci.two body test0\n\nend"
    assert newsgroups_articles("test", headers=True, folder=made_up).texts[0].startswith("Lines: 1")
    with pytest.raises(InvalidArgumentError, match="'train' or 'test', but got 'all'"):
        newsgroups_articles("all", folder=made_up)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("article", "expected"),
    [
        ("no headers here", ["here", "headers", "no"]),
        ("Lines: 1\r\n\r\ntext\r\n\r\nmore", ["text", "more"]),
        ("\n\ntext", ["text"]),
        ("Lines: 0\n\n", []),
    ],
    ids=["no blank line", "lines of another system", "no headers", "no text"],
)
def test_articles_of_other_forms(made_up: Path, article: str, expected: list[str]) -> None:
    path = made_up / "20news-bydate" / "20news-bydate-train" / "alt.one" / "1"
    path.write_bytes(article.encode())
    texts = newsgroups(length=6, vocabulary=1000, validation=0, folder=made_up)
    common = {"alt", "sci", "one", "two", "body", "end", *(f"train{number}" for number in range(300) if number != 1)}
    assert set(texts.vocabulary) == common | set(expected)


def test_the_vocabulary_knows_the_training_part_alone(made_up: Path) -> None:
    texts = newsgroups(length=20, vocabulary=1000, validation=50, folder=made_up)
    own = [word for word in texts.vocabulary if word.startswith(("train", "test"))]
    assert len(own) == 250  # the words of the training articles, and of no other
    known = {texts.vocabulary[index - 1] for row in texts.train[0].tolist() for index in row if index}
    assert known == set(texts.vocabulary) == {"alt", "sci", "one", "two", "body", "end", *own}
    for x, _ in (texts.validation, texts.test):
        assert (x > 0).sum(1).tolist() == [4] * len(x)  # the common words


def test_vectors_of_words_without_one_and_of_padding_are_zero(made_up: Path) -> None:
    texts = newsgroups(length=6, validation=50, folder=made_up)
    assert texts.embeddings.shape == (len(texts.vocabulary) + 1, 100)
    assert texts.embeddings.any(1).nonzero().tolist() == [[texts.vocabulary.index("body") + 1]]


def test_the_seed_decides_what_is_held_out(made_up: Path) -> None:
    settings: dict[str, Any] = {"length": 6, "vocabulary": 1000, "validation": 50, "folder": made_up}
    first, again, other = (newsgroups(seed=seed, **settings) for seed in (0, 0, 1))
    for part in ("train", "validation", "test"):
        for same, expected in zip(getattr(again, part), getattr(first, part), strict=True):
            assert torch.equal(same, expected)
    assert again.vocabulary == first.vocabulary
    held_out = [{f"train{number}" for number in range(300)} - set(each.vocabulary) for each in (first, other)]
    assert [len(each) for each in held_out] == [50, 50]  # the words of articles that training does not see
    assert len(held_out[0] & held_out[1]) < 25


def test_an_article_that_is_lost_is_noticed(made_up: Path, tmp_path: Path) -> None:
    shutil.copytree(made_up / "20news-bydate" / "20news-bydate-test", tmp_path / "20news-bydate" / "20news-bydate-test")
    with pytest.raises(MissingDataError, match="20news-bydate-train"):
        newsgroups(validation=50, folder=tmp_path)
    train = tmp_path / "20news-bydate" / "20news-bydate-train"
    train.symlink_to(made_up / "20news-bydate" / "20news-bydate-train")
    test = tmp_path / "20news-bydate" / "20news-bydate-test"
    (test / "sci.two").rename(test / "sci.three")
    with pytest.raises(DataError, match=r"must have the same groups, but 'sci.three' is in only one"):
        newsgroups(validation=50, folder=tmp_path)
    (test / "sci.three" / "0").unlink()
    with pytest.raises(DataError, match=r"Expected 90 articles in .*20news-bydate-test', but found 89"):
        newsgroups(validation=50, folder=tmp_path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"validation": 11_314}, "leave some of the 11,314 training articles, but got 11314"),
        ({"validation": -1}, "`validation` to be an integer of at least 0, but got -1"),
        ({"length": 0}, "`length` to be a positive integer, but got 0"),
        ({"vocabulary": 1.5}, "`vocabulary` to be a positive integer, but got 1.5"),
    ],
)
def test_bad_settings_are_quoted(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        newsgroups(**settings)


@pytest.fixture(scope="module")
def real() -> Texts:
    return newsgroups(length=200)


@needs("newsgroups", "glove")
def test_the_real_parts_have_the_published_sizes(real: Texts) -> None:
    assert [len(y) for _, y in (real.train, real.validation, real.test)] == [10_000, 1_314, 7_532]
    for x, y in (real.train, real.validation, real.test):
        assert x.shape == (len(y), 200)
        assert (x.dtype, y.dtype) == (torch.int64, torch.int64)
        assert int(x.max()) <= 20_000
    assert len(real.classes) == 20
    assert len(real.vocabulary) == 20_000
    assert real.embeddings.shape == (20_001, 100)
    assert real.embeddings.dtype == torch.float32
    share = torch.bincount(real.validation[1], minlength=20) / 1_314
    expected = torch.bincount(torch.cat([real.train[1], real.validation[1]])) / 11_314
    assert (share - expected).abs().max() < 4 * math.sqrt(0.05 / 1_314)


@needs("newsgroups", "glove")
def test_the_real_texts_are_those_of_another_way_to_read_them(real: Texts) -> None:
    """The test part once more: with a regular expression instead of a table, and a search instead of a pattern."""
    index = {word: number for number, word in enumerate(real.vocabulary, start=1)}
    paths = sorted((place("newsgroups") / "20news-bydate-test").glob("*/*"))[::7]
    for path, row in zip(paths, real.test[0][::7], strict=True):
        text = path.read_bytes().decode("latin-1")
        body = text[text.index("\n\n") :] if "\n\n" in text else text
        found = [index[word] for word in re.findall(r"[^\s!-&(-/:-@\[-`{-~]+", body.lower()) if word in index][-200:]
        assert row.tolist() == [0] * (200 - len(found)) + found


@needs("newsgroups", "glove")
def test_most_words_have_a_vector(real: Texts) -> None:
    has = real.embeddings.any(1)
    longer = torch.tensor([False, *(len(word) > 1 for word in real.vocabulary)])
    tokens = real.train[0][longer[real.train[0]]]
    assert has[tokens].double().mean() > 0.93  # an extract may lack words of one letter, but not many others
    assert not has[0]
