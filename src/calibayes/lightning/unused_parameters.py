"""Parameters that a loss does not depend on, which DistributedDataParallel must not wait for."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor, nn

__all__ = ["idle_parameters", "with_idle"]


def idle_parameters(loss: Tensor, parameters: Iterable[nn.Parameter]) -> list[nn.Parameter]:
    r"""The parameters that a loss has no gradient for, such as $\rho$ while a `MeanField` is still trained as a point.

    Examples:
        >>> first, second = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(3))
        >>> [len(each) for each in idle_parameters((2 * first).sum(), [first, second])]
        [3]
    """
    reached: set[int] = set()
    seen, nodes = set(), [loss.grad_fn]
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        reached.add(id(getattr(node, "variable", None)))
        nodes += [each for each, _ in node.next_functions]
    return [parameter for parameter in parameters if id(parameter) not in reached]


def with_idle(loss: Tensor, idle: Iterable[nn.Parameter]) -> Tensor:
    """The same loss, which has a gradient of zero for the idle parameters."""
    for parameter in idle:
        loss = loss + 0.0 * parameter.sum()
    return loss
