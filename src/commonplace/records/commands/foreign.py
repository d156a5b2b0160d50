"""Other tools' memory in and out: what ``import --from`` and ``export --to`` do."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

from commonplace.cli.person import ask_on_terminal
from commonplace.cli.progress import show_progress
from commonplace.cli.session import Session, count_items, open_session
from commonplace.cli.terminal import print_note, short_path
from commonplace.config.project import ASSISTANT, PROJECT
from commonplace.engine.memory import with_binding
from commonplace.engine.rendering import redaction_notes
from commonplace.engine.transfer import Arrival, ImportResult, Incoming, Unreadable, import_items
from commonplace.files.artifacts import SKILLS, list_files, read
from commonplace.files.user_files import read_lines, replacing
from commonplace.learning import addresses_of
from commonplace.model.errors import InvalidInput
from commonplace.model.records import Channel, Record
from commonplace.model.values import Value
from commonplace.records.foreign import find_files, read_files
from commonplace.records.foreign_export import NOTE, between_marks, index_line, section
from commonplace.records.plain import NOTES, read_notes, read_plain
from commonplace.text.cleaning import one_line, plural

AGENTS_FILE, INDEX_FILE = "AGENTS.md", "MEMORY.md"
SHOWN_REFUSALS = 20  # of facts or rows that were left out, by name
OWN_WORDS = "These records will count as your own word, with trust user. Are they?"
ALL = -1


def import_foreign(
    path: str, form: str, *, scope: str | None, category: str | None, dry_run: bool, as_json: bool
) -> None:
    """Import what another tool keeps, into the project, or into your own memory where there is none."""
    with open_session(scope, as_json=as_json) as session, show_progress("Importing") as progress:
        app = session.app
        into = app.where.writable_scope(scope or (PROJECT if app.where.project else ASSISTANT))
        files = find_files(form, path)
        items = read_files(form, files, path)
        if dry_run:
            drafts = [item.draft for item in items]
            text = "\n".join(f"{draft.category}: {draft.content.splitlines()[0]}" for draft in drafts)
            session.answer(text, {"found": [{"category": one.category, "content": one.content} for one in drafts]})
            return
        if category:
            items = (item.replace(draft=item.draft.replace(category=category)) for item in items)
        memory = with_binding(app.memory, app.where.bind(Channel.IMPORT))
        _report(session, import_items(memory, items, into=into, lenient=True, progress=progress), len(files))


class PlainImport(Value):
    """The options of an import of plain data."""

    scope: str | None = None
    category: str | None = None
    dry_run: bool = False
    strict: bool = False
    trusted: bool = False
    as_json: bool = False


def import_plain(form: str, file: str, lines: Iterator[str], options: PlainImport) -> None:
    """Import rows or notes, as text from outside unless the user says on the terminal that they are their own."""
    with open_session(options.scope, as_json=options.as_json) as session, show_progress("Importing") as progress:
        app = session.app
        into = app.where.writable_scope(options.scope or (PROJECT if app.where.project else ASSISTANT))
        items = (
            read_notes(file, category=options.category)
            if form == NOTES
            else read_plain(form, file, lines, category=options.category)
        )
        if options.dry_run:
            _preview(session, items)
            return
        if options.trusted:
            ask_on_terminal(f"{file}: {OWN_WORDS}")
        memory = app.memory if options.trusted else with_binding(app.memory, app.where.bind(Channel.IMPORT))
        read = count_items(items, progress)
        done = import_items(memory, read, into=into, lenient=True, strict=options.strict, progress=progress)
        _report(session, done, None)


def _preview(session: Session, items: Iterable[Incoming]) -> None:
    """Print what an import would add, and which rows it would leave out."""
    found, refused = [], []
    for item in items:
        if isinstance(item, Unreadable):
            refused.append(f"{item.place}: {item.reason}")
        elif isinstance(item, Arrival):
            found.append(item.draft)
    session.add_notes(*(f"would leave out: {reason}" for reason in refused))
    text = "\n".join(f"{draft.category}: {one_line(draft.content)}" for draft in found)
    rows = [{"category": one.category, "content": one.content, "tags": sorted(one.tags)} for one in found]
    session.answer(text, {"found": rows, "left_out": refused})


def _report(session: Session, done: ImportResult, files: int | None) -> None:
    session.add_notes(*redaction_notes(done.redactions), *done.notes)
    session.add_notes(*(f"left out: {reason}" for reason in done.left_out[:SHOWN_REFUSALS]))
    if (more := len(done.left_out) - SHOWN_REFUSALS) > 0:
        session.add_notes(f"left out: {more} more")
    added, duplicates = plural(done.added, "record"), plural(done.duplicates, "duplicate")
    source = "" if files is None else f" from {plural(files, 'file')}"
    data = {"files": files, "added": done.added, "duplicates": done.duplicates, "left_out": list(done.left_out)}
    skipped = f", {plural(len(done.left_out), 'row')} left out" if done.left_out and files is None else ""
    session.answer(f"Imported {added} ({duplicates}{skipped}){source}.", data)


def export_foreign(to: str, path: str | None, *, scope: str | None, with_assistant: bool) -> None:
    """Write records where another tool reads them; the user's own only if asked, because such files get committed."""
    with open_session(scope) as session:
        if to == "skills":
            _link_skills(session, path or os.path.join(".claude", "skills"))
            return
        records = _exportable(session, with_assistant=with_assistant or scope == ASSISTANT)
        if to == "agents-md":
            file = path or AGENTS_FILE
            _write({file: between_marks(_text(file), section(records), file=file)})
            return
        if path is None:
            raise InvalidInput("name Claude Code's memory folder: ~/.claude/projects/<project>/memory")
        index = os.path.join(path, INDEX_FILE)
        text = between_marks(_text(index), index_line(), file=index)
        _write({os.path.join(path, NOTE): section(records, level=1), index: text})


