"""Posts JSON to an HTTP service and reads JSON, with retries.  Standard library only; knows no provider's dialect.

A request has one limit of time for all its tries.  Redirects are not followed: they would take the key elsewhere.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from http.client import HTTPException, HTTPResponse, IncompleteRead
from random import random
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from commonplace.model.errors import ProviderError
from commonplace.providers.services import BUSY, Key, retry_delay

TIMEOUT_S = 30.0
LARGEST_BYTES = 64 * 1024 * 1024  # an answer: a hundred vectors of 3,072 numbers take 8 MB
PIECE_BYTES = 64 * 1024
UNAUTHORIZED, FORBIDDEN, MISSING = 401, 403, 404
HERE = frozenset({"localhost", "127.0.0.1", "::1"})


class _NoRedirect(HTTPRedirectHandler):
    """Treats a redirect as an error."""

    def redirect_request(self, *_: Any) -> None:
        """Do not follow it."""


class Endpoint:
    """One service at one address.  Holds nothing between requests, so threads may share it."""

    def __init__(
        self,
        who: str,
        address: str,
        *,
        key: Key,
        headers: Mapping[str, str],
        timeout: float = TIMEOUT_S,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.who = who
        self._address = address
        self._key = key
        self._headers = {"Content-Type": "application/json", "Accept": "application/json", **headers}
        self._timeout = timeout
        self._sleep = sleep
        # A proxy is asked for what is elsewhere, never for what runs on this machine.
        proxies = [ProxyHandler({})] if urlsplit(address).hostname in HERE else []
        self._opener = build_opener(_NoRedirect, *proxies)

    def post(self, path: str, body: object, *, hint: str = "") -> Any:
        """Return the parsed answer.  ``hint`` says what helps if the service does not know the path or the model."""
        self._key.require(self.who)
        request = Request(  # noqa: S310 - the address was checked to be http or https
            self._address + path, data=json.dumps(body).encode(), headers=self._headers, method="POST"
        )
        until = time.monotonic() + self._timeout
        tried = 0
        while True:
            try:
                return self._parse(self._read(request, until))
            except HTTPError as error:
                tried += 1
                after = _retry_after(error)
                with error:
                    failure = self._status_error(error, tried=tried, retry_after=after, hint=hint)
                wait = self._delay(until, tried, after) if error.code in BUSY else None
                if wait is None:
                    raise failure from error
            except (OSError, HTTPException) as error:
                tried += 1
                wait = self._delay(until, tried, None)
                if wait is None:
                    raise self._connection_error(error, tried=tried) from error
            self._sleep(wait)

    def _delay(self, until: float, tried: int, retry_after: float | None) -> float | None:
        left = until - time.monotonic()
        return retry_delay(tried=tried, retry_after=retry_after, left=left, chance=random())  # noqa: S311 - spreads load

    def _read(self, request: Request, until: float) -> bytes:
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        with self._opener.open(request, timeout=left) as response:
            return _read_all(response, until)

    def _parse(self, raw: bytes) -> Any:
        try:
            return json.loads(raw)
        except ValueError as error:
            raise ProviderError(f"{self.who} answered what is not JSON") from error

    def _connection_error(self, error: Exception, *, tried: int) -> ProviderError:
        reason = error.reason if isinstance(error, URLError) else error
        if isinstance(reason, TimeoutError):
            return ProviderError(f"{self.who} did not answer within {self._timeout:g} s")
        reason = str(reason) or type(error).__name__
        return ProviderError(f"{self.who} cannot be reached at {self._address}{_times(tried)}: {reason}")

    def _status_error(self, error: HTTPError, *, tried: int, retry_after: float | None, hint: str) -> ProviderError:
        if error.code in {UNAUTHORIZED, FORBIDDEN}:
            return self._key.as_provider_error(f"{self.who} answered {error.code} and")
        wait = f", and asks to wait {retry_after:g} s" if retry_after else ""
        more = f"; {hint}" if hint and error.code == MISSING else ""
        return ProviderError(f"{self.who} answered {error.code}{_times(tried)}{self._message(error)}{wait}{more}")

    def _message(self, error: HTTPError) -> str:
        try:
            return self._key.quote(json.loads(error.read(PIECE_BYTES)))
        except (ValueError, OSError, HTTPException):
            return ""


def _times(tried: int) -> str:
    return f" after {tried} tries" if tried > 1 else ""


def _read_all(response: HTTPResponse, until: float) -> bytes:
    """The whole answer; one that drips is given up like one that does not come."""
    pieces: list[bytes] = []
    size = 0
    while piece := response.read1(PIECE_BYTES):
        pieces.append(piece)
        size += len(piece)
        if size > LARGEST_BYTES:
            raise HTTPException(f"an answer of more than {LARGEST_BYTES} bytes")
        if time.monotonic() > until:
            raise TimeoutError("timed out")
    if response.length:  # the connection ended before the answer did
        raise IncompleteRead(b"", response.length)
    return b"".join(pieces)


def _retry_after(error: HTTPError) -> float | None:
    """Retry-After in seconds: a number, or a date."""
    given = error.headers.get("Retry-After")
    if not given:
        return None
    try:
        return max(0.0, float(given)) if float(given) < float("inf") else None
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(given).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None
