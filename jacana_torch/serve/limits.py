"""How much a server takes on: plain numbers, which the page and the API's description repeat."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ..errors import ConfigError

LONGEST_TOKEN = 64  # characters a token in the mean: text beyond that is refused before it is tokenised


@dataclass(frozen=True)
class Limits:
    """`tokens` is of a sentence, `pairs` and `body` (bytes) of a request, `queue` of pairs that wait, `seconds`
    of the time until an answer, `patience` of the seconds that a client may take to ask or to listen."""

    tokens: int = 200
    pairs: int = 1000
    body: int = 1 << 20
    queue: int = 4000
    seconds: float = 30.0
    patience: float = 10.0
    connections: int = 512

    def __post_init__(self) -> None:
        for one in fields(self):
            if not getattr(self, one.name) > 0:
                raise ConfigError(f"{one.name}={getattr(self, one.name)}: has to be above 0")
        if self.queue < self.pairs:
            raise ConfigError(f"a queue of {self.queue} pairs has no room for a request of {self.pairs}")

    @property
    def characters(self) -> int:
        """The longest text of a sentence."""
        return LONGEST_TOKEN * self.tokens
