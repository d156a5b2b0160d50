"""Check a proposal of a model or an agent: its form, its names, and that no fact is lost.  Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from commonplace.files.artifacts import check_name
from commonplace.learning.consolidate_rules import (
    BEYOND,
    MORE,
    TITLE,
    Line,
    frontmatter,
    heading,
    left_out_note,
    limit_outside,
    line_text,
    line_trust,
    same_bag,
    same_meaning,
    skill_name,
)
from commonplace.learning.hand_edits import Edits, block_digest, merge_edits
from commonplace.learning.model_prompts import BadReply, load_reply
from commonplace.model.documents import Document
from commonplace.model.errors import InvalidInput
from commonplace.model.ids import SHORT
from commonplace.model.records import Record, Trust
from commonplace.model.values import Value
from commonplace.text.blocks import (
    INTRO,
    Block,
    OwnedBlock,
    blocks,
    escape_tags,
    join_blocks,
    references,
    strip_reference,
)
from commonplace.text.cleaning import estimate_tokens
from commonplace.text.words import terms

MEMORY_BYTES = 262_144  # of a MEMORY.md that a model writes
FILE_BYTES = 65_536  # of a skill's file
SKILLS_MOST = 64
FILES_MOST = 32  # of one skill
REQUIRED = {"memory_md", "memory_summary", "skills"}
OPTIONAL = {"dropped", "superseded"}
_SKILL_KEYS = {"name", "content", "scripts", "templates", "examples"}
_ERASED = "a fact whose record was erased"
FOUNDED_SHARE = 0.75  # of the words of a line of a skill that one record of a person has to have
_HARD = re.compile(r"\S*[^\w\s,.:;!?()'\"-]\S*|\S*\w[.:/]\w\S*")  # a command, a path, an address
_TRUST_CLAIM = re.compile(r"[;,]?\s*\(?\btrust (?:user|agent|external)(?:, approved)?\b\)?")  # a model may not say so
_CUT = "[the rest is in MEMORY.md]"


class Dropped(Value):
    """A fact that is no longer in MEMORY.md, and why."""

    text: str
    reason: str
    by: str = "code"  #: or "model": then it counts towards the loss limit


class Reply(Value):
    """What a model proposes, in the form that was asked for."""

    memory: str
    summary: str
    skills: Mapping[str, str] = {}  #: text by path
    dropped: tuple[Dropped, ...] = ()
    superseded: tuple[tuple[str, str], ...] = ()  #: old and new, by the beginnings of their ids


class CheckedMemory(Value):
    """A MEMORY.md that passed the checks, before a person's blocks are merged in."""

    text: str
    dropped: tuple[Dropped, ...] = ()
    carried: tuple[str, ...] = ()  #: blocks that the proposal forgot and code put back


# The form


def parse_proposal(text: str) -> Reply:
    """Read an answer strictly; one rescue: the JSON object inside of other words."""
    data = load_reply(text)
    if not isinstance(data, dict):
        raise BadReply("the answer is not a JSON object")
    unknown, missing = data.keys() - REQUIRED - OPTIONAL, REQUIRED - data.keys()
    if unknown or missing:
        what = f"the unknown key {min(unknown)[:40]!r}" if unknown else f"no {min(missing)!r}"
        raise InvalidInput(f"the answer has {what}")
    memory, summary = _text(data, "memory_md"), _text(data, "memory_summary")
    if not memory or not summary:
        raise InvalidInput("the answer has an empty memory_md or memory_summary")
    if len(memory.encode()) > MEMORY_BYTES:
        raise InvalidInput(f"the answer's memory_md has more than {MEMORY_BYTES} bytes")
    return Reply(
        memory=memory, summary=summary, skills=_skills(_list(data, "skills")),
        dropped=tuple(_to_dropped(one) for one in _list(data, "dropped")),
        superseded=tuple(_pair(one) for one in _list(data, "superseded")),
    )  # fmt: skip


def _text(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key, "")
    if not isinstance(value, str):
        raise InvalidInput(f"{key!r} of the answer should be text")
    return value.strip()


def _list(data: Mapping[str, Any], key: str) -> list[Any]:
    value = data.get(key, [])
    if not isinstance(value, list):
        raise InvalidInput(f"{key!r} of the answer should be a list")
    return value


