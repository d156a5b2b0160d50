"""Consolidation without a model: records grouped, duplicates linked, replaced facts found, artifacts assembled.  Pure.

Similarity links; only equal words make one line of two records, and whether a fact replaces another is decided from
what both say (``engine.replacing``), date and trust.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from commonplace.engine.rendering import iso
from commonplace.engine.replacing import judge_all
from commonplace.model.documents import Document
from commonplace.model.ids import SHORT
from commonplace.model.records import Kind, Record, Trust
from commonplace.model.values import Value
from commonplace.redact.redaction import redact
from commonplace.text.blocks import INTRO, escape_tags
from commonplace.text.cleaning import estimate_tokens, one_line, plain_line, plural
from commonplace.text.words import terms

NEAR = 0.8  # Jaccard of terms from which on two records are linked as near duplicates
ORDER = ("decisions", "principles", "preferences", "procedures", "facts", "incidents")  # as people ask; others follow
SUMMARY_CHARS = 400  # of one record in the summary; a cut is marked, and MEMORY.md has the whole
SKILL_NAME_CHARS = 64  # as Agent Skills say
SKILL_DESCRIPTION_CHARS = 1024
OUTSIDE_PARTS = 3  # at most one line of the summary in so many may come from outside
STEPS = 2  # of a procedure that is worth a skill
SLUG_CHARS = 20
SHOWN_EVIDENCE = 3  # references in a line; the record has all

_NUMBERED = re.compile(r"^\s*(?:\d{1,3}[.)]|[-*+])\s+\S", re.MULTILINE)
_INLINE_STEP = re.compile(r"(?:^|\s)\(?\d{1,2}[.)]\s")
_COMMAND = re.compile(r"^\s*\$ \S|`[^`\n]{3,}`", re.MULTILINE)
_FENCED = re.compile(r"^```[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_NEGATIONS = frozenset({"no", "not", "never", "dont", "without", "avoid", "cannot", "cant", "must", "stop"})

MEMORY_LINES = 300  # of MEMORY.md: as much as somebody reads; recall finds the rest
MORE = "More is remembered than is listed here:"
BEYOND = f"beyond the {MEMORY_LINES} facts of MEMORY.md; recall finds it"
TITLE, SUMMARY_TITLE = "# Memory", "# Memory summary"


class Supersession(Value):
    """A fact that replaces another one."""

    old: Record
    new: Record
    why: str  #: in one sentence, without names


class Line(Value):
    """Records with the same content, and what is known about them."""

    records: tuple[Record, ...]  #: the oldest first
    near: tuple[str, ...] = ()  #: short ids of near duplicates
    stale: tuple[str, ...] = ()  #: short ids of the replaced records from which alone it was derived
    disputed: tuple[str, ...] = ()  #: short ids of records that it would replace, were it trusted as much


# What replaces what


def decide_supersession(old: Record, new: Record) -> Supersession | None:
    """Whether a record that something else says is replaced may be: same subject or key, later, not trusted less."""
    if not _about_the_same(old, new) or fact_date(new) <= fact_date(old) or new.authority < old.authority or old.pinned:
        return None
    what = "key" if old.key is not None and old.key == new.key else "subject"
    return Supersession(old=old, new=new, why=f"a later fact has the same {what}")


def _about_the_same(old: Record, new: Record) -> bool:
    if old.id == new.id or old.scope != new.scope or old.content == new.content:
        return False
    same_key = old.key is not None and old.key == new.key
    return same_key or (subject(old) is not None and subject(old) == subject(new) and old.category == new.category)


def fact_date(record: Record) -> datetime:
    """When it was true or happened, as far as is known."""
    return record.occurred_at or record.created_at


def subject(record: Record) -> str | None:
    """What it is about, from its metadata."""
    value = record.metadata.get("subject")
    return value if isinstance(value, str) and value else None


def _with_one_key(records: Sequence[Record]) -> list[tuple[Record, Record]]:
    """Pairs with the same key, the older first."""
    groups: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda one: (fact_date(one), one.id)):
        if record.key is not None:
            groups.setdefault(record.key, []).append(record)
    return [(old, new) for group in groups.values() for at, old in enumerate(group) for new in group[at + 1 :]]


def find_supersessions(
    records: Sequence[Record], further: Iterable[tuple[Record, Record]] = ()
) -> tuple[list[Supersession], list[tuple[Record, Record]]]:
    """What replaces what, each old record by the latest one; and pairs of which a person has to say.

    A record that came since the last run is compared with all; ``further`` are pairs that a model proposed.
    """
    decided: dict[str, Supersession] = {}
    asked: dict[str, tuple[Record, Record]] = {}
    said = [(old, new, decide_supersession(old, new)) for old, new in [*_with_one_key(records), *further]]
    fresh = frozenset(record.id for record in records if record.consolidated_at is None)
    for old, new, sure in judge_all(records, fresh):
        why = "a later fact contradicts it"
        said.append((old, new, Supersession(old=old, new=new, why=why) if sure else None))
    for old, new, found in said:
        if found is None:
            asked.setdefault(new.id, (old, new))
        elif (held := decided.get(old.id)) is None or (fact_date(new), new.id) > (fact_date(held.new), held.new.id):
            decided[old.id] = found
    left = [(old, new) for old, new in asked.values() if not {old.id, new.id} & decided.keys()]
    return [decided[name] for name in sorted(decided)], left


# Likeness


def similarity(one: str, other: str) -> float:
    """How alike two texts are: terms in common, of all terms of both; 0..1."""
    return _jaccard(frozenset(terms(one)), frozenset(terms(other)))


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one and other else 0.0


def near_pairs(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Pairs of near duplicates; only texts that share a rare term are compared."""
    bags = [frozenset(terms(text)) for text in texts]
    where: dict[str, list[int]] = {}
    for number, bag in enumerate(bags):
        for term in bag:
            where.setdefault(term, []).append(number)
    seen: set[tuple[int, int]] = set()
    for number, bag in enumerate(bags):
        rare = sorted(bag, key=lambda term: (len(where[term]), term))[: max(1, round(len(bag) * (1 - NEAR)) + 1)]
        least, most = NEAR * len(bag), len(bag) / NEAR  # beyond that they cannot have enough in common
        for other in {candidate for term in rare for candidate in where[term] if candidate != number}:
            pair = (min(number, other), max(number, other))
            if least <= len(bags[other]) <= most and pair not in seen and _jaccard(bag, bags[other]) >= NEAR:
                seen.add(pair)
    yield from sorted(seen)


