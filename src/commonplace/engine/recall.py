"""Recall: search a store by words and meaning, rank what it found, count what was used.

Every system that answers questions asks here; which records it may see, and what it shows of them, is its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from datetime import datetime

from commonplace.engine.embedding import query_and_chance
from commonplace.engine.ranking import rank
from commonplace.model.changes import Touch
from commonplace.model.errors import StoreBusy, StoreError, StoreReadOnly
from commonplace.model.ports import Embedder, Store
from commonplace.model.queries import Filter, Hit, Order, State, Survey
from commonplace.model.records import PROPOSAL
from commonplace.model.values import Value
from commonplace.text.question import Profile, parse_question, wanted_answers
from commonplace.text.words import plan, with_tools, word_weights

RECALL_LIMIT = 10
FEW = 30  # records, up to which a store is young
CANDIDATES = 80  # by words and by meaning, each, at least; with thirty one in a hundred answers is lost


class Recall(Value):
    """What was found, best first."""

    query: str
    hits: tuple[Hit, ...]
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, index: int) -> Hit:
        return self.hits[index]


def search(
    store: Store,
    embedder: Embedder | None,
    where: Filter,
    query: str,
    *,
    limit: int,
    candidates: int = CANDIDATES,
    profile: Profile | None = None,
) -> Recall | None:
    """Return what matches a question, best first; None if it has no words.

    ``candidates`` is how many the store looks at by words and by meaning, each.  An embedder that fails, or that the
    store's vectors do not come from, is a note: words still find what they find.
    """
    speakers = store.speakers(where.scopes) if where.chunks else ()
    asked = parse_question(query, speakers=speakers, now=where.as_of or where.at, profile=profile)
    planned = with_tools(plan(asked.text))
    if not planned.words:
        return None
    vector, chance, notes = query_and_chance(store, embedder, asked.text)
    survey = store.survey(where, planned, vector, limit=candidates)
    weights, few = word_weights(planned.words), None
    if vector is not None and profile is not Profile.WORKING and _is_young(survey):
        from commonplace.engine.young import compare_few  # noqa: PLC0415 - stores grow

        few = compare_few(
            survey.candidates, asked.text, weights=weights, wants=wanted_answers(query),
            embed_words=getattr(embedder, "embed_words", None), chance=chance,
        )  # fmt: skip
    phrases = phrases_in(query)
    most = 2 * candidates if phrases else limit
    ranked = rank(survey, asked, limit=most, weights=weights, few=few, chance=chance)
    return Recall(query=query, hits=tuple(_phrases_first(ranked, phrases)[:limit]), notes=notes)


def phrases_in(query: str) -> list[str]:
    """Return what a question puts between quotation marks."""
    quoted = query.replace("\u201c", '"').replace("\u201d", '"').split('"')[1::2] if query.count('"') != 1 else []
    return [phrase for one in quoted if (phrase := " ".join(one.split()).casefold())]


def _phrases_first(hits: Sequence[Hit], phrases: Sequence[str]) -> Sequence[Hit]:
    """Return hits with those first that have every phrase word for word: no other scores higher than they do."""
    if not phrases or not hits:
        return hits
    best = hits[0].score
    having = [hit for hit in hits if all(_has_phrase(hit.text, phrase) for phrase in phrases)]
    ids = {hit.id for hit in having}
    raised = [hit.replace(score=best, parts=(*hit.parts, ("phrase", best - hit.score))) for hit in having]
    return [*raised, *(hit for hit in hits if hit.id not in ids)]


def _has_phrase(text: str, phrase: str) -> bool:
    """Whether a text has a phrase between the ends of words."""
    words = " ".join(text.split()).casefold()
    at = words.find(phrase)
    while at >= 0:
        before, after = words[at - 1 : at], words[at + len(phrase) : at + len(phrase) + 1]
        if not (before.isalnum() and phrase[0].isalnum()) and not (after.isalnum() and phrase[-1].isalnum()):
            return True
        at = words.find(phrase, at + 1)
    return False


def _is_young(survey: Survey) -> bool:
    """Whether a store has so few records, and no session, that they can be compared one by one."""
    return survey.texts <= FEW and all(one.record and one.similarity is not None for one in survey.candidates)


def mark_replaced(store: Store, where: Filter, hits: Sequence[Hit]) -> list[Hit]:
    """Return hits with each turn marked whose fact was replaced, and the newer of two open rivals before the older."""
    turns = frozenset(hit.id for hit in hits if hit.chunk is not None)
    ended: dict[str | None, str | None] = {}
    if turns:
        past = Filter(scopes=where.scopes, at=where.at, states=frozenset({State.ARCHIVED}), sources=turns)
        ended = {one.source.ref: one.superseded_by for one in store.find(past, order=Order.ID, limit=-1)}
    marked = [hit.replace(replaced_by=ended[hit.id]) if ended.get(hit.id) else hit for hit in hits]
    return _newer_first(marked)


def _newer_first(hits: list[Hit]) -> list[Hit]:
    """Put a record that may replace another one before that one, with its score, until a person has decided."""
    place = {hit.record.id: at for at, hit in enumerate(hits) if hit.record is not None}
    for at, hit in enumerate(list(hits)):
        change = hit.record.metadata.get(PROPOSAL) if hit.record is not None else None
        older = place.get(str(change.get("target"))) if isinstance(change, dict) else None
        if older is not None and older < at and hit.record is not None:
            hits[older], hits[at] = hit.replace(score=hits[older].score), hits[older].replace(score=hit.score)
            place[hit.record.id], place[str(change.get("target")) if isinstance(change, dict) else ""] = older, at
    return hits


def newest(store: Store, where: Filter, *, limit: int) -> list[Hit]:
    """Return the newest records, for a question without words."""
    found = store.find(where, order=Order.NEWEST, limit=limit)
    return [Hit(score=1.0, record=record, parts=(("newest", 1.0),)) for record in found]


def count_use(store: Store, ids: Sequence[str], now: datetime, *, wait: bool = False) -> tuple[str, ...]:
    """Count a recall of each record; return notes, since it has answered all the same.

    Without ``wait`` a recall beside a writer is not counted, because a reader waits for nobody.
    """
    try:
        if ids:
            with nullcontext() if wait else store.without_waiting():
                store.apply([Touch(ids=tuple(ids), at=now)])
    except (StoreBusy, StoreReadOnly):  # a count less; of a store that can only be read its own notice says so
        pass
    except StoreError as error:
        return (f"the use of these records was not counted: {error}", *store.take_notices())
    return store.take_notices()


def searches_chunks(where: Filter) -> bool:
    """Return whether a filter can match chunks, which have no kind, category, tag, trust, state or past."""
    of_records = (
        where.kinds, where.categories, where.tags or None, where.as_of, where.trusts, where.metadata or None,
        where.since, where.until,
    )  # fmt: skip
    return where.states == frozenset({State.LIVE}) and all(one is None for one in of_records)
