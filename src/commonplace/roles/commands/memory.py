"""``commonplace role ...``: what an agent of a role.yaml remembers, listed, cleared, moved and consolidated."""

from __future__ import annotations

import json
import os
import sys

import click

from commonplace.cli.commands import Command, Group
from commonplace.cli.exits import ATTENTION, OK
from commonplace.cli.person import require_person, said_yes
from commonplace.cli.progress import show_progress
from commonplace.cli.session import json_option
from commonplace.cli.terminal import print_json, print_note, print_text
from commonplace.engine.rendering import redaction_notes
from commonplace.files import disk as files
from commonplace.files.user_files import read_text
from commonplace.model.errors import InvalidInput, NotFound
from commonplace.model.records import Channel, Kind
from commonplace.roles.dialect import EPHEMERAL, NO_MEMORY, Role, ephemeral
from commonplace.roles.flow_dialect import Flow, load
from commonplace.roles.memory import has_store, role_memory
from commonplace.roles.transfer import KINDS, export_entries, to_entry
from commonplace.roles.verbs import NOTHING_FOUND, format_time
from commonplace.text.cleaning import one_line, plural, slug

WHAT = ("sessions", "memories", "all")
NO_STORE = "No memory store found."
NO_EPISODES = "No episodic memories to consolidate."
ABORTED = "Aborted."
SHOWN_CHARS = 100
PENDING = "a reader still holds old bytes of the store; they are overwritten when it is next written to"

_role = click.argument("role", metavar="ROLE")


def remembering(file: str) -> Role:
    """The role of a file, if it has a memory; ``ephemeral`` is that of the agent without a file, a flow's is shared."""
    if file == EPHEMERAL and not os.path.exists(file):
        return ephemeral(None, prompt="")
    described = load(file)
    role = described.shared_role() if isinstance(described, Flow) else described
    if role.memory is None:
        raise NotFound(f"{role.file}: {role.path('memory')}: {NO_MEMORY}")
    return role


def _kind(name: str | None) -> frozenset[Kind] | None:
    """The kind that is meant; None: all.  Raises ``NotFound``, whose exit code is that of the document."""
    if name is None:
        return None
    if name not in KINDS:
        raise NotFound(f"Invalid type {name!r}. Use: {', '.join(KINDS)}")
    return frozenset({KINDS[name]})


@click.command("list", cls=Command)
@_role
@click.option("--type", "kind", metavar="TYPE", help="Only memories of this type: episodic, semantic or procedural.")
@click.option("--category", help="Only memories of this category.")
@click.option(
    "--limit", metavar="N", type=click.IntRange(min=1), default=20, show_default=True, help="Show at most N memories."
)
@json_option
def list_(role: str, kind: str | None, category: str | None, limit: int, as_json: bool) -> int:
    """List what the agent of a role remembers, newest first.

    Examples:
      commonplace role list role.yaml
      commonplace role list role.yaml --type procedural --limit 50
    """
    meant, kinds = remembering(role), _kind(kind)
    found = []
    if has_store(meant):
        with role_memory(meant, embedded=False) as held:
            wanted = None if category is None else [slug(category)]
            every = kinds or frozenset(KINDS.values())
            found = list(held.memory(Channel.USER).list(kinds=every, categories=wanted, limit=limit))
    if as_json:
        print_json({"memories": [to_entry(record) for record in found]})
    elif not found:
        print_text(NOTHING_FOUND)
    else:
        for one in found:
            shown = one_line(one.content)[:SHOWN_CHARS]
            print_text(f"#{one.short} [{one.kind}:{one.category}] ({format_time(one.created_at)}) {shown}")
        print_text(f"{len(found)} memories shown.")
    return OK


def clear_role(file: str, *, what: str, kind: str | None, force: bool, as_json: bool) -> int:
    """Erase what was asked for, and nothing else; see ``commonplace role clear``."""
    require_person("clears the memory of a role")
    role = remembering(file)
    if what not in WHAT:
        print_note(f"Invalid --what {what!r}. Use: {', '.join(WHAT)}")
        return ATTENTION
    kinds = _kind(kind)
    if kind and what == "sessions":
        print_note("--type cannot be combined with --what sessions")
        return ATTENTION
    if not has_store(role):
        print_text(NO_STORE)
        return OK
    label = f"{kind} memories" if kind else "all memory data" if what == "all" else what
    if not force and not _confirm(f"Clear {label} for {role.name}?"):
        print_text(ABORTED)
        return OK
    sessions = memories = 0
    with role_memory(role, embedded=False) as held:
        if not kind and what in {"sessions", "all"}:
            sessions = held.sessions.clear()
        if kind or what in {"memories", "all"}:
            memories, pending = held.clear(kinds)
            if pending:
                print_note(PENDING)
    if as_json:
        print_json({"role": role.name, "memories": memories, "sessions": sessions})
    else:
        print_text(f"Cleared memory for {role.name}.")
    return OK


