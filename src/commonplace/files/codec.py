"""A record as a Markdown file that people edit.  Pure: bytes and values, no disk and no clock.

A file is ``---``, YAML frontmatter, ``---``, an empty line, the content as it is, and one newline.

- The frontmatter has what a person may want to read or edit, and nothing that is empty.  What the database, Git, the
  id or the folder know already is not in it: version and date of the last change, the category, the date of creation,
  a source and a trust that are a person's.  So two people who edit a record apart change no line together.
- Files in the format before that, which had all of it, are read; the next write of such a file leaves it out.

- Reading takes off that empty line and that newline and nothing else, so content may begin and end as it likes, and a
  ``---`` in it is content: the frontmatter ends at the first one.
- A file whose first line ends in CRLF comes from a Windows editor and is read as if it had LF; in any other file CR is
  content.  Files are written with LF.
- A file without frontmatter has content and nothing else (``ParsedFile.bare``).  In one with frontmatter, who deletes
  the line of a date, a key, a value, tags, a mark or a metadata key means it; an id, category, kind or creation date
  that is missing is only not said.  Version, source, trust and consolidation count for a file whose record is new.
- Keys that are not ours are metadata.  Metadata whose name is a key of ours stands under ``metadata``.
- Content that holds the marks of a git conflict says how many (``conflict_markers``); more than that is a conflict.

It does not decide what an edit may change: ``plan`` compares, admission judges.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import islice
from types import MappingProxyType
from typing import TypeVar

from commonplace.model.binding import CONTENT_BYTES_LIMIT
from commonplace.model.errors import InvalidInput
from commonplace.model.ids import LENGTH, is_id, moment_of
from commonplace.model.records import CATEGORIES, EMPTY, Channel, Json, Kind, Record, Source, Trust
from commonplace.model.values import Value
from commonplace.text.strict_yaml import (
    MAX_BYTES,
    MAX_DEPTH,
    YamlError,
    dump,
    dump_scalar,
    load,
    load_with_lines,
    truth,
)

MAX_COUNT = 2**53  # as in an export: what every reader takes for the same number, and every store holds
DATE_LETTERS = 40  # no date is longer
TITLE_LETTERS = 500  # of a first line: more than any file name takes
SLUG_LETTERS = 60
FILE_BYTES = CONTENT_BYTES_LIMIT + MAX_BYTES + 16  # the longest content, the longest frontmatter, and the fences
SLUG_BYTES = 120  # a file name may have 255, and some encrypting file systems take 143
KEY_LETTERS = 200  # a metadata key that is longer is no word to put at the beginning of a line

#: The keys of the frontmatter, in their order; what else stands there is metadata.
KEYS = (
    *("id", "category", "kind", "created", "updated", "occurred", "expires", "archived", "superseded_by"),
    *("source", "ref", "parents", "trust", "key", "value", "aliases", "keywords", "tags"),
    *("pinned", "held", "consolidated", "version", "conflict_markers", "metadata"),
)

_CLEARABLE = (  # fields of which a missing line says that there is none
    *("key", "value", "tags", "metadata", "pinned", "held"),
    *("occurred_at", "expires_at", "archived_at", "superseded_by"),
)
_COMPARED = (
    "content",
    "category",
    "kind",
    "created_at",
    *(field for field in _CLEARABLE if field not in ("value", "metadata")),
)
_KNOWN = frozenset(KEYS)
_OWN_CHANNELS = frozenset({Channel.USER, Channel.FILE})  # a person's: not worth a line
#: Keys that earlier files had without need: they go with the next write, unless the record needs them.
MACHINERY = frozenset(
    {
        "category",
        "created",
        "updated",
        "source",
        "ref",
        "trust",
        "consolidated",
        "version",
        "tags",
        "aliases",
        "keywords",
    }
)
_SAME_MOMENT = timedelta(seconds=1)  # an id and the record that got it are made within
_SEARCHED = ("aliases", "keywords")
_AS_WRITTEN = frozenset({"metadata", "conflict_markers"})

_CHANNELS: Mapping[str, Channel] = MappingProxyType({channel.value: channel for channel in Channel})
_KINDS: Mapping[str, Kind] = MappingProxyType({kind.value: kind for kind in Kind})
_TRUSTS: Mapping[str, Trust] = MappingProxyType({trust.name.lower(): trust for trust in reversed(Trust)})

_OPENING = re.compile(r"(?:[ \t\r]*\n)*---[ \t\r]*(?:\n|\Z)")
_CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t\r]*(?:\n|\Z)", re.MULTILINE)
_MARKER = re.compile(r"^(?:<{7}|>{7}) ", re.MULTILINE)
_SPACE_BEFORE_OFFSET = re.compile(r"\s+(?=[-+Zz])")
_COMMENT_BEHIND = re.compile(r"(?<![ \t])[ \t]+#")
_LETTER = re.compile(r"[^\W_]")
_LINE_MARKS = re.compile(r"(?:[#>*+\s-]|\d+[.)]\s|\[[ xX]\]\s)+")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_CATEGORY = re.compile(r"[a-z0-9][a-z0-9_-]{,63}")
_RESERVED = frozenset({"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))})

_T = TypeVar("_T")


class FileTrouble(InvalidInput):
    """A file that cannot be read as a record; it is left as it is."""

    def __init__(self, reason: str, *, path: str, line: int) -> None:
        super().__init__(f"{path}:{line}: {reason}")
        self.path = path
        self.line = line
        self.reason = reason


class ParsedFile(Value):
    """The content of a file."""

    content: str
    bare: bool = False  #: there is no frontmatter: nothing is said but the content
    id: str | None = None  #: None: a new record, or the one that was at this path
    version: int | None = None
    category: str | None = None  #: None: what the folder says
    kind: Kind | None = None  #: None: what the category says
    key: str | None = None
    value: Json = None
    tags: frozenset[str] = frozenset()
    metadata: Mapping[str, Json] = EMPTY  #: aliases and keywords too, as lists of text, unless empty
    source: Source | None = None
    trust: Trust | None = None
    pinned: bool = False
    held: bool = False
    created_at: datetime | None = None
    updated_at: datetime | None = None
    occurred_at: datetime | None = None
    expires_at: datetime | None = None
    archived_at: datetime | None = None
    superseded_by: str | None = None
    consolidated_at: datetime | None = None


def decode(data: bytes, *, path: str) -> ParsedFile:
    """Read a file.  Raises ``FileTrouble`` with the line, and nothing else, whatever the bytes are."""
    parts = _split(_text(data, path=path), path=path)
    if parts.head is None:
        _refuse_markers(parts.body, allowed=0, path=path, line=parts.body_line)
        return ParsedFile(content=_content(parts, path=path), bare=True)
    _refuse_markers(parts.head, allowed=0, path=path, line=parts.head_line)
    front = _front(parts.head, path=path, line=parts.head_line)
    _refuse_markers(parts.body, allowed=front.count("conflict_markers") or 0, path=path, line=parts.body_line)
    return front.parsed(_content(parts, path=path))


def encode(record: Record, *, previous: str | None = None) -> bytes:
    """Write a file.  With the ``previous`` text of the file: what a person wrote and what has not changed stays.

    Comment lines, empty lines, the order of the keys and the writing of every unchanged value are kept; keys of ours
    that a file need not have are left out; of a value that changes, the comment behind a single line and the comment
    lines within it.  A previous text that cannot be read is not looked at.  Raises ``InvalidInput`` for a record whose
    file could not be read again.
    """
    fields = _fields(record)
    head = _merged(record, fields, previous) if previous else None
    if head is None:
        head = "".join([_line(key, text) for key, text in fields.items()])
    return _whole(head, record)


class FrontMatter(Value):
    """A file as a merge sees it: values to compare, and the lines that say them."""

    keys: Mapping[str, Json]
    rows: Mapping[str, tuple[str, ...]]  #: the lines of each key, with the comments within and above it
    comments: tuple[str, ...]  #: all comment lines
    body: str  #: all below the frontmatter


def read_front(data: bytes) -> FrontMatter:
    """Read a file for a merge; raises ``FileTrouble`` if it cannot be read as a record's, or holds a conflict."""
    parts = _split(_text(data, path=""), path="")
    if parts.head is None:
        raise FileTrouble("has no frontmatter", path="", line=1)
    _refuse_markers(parts.head + parts.body, allowed=0, path="", line=1)
    front = _front(parts.head, path="", line=1)
    rows: dict[str, tuple[str, ...]] = {}
    above: tuple[str, ...] = ()
    for block in _blocks(parts.head, front.lines):
        lines = tuple(f"{row}\n" for row in block.rows)
        if block.key is None:
            above = lines
        else:
            rows[block.key], above = (*above, *lines), ()
    comments = tuple(row for lines in (*rows.values(), above) for row in lines if row.lstrip().startswith("#"))
    return FrontMatter(keys=front.keys, rows=rows, comments=comments, body=parts.body)


