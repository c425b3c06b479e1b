"""An encoder whose matrix products are of whole numbers of 8 bits, which CPUs with VNNI compute fastest.

A weight is rounded to 1/127 of the largest of its output, and a number that is multiplied with it to 1/127 of
the largest of its piece, so that the vectors of a piece do not depend on the other pairs of a batch. Two things
keep the rounding small:

- Inputs differ in size, some by far. They are divided by a factor each, and their weights multiplied by it, so
  that both are of like size. Sizes are measured when a model is loaded, on sentences of this module.
- A few outputs of each layer's last product have much larger weights than all others. Their weights are stored
  twice: rounded, and what rounding left of them.

What remains moves probabilities by a hundredth or two, so pairs with a cell near the threshold are read again, in
half precision if the CPU has it, else in float32 (Neural.settled).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from copy import deepcopy
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..types import Sentence, SentencePair
from .checkpoint import Tokenizer
from .encoder_network import word_vectors
from .pieces import windows

KINDS = ("bert", "mpnet")  # model types whose layers are known
TWICE = 16  # outputs of a layer's last map with the largest weights
FLOOR = 0.17  # GELU is above -0.17
_FASTER = 1.3  # how much faster products in 8 bits must be to be used
_LEVELS, _MIDDLE = 127, 128
_SMALLEST = 1e-4

_TEXT = (
    ("The committee postponed its decision until the end of March .", "A decision was delayed by two months ."),
    ("\" We have n't seen a storm like this since 1987 , \" said Maria Lopez , who runs a bakery in Porto .",
     "Ms. Lopez has owned a bakery in Porto since 1987 ."),
    ("Shares of the airline fell 4.5 % on Tuesday after it cut its forecast for the third year in a row .",
     "The carrier 's stock lost almost five percent of its value ."),
    ("Two researchers at the university found that bees remember the colour of flowers for several days .",
     "Bees can remember colours , a study says ."),
    ("how do i remove red wine from a white carpet", "What is the best way of cleaning wine stains ?"),
    ("The old bridge ( built in 1902 ) will be closed to lorries ; cars and bicycles may still cross it .",
     "Lorries are no longer allowed on the bridge ."),
    ("He gave the children their books back .", "The children got their books ."),
    ("A woman in a blue coat is walking her dogs by the river .", "Someone walks with animals near the water ."),
)  # fmt: skip
PAIRS = [SentencePair(Sentence(tuple(a.split())), Sentence(tuple(b.split()))) for a, b in _TEXT]


class Outcome(NamedTuple):
    """What word_vectors reads of a network's output."""

    hidden_states: list[Tensor]


class Rounded(nn.Module):
    """A linear map from [T, d] to [T, e] in 8 bits, given the usual `size` [d] of its inputs, or None."""

    def __init__(self, linears: Sequence[nn.Linear], size: Tensor | None = None, twice: int = 0) -> None:
        """Several maps of the same inputs become one. So many of the outputs with the largest weights are stored
        `twice`: rounded, and what rounding left of them."""
        super().__init__()
        weight, bias = (torch.cat([getattr(one, name).float() for one in linears]) for name in ("weight", "bias"))
        self.factor = self.twice = None
        if size is not None:
            mean = weight.square().mean(0).sqrt()
            factor = (size.clamp(min=_SMALLEST) / mean.clamp(min=_SMALLEST)).sqrt()
            self.factor, weight = 1 / factor, weight * factor
        step = weight.abs().amax(1).clamp(min=_SMALLEST**2) / _LEVELS
        whole = (weight / step[:, None]).round()
        if twice:
            self.twice = step.topk(min(twice, len(bias))).indices
            left = (weight / step[:, None] - whole)[self.twice] * (2 * _LEVELS)
            whole, step = torch.cat([whole, left.round()]), torch.cat([step, step[self.twice] / (2 * _LEVELS)])
        self.step, self.zeros = step, torch.zeros(len(step), dtype=torch.long)
        self.packed, self.bias = packed(whole.to(torch.int8)), bias
        self.below = self._of(step * whole.sum(1)[None], torch.full((1, 1), FLOOR)) - bias  # the map of FLOOR

    def forward(self, x: Tensor) -> Tensor:
        """Map inputs of either sign."""
        z = x if self.factor is None else x * self.factor
        step = z.abs().amax(1, keepdim=True).clamp_(min=_SMALLEST**2) / _LEVELS
        return self._of(product(_unsigned(z * (1 / step)), self.packed, self.step, self.zeros, _MIDDLE), step)

    def of_gelu(self, x: Tensor) -> Tensor:
        """Map the output of GELU, whose sign needs no bit: it is above -FLOOR."""
        step = (x.amax(1, keepdim=True) + FLOOR) / (2 * _LEVELS + 1)
        whole = _unsigned((x * (1 / step)).add_(FLOOR / step - _MIDDLE))
        return self._of(product(whole, self.packed, self.step, self.zeros, 0), step).sub_(self.below)

    def _of(self, products: Tensor, step: Tensor) -> Tensor:
        """The outputs, given products of whole numbers, and the step of each row."""
        found = torch.addcmul(self.bias, products[:, : len(self.bias)], step)
        if self.twice is not None:
            found.index_add_(1, self.twice, products[:, len(self.bias) :] * step)
        return found