def _confirm(question: str) -> bool:
    """Ask the user; raise ``InvalidInput`` where there is no answer to read."""
    if said_yes():  # to this very command
        return True
    try:
        return click.confirm(question, err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        raise InvalidInput(f"{question} There is no terminal to answer on; --force confirms") from None


@click.command(cls=Command)
@_role
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    default="memories.json",
    show_default=True,
    help="Write the memories to this file.",
)
def export(role: str, output: str) -> int:
    """Write every memory of a role to a JSON file; sessions and vectors are not in it.

    Examples:
      commonplace role export role.yaml
      commonplace role export role.yaml -o my-export.json
    """
    meant = remembering(role)
    entries = []
    if has_store(meant):
        with role_memory(meant, embedded=False) as held:
            entries = export_entries(held.store, held.scope, now=held.clock())
    if not entries:
        print_text(NO_STORE)
        return OK
    path = os.path.abspath(output)
    written = json.dumps(entries, ensure_ascii=False, indent=2) + "\n"
    files.replace(os.path.dirname(path), os.path.basename(path), written.encode())
    print_text(f"Exported {len(entries)} memories to {output}.")
    return OK


@click.command("import", cls=Command)
@_role
@click.argument("file", metavar="FILE")
@json_option
def import_(role: str, file: str, as_json: bool) -> int:
    """Import the memories of an export and embed them.  Importing the same file twice changes nothing.

    `-` reads from standard input.  The whole file is checked before anything is written.

    Examples:
      commonplace role export roles/agent-a.yaml -o memories.json
      commonplace role import roles/agent-b.yaml memories.json
    """
    require_person("imports memories")
    meant = remembering(role)
    text = read_text(file)
    with role_memory(meant) as held, show_progress("Importing") as progress:
        for sentence in held.notes:
            print_note(sentence)
        try:
            done = held.import_(text, progress=progress)
        except InvalidInput as error:
            print_note(str(error))
            return ATTENTION
    for sentence in redaction_notes(done.redactions):
        print_note(sentence)
    if done.evicted:
        print_note(f"{_memories(done.evicted)} were evicted, oldest first, by the limits of the role")
    if done.unembedded:
        print_note(f"found by their words alone until `commonplace role reembed {role}`: {done.unembedded}")
    if as_json:
        print_json({"role": meant.name, "added": done.added, "duplicates": done.duplicates, "blank": done.blank})
    else:
        known = f" {done.duplicates} known already." if done.duplicates else ""
        print_text(f"Imported {done.added} memories into {meant.name}.{known}")
    return OK


@click.command(cls=Command)
@_role
@json_option
def consolidate(role: str, as_json: bool) -> int:
    """Turn episodes into facts with the role's model, at any consolidation interval.

    If the model fails, nothing is marked as done.

    Example:
      commonplace role consolidate role.yaml
    """
    meant = remembering(role)
    if not has_store(meant):
        print_text(NO_EPISODES)
        return OK
    with role_memory(meant) as held:
        done = held.consolidate()
        for sentence in held.notes if done.created else ():
            print_note(sentence)
    if done.unread:
        print_note(f"{plural(len(done.unread), 'line')} of the model's answer had no category and was not kept")
    if done.replaced:
        print_note(f"{_memories(done.replaced)} that held no longer made way for newer ones, and can still be read")
    if as_json:
        counts: dict[str, object] = {
            "episodes": done.episodes,
            "created": done.created,
            "known": done.known,
            "replaced": done.replaced,
        }
        print_json(counts | {"role": meant.name})
    elif not done.episodes:
        print_text(NO_EPISODES)
    else:
        print_text(f"Created {done.created} semantic memories from episodic data.")
    return OK


@click.command(cls=Command)
@_role
@json_option
def reembed(role: str, as_json: bool) -> int:
    """Embed every memory of a role again with its current embedder. Recall uses the old vectors until it is done.

    Example:
      commonplace role reembed role.yaml
    """
    meant = remembering(role)
    if not has_store(meant):
        print_text(NO_STORE)
        return OK
    with role_memory(meant, anew=True) as held, show_progress("Embedding") as progress:
        for sentence in held.notes:
            print_note(sentence)
        done = held.reembed(progress=progress)
    if as_json:
        print_json({"role": meant.name, "embedded": done.embedded, "embedder": done.now.name})
    else:
        print_text(f"Embedded {plural(done.embedded, 'text')} of {meant.name} with {done.now.name}")
    return OK


def _memories(count: int) -> str:
    return "1 memory" if count == 1 else f"{count} memories"


@click.command(cls=Command)
@_role
@click.option("--what", metavar="WHAT", default="all", show_default=True, help="sessions, memories or all.")
@click.option("--type", "kind", metavar="TYPE", help="Only episodic, semantic or procedural memories.")
@click.option("--force", "--yes", is_flag=True, help="Do not ask.")
@json_option
def clear(role: str, *, what: str, kind: str | None, force: bool, as_json: bool) -> int:
    """Erase what the agent of a role remembers: all of it, its sessions, its memories, or those of one type.

    Example:
      commonplace role clear role.yaml --type episodic
    """
    return clear_role(role, what=what, kind=kind, force=force, as_json=as_json)


@click.group(cls=Group)
def role() -> None:
    """List, clear, move and consolidate what the agent of a role.yaml remembers.

    Examples:
      commonplace role list role.yaml
      commonplace role export role.yaml -o memories.json
    """


ROLE_COMMANDS = (list_, export, import_, consolidate, reembed)

for _command in (*ROLE_COMMANDS, clear):
    role.add_command(_command)
