"""Health and settings: what needs a person, scopes and their growth, jobs, agents, a backup, settings as a form."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from commonplace.model.errors import ConfigError, Conflict, Forbidden, InvalidInput
from commonplace.page.visits import Answer, Go, Page, Visit, url

WEEKS = 12
JOBS_SHOWN = 12
STATES = ("live", "held", "archived", "expired")
SCOPES = ("project", "assistant")
WIDTH, TALL = 110, 20  # of the lines of growth
RECORDS, SESSIONS = "records", "session"
_DOCUMENTS = {"session": "sessions", "ticket": "tickets"}  # other documents are made by us, and shown elsewhere


def show(visit: Visit) -> Answer:
    """Show the memory as a whole."""
    return _page(visit)


def act(visit: Visit) -> Answer:
    """Check everything, or make a backup."""
    do = visit.form.get("do", "")
    if do == "check":
        return _page(visit, report=visit.ask("check"))
    if do == "backup":
        return _page(visit, copied=visit.ask("backup"))
    raise InvalidInput("that action is not known")


def change(visit: Visit) -> Answer:
    """Show what a change of the settings would do to their file, or make it."""
    scope, digest = visit.form.get("scope", ""), visit.form.get("digest", "")
    if scope not in SCOPES:
        raise InvalidInput(f"scope is one of {', '.join(SCOPES)}")
    held = visit.ask("settings", scope=scope)
    changes = dict(_changes(held.settings, visit.form))
    if not changes:
        return Go(to=url("health", done="unchanged") + f"#set-{scope}")
    try:
        preview = visit.form.get("do") != "save"
        done = visit.ask("change_settings", changes, scope=scope, digest=digest, preview=preview)
    except (Conflict, ConfigError, Forbidden, InvalidInput) as error:
        return _page(visit, wanted={scope: changes}, refused={scope: str(error)}, status=409)
    if preview:
        return _page(visit, wanted={scope: changes}, diffs={scope: diff_lines(done.diff)})
    return Go(to=url("health", done="settings") + f"#set-{scope}")


def _changes(settings: Sequence[Any], form: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    """Return what the form says differently from the file; a switch that is not named is off."""
    for one in settings:
        if one.by_hand or (one.advanced and one.name not in form):
            continue
        text = form.get(one.name, "").strip()
        if one.kind == "switch":
            if (text == "on") != one.value:
                yield one.name, text == "on"
        elif text != text_of(one.value) and text != (text_of(one.default) if not one.is_set else None):
            yield one.name, text or None


def text_of(value: Any) -> str:
    """Return a value as a field shows it."""
    return "" if value is None else str(value)


def _page(visit: Visit, *, status: int = 200, **extra: Any) -> Page:
    found = visit.ask("status")
    owns = visit.app is not None
    context: dict[str, Any] = {
        "report": None, "copied": None, "wanted": {}, "refused": {}, "diffs": {}, "done": visit.get("done"),
        "status": found, "troubles": visit.ask("troubles").troubles, "rows": _rows(visit, found),
        "jobs": visit.ask("jobs") if owns else None, "agents": visit.ask("agents") if owns else None,
        "forms": [visit.ask("settings", scope=scope) for scope in _editable(visit)], "text_of": text_of,
        "short": lambda path: _short(visit, path),
        "most_jobs": JOBS_SHOWN,
    } | extra  # fmt: skip
    return Page(template="health.html", context=context, status=status)


def _short(visit: Visit, path: str) -> str:
    """Return a path as people write it from the project."""
    root = visit.app.where.place.root if visit.app and visit.app.where.place else None
    return path.removeprefix(root + os.sep) if root else path


def _editable(visit: Visit) -> list[str]:
    """Return the scopes whose settings file may be changed here."""
    if visit.app is None:
        return []
    place = visit.app.where.place
    return [*(["project"] if place and place.folder and visit.app.where.is_trusted else []), "assistant"]


def _rows(visit: Visit, status: Any) -> list[dict[str, Any]]:
    """Return a line for the records of each scope, and one for its sessions and tickets, with their growth."""
    grown = {(one.scope, one.what): one for one in visit.ask("growth", weeks=WEEKS).rows}
    records = [_records_row(scope, status, grown) for scope in _scopes_of(status)]
    documents = [
        {"name": _DOCUMENTS[one.kind], "called": one.scope, "live": one.count, "bytes": one.bytes,
         "held": None, "archived": None, "files": None, "at": None, "enabled": True,
         "spark": spark(_DOCUMENTS[one.kind], grown[one.scope, one.kind].counts)}
        for one in status.stored if one.kind in _DOCUMENTS and (one.scope, one.kind) in grown
    ]  # fmt: skip
    return [*records, *documents]


def _scopes_of(status: Any) -> list[dict[str, Any]]:
    if status.scopes:
        return [
            {"name": one.name, "called": one.called, "files": one.files, "at": one.checked_at, "enabled": one.enabled}
            for one in status.scopes
        ]
    names = sorted({one.scope for one in status.stored})
    return [{"name": name, "called": "", "files": None, "at": None, "enabled": True} for name in names]


def _records_row(scope: Mapping[str, Any], status: Any, grown: Mapping[tuple[str, str], Any]) -> dict[str, Any]:
    held = [one for one in status.stored if one.scope == scope["name"] and (one.scope, one.kind) not in grown]
    counts = {state: sum(one.count for one in held if one.state.value == state) for state in STATES}
    history = grown.get((scope["name"], RECORDS))
    size = sum(one.bytes for one in held)
    return {**scope, **counts, "bytes": size, "spark": spark("records", history.counts if history else ())}


def spark(what: str, counts: Sequence[int]) -> dict[str, str] | None:
    """Return the points of a small line, and what it says in words."""
    if len(counts) < 2:  # noqa: PLR2004 - a line has two ends
        return None
    most, step = max(counts) or 1, WIDTH / (len(counts) - 1)
    points = " ".join(f"{n * step:.0f},{TALL - 2 - (TALL - 4) * count / most:.1f}" for n, count in enumerate(counts))
    moved = "grew" if counts[-1] > counts[0] else "fell" if counts[-1] < counts[0] else "stayed"
    ends = f"from {counts[0]:,} to {counts[-1]:,}" if moved != "stayed" else f"at {counts[-1]:,}"
    return {"points": points, "label": f"{what.capitalize()} {moved} {ends} in {len(counts) - 1} weeks"}


def diff_lines(diff: str) -> list[dict[str, str]]:
    """Return the lines of a unified difference: what was there, what comes, what stays."""
    kinds = {"-": "rem", "+": "add", " ": ""}
    lines = diff.split("\n")[2:]
    return [{"kind": kinds[line[0]], "sign": line[0], "text": line[1:]} for line in lines if line[:1] in kinds]
