"""How often somebody may try: a back-off after wrong keys, and a rate for each key.

Both count in the memory of one process, and both remember a bounded number of names: the one that was quiet for the
longest is dropped first.  Threads share them.
"""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Any

FREE_TRIES = 10  # wrong keys of one peer without a wait
FIRST_SECONDS = 1.0  # the first wait; it doubles with every further wrong key
LONGEST_SECONDS = 300.0
FORGET_SECONDS = 900.0  # a peer without a wrong key for so long starts anew
BURST_SECONDS = 2.0  # a key that was quiet may use the rate of so many seconds at once
NAMES_MAX = 4096
IPV6_NETWORK = 64  # bits of an address that belong to the network; one machine may use all others

Seconds = Callable[[], float]


class WrongKeys:
    """The peers that sent wrong keys, and how long each has to wait; and the keys that were right lately.

    Keys cannot be guessed, but whoever tries costs every process a look at the store.  A peer that waits may be a proxy
    with many clients behind it, so a key that was right lately is let through to its check.
    """

    def __init__(self, *, clock: Seconds = time.monotonic, names_max: int = NAMES_MAX) -> None:
        self._clock = clock
        self._names_max = names_max
        self._lock = Lock()
        self._peers: OrderedDict[str, tuple[int, float]] = OrderedDict()  # wrong keys, and when the last one came
        self._right: OrderedDict[str, None] = OrderedDict()

    def seconds_left(self, peer: str, digest: str = "") -> float:
        """Return how long the peer has to wait before the key with this digest is looked at; 0: not at all."""
        with self._lock:
            count, last = self._peers.get(peer, (0, 0.0))
            if count < FREE_TRIES or digest in self._right:
                return 0.0
            wait = min(FIRST_SECONDS * 2.0 ** min(count - FREE_TRIES, 32), LONGEST_SECONDS)
            return max(0.0, last + wait - self._clock())

    def count_wrong(self, peer: str) -> None:
        """Count a wrong key of the peer."""
        with self._lock:
            now = self._clock()
            count, last = self._peers.get(peer, (0, now))
            self._peers[peer] = (1 if now - last > FORGET_SECONDS else count + 1, now)
            _keep_newest(self._peers, peer, self._names_max)

    def remember_right(self, digest: str) -> None:
        """Remember that the key with this digest was right."""
        with self._lock:
            self._right[digest] = None
            _keep_newest(self._right, digest, self._names_max)

    def forget_right(self, digest: str) -> None:
        """Forget a key that was right and is so no longer."""
        with self._lock:
            self._right.pop(digest, None)


class RateLimit:
    """A token bucket for each name: ``rate`` calls a second, and those of two quiet seconds at once."""

    def __init__(self, rate: float, *, clock: Seconds = time.monotonic, names_max: int = NAMES_MAX) -> None:
        """``rate`` is in calls a second; 0: no limit."""
        self._rate = rate
        self._burst = max(1.0, rate * BURST_SECONDS)
        self._clock = clock
        self._names_max = names_max
        self._lock = Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens, and when they were counted

    def take(self, name: str) -> float:
        """Take a token; return 0, or how many seconds it takes until there is one."""
        if not self._rate:
            return 0.0
        with self._lock:
            now = self._clock()
            tokens, since = self._buckets.get(name, (self._burst, now))
            tokens = min(self._burst, tokens + (now - since) * self._rate)
            left = tokens - 1 if tokens >= 1 else tokens
            self._buckets[name] = (left, now)
            _keep_newest(self._buckets, name, self._names_max)
        return 0.0 if tokens >= 1 else (1 - tokens) / self._rate


def _keep_newest(names: OrderedDict[str, Any], name: str, most: int) -> None:
    """Make a name the newest one, and drop the oldest beyond the limit."""
    names.move_to_end(name)
    if len(names) > most:
        names.popitem(last=False)


def network_of(peer: str | None) -> str:
    """Return the part of an address that a client cannot change; clients of a Unix socket have none."""
    try:
        address = ipaddress.ip_address(peer or "")
    except ValueError:
        return peer or "socket"
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    return str(ipaddress.ip_network((address, IPV6_NETWORK), strict=False))
