"""Find what a new record replaces, or may replace, among the live ones: one rule for every way in.

A record is closed only by a later one that contradicts it (``text.replacement``) and is trusted no less; a pinned one
is never closed without a person.  Where code is not sure both stay live, and the newer one names the other
(``review.HeldChange``): the review queue shows the two until a person has said which holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from commonplace.engine.admission import search_terms
from commonplace.engine.review import SUPERSEDE, HeldChange
from commonplace.engine.tombstones import normal_form
from commonplace.model.changes import Change, Put, Supersede
from commonplace.model.ports import Store
from commonplace.model.queries import Filter, Order, State
from commonplace.model.records import Kind, Record
from commonplace.model.scopes import Scope
from commonplace.model.values import Value
from commonplace.text.replacement import STATEMENT_CHARS, Relation, compare
from commonplace.text.words import plan, terms

LOOKED_AT = 24  # records with the same words, of which one may be contradicted
EVENTS = frozenset({"incidents"})  # what happened does not replace what happened before
KINDS = frozenset({Kind.SEMANTIC, Kind.PROCEDURAL})  # working memory has keys, episodes happened
COMPARED = 10  # of many that come at a time, the nearest ones alone
SHOWN_CHARS = 120  # of a record that is named in a note


class Rivals(Value):
    """What a record does to the live ones, and they to it."""

    closes: tuple[Record, ...] = ()  #: it contradicts them and is later
    closed_by: Record | None = None  #: it is older than this one, which contradicts it
    asks: tuple[Record, ...] = ()  #: it may replace them; a person should say
    same: Record | None = None  #: one that says the same


def since(record: Record) -> datetime:
    """Return from when on a record holds, as far as is known."""
    return record.occurred_at or record.created_at


def subject_of(record: Record) -> str | None:
    """Return the subject that somebody gave to a record."""
    subject = record.metadata.get("subject") or record.key
    return subject.casefold() if isinstance(subject, str) else None


def is_comparable(record: Record) -> bool:
    """Whether a record can replace another one by what it says."""
    return (
        record.kind in KINDS and record.category not in EVENTS and not record.held
        and record.archived_at is None and len(record.content) <= STATEMENT_CHARS
    )  # fmt: skip


def find_rivals(store: Store, record: Record, *, now: datetime, among: Sequence[Record] = ()) -> Rivals:
    """Return what a record that is about to be stored does to the live ones of its scope; ``among``: to these too."""
    if not is_comparable(record):
        return Rivals()
    where = Filter(scopes=frozenset({record.scope}), at=now, kinds=KINDS, states=frozenset({State.LIVE}))
    found = store.match(where, plan(f"{record.content} {subject_of(record) or ''}"), limit=LOOKED_AT)
    return judge(record, [*among, *(one.record for one in found if one.record is not None)])


def relate(old: Record, new: Record) -> Relation:
    """Return what the later of two records does to the older one.

    What both say decides; the same subject, by somebody's word, makes a question of nothing and an
    answer of a question.
    """
    if (old.key or new.key) and subject_of(old) != subject_of(new):
        return Relation.NONE  # what has a key is replaced by its key
    relation = compare(old.content, new.content)
    if subject_of(old) is None or subject_of(old) != subject_of(new) or old.category != new.category:
        return relation
    stronger = {Relation.NONE: Relation.MAY_REPLACE, Relation.MAY_REPLACE: Relation.REPLACES}
    return stronger.get(relation, relation)


def judge(record: Record, others: Iterable[Record]) -> Rivals:
    """Return what a record does to others, the nearest of them first."""
    closes: list[Record] = []
    later: list[Record] = []
    asks: list[Record] = []
    for other in others:
        if other.id == record.id or other.scope != record.scope or not is_comparable(other):
            continue
        if normal_form(other.content) == normal_form(record.content):
            return Rivals(same=other)
        old, new = (other, record) if since(record) >= since(other) else (record, other)
        relation = relate(old, new)
        if relation in (Relation.NONE, Relation.SAME):
            continue
        sure = relation is Relation.REPLACES and new.authority >= old.authority and not old.pinned
        if sure:
            (closes if old is other else later).append(other)
        elif old is other:
            asks.append(other)
    return Rivals(closes=tuple(closes), closed_by=max(later, key=since, default=None), asks=tuple(asks))


def closing(old: Record, new: Record, *, now: datetime) -> Supersede:
    """Return the change that ends a record from when on the new one holds."""
    return Supersede(id=old.id, by=new.id, at=since(new), now=now)


def naming(record: Record, rivals: Rivals) -> Record:
    """Return a live record with the first of those that it may replace named in it, for the review queue."""
    if not rivals.asks:
        return record
    target = rivals.asks[0]
    change = HeldChange(action=SUPERSEDE, target=target.id, version=target.version)
    return record.replace(metadata=change.metadata(record.metadata))


def notes_of(record: Record, rivals: Rivals) -> Iterator[str]:
    """Say what was closed and what is asked, and how to answer."""
    for old in rivals.closes:
        yield f"it replaces record {old.short} ({_words(old)}); `commonplace record restore` brings that back"
    if rivals.closed_by:
        yield f"record {rivals.closed_by.short} ({_words(rivals.closed_by)}) is later: this one is kept as the past"
    for old in rivals.asks[:1]:
        yield (
            f"it may replace record {old.short} ({_words(old)}): if so, save it again with supersedes {old.short}, or"
            f" `commonplace review approve {record.short}`; if both hold, add --keep-both"
        )


def _words(record: Record) -> str:
    text = " ".join(record.content.split())
    return f'"{text}"' if len(text) <= SHOWN_CHARS else f'"{text[:SHOWN_CHARS].rstrip()} …"'


# Many at a time


def judge_all(records: Sequence[Record], fresh: frozenset[str]) -> Iterator[tuple[Record, Record, bool]]:
    """Yield an older record, a later one that bears on it, and whether it replaces it for certain.

    Only pairs with a fresh record are judged: what was compared before is not compared again.
    """
    index = _Index([one for one in records if is_comparable(one)])
    for record in index.records:
        if record.id not in fresh:
            continue
        rivals = judge(record, index.nearest(record))
        yield from ((old, record, True) for old in rivals.closes)
        yield from ((old, record, False) for old in rivals.asks[:1])
        if rivals.closed_by:
            yield record, rivals.closed_by, True


class _Index:
    """Records by their words, to find those that speak of the same."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = sorted(records, key=lambda one: (since(one), one.id))
        self._words = [frozenset(terms(one.content)) for one in self.records]
        self._where: dict[str, list[int]] = {}
        for number, words in enumerate(self._words):
            for word in words:
                self._where.setdefault(word, []).append(number)
        self._number = {one.id: number for number, one in enumerate(self.records)}

    def nearest(self, record: Record) -> list[Record]:
        """Return the records with the rarest words in common, the nearest first."""
        own = self._number[record.id]
        weight: dict[int, float] = {}
        for word in self._words[own]:
            places = self._where[word]
            for number in places if len(places) <= len(self.records) / 2 or len(self.records) <= LOOKED_AT else ():
                weight[number] = weight.get(number, 0.0) + 1 / len(places)
        best = sorted((-score, number) for number, score in weight.items() if number != own)
        return [self.records[number] for _, number in best[:COMPARED]]


def changes_for(store: Store, scopes: Iterable[Scope], fresh: Iterable[str], *, now: datetime) -> list[Change]:
    """Return the changes that close what fresh records replace, and name in them what they may replace."""
    where = Filter(scopes=frozenset(scopes), at=now, kinds=KINDS, states=frozenset({State.LIVE}))
    latest: dict[str, tuple[Record, Record]] = {}
    asked: dict[str, tuple[Record, Record]] = {}
    for old, new, sure in judge_all(store.find(where, order=Order.ID, limit=-1), frozenset(fresh)):
        if not sure:
            asked.setdefault(new.id, (old, new))
        elif old.id not in latest or since(new) > since(latest[old.id][1]):
            latest[old.id] = old, new
    open_pairs = [(old, new) for old, new in asked.values() if not {old.id, new.id} & latest.keys()]
    named = [naming(new, Rivals(asks=(old,))) for old, new in open_pairs]
    puts = [Put(record=one, terms=search_terms(one), expect=one.version) for one in named]
    return [*(closing(old, new, now=now) for old, new in latest.values()), *puts]
