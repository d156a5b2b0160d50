"""A session of the OpenAI Agents SDK on Commonplace: ``Runner.run(agent, "...", session=CommonplaceSession(...))``.

Each item is a record of its own in the session's scope: several processes may add at once, nothing is read to be
written back, and the conversation can be recalled.  Secrets are redacted before anything is stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from commonplace.adapters.scoped import ALL, erase_records, find_records, scoped_memory
from commonplace.engine.memory import Memory
from commonplace.model.binding import CONTENT_BYTES_LIMIT
from commonplace.model.records import Channel, Draft, Json, Kind
from commonplace.model.scopes import Scope

if TYPE_CHECKING:
    from agents import SessionSettings, TResponseInputItem

SEARCHED_CHARS = (
    CONTENT_BYTES_LIMIT // 8
)  # a letter has up to four bytes, and the mark of a secret more than the secret
BLANK = "(no text)"  # the content of a record of an item without words


class CommonplaceSession:
    """The conversation of one session, as the SDK's ``Session`` protocol has it."""

    def __init__(
        self, session_id: str, memory: Memory, *, name: str = "openai-agents", settings: SessionSettings | None = None
    ) -> None:
        """Store the session where ``memory`` does; ``name`` separates applications."""
        self.session_id = session_id
        self.session_settings = settings
        self._scope = Scope.of(("agent", name), ("task", session_id))
        self._memory = scoped_memory(memory, self._scope, channel=Channel.CAPTURE, kind=Kind.WORKING)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the items, oldest first; of many the last ``limit``."""
        wanted = self.session_settings.limit if limit is None and self.session_settings else limit
        return await asyncio.to_thread(self._items, wanted)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items, all of them or none."""
        if items:
            await asyncio.to_thread(self._add, cast("Sequence[Json]", items))

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove and return the last item; of two callers at once each gets another one."""
        return await asyncio.to_thread(self._pop)

    async def clear_session(self) -> None:
        """Erase the session irreversibly, and everything that memory derived from it."""
        await asyncio.to_thread(self._memory.clear, self._scope)

    def _items(self, limit: int | None) -> list[TResponseInputItem]:
        if limit is not None and limit <= 0:
            return []
        newest = find_records(self._memory, limit=ALL if limit is None else limit)
        return [cast("TResponseInputItem", record.value) for record in reversed(newest)]

    def _add(self, items: Sequence[Json]) -> None:
        writer, binding = self._memory.writer, self._memory.binding
        drafts = [
            Draft(content=_search_text(item) or BLANK, kind=Kind.WORKING, value=item, ref=self.session_id)
            for item in items
        ]
        writer.apply([writer.admit(draft, binding).put() for draft in drafts])

    def _pop(self) -> TResponseInputItem | None:
        while newest := find_records(self._memory, limit=1):
            if newest[0].id in erase_records(self._memory, newest):
                return cast("TResponseInputItem", newest[0].value)
        return None


def _search_text(item: Any) -> str:
    """Return the words by which an item is found: of a very long one the first, since its value holds all of it."""
    words = _words(item).strip()
    if len(words) <= SEARCHED_CHARS:
        return words
    return words[:SEARCHED_CHARS].rsplit(maxsplit=1)[0]  # no secret is cut in two: its half would not be known as one


def _words(item: Any) -> str:
    """Return the text of an item, wherever the SDK has put it."""
    if isinstance(item, str):
        return item
    if isinstance(item, list):
        return "\n".join(filter(None, map(_words, item)))
    if not isinstance(item, dict):
        return ""
    spoken = (item.get(name) for name in ("content", "text", "arguments", "output", "summary"))
    return "\n".join(filter(None, map(_words, spoken)))
