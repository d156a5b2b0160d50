"""Other tools' memory in and out: what ``import --from`` and ``export --to`` do."""

from __future__ import annotations

import os
from collections.abc import Mapping

from commonplace.cli.session import Session, open_session, plural, progress, redaction_notes
from commonplace.cli.terminal import print_note, short_path
from commonplace.config.project import ASSISTANT, PROJECT
from commonplace.engine.memory import bound
from commonplace.files.artifacts import SKILLS
from commonplace.learning import addresses_of
from commonplace.model.errors import InvalidInput
from commonplace.model.records import Channel
from commonplace.records.foreign_export import NOTE, between_marks, index_line, section
from commonplace.records.foreign_import import TakenIn, found_in, take_in

AGENTS_FILE, INDEX_FILE = "AGENTS.md", "MEMORY.md"
SHOWN_REFUSALS = 5  # of facts that were left out, by name
ALL = -1


def taken_in(path: str, sort: str, *, scope: str | None, category: str | None, dry_run: bool, as_json: bool) -> None:
    """Import what another tool keeps, into the project, or into your own memory where there is none."""
    with open_session(scope, as_json=as_json) as session, progress("Importing") as tell:
        place = session.place
        into = place.where.writable_scope(scope or (PROJECT if place.where.project else ASSISTANT))
        files, found = found_in(sort, path)
        if dry_run:
            text = "\n".join(f"{one.category}: {one.content.splitlines()[0]}" for one in found)
            session.answer(text, {"found": [{"category": one.category, "content": one.content} for one in found]})
            return
        memory = bound(place.memory, place.where.bind(Channel.IMPORT))
        done = take_in(memory, found, into, files=files, category=category, tell=tell)
        place.catch_up(tell=tell)
        _told(session, done)


def _told(session: Session, done: TakenIn) -> None:
    session.add_notes(*redaction_notes(done.redactions))
    session.add_notes(*(f"left out: {reason}" for reason in done.left_out[:SHOWN_REFUSALS]))
    if more := len(done.left_out) - SHOWN_REFUSALS:
        session.add_notes(*([f"left out: {more} more"] if more > 0 else []))
    text = f"{plural(done.kept, 'record')} kept, {done.present} there already, from {plural(done.files, 'file')}"
    data = {"files": done.files, "found": done.found, "kept": done.kept, "present": done.present}
    session.answer(text, data | {"left_out": list(done.left_out)})


def handed_out(to: str, path: str | None, *, scope: str | None) -> None:
    """Write what is remembered where another tool reads it."""
    with open_session(scope) as session:
        if to == "skills":
            _link_skills(session, path or os.path.join(".claude", "skills"))
            return
        records = session.memory.list(limit=ALL)
        if to == "agents-md":
            file = path or AGENTS_FILE
            _write({file: between_marks(_held(file), section(records), file=file)})
            return
        if path is None:
            raise InvalidInput("say where Claude Code's memory folder is: ~/.claude/projects/<project>/memory")
        index = os.path.join(path, INDEX_FILE)
        text = between_marks(_held(index), index_line(), file=index)
        _write({os.path.join(path, NOTE): section(records, level=1), index: text})


def _held(file: str) -> str:
    if os.path.exists(file) and not os.path.isfile(file):  # reading a pipe would wait for ever
        raise InvalidInput(f"{file!r} is not a file that something could be written into")
    try:
        with open(file, encoding="utf-8", newline="") as source:
            return source.read()
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file!r} is not UTF-8 at byte {error.start}; nothing was written") from error
    except OSError as error:
        raise InvalidInput(f"{file!r} cannot be read: {error.strerror}") from error


def _write(texts: Mapping[str, str]) -> None:
    """Write beside each file, then move it there; one that was there keeps its rights."""
    for file, text in texts.items():
        os.makedirs(os.path.dirname(os.path.abspath(file)), exist_ok=True)
        target = os.path.realpath(file)  # a link to a shared file stays one
        temporary = f"{target}.{os.getpid()}.part"
        with open(temporary, "w", encoding="utf-8", newline="") as out:
            out.write(text)
        if os.path.exists(target):
            os.chmod(temporary, os.stat(target).st_mode & 0o777)
        os.replace(temporary, target)
        print_note(f"written: {short_path(file)}")


def _link_skills(session: Session, folder: str) -> None:
    """Link each skill that was learned into a folder in which a host looks; what is somebody else's stays."""
    own = addresses_of(session.place).folder
    made = os.path.join(own, SKILLS) if own else None
    names = sorted(os.listdir(made)) if made and os.path.isdir(made) else []
    skills = [name for name in names if made and os.path.isfile(os.path.join(made, name, "SKILL.md"))]
    if made is None or not skills:
        print_note("there are no skills yet; `commonplace learn` makes them of what recurs")
        return
    os.makedirs(folder, exist_ok=True)
    for name in skills:
        link, goal = os.path.join(folder, name), os.path.join(made, name)
        if os.path.realpath(link) == os.path.realpath(goal):
            continue
        if os.path.lexists(link):
            print_note(f"{short_path(link)} is somebody else's and stays as it is")
            continue
        os.symlink(os.path.relpath(goal, os.path.realpath(folder)), link)
        print_note(f"linked: {short_path(link)}")