def apply_file(record: Record, parsed: ParsedFile) -> Record:
    """The record with the content of the file; what the file says about its source and trust is not looked at."""
    category = parsed.category or record.category
    content = record.content if _same_text(parsed.content, record.content) else parsed.content
    if parsed.bare and category == record.category:
        return record.replace(content=content)
    kind = parsed.kind or CATEGORIES.get(category, record.kind)
    if parsed.bare:
        return record.replace(content=content, category=category, kind=kind)
    stated = {field: getattr(parsed, field) for field in _CLEARABLE}
    created = parsed.created_at or record.created_at
    return record.replace(content=content, category=category, kind=kind, created_at=created, **stated)


def matches_record(parsed: ParsedFile, record: Record) -> bool:
    """Whether the file says what the record says, in everything that a person edits.

    Line ends, and empty lines before and after the content, are no disagreement.
    """
    merged = apply_file(record, parsed)
    if parsed.id not in (None, record.id) or any(
        getattr(merged, field) != getattr(record, field) for field in _COMPARED
    ):
        return False
    return _json_fields(merged) == _json_fields(record)


def redact_comments(data: bytes, redact: Callable[[str], str]) -> bytes:
    """Return a file with its comments in the frontmatter passed through ``redact``; no value is touched.

    Raises ``FileTrouble`` if it cannot be read.
    """
    text = _text(data, path="")
    parts = _split(text, path="")
    if not parts.head or "#" not in parts.head:
        return data
    front = _front(parts.head, path="", line=1)
    rows = [
        row for block in _blocks(parts.head, front.lines) for row in _without_secret_comments(block, front.keys, redact)
    ]
    head = "".join(f"{row}\n" for row in rows)
    return data if head == parts.head else text.replace(parts.head, head, 1).encode()


