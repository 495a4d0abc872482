"""`distill`: a student comes to agree with its teacher, from data of any kind, and says what is wrong with bad input."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

import calibayes as cb
from calibayes.data.augment import Augmented
from calibayes.errors import DataError, EmptySelectionError, InvalidArgumentError, NetworkOutputError
from calibayes.randomness import seeded
from calibayes.training.teacher_targets import EpistemicShare, TeacherCrossEntropy, teacher_targets

CLASSES = 3


def inputs(count: int, seed: int = 0) -> Tensor:
    return 2 * torch.randn(count, 2, generator=torch.Generator().manual_seed(seed))


def network(hidden: int = 16, outputs: int = CLASSES) -> nn.Module:
    return nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, outputs))


@lru_cache(maxsize=1)
def teacher() -> cb.Ensemble:
    """Five networks that fit a few noisy labels, each in its own way."""
    x = inputs(40)
    y = (x @ torch.tensor([[1.0, -1.0, 0.3], [0.2, 0.5, -1.0]])).argmax(-1)
    y[::4] = (y[::4] + 1) % CLASSES
    ensemble = cb.Ensemble.of(lambda seed: cb.Point(network()), members=5, seed=0)
    cb.fit(ensemble, (x, y), cb.Objective(lam=0.0), epochs=150, batch_size=20, optimizer=fast, group=None, progress=False)
    return ensemble


def distilled(x: Any, **settings: Any) -> cb.Distilled:
    usual = {"epochs": 1, "batch_size": 32, "group": None, "progress": False, "device": "cpu", "net": student_network()}
    return cb.distill(teacher(), x, **{**usual, **settings})


def student_network(hidden: int = 16) -> nn.Module:
    with seeded(3):
        return network(hidden)


def fast(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=0.03)


def distance(student: cb.Posterior, x: Tensor) -> tuple[float, float]:
    """The mean KL from the teacher, and the mean difference of epistemic uncertainty."""
    theirs, own = cb.predict(teacher(), x, dtype=torch.float64), cb.predict(student, x, dtype=torch.float64)
    kl = (theirs.probs * (theirs.probs.log() - own.probs.log())).sum(-1).mean()
    return float(kl), float((theirs.epistemic - own.epistemic).abs().mean())


def test_a_student_learns_the_probabilities_and_the_uncertainty() -> None:
    x, new = inputs(1500, seed=1), inputs(400, seed=2)
    student = distilled(x, epochs=30, optimizer=fast, net=student_network(hidden=48))
    one, trained = distance(teacher().members[0], new), distance(student, new)
    assert trained[0] < 0.1 * one[0]  # nearer to the ensemble than one of its members, which has no doubt
    assert trained[1] < 0.6 * one[1]
    predictive, expected = cb.predict(student, new), cb.predict(teacher(), new)
    assert bool((predictive.epistemic <= predictive.entropy).all())
    ranks = torch.corrcoef(torch.stack([each.epistemic.argsort().argsort().double() for each in (predictive, expected)]))
    assert float(ranks[0, 1]) > 0.8


def test_the_student_starts_as_the_first_member() -> None:
    x = inputs(64, seed=1)
    still = lambda parameters: torch.optim.SGD(parameters, lr=0.0)  # noqa: E731
    student = distilled(x, net=None, optimizer=still)
    expected = cb.predict(teacher().members[0], x).probs
    assert torch.equal(cb.predict(student, x).probs, expected)


def test_the_weight_of_the_uncertainty() -> None:
    x = inputs(600, seed=1)
    settings: dict[str, Any] = {"epochs": 20, "optimizer": fast, "net": student_network(hidden=48)}
    without, with_it = (distance(distilled(x, epistemic_weight=weight, **settings), x) for weight in (0.0, 1.0))
    assert with_it[1] < 0.85 * without[1]


def test_the_loss_is_smallest_at_the_teachers_own_predictions() -> None:
    predictive = cb.predict(teacher(), inputs(50, seed=4), dtype=torch.float64)
    targets = teacher_targets(predictive)
    share = targets[:, -2] / targets[:, -2:].sum(-1)
    best = predictive.probs.log() + ((1 - share) / share).log()[:, None]  # the softmax and the evidence of the teacher
    best.requires_grad_()
    term = EpistemicShare()
    total = TeacherCrossEntropy().mean(best, targets) + term.value(*term.scores(best, targets))
    (gradient,) = torch.autograd.grad(total, best)
    assert float(gradient.abs().max()) < 1e-10
    other = best.detach() + 0.1 * torch.randn(best.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    worse = TeacherCrossEntropy().mean(other, targets) + term.value(*term.scores(other, targets))
    assert float(worse) > float(total.detach())


class Plain(Dataset[Tensor]):
    """Inputs without labels."""

    def __init__(self, x: Tensor) -> None:
        self.x = x

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> Tensor:
        return self.x[index]


class Noisy(Plain):
    """Inputs that are different whenever they are read."""

    def __getitem__(self, index: int) -> Tensor:
        return self.x[index] + 0.5 * torch.randn(2)


def state(student: cb.Distilled) -> Tensor:
    return torch.cat([parameter.detach().reshape(-1) for parameter in student.parameters()])


def test_data_of_every_kind_teach_the_same() -> None:
    x, y = inputs(96, seed=1), torch.zeros(96, dtype=torch.int64)
    expected = state(distilled(x))
    kinds = [(x,), x.numpy(), Plain(x), TensorDataset(x), TensorDataset(x, y), DataLoader(TensorDataset(x, y), batch_size=32)]
    for kind in kinds:
        assert torch.allclose(state(distilled(kind)), expected, atol=1e-5), type(kind).__name__


def test_several_arguments_and_named_ones() -> None:
    class Sum(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, CLASSES)

        def forward(self, a: Tensor, b: Tensor) -> Tensor:
            return self.layer(a + b)  # type: ignore[no-any-return]

    posterior = cb.Ensemble.of(lambda seed: cb.Point(Sum()), members=2)
    x = inputs(40)
    students = [cb.distill(posterior, data, epochs=2, group=None, progress=False) for data in (((x, x),), {"a": x, "b": x})]
    assert torch.equal(state(students[0]), state(students[1]))


def test_the_teacher_sees_inputs_as_they_are_read() -> None:
    x = inputs(64, seed=1)
    seen: list[Tensor] = []

    class Watched(Noisy):
        def __getitem__(self, index: int) -> Tensor:
            seen.append(super().__getitem__(index))
            return seen[-1]

    student = distilled(Watched(x), epochs=3)
    assert len({tuple(each.tolist()) for each in seen}) > 2 * len(x)  # different in every epoch
    assert torch.equal(state(student), state(distilled(Noisy(x), epochs=3)))  # and the same for the same seed
    assert not torch.equal(state(student), state(distilled(Noisy(x), epochs=3, seed=1)))


def test_augmented_images() -> None:
    images = torch.randn(24, 1, 6, 6, generator=torch.Generator().manual_seed(0))
    posterior = cb.Ensemble.of(lambda seed: cb.Point(nn.Sequential(nn.Flatten(), nn.Linear(36, CLASSES))), members=3)
    student = cb.distill(
        posterior, Augmented((images, torch.zeros(24, dtype=torch.int64)), padding=1), epochs=2, group=None, progress=False
    )
    assert cb.predict(student, images).probs.shape == (24, CLASSES)


def test_the_same_seed_gives_the_same_bits_and_leaves_everything_else_alone() -> None:
    x = inputs(64, seed=1)
    before = {name: value.clone() for name, value in teacher().state_dict().items()}
    generator_state = torch.get_rng_state()
    first = distilled(x, epochs=2)
    torch.manual_seed(99)
    assert torch.equal(state(distilled(x, epochs=2)), state(first))
    assert not torch.equal(state(distilled(x, epochs=2, seed=1)), state(first))
    assert all(torch.equal(value, before[name]) for name, value in teacher().state_dict().items())
    torch.set_rng_state(generator_state)
    distilled(Noisy(x))
    assert torch.equal(torch.get_rng_state(), generator_state)


def test_a_teacher_that_is_random_and_a_student_with_batch_norm() -> None:
    x = inputs(64, seed=1)
    with seeded(2):
        posterior = cb.MeanField(network(), init_std=0.3)
        net = nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, CLASSES))
    few, many = (
        cb.distill(posterior, x, net=net, samples=s, epochs=2, averaging=cb.EMA(0.9), group=None, progress=False)
        for s in (1, 8)
    )
    assert not torch.equal(state(few), state(many))  # one sample does not disagree with itself
    assert net.training
    assert not few.training


def test_training_can_be_watched_checkpointed_and_stopped(tmp_path: Any) -> None:
    x = inputs(64, seed=1)
    y = cb.predict(teacher(), x).decision
    whole = distilled(x, epochs=4)
    watched: list[int] = []
    result = distilled(x, epochs=4, validation=(x, y), on_epoch=lambda _, epoch: watched.append(epoch), checkpoint=tmp_path)
    assert watched == [1, 2, 3, 4]
    assert torch.equal(state(result), state(whole))
    assert torch.equal(state(distilled(x, epochs=4, validation=(x, y), checkpoint=tmp_path, on_epoch=None)), state(whole))


def test_a_checkpoint_knows_its_teacher(tmp_path: Any) -> None:
    x = inputs(64, seed=1)
    distilled(x, checkpoint=tmp_path)
    other = cb.Ensemble.of(lambda seed: cb.Point(network()), members=2, seed=4)
    with pytest.raises(cb.errors.CheckpointError, match="another run: `data`"):
        cb.distill(other, x, net=student_network(), epochs=1, batch_size=32, group=None, progress=False, checkpoint=tmp_path)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"net": network(outputs=4)}, NetworkOutputError, "returns 4 logits, but the posterior has 3 classes"),
        ({"net": nn.Sequential(network(), nn.LogSoftmax(-1))}, NetworkOutputError, "normalised, as after a log-softmax"),
        ({"net": nn.Sequential(nn.Linear(2, 2), nn.ZeroPad1d((1, 0)))}, NetworkOutputError, "of one class are always zero"),
        ({"net": network().requires_grad_(False)}, EmptySelectionError, "no trainable parameter"),
        ({"net": "mlp"}, InvalidArgumentError, "a network to start from, but got str"),
        ({"epistemic_weight": -1.0}, InvalidArgumentError, "`epistemic_weight` .* got -1.0"),
        ({"epochs": 0}, InvalidArgumentError, "`epochs`"),
        ({"together": True}, InvalidArgumentError, "`together` has no meaning"),
        ({"out_of_domain": inputs(8)}, InvalidArgumentError, "`out_of_domain` has no meaning"),
        ({"seed": 0.5}, InvalidArgumentError, "`seed`"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        distilled(inputs(16), **settings)


def test_bad_data_and_teachers_are_named() -> None:
    x = inputs(16)
    with pytest.raises(DataError, match=r"Several inputs: pass \(\(x1, x2\),\)"):
        distilled((x, torch.zeros(16, dtype=torch.int64)))
    with pytest.raises(DataError, match="`x` has no examples"):
        distilled(x[:0])
    with pytest.raises(
        InvalidArgumentError, match="`posterior` to be a trained posterior such as Ensemble, but got Sequential"
    ):
        cb.distill(network(), x)  # type: ignore[arg-type]
