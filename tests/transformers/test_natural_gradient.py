"""Natural-gradient steps of the Trainer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers")

from tests.transformers.small import Sentences, arguments, bert, trainer, weights

import calibayes as cb
from calibayes.errors import InvalidArgumentError
from calibayes.randomness import generator_for

pytestmark = pytest.mark.transformers
OPTIMIZER = cb.NaturalGradient(lr=0.1, betas=(0.9, 0.95), point_lr=0.01)


def test_a_step_has_the_gradient_of_the_data_terms_alone(tmp_path: Path) -> None:
    data = Sentences(12)
    objective = cb.Objective(lam=5.0, beta=0.3, calibration=cb.WMMCE(tau_r=0.1, tau_c=0.1))
    args = arguments(tmp_path, per_device_train_batch_size=12, max_steps=1, max_grad_norm=0.0, lr_scheduler_type="constant")
    found = trainer(tmp_path, bert().double(), args=args, objective=objective, optimizer=OPTIMIZER, dataset_size=40)
    twin = cb.MeanField(bert().double(), prior_mean="initial").eval()
    assert torch.equal(weights(found), torch.cat([parameter.detach() for parameter in twin.parameters()]))
    draws = [twin.draw(generator_for(torch.device("cpu"), 42, "noise", 0, 0, r)) for r in range(2)]
    logits = torch.stack([twin.call(vectors, data.inputs()).logits for vectors in draws])
    objective(logits, data.labels, torch.zeros(()), dataset_size=40).total.backward()
    OPTIMIZER.bind(twin, objective, 40).step()
    found.train()
    torch.testing.assert_close(weights(found), torch.cat([p.detach() for p in twin.parameters()]), rtol=1e-9, atol=1e-11)


def test_a_checkpoint_is_resumed_from_with_the_same_bits(tmp_path: Path) -> None:
    def run(name: str, **settings: Any) -> Any:
        args = arguments(tmp_path / name, max_steps=6, save_strategy="steps", save_steps=3, **settings)
        return trainer(tmp_path / name, bert(dropout=0.1), args=args, optimizer=OPTIMIZER)

    whole = run("whole")
    whole.train()
    resumed = run("resumed")
    resumed.train(resume_from_checkpoint=str(tmp_path / "whole" / "checkpoint-3"))
    assert torch.equal(weights(resumed), weights(whole))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"rho_learning_rate": 0.1}, "has its learning rates, but `rho_learning_rate` is 0.1"),
        ({"optimizers": (object(), None)}, "pass `optimizer` or `optimizers`"),
    ],
)
def test_settings_that_would_have_no_effect_are_refused(settings: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        trainer(tmp_path, optimizer=OPTIMIZER, **settings)
    assert words in str(caught.value)
