"""What other tools keep, read as facts with their origin: files of guidance, notes, graphs, exports.  Pure: texts in.

Nothing of it is an instruction here: it comes in as what an import says, with the least trust, and is quoted as data
wherever it is shown.  The originals are only read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from commonplace.learning.extract_gate import worthless
from commonplace.model.errors import InvalidInput
from commonplace.model.records import Json, Kind
from commonplace.model.values import Value
from commonplace.text.blocks import Block, blocks, unreferenced

BEGIN, END = "<!-- commonplace:begin", "<!-- commonplace:end -->"  # around what we have written into somebody's file
SHORT_DIGEST = 16
HEADINGS_MOST = 6  # of a block's headings that it is found by

#: Which of the five categories a heading or a tool's own category speaks of; the first that fits.
_CATEGORIES = (
    (re.compile(r"decision|decid|architect|stack|choice", re.IGNORECASE), "decisions"),
    (re.compile(r"how.?to|procedure|workflow|steps|runbook|command|setup|build|deploy", re.IGNORECASE), "procedures"),
    (re.compile(r"incident|gotcha|pitfall|problem|issue|bug|trouble|error", re.IGNORECASE), "incidents"),
    (re.compile(r"prefer|style|taste|person|user|like", re.IGNORECASE), "preferences"),
    (re.compile(r"rule|principle|guid|convention|polic|always|never", re.IGNORECASE), "principles"),
)
_KINDS = {"semantic": "decisions", "procedural": "procedures", "episodic": "incidents"}
_OURS = re.compile(re.escape(BEGIN) + r".*?(?:" + re.escape(END) + r"|\Z)", re.DOTALL)
_FRONTMATTER = re.compile(r"\A---[ \t]*\n.*?\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_OBSERVATION = re.compile(r"[-*+]\s+\[([^\]\[]+)\]\s+(.+)", re.DOTALL)
_RELATION = re.compile(r"[-*+]\s+(.+?)\s+\[\[([^\]]+)\]\](.*)", re.DOTALL)
_TAG = re.compile(r"(?:^|\s)#([\w/-]+)")


class Found(Value):
    """One thing that another tool knew."""

    content: str
    category: str
    ref: str  #: where it was, and what it said: the same again is no news
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Json] = {}
    occurred_at: datetime | None = None
    kind: Kind | None = None


def guidance(name: str, text: str, *, default: str = "principles") -> Iterator[Found]:
    """The blocks of a Markdown file under their headings; what we wrote into it ourselves is left out."""
    plain = _FRONTMATTER.sub("", _OURS.sub("", text.replace("\r\n", "\n")))
    for block in _joined(blocks(plain)):
        content = unreferenced(block.text)
        if worthless(content) is None:
            yield _from_block(name, block, content, default)


def _joined(found: Iterable[Block]) -> Iterator[Block]:
    """Blocks that say something; a piece of code belongs to what is said before it."""
    held: Block | None = None
    for block in found:
        if held and block.text.startswith(("```", "~~~")) and block.path == held.path:
            held = held.replace(text=f"{held.text}\n\n{block.text}")
            continue
        if held and not held.level:
            yield held
        held = block
    if held and not held.level:
        yield held


def _from_block(name: str, block: Block, content: str, default: str) -> Found:
    headings = [line.lstrip("#").strip() for line in block.path][-HEADINGS_MOST:]
    spoken = next((found for heading in reversed(headings) if (found := _category(heading))), None)
    metadata: dict[str, Json] = {"keywords": list[Json](headings), "file": name} if headings else {"file": name}
    return Found(content=content, category=spoken or default, ref=_ref(name, content), metadata=metadata)


def notes(name: str, text: str) -> Iterator[Found]:
    """A note of basic-memory: its observations with their category and tags, its relations, and its prose."""
    title = _title(name, text)
    prose: list[str] = []
    for block in blocks(_FRONTMATTER.sub("", text.replace("\r\n", "\n"))):
        if observed := _OBSERVATION.fullmatch(block.text):
            yield _noted(name, title, observed[2], observed[1])
        elif (related := _RELATION.fullmatch(block.text)) and not block.level:
            said = f"{title} {related[1]} {related[2]}{related[3]}"
            yield Found(content=said, category="decisions", ref=_ref(name, said), metadata={"file": name})
        else:
            prose.append(block.text)
    yield from guidance(name, "\n\n".join(prose), default="decisions")


def _noted(name: str, title: str, said: str, category: str) -> Found:
    tags = tuple(_TAG.findall(said))
    content = f"{title}: {_TAG.sub('', said).strip()}"
    metadata: dict[str, Json] = {"file": name, "category": category, "keywords": [title]}
    return Found(
        content=content, category=_category(category) or "decisions", ref=_ref(name, content), tags=tags,
        metadata=metadata,
    )  # fmt: skip


def _title(name: str, text: str) -> str:
    """What a note is called: as its frontmatter says, else its first heading, else its file."""
    head = _FRONTMATTER.match(text)
    said = re.search(r"^title:\s*(.+?)\s*$", head[0], re.MULTILINE) if head else None
    first = re.search(r"^#\s+(.+?)\s*$", text, re.MULTILINE)
    found = said or first
    return found[1].strip("'\"") if found else name.rsplit("/", 1)[-1].removesuffix(".md")


def graph(name: str, text: str) -> Iterator[Found]:
    """The knowledge graph of the MCP reference server, one JSON object a line: entities and relations."""
    for number, line in enumerate(text.split("\n"), start=1):  # a text in it may hold other marks of a line's end
        if not line.strip():
            continue
        said = _parsed(line, f"{name}:{number}")
        where = f"{name}:{number}"
        if said.get("type") == "entity":
            yield from _entity(name, said, where)
        elif said.get("type") == "relation":
            parts = [_text(said, key, where) for key in ("from", "relationType", "to")]
            content = " ".join(part.replace("_", " ") if at == 1 else part for at, part in enumerate(parts))
            yield Found(content=content, category="decisions", ref=_ref(name, content), metadata={"file": name})
        else:
            raise InvalidInput(f"{where}: neither an entity nor a relation")


def _entity(name: str, said: Mapping[str, Any], where: str) -> Iterator[Found]:
    subject, sort = _text(said, "name", where), _text(said, "entityType", where)
    observations = said.get("observations", [])
    if not isinstance(observations, list) or not all(isinstance(one, str) for one in observations):
        raise InvalidInput(f"{where}: the observations of {subject!r} are not a list of texts")
    metadata: dict[str, Json] = {"file": name, "keywords": [subject]}
    for one in observations:
        content = f"{subject}: {one}"
        yield Found(
            content=content, category=_category(sort) or "decisions", ref=_ref(name, content), tags=(sort,),
            metadata=metadata,
        )  # fmt: skip


def mem0(name: str, text: str) -> Iterator[Found]:
    """An export of mem0: a list of memories, or an object that has one under ``results`` or ``memories``."""
    said = _parsed(text, name, anything=True)
    rows = next((said[key] for key in ("results", "memories") if key in said), None) if isinstance(said, dict) else said
    for number, row in enumerate(_rows(rows, name)):
        where = f"{name}: memory {number}"
        content = next((row[key] for key in ("memory", "data", "text") if isinstance(row.get(key), str)), None)
        if content is None:
            raise InvalidInput(f"{where} has no text under 'memory'")
        labels = row.get("categories") or []
        tags = tuple(str(one) for one in labels) if isinstance(labels, list) else ()
        owner: dict[str, Json] = {key: row[key] for key in ("user_id", "agent_id") if isinstance(row.get(key), str)}
        yield Found(
            content=content, category=next(filter(None, map(_category, tags)), "preferences"), tags=tags,
            ref=_ref(f"mem0:{row.get('id', number)}", content), metadata={"file": name} | owner,
            occurred_at=_moment(row.get("created_at"), where),
        )  # fmt: skip


def role_export(name: str, text: str) -> Iterator[Found]:
    """An export of role memory, the public implementation's or ours: a list of memories with their types."""
    for number, row in enumerate(_rows(_parsed(text, name, anything=True), name)):
        where = f"{name}: memory {number}"
        content, sort = _text(row, "content", where), row.get("memory_type") or "semantic"
        if not isinstance(sort, str) or sort not in _KINDS:
            raise InvalidInput(f"{where}: {sort!r} is not a memory_type; use {', '.join(_KINDS)}")
        about: dict[str, Json] = {"file": name, "category": str(row.get("category") or "general")}
        yield Found(
            content=content, category=_KINDS[sort], ref=_ref(f"role:{row.get('id', number)}", content), metadata=about,
            occurred_at=_moment(row.get("created_at"), where), kind=Kind(sort),
        )  # fmt: skip


