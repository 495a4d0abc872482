"""Crops and mirror images: what becomes of an image, and that training can be resumed with them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import calibayes as cb
from calibayes.data import Augmented
from calibayes.data.augment import crop_and_flip
from calibayes.data.overlap import check_apart
from calibayes.data.sources import as_source
from calibayes.errors import CheckpointError, DataError, DataOverlapError, InvalidArgumentError
from calibayes.networks import Normalize

N = 60
X = torch.randint(1, 256, (N, 3, 8, 6), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
Y = torch.arange(N)  # so that a label says which image it belongs to


def epoch(epoch: int = 0, *, seed: int = 0, batch_size: int = 16, skip: int = 0, **settings: object) -> dict[int, Tensor]:
    source = as_source(Augmented((X, Y), **settings), batch_size, "train")  # type: ignore[arg-type]
    batches = list(source.epoch(seed, epoch, skip))
    return {int(label): image for images, labels, *_ in batches for image, label in zip(images, labels, strict=True)}


@pytest.mark.parametrize("kind", [torch.uint8, torch.float32])
@pytest.mark.parametrize("padding", [0, 1, 4])
def test_each_image_is_cropped_and_mirrored_as_if_alone(kind: torch.dtype, padding: int) -> None:
    moves = torch.cat([torch.randint(2 * padding + 1, (N, 2)), torch.randint(2, (N, 1))], dim=1)
    found = crop_and_flip(X.to(kind), moves, padding)
    assert found.dtype == kind
    for image, (down, right, mirrored), changed in zip(X.to(kind), moves.tolist(), found, strict=True):
        expected = F.pad(image, (padding,) * 4)[:, down : down + 8, right : right + 6]
        assert torch.equal(changed, expected.flip(-1) if mirrored else expected)


def test_the_middle_is_the_image_itself() -> None:
    assert torch.equal(crop_and_flip(X, torch.tensor([4, 4, 0]).expand(N, 3), 4), X)


def test_every_shift_and_both_sides_occur_about_equally_often() -> None:
    images = torch.zeros(8100, 1, 9, 9, dtype=torch.uint8)
    images[:, :, 4, 4] = 1  # a point in the middle, which shows the shift
    images[:, :, 4, 3] = 2  # and one beside it, which shows the side
    source = as_source(Augmented((images, torch.zeros(8100, dtype=torch.long)), padding=1), 8100, "train")
    ((found, *_),) = source.epoch(0, 0)
    points = (found == 1).nonzero()
    assert len(points) == 8100
    counts = torch.bincount((points[:, 2] - 3) * 3 + points[:, 3] - 3, minlength=9)
    assert (counts - 900).abs().max() < 4 * (900 * 8 / 9) ** 0.5
    sides = (found == 2).nonzero()[:, 3] - points[:, 3]
    assert abs(int((sides == 1).sum()) - 4050) < 4 * 2025**0.5


def test_seed_epoch_and_place_alone_decide() -> None:
    first = epoch(2, seed=1)
    torch.rand(5)  # whatever else draws
    for again in (epoch(2, seed=1), epoch(2, seed=1, batch_size=7)):
        assert all(torch.equal(again[label], image) for label, image in first.items())
    late = epoch(2, seed=1, skip=2)
    assert len(late) == N - 2 * -(-N // 4)
    assert all(torch.equal(image, first[label]) for label, image in late.items())
    for other in (epoch(3, seed=1), epoch(2, seed=2)):
        assert sum(torch.equal(other[label], image) for label, image in first.items()) < 10


def test_without_shift_and_mirror_nothing_changes() -> None:
    assert all(torch.equal(image, X[label]) for label, image in epoch(padding=0, flip=False).items())
    for label, image in epoch(padding=0).items():
        assert torch.equal(image, X[label]) or torch.equal(image, X[label].flip(-1))


def test_validation_sees_the_images_themselves() -> None:
    source = as_source(Augmented((X, Y)), 16, "validation")
    assert torch.equal(torch.cat([images for images, *_ in source.ordered()]), X)
    assert (source.size, source.steps()) == (N, 4)


def test_drawn_images_are_changed_and_can_be_drawn_again() -> None:
    source = as_source(Augmented((X, Y)), 16, "calibration_data")
    images, labels, *_ = source.draw(20, 0, "held-out", 1, 2)
    assert torch.equal(images, source.draw(20, 0, "held-out", 1, 2)[0])
    assert sum(not torch.equal(image, X[label]) for image, label in zip(images, labels, strict=True)) > 0


def trained(folder: Path | None, epochs: int, padding: int = 2) -> Tensor:
    torch.manual_seed(3)
    net = nn.Sequential(Normalize((0.5,) * 3, (0.25,) * 3), nn.Flatten(), nn.Linear(144, 3))
    posterior = cb.MeanField(net)
    train = Augmented((X, Y % 3), padding=padding)
    cb.fit(posterior, train, cb.Objective(lam=1.0), epochs=epochs, batch_size=16, checkpoint=folder)
    return torch.cat([parameter.detach().flatten() for parameter in posterior.parameters()])


def test_a_run_that_is_resumed_ends_with_the_same_bits(tmp_path: Path) -> None:
    whole = trained(None, epochs=4)
    trained(tmp_path, epochs=2)
    assert torch.equal(trained(tmp_path, epochs=4), whole)
    with pytest.raises(CheckpointError):
        trained(tmp_path, epochs=5, padding=3)


def test_shared_examples_are_found_through_it() -> None:
    with pytest.raises(DataOverlapError):
        check_apart(Augmented((X, Y)), (X[10:20], Y[10:20]), "calibration_data", "validation")
    check_apart(Augmented((X[:30], Y[:30])), (X[30:], Y[30:]), "calibration_data", "validation")


def test_what_cannot_be_augmented_is_refused() -> None:
    with pytest.raises(DataError, match=r"`train` to augment to have images .* but got \[60, 144\]"):
        as_source(Augmented((X.flatten(1), Y)), 16, "train")
    with pytest.raises(InvalidArgumentError, match="`padding` to be an integer of at least 0, but got -1"):
        Augmented((X, Y), padding=-1)