def same_meaning(one: str, other: str) -> bool:
    """Whether two texts are near-identical: alike, with the same numbers and the same denials."""
    return same_bag(frozenset(terms(one)), frozenset(terms(other)))


def same_bag(one: frozenset[str], other: frozenset[str]) -> bool:
    """The same of texts that were cut into terms already."""
    return _jaccard(one, other) >= NEAR and not any(
        term in _NEGATIONS or any(letter.isdigit() for letter in term) for term in one ^ other
    )


# Lines


def group_lines(
    records: Sequence[Record], *, stale: Mapping[str, Sequence[str]], disputed: Iterable[tuple[Record, Record]]
) -> list[Line]:
    """One line for records of a category with the same content; near duplicates refer to each other."""
    same: dict[tuple[str, str], list[Record]] = {}
    for record in sorted(records, key=lambda one: (fact_date(one), one.id)):
        same.setdefault((record.category, record.content), []).append(record)
    lines = [Line(records=tuple(group)) for group in same.values()]
    near: dict[int, list[str]] = {}
    for one, other in near_pairs([line.records[0].content for line in lines]):
        near.setdefault(one, []).append(lines[other].records[0].short)
        near.setdefault(other, []).append(lines[one].records[0].short)
    beaten: dict[str, list[str]] = {}
    for old, new in disputed:
        if new.authority < old.authority:
            beaten.setdefault(new.id, []).append(old.short)
    return [
        line.replace(
            near=tuple(near.get(number, ())),
            stale=tuple(name[:SHORT] for name in stale.get(line.records[0].id, ())),
            disputed=tuple(sorted(set(beaten.get(line.records[0].id, ())))),
        )
        for number, line in enumerate(lines)
    ]


