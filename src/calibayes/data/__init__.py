"""The data sets of the experiments, split into training, validation and test parts."""

from __future__ import annotations

from calibayes.data.augment import Augmented
from calibayes.data.cifar10 import cifar10
from calibayes.data.fashion_images import fashion_mnist
from calibayes.data.fetching import fetch
from calibayes.data.newsgroups import Articles, Texts, newsgroups, newsgroups_articles
from calibayes.data.splits import Splits

__all__ = ["Articles", "Augmented", "Splits", "Texts", "cifar10", "fashion_mnist", "fetch", "newsgroups", "newsgroups_articles"]
