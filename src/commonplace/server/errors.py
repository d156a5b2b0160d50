"""The one table from errors to what an HTTP client sees.

Every error is a JSON object with ``error`` (for programs), ``message`` and ``detail`` (the same sentence: one client
reads this, another that).  A conflict carries ``current_version``; the public SDK of intent memory takes every conflict
whose text holds "lease" for one about leases, in "please" and "release" too, so such a sentence is not passed on.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

import msgspec
from msgspec import UNSET, UnsetType
from starlette.responses import Response

from commonplace.model import errors as domain
from commonplace.model.errors import CommonplaceError
from commonplace.routes import RequestRefused

RETRY_SECONDS = 1  # after a busy store or a full server
TRAP = "lease"
CONFLICT = "another caller was first: it is at another version, or the key is taken"


class Problem(msgspec.Struct, kw_only=True):
    """What went wrong."""

    error: str
    message: str
    detail: str
    current_version: int | UnsetType | None = UNSET  #: of a conflict: the current version
    errors: list[str] | UnsetType = UNSET  #: of bad input: what is wrong with it
    current: int | UnsetType = UNSET  #: of a full memory: how much it holds
    most: int | UnsetType = UNSET  #: of a full memory: how much it may hold


#: The first that fits: subclasses stand before their classes.
TABLE: tuple[tuple[type[CommonplaceError], int, str], ...] = (
    (domain.InvalidInput, 400, "INVALID_INPUT"),
    (domain.NotFound, 404, "ENTRY_NOT_FOUND"),
    (domain.Conflict, 409, "VERSION_MISMATCH"),
    (domain.LeaseLost, 409, "TAKEN_OVER"),
    (domain.Forbidden, 403, "ACCESS_DENIED"),
    (domain.CapacityExceeded, 429, "CAPACITY_EXCEEDED"),
    (domain.StoreBusy, 503, "STORE_BUSY"),
    (domain.StoreReplaced, 503, "STORE_REPLACED"),
    (domain.CommonplaceError, 500, "FAILED"),
)


def error_response(error: RequestRefused | CommonplaceError) -> Response:
    """Return the response to an error."""
    if isinstance(error, RequestRefused):
        return _response(error.status, _refusal(error), error.headers)
    status, name = next((status, name) for kind, status, name in TABLE if isinstance(error, kind))
    return _response(status, _problem(error, status, name), _retry(status))


def failure_response() -> Response:
    """Return the response to an unexpected error: nothing of it, since its text may hold memory."""
    return _response(500, _plain("INTERNAL", "the server failed; its log says where"), {})


def _problem(error: CommonplaceError, status: int, name: str) -> Problem:
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:  # a driver's words may quote what was written
        return _plain(name, "the store is busy; try again" if status == 503 else "the store failed; its log says where")  # noqa: PLR2004
    problem = _plain(name, str(error))
    if isinstance(error, domain.Conflict):
        if TRAP in problem.message.lower():
            problem.message = problem.detail = CONFLICT
        problem.current_version = error.current
    if isinstance(error, domain.InvalidInput):
        problem.errors = [str(error)]
    if isinstance(error, domain.CapacityExceeded):
        problem.current, problem.most = error.current, error.limit
    return problem


def _refusal(error: RequestRefused) -> Problem:
    problem = _plain(error.error, str(error))
    if error.status == HTTPStatus.BAD_REQUEST:
        problem.errors = [str(error)]
    return problem


def _plain(name: str, message: str) -> Problem:
    text = message.encode("utf-8", "replace").decode()  # half a character can be sent in JSON but not sent back
    return Problem(error=name, message=text, detail=text)


def _retry(status: int) -> dict[str, str]:
    return {"Retry-After": str(RETRY_SECONDS)} if status in (429, 503) else {}


def _response(status: int, problem: Problem, headers: Mapping[str, str]) -> Response:
    closing = {"Connection": "close"} if status in (408, 413) else {}  # the rest of the body is not waited for
    return Response(msgspec.json.encode(problem), status, headers={**headers, **closing}, media_type="application/json")
