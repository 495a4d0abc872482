"""The experiments are the paper's, in every size."""

from __future__ import annotations

import pytest

from calibayes.errors import InvalidArgumentError
from calibayes.sweeps.sweep_plan import choices
from reproduction.cifar10_training import CIFAR10Training
from reproduction.experiment import PRESETS
from reproduction.experiments import EXPERIMENTS, experiment


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_settings_can_be_written_down_and_are_there_once(name: str, preset: str) -> None:
    asked = experiment(name, preset)
    settings = asked.settings()
    assert len({repr(each) for each in settings}) == len(settings)
    kind = type(asked.parts[0].settings[0])
    assert {repr(kind.of(each)) for each in settings} == {repr(e) for part in asked.parts for e in part.settings}


@pytest.mark.parametrize("preset", ["cpu", "paper"])
def test_what_the_paper_prints_is_what_is_trained(preset: str) -> None:
    for each in experiment("newsgroups-lambda", preset).settings():
        assert (each["optimizer"], each["learning_rate"]) == ("rmsprop", 0.002)
        assert (each["tau_r"], each["tau_c"], each["kernel_width"]) == (0.001, 0.01, 0.4)
        assert each["scheme"].endswith("fnn") or (each["beta"], each["prior_std"]) == (0.1, 0.05)
        assert (each["measure"], each["scores"], each["lam_scale"]) == ("wmmce", "soft", "paper")
    assert {each["lam"] for each in experiment("newsgroups-epochs", preset).settings()} == {0.0, 10.0}
    lams = {"fnn": 0.0, "bnn": 0.0, "ca-fnn": 20.0, "ca-bnn": 18.0}
    for each in experiment("cifar10-reliability", preset).settings():
        assert (each["optimizer"], each["learning_rate"], each["epochs"], each["train"]) == ("adam", 1e-5, 3, None)
        assert each["scheme"].endswith("fnn") or (each["beta"], each["prior_std"]) == (1e-5, 0.001)
        assert each["lam"] == lams[each["scheme"]]


def test_there_are_seeds_enough() -> None:
    for name, least in (("newsgroups-epochs", 10), ("newsgroups-lambda", 5), ("cifar10-reliability", 3)):
        assert all(len(part.settings) >= least for part in experiment(name, "cpu").parts)


@pytest.mark.parametrize("name", ["membership-newsgroups", "membership-fashion"])
def test_membership_attacks_have_shadow_models_enough_and_the_schemes_of_the_paper(name: str) -> None:
    parts = experiment(name, "cpu").parts
    names = ("FNN", "BNN", "CA-FNN, λ = 10", "CA-FNN, λ = 100", "CA-BNN, λ = 10", "CA-BNN, λ = 100")
    assert [part.name for part in parts] == list(names)
    for part in parts:
        assert [each.seed for each in part.settings] == list(range(10))  # 8 besides the pair of the target
        chosen = part.settings[0].to_dict()
        weight = (
            0.1 / 10_000 * chosen["train"] if name.endswith("newsgroups") else 0.1
        )  # the same KL for each example as in Fig. 2
        assert chosen["beta"] == pytest.approx(weight if "BNN" in part.name else 0.0)


def test_experiments_share_trainings() -> None:
    first, second = (experiment(name, "cpu").settings() for name in ("newsgroups-epochs", "newsgroups-lambda"))
    assert sum(each in second for each in first) == 10  # five seeds of FNN, and of CA-FNN at λ = 10


def test_one_point_can_be_asked_for() -> None:
    asked = experiment("newsgroups-lambda", "cpu").only({"scheme": ["ca-bnn"], "lam": [10], "seed": [3]})
    assert [(part.name, len(part.settings)) for part in asked.parts] == [("CA-BNN, λ = 10", 1)]
    with pytest.raises(InvalidArgumentError, match="some training of newsgroups-lambda to have lam=11, but none has"):
        experiment("newsgroups-lambda", "cpu").only({"lam": [11]})
    with pytest.raises(InvalidArgumentError, match=r"--only to name settings, but got 'lamb'. Did you mean 'lam'"):
        experiment("newsgroups-lambda", "cpu").only({"lamb": [10]})


def test_unknown_names_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"one of newsgroups-epochs, .* but got 'fig1'"):
        experiment("fig1")
    with pytest.raises(InvalidArgumentError, match="one of tiny, cpu, paper, but got 'gpu'"):
        experiment("newsgroups-epochs", "gpu")
    with pytest.raises(InvalidArgumentError, match=r"`network` to be one of .* but got 'vgg'"):
        CIFAR10Training.of({"network": "vgg"})


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_line_of_a_table_has_a_command_that_trains_it_alone(name: str, preset: str) -> None:
    whole = experiment(name, preset)
    for part in whole.parts:
        _, _, *words = whole.command(part).split()
        assert words[:3] == ([name, "--preset", preset] if preset != "cpu" else [name, *words[1:3]])
        asked = choices([word for word in words if "=" in word], "--only")
        assert whole.only(asked).parts == (part,)
