"""Data sets from the web: where they lie, how they come here, and whether they are whole."""

from __future__ import annotations

from calibayes.data.fetching.fetch import fetch, obtain
from calibayes.data.fetching.sets import SETS, DataSet, data_set
from calibayes.data.fetching.states import State
from calibayes.data.fetching.watching import Watcher, megabytes, watcher

__all__ = ["SETS", "DataSet", "State", "Watcher", "data_set", "fetch", "megabytes", "obtain", "watcher"]
