"""Who may ask: names of hosts, a secret token, and requests per second.

A page of another site can make a browser ask this server under a name that resolves to its address (DNS
rebinding). The browser sends that name as the host, so only known hosts are answered.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import ConfigError
from . import Refused

LOCAL = ("localhost", "127.0.0.1", "::1")
ANY = "*"
SHORTEST_TOKEN = 16
PAGE_SHARE = 1 / 8  # of a request: what a file of the page counts
REMEMBERED = 10_000  # clients whose pace is known
CHALLENGE = 'Basic realm="jacana-torch: the token is the password", charset="UTF-8"'  # browsers ask their user

Headers = Iterable[tuple[bytes, bytes]]


class Unknown(Refused):
    """A request without the token."""

    def __init__(self) -> None:
        super().__init__(401, "this server needs its token: Authorization: Bearer TOKEN, or TOKEN as a password")


def allowed_hosts(host: str, also: Sequence[str] = ()) -> frozenset[str]:
    """Return the hosts that a server at this address answers: this machine's local names, its own, and others.

    A server on all addresses of a machine does not know their names; it answers any address, which no site can
    rebind. `*` answers every host.
    """
    names = {*LOCAL, *(_normal(name) for name in (host, *also))}
    for name in also:
        if name != ANY and not _normal(name):
            raise ConfigError(f"--allow-host {name!r} is not the name of a host: give one as in a URL, or *")
    return frozenset(names - {""})


def read_token(path: str) -> str:
    """Read the token of a server from a file."""
    try:
        token = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot read a token: {error}") from None
    if len(token) < SHORTEST_TOKEN or not (token.isascii() and token.isprintable()) or " " in token:
        raise ConfigError(
            f"{path}: a token is one line of {SHORTEST_TOKEN} or more ASCII characters without spaces "
            '(python -c "import secrets; print(secrets.token_urlsafe())" makes one)'
        )
    return token


@dataclass
class Access:
    """Decides about each request. `rate` is in requests per second of a client; 0 is no limit.

    `hosts` None answers every host.
    """

    hosts: frozenset[str] | None = frozenset(LOCAL)
    token: str | None = None
    rate: float = 0.0
    _good: set[bytes] = field(default_factory=set)  # the host that was answered last
    _left: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)  # requests, and since when

    def check(self, client: str, headers: Headers, page: bool) -> None:
        """Raise `Refused` if the request may not be answered. `page`: it asks for a file of the page."""
        host, authorization = None, b""
        for name, value in headers:
            if name == b"host":
                host = value
            elif name == b"authorization":
                authorization = value
        if host is not None and host not in self._good:  # browsers always send one
            self._check_host(host.decode("latin-1"))
            self._good = {host}
        self._check_rate(client, PAGE_SHARE if page else 1.0)
        if self.token is not None and not _holds(authorization.decode("latin-1"), self.token):
            raise Unknown

    def _check_host(self, given: str) -> None:
        if self.hosts is None or ANY in self.hosts:
            return
        host = _normal(_without_port(given))
        if host in self.hosts:
            return
        if _is_address(host) and any(_is_address(name) and _everywhere(name) for name in self.hosts):
            return
        raise Refused(403, f"this server does not answer for the host {given[:80]!r}: --allow-host adds names")

    def _check_rate(self, client: str, share: float) -> None:
        if not self.rate:
            return
        now, most = time.monotonic(), max(2.0, self.rate)
        left, since = self._left.pop(client, (most, now))
        left = min(most, left + (now - since) * self.rate)
        refused = left < share
        self._left[client] = (left if refused else left - share, now)
        while len(self._left) > REMEMBERED:
            self._left.popitem(last=False)
        if refused:
            seconds = max(1, math.ceil((share - left) / self.rate))
            text = f"more than {self.rate:g} requests per second: try again in {seconds} s"
            raise Refused(429, text, seconds)


def network(address: str) -> str:
    """Return what counts as one client: an address, or the network that a provider gives to one IPv6 customer."""
    try:
        known = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(known, ipaddress.IPv6Address):
        if known.ipv4_mapped:
            return str(known.ipv4_mapped)
        return str(ipaddress.ip_network((known, 64), strict=False))
    return str(known)


def _holds(authorization: str, token: str) -> bool:
    """Whether a header has the token. It takes the same time wherever the two differ."""
    scheme, _, given = authorization.partition(" ")
    given = given.strip()
    if scheme.lower() == "basic":
        try:
            given = base64.b64decode(given, validate=True).decode("utf-8").partition(":")[2]
        except (binascii.Error, ValueError):
            given = ""
    elif scheme.lower() != "bearer":
        given = ""
    return hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())


def _without_port(host: str) -> str:
    host = host.strip()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _normal(host: str) -> str:
    """Spell a host in one way: lower case, ASCII, without brackets or a final dot."""
    host = host.strip().strip("[]").lower().rstrip(".")
    try:
        return str(ipaddress.ip_address(host.partition("%")[0]))
    except ValueError:
        pass
    try:
        return host if host.isascii() else host.encode("idna").decode()
    except UnicodeError:
        return ""


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _everywhere(address: str) -> bool:
    return ipaddress.ip_address(address).is_unspecified
