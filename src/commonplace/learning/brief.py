"""What a session is shown before it starts: the summary, what holds always, what matches its task, and what is new.

Nothing is written here; ``receipts`` saves what was shown.  The memory of the project and the user's own are recalled
together.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import Any

from commonplace.engine.admission import Gate
from commonplace.files.artifacts import LEARNED, SUMMARY
from commonplace.files.folders import RecallAnswer
from commonplace.learning.addresses import SCHEME, AddressedText, Addresses, artifact
from commonplace.learning.brief_choice import STANDING, BriefChooser
from commonplace.learning.brief_layout import (
    OUTSIDE_PARTS,
    BriefMaterial,
    Note,
    RenderedBrief,
    ShownText,
    render_brief,
)
from commonplace.learning.brief_layout import SUMMARY as PLACE
from commonplace.learning.model_prompts import PROMPTS, prompt_files
from commonplace.model.errors import ConfigError, Forbidden, InvalidInput, StoreError
from commonplace.model.queries import Hit, Order
from commonplace.model.records import Channel, Trust
from commonplace.model.values import Value
from commonplace.text.question import Profile
from commonplace.text.words import plan

RULES = "read_path.md"

QUERY_CHARS = 4000  # of a task; the planner takes the first meaningful words of it
STANDING_READ = 1000  # preferences, principles and pinned records, of any authority: a flood hides no person's
NEWEST_READ = 60  # some are shown above already
DEEPER = 3  # times as many are asked for as are shown: some are set aside

_FRONT = re.compile(r"\A\s*---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_TITLE = re.compile(r"^title:[ \t]*(.+?)[ \t]*$", re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


class Injection(Value):
    """The block for one session, and what it was made from."""

    guidance: RenderedBrief
    query: str  #: what memory was asked
    budget: int | None = None
    texts: tuple[AddressedText, ...] = ()  #: the artifacts that are in it
    notes: tuple[str, ...] = ()  #: what the caller should know, as sentences

    @property
    def text(self) -> str:
        """The block; empty if memory is empty."""
        return self.guidance.text


def inject(
    addresses: Addresses,
    recall: Callable[..., RecallAnswer],
    task: str = "",
    *,
    rules: str,
    limit: int,
    recall_budget: int | None = None,
    budget: int | None = None,
    summary_budget: int,
    session: str | None = None,
) -> Injection:
    """Build the block for a task; without one it has the newest notes.

    ``recall`` is ``App.recall``; ``budget`` is for all of it in tokens, ``summary_budget`` for the summary and the
    lessons together.  Turns of the very session that asks are left out.
    """
    query = task.strip()[:QUERY_CHARS]
    asks = bool(plan(query).words)
    found = recall(
        query, limit=_most(limit) * DEEPER if asks else 1, budget=recall_budget, profile=Profile.WORKING, count=False
    )  # also without a task: files that were edited are read first
    hits = [hit for hit in found.hits if not _is_of(hit, session)] if asks else []
    notes, passed = _choose(addresses, query, hits, limit=limit)
    pages, troubles = _artifacts(addresses)
    material = BriefMaterial(
        rules=rules, summary=shown_text(pages.get(SUMMARY)), lessons=shown_text(pages.get(LEARNED)),
        notes=tuple(notes), references=references_of(notes),
    )  # fmt: skip
    block = render_brief(material, secret=addresses.secret(), budget=budget, summary_budget=summary_budget)
    in_it = {text.url for text in block.texts}
    return Injection(
        guidance=block, query=query, budget=budget,
        texts=tuple(page for page in pages.values() if page.url in in_it),
        notes=(*found.notes, *troubles, *_outsiders(passed), *block.notes),
    )  # fmt: skip


def _choose(addresses: Addresses, query: str, hits: Sequence[Hit], *, limit: int) -> tuple[list[Note], int]:
    """Choose the notes of all parts; also how many from outside were passed over."""
    memory, known = addresses.memory, addresses.memory.binding.categories
    rules = [category for category in STANDING if known is None or category in known]
    always = [
        *memory.list(categories=rules, limit=STANDING_READ),
        *memory.list(pinned=True, limit=STANDING_READ),
    ]
    fresh = memory.list(order=Order.SAID, limit=NEWEST_READ)
    chooser = BriefChooser(query, hits, [*always, *fresh])
    notes = list(chooser.standing({record.id: record for record in always}.values()))
    notes += chooser.matching(limit=_most(limit))
    notes += chooser.newest(fresh, beside_task=bool(hits))
    return notes, chooser.passed_over


def _most(limit: int) -> int:
    """How many notes match a task at most: half as many again as a recall returns, since each is one line."""
    return limit + limit // 2


def rules_in(folder: str | None, *, named: str | None = None, secret: bytes = b"") -> str:
    """The rules of the brief: the project's own ``prompts/read_path.md`` before ours; ``named`` as in prompt_files."""
    text = prompt_files(folder, named=named)(RULES)
    if folder is None:
        return text
    own = os.path.join(named or folder, PROMPTS, RULES)
    if PLACE not in text:
        raise ConfigError(f"has no place for the summary: {PLACE} is missing", file=own)
    return Gate(secret).text(text, what=own)