def _unsigned(x: Tensor) -> Tensor:
    """Round numbers from -128 to 127 and add 128. Conversions to int8 are faster than those to uint8."""
    return x.round_().to(torch.int8).view(torch.uint8).add_(_MIDDLE)


class Layer(nn.Module):
    """A layer of BERT or MPNet: attention, then two maps with GELU between, each with a residual and a norm."""

    def __init__(self, layer: Any, heads: int, sizes: Sequence[Tensor]) -> None:
        super().__init__()
        self.heads = heads
        maps, out, norm = _attention(layer.attention)
        self.queries, self.out = Rounded(maps, sizes[0]), Rounded([out])
        self.up, self.down = (
            Rounded([layer.intermediate.dense], sizes[1]),
            Rounded([layer.output.dense], twice=TWICE),
        )
        self.first_norm, self.last_norm = deepcopy(norm), deepcopy(layer.output.LayerNorm)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Map vectors [B, T, d], given what is added to the attention [B, heads or 1, T or 1, T]."""
        n, length, width = x.shape
        x = x.reshape(n * length, width)
        split = self.queries(x).bfloat16().view(n, length, 3, self.heads, width // self.heads)
        queries, keys, values = split.permute(2, 0, 3, 1, 4)  # [n, heads, T, width of a head]
        scores = torch.matmul(queries, keys.transpose(2, 3)).float().mul_((width // self.heads) ** -0.5).add_(mask)
        seen = torch.matmul(scores.softmax(3).bfloat16(), values).transpose(1, 2).reshape(n * length, width)
        x = self.first_norm(self.out(seen.float()).add_(x))
        y = self.down.of_gelu(functional.gelu(self.up(x)))
        found: Tensor = self.last_norm(y.add_(x)).view(n, length, width)
        return found


class EightBits(nn.Module):
    """A BERT or MPNet in 8 bits; called as they are."""

    def __init__(self, network: Any, sizes: Sequence[Sequence[Tensor]]) -> None:
        super().__init__()
        stack, self.config = network.encoder.layer, network.config
        self.layers = nn.ModuleList(
            Layer(layer, self.config.num_attention_heads, own) for layer, own in zip(stack, sizes, strict=True)
        )
        self.embeddings, self.positions = deepcopy(network.embeddings), None
        if self.config.model_type == "mpnet":
            del network.encoder.layer  # not to be copied
            self.positions, network.encoder.layer = deepcopy(network.encoder), stack

    def forward(self, input_ids: Tensor, attention_mask: Tensor, **inputs: Any) -> Outcome:
        inputs.pop("output_hidden_states", None)
        states = [self.embeddings(input_ids=input_ids, **inputs)]
        mask = torch.zeros(attention_mask.shape).masked_fill_(attention_mask == 0, -torch.inf)[:, None, None]
        if self.positions is not None:
            mask = mask + self.positions.compute_position_bias(states[0][:1])
        for layer in self.layers:
            states.append(layer(states[-1], mask))
        return Outcome(states)


def known(network: Any) -> bool:
    """Whether the network's layers are those of BERT or MPNet, with GELU."""
    settings = network.config
    return (
        settings.model_type in KINDS
        and settings.hidden_act == "gelu"
        and not getattr(settings, "is_decoder", False)
    )