def _without_secret_comments(block: _Block, keys: Mapping[str, Json], redact: Callable[[str], str]) -> Iterator[str]:
    is_text = block.key is not None and isinstance(keys[block.key], str)
    for number, row in enumerate(block.rows):
        start = len(row) if is_text and number else _comment_start(row)  # in a text over several lines # is text
        yield row[:start] + (redact(row[start:]) if start < len(row) else "")


def _comment_start(row: str) -> int:
    """Return where the comment of a line begins, outside of quotes; its length if there is none."""
    quote = ""
    for at, letter in enumerate(row):
        if quote:
            quote = "" if letter == quote else quote
        elif letter == "#" and (at == 0 or row[at - 1] in " \t"):
            return at
        elif letter in "\"'" and (at == 0 or row[at - 1] in " \t[{,:"):
            quote = letter
    return len(row)


_SECRET_MARK = re.compile(r"\[secret:[\w-]+:[0-9a-f]+\]")  # its digits would look like a password in a name
_MARK_IN_NAME = re.compile(r"\bsecret(?:-[a-z]+)+-[0-9a-f]{4}\b")


def clean_path(path: str, redact: Callable[[str], str]) -> str:
    """Return the path of a file; a name that holds a secret becomes a plain one without it."""
    folder, _, name = path.rpartition("/")
    stem = name.removesuffix(".md")
    words, mark, short = stem.rpartition("--")
    own = _MARK_IN_NAME.sub("secret", words or stem)
    spaced = own.replace("-", " ")
    kept = next((left for text in (own, spaced) if (left := redact(text)) != text), own)
    return path if kept == own else f"{folder}/{_slug(kept)}{mark}{short if mark else ''}.md"


def file_name(record: Record) -> str:
    """Where the file of a record belongs, such as ``decisions/use-pnpm-not-npm--01jk3v9q2c.md``."""
    category = record.category
    folder = category if _CATEGORY.fullmatch(category) and category not in _RESERVED else _slug(category)
    content = _SECRET_MARK.sub("secret", record.content) if "[secret:" in record.content else record.content
    return f"{folder}/{_slug(_title(content))}--{record.short}.md"


