"""Take in what other tools keep: find their files, read all of them, then keep what is new.  Originals stay."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from commonplace.engine.admission import Admitted, admit
from commonplace.engine.memory import Memory
from commonplace.model.changes import Put
from commonplace.model.errors import Forbidden, InvalidInput
from commonplace.model.ids import new_id
from commonplace.model.ports import Tell, silent
from commonplace.model.queries import ANY_STATE, Filter, Order
from commonplace.model.records import Draft
from commonplace.model.scopes import Scope
from commonplace.model.values import Value
from commonplace.records.foreign import READERS, Found
from commonplace.redact.redaction import Finding

FILE_BYTES = 64 * 1024 * 1024  # an export of years; a disk image named by mistake is not read
PAGE = 200  # records that are kept at a time
ALL = -1
GUIDANCE = frozenset({"AGENTS.md", "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md", "MEMORY.md"})
PASSED_BY = frozenset({"node_modules", "vendor", "dist", "build", "venv", "__pycache__"})


class TakenIn(Value):
    """What came of an import."""

    files: int
    found: int
    kept: int
    present: int  #: there already, or said already
    left_out: tuple[str, ...] = ()  #: why, for each that was refused
    redactions: tuple[Finding, ...] = ()


def found_in(sort: str, path: str) -> tuple[int, list[Found]]:
    """Everything in a file or a folder, read to its end; and of how many files.  Nothing is kept yet."""
    files = list(_files(sort, path))
    if not files:
        raise InvalidInput(f"nothing in {path!r} looks like {sort}")
    base = path if os.path.isdir(path) else os.path.dirname(path)
    read = READERS[sort]
    return len(files), [one for file in files for one in read(os.path.relpath(file, base), _text(file))]


def _files(sort: str, path: str) -> Iterator[str]:
    if not os.path.exists(path):
        raise InvalidInput(f"there is no {path!r}")
    if not os.path.isdir(path):
        yield path
        return
    for folder, below, names in os.walk(path):  # links are not followed
        below[:] = sorted(name for name in below if not name.startswith(".") and name not in PASSED_BY)
        yield from (os.path.join(folder, name) for name in sorted(names) if _fits(sort, name))


def _fits(sort: str, name: str) -> bool:
    if sort == "agents-md":
        return name in GUIDANCE
    wanted = {"mcp-graph": (".json", ".jsonl"), "mem0": (".json",), "initrunner": (".json",)}.get(sort, (".md",))
    return name.endswith(wanted) and not name.startswith(".")


def _text(file: str) -> str:
    try:
        if os.path.getsize(file) > FILE_BYTES:
            raise InvalidInput(f"{file!r} has more than {FILE_BYTES // 1024 // 1024} MiB")
        with open(file, encoding="utf-8-sig") as source:
            return source.read()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file!r} is not UTF-8 at byte {error.start}") from error
    except OSError as error:
        raise InvalidInput(f"{file!r} cannot be read: {error.strerror}") from error


def take_in(
    memory: Memory,
    found: Sequence[Found],
    scope: Scope,
    *,
    files: int,
    category: str | None = None,
    tell: Tell = silent,
) -> TakenIn:
    """Keep what is new; what came in before is not brought back, however it was changed or archived since."""
    where = Filter(scopes=frozenset({scope}), at=memory.clock(), states=ANY_STATE)
    known = {record.source.ref for record in memory.store.find(where, order=Order.ID, limit=ALL)}
    fresh = list({one.ref: one for one in found if one.ref not in known}.values())
    admitted, left_out = _admitted(memory, fresh, scope, category)
    said = 0
    for start in range(0, len(admitted), PAGE):
        tell(start, len(admitted))
        page = admitted[start : start + PAGE]
        puts = [Put(record=one.record, terms=one.terms, dedupe=True) for one in page]
        said += sum(outcome.deduped for outcome in memory.store.apply(puts))
    return TakenIn(
        files=files, found=len(found), kept=len(admitted) - said, present=len(found) - len(fresh) + said,
        left_out=tuple(left_out), redactions=tuple(finding for one in admitted for finding in one.redactions),
    )  # fmt: skip


def _admitted(
    memory: Memory, found: Sequence[Found], scope: Scope, category: str | None
) -> tuple[list[Admitted], list[str]]:
    """What passes the gate, and why the rest does not: one fact that is too long costs no other one."""
    passed: list[Admitted] = []
    left_out: list[str] = []
    for one in found:
        draft = Draft(
            content=one.content, category=category or one.category, kind=one.kind, scope=scope, ref=one.ref,
            tags=frozenset(one.tags), metadata=one.metadata, occurred_at=one.occurred_at,
        )  # fmt: skip
        now = memory.clock()
        try:
            passed.append(admit(draft, binding=memory.binding, id=new_id(now), now=now, secret=memory.secret()))
        except InvalidInput as error:
            left_out.append(f"{one.ref}: {error}")
        except Forbidden as error:
            raise InvalidInput(str(error)) from error
    return passed, left_out
