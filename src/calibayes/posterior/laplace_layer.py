"""The linear layer that gives a network's output."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from calibayes.data.input_structure import batch_length
from calibayes.errors import EmptySelectionError, InvalidArgumentError, UnsupportedNetworkError
from calibayes.posterior.flat import Skeleton, split_inputs
from calibayes.posterior.network_outputs import explained, logits_of
from calibayes.posterior.weight_selection import Role, WeightChoice, Where, choose, tied_names
from calibayes.wording import first_few

__all__ = ["hold_all_but", "last_layer_choices", "last_linear", "output_layer", "working_copy"]


def working_copy(net: nn.Module) -> nn.Module:
    """A copy of a network in evaluation mode, with no weight frozen."""
    skeleton = Skeleton(net)
    floating = [name for name, weight in skeleton.parameters.items() if weight.is_floating_point()]
    return skeleton.filled({**skeleton.parameters, **skeleton.buffers}, floating).eval()


def output_layer(net: nn.Module, inputs: Any, where: Where) -> str:
    """The name of the linear layer whose output is that of the network, which is run once, in evaluation mode.

    Raises:
        UnsupportedNetworkError: there is no such layer, or its weights are used elsewhere too.
        InvalidArgumentError: ``where`` chooses other weights than those of this layer.
    """
    outputs: dict[str, list[Any]] = {}

    def record(name: str, layer: nn.Module) -> Any:
        return layer.register_forward_hook(lambda module, args, output: outputs.setdefault(name, []).append(output))

    handles = [record(name, part) for name, part in net.named_modules() if isinstance(part, nn.Linear)]
    args, kwargs = split_inputs(inputs)
    try:
        with torch.no_grad():
            whole = net(*args, **kwargs)
    except (RuntimeError, ValueError) as error:
        raise explained(error, inputs, next(net.parameters()).dtype) from error
    finally:
        for handle in handles:
            handle.remove()
    logits_of(whole, batch_length(inputs, "data"))  # a named error for anything but logits
    logits = whole if isinstance(whole, Tensor) else whole.logits
    name = next((name for name, each in outputs.items() if each[-1] is logits), None)
    if name is None:
        last = f"that of {next(reversed(outputs))!r}, the last one to run, is changed afterwards" if outputs else "none runs"
        raise UnsupportedNetworkError(
            f"The network's output is not that of an nn.Linear: {last}. Return what the last nn.Linear returns, "
            "or use a posterior over more of it, such as `MeanField`."
        )
    _check_layer(net, name, len(outputs[name]))
    if where is not None:
        _check_where(net, name, where)
    return name


def last_linear(net: nn.Module) -> str:
    """The name of the last ``nn.Linear`` of a network, which usually gives its output."""
    names: list[str] = [name for name, part in net.named_modules() if isinstance(part, nn.Linear)]
    if not names:
        raise UnsupportedNetworkError(
            "The network has no nn.Linear, but a last-layer Laplace approximation is over the one that gives the output. "
            "Use a posterior over more of it, such as `MeanField`."
        )
    return names[-1]


def hold_all_but(net: nn.Module, layer: str) -> None:
    """Freeze all weights but those of one layer."""
    mine = {id(weight) for weight in net.get_submodule(layer).parameters()}
    for weight in net.parameters():
        weight.requires_grad_(id(weight) in mine)


def last_layer_choices(skeleton: Skeleton, layer: str) -> tuple[WeightChoice, ...]:
    """One `WeightChoice` for every parameter: those of the layer are Bayesian, all others are trained as points, or frozen."""
    last = list(skeleton.module.get_submodule(layer).parameters())
    if not any(parameter.requires_grad for parameter in last):
        raise EmptySelectionError(
            f"The last layer {layer!r} is frozen. Set `requires_grad_(True)` on it, or fit it as it is with "
            "`LastLayerLaplace.from_point`."
        )
    placeholders = dict(skeleton.module.named_parameters(remove_duplicate=False))
    choices = []
    for names, parameter in tied_names(skeleton.parameters):
        role: Role = "point" if parameter.requires_grad else "frozen"
        reason = "not in the last layer" if parameter.requires_grad else "held at its trained value"
        if any(placeholders[names[0]] is each for each in last):
            role, reason = "bayesian", "gives the network's output"
        choices.append(WeightChoice(names, parameter.shape, parameter.dtype, role, reason))
    return tuple(choices)


def _check_layer(net: nn.Module, name: str, runs: int) -> None:
    layer = net.get_submodule(name)
    if type(layer).forward is not nn.Linear.forward or set(layer._parameters) != {"weight", "bias"}:
        raise UnsupportedNetworkError(
            f"{name or 'it'!r}, which gives the network's output, is a {type(layer).__name__} that does more than an nn.Linear "
            f"(its parameters are {', '.join(layer._parameters)}). Put a plain nn.Linear in its place."
        )
    if runs > 1:
        raise UnsupportedNetworkError(
            f"{name!r} runs {runs} times for one output, so the output is not linear in its weights. Give the network a "
            "separate last layer."
        )
    own = {id(weight) for weight in layer.parameters()}
    for prefix, part in net.named_modules():
        for key, other in part.named_parameters(recurse=False):
            if id(other) in own and part is not layer:
                raise UnsupportedNetworkError(
                    f"The weights of the last layer {name!r} are tied with {f'{prefix}.{key}'.lstrip('.')!r}, so the "
                    "features depend on them. Untie them: give the layer its own copy."
                )


def _check_where(net: nn.Module, name: str, where: Where) -> None:
    chosen = [choice.name for choice in choose(Skeleton(net), where, bayesian=True) if choice.role == "bayesian"]
    own = [f"{name}.{key}".lstrip(".") for key, _ in net.get_submodule(name).named_parameters()]
    if set(chosen) != set(own):
        raise InvalidArgumentError(
            f"`where={where!r}` chooses {first_few(chosen, 4)}, but a last-layer Laplace approximation is over all "
            f"weights of the nn.Linear that gives the network's output: {', '.join(own)}. Leave `where` out, or choose these."
        )
