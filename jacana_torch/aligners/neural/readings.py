"""What a fixed encoder saw in pairs, remembered in this process: folds and networks that share it ask once.

Inputs and a network in; what its encoder sees in each pair out. Only what was trained on is kept, of one encoder
at a time, and no more than some hundred megabytes of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from .cells import batches
from .inputs import Batch, Columns, Inputs
from .network import GridNetwork, Seen
from .weights import ENCODER

MOST_WORDS = 120_000  # a vector of some hundred numbers each


@dataclass
class Readings:
    """By the word pieces of a pair."""

    of: bytes = b""
    words: int = 0
    kept: dict[bytes, Seen] = field(default_factory=dict)

    def opened(self, of: bytes) -> Readings:
        """Those of this encoder: what another saw is forgotten."""
        if of != self.of:
            self.of, self.words = of, 0
            self.kept.clear()
        return self

    def keep(self, key: bytes, seen: Seen) -> None:
        if self.words + len(seen.last) <= MOST_WORDS:
            self.words += len(seen.last)
            self.kept[key] = seen


REMEMBERED = Readings()


def identity(network: GridNetwork, settings: Sequence[object]) -> bytes:
    """The same for encoders that see the same: of their adapters' weights, and of settings."""
    digest = blake2b(repr(settings).encode())
    for name, parameter in network.learnt().items():
        if name.startswith(ENCODER):
            digest.update(name.encode() + parameter.detach().cpu().numpy().tobytes())
    return digest.digest()


def read(
    network: GridNetwork,
    inputs: Sequence[Inputs],
    columns: Columns,
    device: str,
    most: tuple[int, int],
    encoder: bytes,
    keep: bool,
) -> list[Seen]:
    """What the network's encoder sees in each pair; `most` are the pairs and cells of a batch."""
    known = REMEMBERED.opened(encoder)
    keys = [b"|".join(w.ids.tobytes() + w.word.tobytes() for w in one.windows) for one in inputs]
    found = {k: known.kept[key] for k, key in enumerate(keys) if key in known.kept}
    unread = [k for k in range(len(inputs)) if k not in found]
    for places in batches([inputs[k].size for k in unread], *most):
        own = [unread[place] for place in places]
        batch = Batch.of([inputs[k] for k in own], columns, device)
        for k, seen in zip(own, network.eval().read(batch), strict=True):
            found[k] = seen
            if keep:
                known.keep(keys[k], seen)
    return [found[k] for k in range(len(inputs))]
