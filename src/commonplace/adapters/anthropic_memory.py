"""Anthropic's memory tool on Commonplace: ``run_tools(..., tools=[CommonplaceMemoryTool(memory)])``.

The model sees files below ``/memories``; each is a record under its path, with every earlier version behind it, found
by recall like any other.  The answers are word for word those that the model was trained on.  Folders are made of the
paths of files: an empty one is none.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping

from commonplace.adapters.scoped import erase_records, find_records, scoped_memory, stored_key
from commonplace.engine.admission import Admitted, search_terms
from commonplace.engine.memory import Memory
from commonplace.install import hint
from commonplace.model.changes import Put
from commonplace.model.errors import Conflict, InvalidInput
from commonplace.model.queries import ANY_STATE
from commonplace.model.records import Draft, Json, Kind, Record
from commonplace.model.scopes import Scope
from commonplace.model.values import Value

try:
    from anthropic.lib.tools import BetaAbstractMemoryTool, ToolError
    from anthropic.types.beta import (
        BetaMemoryTool20250818CreateCommand as Create,
    )
    from anthropic.types.beta import (
        BetaMemoryTool20250818DeleteCommand as Remove,
    )
    from anthropic.types.beta import (
        BetaMemoryTool20250818InsertCommand as Insert,
    )
    from anthropic.types.beta import (
        BetaMemoryTool20250818RenameCommand as Rename,
    )
    from anthropic.types.beta import (
        BetaMemoryTool20250818StrReplaceCommand as Replace,
    )
    from anthropic.types.beta import (
        BetaMemoryTool20250818ViewCommand as View,
    )
except ImportError as error:
    raise ImportError(hint("this adapter needs Anthropic's SDK", "agent")) from error

ROOT = "/memories"
NUMBER_WIDTH = 6  # of a line number
SHOWN_LEVELS = 2  # of a folder
AROUND_LINES = 2  # that are shown before and after an edit
TRIES = 5  # of an edit while others edit the same file
_UNITS = ("B", "K", "M", "G")


class _MemoryFile(Value):
    """A file as the model knows it, and the record that holds it."""

    path: str  #: below ROOT, without a slash before it
    text: str
    record: Record


class CommonplaceMemoryTool(BetaAbstractMemoryTool):
    """The tool ``memory`` of Anthropic's models, kept in a memory under one name."""

    def __init__(self, memory: Memory, *, name: str = "anthropic") -> None:
        """Store files where ``memory`` does; two tools of one name there share them."""
        super().__init__()
        self._scope = Scope.of(("namespace", name))
        self._memory = scoped_memory(memory, self._scope)

    # The commands

    def view(self, command: View) -> str:
        """Show a file with its line numbers, or what a folder holds."""
        path = self._below(command.path)
        if file := self._file(path):
            return _number_lines(file.text, command)
        files = self._inside(path)
        if path and not files:
            raise ToolError(f"The path {command.path} does not exist. Please provide a valid path.")
        head = f"Here're the files and directories up to 2 levels deep in {command.path}, excluding hidden items:"
        return "\n".join([head, *_tree(command.path, path, files)])

    def create(self, command: Create) -> str:
        """Make a new file."""
        path = self._below(command.path)
        if not path or self._inside(path):
            raise ToolError(f"File {command.path} already exists")
        self._check_folders(path)
        admitted = self._admit(path, command.file_text)
        try:
            self._memory.writer.apply([admitted.put()])
        except Conflict:
            raise ToolError(f"File {command.path} already exists") from None
        return f"File created successfully at: {command.path}"

    def str_replace(self, command: Replace) -> str:
        """Replace a piece of text that occurs once."""
        before, after = self._edit(command.path, lambda text: _replace(text, command))
        return _snippet(after, before[: before.find(command.old_str)].count("\n"))

    def insert(self, command: Insert) -> str:
        """Put lines after a line."""
        self._edit(command.path, lambda text: _insert(text, command))
        return f"The file {command.path} has been edited."

    def delete(self, command: Remove) -> str:
        """Erase a file for good, or a folder with all that is in it."""
        path = self._below(command.path)
        if not path:
            raise ToolError("Cannot delete the /memories directory itself")
        if not self._at(path):
            raise ToolError(f"The path {command.path} does not exist")
        every = find_records(self._memory, states=ANY_STATE)
        erase_records(self._memory, [record for record in every if f"{record.key}/".startswith(f"{path}/")])
        return f"Successfully deleted {command.path}"

    def rename(self, command: Rename) -> str:
        """Give a file or a folder another path, all of it at once."""
        old, new = self._below(command.old_path), self._below(command.new_path)
        if not old:
            raise ToolError("Cannot rename the /memories directory itself")
        if not new or self._at(new):
            raise ToolError(f"The destination {command.new_path} already exists")
        found = self._at(old)
        if not found:
            raise ToolError(f"The path {command.old_path} does not exist")
        if new.startswith(f"{old}/"):
            raise ToolError(f"{command.old_path} cannot be moved into itself")
        self._check_folders(new)
        try:
            self._memory.writer.apply([self._rewrite(file, new + file.path[len(old) :], file.text) for file in found])
        except Conflict:
            raise ToolError(f"{command.old_path} was not renamed: another process has changed it meanwhile") from None
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    def clear_all_memory(self) -> str:
        """Erase every file irreversibly, and everything that memory derived from them."""
        self._memory.clear(self._scope)
        return "All memory cleared"

    # Files

    def _below(self, path: str) -> str:
        """Return a path of the model below the root, as it is stored; refuse one that leads out of it."""
        if path != ROOT and not path.startswith(f"{ROOT}/"):
            raise ToolError(f"Path must start with /memories, got: {path}")
        try:
            plain = posixpath.normpath(stored_key(self._memory, path, what="the path"))
        except InvalidInput as error:
            raise ToolError(f"{path!r} is no path: {error}") from error
        if plain != ROOT and not plain.startswith(f"{ROOT}/"):
            raise ToolError(f"Path {path} would escape /memories directory")
        return plain[len(ROOT) + 1 :]

    def _file(self, path: str) -> _MemoryFile | None:
        found = find_records(self._memory, [path], limit=1) if path else []
        return next(map(_file_of, found), None)

    def _inside(self, path: str) -> list[_MemoryFile]:
        """Return the files of a folder and of those in it, by path."""
        files = map(_file_of, find_records(self._memory))
        return sorted((file for file in files if not path or file.path.startswith(f"{path}/")), key=lambda f: f.path)

    def _at(self, path: str) -> list[_MemoryFile]:
        file = self._file(path)
        return [file] if file else self._inside(path)

    def _check_folders(self, path: str) -> None:
        for above in _folders(path):
            if self._file(above):
                raise ToolError(f"{ROOT}/{above} is a file and can hold no other")

    def _admit(self, path: str, text: str) -> Admitted:
        """Return a file as a record.  A record's text has no blanks around it; its value has those."""
        core = text.strip()
        at = text.find(core)
        value: dict[str, Json] = {"before": text[:at], "after": text[at + len(core) :], "blank": not core}
        draft = Draft(content=core or path, key=path, value=value, kind=Kind.SEMANTIC)
        try:
            return self._memory.writer.admit(draft, self._memory.binding)
        except InvalidInput as error:
            raise ToolError(f"{ROOT}/{path} was not written: {error}") from error

    def _edit(self, path: str, edit: Callable[[str], str]) -> tuple[str, str]:
        """Write the next version of a file, made of the one that is there by then; returns both texts."""

        def plan() -> tuple[list[Put], tuple[str, str]]:
            below = self._below(path)
            file = self._file(below)
            if file is None:
                missing = below and not self._inside(below)
                reason = "does not exist. Please provide a valid path." if missing else "is not a file."
                raise ToolError(f"The path {path} {reason}")
            text = edit(file.text)
            return [self._rewrite(file, file.path, text)], (file.text, text)

        try:
            return self._memory.writer.retry(plan, tries=TRIES, busy=f"others edit {path}")[1]
        except Conflict:
            raise ToolError(f"The file {path} is being edited by others; nothing was changed") from None

    def _rewrite(self, file: _MemoryFile, path: str, text: str) -> Put:
        """Return the next version of a file; what people have added to it (a pin, tags) stays."""
        new = self._admit(path, text).record
        source, trust = new.source, min(new.trust, file.record.trust)
        if text == file.text:
            source, trust = file.record.source, file.record.trust
        record = file.record.replace(
            key=new.key, content=new.content, value=new.value, source=source, trust=trust, updated_at=new.updated_at,
            consolidated_at=None,
        )  # fmt: skip
        return Put(record=record, terms=search_terms(record), expect=file.record.version)


