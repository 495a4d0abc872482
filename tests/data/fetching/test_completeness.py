"""Whether what lies in a folder is what was published."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.data.real import needs, place

from calibayes.data.fetching import SETS
from calibayes.data.fetching.completeness import cifar10_state, glove_state, newsgroups_state, resnet20_state
from calibayes.data.newsgroups import ARTICLES


def linked(source: Path, target: Path) -> Path:
    """A folder with links to all that is in another."""
    target.mkdir()
    for each in source.iterdir():
        (target / each.name).symlink_to(each)
    return target


@pytest.mark.parametrize("name", SETS)
def test_what_is_not_there_is_missing(tmp_path: Path, name: str) -> None:
    assert SETS[name].state(tmp_path / SETS[name].place) == ("missing", "")


@needs("newsgroups", "cifar10", "resnet20")
@pytest.mark.parametrize("name", ["newsgroups", "cifar10", "resnet20"])
def test_the_real_ones_are_whole(name: str) -> None:
    assert SETS[name].state(place(name)).status == "whole"


@needs("newsgroups")
def test_articles_are_counted(tmp_path: Path) -> None:
    root = linked(place("newsgroups"), tmp_path / "20news-bydate")
    part = root / "20news-bydate-test"
    part.unlink()
    assert newsgroups_state(root) == ("damaged", "there is no folder '20news-bydate-test'")
    linked(place("newsgroups") / part.name, part)
    assert newsgroups_state(root).status == "whole"
    (part / "own.notes").mkdir()
    assert newsgroups_state(root) == ("damaged", "20news-bydate-test has 'own.notes', which is not one of its groups")
    (part / "own.notes").rmdir()
    (part / ".DS_Store").touch()
    assert newsgroups_state(root).status == "whole"
    (part / "sci.med").unlink()
    assert newsgroups_state(root) == ("damaged", "20news-bydate-test/sci.med has 0 articles instead of 396")
    group = linked(place("newsgroups") / part.name / "sci.med", part / "sci.med")
    article = next(group.iterdir())
    article.unlink()
    article.touch()
    assert newsgroups_state(root) == ("damaged", f"20news-bydate-test/sci.med/{article.name} is empty")
    article.unlink()
    assert newsgroups_state(root) == ("damaged", "20news-bydate-test/sci.med has 395 articles instead of 396")


@needs("newsgroups")
def test_the_loader_and_the_check_count_alike() -> None:
    for part, count in ARTICLES.items():
        assert sum(1 for _ in (place("newsgroups") / f"20news-bydate-{part}").glob("*/*")) == count


@needs("cifar10")
def test_a_byte_of_an_image_counts(tmp_path: Path) -> None:
    root = linked(place("cifar10"), tmp_path / "cifar-10-batches-bin")
    path = root / "test_batch.bin"
    path.unlink()
    assert cifar10_state(root) == ("damaged", "there is no file 'test_batch.bin'")
    content = bytearray((place("cifar10") / path.name).read_bytes())
    content[12_345] ^= 1
    path.write_bytes(content)
    assert cifar10_state(root) == ("damaged", "'test_batch.bin' does not have the SHA-256 of the official file")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("the" + " 0.5" * 100 + "\n" + "of" + " 1" * 100 + "\n", ("partial", "2 of 400,000 words")),
        ("the" + " 0.5" * 100 + "\n" + "of" + " 1" * 99 + "\n", ("damaged", "line 2 is not a word and 100 numbers")),
        ("the" + " 0.5" * 100, ("damaged", "line 1 is not a word and 100 numbers")),
        ("", ("damaged", "it has 0 words, but not the SHA-256 of the official file")),
        ("<html>\n", ("damaged", "line 1 is not a word and 100 numbers")),
    ],
    ids=["an extract", "a number too few", "torn", "empty", "a web page"],
)
def test_an_extract_of_the_vectors_can_be_used(tmp_path: Path, content: str, expected: tuple[str, str]) -> None:
    path = tmp_path / "glove.6B.100d.txt"
    path.write_text(content)
    assert glove_state(path) == expected


@needs("resnet20")
def test_a_weight_counts(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    path = tmp_path / "weights.safetensors"
    weights = load_file(place("resnet20"))
    save_file(weights, path, metadata={"note": "not part of the weights"})
    assert resnet20_state(path).status == "whole"
    weights["linear.bias"][3] += 1e-6
    save_file(weights, path)
    assert resnet20_state(path) == ("damaged", "its weights are not those of the published network")
    path.write_bytes(path.read_bytes()[:1000])
    assert resnet20_state(path).status == "damaged"