class _Parts(Value):
    head: str | None  #: the frontmatter without its fences; None: there is none
    head_line: int
    body: str  #: all that follows
    body_line: int


class _Front(Value):
    """Frontmatter, asked key by key for what the schema wants."""

    path: str
    keys: Mapping[str, Json]
    lines: Mapping[str, int]

    def wrong(self, key: str, reason: str) -> FileTrouble:
        return FileTrouble(f"{key} {reason}", path=self.path, line=self.lines.get(key, 1))

    def text(self, key: str) -> str | None:
        value = self.keys.get(key)
        if isinstance(value, list | dict):
            raise self.wrong(key, "must be text")
        return value if value is None or isinstance(value, str) else dump_scalar(value)

    def texts(self, key: str) -> list[str]:
        value = self.keys.get(key)
        if value is None or isinstance(value, str):
            return [] if value is None else [value]
        if not isinstance(value, list):
            raise self.wrong(key, "must be a list")
        if any(isinstance(item, list | dict) for item in value):
            raise self.wrong(key, "must be a list of texts")
        return [item if isinstance(item, str) else dump_scalar(item) for item in value if item is not None]

    def flag(self, key: str) -> bool:
        value = self.keys.get(key)
        parsed = False if value is None else truth(value)
        if parsed is None:
            raise self.wrong(key, "must be true or false")
        return parsed

    def count(self, key: str) -> int | None:
        value = self.keys.get(key)
        if value is None or (isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MAX_COUNT):
            return value
        raise self.wrong(key, f"must be a whole number below {MAX_COUNT}")

    def moment(self, key: str) -> datetime | None:
        text = self.text(key)
        try:
            return _read_moment(text) if text is not None else None
        except (ValueError, OverflowError):
            raise self.wrong(
                key, f"must be a date such as 2026-12-01 or 2026-12-01T09:30:00Z, not {str(text)[:DATE_LETTERS]!r}"
            ) from None

    def choice(self, key: str, choices: Mapping[str, _T]) -> _T | None:
        text = self.text(key)
        if text is not None and text not in choices:
            raise self.wrong(key, f"must be one of {', '.join(choices)}, not {text[:DATE_LETTERS]!r}")
        return choices[text] if text is not None else None

    def id(self) -> str | None:
        text = self.text("id") or None
        if text is not None and not is_id(text):
            raise self.wrong(
                "id", f"is not the {LENGTH} letters and digits of a record; delete it to make a new record"
            )
        return text

    def metadata(self) -> Mapping[str, Json]:
        nested = self.keys.get("metadata")
        if not isinstance(nested, dict | None):
            raise self.wrong("metadata", "must be keys and values")
        own = {key: value for key, value in self.keys.items() if key not in _KNOWN}
        searched: dict[str, Json] = {key: [*words] for key in _SEARCHED if (words := self.texts(key))}
        return (nested or {}) | own | searched

    def source(self) -> Source | None:
        channel, ref, parents = self.choice("source", _CHANNELS), self.text("ref"), tuple(self.texts("parents"))
        if channel is None and ref is None and not parents:
            return None
        return Source(channel=channel or Channel.FILE, ref=ref, parents=parents)

    def parsed(self, content: str) -> ParsedFile:
        if self.text("superseded_by") is not None and self.text("archived") is None:
            raise self.wrong("superseded_by", "needs the date of archived; delete both lines to bring the record back")
        return ParsedFile(
            content=content,
            id=self.id(),
            version=self.count("version"),
            category=self.text("category") or None,
            kind=self.choice("kind", _KINDS),
            key=self.text("key"),
            value=self.keys.get("value"),
            tags=frozenset(self.texts("tags")),
            metadata=self.metadata(),
            source=self.source(),
            trust=self.choice("trust", _TRUSTS),
            pinned=self.flag("pinned"),
            held=self.flag("held"),
            created_at=self.moment("created"),
            updated_at=self.moment("updated"),
            occurred_at=self.moment("occurred"),
            expires_at=self.moment("expires"),
            archived_at=self.moment("archived"),
            superseded_by=self.text("superseded_by"),
            consolidated_at=self.moment("consolidated"),
        )


