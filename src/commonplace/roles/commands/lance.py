"""``commonplace import --from lance``: import a LanceDB store of the public role memory into a role's memory."""

from __future__ import annotations

import os

from commonplace.cli.progress import show_progress
from commonplace.cli.terminal import print_json, print_note, print_text
from commonplace.engine.rendering import redaction_notes
from commonplace.roles.commands.memory import remembering
from commonplace.roles.dialect import Role, ephemeral
from commonplace.roles.memory import LanceStoreFound, LanceStoreImported, read_lance_store, role_memory
from commonplace.text.cleaning import plural


def import_lance(folder: str, file: str | None, *, dry_run: bool, as_json: bool) -> None:
    """Import a store once; everything is read and checked before anything is written."""
    role = remembering(file) if file else _role_of_folder(folder)
    found = read_lance_store(folder)
    if dry_run:
        memories, sessions = len(found.memories), len(found.conversations)
        text = f"Would import {_things(memories, sessions)} into {role.name}, except duplicates."
        _answer(text, {"role": role.name, "memories": memories, "sessions": sessions}, as_json=as_json)
        return
    with role_memory(role) as held, show_progress("Importing") as progress:
        for sentence in held.notes:
            print_note(sentence)
        done = held.import_store(found, limited=file is not None, progress=progress)
    for sentence in (*redaction_notes(done.memories.redactions), *_notes(role, found, done)):
        print_note(sentence)
    counts = done.memories
    text = (
        f"Imported {_things(counts.added, done.sessions)} into {role.name}"
        f" ({counts.duplicates} and {done.present} duplicates)."
    )
    data = {"role": role.name, "added": counts.added, "duplicates": counts.duplicates, "blank": counts.blank}
    _answer(text, data | {"sessions": done.sessions, "sessions_present": done.present}, as_json=as_json)


def _answer(text: str, data: dict[str, object], *, as_json: bool) -> None:
    if as_json:
        print_json(data)
    else:
        print_text(text)


def _things(memories: int, sessions: int) -> str:
    return f"{plural(memories, 'memory')} and {plural(sessions, 'session')}"


def _role_of_folder(folder: str) -> Role:
    """Return a role with the name of the folder and no other settings: ``name: assistant`` for assistant.lance."""
    name = os.path.splitext(os.path.basename(os.path.abspath(folder)))[0]
    return ephemeral(None, prompt="").replace(name=name, file=f"{name}.yaml")


def _notes(role: Role, found: LanceStoreFound, done: LanceStoreImported) -> list[str]:
    foreign = sorted({one.agent for one in found.conversations} - {role.name})
    notes = [f"the sessions of {agent!r} are resumed by a role of that name, not by {role.name!r}" for agent in foreign]
    if done.memories.evicted:
        notes.append(f"evicted by the limits of the role, oldest first: {plural(done.memories.evicted, 'memory')}")
    if done.memories.unembedded:
        reason = done.memories.unembedded
        notes.append(f"found by their words alone until `commonplace role reembed {role.file}`: {reason}")
    return notes
