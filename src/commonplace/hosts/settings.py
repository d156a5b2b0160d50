"""Edit the settings of a host: add our entries, and remove them again.

A plan has every file before and after; nothing is written until it is applied.  A note in the data folder keeps the
original bytes, so that disconnecting restores them exactly; if a file was changed since, only our entries are removed
from it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from difflib import unified_diff
from hashlib import sha256
from typing import Any

from commonplace.files.disk import open_file, read_rest
from commonplace.hosts import jsonc
from commonplace.hosts.registry import ANSWER, COMPACT, END, PROMPT, START, STOP, SettingsPart
from commonplace.install import hint
from commonplace.model.errors import ConfigError, Forbidden, InvalidInput
from commonplace.model.values import Value

NAME = "commonplace"  # of the MCP server, and of every file that is ours as a whole
#: Seconds that a host waits; the hook itself ends sooner (hook.SECONDS).
LIMITS = {START: 10, PROMPT: 5, ANSWER: 5, COMPACT: 15, STOP: 15, END: 15}
_OUR_HOOK = re.compile(r"""(?:^|[/\\"' ])commonplace(?:\.exe)?["']? hook [a-z]""")
_PLAIN = re.compile(r"[\w@%+=:,./-]+", re.ASCII)
FOLDER = "connections"  # in the data folder
MARK = "`commonplace connect"  # in every text that is ours as a whole
FILE_BYTES = 64 * 1024 * 1024  # settings are small, but one host keeps its state in them


def hook_command_line(script: str, event: str, host: str | None) -> str:
    """The command line of a hook, for a shell."""
    quoted = script if _PLAIN.fullmatch(script) else "'" + script.replace("'", "'\"'\"'") + "'"
    return f"{quoted} hook {event}" + (f" --host {host}" if host else "")


def runs_our_hook(command: object) -> bool:
    """Whether a command line is one of our hooks, wherever the script was then."""
    return isinstance(command, str) and bool(_OUR_HOOK.search(command))


class ChangeNote(Value):
    """What is remembered of a file that was changed."""

    file: str
    host: str
    project: str | None  #: whose settings; None: the person's own
    existed: bool
    after: str  #: digest of what was written
    made: tuple[jsonc.Path, ...] = ()  #: containers that were not there before
    folders: tuple[str, ...] = ()  #: likewise, on disk
    new_file_fields: Mapping[str, Any] = {}  #: what a new file was given in addition


class FileChange(Value):
    """One file, before and after."""

    file: str
    now: bytes | None  #: as it is; None: it does not exist
    then: bytes | None
    note: ChangeNote | None = None  #: to be saved; None: to be deleted
    before: bytes | None = None  #: what disconnecting brings back

    @property
    def diff(self) -> str:
        """For people."""
        old, new = [(data or b"").decode(errors="replace").splitlines(keepends=True) for data in (self.now, self.then)]
        before, after = [self.file if data is not None else os.devnull for data in (self.now, self.then)]
        lines = unified_diff(old, new, before, after, n=2)
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


class SettingsEditor:
    """The settings of hosts, as far as they are ours."""

    def __init__(self, home: str) -> None:
        self._folder = os.path.join(home, FOLDER)

    def plan_connect(self, host: str, project: str | None, parts: Sequence[SettingsPart]) -> list[FileChange]:
        """What has to change to connect a host; nothing where it is connected already."""
        changes = [self._with(host, project, file, own) for file, own in _by_file(parts).items()]
        return [change for change in changes if change.now != change.then]

    def plan_disconnect(self, host: str, project: str | None, parts: Sequence[SettingsPart]) -> list[FileChange]:
        """What has to change to disconnect it."""
        noted = [note.file for note in self.notes() if (note.host, note.project) == (host, project)]
        by_file = _by_file(parts)
        known = {file: by_file.get(file) or self._like(file, parts) for file in dict.fromkeys([*by_file, *noted])}
        changes = [self._without(file, own) for file, own in known.items()]
        return [change for change in changes if change.now != change.then]

    def is_connected(self, parts: Sequence[SettingsPart]) -> bool:
        """Whether something of ours is in these files."""
        changes = [self._without(file, own) for file, own in _by_file(parts).items()]
        return any(change.now != change.then for change in changes)

    def apply(self, changes: Sequence[FileChange]) -> list[str]:
        """Apply a plan, all of it or nothing; returns the paths of the backups."""
        for change in changes:
            if _read(change.file) != change.now:
                raise InvalidInput(f"{change.file!r} was changed meanwhile; nothing was written to it")
        new = [change for change in changes if change.note and self._note(_name(change.file)) is None]
        backups: list[str] = []
        written: list[FileChange] = []
        try:
            for change in changes:
                backups += filter(None, [self._write_change(change)])
                written.append(change)
        except Forbidden:
            for change in written:
                _put(change.file, change.now)
            for change in new:
                self._forget(change.file, change.note)
            raise
        return backups

    def notes(self) -> list[ChangeNote]:
        """Every file that was changed and not changed back."""
        found = sorted(os.listdir(self._folder)) if os.path.isdir(self._folder) else []
        return [note for name in found if name.endswith(".json") and (note := self._note(name[: -len(".json")]))]

    # Planning

    def _with(self, host: str, project: str | None, file: str, parts: Sequence[SettingsPart]) -> FileChange:
        now = _read(file)
        base, made = self._base(file, now, parts)
        then, new = _add_parts(file, base, parts)
        folders = () if now is not None else tuple(_absent(os.path.dirname(os.path.realpath(file))))
        earlier = self._note(_name(file))
        note = ChangeNote(
            file=file, host=host, project=project, existed=base is not None, after=_digest(then),
            made=tuple(dict.fromkeys([*made, *new])), folders=folders or (earlier.folders if earlier else ()),
            new_file_fields=next((part.new_file_fields for part in parts if part.new_file_fields), {}),
        )  # fmt: skip
        return FileChange(file=file, now=now, then=then, note=note, before=base)

    def _base(
        self, file: str, now: bytes | None, parts: Sequence[SettingsPart]
    ) -> tuple[bytes | None, Sequence[jsonc.Path]]:
        """A file as it is without us, and what we had made in it."""
        note = self._note(_name(file))
        if now is None:
            return None, ()
        if note and note.after == _digest(now):
            before = self._backup(file) if note.existed else None
            if before is not None or not note.existed:  # a backup that was removed restores nothing
                return before, ()
        return _remove_parts(file, now, parts, note), note.made if note else ()

    def _without(self, file: str, parts: Sequence[SettingsPart]) -> FileChange:
        now = _read(file)
        base, _ = self._base(file, now, parts)
        return FileChange(file=file, now=now, then=base)

    def _like(self, file: str, parts: Sequence[SettingsPart]) -> list[SettingsPart]:
        """The parts for a file that is not where it would be today, such as one with another ending."""
        kind = {".toml": "toml", ".js": "text"}.get(os.path.splitext(file)[1], "json")
        return [part.replace(file=file) for part in parts if part.kind == kind]

    # Writing

    def _write_change(self, change: FileChange) -> str | None:
        backup = self._save_note(change)
        _put(change.file, change.then)
        if change.note is None:
            self._forget(change.file, self._note(_name(change.file)))
        return backup

    def _save_note(self, change: FileChange) -> str | None:
        """Keep the bytes before anything is written; returns where."""
        if change.note is None:
            return None
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        path = os.path.join(self._folder, f"{_name(change.file)}.before")
        if change.before is not None:
            write(path, change.before, mode=0o600)
        fields = {name: getattr(change.note, name) for name in ChangeNote.fields}
        write(os.path.join(self._folder, f"{_name(change.file)}.json"), json.dumps(fields).encode(), mode=0o600)
        return path if change.before is not None else None

    def _forget(self, file: str, note: ChangeNote | None) -> None:
        for end in (".before", ".json"):
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(self._folder, _name(file) + end))
        for folder in reversed(note.folders if note else ()):
            with suppress(OSError):  # it is not empty
                os.rmdir(folder)

    def _note(self, name: str) -> ChangeNote | None:
        data = _read(os.path.join(self._folder, f"{name}.json"))
        if data is None:
            return None
        try:
            entry = json.loads(data)
            entry.setdefault("new_file_fields", entry.pop("beside", {}))  # its name in notes of 0.1
            return ChangeNote(**entry | {"made": tuple(map(tuple, entry["made"])), "folders": tuple(entry["folders"])})
        except (ValueError, KeyError, TypeError):  # a note that is none: what is ours is known without it
            return None

    def _backup(self, file: str) -> bytes | None:
        return _read(os.path.join(self._folder, f"{_name(file)}.before"))


# One file


def _by_file(parts: Iterable[SettingsPart]) -> dict[str, list[SettingsPart]]:
    found: dict[str, list[SettingsPart]] = {}
    for part in parts:
        found.setdefault(part.file, []).append(part)
    return found


def _add_parts(file: str, base: bytes | None, parts: Sequence[SettingsPart]) -> tuple[bytes, list[jsonc.Path]]:
    """A file with what is ours, and the containers that were made for it."""
    if parts[0].kind == "text":
        if base is not None:
            raise InvalidInput(f"{file!r} exists already and is not ours; nothing was changed")
        return str(parts[0].value).encode(), []
    if parts[0].kind == "toml":
        return _fill_toml(file, base, parts), []
    text = _text(file, base) if base is not None and base.strip() else jsonc.as_text(parts[0].new_file_fields)
    made: list[jsonc.Path] = []
    with _named(file):
        for part in parts:
            made += [path for path in jsonc.missing(text, part.path) if part.listed or path != part.path]
            text = jsonc.insert(text, part.path, part.value, listed=part.listed)
    return text.encode(), list(dict.fromkeys(made))


def _remove_parts(file: str, now: bytes, parts: Sequence[SettingsPart], note: ChangeNote | None) -> bytes | None:
    """A file without what is ours; None if nothing else is in it and it was not there before us."""
    if not parts or not now.strip():
        return now
    if parts[0].kind == "text":
        return None if MARK.encode() in now else now
    if parts[0].kind == "toml":
        return _empty_toml(file, now, parts, existed=note is None or note.existed)
    text = _text(file, now)
    with _named(file):
        for part in parts:
            text = jsonc.remove(text, part.path, _is_ours, listed=part.listed)
            text = _remove_own_hooks(text, part.path) if part.listed else text
        text = jsonc.prune(text, note.made if note else ())
        bare = note is not None and not note.existed and jsonc.parse(text).value in ({}, dict(note.new_file_fields))
    return None if bare else text.encode()


def _remove_own_hooks(text: str, path: jsonc.Path) -> str:
    """Remove our hooks from groups that have others too; the others stay."""
    for number in range(jsonc.length(text, path)):
        text = jsonc.remove(text, (*path, number, "hooks"), _is_ours, listed=True)
    return text


def _is_ours(value: Any) -> bool:
    """Whether a hook, all hooks of a group, or a server runs our command."""
    if not isinstance(value, dict):
        return False
    inner = value.get("hooks")
    if isinstance(inner, list):
        return bool(inner) and all(isinstance(one, dict) and runs_our_hook(one.get("command")) for one in inner)
    run = value.get("command")
    program = run[0] if isinstance(run, list) and run else run
    return runs_our_hook(run) or (isinstance(program, str) and os.path.basename(program) == NAME)


class _named:  # noqa: N801 - it reads as a word
    """Say which file cannot be changed."""

    def __init__(self, file: str) -> None:
        self._file = file

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if isinstance(error, InvalidInput):
            raise ConfigError(str(error), file=self._file) from error


def _text(file: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"is not UTF-8 at byte {error.start}", file=file) from None


# TOML


def _fill_toml(file: str, base: bytes | None, parts: Sequence[SettingsPart]) -> bytes:
    kit, document = _toml(file, base or b"")
    for part in parts:
        *outer, last = part.path
        table = document
        for depth, key in enumerate(outer, start=1):
            if key not in table:
                table[key] = kit.table(is_super_table=True)
            table = table[key]
            if not isinstance(table, Mapping):
                raise ConfigError(f"has {'.'.join(outer[:depth])} that is not a table", file=file)
        if last in table:
            raise ConfigError(f"has {'.'.join(part.path)} already, which is not ours", file=file)
        table[last] = part.value
    return str(kit.dumps(document)).encode()


def _empty_toml(file: str, now: bytes, parts: Sequence[SettingsPart], *, existed: bool) -> bytes | None:
    kit, document = _toml(file, now)
    for part in parts:
        *outer, last = part.path
        table = document
        for key in outer:
            table = table.get(key, {}) if isinstance(table, Mapping) else {}
        there = isinstance(table, Mapping) and isinstance(table.get(last), Mapping)
        if there and _is_ours(table[last].unwrap()):
            del table[last]
            if outer and not table:
                del document[outer[0]]
    data = str(kit.dumps(document)).encode()
    return None if not existed and not data.strip() else data


def _toml(file: str, data: bytes) -> tuple[Any, Any]:
    try:
        import tomlkit  # noqa: PLC0415 - an extra
        from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415 - likewise
    except ImportError:
        raise ConfigError(hint("needs tomlkit to be changed", "connect"), file=file) from None
    text = _text(file, data)
    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise ConfigError(f"is not TOML: {error}", file=file) from None
    if tomlkit.dumps(document) != text:
        raise ConfigError("cannot be changed without touching other parts of it", file=file)
    return tomlkit, document


# Disk


def _read(file: str) -> bytes | None:
    try:
        with open_file(file, limit=FILE_BYTES) as opened:
            return read_rest(opened, limit=FILE_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", file=file) from error


def _put(file: str, data: bytes | None) -> None:
    """Write or delete a file; a link stays one."""
    if data is None:
        os.unlink(os.path.realpath(file))
    else:
        write(os.path.realpath(file), data)


def write(path: str, data: bytes, *, mode: int | None = None) -> None:
    """Replace a file atomically; an existing one keeps its permissions."""
    rights = mode
    if rights is None:
        rights = os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o644
    temporary = f"{path}.commonplace-{os.urandom(4).hex()}"
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        os.chmod(temporary, rights)
        os.replace(temporary, path)
    except OSError as error:
        with suppress(OSError):
            os.unlink(temporary)
        raise Forbidden(f"{path!r} cannot be written: {error.strerror}") from error


def _absent(folder: str) -> list[str]:
    """The folders on the way that are not there, outermost first."""
    found: list[str] = []
    while folder and not os.path.isdir(folder):
        found.insert(0, folder)
        folder = os.path.dirname(folder)
    return found


def _name(file: str) -> str:
    return sha256(os.path.realpath(file).encode()).hexdigest()[:24]


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()
