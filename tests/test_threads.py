from __future__ import annotations

import pytest
import torch

import calibayes as cb
from calibayes.threads import in_one_thread


def test_threads_come_back_after_work_in_one_of_them() -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        assert in_one_thread(torch.get_num_threads)() == 1
        assert torch.get_num_threads() == 2
        with pytest.raises(ZeroDivisionError):
            in_one_thread(lambda: 1 // 0)()
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_intervals_are_the_same_with_any_number_of_threads() -> None:
    generator = torch.Generator().manual_seed(0)
    probs = torch.randn(400, 3, generator=generator).softmax(-1)
    labels = torch.multinomial(probs, 1, generator=generator)[:, 0]
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found.append(cb.evaluate(probs, labels, replicates=200).intervals)
    finally:
        torch.set_num_threads(before)
    assert found[0] == found[1]
