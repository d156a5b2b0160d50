"""What a session is shown before it starts: the summary, the newest procedures, and the records that match its task.

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
from commonplace.learning.brief_layout import (
    OUTSIDE_PARTS,
    PROCEDURES,
    BriefMaterial,
    RenderedBrief,
    ShownText,
    limit_external,
    render_brief,
)
from commonplace.learning.brief_layout import SUMMARY as PLACE
from commonplace.learning.model_prompts import PROMPTS, prompt_files
from commonplace.model.errors import ConfigError, Forbidden, InvalidInput, StoreError
from commonplace.model.queries import Hit
from commonplace.model.records import Channel, Kind, Record, Trust
from commonplace.model.values import Value
from commonplace.text.words import plan

RULES = "read_path.md"

QUERY_CHARS = 4000  # of a task; the planner takes the first meaningful words of it
PROCEDURES_READ = 1000  # the newest, of any authority: a flood of an agent's hides no person's
DEEPER = 3  # times as many are asked for as are shown: some are set aside

_FRONT = re.compile(r"\A\s*---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_TITLE = re.compile(r"^title:[ \t]*(.+?)[ \t]*$", re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


class Injection(Value):
    """The block for one session, and what it was made from."""

    guidance: RenderedBrief
    query: str  #: what memory was asked
    budget: int | None = None
    summary_budget: int = 0  #: of the summary and the lessons together
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
    found = recall(query, limit=limit * DEEPER, budget=recall_budget, count=False)
    others = [hit for hit in found.hits if not _is_of(hit, session)]
    hits, passed = limit_external(others, limit=limit)
    procedures = _procedures(addresses, hits)
    pages, troubles = _artifacts(addresses)
    material = BriefMaterial(
        rules=rules, summary=shown_text(pages.get(SUMMARY)), lessons=shown_text(pages.get(LEARNED)),
        procedures=tuple(procedures), hits=tuple(hits), asked=bool(plan(query).words),
        references=references_of(hits, procedures),
    )  # fmt: skip
    block = render_brief(material, secret=addresses.secret(), budget=budget, summary_budget=summary_budget)
    in_it = {text.url for text in block.texts}
    return Injection(
        guidance=block, query=query, budget=budget, summary_budget=summary_budget,
        texts=tuple(page for page in pages.values() if page.url in in_it),
        notes=(*found.notes, *troubles, *_outsiders(passed), *block.notes),
    )  # fmt: skip


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


def _procedures(addresses: Addresses, hits: Sequence[Hit]) -> list[Record]:
    """The newest procedures that a person wrote or approved, but those that were recalled."""
    recalled = {hit.id for hit in hits}
    newest = addresses.memory.list(kinds=[Kind.PROCEDURAL], limit=PROCEDURES_READ)
    known = [record for record in newest if record.has_authority and record.id not in recalled]
    return known[:PROCEDURES]


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


def references_of(hits: Sequence[Hit], procedures: Sequence[Record]) -> dict[str, str]:
    """An address for every record, by which it can be opened and cited."""
    records = [hit.record for hit in hits if hit.record] + list(procedures)
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
            {"id": record.id, "version": record.version, "part": part, "address": f"{SCHEME}{record.id}"}
            for part, records in _parts(block)
            for record in records
        ],
        "chunks": [hit.id for hit in block.hits if hit.chunk],
        "artifacts": [page.url for page in injection.texts],
    }


def _parts(block: RenderedBrief) -> list[tuple[str, list[Record]]]:
    recalled = [hit.record for hit in block.hits if hit.record]
    return [("procedures", list(block.procedures)), ("recalled", recalled)]
