"""Dropout of inputs: columns of a table, words of a text, patches of an image."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, final, get_args

import torch
from torch import Tensor, nn

from calibayes.checks import integer, is_real
from calibayes.errors import InvalidArgumentError
from calibayes.networks.size_checks import check_size

__all__ = ["InputDropout"]

InputKind = Literal["features", "words", "patches"]


@final
class InputDropout(nn.Module):
    r"""Hide parts of the inputs at random, as the first layer of any network.

    In training every example is masked on its own, each part with probability ``p``, by PyTorch's global generator. In
    evaluation mode nothing is hidden, unless a `calibayes.MCDropout` predicts: then each of its samples hides the same
    columns, words or patch positions in all examples.

    Args:
        p: the probability that a part is hidden, at least 0 and below 1.
        of: what a part is:

            - ``"features"``: a column of a table ``[n, F]``. Hidden ones become 0, the others are divided by $1 - p$.
            - ``"words"``: a word of a text, given as word indices ``[n, L]``. Hidden ones become ``replacement``. In a sample
              of `calibayes.MCDropout` a word is hidden wherever it occurs.
            - ``"patches"``: a square of an image ``[n, C, H, W]``, in all its channels. Hidden ones become ``value``; the
              others stay as they are, since brighter images would not look like those predicted without dropout.
        patch: the side of a square in pixels, from the top left corner; those at the other edges may be cut off.
        replacement: the word index that stands for a hidden word, such as that of unknown words.
        padding: the word index that is never hidden; ``None`` if every index may be.
        value: what hidden pixels become; 0 by default, which is black for bytes and the mean for normalised images.

    Examples:
        >>> layer = InputDropout(0.5, of="words", replacement=1)
        >>> words = torch.tensor([[5, 7, 7, 0], [7, 5, 9, 0]])
        >>> hidden = layer(words) == 1
        >>> hidden.any().item(), hidden[:, -1].any().item(), torch.equal(layer.eval()(words), words)
        (True, False, True)
        >>> net = nn.Sequential(InputDropout(0.2), nn.Linear(8, 3))
    """

    def __init__(
        self,
        p: float,
        of: InputKind = "features",
        *,
        patch: int = 4,
        replacement: int | None = None,
        padding: int | None = 0,
        value: float = 0.0,
    ) -> None:
        super().__init__()
        if not is_real(p) or not 0 <= p < 1:
            raise InvalidArgumentError(f"Expected `p` to be a number of at least 0 and below 1, but got {p!r}.")
        if of not in get_args(InputKind):
            raise InvalidArgumentError(f"Expected `of` to be one of {get_args(InputKind)}, but got {of!r}.")
        if of == "words" and replacement is None:
            raise InvalidArgumentError(
                "Dropout of words needs a `replacement`, the index that replaces a hidden word, such as that of unknown words."
            )
        self.p, self.of = float(p), of
        self.patch = check_size("patch", patch)
        self.replacement = None if replacement is None else integer("replacement", replacement)
        self.padding = None if padding is None else integer("padding", padding)
        if not is_real(value):
            raise InvalidArgumentError(f"Expected `value` to be a number, but got {value!r}.")
        self.value = value

    def forward(self, inputs: Tensor) -> Tensor:
        """The inputs, in training mode with parts of every example hidden."""
        self._check(inputs)
        if not self.training or self.p == 0:
            return inputs
        examples = len(inputs)

        def keep(*coordinates: Tensor) -> Tensor:
            shape = torch.broadcast_shapes(*(each.shape for each in coordinates))
            shape = shape if self.of == "words" else (examples, *shape)
            return torch.rand(shape, device=inputs.device) >= self.p

        return self.dropped(inputs, keep)

    def dropped(self, inputs: Tensor, keep: Callable[..., Tensor]) -> Tensor:
        """The inputs without the parts that ``keep`` does not keep.

        ``keep`` is called with the parts' coordinates, tensors that broadcast against each other: the number of a column, the
        index of a word, or the row and column of a patch. It returns true for those that are kept, with more axes in front if
        examples differ.
        """
        if self.of == "features":
            columns = torch.arange(inputs.shape[1], device=inputs.device)
            return inputs * (keep(columns).to(inputs.dtype) / (1 - self.p))
        if self.of == "words":
            assert self.replacement is not None  # checked by __init__
            hidden = ~keep(inputs)
            if self.padding is not None:
                hidden &= inputs != self.padding
            return inputs.masked_fill(hidden, self.replacement)
        height, width = inputs.shape[-2:]
        rows, columns = (torch.arange(-(-size // self.patch), device=inputs.device) for size in (height, width))
        kept = keep(rows.unsqueeze(-1), columns)
        kept = kept.repeat_interleave(self.patch, -2).repeat_interleave(self.patch, -1)[..., :height, :width]
        return inputs.masked_fill(~kept.unsqueeze(-3), self.value)

    def extra_repr(self) -> str:
        """Return what `print` shows."""
        others = {
            "features": "",
            "words": f", replacement={self.replacement}, padding={self.padding}",
            "patches": f", patch={self.patch}, value={self.value:g}",
        }
        return f"p={self.p:g}, of={self.of!r}{others[self.of]}"

    def _check(self, inputs: Tensor) -> None:
        real = inputs.is_floating_point()
        integral = not real and inputs.dtype != torch.bool
        fits, expected = {
            "features": (inputs.dim() == 2 and real, "a table [n, F] of a floating-point type"),
            "words": (inputs.dim() == 2 and integral, "word indices [n, L] of an integer type"),
            "patches": (inputs.dim() == 4, "images [n, C, H, W]"),
        }[self.of]
        if not fits:
            raise InvalidArgumentError(
                f"InputDropout(of={self.of!r}) expects {expected}, but got {list(inputs.shape)} of {inputs.dtype}."
            )
