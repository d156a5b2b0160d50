"""``commonplace connect`` and ``disconnect``: edit the settings of a coding agent, and undo it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from commonplace.app import open_app
from commonplace.cli.agreement import agree
from commonplace.cli.commands import Command
from commonplace.cli.exits import ATTENTION, OK
from commonplace.cli.person import current_speaker
from commonplace.cli.session import confirm, json_option, table_lines
from commonplace.cli.terminal import print_json, print_note, print_text, short_path
from commonplace.config.paths import CONFIG, FOLDER, Place, find, home
from commonplace.config.project import Context, context
from commonplace.config.trust import trust_of
from commonplace.config.trust_registry import keep_trust, read_claim, trust_new_project
from commonplace.config.writing import make_project, set_setting
from commonplace.hosts.connections import PROJECT, USER, list_connections, our_command
from commonplace.hosts.plugin import write_plugin
from commonplace.hosts.registry import Host, SettingsPlace, get_host, user_home
from commonplace.hosts.settings import FileChange, SettingsEditor
from commonplace.model.errors import InvalidInput
from commonplace.records import AgentConnection
from commonplace.text.cleaning import plural

_ASK_SETTING = "memories.askAgent"
_ASK = "May the agent be asked, once in a session, to save what was settled? It costs one more message of its model."
_OFFER = "`commonplace config set memories.askAgent true` has the agent save what a session settles, once in a session"
_ASK_OFF = f"the agent is not asked to save anything ({_ASK_SETTING})"
_CANNOT_ASK = "{} is not asked to save anything: it cannot be, or this project does not learn"
_LEARNS_NOW = "learning is switched on here: sessions become records (memories.enabled in {})"

_host = click.argument("host", metavar="HOST")
_level = [
    click.option("--user", "level", flag_value=USER, help="Change your user settings (default)."),
    click.option("--project", "level", flag_value=PROJECT, help="Change the settings of this project."),
]
_asking = [
    click.option("--yes", is_flag=True, help="Do not ask."),
    click.option("--dry-run", is_flag=True, help="Show what would change; change nothing."),
]


@click.command(cls=Command)
@click.argument("host", metavar="HOST", required=False)
@click.option("--list", "listing", is_flag=True, help="List known agents, and which are installed and connected.")
@_level[0]
@_level[1]
@click.option("--plugin", metavar="DIR", help="Write a plugin directory instead (claude-code, codex).")
@click.option("--no-learn", is_flag=True, help="Do not switch learning on in this project.")
@click.option(
    "--ask-agent/--no-ask-agent",
    "ask_agent",
    default=None,
    help="Whether the agent is asked, once in a session, to save what was settled.",
)
@_asking[0]
@_asking[1]
@json_option
def connect(
    *, host: str | None, listing: bool, level: str | None, plugin: str | None, no_learn: bool, ask_agent: bool | None,
    yes: bool, dry_run: bool, as_json: bool,
) -> int:  # fmt: skip
    """Connect a coding agent: its sessions start with what earlier sessions learned.

    HOST is claude-code, codex, gemini, cursor, opencode or vscode.  Adds hooks and the MCP server to the settings of
    the agent, after showing the difference.  Nothing else in them changes, and `commonplace disconnect` restores them.
    In a repository it also creates the project's memory and switches learning on, unless --no-learn is given.  If the
    project came with a memory, for example to your second machine, it asks whether you trust the folder.

    --ask-agent lets the agent learn for you without a key: at the end of a turn in which something was settled, it is
    asked once in a session to save it, with a quote that is checked.  Without the option you are asked.

    Examples:
      commonplace connect --list
      commonplace connect claude-code --ask-agent
      commonplace connect codex --project --dry-run
      commonplace connect claude-code --plugin ~/commonplace-plugin
    """
    if listing:
        return _list(as_json=as_json)
    if host is None:
        raise InvalidInput("Missing argument HOST; `commonplace connect --list` lists them")
    found = get_host(host)
    if plugin is not None:
        return _plugin(host, plugin, as_json=as_json)
    places = _places(level or USER)
    parts = found.parts(our_command(), places)
    if not parts:
        raise InvalidInput(f"{found.TITLE} cannot be connected; `commonplace index --host {host}` reads its sessions")
    editor = SettingsEditor(home(os.environ))
    changes = editor.plan_connect(host, places.project, parts)
    learns = None if no_learn else _project_without_learning()
    asks = not (yes or dry_run or as_json)
    if not changes and learns is None:
        hints = _hints(no_learn=no_learn, asks=asks)
        asking = _set_asking(found, ask_agent, yes=True) if ask_agent is not None and not dry_run else []
        return _print_result("Nothing to change", [], [*asking, *hints], as_json=as_json)
    if not _confirm(changes, learns, yes=yes, dry_run=dry_run, as_json=as_json):
        return OK if dry_run else ATTENTION
    backups = editor.apply(changes)
    learned = [_switch_learning_on(learns)] if learns else []
    kept = [f"the file before is saved in {short_path(path)}" for path in backups]
    hints = _hints(no_learn=no_learn, asks=asks)
    asking = _set_asking(found, ask_agent, yes=yes)
    notes = [*kept, *learned, *asking, *found.NOTES, *hints]
    return _print_result(f"Connected {found.TITLE}", changes, notes, as_json=as_json)


@click.command(cls=Command)
@_host
@_level[0]
@_level[1]
@_asking[0]
@_asking[1]
@json_option
def disconnect(*, host: str, level: str | None, yes: bool, dry_run: bool, as_json: bool) -> int:
    """Remove Commonplace from the settings of a coding agent.

    Files that were not changed since `connect` get back the exact bytes that they had; in others only the entries of
    Commonplace are removed.  Without --user or --project both settings are checked.  Records stay, and so do the
    settings of the project's memory.

    Examples:
      commonplace disconnect claude-code
      commonplace disconnect codex --project --yes
    """
    found, editor = get_host(host), SettingsEditor(home(os.environ))
    changes: list[FileChange] = []
    for one in [level] if level else _levels():
        places = _places(one)
        changes += editor.plan_disconnect(host, places.project, found.parts(our_command(), places))
    if not changes:
        return _print_result("Nothing to change", [], [], as_json=as_json)
    if not _confirm(changes, None, yes=yes, dry_run=dry_run, as_json=as_json):
        return OK if dry_run else ATTENTION
    editor.apply(changes)
    return _print_result(f"Disconnected {found.TITLE}", changes, [], as_json=as_json)


# Where


def _places(level: str) -> SettingsPlace:
    place = find(os.getcwd())
    if level == PROJECT and place is None:
        raise InvalidInput("there is no project around this folder; `commonplace init` makes one")
    project = place.root if place and level == PROJECT else None
    return SettingsPlace(env=os.environ, home=user_home(os.environ), project=project)


def _levels() -> list[str]:
    return [USER, PROJECT] if find(os.getcwd()) else [USER]


# Confirm and report


def _confirm(changes: Sequence[FileChange], learns: Place | None, *, yes: bool, dry_run: bool, as_json: bool) -> bool:
    """Show what would change, and ask; False if the answer is no, or if nothing is to be changed."""
    if not as_json:
        print_text("\n".join(change.diff.rstrip("\n") for change in changes))
        sys.stdout.flush()  # before the question or a note
    if dry_run and as_json:
        _print_result("Nothing was changed", changes, [], as_json=True)
    if learns is not None:
        folder = learns.folder or os.path.join(learns.root, FOLDER)
        print_note(f"{short_path(os.path.join(folder, CONFIG))}: learning will be switched on")
    return not dry_run and (yes or confirm("Apply these changes?"))


def _print_result(what: str, changes: Sequence[FileChange], notes: Sequence[str], *, as_json: bool) -> int:
    for sentence in notes:
        print_note(sentence)
    if as_json:
        print_json({"result": what, "files": [change.file for change in changes], "notes": list(notes)})
    else:
        print_text(f"{what}: {', '.join(short_path(change.file) for change in changes)}" if changes else what)
    return OK


def _list(*, as_json: bool) -> int:
    place = find(os.getcwd())
    found = list(list_connections(os.environ, project=place.root if place else None))
    for one in found:
        if one.trouble:
            print_note(one.trouble)
    if as_json:
        print_json({"hosts": [_row(one) for one in found]})
        return OK
    print_text("\n".join(table_lines([_cells(_row(one)) for one in found])))
    return OK


def _row(one: AgentConnection) -> dict[str, Any]:
    host = get_host(one.name)
    return {
        "host": one.name,
        "title": one.title,
        "detected": one.found,
        "connected": list(one.connected),
        "hooks": bool(host.EVENTS),
        "history": host.KEEPS_LOGS,
    }


def _cells(row: dict[str, Any]) -> list[str]:
    state = f"connected ({', '.join(row['connected'])})" if row["connected"] else "found" if row["detected"] else "-"
    can = [what for what, has in (("hooks", row["hooks"]), ("history", row["history"])) if has]
    return [row["host"], row["title"], state, ", ".join(can)]


def _plugin(host: str, folder: str, *, as_json: bool) -> int:
    if host not in ("claude-code", "codex"):
        raise InvalidInput(f"{host!r} takes no plugin of this format; claude-code and codex do")
    where = os.path.abspath(os.path.expanduser(folder))
    written = write_plugin(where, our_command())
    if as_json:
        print_json({"result": "Wrote the plugin", "folder": where, "files": written})
    else:
        print_text(f"Wrote {plural(len(written), 'file')} to {short_path(where)}; see its README for how to install it")
    return OK


# Learning


def _project_without_learning() -> Place | None:
    """The project around this folder, if it does not learn yet."""
    place = find(os.getcwd())
    if place is None or (place.git is None and place.folder is None):
        return None
    where = context(os.getcwd(), os.environ)
    if where.learning.enabled or _waits_for_trust(where):
        return None
    return place


def _waits_for_trust(where: Context) -> bool:
    """Whether the project needs a yes of its own before anything in it is changed."""
    if where.place is None or where.trust is None:
        return False
    if where.place.folder is None and not where.trust.is_trusted:
        return bool(read_claim(where.place, where.home).others)
    return not where.trust.is_trusted or bool(where.trust.changed)


def _is_person(where: Context) -> bool:
    """Whether a person at a terminal types this, who can be asked."""
    return sys.stdin.isatty() and current_speaker(where.user_settings).is_person


def _switch_learning_on(place: Place) -> str:
    """Create the project's memory, if there is none, and switch its learning on: the yes to both was one."""
    folder, data = place.folder or os.path.join(place.root, FOLDER), home(os.environ)
    is_new = make_project(folder, place)
    path = os.path.join(folder, CONFIG)
    set_setting(path, "memories.enabled", True)
    made = find(os.path.dirname(folder)) or place
    before = trust_of(made, data)
    if is_new and not before.is_trusted:
        trust_new_project(made, data)
        with open_app() as app:
            app.adopt(before.identity)
    else:
        keep_trust(made, data)
    return _LEARNS_NOW.format(short_path(path))