def ticket_task(text: str) -> str:
    """What a ticket asks of memory: its title, then its words; the frontmatter is not part of them."""
    front = _FRONT.match(text)
    title = _TITLE.search(front[1]) if front else None
    body = _COMMENT.sub("", text[front.end() :] if front else text)
    return "\n".join(part.strip() for part in (title[1].strip("\"'") if title else "", body) if part.strip())


def _is_of(hit: Hit, session: str | None) -> bool:
    return hit.chunk is not None and hit.chunk.document == session


def _artifacts(addresses: Addresses) -> tuple[dict[str, AddressedText], list[str]]:
    """The summary and the lessons, as far as they can be read: a session starts all the same."""
    pages: dict[str, AddressedText] = {}
    notes: list[str] = []
    for name in (SUMMARY, LEARNED):
        try:
            page = artifact(addresses, name)
        except (StoreError, InvalidInput, Forbidden) as error:  # a link, a foreign encoding, a disk
            notes.append(f"{name} is not shown: {error}")
            continue
        if page and page.trust is Trust.EXTERNAL:  # it came by Git from somebody else, or with a folder
            notes.append(f"{name} is not shown: it is somebody else's word; `commonplace learn` writes your own")
        elif page and page.text.strip():
            pages[name] = page
            notes += page.notes
    return pages, notes


def shown_text(page: AddressedText | None) -> ShownText | None:
    """Return an artifact as a brief shows it."""
    if page is None:
        return None
    trust = Trust.EXTERNAL if page.trust is None else page.trust
    by = page.channel or Channel.IMPORT
    return ShownText(url=page.url, text=page.text, updated_at=page.updated_at, by=by.value, trust=trust)


def references_of(notes: Sequence[Note]) -> dict[str, str]:
    """An address for every record, by which it can be opened and cited."""
    records = [note.hit.record for note in notes if note.hit.record]
    return {record.id: f"{SCHEME}{record.short}" for record in records}


def _outsiders(passed: int) -> list[str]:
    if not passed:
        return []
    return [f"{passed} notes from outside were left out: they may be one in {OUTSIDE_PARTS} of what is shown"]


def injection_json(injection: Injection) -> dict[str, Any]:
    """The injection for programs: the block, and every item in it."""
    block = injection.guidance
    return {
        "text": block.text,
        "tokens": block.tokens,
        "records": [
            {"id": record.id, "version": record.version, "part": note.part.value, "address": f"{SCHEME}{record.id}"}
            for note in block.shown
            if (record := note.hit.record)
        ],
        "chunks": [hit.id for hit in block.hits if hit.chunk],
        "artifacts": [page.url for page in injection.texts],
    }
