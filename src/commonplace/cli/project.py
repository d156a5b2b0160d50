"""Commands about a memory as a whole: make a project, sync its files, switch it on or off, clear it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

import click

from commonplace.app import open_app
from commonplace.cli.agreement import agree, find_project
from commonplace.cli.commands import Command
from commonplace.cli.exits import ATTENTION, OK
from commonplace.cli.progress import show_progress
from commonplace.cli.session import Session, confirm, json_option, open_session, scope_option
from commonplace.cli.terminal import print_json, print_text, short_path
from commonplace.config.paths import FOLDER, Place, find, home
from commonplace.config.project import ASSISTANT, PROJECT, context
from commonplace.config.trust import trust_of
from commonplace.config.trust_registry import keep_trust, read_claim, require_unchanged, trust_new_project
from commonplace.config.writing import make_project, switch_memory
from commonplace.files.sync import SyncReport
from commonplace.git.driver import install_driver
from commonplace.model.errors import InvalidInput
from commonplace.roles import ROLE_MODEL, init_role
from commonplace.text.cleaning import plural

_scope = click.option("--scope", type=click.Choice([PROJECT, ASSISTANT]), required=True, help="Which memory.")


@click.command(cls=Command)
@click.option("--name", help="With --template: the name of the agent.")
@click.option("--template", metavar="TEMPLATE", help="Write a role.yaml for an agent instead: memory.")
@click.option("--model", metavar="PROVIDER:NAME", help=f"With --template: its model.  [default: {ROLE_MODEL}]")
@click.option("--yes", is_flag=True, help="Do not ask whether to trust a folder that came with a .commonplace/.")
@json_option
def init(name: str | None, template: str | None, model: str | None, yes: bool, as_json: bool) -> int:
    """Make this repository, or this folder, a project with its own memory.

    Creates .commonplace/ with a commented config.yaml and a README; the files of the records are written there too.
    A .gitattributes and a .gitignore there say how Git merges the files, and what is not committed.
    Clones and worktrees of one repository share one memory, each after a yes of its own.

    This is also your yes to the folder: if it came with a .commonplace/, or shares the memory of another folder, init
    shows what it claims and asks, as `commonplace trust` does.

    --template creates no project: it writes a role.yaml for an agent that remembers.

    Examples:
      cd my-project && commonplace init
      commonplace init --name assistant --template memory
    """
    if name is not None or template is not None or model is not None:
        init_role(name, template, model, as_json=as_json)
        return OK
    place, data = find(os.getcwd()), home(os.environ)
    root = place.root if place else os.getcwd()
    folder = (place.folder if place else None) or os.path.join(root, FOLDER)
    is_new = not os.path.isdir(folder)
    if not is_new and not _is_agreed(find_project(root), data, yes=yes):
        return ATTENTION
    if is_new and place and read_claim(place, data).others and agree(place, data, yes=yes) is None:
        return ATTENTION
    made = make_project(folder, place)
    if place:
        install_driver(place.root)
    if is_new:
        before = trust_of(find_project(root), data)
        trust_new_project(find_project(root), data, shared=True)
        with open_app() as app:
            app.adopt(before.identity)
    where = context(os.getcwd(), os.environ)
    project = where.project.name if where.project else None
    if as_json:
        print_json({"folder": folder, "project": project, "made": made})
    else:
        text = f"Made {short_path(folder)}" if made else f"{short_path(folder)} exists already"
        print_text(f"{text}; the project is called {project}")
    return OK


def _is_agreed(place: Place, data: str, *, yes: bool) -> bool:
    """Whether the user trusts a folder that has a .commonplace/ already; asks where it is not trusted yet."""
    return trust_of(place, data).is_trusted or agree(place, data, yes=yes) is not None


@click.command(cls=Command)
@click.option("--accept-missing", is_flag=True, help="Archive the records of missing files, however many.")
@click.option("--write", "restores", is_flag=True, help="Write a file for each live record that has none here.")
@scope_option
@json_option
def sync(accept_missing: bool, restores: bool, scope: str | None, as_json: bool) -> int:
    """Sync the Markdown files and the records.

    New files become records, edited files become new versions, the records of deleted files are archived; new files
    get their id, and outdated ones are written.  A record whose file this branch or worktree does not have is hidden
    here; --write writes it.  What came by Git from other people is external, or waits for review if it would change a
    record of yours.  Recall syncs automatically when files have changed, and writes no file that Git tracks.  Files
    that are not read are named with what to do, and left as they are; the exit code is then 1.

    Examples:
      commonplace sync
      commonplace sync --scope project --accept-missing
      commonplace sync --write
    """
    with open_app() as app:
        session = Session(app, app.memory, as_json=as_json)
        meant = [app.where.writable_scope(scope)] if scope else app.folders.scopes
        reports = {}
        for one in meant:
            with show_progress(f"Syncing {app.where.label(one)}") as progress:
                reports[app.where.label(one)] = app.folders.sync(
                    one, accept_missing=accept_missing, restores=restores, progress=progress
                )
            session.add_notes(*map(short_path, app.folders.sync_notes(one, reports[app.where.label(one)])))
        text = "\n".join(f"{name}: {_summary(report)}" for name, report in reports.items())
        session.answer(text, {"scopes": {name: _report_json(report) for name, report in reports.items()}})
    return ATTENTION if any(report.troubles or report.missing for report in reports.values()) else OK


def _summary(report: SyncReport) -> str:
    counts = {
        "added": report.added,
        "changed": report.changed,
        "external": report.external,
        "waiting for review": report.proposed,
        "archived": report.archived,
        "hidden": report.hidden,
        "restored": report.restored,
        "written": report.written,
        "removed": report.removed,
        "missing at once and not archived": report.missing,
        "erased and not revived": report.erased,
        "not readable": report.troubles,
    }
    return ", ".join(f"{len(items)} {what}" for what, items in counts.items() if items) or "in sync"


def _report_json(report: SyncReport) -> Mapping[str, Any]:
    plain = (
        *("added", "changed", "archived", "hidden", "restored", "written", "removed", "missing", "erased"),
        *("external", "proposed"),
    )
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
    """Switch a memory off: nothing is saved to it or recalled from it.  Its records stay.

    Example:
      commonplace disable --scope assistant
    """
    _switch(scope, on=False, as_json=as_json)


def _switch(scope: str, *, on: bool, as_json: bool) -> None:
    where = context(os.getcwd(), os.environ)
    path = where.settings_file(scope)
    mine = where.place if scope == PROJECT else None
    if mine:
        require_unchanged(mine, where.home)
    switch_memory(path, scope, on=on)
    if mine:
        keep_trust(mine, where.home)
    if as_json:
        print_json({"scope": scope, "enabled": on, "settings": path})
    else:
        print_text(f"The {scope} memory is switched {'on' if on else 'off'} ({short_path(path)})")


@click.command(cls=Command)
@_scope
@click.option("--yes", is_flag=True, help="Do not ask.  Refused without a terminal.")
@click.option("--force", is_flag=True, help="Do not ask, also without a terminal.")
@json_option
def clear(scope: str, yes: bool, force: bool, as_json: bool) -> int:
    """Erase everything in a memory irreversibly: records, versions, sessions, index, files.

    Examples:
      commonplace clear --scope project
      commonplace backup && commonplace clear --scope assistant --force
    """
    if yes and not force and not sys.stdin.isatty():
        raise InvalidInput("--yes does not clear a memory where there is no terminal; --force does")
    with open_session(scope, as_json=as_json) as session:
        session.require_person("clears a memory")
        target = session.app.where.writable_scope(scope)
        count = sum(tally.count for tally in session.app.store.census() if tally.scope == target)
        question = f"Erase the {plural(count, 'item')} in the {scope} memory irreversibly?"
        if not (yes or force) and not confirm(question, otherwise="--force"):
            return ATTENTION
        forgotten = session.memory.clear(target)
        session.note_remains(pending=forgotten.pending)
        session.answer(
            f"Erased {plural(len(forgotten.ids), 'record')} of the {scope} memory", {"erased": list(forgotten.ids)}
        )
    return OK