def _text(data: bytes, *, path: str) -> str:
    if len(data) > FILE_BYTES:
        raise FileTrouble(f"is larger than {FILE_BYTES} bytes", path=path, line=1)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise FileTrouble("is UTF-16; save it as UTF-8", path=path, line=1)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise FileTrouble("is not UTF-8", path=path, line=data.count(b"\n", 0, error.start) + 1) from None
    if "\0" in text:
        raise FileTrouble("holds NUL", path=path, line=text.count("\n", 0, text.index("\0")) + 1)
    return _with_unix_lines(text.removeprefix("\ufeff"))


def _with_unix_lines(text: str) -> str:
    first = text.find("\n")
    return text.replace("\r\n", "\n") if first > 0 and text[first - 1] == "\r" else text


def _split(text: str, *, path: str) -> _Parts:
    opening = _OPENING.match(text)
    if not opening:
        return _Parts(head=None, head_line=1, body=text, body_line=1)
    head_line = text.count("\n", 0, opening.end()) + 1
    closing = _CLOSING.search(text, opening.end())
    if not closing:
        _refuse_markers(text, allowed=0, path=path, line=1)
        raise FileTrouble("has frontmatter that never ends; put --- below it", path=path, line=max(head_line - 1, 1))
    head = text[opening.end() : closing.start()].replace("\r\n", "\n").replace("\r", "\n")
    body = text[closing.end() :]
    return _Parts(head=head, head_line=head_line, body=body, body_line=text.count("\n", 0, closing.end()) + 1)


def _content(parts: _Parts, *, path: str) -> str:
    body = parts.body
    if not body.strip():
        reason = "has no text" if parts.head is None else "has no text below its frontmatter"
        raise FileTrouble(reason, path=path, line=parts.body_line)
    if parts.head is not None:
        body = body[2:] if body.startswith("\r\n") else body.removeprefix("\n")
    return body.removesuffix("\n")


def _refuse_markers(text: str, *, allowed: int, path: str, line: int) -> None:
    found = [match.start() for match in _MARKER.finditer(text)] if "<<<<<<< " in text or ">>>>>>> " in text else []
    if len(found) > allowed:
        at = line + text.count("\n", 0, found[0])
        raise FileTrouble("has git conflict markers; resolve them first", path=path, line=at)


def _front(head: str, *, path: str, line: int) -> _Front:
    try:
        keys, lines = load_with_lines(head, file=path, first_line=line)
    except YamlError as error:
        raise FileTrouble(f"frontmatter {error.reason}", path=path, line=error.line) from None
    if not isinstance(keys, dict | None):
        raise FileTrouble("frontmatter must be keys and values", path=path, line=line)
    return _Front(path=path, keys=keys or {}, lines=lines)


def _read_moment(text: str) -> datetime:
    if len(text) > DATE_LETTERS:
        raise ValueError(text)
    when = datetime.fromisoformat(_SPACE_BEFORE_OFFSET.sub("", text.strip()).upper())
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(UTC)


def _same_text(one: str, other: str) -> bool:
    return one == other or _bare_text(one) == _bare_text(other)


def _bare_text(text: str) -> str:
    return text.replace("\r\n", "\n").lstrip("\n").rstrip()


def _fields(record: Record) -> dict[str, str]:
    """The frontmatter of a record: the keys in their order, each value as it is written."""
    source = record.source
    is_own = source.channel in _OWN_CHANNELS
    value, aliases, keywords, others = _json_fields(record)
    stated = {
        "id": dump_scalar(record.id),
        "kind": None if CATEGORIES.get(record.category) is record.kind else record.kind.value,
        "created": None if _is_told_by_id(record) else _moment(record.created_at),
        "occurred": _day(record.occurred_at),
        "expires": _day(record.expires_at),
        "archived": _moment(record.archived_at),
        "superseded_by": _given(record.superseded_by),
        "source": None if is_own else source.channel.value,
        "ref": None if source.channel is Channel.FILE else _given(source.ref),
        "parents": dump(source.parents) if source.parents else None,
        "trust": None if record.authority is Trust.USER else record.trust.name.lower(),
        "key": _given(record.key),
        "value": value,
        "aliases": aliases,
        "keywords": keywords,
        "tags": dump(sorted(record.tags)) if record.tags else None,
        "pinned": "true" if record.pinned else None,
        "held": "true" if record.held else None,
        "conflict_markers": _markers(record.content),
    }
    return {key: text for key, text in stated.items() if text is not None} | others


