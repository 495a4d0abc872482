"""Where data sets are looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibayes.data import cifar10, newsgroups
from calibayes.data.data_folder import data_folder
from calibayes.errors import MissingDataError


def test_the_variable_comes_before_the_cache_and_the_argument_before_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.delenv("CALIBAYES_DATA", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert data_folder() == Path("/home/me/.cache/calibayes")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # to be ignored
    assert data_folder() == Path("/home/me/.cache/calibayes")
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/cache/me")
    assert data_folder() == Path("/var/cache/me/calibayes")
    monkeypatch.setenv("CALIBAYES_DATA", "~/sets")
    assert data_folder() == Path("/home/me/sets")
    assert data_folder("/there") == Path("/there")
    monkeypatch.setenv("CALIBAYES_DATA", "")
    assert data_folder() == Path("/var/cache/me/calibayes")


def test_data_that_is_not_here_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match=r"20 Newsgroups is not here: .*`calibayes data get newsgroups`"):
        newsgroups(folder=tmp_path)
    with pytest.raises(MissingDataError, match=r"CIFAR-10 is not here: .*`calibayes data get cifar10`"):
        cifar10(folder=tmp_path)
