"""``commonplace connect`` and ``disconnect``: a coding agent's own settings, changed with care and changed back."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from typing import Any

import click

from commonplace.cli.commands import Command
from commonplace.cli.exits import ATTENTION, OK
from commonplace.cli.project import made_project
from commonplace.cli.session import confirm, json_option
from commonplace.cli.terminal import print_json, print_note, print_text, short_path
from commonplace.config.paths import CONFIG, FOLDER, Place, find, home
from commonplace.config.project import context
from commonplace.files import disk as files
from commonplace.hosts.plugin import write_plugin
from commonplace.hosts.registry import HOSTS, Host, SettingsPart, SettingsPlace, get_host, user_home
from commonplace.hosts.settings import FileChange, SettingsEditor
from commonplace.model.errors import ConfigError, InvalidInput

SCRIPT = "commonplace"
USER, PROJECT = "user", "project"
_LEARNS_NOW = "learning is switched on here: what sessions say is kept as records (memories.enabled in {})"

_host = click.argument("host", metavar="HOST")
_level = [
    click.option("--user", "level", flag_value=USER, help="Your own settings, for every project."),
    click.option("--project", "level", flag_value=PROJECT, help="The settings of the project around this folder."),
]
_asking = [
    click.option("--yes", is_flag=True, help="Do not ask."),
    click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing."),
]


@click.command(cls=Command)
@click.argument("host", metavar="HOST", required=False)
@click.option("--list", "listing", is_flag=True, help="Say which agents are known, found here, and connected.")
@_level[0]
@_level[1]
@click.option("--plugin", metavar="DIR", help="Write a plugin directory instead, for claude-code and codex.")
@click.option("--no-learn", is_flag=True, help="Leave the settings of this project's own memory as they are.")
@_asking[0]
@_asking[1]
@json_option
def connect(
    *, host: str | None, listing: bool, level: str | None, plugin: str | None, no_learn: bool, yes: bool, dry_run: bool,
    as_json: bool,
) -> int:  # fmt: skip
    """Connect a coding agent, so that its sessions start knowing what the last one learned.

    HOST is claude-code, codex, gemini, cursor, opencode or vscode.  It puts hooks and the MCP server into the agent's
    own settings, after showing the difference; nothing else in them is touched, what was there is kept, and
    `commonplace disconnect` brings it back.  In a repository it also makes the project's memory and lets it learn,
    unless --no-learn is given.

    Examples:
      commonplace connect --list
      commonplace connect claude-code
      commonplace connect codex --project --dry-run
      commonplace connect claude-code --plugin ~/commonplace-plugin
    """
    if listing:
        return _list(as_json=as_json)
    if host is None:
        raise InvalidInput("say which agent; `commonplace connect --list` names them")
    found = get_host(host)
    if plugin is not None:
        return _plugin(host, plugin, as_json=as_json)
    places = _places(level or USER)
    parts = found.parts(_script(), places)
    if not parts:
        raise InvalidInput(f"{found.TITLE} cannot be connected; `commonplace index --host {host}` reads its sessions")
    editor = SettingsEditor(home(os.environ))
    changes = editor.plan_connect(host, places.project, parts)
    learns = None if no_learn else _unlearning()
    if not _agreed(changes, found, learns, yes=yes, dry_run=dry_run, as_json=as_json):
        return OK if dry_run or (not changes and learns is None) else ATTENTION
    backups = editor.apply(changes)
    learned = [_let_learn(learns)] if learns else []
    kept = [f"what was there before is in {short_path(path)}" for path in backups]
    notes = [*kept, *learned, *found.NOTES, *_hints(no_learn=no_learn)]
    return _said(f"Connected {found.TITLE}", changes, notes, as_json=as_json)


@click.command(cls=Command)
@_host
@_level[0]
@_level[1]
@_asking[0]
@_asking[1]
@json_option
def disconnect(*, host: str, level: str | None, yes: bool, dry_run: bool, as_json: bool) -> int:
    """Take what is ours out of a coding agent's settings.

    Where nobody has changed them since, the files have again the very bytes they had; else only what is ours is taken
    out.  Without --user or --project both are looked at.  What is remembered stays, and so do the settings of the
    project's memory.

    Examples:
      commonplace disconnect claude-code
      commonplace disconnect codex --project --yes
    """
    found, editor = get_host(host), SettingsEditor(home(os.environ))
    changes: list[FileChange] = []
    for one in [level] if level else _levels():
        places = _places(one)
        changes += editor.plan_disconnect(host, places.project, found.parts(_script(), places))
    if not _agreed(changes, found, None, yes=yes, dry_run=dry_run, as_json=as_json):
        return OK if dry_run or not changes else ATTENTION
    editor.apply(changes)
    return _said(f"Disconnected {found.TITLE}", changes, [], as_json=as_json)


# Where


def _places(level: str) -> SettingsPlace:
    place = find(os.getcwd())
    if level == PROJECT and place is None:
        raise InvalidInput("there is no project around this folder; `commonplace init` makes one")
    project = place.root if place and level == PROJECT else None
    return SettingsPlace(env=os.environ, home=user_home(os.environ), project=project)


def _levels() -> list[str]:
    return [USER, PROJECT] if find(os.getcwd()) else [USER]


def _script() -> str:
    """Our own command, wherever it is installed: agents do not start with a person's path."""
    beside = os.path.join(os.path.dirname(sys.executable), SCRIPT)
    found = beside if os.access(beside, os.X_OK) else shutil.which(SCRIPT)
    if not found:
        raise ConfigError("there is no command `commonplace` to be run by agents; install it", file=beside)
    return os.path.abspath(found)


