"""What can go wrong through no fault of ours: every error a user can cause derives from JacanaError.

The command line prints the message and exits with 2; the message says what was wrong, where, and what to do.
"""

from __future__ import annotations


class JacanaError(Exception):
    """A mistake in the input or the set-up, told so that its reader can mend it."""


class CorpusError(JacanaError):
    """A file that does not hold what its format promises."""

    def __init__(self, message: str, file: str = "<stream>", line: int | None = None) -> None:
        self.file, self.line, self.reason = file, line, message
        super().__init__(f"{file}:{line}: {message}" if line is not None else f"{file}: {message}")

    def __reduce__(self):  # worker processes send these
        return type(self), (self.reason, self.file, self.line)


class MissingLayer(JacanaError):
    """A sentence lacks an annotation that something downstream needs."""


class MissingResource(JacanaError):
    """Linguistic data that is not on this machine; the message names the command that gets it."""


class ModelError(JacanaError):
    """A model directory that cannot be used."""


class ConfigError(JacanaError):
    """A setting that names something that does not exist or cannot be."""
