"""Data sets from the web: their addresses, downloads, and checks that they are complete."""

from __future__ import annotations

from calibayes.data.fetching.completeness import DataSetState
from calibayes.data.fetching.download_progress import DownloadProgress
from calibayes.data.fetching.downloadable_sets import SETS, DataSet, data_set
from calibayes.data.fetching.fetch import fetch, obtain

__all__ = ["SETS", "DataSet", "DataSetState", "DownloadProgress", "data_set", "fetch", "obtain"]
