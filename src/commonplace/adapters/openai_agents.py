"""A session of the OpenAI Agents SDK on Commonplace: ``Runner.run(agent, "...", session=CommonplaceSession(...))``.

Each item is a record of its own in the session's scope: several processes may add at once, nothing is read to be
written back, and what was said can be recalled.  Secrets are taken out on the way in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from commonplace.adapters.erasing import erased
from commonplace.engine.memory import Memory, bound
from commonplace.model.binding import CONTENT_BYTES_MOST, Binding
from commonplace.model.queries import Filter, Order
from commonplace.model.records import Channel, Draft, Json, Kind
from commonplace.model.scopes import Scope

if TYPE_CHECKING:
    from agents import SessionSettings, TResponseInputItem

ALL = -1
SEARCHED_CHARS = CONTENT_BYTES_MOST // 8  # a letter has up to four bytes, and the mark of a secret more than the secret
BLANK = "(nothing said)"  # what a record of an item without words says


class CommonplaceSession:
    """The conversation of one session, as the SDK's ``Session`` protocol has it."""

    def __init__(
        self, session_id: str, memory: Memory, *, name: str = "openai-agents", settings: SessionSettings | None = None
    ) -> None:
        """Keep the session in the store of ``memory``; ``name`` keeps applications apart."""
        self.session_id = session_id
        self.session_settings = settings
        self._memory = memory
        self._scope = Scope.of(("agent", name), ("task", session_id))

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The items, oldest first; of many the last ``limit``."""
        wanted = self.session_settings.limit if limit is None and self.session_settings else limit
        return await asyncio.to_thread(self._items, wanted)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items, all of them or none."""
        if items:
            await asyncio.to_thread(self._add, cast("Sequence[Json]", items))

    async def pop_item(self) -> TResponseInputItem | None:
        """Take the last item away; of two who try at once each gets another one."""
        return await asyncio.to_thread(self._pop)

    async def clear_session(self) -> None:
        """Erase the session for good, and whatever memory has written of it."""
        await asyncio.to_thread(bound(self._memory, self._binding()).clear, self._scope)

    def _where(self) -> Filter:
        return Filter(scopes=frozenset({self._scope}), at=self._memory.clock())

    def _items(self, limit: int | None) -> list[TResponseInputItem]:
        if limit is not None and limit <= 0:
            return []
        newest = self._memory.store.find(self._where(), order=Order.NEWEST, limit=ALL if limit is None else limit)
        return [cast("TResponseInputItem", record.value) for record in reversed(newest)]

    def _add(self, items: Sequence[Json]) -> None:
        writer, binding = self._memory.writer, self._binding()
        drafts = [
            Draft(content=_searched(item) or BLANK, kind=Kind.WORKING, value=item, ref=self.session_id)
            for item in items
        ]
        writer.apply([writer.admit(draft, binding).put() for draft in drafts])

    def _pop(self) -> TResponseInputItem | None:
        while newest := self._memory.store.find(self._where(), order=Order.NEWEST, limit=1):
            if newest[0].id in erased(self._memory, newest, scope=self._scope):
                return cast("TResponseInputItem", newest[0].value)
        return None

    def _binding(self) -> Binding:
        return Binding(
            channel=Channel.CAPTURE, writes={Kind.WORKING: self._scope}, reads=(self._scope,),
            content_bytes=CONTENT_BYTES_MOST, filed=False,
        )  # fmt: skip


def _searched(item: Any) -> str:
    """The words by which an item is found: of a very long one the first, for the whole of it is the record's value."""
    words = _words(item).strip()
    if len(words) <= SEARCHED_CHARS:
        return words
    return words[:SEARCHED_CHARS].rsplit(maxsplit=1)[0]  # no secret is cut in two: its half would not be known as one


def _words(item: Any) -> str:
    """What an item says: its text, wherever the SDK has put it."""
    if isinstance(item, str):
        return item
    if isinstance(item, list):
        return "\n".join(filter(None, map(_words, item)))
    if not isinstance(item, dict):
        return ""
    spoken = (item.get(name) for name in ("content", "text", "arguments", "output", "summary"))
    return "\n".join(filter(None, map(_words, spoken)))
