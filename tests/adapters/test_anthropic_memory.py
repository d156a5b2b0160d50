"""Anthropic's memory tool: the answers of the SDK's own file tool, word for word, with versions and recall behind."""

from __future__ import annotations

import re
import tempfile

import pytest
from anthropic.tools import BetaLocalFilesystemMemoryTool, ToolError
from hypothesis import given, settings
from hypothesis import strategies as st

import commonplace
from commonplace.adapters.anthropic_memory import CommonplaceMemoryTool
from commonplace.engine.memory import with_binding
from commonplace.model.binding import Binding
from commonplace.model.records import Channel, Kind
from commonplace.model.scopes import Scope

PATHS = st.sampled_from(["/memories/a.md", "/memories/b.md", "/memories/d/c.md", "/memories/d/e/f.md", "/memories/.h"])
PLACES = PATHS | st.sampled_from(["/memories", "/memories/d", "/memories/none", "/memories/../x", "/elsewhere"])
TEXTS = st.sampled_from(["one", "one\ntwo\nthree\n", "  two  \n\n", "", "\n", "tea\ntea", "a\tb\nöl"])
PIECES = st.sampled_from(["one", "two", "tea", "x\ny"])
COMMANDS = st.one_of(
    st.fixed_dictionaries({"command": st.just("create"), "path": PATHS, "file_text": TEXTS}),
    st.fixed_dictionaries({"command": st.just("create"), "path": PATHS, "file_text": TEXTS}),
    st.fixed_dictionaries({"command": st.just("str_replace"), "path": PLACES, "old_str": PIECES, "new_str": PIECES}),
    st.fixed_dictionaries(
        {"command": st.just("insert"), "path": PLACES, "insert_line": st.integers(-1, 4), "insert_text": TEXTS}
    ),
    st.fixed_dictionaries({"command": st.just("delete"), "path": PATHS}),
    st.fixed_dictionaries({"command": st.just("rename"), "old_path": PATHS, "new_path": PATHS}),
)
VIEWS = st.fixed_dictionaries(
    {"command": st.just("view"), "path": PLACES},
    optional={"view_range": st.tuples(st.integers(0, 3), st.integers(-1, 4)).map(list)},
)


def answer(tool, command):
    """What the model is told; the size of a folder is the file system's own affair, and so is an empty one."""
    try:
        said = tool.call(command)
    except ToolError as error:
        return f"error: {error}"
    return re.sub(r"^[0-9.]+[BKMG]\t(?=.*/$|/memories$|/memories/d$)", "SIZE\t", said, flags=re.MULTILINE)


@settings(deadline=None, max_examples=120)
@given(st.lists(COMMANDS, max_size=8), st.lists(VIEWS, min_size=1, max_size=3))
def test_it_answers_as_the_sdks_own_tool_does(commands, views):
    """Any run of commands: the same words, the same files."""
    with tempfile.TemporaryDirectory() as folder, commonplace.open(":memory:") as memory:
        theirs, ours = BetaLocalFilesystemMemoryTool(folder), CommonplaceMemoryTool(memory)
        for command in commands:
            assert answer(ours, command) == answer(theirs, command), command
            for emptied in sorted(theirs.memory_root.rglob("*"), reverse=True):
                if emptied.is_dir() and not any(emptied.iterdir()):
                    emptied.rmdir()  # ours has no empty folders
        for view in views:
            assert answer(ours, view) == answer(theirs, view), view


@pytest.fixture
def tool():
    """A tool on an empty memory."""
    with commonplace.open(":memory:") as memory:
        yield CommonplaceMemoryTool(memory)


def test_a_folder_moves_as_one(tool):
    """Everything in it has its new path, and nothing its old one."""
    for name in ("a", "b/c"):
        tool.call({"command": "create", "path": f"/memories/old/{name}", "file_text": name})
    tool.call({"command": "rename", "old_path": "/memories/old", "new_path": "/memories/new"})
    assert "/memories/new/b/c" in tool.call({"command": "view", "path": "/memories/new"})
    with pytest.raises(ToolError, match="does not exist"):
        tool.call({"command": "view", "path": "/memories/old"})
    with pytest.raises(ToolError, match="cannot be moved into itself"):
        tool.call({"command": "rename", "old_path": "/memories/new", "new_path": "/memories/new/deeper"})


def test_a_file_holds_no_other(tool):
    """A path through a file is refused in words."""
    tool.call({"command": "create", "path": "/memories/a", "file_text": "x"})
    with pytest.raises(ToolError, match="/memories/a is a file and can hold no other"):
        tool.call({"command": "create", "path": "/memories/a/b", "file_text": "y"})


def test_what_is_too_much_is_refused_in_words(tool):
    """A file over the limit is not cut, and nothing is written."""
    with pytest.raises(ToolError, match="was not written: the content has"):
        tool.call({"command": "create", "path": "/memories/a", "file_text": "x" * 2_000_000})
    with pytest.raises(ToolError, match="does not exist"):
        tool.call({"command": "view", "path": "/memories/a"})


def test_a_secret_is_not_kept(tool):
    """A file passes the gate that every write passes."""
    said = "my password is hunter2-Sesame-99x"
    tool.call({"command": "create", "path": "/memories/a", "file_text": said})
    assert "hunter2" not in tool.call({"command": "view", "path": "/memories/a"})


