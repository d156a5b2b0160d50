"""Posts JSON to an HTTP service and reads JSON, patiently.  Standard library only; knows no provider's dialect.

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
from commonplace.providers.retry import BUSY, Patience, pause
from commonplace.providers.services import Key

TIMEOUT_S = 30.0
LARGEST_BYTES = 64 * 1024 * 1024  # an answer: a hundred vectors of 3,072 numbers take 8 MB
PIECE_BYTES = 64 * 1024
SHOWN = 200  # characters of what a service says about an error
UNAUTHORIZED, FORBIDDEN, MISSING = 401, 403, 404
HERE = frozenset({"localhost", "127.0.0.1", "::1"})


class _Stay(HTTPRedirectHandler):
    """Takes a redirect for the error that it is here."""

    def redirect_request(self, *_: Any) -> None:
        """Go nowhere."""


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
        patience: Patience | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.who = who
        self._address = address
        self._key = key
        self._headers = {"Content-Type": "application/json", "Accept": "application/json", **headers}
        self._timeout = timeout
        self._patience = patience or Patience()
        self._sleep = sleep
        # A proxy is asked for what is elsewhere, never for what runs on this machine.
        proxies = [ProxyHandler({})] if urlsplit(address).hostname in HERE else []
        self._opener = build_opener(_Stay, *proxies)

    def post(self, path: str, body: object, *, hint: str = "") -> Any:
        """Return what the service answers, parsed.  ``hint`` says what helps if it does not know the path or model."""
        if self._key.needed and not self._key.value:
            raise ProviderError(f"{self.who} needs a key: set the environment variable {self._key.variable}")
        request = Request(  # noqa: S310 - the address was checked to be http or https
            self._address + path, data=json.dumps(body).encode(), headers=self._headers, method="POST"
        )
        until = time.monotonic() + self._timeout
        tried = 0
        while True:
            try:
                return self._parsed(self._read(request, until))
            except HTTPError as error:
                tried += 1
                told = _retry_after(error)
                with error:
                    failure = self._refusal(error, tried=tried, told=told, hint=hint)
                wait = self._pause(until, tried=tried, told=told) if error.code in BUSY else None
                if wait is None:
                    raise failure from error
            except (OSError, HTTPException) as error:
                tried += 1
                wait = self._pause(until, tried=tried, told=None)
                if wait is None:
                    raise self._silence(error, tried=tried) from error
            self._sleep(wait)

    def _pause(self, until: float, *, tried: int, told: float | None) -> float | None:
        left = until - time.monotonic()
        return pause(self._patience, tried=tried, told=told, left=left, chance=random())  # noqa: S311 - spreads load

    def _read(self, request: Request, until: float) -> bytes:
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        with self._opener.open(request, timeout=left) as response:
            return _all(response, until)

    def _parsed(self, raw: bytes) -> Any:
        try:
            return json.loads(raw)
        except ValueError as error:
            raise ProviderError(f"{self.who} answered what is not JSON") from error

    def _silence(self, error: Exception, *, tried: int) -> ProviderError:
        reason = error.reason if isinstance(error, URLError) else error
        if isinstance(reason, TimeoutError):
            return ProviderError(f"{self.who} did not answer within {self._timeout:g} s")
        reason = str(reason) or type(error).__name__
        return ProviderError(f"{self.who} cannot be reached at {self._address}{_times(tried)}: {reason}")

    def _refusal(self, error: HTTPError, *, tried: int, told: float | None, hint: str) -> ProviderError:
        if error.code in {UNAUTHORIZED, FORBIDDEN}:  # what is said there may repeat the key
            return ProviderError(f"{self.who} refused the key ({error.code}){self._where_key()}")
        wait = f", and asks to wait {told:g} s" if told else ""
        more = f"; {hint}" if hint and error.code == MISSING else ""
        return ProviderError(f"{self.who} answered {error.code}{_times(tried)}{self._said(error)}{wait}{more}")

    def _where_key(self) -> str:
        if not self._key.variable:
            return ": name the variable that holds it in api_key_env"
        return f": check the environment variable {self._key.variable}"

    def _said(self, error: HTTPError) -> str:
        """What the service says of an error, in the forms that are common, without the key."""
        try:
            told = json.loads(error.read(PIECE_BYTES))
        except (ValueError, OSError, HTTPException):
            return ""
        told = told.get("error", told) if isinstance(told, dict) else told
        told = told.get("message") if isinstance(told, dict) else told
        if not isinstance(told, str):
            return ""
        shown = " ".join(told.replace(self._key.value or "\0", "...").split())
        return f": {shown[:SHOWN]}"


def _times(tried: int) -> str:
    return f" after {tried} tries" if tried > 1 else ""


def _all(response: HTTPResponse, until: float) -> bytes:
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
    said = error.headers.get("Retry-After")
    if not said:
        return None
    try:
        return max(0.0, float(said)) if float(said) < float("inf") else None
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(said).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None