def _file_of(record: Record) -> _MemoryFile:
    value: Mapping[str, Json] = record.value if isinstance(record.value, dict) else {}
    core = "" if value.get("blank") else record.content
    return _MemoryFile(
        path=record.key or "", text=f"{value.get('before', '')}{core}{value.get('after', '')}", record=record
    )


def _folders(path: str) -> Iterator[str]:
    parts = path.split("/")
    yield from ("/".join(parts[:depth]) for depth in range(1, len(parts)))


# What the model is shown


def _number_lines(text: str, command: View) -> str:
    lines, first = text.split("\n"), 1
    if command.view_range and len(command.view_range) == 2:  # noqa: PLR2004 - from and to
        start, end = command.view_range
        first = max(1, start)
        lines = lines[first - 1 : len(lines) if end == -1 else end]
    shown = "\n".join(_line(first + number, line) for number, line in enumerate(lines))
    return f"Here's the content of {command.path} with line numbers:\n{shown}"


def _line(number: int, line: str) -> str:
    return f"{number:>{NUMBER_WIDTH}}\t{line}"


def _snippet(text: str, changed: int) -> str:
    lines = text.split("\n")
    first, last = max(0, changed - AROUND_LINES), min(len(lines), changed + AROUND_LINES + 1)
    head = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
    return "\n".join([head, *(_line(number + 1, lines[number]) for number in range(first, last))])