def _is_told_by_id(record: Record) -> bool:
    return abs(record.created_at - moment_of(record.id)) < _SAME_MOMENT


def _json_fields(record: Record) -> tuple[str | None, str | None, str | None, dict[str, str]]:
    """Value, aliases, keywords and other metadata as they are written: ``==`` takes 1, 1.0 and true for the same."""
    value = None if record.value is None else dump(record.value, max_depth=MAX_DEPTH - 1)
    if not record.metadata:
        return value, None, None, {}
    aliases, keywords = (_listed(record.metadata.get(key)) for key in _SEARCHED)
    return value, aliases, keywords, _metadata_fields(record.metadata)


def _metadata_fields(metadata: Mapping[str, Json]) -> dict[str, str]:
    own = {key: value for key, value in metadata.items() if key not in _SEARCHED or (value and _listed(value) is None)}
    nested = {key: value for key, value in own.items() if key in _KNOWN or len(key) > KEY_LETTERS}
    fields = {"metadata": dump(nested, max_depth=MAX_DEPTH - 1)} if nested else {}
    return fields | {key: dump(own[key], max_depth=MAX_DEPTH - 1) for key in sorted(own) if key not in nested}


def _listed(value: Json) -> str | None:
    return dump(value) if value and isinstance(value, list) and all(isinstance(item, str) for item in value) else None


def _given(text: str | None) -> str | None:
    return None if text is None else dump_scalar(text)


def _moment(when: datetime | None) -> str | None:
    return f"{when.astimezone(UTC).replace(tzinfo=None).isoformat()}Z" if when else None


def _day(when: datetime | None) -> str | None:
    """A date that people set: midnight is written as the day alone."""
    text = _moment(when)
    return text.removesuffix("T00:00:00Z") if text else None


def _markers(content: str) -> str | None:
    if "<<<<<<< " not in content and ">>>>>>> " not in content:
        return None
    count = len(_MARKER.findall(content))
    return str(count) if count else None


def _line(key: str, text: str) -> str:
    return f"{key if key in _KNOWN else dump_scalar(key)}: {text}\n"


def _whole(head: str, record: Record) -> bytes:
    content = record.content
    if not content.strip() or "\0" in content:
        raise InvalidInput(f"record {record.id!r} cannot be a file: its content is blank or holds NUL")
    try:
        frontmatter, body = head.encode(), content.encode()
    except UnicodeEncodeError:
        raise InvalidInput(f"record {record.id!r} cannot be a file: its content holds half a character") from None
    if len(frontmatter) > MAX_BYTES or len(body) > CONTENT_BYTES_LIMIT:
        raise InvalidInput(f"record {record.id!r} cannot be a file: it is too large")
    return b"---\n%b---\n\n%b\n" % (frontmatter, body)


class _Block(Value):
    """Some lines of frontmatter: a key with its value, or what stands between."""

    key: str | None
    rows: tuple[str, ...]


def _merged(record: Record, fields: Mapping[str, str], previous: str) -> str | None:
    """The frontmatter with only the lines changed that must be; None if that cannot be done safely."""
    try:
        parts = _split(_with_unix_lines(previous.removeprefix("\ufeff")), path="")
        if parts.head is None:
            return None
        front = _front(parts.head, path="", line=1)
        prior = _stated(record, front) | {
            key: dump(value) for key, value in front.keys.items() if key not in _KNOWN or key in _AS_WRITTEN
        }
        blocks = [_updated(block, front.keys, prior, fields) for block in _blocks(parts.head, front.lines)]
        head = "".join([f"{row}\n" for block in _with_new(blocks, fields) for row in block.rows])
        return head if head == parts.head or _stated(record, _front(head, path="", line=1)) == fields else None
    except FileTrouble:
        return None


def _stated(record: Record, front: _Front) -> dict[str, str]:
    """The fields of the record that this frontmatter speaks of."""
    parsed = front.parsed(record.content)
    merged = apply_file(record, parsed)
    source = parsed.source or merged.source
    if front.keys.get("source") is None:
        source = source.replace(channel=record.source.channel)
    trust = merged.trust if parsed.trust is None else parsed.trust
    return _fields(merged.replace(id=parsed.id or merged.id, source=source, trust=trust))


