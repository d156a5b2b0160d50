"""Files of other tools as a source of records: guidance, notes, knowledge graphs, exports.

Nothing in them is an instruction here: it is imported with the least trust and quoted as data wherever it is shown.
The originals are only read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any, Literal, TypeAlias

from commonplace.engine.transfer import Arrival, parse_json
from commonplace.files.user_files import read_text
from commonplace.learning import worthless_reason
from commonplace.model.errors import InvalidInput
from commonplace.model.records import Draft, Json, Kind
from commonplace.model.values import Value
from commonplace.text.blocks import Block, blocks, strip_reference
from commonplace.wire import decode

BEGIN, END = (
    "<!-- commonplace:begin",
    "<!-- commonplace:end -->",
)  # around what we have written into a file of the user's
SHORT_DIGEST = 16
HEADINGS_MOST = 6  # of a block's headings that it is found by
SKIPPED_FOLDERS = frozenset({"node_modules", "vendor", "dist", "build", "venv", "__pycache__"})

#: Which category a heading or a tool's own category means; the first that matches.
_CATEGORIES = (
    (re.compile(r"decision|decid|architect|stack|choice", re.IGNORECASE), "decisions"),
    (re.compile(r"how.?to|procedure|workflow|steps|runbook|command|setup|build|deploy", re.IGNORECASE), "procedures"),
    (re.compile(r"incident|gotcha|pitfall|problem|issue|bug|trouble|error", re.IGNORECASE), "incidents"),
    (re.compile(r"prefer|style|taste|like", re.IGNORECASE), "preferences"),
    (re.compile(r"rule|principle|guid|convention|polic|always|never", re.IGNORECASE), "principles"),
)
_LIKES = re.compile(r"\b(?:likes?|loves?|prefers?|hates?|dislikes?|favou?rite)\b", re.IGNORECASE)
_KINDS = {"semantic": "facts", "procedural": "procedures", "episodic": "incidents"}
_OURS = re.compile(re.escape(BEGIN) + r".*?(?:" + re.escape(END) + r"|\Z)", re.DOTALL)
FRONTMATTER = re.compile(r"\A---[ \t]*\n.*?\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_OBSERVATION = re.compile(r"[-*+]\s+\[([^\]\[]+)\]\s+(.+)", re.DOTALL)
_RELATION = re.compile(r"[-*+]\s+(.+?)\s+\[\[([^\]]+)\]\](.*)", re.DOTALL)
_TAG = re.compile(r"(?:^|\s)#([\w/-]+)")

Reader: TypeAlias = Callable[[str, str], Iterator[Arrival]]  #: from the name of a file and its text


class Format(Value):
    """How the files of one tool are found in a folder, and read."""

    read: Reader
    names: frozenset[str] = frozenset()  #: of its files
    endings: tuple[str, ...] = ()  #: or how they end

    def matches(self, name: str) -> bool:
        """Return whether a file of that name is one."""
        return name in self.names or (name.endswith(self.endings) and not name.startswith("."))


def find_files(form: str, path: str) -> list[str]:
    """Return the files of a format: the one that is named, or those in a folder; links are not followed."""
    if not os.path.exists(path):
        raise InvalidInput(f"there is no {path!r}")
    if not os.path.isdir(path):
        return [path]
    found: list[str] = []
    for folder, below, names in os.walk(path):
        below[:] = sorted(name for name in below if not name.startswith(".") and name not in SKIPPED_FOLDERS)
        found += (os.path.join(folder, name) for name in sorted(names) if FORMATS[form].matches(name))
    if not found:
        raise InvalidInput(f"nothing in {path!r} looks like {form}")
    return found


def read_files(form: str, files: Iterable[str], path: str) -> Iterator[Arrival]:
    """Yield what the files hold, named by where they lie below ``path``."""
    base = path if os.path.isdir(path) else os.path.dirname(path)
    for file in files:
        yield from FORMATS[form].read(os.path.relpath(file, base), read_text(file))


def _fact(name: str, content: str, category: str | None, *, origin: str = "", **more: Any) -> Arrival:
    """Return one fact of a file.  Its reference holds a digest of its words: the same again is a duplicate."""
    digest = sha256(content.encode(errors="surrogatepass")).hexdigest()  # whether it may be kept is for the gate to say
    ref = f"{origin or name}#{digest[:SHORT_DIGEST]}"
    metadata: dict[str, Json] = {"file": name, **more.pop("metadata", {})}
    draft = Draft(content=content, category=category or guess_category(content), ref=ref, metadata=metadata, **more)
    return Arrival(place=ref, draft=draft)


# Markdown


def guidance(name: str, text: str, *, default: str | None = "principles") -> Iterator[Arrival]:
    """Yield the blocks of a Markdown file under their headings, without those that we wrote into it ourselves."""
    plain = FRONTMATTER.sub("", _OURS.sub("", text.replace("\r\n", "\n")))
    for block in _with_code(blocks(plain)):
        content = strip_reference(block.text)
        if worthless_reason(content) is None:
            headings = [line.lstrip("#").strip() for line in block.path][-HEADINGS_MOST:]
            category = next((found for heading in reversed(headings) if (found := label_category(heading))), default)
            yield _fact(name, content, category, metadata={"keywords": headings} if headings else {})


def _with_code(found: Iterable[Block]) -> Iterator[Block]:
    """Yield the blocks that are no headings; a piece of code belongs to what is before it."""
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


def notes(name: str, text: str) -> Iterator[Arrival]:
    """Yield a note of basic-memory: its observations with their category and tags, its relations, and its prose."""
    title = _title(name, text)
    prose: list[str] = []
    for block in blocks(FRONTMATTER.sub("", text.replace("\r\n", "\n"))):
        if observed := _OBSERVATION.fullmatch(block.text):
            category, words = observed.groups()
            about = {"category": category, "keywords": [title]}
            content, tags = f"{title}: {_TAG.sub('', words).strip()}", frozenset(_TAG.findall(words))
            yield _fact(name, content, label_category(category), tags=tags, metadata=about)
        elif (related := _RELATION.fullmatch(block.text)) and not block.level:
            yield _fact(name, f"{title} {related[1]} {related[2]}{related[3]}", None)
        else:
            prose.append(block.text)
    yield from guidance(name, "\n\n".join(prose), default=None)


def _title(name: str, text: str) -> str:
    """Return the name of a note: as its frontmatter has it, else its first heading, else its file."""
    head = FRONTMATTER.match(text)
    titled = re.search(r"^title:\s*(.+?)\s*$", head[0], re.MULTILINE) if head else None
    found = titled or re.search(r"^#\s+(.+?)\s*$", text, re.MULTILINE)
    return found[1].strip("'\"") if found else name.rsplit("/", 1)[-1].removesuffix(".md")


# JSON


def graph(name: str, text: str) -> Iterator[Arrival]:
    """Yield the knowledge graph of the MCP reference server, one JSON object a line: entities and relations."""
    for number, line in enumerate(text.split("\n"), start=1):  # a text in it may hold other marks of a line's end
        if not line.strip():
            continue
        place = f"{name}:{number}"
        row = decode(dict[str, Any], parse_json(line, place), name=place)
        if row.get("type") == "entity":
            subject, sort = _text(row, "name", place), _text(row, "entityType", place)
            about = f"{place}: the observations of {subject!r}"
            for observation in decode(list[str], row.get("observations", []), name=about):
                content, tags = f"{subject}: {observation}", frozenset({sort})
                yield _fact(name, content, label_category(sort), tags=tags, metadata={"keywords": [subject]})
        elif row.get("type") == "relation":
            source, relation, target = (_text(row, key, place) for key in ("from", "relationType", "to"))
            yield _fact(name, f"{source} {relation.replace('_', ' ')} {target}", None)
        else:
            raise InvalidInput(f"{place}: neither an entity nor a relation")


def mem0(name: str, text: str) -> Iterator[Arrival]:
    """Yield an export of mem0: a list of memories, or an object that has one under ``results`` or ``memories``."""
    data = parse_json(text, name)
    rows = data.get("results", data.get("memories")) if isinstance(data, dict) else data
    for number, place, row in _rows(rows, name):
        content = next((row[key] for key in ("memory", "data", "text") if isinstance(row.get(key), str)), None)
        if content is None:
            raise InvalidInput(f"{place} has no text under 'memory'")
        labels = row.get("categories") or []
        tags = [str(label) for label in labels] if isinstance(labels, list) else []
        yield _fact(
            name, content, next(filter(None, map(label_category, tags)), None), tags=frozenset(tags),
            origin=f"mem0:{row.get('id', number)}", occurred_at=_date(row, place),
            metadata={key: row[key] for key in ("user_id", "agent_id") if isinstance(row.get(key), str)},
        )  # fmt: skip


def role_export(name: str, text: str) -> Iterator[Arrival]:
    """Yield an export of role memory, the public implementation's or ours: a list of memories with their types."""
    for number, place, row in _rows(parse_json(text, name), name):
        content, kinds = _text(row, "content", place), Literal["semantic", "procedural", "episodic"]
        kind = decode(kinds, row.get("memory_type") or "semantic", name=f"{place}: memory_type")
        yield _fact(
            name, content, _KINDS[kind], kind=Kind(kind), origin=f"role:{row.get('id', number)}",
            occurred_at=_date(row, place), metadata={"category": str(row.get("category") or "general")},
        )  # fmt: skip