# Asking and telling


def _agreed(
    changes: Sequence[FileChange], host: Host, learns: Place | None, *, yes: bool, dry_run: bool, as_json: bool
) -> bool:
    """Show what would change, and ask; False if nothing is to be done."""
    if not changes and learns is None:
        _said("Nothing to change", [], [], as_json=as_json)
        return False
    if not as_json:
        print_text("\n".join(change.diff.rstrip("\n") for change in changes))
        sys.stdout.flush()  # before anybody is asked or told anything
    if dry_run and as_json:
        _said("Nothing was changed", changes, [], as_json=True)
    if learns is not None:
        folder = learns.folder or os.path.join(learns.root, FOLDER)
        print_note(f"{short_path(os.path.join(folder, CONFIG))}: learning will be switched on")
    return not dry_run and (yes or confirm(f"Change the settings of {host.TITLE} so?"))


def _said(what: str, changes: Sequence[FileChange], notes: Sequence[str], *, as_json: bool) -> int:
    for sentence in notes:
        print_note(sentence)
    if as_json:
        print_json({"said": what, "files": [change.file for change in changes], "notes": list(notes)})
    else:
        print_text(f"{what}: {', '.join(short_path(change.file) for change in changes)}" if changes else what)
    return OK


def _list(*, as_json: bool) -> int:
    rows = [_row(name) for name in HOSTS]
    if as_json:
        print_json({"hosts": rows})
        return OK
    print_text("\n".join(_line(row) for row in rows))
    return OK


def _row(name: str) -> dict[str, Any]:
    host, editor = get_host(name), SettingsEditor(home(os.environ))
    levels = [(level, _places(level)) for level in _levels()]
    script = _script()
    connected = [level for level, places in levels if _is_connected(editor, host.parts(script, places))]
    detected = os.path.isdir(host.folder(levels[0][1])) or shutil.which(host.PROGRAM) is not None
    return {
        "host": name,
        "title": host.TITLE,
        "detected": detected,
        "connected": connected,
        "hooks": bool(host.EVENTS),
        "history": host.KEEPS_LOGS,
    }


def _is_connected(editor: SettingsEditor, parts: Sequence[SettingsPart]) -> bool:
    try:
        return editor.is_connected(parts)
    except ConfigError as error:  # settings that cannot be read: the others are listed all the same
        print_note(str(error))
        return False


def _line(row: dict[str, Any]) -> str:
    state = f"connected ({', '.join(row['connected'])})" if row["connected"] else "found" if row["detected"] else "-"
    can = [what for what, has in (("hooks", row["hooks"]), ("history", row["history"])) if has]
    return f"{row['host']:<12} {row['title']:<12} {state:<20} {', '.join(can)}".rstrip()


def _plugin(host: str, folder: str, *, as_json: bool) -> int:
    if host not in ("claude-code", "codex"):
        raise InvalidInput(f"{host!r} takes no plugin of this format; claude-code and codex do")
    where = os.path.abspath(os.path.expanduser(folder))
    written = write_plugin(where, _script())
    if as_json:
        print_json({"said": "Wrote the plugin", "folder": where, "files": written})
    else:
        print_text(f"Wrote {len(written)} files to {short_path(where)}; its README says how it is installed")
    return OK


# Learning


def _unlearning() -> Place | None:
    """The project around this folder, if it does not learn yet."""
    place = find(os.getcwd())
    if place is None or (place.git is None and place.folder is None):
        return None
    return None if context(os.getcwd(), os.environ).learning.enabled else place


def _let_learn(place: Place) -> str:
    """Make the project's memory, if there is none, and turn the one line of its settings."""
    folder = place.folder or os.path.join(place.root, FOLDER)
    made_project(folder, place)
    path = os.path.join(folder, CONFIG)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    files.replace(folder, CONFIG, enable_learning(text).encode())
    return _LEARNS_NOW.format(short_path(path))


def enable_learning(text: str) -> str:
    """The settings with ``memories.enabled: true``; everything else in them stays."""
    lines = text.split("\n")
    start = next((number for number, line in enumerate(lines) if line.startswith("memories:")), None)
    if start is None:
        return text.rstrip("\n") + "\n\nmemories:\n  enabled: true\n"
    for number in range(start + 1, len(lines)):
        line = lines[number]
        if line.strip() and not line.startswith((" ", "#")):
            break
        if line.strip().startswith("enabled:"):
            lines[number] = line.replace("enabled: false", "enabled: true", 1)
            return "\n".join(lines)
    return "\n".join([*lines[: start + 1], "  enabled: true", *lines[start + 1 :]])


def _hints(*, no_learn: bool) -> list[str]:
    """What somebody should do who is not in a project, or has one that does not learn."""
    if find(os.getcwd()) is None:
        return ["there is no project here: in each one that shall learn, run `commonplace connect` once more"]
    return ["this project does not learn: memories.enabled is false"] if no_learn and _unlearning() else []