def _blocks(head: str, lines: Mapping[str, int]) -> Iterator[_Block]:
    rows = head.split("\n")[:-1]
    starts = [line - 1 for line in lines.values()]
    yield _Block(key=None, rows=tuple(rows[: starts[0]] if starts else rows))
    for key, start, end in zip(lines, starts, [*starts, len(rows)][1:], strict=True):
        last = end
        while last > start + 1 and (not rows[last - 1].strip() or rows[last - 1].startswith("#")):
            last -= 1  # what stands before the next key goes with that one
        yield _Block(key=key, rows=tuple(rows[start:last]))
        yield _Block(key=None, rows=tuple(rows[last:end]))


def _updated(block: _Block, keys: Mapping[str, Json], prior: Mapping[str, str], fields: Mapping[str, str]) -> _Block:
    is_needed = block.key in fields or block.key not in MACHINERY or keys[block.key] is None
    if block.key is None or (is_needed and prior.get(block.key) == fields.get(block.key)):
        return block
    value = keys[block.key]
    within = () if isinstance(value, str) else block.rows[1:]  # in a text over several lines # is text
    comments = tuple(row.strip() for row in within if row.lstrip().startswith("#"))
    if block.key not in fields:
        return _Block(key=None, rows=comments)
    line = _line(block.key, fields[block.key]).removesuffix("\n")
    return _Block(key=block.key, rows=(*comments, line + _comment_behind(block, value)))


def _comment_behind(block: _Block, value: Json) -> str:
    """The comment at the end of a single line, with the space before it."""
    row = block.rows[0] if len(block.rows) == 1 else ""
    for mark in islice(_COMMENT_BEHIND.finditer(row), 8):  # a few: each costs a look at the line
        try:
            if load(row[: mark.start()], file="") == {block.key: value}:
                return row[mark.start() :]
        except YamlError:
            continue  # a # within quotes
    return ""


def _with_new(blocks: list[_Block], fields: Mapping[str, str]) -> list[_Block]:
    """Put each key that is not there yet behind the one that comes before it."""
    placed = list(blocks)
    before: str | None = None
    for key, text in fields.items():
        keys = [block.key for block in placed]
        if key not in keys:
            place = keys.index(before) + 1 if before is not None else 0
            placed.insert(place, _Block(key=key, rows=(_line(key, text).removesuffix("\n"),)))
        before = key
    return placed


def _title(content: str) -> str:
    """The first line with words in it, without the marks of Markdown."""
    found = _LETTER.search(content)
    if not found:
        return ""
    start = content.rfind("\n", 0, found.start()) + 1
    line = content[start : start + TITLE_LETTERS].partition("\n")[0]
    return _LINK.sub(r"\1", line[marks.end() :] if (marks := _LINE_MARKS.match(line)) else line)


def _slug(text: str) -> str:
    """Words for a file name: lower case, hyphens, letters of any script."""
    lowered = text.lower().replace("'", "").replace("\u2019", "")
    plain = lowered if lowered.isascii() else _simplified(lowered).lower()  # again: \u2116 is simplified to No
    spaced = "".join([letter if letter.isalnum() or not letter.isascii() else " " for letter in plain])
    slug = _cut("-".join([word for word in spaced.split() if _LETTER.search(word)])) or "record"
    return f"record-{slug}" if slug in _RESERVED else slug


def _cut(slug: str) -> str:
    cut = slug[:SLUG_LETTERS].encode()[:SLUG_BYTES].decode(errors="ignore")
    if len(cut) < len(slug) and slug[len(cut)] != "-" and "-" in cut:
        cut = cut[: cut.rindex("-")]
    return cut.strip("-")


def _simplified(text: str) -> str:
    """Latin letters without their accents; letters and digits of other scripts with theirs; spaces for the rest."""
    import unicodedata  # noqa: PLC0415 - most first lines are ASCII

    letters: list[str] = []
    for letter in unicodedata.normalize("NFKC", text):
        latin = "".join([part for part in unicodedata.normalize("NFKD", letter) if part.isascii()])
        if unicodedata.category(letter).startswith("M"):
            letters.append("" if not letters or letters[-1].isascii() else letter)
        else:
            letters.append(latin or (letter if letter.isalnum() else " "))
    return "".join(letters)
