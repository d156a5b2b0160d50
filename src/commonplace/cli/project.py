"""Commands about where memory is: make a project, bring files and records together, switch off, clear."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

import click

from commonplace.app import open_app
from commonplace.cli.commands import Command
from commonplace.cli.exits import ATTENTION, OK
from commonplace.cli.session import Session, confirm, json_option, open_session, plural, progress, scope_option
from commonplace.cli.terminal import print_json, print_text, short_path
from commonplace.config import settings
from commonplace.config.paths import CONFIG, FOLDER, Place, find, identity
from commonplace.config.project import ASSISTANT, PROJECT, context
from commonplace.files import disk as files
from commonplace.files.sync import Report
from commonplace.model.errors import InvalidInput
from commonplace.roles.commands.template import ROLE_MODEL, init_role
from commonplace.text.cleaning import slug

README = """\
# This project's memory

One Markdown file for each record, kept by Commonplace and open to every editor; `commonplace sync` reads what you
changed.

May be committed: everything in this folder, to share it with whoever clones the project. Look before you do: what a
record says is then as public as the code. Or ignore the folder, and it stays yours. The search index, the counts of use
and your own (assistant) memory are in your data folder and never in here.
"""
_TITLES = {PROJECT: "The settings of this project's memory.", ASSISTANT: "The settings of your own memory."}
_SCHEMAS = {PROJECT: settings.PROJECT, ASSISTANT: settings.USER}

_scope = click.option("--scope", type=click.Choice([PROJECT, ASSISTANT]), required=True, help="Which memory.")


@click.command(cls=Command)
@click.option("--name", help="With --template: what the agent is called.")
@click.option("--template", metavar="TEMPLATE", help="Write role.yaml instead, for an agent: memory.")
@click.option("--model", metavar="PROVIDER:NAME", help=f"With --template: the agent's model.  [default: {ROLE_MODEL}]")
@json_option
def init(name: str | None, template: str | None, model: str | None, as_json: bool) -> None:
    """Make this repository, or else this folder, a project with a memory of its own.

    It makes .commonplace/ with a commented config.yaml and a README; the records' files come beside them.  Clones and
    worktrees of one repository share one memory.

    With --template it makes no project: it writes a role.yaml for an agent that remembers.

    Examples:
      cd my-project && commonplace init
      commonplace init --name assistant --template memory
    """
    if name is not None or template is not None or model is not None:
        init_role(name, template, model, as_json=as_json)
        return
    place = find(os.getcwd())
    root = place.root if place else os.getcwd()
    folder = (place.folder if place else None) or os.path.join(root, FOLDER)
    made = made_project(folder, place)
    where = context(os.getcwd(), os.environ)
    data = {"folder": folder, "project": where.project.name if where.project else None, "made": made}
    said = f"Made {short_path(folder)}" if made else f"{short_path(folder)} is there already"
    if as_json:
        print_json(data)
    else:
        print_text(f"{said}; the project is called {data['project']}")


def made_project(folder: str, place: Place | None) -> bool:
    """Make what is not there yet, and leave what is."""
    name = (
        identity(place) if place else None
    ) or f"local/{slug(os.path.basename(os.path.dirname(folder)))}-{_chance()}"
    written = {
        CONFIG: settings.template(settings.PROJECT, {"project": name}, title=_TITLES[PROJECT]),
        "README.md": README,
    }
    os.makedirs(folder, mode=0o700, exist_ok=True)
    missing = [file for file in written if not os.path.exists(os.path.join(folder, file))]
    for file in missing:
        files.replace(folder, file, written[file].encode())
    return bool(missing)


def _chance() -> str:
    return os.urandom(4).hex()


@click.command(cls=Command)
@click.option("--accept-missing", is_flag=True, help="Archive the records of files that vanished, however many.")
@scope_option
@json_option
def sync(accept_missing: bool, scope: str | None, as_json: bool) -> int:
    """Bring the Markdown files and the records together.

    New files become records, edited ones new versions, vanished ones are archived; records whose files are missing or
    behind are written.  Every recall does this by itself when files have changed.  Files that cannot be read are named
    with their line and left alone; the exit code is then 1.

    Examples:
      commonplace sync
      commonplace sync --scope project --accept-missing
    """
    with open_app() as place:
        session = Session(place, place.memory, as_json=as_json)
        meant = [place.where.writable_scope(scope)] if scope else place.folders.scopes
        reports = {}
        for one in meant:
            with progress(f"Syncing {place.where.label(one)}") as tell:
                reports[place.where.label(one)] = place.folders.sync(one, accept_missing=accept_missing, tell=tell)
            session.add_notes(*map(short_path, place.folders.sync_notes(one, reports[place.where.label(one)])))
        text = "\n".join(f"{name}: {_summary(report)}" for name, report in reports.items())
        session.answer(text, {"scopes": {name: _report_json(report) for name, report in reports.items()}})
    return ATTENTION if any(report.troubles or report.missing for report in reports.values()) else OK


def _summary(report: Report) -> str:
    counted = {
        "added": report.added,
        "changed": report.changed,
        "archived": report.archived,
        "restored": report.restored,
        "written": report.written,
        "removed": report.removed,
        "gone at once and left alone": report.missing,
        "not readable": report.troubles,
    }
    return ", ".join(f"{len(items)} {what}" for what, items in counted.items() if items) or "in step"


def _report_json(report: Report) -> Mapping[str, Any]:
    plain = ("added", "changed", "archived", "restored", "written", "removed", "missing")
    return {name: list(getattr(report, name)) for name in plain} | {
        "troubles": [{"path": one.path, "line": one.line, "reason": one.reason} for one in report.troubles],
        "redactions": [{"path": path, "kind": found.kind, "mark": found.mark} for path, found in report.redactions],
    }


@click.command(cls=Command)
@_scope
@json_option
def enable(scope: str, as_json: bool) -> None:
    """Switch a memory on.

    Example:
      commonplace enable --scope project
    """
    _switch(scope, on=True, as_json=as_json)


@click.command(cls=Command)
@_scope
@json_option
def disable(scope: str, as_json: bool) -> None:
    """Switch a memory off: nothing is kept in it and nothing recalled from it; what is there stays.

    Example:
      commonplace disable --scope assistant
    """
    _switch(scope, on=False, as_json=as_json)


def _switch(scope: str, *, on: bool, as_json: bool) -> None:
    """Turn the one line of the settings; whatever else stands there, comments too, stays."""
    path = context(os.getcwd(), os.environ).settings_file(scope)
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        text = settings.template(_SCHEMAS[scope], {}, title=_TITLES[scope])
    files.replace(os.path.dirname(path), os.path.basename(path), settings.with_switch(text, "enabled", on).encode())
    if as_json:
        print_json({"scope": scope, "enabled": on, "settings": path})
    else:
        print_text(f"The {scope} memory is switched {'on' if on else 'off'} ({short_path(path)})")


@click.command(cls=Command)
@_scope
@click.option("--yes", is_flag=True, help="Do not ask; refused where there is no terminal.")
@click.option("--force", is_flag=True, help="Do not ask, also where there is no terminal.")
@json_option
def clear(scope: str, yes: bool, force: bool, as_json: bool) -> int:
    """Erase everything in a memory for good: records, versions, sessions, index, files.

    Examples:
      commonplace clear --scope project
      commonplace backup && commonplace clear --scope assistant --force
    """
    if yes and not force and not sys.stdin.isatty():
        raise InvalidInput("--yes does not clear a memory where there is no terminal; --force does")
    with open_session(scope, as_json=as_json) as session:
        target = session.place.where.writable_scope(scope)
        count = sum(tally.count for tally in session.place.store.census() if tally.scope == target)
        question = f"Erase the {plural(count, 'thing')} in the {scope} memory for good?"
        if not (yes or force) and not confirm(question, otherwise="--force"):
            return ATTENTION
        forgotten = session.memory.clear(target)
        session.note_remains(pending=forgotten.pending)
        session.answer(
            f"Erased {plural(len(forgotten.ids), 'record')} of the {scope} memory", {"erased": list(forgotten.ids)}
        )
    return OK
