"""The views of the page, and the addresses at which they are."""

from __future__ import annotations

from collections.abc import Mapping

from commonplace.page.views import health, injected, record, review, search, sessions, timeline
from commonplace.page.visits import View

#: By path and method; names in braces are parts of the address.
ROUTES: Mapping[str, Mapping[str, View]] = {
    "/": {"GET": search.show},
    "/records": {"POST": search.add},
    "/records/{id}": {"GET": record.show, "POST": record.act},
    "/records/{id}/file": {"GET": record.file},
    "/records/{id}/edit": {"GET": record.edit, "POST": record.save},
    "/review": {"GET": review.show, "POST": review.decide},
    "/timeline": {"GET": timeline.show},
    "/injected": {"GET": injected.show},
    "/injected/{id}": {"GET": injected.show},
    "/injected/{id}/plain": {"GET": injected.plain},
    "/sessions": {"GET": sessions.show},
    "/sessions/{id}": {"GET": sessions.show, "POST": sessions.delete},
    "/health": {"GET": health.show, "POST": health.act},
    "/health/settings": {"POST": health.change},
}