def line_text(line: Line) -> str:
    """A line as an item of a list: the words whole, then where they come from."""
    parts = [escape_tags(part) for part in _content_lines(line.records[0].content)]
    notes = f"({'; '.join(_line_notes(line))})"
    if len(parts) == 1:
        return f"- {parts[0]} {notes}"
    return "\n".join([f"- {parts[0]}", *(f"  {part}" if part else "" for part in parts[1:]), f"  {notes}"])


def _content_lines(content: str) -> list[str]:
    """Every line of a text, with its own indentation and nothing that cannot be seen."""
    parts = []
    for part in content.split("\n"):
        shown = plain_line(part)
        lead = part[: len(part) - len(part.lstrip(" \t"))].replace("\t", "    ") if shown else ""
        parts.append(lead + shown)
    return parts


def _line_notes(line: Line) -> Iterator[str]:
    first = line.records[0]
    yield from (f"record {record.short}" for record in line.records)
    evidence = [ref for record in line.records for ref in evidence_of(record)]
    yield from (escape_tags(one_line(ref).replace("(", "").replace(")", "")) for ref in evidence[:SHOWN_EVIDENCE])
    yield f"{fact_date(first):%Y-%m-%d}"
    yield first.trust_mark
    if line.near:
        yield "nearly the same as " + ", ".join(f"{name}" for name in line.near)
    if line.disputed:
        yield "contradicts " + ", ".join(line.disputed) + ", trusted more"
    if line.stale:
        yield "stale: derived only from " + ", ".join(line.stale) + ", since replaced"


def evidence_of(record: Record) -> list[str]:
    """The references of its evidence."""
    found = record.metadata.get("evidence")
    return [str(ref) for ref in found] if isinstance(found, list) else []


# Artifacts


def memory_md(lines: Sequence[Line], prose: Sequence[Document] = ()) -> str:
    """The long-term document: every line under its category and, where several share one, its subject."""
    parts: list[str] = []
    groups: dict[str, list[Line]] = {}
    for line in lines:
        groups.setdefault(line.records[0].category, []).append(line)
    for category in sorted(groups, key=_place):
        parts.append(f"## {heading(category)}")
        parts += _by_subject(groups[category])
    if prose:
        parts.append("## From sessions")
        parts.append("\n".join(_prose(one) for one in prose))
    return "\n\n".join([TITLE, INTRO, *parts]) if parts else ""


def choose_lines(lines: Sequence[Line]) -> tuple[list[Line], frozenset[str]]:
    """Divide the lines: those that MEMORY.md has room for, in their order, and the records of the others.

    What is pinned comes first, then what a person wrote or approved, then what was recalled most, then the newest.
    """
    first = sorted(lines, key=lambda one: (not _is_pinned(one), not one.records[0].has_authority, *_worth(one)))
    chosen = {line.records[0].id for line in first[:MEMORY_LINES]}
    beyond = (record.short for line in first[MEMORY_LINES:] for record in line.records)
    return [line for line in lines if line.records[0].id in chosen], frozenset(beyond)


def _is_pinned(line: Line) -> bool:
    return any(record.pinned for record in line.records)


def more_note(count: int) -> str:
    """The last line of a MEMORY.md that has not room for everything."""
    return f"{MORE} {plural(count, 'further fact')}; `commonplace recall` and `commonplace list` find them."


def _place(category: str) -> tuple[int, str]:
    return (ORDER.index(category) if category in ORDER else len(ORDER), category)