def in_eight_bits(network: Any, tokenizer: Tokenizer, reading: str) -> EightBits:
    """A copy of a network that works in 8 bits. `reading` is as in `windows`."""
    stack = network.encoder.layer
    squares = [[torch.zeros(1), torch.zeros(1)] for _ in stack]
    hooks = []
    for own, layer in zip(squares, stack, strict=True):
        for k, one in enumerate((_attention(layer.attention)[0][0], layer.intermediate.dense)):

            def add(_: object, given: tuple[Tensor], __: object, k: int = k, own: list[Tensor] = own) -> None:
                own[k] = own[k] + given[0].float().flatten(0, -2).square().mean(0)

            hooks.append(one.register_forward_hook(add))
    with torch.no_grad():
        for pair, read in zip(PAIRS, windows(PAIRS, tokenizer, reading), strict=True):
            word_vectors(network, [read], [len(pair.source) + len(pair.target)], [0])
        for hook in hooks:
            hook.remove()
        return EightBits(network, [[(square / len(PAIRS)).sqrt() for square in own] for own in squares])


def _attention(attention: Any) -> tuple[list[nn.Linear], nn.Linear, nn.LayerNorm]:
    """The maps to queries, keys and values, the map of what was seen, and the norm."""
    if hasattr(attention, "attn"):  # MPNet
        own = attention.attn
        return [own.q, own.k, own.v], own.o, attention.LayerNorm
    own = attention.self
    return [own.query, own.key, own.value], attention.output.dense, attention.output.LayerNorm


def packed(weight: Tensor) -> Tensor:
    """Whole numbers [e, d] in the order that `product` reads."""
    found: Tensor = torch.ops.onednn.qlinear_prepack(weight, None)
    return found


def product(x: Tensor, weight: Tensor, step: Tensor, zeros: Tensor, zero: int) -> Tensor:
    """[T, e] the products of x - zero [T, d] uint8 with packed weights, times the step [e] of each output."""
    found: Tensor = torch.ops.onednn.qlinear_pointwise(
        x, 1.0, zero, weight, step, zeros, None, 1.0, 0, torch.float32, "none", [], ""
    )
    return found


def quick_halves(device: str) -> bool:
    """Whether the device multiplies bfloat16 faster than float32; without hardware for it, it is much slower."""
    if device.startswith("cuda"):
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    # Private functions, which not every version of torch has.
    asked = (getattr(torch.cpu, f"_is_{unit}_supported", None) for unit in ("amx_tile", "avx512_bf16"))
    return device == "cpu" and any(ask() for ask in asked if ask is not None)


@lru_cache(maxsize=2)
def quick(halves: bool) -> bool:
    """Whether this CPU multiplies exactly in 8 bits, and faster than in bfloat16 (`halves`) or float32."""
    rows, width = 384, 768
    units = ("vnni", "amx_tile")  # private functions, which not every version of torch has
    asked = (getattr(torch.cpu, f"_is_{unit}_supported", None) for unit in units)
    if not any(ask() for ask in asked if ask is not None):
        return False
    x, weight = (
        torch.full((rows, width), 255, dtype=torch.uint8),
        torch.full((width, width), 127, dtype=torch.int8),
    )
    ones, zeros = torch.ones(width), torch.zeros(width, dtype=torch.long)
    a, b = (torch.ones(n, width, dtype=torch.bfloat16 if halves else torch.float32) for n in (rows, width))
    try:
        ready = packed(weight)
        exact = bool((product(x, ready, ones, zeros, 0) == 255.0 * 127 * width).all())
    except (AttributeError, RuntimeError, TypeError):  # another version of torch has none of these operations
        return False
    return exact and _seconds(product, x, ready, ones, zeros, 0) * _FASTER < _seconds(functional.linear, a, b)


def _seconds(run: Any, *given: Any) -> float:
    """The shortest time of several calls."""
    times = []
    for _ in range(6):
        start = time.perf_counter()
        run(*given)
        times.append(time.perf_counter() - start)
    return min(times)