def _fields(value: Any, what: str, required: Collection[str], optional: Collection[str] = ()) -> dict[str, Any]:
    if not isinstance(value, dict) or not set(required) <= value.keys() <= {*required, *optional}:
        raise InvalidInput(f"{what} of the answer should have {', '.join(sorted(required))} and nothing unknown")
    return value


def _to_dropped(value: Any) -> Dropped:
    data = _fields(value, "an entry of 'dropped'", {"fact", "reason"})
    fact, reason = _text(data, "fact"), _text(data, "reason")
    if not fact or not reason:
        raise InvalidInput("an entry of 'dropped' of the answer lacks its fact or its reason")
    return Dropped(text=fact, reason=reason, by="model")


def _pair(value: Any) -> tuple[str, str]:
    data = _fields(value, "an entry of 'superseded'", {"old", "new"})
    return _text(data, "old").removeprefix("record ")[:SHORT], _text(data, "new").removeprefix("record ")[:SHORT]


# Skills


def _skills(data: Sequence[Any]) -> dict[str, str]:
    if len(data) > SKILLS_MOST:
        raise InvalidInput(f"the answer has more than {SKILLS_MOST} skills")
    found: dict[str, str] = {}
    for one in data:
        skill = _fields(one, "a skill", {"name"}, _SKILL_KEYS)
        name, content = skill_name(_text(skill, "name")), _text(skill, "content")
        if content:  # without it there is no skill
            found |= {f"skills/{name}/SKILL.md": _check_length(with_frontmatter(name, content), name)}
            found |= _files(name, skill)
    return found


