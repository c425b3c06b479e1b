"""A web server for models: a page for people and a JSON API for programs.

A request passes through `requests` (checks it), `batching` (gathers concurrent requests) and `work` (calls the
models). `app` is the web application, `openapi` describes its API and `server` runs it. Only `app` and `server`
need the extra `serve`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import ConfigError

LONGEST_TOKEN = 64  # mean number of characters per token; longer text is refused before it is tokenised


@dataclass(frozen=True)
class Limits:
    """The limits of a server, which the API's description and the page repeat.

    `tokens`       per sentence
    `pairs`        per request
    `body`         bytes per request
    `queue`        pairs that may wait
    `seconds`      until a response
    `patience`     seconds that a client may take to send a request or to read its response
    `connections`  at a time
    """

    tokens: int = 200
    pairs: int = 1000
    body: int = 1 << 20
    queue: int = 4000
    seconds: float = 30.0
    patience: float = 10.0
    connections: int = 512

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value > 0:
                raise ConfigError(f"{name}={value}: has to be above 0")
        if self.queue < self.pairs:
            raise ConfigError(f"a queue of {self.queue} pairs has no room for a request of {self.pairs}")

    @property
    def characters(self) -> int:
        """The longest text of a sentence."""
        return LONGEST_TOKEN * self.tokens
