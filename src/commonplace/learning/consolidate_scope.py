"""What one consolidation shows a model: what is new, what it may touch, and nothing else.

A consolidation costs what changed.  Facts of MEMORY.md that are far from everything new are not shown; they stay where
they are, and the answer is merged into them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from commonplace.learning.consolidate_rules import Line, line_text
from commonplace.learning.hand_edits import Edits, merge_edits
from commonplace.model.documents import Document
from commonplace.model.values import Value
from commonplace.text.blocks import Block, OwnedBlock, references, strip_reference
from commonplace.text.cleaning import estimate_tokens
from commonplace.text.words import terms

SMALL_TOKENS = 1000  # a memory of so few is shown whole: that is cheap, and better put together
NEIGHBOURS = 6  # facts that are shown for each new one
SHARED_WORDS = 2  # that make two facts neighbours, the rarer the nearer
COMMON = 0.2  # a word in a larger share of all facts makes none
_END = "\0"  # no block has this text: what is put after it comes last


class Scope(Value):
    """What is shown, and what stays as it is."""

    shown: tuple[Block, ...]  #: facts of the present MEMORY.md that may be touched
    kept: tuple[Block, ...]  #: those that stay
    new: tuple[Line, ...]
    sessions: tuple[Document, ...]  #: extractions that no consolidation by a model has seen
    is_whole: bool = False  #: everything is shown: what an answer does not repeat is meant to go

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to ask about."""
        return not (self.shown or self.new or self.sessions)


def scope_of(
    facts: Sequence[Block], lines: Sequence[Line], sessions: Sequence[Document], *, named: frozenset[str], room: int
) -> Scope:
    """Divide what is remembered by what is new; ``named`` are the records that MEMORY.md names, ``room`` is in tokens.

    All that is new is shown, however much it is; of its neighbours as many as fit into what is left of one answer.
    """
    new = [line for line in lines if not {record.short for record in line.records} & named]
    if not new and not sessions:
        return Scope(shown=(), kept=tuple(facts), new=(), sessions=())
    if sum(estimate_tokens(fact.text) for fact in facts) <= SMALL_TOKENS:
        return Scope(shown=tuple(facts), kept=(), new=tuple(new), sessions=tuple(sessions))
    left = max(room - sum(estimate_tokens(line_text(line)) for line in new), room // 4)
    near: set[int] = set()
    for number in _neighbours(facts, [line.records[0].content for line in new]):
        left -= estimate_tokens(facts[number].text)
        if left < 0:
            break
        near.add(number)
    shown = tuple(fact for number, fact in enumerate(facts) if number in near)
    kept = tuple(fact for number, fact in enumerate(facts) if number not in near)
    return Scope(shown=shown, kept=kept, new=tuple(new), sessions=tuple(sessions))


def whole_scope(
    facts: Sequence[Block], lines: Sequence[Line], sessions: Sequence[Document], *, named: frozenset[str]
) -> Scope:
    """All there is, for a memory that no model has put together yet, or that is to be thought over."""
    new = tuple(line for line in lines if not {record.short for record in line.records} & named)
    return Scope(shown=tuple(facts), kept=(), new=new, sessions=tuple(sessions), is_whole=True)


def _neighbours(facts: Sequence[Block], texts: Sequence[str]) -> list[int]:
    """The facts that share rare words with a new one, the nearest first, each once."""
    bags = [frozenset(terms(strip_reference(fact.text))) for fact in facts]
    counts: dict[str, int] = {}
    for bag in bags:
        for word in bag:
            counts[word] = counts.get(word, 0) + 1
    rare = {word for word, count in counts.items() if count <= max(SHARED_WORDS, COMMON * len(bags))}
    found: dict[int, float] = {}
    for text in texts:
        words = frozenset(terms(text)) & rare
        scores = {number: sum(1 / counts[word] for word in words & bag) for number, bag in enumerate(bags)}
        enough = [number for number, bag in enumerate(bags) if len(words & bag) >= min(SHARED_WORDS, len(words) or 1)]
        for number in sorted(enough, key=lambda one: -scores[one])[:NEIGHBOURS]:
            found[number] = max(found.get(number, 0.0), scores[number])
    return sorted((number for number in found if found[number] > 0), key=lambda number: -found[number])


def unseen_sessions(extractions: Sequence[Document], receipts: Sequence[Document]) -> list[Document]:
    """The extractions that changed since a model last consolidated; all of them if none ever has."""
    seen = next((one.created_at for one in receipts if one.metadata.get("model")), None)
    return [one for one in extractions if seen is None or one.updated_at >= seen]


def was_by_model(receipts: Sequence[Document]) -> bool:
    """Whether a model, or a host's agent, has put the present MEMORY.md together."""
    return bool(receipts) and bool(receipts[0].metadata.get("model"))


def with_kept(memory: str, kept: Sequence[Block]) -> str:
    """An answer with the facts that were not shown, each under its heading."""
    owned = tuple(OwnedBlock(path=fact.path, after=_END, text=fact.text) for fact in kept)
    return merge_edits(memory, Edits(owned=owned)) if owned else memory


def live_facts(facts: Sequence[Block], lines: Sequence[Line]) -> tuple[list[Block], list[Block]]:
    """Divide facts: those of which a record holds, or that name none; and those that hold no longer."""
    live = {record.short for line in lines for record in line.records}
    holds: list[Block] = []
    ended: list[Block] = []
    for fact in facts:
        names = references(fact.text)
        (holds if not names or names & live else ended).append(fact)
    return holds, ended


def skills_held(held: Mapping[str, str], answered: Mapping[str, str]) -> dict[str, str]:
    """The skills that an answer about something else leaves as they are."""
    named = {name.split("/")[1] for name in answered}
    return {name: text for name, text in held.items() if name.split("/")[1] not in named}