def _exportable(session: Session, *, with_assistant: bool) -> list[Record]:
    """The live records that are exported; a note says how many others there are."""
    records = session.memory.list(limit=ALL)
    own = [record for record in records if record.scope == session.app.where.assistant and not with_assistant]
    rest = [record for record in records if record not in own]
    unapproved = sum(not record.has_authority for record in rest)
    if own:
        session.add_notes(f"left out {plural(len(own), 'record')} of your own memory; --with-assistant writes them too")
    if unapproved:
        session.add_notes(f"left out {plural(unapproved, 'record')} that nobody has approved; see `commonplace review`")
    return [record for record in rest if record.has_authority]


def _text(file: str) -> str:
    if not os.path.exists(file):
        return ""
    if not os.path.isfile(file):  # reading a pipe would wait for ever
        raise InvalidInput(f"{file!r} is not a file that something could be written into")
    return "".join(read_lines(file))  # a mark of byte order stays


def _write(texts: Mapping[str, str]) -> None:
    for file, text in texts.items():
        os.makedirs(os.path.dirname(os.path.abspath(file)), exist_ok=True)
        with replacing(file, private=False) as target:
            target.write(text.encode())
        print_note(f"written: {short_path(file)}")


def _is_foreign(session: Session, made: str, name: str) -> bool:
    """Whether any file of a skill came by Git from somebody else."""
    own = os.path.dirname(made)
    for path in list_files(own, under=f"{SKILLS}/{name}"):
        found = read(own, path)
        if found is None or session.app.is_foreign(path, found):
            return True
    return False


def _link_skills(session: Session, folder: str) -> None:
    """Link each skill that was learned into a folder in which a host looks; links and files of others stay."""
    own = addresses_of(session.app).folder
    made = os.path.join(own, SKILLS) if own else None
    names = sorted(os.listdir(made)) if made and os.path.isdir(made) else []
    skills = [name for name in names if made and os.path.isfile(os.path.join(made, name, "SKILL.md"))]
    foreign = [name for name in skills if made and _is_foreign(session, made, name)]
    for name in foreign:
        print_note(f"left out the skill {name}: it came by Git from somebody else")
    skills = [name for name in skills if name not in foreign]
    if made is None or not skills:
        print_note("there are no skills yet; `commonplace learn` makes them of what recurs")
        return
    os.makedirs(folder, exist_ok=True)
    for name in skills:
        link, goal = os.path.join(folder, name), os.path.join(made, name)
        if os.path.realpath(link) == os.path.realpath(goal):
            continue
        if os.path.lexists(link):
            print_note(f"{short_path(link)} was not made by commonplace; left unchanged")
            continue
        os.symlink(os.path.relpath(goal, os.path.realpath(folder)), link)
        print_note(f"linked: {short_path(link)}")
