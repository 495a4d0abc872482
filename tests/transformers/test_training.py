"""The loss that a step of the Trainer descends, and its parameters."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers")

from tests.objective.own_terms import Spread
from tests.transformers.small import Sentences, arguments, bert, trainer, weights

import calibayes as cb
from calibayes.errors import OptimizerError
from calibayes.posterior import NetworkPosterior
from calibayes.randomness import generator_for

pytestmark = pytest.mark.transformers

RATE = 0.1


def descending(folder: Path, **settings: Any) -> Any:
    """Arguments for steps of plain gradient descent, so that weights tell gradients."""
    plain = {"optim": "sgd", "learning_rate": RATE, "lr_scheduler_type": "constant", "max_grad_norm": 0.0}
    return arguments(folder, **{**plain, "max_steps": 1, **settings})


def descended(posterior: NetworkPosterior, data: Sentences, objective: cb.Objective, samples: int, size: int) -> torch.Tensor:
    """The weights after one step, by autograd through the objective as it is written down."""
    logits = []
    for r in range(samples):
        vectors = posterior.draw(generator_for(torch.device("cpu"), 42, "noise", 0, 0, r))
        logits.append(posterior.call(vectors, data.inputs()).logits)
    terms = objective(torch.stack(logits), data.labels, posterior.kl(), dataset_size=size)
    gradients = torch.autograd.grad(terms.total, list(posterior.parameters()))
    steps = [p.detach() - RATE * g for p, g in zip(posterior.parameters(), gradients, strict=True)]
    return torch.cat([step.reshape(-1) for step in steps])


@pytest.mark.parametrize("posterior", ["point", "mean-field"])
@pytest.mark.parametrize("lam", [0.0, 5.0])
def test_a_step_descends_the_objective(posterior: str, lam: float, tmp_path: Path) -> None:
    data = Sentences(12)
    objective = cb.Objective(lam=lam, beta=0.3, calibration=cb.WMMCE(tau_r=0.1, tau_c=0.1))
    found = trainer(
        tmp_path,
        bert().double(),
        args=descending(tmp_path, per_device_train_batch_size=12),
        posterior=posterior,
        objective=objective,
    )
    expected = descended(found.posterior, data, objective, 2 if posterior == "mean-field" else 1, 12)
    before = weights(found)
    found.train()
    assert float((weights(found) - before).abs().max()) > 1e-4
    torch.testing.assert_close(weights(found), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("count", "size"), [(12, 4), (12, 3), (11, 4)])
def test_accumulated_micro_batches_are_one_batch_with_one_calibration_term(count: int, size: int, tmp_path: Path) -> None:
    found = []
    for micro in (12, size):
        args = descending(tmp_path, per_device_train_batch_size=micro, gradient_accumulation_steps=12 // micro, max_steps=3)
        each = trainer(tmp_path, bert().double(), args=args, train_dataset=Sentences(count))
        each.train()
        found.append((weights(each), [entry for entry in each.state.log_history if "kl" in entry]))
    (whole, logged), (parts, logged_parts) = found
    torch.testing.assert_close(parts, whole, rtol=1e-10, atol=1e-12)
    assert len(logged) == 3
    for name in ("loss", "cross_entropy", "calibration", "kl"):
        assert [entry[name] for entry in logged_parts] == pytest.approx([entry[name] for entry in logged], rel=1e-6)


def test_what_is_logged_is_what_is_minimised(tmp_path: Path) -> None:
    found = trainer(tmp_path, args=arguments(tmp_path, logging_steps=2, max_steps=4))
    found.train()
    logged = [entry for entry in found.state.log_history if "loss" in entry]
    assert len(logged) == 2
    for entry in logged:
        assert entry["calibration"] > 0
        total = entry["cross_entropy"] + 5.0 / 4 * entry["calibration"] + 0.1 / 12 * entry["kl"]
        assert entry["loss"] == pytest.approx(total, rel=1e-5)


def test_any_loss_and_terms_are_logged_and_minimised(tmp_path: Path) -> None:
    terms = (Spread(), cb.Calibration(lam=2.0, of="predictive"))
    objective = cb.Objective(beta=0.1, loss=cb.Focal(), terms=terms)
    found = trainer(tmp_path, args=arguments(tmp_path, logging_steps=1, max_steps=1), objective=objective, samples=2)
    found.train()
    (entry,) = (entry for entry in found.state.log_history if "loss" in entry)
    total = entry["focal"] + 2.0 * entry["spread"] + 2.0 / 4 * entry["calibration"] + 0.1 / 12 * entry["kl"]
    assert entry["loss"] == pytest.approx(total, rel=1e-5)


class HandlesKL(torch.optim.SGD):
    handles_kl = True


def test_an_optimiser_that_handles_the_kl_gets_the_gradient_of_the_data_alone(tmp_path: Path) -> None:
    results = []
    for kind, beta in ((HandlesKL, 5.0), (torch.optim.SGD, 0.0), (torch.optim.SGD, 5.0)):
        posterior = cb.MeanField(bert())
        optimizer = kind(posterior.parameter_groups(), lr=0.1)
        args = arguments(tmp_path, logging_steps=1, max_steps=2)
        found = trainer(
            tmp_path, None, args=args, posterior=posterior, objective=cb.Objective(beta=beta), optimizers=(optimizer, None)
        )
        found.train()
        results.append((weights(found), found.state.log_history[0]["kl"]))
    assert torch.equal(results[0][0], results[1][0])
    assert not torch.equal(results[0][0], results[2][0])
    assert results[0][1] > 0


def test_dropout_is_on_and_leaves_the_callers_generator_alone(tmp_path: Path) -> None:
    results = {}
    for dropout in (0.0, 0.4):
        found = trainer(tmp_path, bert(dropout=dropout).eval(), posterior="point")
        found.train()
        results[dropout] = weights(found)
    assert not torch.equal(results[0.0], results[0.4])
    found = trainer(tmp_path, bert(dropout=0.4))
    batch = {**found.train_dataset.inputs(), "labels": found.train_dataset.labels}
    state = torch.get_rng_state()
    found.training_step(found.model, batch)
    assert torch.equal(torch.get_rng_state(), state)


def test_adapters_in_a_network_that_was_loaded_are_trained_with_its_dropout(tmp_path: Path) -> None:
    """`from_pretrained` leaves it in evaluation mode, and the Trainer of transformers puts all of it into training mode."""
    peft = pytest.importorskip("peft")
    config = peft.LoraConfig(task_type="SEQ_CLS", r=2, target_modules=["query", "value"])
    found = trainer(tmp_path, peft.get_peft_model(bert(dropout=0.4).eval(), config), where="*lora_*")
    found.train()
    assert all(part.training for part in found.posterior.train().structure().modules())


def test_the_head_alone_is_bayesian_and_what_is_frozen_stays(tmp_path: Path) -> None:
    net = bert()
    net.bert.embeddings.requires_grad_(False)
    found = trainer(tmp_path, net, where=["classifier.*"])
    roles = {choice.name: choice.role for choice in found.posterior.choices}
    assert {name for name, role in roles.items() if role == "bayesian"} == {"classifier.weight", "classifier.bias"}
    assert {role for name, role in roles.items() if name.startswith("bert.embeddings")} == {"frozen"}
    assert roles["bert.pooler.dense.weight"] == "point"
    before = {name: value.clone() for name, value in found.posterior.mean().items()}
    found.train()
    for name, value in found.posterior.mean().items():
        assert torch.equal(value, before[name]) == (roles[name] == "frozen"), name
    assert all(parameter.grad is None for parameter in net.parameters())


def test_the_prior_lies_where_fine_tuning_starts(tmp_path: Path) -> None:
    found = trainer(tmp_path)
    assert torch.equal(found.posterior.groups[0].prior_mean, found.posterior.groups[0].mu)


def test_standard_deviations_have_no_weight_decay_and_a_rate_of_their_own(tmp_path: Path) -> None:
    found = trainer(tmp_path, args=arguments(tmp_path, weight_decay=0.1), where="classifier.*", rho_learning_rate=0.02)
    names = {id(parameter): name for name, parameter in found.posterior.named_parameters()}
    groups = {
        names[id(parameter)].rpartition(".")[2]: (group["weight_decay"], group["lr"])
        for group in found.create_optimizer().param_groups
        for parameter in group["params"]
    }
    assert groups == {"mu": (0.1, 1e-3), "theta": (0.1, 1e-3), "rho": (0.0, 0.02)}


def test_an_optimiser_of_ones_own_is_checked(tmp_path: Path) -> None:
    posterior = cb.MeanField(bert())
    whole = torch.optim.AdamW(posterior.parameter_groups(), lr=0.01, weight_decay=0.1)
    found = trainer(tmp_path, posterior=posterior, optimizers=(whole, None))
    before = weights(found)
    found.train()
    assert not torch.equal(weights(found), before)
    for wrong in (torch.optim.AdamW(posterior.parameters(), weight_decay=0.1), torch.optim.Adam(bert().parameters())):
        with pytest.raises(OptimizerError):
            trainer(tmp_path, posterior=posterior, optimizers=(wrong, None)).train()


def test_a_network_that_is_made_anew_gives_the_same_weights(tmp_path: Path) -> None:
    found = trainer(tmp_path, model_init=lambda: bert(dropout=0.3))
    runs = []
    for _ in range(2):
        found.train()
        runs.append(weights(found))
    assert torch.equal(*runs)


def test_half_precision_comes_close(tmp_path: Path) -> None:
    runs = []
    for half in (False, True):
        found = trainer(tmp_path, args=descending(tmp_path, bf16=half))
        found.train()
        runs.append(weights(found))
    assert not torch.equal(*runs)
    torch.testing.assert_close(*runs, rtol=0.05, atol=0.02)


def test_training_learns(tmp_path: Path) -> None:
    data, unseen = Sentences(120), Sentences(90, seed=6)
    args = arguments(tmp_path, max_steps=120, per_device_train_batch_size=20, learning_rate=0.01, logging_steps=60)
    found = trainer(tmp_path, args=args, train_dataset=data, eval_dataset=unseen, samples=1)
    start = found.evaluate()
    found.train()
    end = found.evaluate()
    assert end["eval_accuracy"] > start["eval_accuracy"] + 0.2
    assert end["eval_nll"] < start["eval_nll"] - 0.1


def test_the_kl_is_divided_by_the_size_that_is_told(tmp_path: Path) -> None:
    found = trainer(tmp_path, dataset_size=1000, args=arguments(tmp_path, max_steps=1))
    found.train()
    (entry,) = (entry for entry in found.state.log_history if "kl" in entry)
    total = entry["cross_entropy"] + 5.0 / 4 * entry["calibration"] + 0.1 / 1000 * entry["kl"]
    assert entry["loss"] == pytest.approx(total, rel=1e-6)


def test_what_is_noted_for_the_log_does_not_grow(tmp_path: Path) -> None:
    sizes = []
    for steps in (2, 6):
        found = trainer(tmp_path, posterior="point", args=arguments(tmp_path, max_steps=steps, logging_strategy="no"))
        found.train()
        sizes.append(len(pickle.dumps(found._steps._sums)))
    assert sizes[0] == sizes[1]