def _replace(text: str, command: Replace) -> str:
    count = text.count(command.old_str)
    if count == 0:
        raise ToolError(
            f"No replacement was performed, old_str `{command.old_str}` did not appear verbatim in {command.path}."
        )
    if count > 1:
        starts = [at for at in range(len(text)) if text.startswith(command.old_str, at)]
        lines = ", ".join(str(text[:at].count("\n") + 1) for at in starts)
        raise ToolError(
            f"No replacement was performed. Multiple occurrences of old_str `{command.old_str}` in lines: {lines}. "
            "Please ensure it is unique"
        )
    return text.replace(command.old_str, command.new_str)


def _insert(text: str, command: Insert) -> str:
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if not 0 <= command.insert_line <= len(lines):
        raise ToolError(
            f"Invalid `insert_line` parameter: {command.insert_line}. It should be within the range [0, {len(lines)}]."
        )
    lines.insert(command.insert_line, command.insert_text.rstrip("\n"))
    joined = "\n".join(lines)
    return joined if joined.endswith("\n") else f"{joined}\n"


def _tree(shown: str, path: str, files: list[_MemoryFile]) -> list[str]:
    """A folder's lines: itself, then folders and files by name, two levels deep."""
    sizes: dict[str, int] = {}
    for file in files:
        inner = file.path[len(path) + 1 if path else 0 :]
        size = len(file.text.encode())
        for folder in _folders(inner):
            sizes[f"{folder}/"] = sizes.get(f"{folder}/", 0) + size
        sizes[inner] = size
    total = sum(len(file.text.encode()) for file in files)
    fitting = [name for name in sizes if name.rstrip("/").count("/") < SHOWN_LEVELS and not _is_hidden(name)]
    lines = [f"{_size(sizes[name])}\t{shown}/{name}" for name in sorted(fitting, key=lambda name: name.split("/"))]
    return [f"{_size(total)}\t{shown}", *lines]


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") for part in name.split("/"))


def _size(size: int) -> str:
    if size == 0:
        return "0B"
    unit = min((size.bit_length() - 1) // 10, len(_UNITS) - 1)
    amount = size / 1024**unit
    return f"{int(amount)}{_UNITS[unit]}" if amount == int(amount) else f"{amount:.1f}{_UNITS[unit]}"