#: How each sort of file is read.
READERS: Mapping[str, Callable[[str, str], Iterator[Found]]] = {
    "agents-md": guidance, "claude-memory": guidance, "basic-memory": notes, "mcp-graph": graph, "mem0": mem0,
    "initrunner": role_export,
}  # fmt: skip


def _category(word: str) -> str | None:
    return next((category for fits, category in _CATEGORIES if fits.search(word)), None)


def _ref(name: str, content: str) -> str:
    said = content.encode(errors="surrogatepass")  # whether it may be kept is for the gate to say
    return f"{name}#{sha256(said).hexdigest()[:SHORT_DIGEST]}"


def _parsed(text: str, where: str, *, anything: bool = False) -> Any:
    try:
        said = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{where}: not JSON: {error}") from error
    if not anything and not isinstance(said, dict):
        raise InvalidInput(f"{where}: not a JSON object")
    return said


def _rows(said: Any, name: str) -> list[dict[str, Any]]:
    if not isinstance(said, list) or not all(isinstance(row, dict) for row in said):
        raise InvalidInput(f"{name} holds no list of memories")
    return said


def _text(said: Mapping[str, Any], key: str, where: str) -> str:
    value = said.get(key)
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(f"{where}: {key!r} is missing or no text")
    return value


def _moment(said: Any, where: str) -> datetime | None:
    """A date; one without a zone is taken as UTC."""
    if said in (None, ""):
        return None
    try:
        moment = datetime.fromisoformat(said)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{where}: {said!r} is not a date") from None