FORMATS: Mapping[str, Format] = {
    "agents-md": Format(
        read=guidance, names=frozenset({"AGENTS.md", "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md", "MEMORY.md"})
    ),
    "claude-memory": Format(read=guidance, endings=(".md",)),
    "basic-memory": Format(read=notes, endings=(".md",)),
    "notes": Format(read=guidance, endings=(".md", ".markdown")),
    "mcp-graph": Format(read=graph, endings=(".json", ".jsonl")),
    "mem0": Format(read=mem0, endings=(".json",)),
    "initrunner": Format(read=role_export, endings=(".json",)),
}


def guess_category(content: str) -> str:
    """Return the category of a text that nothing labels: what somebody likes, else a fact."""
    return "preferences" if _LIKES.search(content) else "facts"


def label_category(word: str) -> str | None:
    """Return the category that a heading or another tool's label means, if it means one."""
    return next((category for pattern, category in _CATEGORIES if pattern.search(word)), None)


def _rows(data: Any, name: str) -> Iterator[tuple[int, str, dict[str, Any]]]:
    if not isinstance(data, list) or not all(isinstance(row, dict) for row in data):
        raise InvalidInput(f"{name} holds no list of memories")
    yield from ((number, f"{name}: memory {number}", row) for number, row in enumerate(data))


def _text(row: Mapping[str, Any], key: str, place: str) -> str:
    value = row.get(key)
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(f"{place}: {key!r} is missing or no text")
    return value


def _date(row: Mapping[str, Any], place: str) -> datetime | None:
    found: datetime | None = decode(datetime | None, row.get("created_at") or None, name=f"{place}: created_at")
    return found
