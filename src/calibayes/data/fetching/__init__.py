"""Data sets from the web: where they lie, how they come here, and whether they are whole."""

from __future__ import annotations

from calibayes.data.fetching.completeness import DataSetState
from calibayes.data.fetching.download_progress import DownloadProgress, progress_for
from calibayes.data.fetching.downloadable_sets import SETS, DataSet, data_set
from calibayes.data.fetching.fetch import fetch, obtain

__all__ = ["SETS", "DataSet", "DataSetState", "DownloadProgress", "data_set", "fetch", "obtain", "progress_for"]
