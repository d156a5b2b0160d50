"""A file is replaced or removed only while it is what was read: in one step, or by moving it aside."""

from __future__ import annotations

import os
from hashlib import sha256

import pytest

from commonplace.files import disk, swap


@pytest.fixture(params=["exchange", "aside"])
def folder(request, tmp_path, monkeypatch):
    """A folder with one file, on a system that can exchange two files, and on one that cannot."""
    if request.param == "aside":
        monkeypatch.setattr(swap, "_renameat2", lambda: None)
    (tmp_path / "decisions").mkdir()
    (tmp_path / "decisions" / "a.md").write_bytes(b"as read")
    return tmp_path


def digest(data):
    return sha256(data).hexdigest()


def files(folder):
    return {path.name: path.read_bytes() for path in (folder / "decisions").iterdir()}


def replace(folder, expect):
    return swap.replace_unchanged(str(folder), "decisions/a.md", b"ours", expect=expect and digest(expect))


def test_a_file_that_is_what_was_read_is_replaced(folder):
    """Its stamp comes back, and nothing else is left in the folder."""
    stamp = replace(folder, b"as read")
    assert files(folder) == {"a.md": b"ours"}
    assert stamp == disk.stamp(str(folder), "decisions/a.md")


def test_a_file_that_was_saved_since_stays(folder):
    """However it came to be other bytes."""
    (folder / "decisions" / "a.md").write_bytes(b"an edit")
    assert replace(folder, b"as read") is None
    assert files(folder) == {"a.md": b"an edit"}


def test_a_file_that_is_being_written_in_place_stays(folder):
    """An editor that has it open may write into it after the comparison."""
    with open(folder / "decisions" / "a.md", "r+b") as editor:
        assert replace(folder, b"as read") is None
        editor.write(b"an edit")
    assert files(folder) == {"a.md": b"an edit"}


def test_a_file_that_was_removed_or_made_since_stays_so(folder):
    """A new file is written where there is none only, and no file comes back that a person has removed."""
    assert replace(folder, None) is None
    os.unlink(folder / "decisions" / "a.md")
    assert replace(folder, b"as read") is None
    assert files(folder) == {}


def test_a_file_is_removed_only_while_it_is_what_was_read(folder):
    """Else it goes back."""
    assert not swap.remove_unchanged(str(folder), "decisions/a.md", expect=digest(b"other"))
    assert files(folder) == {"a.md": b"as read"}
    assert swap.remove_unchanged(str(folder), "decisions/a.md", expect=digest(b"as read"))
    assert files(folder) == {}


def test_a_file_is_not_moved_over_another(folder):
    """A person may have saved one there since it was looked at."""
    (folder / "decisions" / "b.md").write_bytes(b"theirs")
    assert not swap.move_unless_taken(str(folder), "decisions/a.md", "decisions/b.md")
    assert files(folder) == {"a.md": b"as read", "b.md": b"theirs"}
    assert swap.move_unless_taken(str(folder), "decisions/a.md", "incidents/a.md")
    assert not swap.move_unless_taken(str(folder), "decisions/a.md", "incidents/c.md")


@pytest.mark.parametrize(
    ("there", "aside", "after"),
    [
        (None, b"as read", {"a.md": b"as read"}),  # died before the new file was in place
        (b"ours", b"as read", {"a.md": b"ours"}),  # died after it
        (b"as read", b"ours", {"a.md": b"as read"}),  # died before the exchange
        (None, b"an edit", {"a.md": b"an edit"}),
        (b"ours", b"an edit", {"a.md": b"ours", "a-2.md": b"an edit"}),  # died before it was put back
        (b"ours", b"", {"a.md": b"ours"}),  # the power failed
    ],
)
def test_what_a_process_that_died_left_is_put_back(folder, there, aside, after):
    """An edit is never taken for a leftover."""
    left = swap._aside(str(folder / "decisions" / "a.md"), digest(b"ours"), digest(b"as read"))
    os.unlink(folder / "decisions" / "a.md")
    for path, data in ((folder / "decisions" / "a.md", there), (left, aside)):
        if data is not None:
            with open(path, "wb") as file:
                file.write(data)
    swap.rescue(str(folder), disk.list_temporary(str(folder)))
    assert files(folder) == after


def test_a_name_that_fills_a_directory_entry_can_be_replaced(folder):
    """What is put before it for a moment does not fit."""
    path = f"decisions/{'n' * 250}.md"
    (folder / path).write_bytes(b"as read")
    assert swap.replace_unchanged(str(folder), path, b"ours", expect=digest(b"as read"))
    assert (folder / path).read_bytes() == b"ours"
