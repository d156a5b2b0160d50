"""Requests to remember that came to nothing, as the user is told of them: at the next start and by ``status``."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from commonplace.app import App
from commonplace.config.project import PROJECT
from commonplace.model.documents import Document, DocumentKind
from commonplace.model.queries import DocumentFilter
from commonplace.text.cleaning import one_line, plain_line

NOT_KEPT = "not_kept"  # where an extraction's metadata has them
REFUSED_DAYS = 7  # a refused request is shown for so long
REFUSED_SESSIONS = 20  # of which it is shown: the newest
REFUSED_SHOWN, REFUSED_CHARS = 3, 120


def refused_requests(app: App) -> list[str]:
    """What the user asked to have remembered in the last days and is not kept: a sentence each, the newest first."""
    return [
        f"not remembered, though you asked (session {plain_line(session)}): {words!r}: {reason}"
        for session, words, reason in _found(app)
    ]


def refused_notice(app: App) -> str | None:
    """The same for an agent to pass on, without the words themselves: they are data, and it stands outside the seal."""
    reasons = sorted({reason for _, _, reason in _found(app)})
    if not reasons:
        return None
    why = "; ".join(reasons)
    return (
        f"Tell the user once: something they asked to remember was not kept ({why}); `commonplace status` shows what."
    )


def _found(app: App) -> list[tuple[str, str, str]]:
    """The session, the words and the reason of each request that was refused lately."""
    project = app.where.project
    if project is None or not app.where.is_enabled(PROJECT):
        return []
    where = DocumentFilter(scopes=frozenset({project}), kinds=frozenset({DocumentKind.EXTRACTION.value}))
    since = app.clock() - timedelta(days=REFUSED_DAYS)
    recent = [one for one in app.store.documents(where, limit=REFUSED_SESSIONS) if one.updated_at >= since]
    found = [(document.name, one) for document in recent for one in _refused(document)]
    return [
        (session, plain_line(one_line(str(one["quote"])))[:REFUSED_CHARS], str(one["reason"])) for session, one in found
    ][:REFUSED_SHOWN]


def _refused(document: Document) -> list[Mapping[str, Any]]:
    listed = document.metadata.get(NOT_KEPT)
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