def heading(category: str) -> str:
    """A category as people write it."""
    return category.replace("_", " ").capitalize()


def _by_subject(lines: Sequence[Line]) -> Iterator[str]:
    groups: dict[str, list[Line]] = {}
    for line in lines:
        groups.setdefault(plain_line(subject(line.records[0]) or ""), []).append(line)
    shared = sorted(name for name, group in groups.items() if name and len(group) > 1)
    loose = [line for line in lines if plain_line(subject(line.records[0]) or "") not in shared]
    if loose:
        yield "\n".join(line_text(line) for line in loose)
    for name in shared:
        yield f"### {escape_tags(name)}"
        yield "\n".join(line_text(line) for line in groups[name])


def _prose(extraction: Document) -> str:
    parts = [escape_tags(part) for part in _content_lines((extraction.content or "").strip())]
    reference = f"(session:{plain_line(extraction.name).replace('(', '').replace(')', '')})"
    return "\n".join([f"- {parts[0]}", *(f"  {part}" if part else "" for part in parts[1:]), f"  {reference}"])


def summary_md(lines: Sequence[Line], *, most: int) -> str:
    """The compact text: pinned first, then what was recalled most, then the newest; within the limit of tokens.

    Each line ends with the trust of its record, and at most a third of them come from outside; a last line counts the
    others.
    """
    left = most - estimate_tokens(f"{SUMMARY_TITLE}\n\n{left_out_note(len(lines))}\n")
    outside_left = left // OUTSIDE_PARTS  # or what was recalled most from outside would take the room of all else
    fitting: list[tuple[str, bool]] = []
    for line in sorted(lines, key=_worth):
        item, outside = _summary_item(line), line_trust(line) is Trust.EXTERNAL
        cost = estimate_tokens(item + "\n")
        if cost <= (min(left, outside_left) if outside else left):
            fitting.append((item, outside))
            left -= cost
            outside_left -= cost if outside else 0
    items = limit_outside(fitting)
    shown = sum(item in items for item, outside in fitting if outside)
    passed = sum(line_trust(line) is Trust.EXTERNAL for line in lines) - shown
    noted = [*items, *([left_out_note(passed)] if passed else [])]
    return "\n".join([SUMMARY_TITLE, "", *noted]) if noted else ""


def limit_outside(items: Sequence[tuple[str, bool]]) -> list[str]:
    """Return the lines, of which at most a third come from outside; the last ones of those are left out.

    An item is a line, and whether it comes from outside.
    """
    inside = sum(not outside for _, outside in items)
    room = inside // (OUTSIDE_PARTS - 1)
    shown: list[str] = []
    for item, outside in items:
        if not outside or room > 0:
            shown.append(item)
            room -= outside
    return shown


def line_trust(line: Line) -> Trust:
    """Return whose word a line counts as: that of the most trusted record that says it."""
    return max(record.authority for record in line.records)


def left_out_note(count: int) -> str:
    """Return the line of a summary that counts what was left out of it."""
    return f"- {plural(count, 'note')} from outside left out; MEMORY.md has them"


def _worth(line: Line) -> tuple[bool, int, float, str]:
    pinned = _is_pinned(line)
    used = sum(record.usage.recalls for record in line.records)
    newest = max(line.records, key=lambda record: (fact_date(record), record.id))
    return not pinned, -used, -fact_date(newest).timestamp(), newest.id


def _summary_item(line: Line) -> str:
    record = max(line.records, key=lambda one: one.authority)
    text = escape_tags(plain_line(record.content))
    cut = text if len(text) <= SUMMARY_CHARS else f"{text[:SUMMARY_CHARS].rstrip()} [cut; MEMORY.md has the whole]"
    return f"- {record.category}: {cut} (record {record.short}; {record.trust_mark})"


