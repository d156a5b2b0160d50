"""What ``commonplace import --from lance`` does: a store of the public role memory becomes a memory of ours."""

from __future__ import annotations

import os

from commonplace.cli.session import plural, progress, redaction_notes
from commonplace.cli.terminal import print_json, print_note, print_text
from commonplace.roles.commands.memory import remembering
from commonplace.roles.dialect import Role, ephemeral
from commonplace.roles.lance_import import Found
from commonplace.roles.memory import TakenOver, lance_found, role_memory


def taken_over(folder: str, file: str | None, *, dry_run: bool, as_json: bool) -> None:
    """Take a store over, once; everything is read and checked before anything is made."""
    role = remembering(file) if file else _called_like(folder)
    found = lance_found(folder)
    if dry_run:
        _would(role, found, as_json=as_json)
        return
    with role_memory(role) as held, progress("Importing") as tell:
        for sentence in held.notes:
            print_note(sentence)
        done = held.take_over(found, limited=file is not None, tell=tell)
    for sentence in (*redaction_notes(done.memories.redactions), *_notes(role, found, done)):
        print_note(sentence)
    memories = done.memories
    if as_json:
        said = {"kept": memories.kept, "present": memories.present, "blank": memories.blank}
        print_json({"role": role.name} | said | {"sessions": done.sessions, "sessions_present": done.present})
        return
    told = f"{_memories(memories.kept)} and {plural(done.sessions, 'session')} kept for {role.name}"
    print_text(f"{told}, {memories.present} and {done.present} there already")


def _would(role: Role, found: Found, *, as_json: bool) -> None:
    """Say what a store holds, and keep nothing of it."""
    memories, sessions = len(found.memories), len(found.conversations)
    if as_json:
        print_json({"role": role.name, "memories": memories, "sessions": sessions})
        return
    print_text(
        f"{_memories(memories)} and {plural(sessions, 'session')} would be kept for {role.name}, but for what is there"
    )


def _memories(count: int) -> str:
    return "1 memory" if count == 1 else f"{count} memories"


def _called_like(folder: str) -> Role:
    """The role that finds these memories by its own name, as long as it says nothing else."""
    name = os.path.splitext(os.path.basename(os.path.abspath(folder)))[0]
    return ephemeral(None, prompt="").replace(name=name, file=f"{name}.yaml")


def _notes(role: Role, found: Found, done: TakenOver) -> list[str]:
    """What people should know of it, as sentences."""
    foreign = sorted({one.agent for one in found.conversations} - {role.name})
    said = [f"the sessions of {agent!r} are resumed by a role of that name, not by {role.name!r}" for agent in foreign]
    if done.memories.evicted:
        said.append(f"{done.memories.evicted} memories went, oldest first, because of the limits of the role")
    if done.memories.unembedded:
        reason = done.memories.unembedded
        said.append(f"found by their words alone until `commonplace memory reembed {role.file}`: {reason}")
    return said