def _set_asking(host: Host, wanted: bool | None, *, yes: bool) -> list[str]:
    """Switch asking the agent on or off where this project learns; without a word of the user's, offer it."""
    where = context(os.getcwd(), os.environ)
    if not host.ask("") or where.place is None or _waits_for_trust(where) or not where.learning.enabled:
        return [_CANNOT_ASK.format(host.TITLE)] if wanted else []
    if wanted is None and not where.learning.ask_agent:
        wanted = None if yes or not sys.stdin.isatty() else confirm(_ASK)
    if wanted is None or wanted == where.learning.ask_agent:
        return [] if where.learning.ask_agent or wanted is not None else [_OFFER]
    set_setting(where.settings_file(PROJECT), _ASK_SETTING, wanted)
    keep_trust(where.place, where.home)
    return [f"the agent is asked once in a session to save what was settled ({_ASK_SETTING})" if wanted else _ASK_OFF]


def _hints(*, no_learn: bool, asks: bool) -> list[str]:
    """Return advice for a user outside a project, or in one that is not trusted or does not learn.

    Where a person is there to be asked, a folder that waits for a yes gets its question now, not with the next recall.
    """
    if find(os.getcwd()) is None:
        return ["there is no project here; run `commonplace connect` in each project that should learn"]
    where = context(os.getcwd(), os.environ)
    if asks and where.place and where.place.folder and _waits_for_trust(where) and _is_person(where):
        agree(where.place, where.home)
        where = context(os.getcwd(), os.environ)
    if _waits_for_trust(where):
        return where.trust_notes or ["other folders share this project's memory; run `commonplace init` to join them"]
    return (
        ["this project does not learn: memories.enabled is false"] if no_learn and _project_without_learning() else []
    )
