"""Whether the server lives, and whether it can answer: for whoever watches it, without a key."""

from __future__ import annotations

import msgspec

from commonplace.model.errors import CommonplaceError
from commonplace.server.errors import Refused
from commonplace.server.routing import Call, Route
from commonplace.version import VERSION


class Health(msgspec.Struct, kw_only=True):
    """How the server is."""

    status: str
    version: str


def lives(_call: Call) -> Health:
    """It answers, so it lives; nothing else is asked."""
    return Health(status="ok", version=VERSION)


def ready(call: Call) -> Health:
    """It is not on its way out, and its store can be read."""
    if call.services.stopping():
        raise Refused(503, "STOPPING", "the server is on its way out")
    try:
        call.services.keys.exist()
    except CommonplaceError:  # what exactly is wrong is nobody's business who has no key
        raise Refused(503, "NOT_READY", "the store cannot be read") from None
    return Health(status="ready", version=VERSION)


ROUTES = (
    Route(
        method="GET", path="/healthz", summary="Whether the server lives.", handle=lives, answers=Health, open=True,
        tag="health",
    ),
    Route(
        method="GET", path="/readyz", summary="Whether the server can answer.", handle=ready, answers=Health,
        open=True, problems=(503,), tag="health",
    ),
)  # fmt: skip