def _files(name: str, skill: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for folder in ("scripts", "templates", "examples"):
        for value in _list(skill, folder):
            file = _fields(value, f"a file of the skill {name!r}", {"path", "content"})
            path = _text(file, "path").removeprefix(f"{folder}/")
            found[check_name(f"skills/{name}/{folder}/{path}")] = _check_length(_text(file, "content"), path)
    if len(found) > FILES_MOST:
        raise InvalidInput(f"the skill {name!r} of the answer has more than {FILES_MOST} files")
    return found


def _check_length(text: str, what: str) -> str:
    if len(text.encode()) > FILE_BYTES:
        raise InvalidInput(f"{what!r} of the answer has more than {FILE_BYTES} bytes")
    return escape_tags(text)


def with_frontmatter(name: str, content: str) -> str:
    """Return a skill with a head of ours; what a model put into its own, such as rights to tools, is left out."""
    head = re.match(r"---\s*\n(.*?)\n---\s*(?:\n|\Z)", content, re.DOTALL)
    body = content[head.end() :].strip() if head else content
    found = re.search(r"^description:[ \t]*(.+)$", head[1], re.MULTILINE) if head else None
    description = found[1].strip().strip("\"'") if found else body.lstrip("# ").split("\n")[0]
    return f"{frontmatter(name, description)}\n{body}".rstrip()


def founded_skills(skills: Mapping[str, str], lines: Sequence[Line]) -> tuple[dict[str, str], dict[str, str]]:
    """Divide skills: those of which every line says what a person wrote or approved, and the text of each other one.

    A skill is an instruction, so what only a model or a page says may not slip in among a person's steps.
    """
    founded = [record.content for line in lines for record in line.records if record.has_authority]
    named: dict[str, dict[str, str]] = {}
    for path, text in skills.items():
        named.setdefault(path.split("/")[1], {})[path] = text
    taken: dict[str, str] = {}
    left: dict[str, str] = {}
    for name, files in named.items():
        if all(_is_founded(text, founded) for text in files.values()):
            taken |= files
        else:
            left[name] = _without_head(files.get(f"skills/{name}/SKILL.md", ""))
    return taken, {name: text for name, text in left.items() if text}


def _is_founded(text: str, founded: Sequence[str]) -> bool:
    """Whether each line of a text is in the words of one of these records, and its commands and addresses verbatim."""
    bags = [(own, frozenset(terms(own))) for own in founded]
    for line in text.splitlines():
        if line.startswith("name: ") or not (words := frozenset(terms(line.removeprefix("description: ")))):
            continue
        hard = [token for token in _HARD.findall(line.strip("#->* ")) if terms(token)]
        if not any(
            len(words & bag) >= FOUNDED_SHARE * len(words) and all(token in own for token in hard) for own, bag in bags
        ):
            return False
    return True


def _without_head(text: str) -> str:
    head = re.match(r"---\s*\n.*?\n---\s*(?:\n|\Z)", text, re.DOTALL)
    return (text[head.end() :] if head else text).strip()


def mark_summary(text: str, lines: Sequence[Line]) -> str:
    """Mark each block of a model's summary with its trust; at most a third of them may come from outside.

    A block is trusted as the least of the records that it names, else as the line that says most of it; a model's
    words are nobody else's, so no block is trusted more than an agent.
    """
    items: list[tuple[str, bool]] = []
    for block in blocks(_TRUST_CLAIM.sub("", text)):
        trust = Trust.AGENT if block.level else min(Trust.AGENT, _trust_of(block.text, lines))
        mark = "" if block.level else f" (trust {trust.name.lower()})"
        items.append((f"{block.text}{mark}", trust is Trust.EXTERNAL))
    shown = limit_outside([item for item in items if not item[0].startswith("#")])
    kept = [text for text, _ in items if text in shown or text.startswith("#")]
    passed = len(items) - len(kept)
    whole = [Block(path=(), text=text) for text in [*kept, *([left_out_note(passed)] if passed else [])]]
    return join_blocks(whole)


def _trust_of(text: str, lines: Sequence[Line]) -> Trust:
    by_name = {record.short: record for line in lines for record in line.records}
    if named := [by_name[name] for name in references(text) if name in by_name]:
        return min(record.authority for record in named)
    words = frozenset(terms(strip_reference(text)))
    shares = [(len(words & frozenset(terms(line.records[0].content))), line_trust(line)) for line in lines]
    best = max((share for share, _ in shares), default=0)
    return min((trust for share, trust in shares if share == best and share), default=Trust.AGENT)


# Nothing vanishes


def check_proposal(
    reply: Reply, *, old: str, edits: Edits, records: Mapping[str, Record], lines: Sequence[Line],
    left_out: Mapping[str, str], limit: int | None, prose: Sequence[Document] = (),
    beyond: Collection[str] = (),
) -> CheckedMemory:  # fmt: skip
    """Make a proposal whole, or refuse it.

    ``old`` is the present MEMORY.md, ``records`` are all of the project by the beginnings of their ids, ``lines`` what
    is live.  ``limit`` is the share of old facts in percent that a proposal may drop with a reason; what it only forgot
    is put back.  ``beyond`` are records that hold and find no room in MEMORY.md.
    """
    text = without_unknown_references(with_title(escape_tags(reply.memory)), records)
    made = _ProposedFacts(text)
    facts = fact_blocks(old, edits)
    live = {record.short for line in lines for record in line.records}
    gone: list[Dropped] = []
    forgotten: list[Block] = []
    for fact in facts:
        if not made.has_fact(fact.text):
            drop = _end_of(fact, records, live, prose, beyond) or _find_drop(fact, reply.dropped)
            gone += [drop] if drop else []
            forgotten += [] if drop else [fact]
    _within(limit, sum(one.by == "model" for one in gone), len(facts))
    back = tuple(_put_back(fact) for fact in forgotten)
    text = merge_edits(text, Edits(owned=back))
    made = _ProposedFacts(text) if back else made
    mentioned = {name for one in gone for name in references(one.text)}
    missing = [line for line in lines if line.records[0].short not in mentioned and not made.has_fact(line_text(line))]
    dropped_new = _dropped_lines(missing, reply.dropped)
    added = tuple(
        _to_owned_block(line)
        for line in missing
        if line.records[0].short not in dropped_new
        and left_out.get(line.records[0].short) != block_digest(line.records[0].content)
    )
    return CheckedMemory(
        text=merge_edits(text, Edits(owned=added)), dropped=(*gone, *dropped_new.values()),
        carried=tuple(one.text for one in (*back, *added)),
    )  # fmt: skip


def with_title(text: str) -> str:
    """A MEMORY.md with our title and our first sentence."""
    found = blocks(text)
    rest = [block.text for block in found if block.level != 1 and block.text != INTRO and MORE not in block.text]
    return "\n\n".join([TITLE, INTRO, *rest]) if rest else ""


def without_unknown_references(text: str, records: Mapping[str, Record]) -> str:
    """A text without references to records that are not this project's."""
    for name in sorted(references(text) - records.keys()):
        text = re.sub(rf"record {name}(?:; ?)?", "", text)
    return text.replace(" ()", "")


def fact_blocks(text: str, edits: Edits) -> list[Block]:
    """Our blocks that are neither headings nor the introduction."""
    theirs = set(edits.texts)
    return [
        block
        for block in blocks(text, edits.owned)
        if not block.level and block.text != INTRO and block.text not in theirs and not block.text.startswith(MORE)
    ]


class _ProposedFacts:
    """The facts of a proposed MEMORY.md."""

    def __init__(self, text: str) -> None:
        texts = [block.text for block in blocks(text) if not block.level]
        self.named = {name for one in texts for name in references(one)}
        self.words = {block_digest(strip_reference(one)) for one in texts}
        self.bags = [frozenset(terms(strip_reference(one))) for one in texts]

    def has_fact(self, fact: str) -> bool:
        """Whether a fact is still there: every record that it names, or its words."""
        names = references(fact)
        if names and names <= self.named:
            return True
        own = strip_reference(fact)
        bag = frozenset(terms(own))
        return block_digest(own) in self.words or any(same_bag(bag, other) for other in self.bags)


def _end_of(
    fact: Block,
    records: Mapping[str, Record],
    live: Collection[str],
    prose: Sequence[Document],
    beyond: Collection[str],
) -> Dropped | None:
    """Return why a fact no longer holds: none of its records is live any more, or its session is out of reach."""
    names = references(fact.text)
    if names and not names & set(live):
        reasons = sorted({BEYOND if name in beyond else _why(records.get(name)) for name in names})
        text = fact.text if names <= records.keys() else _ERASED  # an erased text is not repeated
        return Dropped(text=text, reason="; ".join(reasons))
    if fact.path[-1:] == ("## From sessions",):
        session = re.search(r"\(session:([^()]*)\)\s*$", fact.text)
        if session and session[1] not in {one.name for one in prose}:
            return Dropped(text=fact.text, reason="its session is covered by records, was cleared or is out of reach")
    return None


def _why(record: Record | None) -> str:
    if record is None:
        return "the record was erased"
    if record.superseded_by:
        return f"superseded by record {record.superseded_by[:SHORT]}"
    if record.archived_at:
        return "the record was archived"
    return "the record waits for review" if record.held else "the record has expired"


def _find_drop(fact: Block, dropped: Sequence[Dropped]) -> Dropped | None:
    names, own = references(fact.text), strip_reference(fact.text)
    for one in dropped:
        by_name = names and (references(one.text) | {one.text[:SHORT]}) & names
        if by_name or same_meaning(own, strip_reference(one.text)):
            return one.replace(text=fact.text)
    return None


def _dropped_lines(lines: Sequence[Line], dropped: Sequence[Dropped]) -> dict[str, Dropped]:
    """Records that a proposal leaves out of MEMORY.md with a reason; in the store they stay."""
    found: dict[str, Dropped] = {}
    for line in lines:
        item = line_text(line)
        if drop := _find_drop(Block(path=(), text=item), dropped):
            found[line.records[0].short] = drop.replace(text=item)
    return found


def _within(limit: int | None, dropped: int, facts: int) -> None:
    if limit is not None and dropped * 100 > limit * facts:
        raise InvalidInput(
            f"the proposal would drop {dropped} of {facts} facts of MEMORY.md; the limit is {limit} percent"
        )


_END = "\0"  # no block has this text: what is put after it comes last


def _put_back(fact: Block) -> OwnedBlock:
    return OwnedBlock(path=fact.path, after=_END, text=fact.text)


def _to_owned_block(line: Line) -> OwnedBlock:
    return OwnedBlock(path=(TITLE, f"## {heading(line.records[0].category)}"), after=_END, text=line_text(line))


def cut_summary(text: str, *, most: int) -> str:
    """A summary within its limit of tokens, cut at the end of a block and marked."""
    if estimate_tokens(text) <= most:
        return text
    shortened = ""
    for block in blocks(text):
        longer = f"{shortened}\n{block.text}" if shortened and block.is_item else f"{shortened}\n\n{block.text}".strip()
        if estimate_tokens(f"{longer}\n\n{_CUT}") > most:
            break
        shortened = longer
    return f"{shortened}\n\n{_CUT}".strip() if shortened else text[: most * 2]