def skills_of(records: Sequence[Record]) -> dict[str, str]:
    """A playbook for each procedure that has steps and a person's authority, by its path."""
    found: dict[str, str] = {}
    for record in sorted(records, key=lambda one: one.id):
        if record.has_authority and is_playbook(record):
            name = _free_name(skill_name(record.key or subject(record) or _first_words(record.content)), found)
            found[f"skills/{name}/SKILL.md"] = _skill(name, record)
    return found


def is_playbook(record: Record) -> bool:
    """Whether a record is a procedure with steps, which a skill can be made of."""
    return record.kind is Kind.PROCEDURAL and steps(record.content) >= STEPS


def steps(text: str) -> int:
    """How many steps or commands a text has."""
    inside = sum(len(block.strip().splitlines()) for block in _FENCED.findall(text))
    numbered = max(len(_NUMBERED.findall(text)), len(_INLINE_STEP.findall(text)))
    return max(numbered, inside + len(_COMMAND.findall(_FENCED.sub("", text))))


def skill_name(text: str) -> str:
    """A name as Agent Skills have it: small letters, digits and single hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:SKILL_NAME_CHARS].strip("-") or "procedure"


def _first_words(text: str) -> str:
    """What it is called before it begins: up to six words, not beyond a colon or the end of a sentence."""
    title = re.split(r"[:.\n(]", text, maxsplit=1)[0]
    return " ".join(re.findall(r"[A-Za-z0-9]+", title)[:6])


def _free_name(name: str, taken: Mapping[str, str]) -> str:
    number, candidate = 1, name
    while f"skills/{candidate}/SKILL.md" in taken:
        number += 1
        candidate = f"{name[: SKILL_NAME_CHARS - 5]}-{number}"
    return candidate


def _skill(name: str, record: Record) -> str:
    source = "; ".join(_line_notes(Line(records=(record,))))
    body = "\n".join(escape_tags(part) for part in _content_lines(record.content))
    return f"{frontmatter(name, record.content)}\n{body}\n\nSource: {source}"


def frontmatter(name: str, description: str) -> str:
    """The head of a skill; the description is one line of plain text."""
    line = re.sub(r"[<>`]", "", plain_line(description)).replace(" ⏎ ", " ")[:SKILL_DESCRIPTION_CHARS].strip()
    return f"---\nname: {name}\ndescription: {json.dumps(line or name, ensure_ascii=False)}\n---\n"


# What is written of each session


def raw_memories_md(extractions: Sequence[Document]) -> str:
    """What was made of each session, one after the other."""
    parts = [
        f"## {plain_line(one.name)}\n\n{escape_tags((one.content or '').strip()) or 'Nothing.'}" for one in extractions
    ]
    return "\n\n".join(["# Raw Memories", *(parts or ["No raw memories yet."])])


def rollout_summaries(extractions: Sequence[Document]) -> dict[str, str]:
    """A synopsis of each session, by its path."""
    found: dict[str, str] = {}
    for one in extractions:
        summary = one.metadata.get("summary")
        head = f"thread_id: {plain_line(one.name)}\nupdated_at: {iso(one.updated_at)}"
        found[_rollout_path(one)] = f"{head}\n\n{escape_tags(str(summary or '').strip())}".rstrip()
    return found


def _rollout_path(extraction: Document) -> str:
    slug = extraction.metadata.get("slug")
    plain = str(slug) if slug and not redact(str(slug)).findings else ""  # small letters would hide a secret
    slug = re.sub(r"[^a-z0-9]+", "_", plain.lower()).strip("_")[:SLUG_CHARS].strip("_")
    return f"rollout_summaries/{safe_part(extraction.name)}{'-' + slug if slug else ''}.md"


def safe_part(name: str) -> str:
    """A name as one part of a path; names that differ stay different."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-")[:80]
    if plain == name:
        return plain
    from hashlib import sha256  # noqa: PLC0415 - nearly every session is named by plain letters

    return f"{plain or 'session'}-{sha256(name.encode()).hexdigest()[:8]}"
