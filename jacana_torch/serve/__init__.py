"""A web server for models: a page for people and a JSON API for programs.

A request passes through `access` (may this client ask?), `requests` (checks the body), `batching` (gathers
concurrent requests) and `work` (calls the models). `desk` joins the last three. Heavy requests go to a second
process with a desk of its own: `heavy` talks to it, `worker` is what it runs. `app` is the web application,
`openapi` describes its API, `connections` limits what clients may hold and `server` runs it all. Only `app`,
`connections` and `server` need the extra `serve`.
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
    `cost`         of a request, in cells (tokens x tokens; `work.cost`)
    `queue`        cost of the requests that wait
    `seconds`      until a response
    `patience`     seconds that a client may take to send a request or to read its response
    `connections`  at a time
    `grace`        seconds that accepted requests may take after a signal to stop
    """

    tokens: int = 200
    pairs: int = 1000
    body: int = 1 << 20
    cost: int = 5_000_000
    queue: int = 20_000_000
    seconds: float = 30.0
    patience: float = 10.0
    connections: int = 512
    grace: float = 5.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value > 0:
                raise ConfigError(f"{name}={value}: has to be above 0")
        if self.queue < self.cost:
            raise ConfigError(f"a queue of {self.queue} cells has no room for a request of {self.cost}")

    @property
    def characters(self) -> int:
        """The longest text of a sentence."""
        return LONGEST_TOKEN * self.tokens


class Refused(Exception):
    """A request that is not answered, with an HTTP status and a message for the client.

    `seconds` says when to try again, if that may help.
    """

    def __init__(self, status: int, message: str, seconds: int | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.seconds = status, message, seconds


class Busy(Refused):
    """The queue is full, or the answer takes too long."""

    def __init__(self, seconds: int) -> None:
        super().__init__(503, f"the server is busy: try again in {seconds} s", seconds)
