"""What a ``memory://`` address leads to: an artifact, a list of them, or a record, whole.

``memory://root`` is the summary, ``memory://root/PATH`` an artifact, ``memory://root/`` a list, ``memory://ID`` a
record.  Artifacts are read from the store.  Where its file differs, a person has edited it and the
file counts; secrets are removed from it first.  Files are opened from the folder
downwards, never through a link.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from urllib.parse import unquote

from commonplace.engine.admission import Gate
from commonplace.engine.memory import Memory
from commonplace.files.artifacts import LEARNED, MEMORY, RAW, ROLLOUTS, SKILLS, SUMMARY, list_files, read_strictly
from commonplace.files.codec import encode
from commonplace.model.documents import Document, DocumentKind
from commonplace.model.errors import Forbidden, InvalidInput, NotFound
from commonplace.model.ids import is_prefix
from commonplace.model.queries import DocumentFilter, State
from commonplace.model.records import Channel, Record, Trust
from commonplace.model.scopes import Scope
from commonplace.model.values import Value
from commonplace.text.cleaning import clean

SCHEME = "memory://"
ROOT = "root"
RECORD = "record"  # memory://record/ID is memory://ID, as MCP and HTTP write it
ARTIFACTS_MOST = 10_000  # that a list can have: skills and session summaries are bounded far below

_TOP = frozenset({MEMORY, SUMMARY, LEARNED, RAW})
_FOLDERS = frozenset({SKILLS, ROLLOUTS})
_PART = re.compile(r"[A-Za-z0-9._-]{1,255}")
_ENCODED = re.compile(r"%[0-9A-Fa-f]{2}")


class Addresses(Value):
    """Where addresses are looked up."""

    memory: Memory
    scope: Scope | None  #: the project, whose artifacts are read; None: there are none
    folder: str | None = None  #: where its artifacts lie as files
    secret: Callable[[], bytes] = bytes  #: the key of redaction marks
    is_foreign: Callable[[str, bytes], bool] = lambda _name, _data: False  #: whether Git brought a file from others


class AddressedText(Value):
    """What an address leads to."""

    url: str  #: in its plain form
    text: str  #: all of it
    content_type: str
    updated_at: datetime | None = None
    channel: Channel | None = None  #: by which its words came in
    trust: Trust | None = None
    record: Record | None = None  #: if it is one
    edited: bool = False  #: a person's words from the file, which the store does not have yet
    notes: tuple[str, ...] = ()  #: what the reader should know, as sentences


def read_page(addresses: Addresses, url: str) -> AddressedText:
    """Read what is at an address.

    Raises ``InvalidInput`` for what is no address, ``Forbidden`` for one that leads out of the root, and ``NotFound``.
    """
    namespace, path = _split_namespace(url)
    if namespace != ROOT:
        return _record_page(addresses, namespace, path, url)
    if path is None:
        path = SUMMARY
    name = _inside(path, url)
    if name == "" or name.endswith("/"):
        return _listing(addresses, name, url)
    return artifact(addresses, name) or _listing(addresses, f"{name}/", url)


def artifact(addresses: Addresses, name: str) -> AddressedText | None:
    """An artifact by its path below the root; None if there is none."""
    if addresses.scope is None:
        return None
    where = DocumentFilter(scopes=frozenset({addresses.scope}), kinds=frozenset({DocumentKind.ARTIFACT}))
    stored = next(iter(addresses.memory.store.documents(where.replace(names=frozenset({name})), limit=1)), None)
    return _edited_page(addresses, name, stored) or (_stored_page(stored) if stored else None)


def address(name: str) -> str:
    """The address of an artifact."""
    return f"{SCHEME}{ROOT}" if name == SUMMARY else f"{SCHEME}{ROOT}/{name}"


def content_type(name: str) -> str:
    """What a program takes it for."""
    return "text/markdown" if name.endswith(".md") else "text/plain"


def _split_namespace(url: str) -> tuple[str, str | None]:
    """The namespace and the path behind it, still encoded; None: there is not even a slash."""
    clean(url, what="the address")  # half a character names nothing
    if not url.lower().startswith(SCHEME):
        raise InvalidInput(f"{url!r} is not a memory:// address; memory://root is the summary")
    namespace, slash, path = url[len(SCHEME) :].partition("/")
    if namespace.lower() == RECORD and is_prefix(path.partition("/")[0].lower()):
        namespace, slash, path = path.partition("/")
    if not namespace:
        raise InvalidInput(f"{url!r} needs a namespace: memory://root, or memory:// and the id of a record")
    if namespace.lower() != ROOT and not is_prefix(namespace.lower()):
        raise InvalidInput(f"{url!r} has an unknown namespace, {namespace!r}: there are root and the ids of records")
    return namespace.lower(), path if slash else None


def _inside(path: str, url: str) -> str:
    """The path, decoded once, if it stays below the root however it is read."""
    try:
        name = unquote(path, errors="strict")
    except UnicodeDecodeError:
        raise InvalidInput(f"{url!r} is not UTF-8 where it is percent-encoded") from None
    if _ENCODED.search(name):
        raise Forbidden(f"{url!r} is percent-encoded twice and so could escape memory root; it is refused")
    parts = name.removesuffix("/").split("/")
    if "\\" in name or ":" in name or not name.isprintable() or {"..", "."} & {*parts} or (name and "" in parts):
        raise Forbidden(f"{url!r} escapes memory root and is refused")
    return name


def _record_page(addresses: Addresses, id: str, path: str | None, url: str) -> AddressedText:
    if path:
        raise InvalidInput(f"{url!r} has a path behind the id of a record, which has none")
    record = addresses.memory.get(id)
    state = record.state(record.updated_at)
    notes = {
        State.ARCHIVED: ("this record is archived: it is kept as history and no longer holds",),
        State.HELD: ("this record is held for a person's review: it is not to be relied on",),
    }
    return AddressedText(
        url=f"{SCHEME}{record.id}", text=encode(record).decode(), content_type="text/markdown", record=record,
        updated_at=record.updated_at, channel=record.source.channel, trust=record.trust, notes=notes.get(state, ()),
    )  # fmt: skip


def _missing(addresses: Addresses, url: str) -> NotFound:
    if addresses.scope is None:
        return NotFound(f"{url!r} was not found: there is no project here; `commonplace init` makes one of this folder")
    if not _below(addresses, ""):
        return NotFound(f"{url!r} was not found: artifacts are not available yet, since nothing was consolidated here")
    return NotFound(f"{url!r} was not found; memory://root/ lists what there is")


def _stored_page(document: Document) -> AddressedText:
    return AddressedText(
        url=address(document.name), text=document.content or "", content_type=content_type(document.name),
        updated_at=document.updated_at, channel=document.source.channel, trust=document.trust,
    )  # fmt: skip


# Files


def _edited_page(addresses: Addresses, name: str, stored: Document | None) -> AddressedText | None:
    """What a person made of the file, if they did; a file that came by Git from others replaces nothing."""
    if addresses.folder is None or not _is_artifact(name):
        return None
    found = read_strictly(addresses.folder, name)
    if found is None:
        return None
    data, moment = found
    try:
        text, _ = clean(data.decode("utf-8-sig"), what=name)
    except UnicodeDecodeError:
        raise InvalidInput(f"the file of {address(name)} is not UTF-8; mend or remove {name!r}") from None
    if stored and text == clean(stored.content or "", what=name)[0]:
        return None
    foreign = addresses.is_foreign(name, data)
    if foreign and stored:
        return None
    gate = Gate(addresses.secret())
    return AddressedText(
        url=address(name), text=gate.text(text, what=name), content_type=content_type(name), updated_at=moment,
        channel=Channel.FILE, trust=Trust.EXTERNAL if foreign else Trust.USER, edited=True,
        notes=tuple(f"a secret ({finding.kind}) in {name!r} is not shown" for finding in gate.findings),
    )  # fmt: skip


def _is_artifact(name: str) -> bool:
    """Whether a file of that name is one: the same folder holds records and settings, which have their own doors."""
    first, *rest = name.split("/")
    shaped = all(_PART.fullmatch(part) for part in (first, *rest))
    return shaped and (first in _FOLDERS if rest else first in _TOP)


# Lists


def _listing(addresses: Addresses, folder: str, url: str) -> AddressedText:
    if not (inside := _below(addresses, folder)):
        raise _missing(addresses, url)
    names = sorted({folder + name.partition("/")[0] + ("/" if "/" in name else "") for name in inside})
    text = "\n".join(f"{SCHEME}{ROOT}/{name}" for name in names)
    return AddressedText(url=f"{SCHEME}{ROOT}/{folder}", text=text, content_type="text/plain")


def _below(addresses: Addresses, folder: str) -> list[str]:
    """Every artifact in a folder and its folders, by its path from there."""
    if addresses.scope is None:
        return []
    where = DocumentFilter(scopes=frozenset({addresses.scope}), kinds=frozenset({DocumentKind.ARTIFACT}))
    stored = {document.name for document in addresses.memory.store.documents(where, limit=ARTIFACTS_MOST)}
    names = stored | (set(_on_disk(addresses.folder)) if addresses.folder else set())
    return sorted(name.removeprefix(folder) for name in names if name.startswith(folder) and name != folder)


def _on_disk(root: str) -> Iterator[str]:
    """The paths of artifacts that exist as files; what is reached through a link is not ours."""
    for top in _TOP:
        if os.path.isfile(os.path.join(root, top)) and not os.path.islink(os.path.join(root, top)):
            yield top
    for top in _FOLDERS:
        if not os.path.islink(os.path.join(root, top)):
            yield from list_files(root, under=top)
