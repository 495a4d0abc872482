"""Ensembles by name."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import calibayes as cb
from calibayes.errors import UnsupportedNetworkError


def test_members_may_keep_their_dropout_at_prediction() -> None:
    net = nn.Sequential(cb.InputDropout(0.3), nn.Linear(4, 3))
    plain, _, _ = cb.build("ensemble", net, members=2)
    kept, _, _ = cb.build("ensemble", net, members=2, keep_dropout=True)
    assert [type(member) for member in plain.members] == [cb.Point, cb.Point]
    assert [type(member) for member in kept.members] == [cb.MCDropout, cb.MCDropout]
    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    for posterior, samples, expected in ((plain, None, 2), (kept, 6, 6)):  # a network of each member; three masks of each
        drawn = cb.predict(posterior, x, samples=samples, keep_samples=True).samples
        assert drawn is not None
        assert len(drawn.unique(dim=0)) == expected


def test_dropout_cannot_be_kept_where_there_is_none() -> None:
    with pytest.raises((cb.errors.InvalidArgumentError, UnsupportedNetworkError), match="dropout"):
        cb.build("ensemble", nn.Linear(4, 3), keep_dropout=True)