def test_clearing_leaves_nothing(tool):
    """All files are gone for good."""
    tool.call({"command": "create", "path": "/memories/a", "file_text": "x"})
    assert tool.clear_all_memory() == "All memory cleared"
    assert tool.call({"command": "view", "path": "/memories"}).endswith("0B\t/memories")


TOKEN = "xylophonequokka"
SCOPE = Scope.of(("namespace", "anthropic"))


def create(tool, path, text):
    """Make a file."""
    return tool.call({"command": "create", "path": f"/memories/{path}", "file_text": text})


def test_a_deleted_folder_leaves_no_byte_and_takes_few_rounds(shared):
    """Nor in earlier versions, nor in what memory has written of its files; other files stay where they are told."""
    tool = CommonplaceMemoryTool(shared.memory)
    create(tool, "tea.md", "Tea is at four")
    for number in range(20):
        create(tool, f"old/{number}.md", f"Tunnel {number} is under the {TOKEN}")
    edit = {"command": "str_replace", "path": "/memories/old/1.md", "old_str": TOKEN, "new_str": "hill"}
    tool.call(edit)
    shared.tell(SCOPE)
    shared.rounds.clear()
    tool.call({"command": "delete", "path": "/memories/old"})

    assert len(shared.rounds) <= 10
    assert (shared.left(TOKEN), shared.left("Tunnel")) == ([], [])
    assert shared.left("Tea is at four") != []
    assert len(shared.erasures) == 1


def test_a_cleared_memory_leaves_no_byte(shared):
    """Archived files and what memory has written of them go too."""
    tool = CommonplaceMemoryTool(shared.memory)
    create(tool, "a.md", f"The tunnel is under the {TOKEN}")
    shared.tell(SCOPE)
    shared.archive(SCOPE)
    tool.clear_all_memory()
    assert (shared.left(TOKEN), shared.records(SCOPE), len(shared.erasures)) == ([], [], 1)


def test_an_archived_file_is_out_of_the_way_until_its_path_is_deleted(shared):
    """The model does not see it, may make the path anew, and with that one it is erased."""
    tool = CommonplaceMemoryTool(shared.memory)
    create(tool, "a.md", f"The tunnel is under the {TOKEN}")
    shared.archive(SCOPE)
    with pytest.raises(ToolError, match="does not exist"):
        tool.call({"command": "view", "path": "/memories/a.md"})
    create(tool, "a.md", "new")
    assert tool.call({"command": "view", "path": "/memories/a.md"}).endswith("\tnew")
    tool.call({"command": "delete", "path": "/memories/a.md"})
    assert (shared.left(TOKEN), shared.records(SCOPE)) == ([], [])


def test_a_renamed_file_passes_the_gate_too(tool):
    """A path through a file, a secret in a path, one too long: as when a file is made."""
    create(tool, "a", "x")
    create(tool, "b", "y")

    def rename(new):
        return tool.call({"command": "rename", "old_path": "/memories/a", "new_path": f"/memories/{new}"})

    with pytest.raises(ToolError, match="/memories/b is a file and can hold no other"):
        rename("b/c")
    with pytest.raises(ToolError, match="was not written: the key has"):
        rename("x" * 5000)
    rename("password=hunter2-Sesame-99x")
    assert "hunter2" not in tool.call({"command": "view", "path": "/memories"})


def test_an_edit_keeps_what_a_person_has_put_beside_a_file(shared):
    """A pin and tags survive the model's edits and moves."""
    tool = CommonplaceMemoryTool(shared.memory)
    create(tool, "a", "one")
    person = Binding(channel=Channel.USER, writes={Kind.SEMANTIC: SCOPE}, reads=(SCOPE,))
    [record] = shared.records(SCOPE)
    with_binding(shared.memory, person).update(record.id, pinned=True, tags={"mine"})
    tool.call({"command": "str_replace", "path": "/memories/a", "old_str": "one", "new_str": "two"})
    tool.call({"command": "rename", "old_path": "/memories/a", "new_path": "/memories/b"})

    [after] = shared.records(SCOPE)
    assert (after.content, after.key, after.pinned, after.tags) == ("two", "b", True, frozenset({"mine"}))


@pytest.mark.parametrize("name", ["blank.md ", "bell\x07.md", "password=hunter2-Sesame-99x", "d/ e .md"])
def test_a_file_is_found_by_the_path_it_was_made_under(tool, name):
    """Also where the gate keeps a path in another form; a path that is no text is refused in words."""
    create(tool, name, "x")
    assert tool.call({"command": "view", "path": f"/memories/{name}"}).endswith("\tx")
    tool.call({"command": "delete", "path": f"/memories/{name}"})
    assert tool.call({"command": "view", "path": "/memories"}).endswith("0B\t/memories")
    with pytest.raises(ToolError, match="is no path"):
        tool.call({"command": "view", "path": "/memories/\ud800"})


def test_files_are_embedded_like_everything_that_is_stored():
    """Through the one write sequence, at every version."""
    memory = commonplace.open(":memory:")
    tool = CommonplaceMemoryTool(memory)
    tool.call({"command": "create", "path": "/memories/a.md", "file_text": "the automobile"})
    tool.call({"command": "str_replace", "path": "/memories/a.md", "old_str": "automobile", "new_str": "vehicle"})
    assert memory.store.count_unembedded(memory.embedder.identity) == 0
