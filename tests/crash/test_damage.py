"""Files that are damaged: what is read is what was written, and what can be read survives a repair."""

from __future__ import annotations

from contextlib import closing

import apsw
import pytest

from commonplace.model.errors import StoreDamaged
from commonplace.model.queries import Order
from commonplace.stores.sqlite.store import SqliteStore
from commonplace.stores.sqlite.upkeep import salvage
from faults import World
from faults.damage import reads_of_damaged_files, repairs_of_damaged_files


@pytest.mark.parametrize("tries", [25, pytest.param(400, marks=pytest.mark.slow)])
def test_a_repair_keeps_every_row_that_can_be_read(tmp_path, tries):
    """Of every table; a repair never ends in a traceback, and never leaves damage."""
    assert repairs_of_damaged_files(tmp_path, tries).violations == []


@pytest.mark.parametrize("tries", [25, pytest.param(400, marks=pytest.mark.slow)])
def test_what_is_read_of_a_damaged_file_is_what_was_written(tmp_path, tries):
    """A damaged row is named and left out, and the rest answers."""
    assert reads_of_damaged_files(tmp_path, tries).violations == []


def test_a_damaged_record_is_named_and_the_others_answer(tmp_path, make):
    """In a list it is left out with a notice; whoever asks for it by its id is told that it is damaged."""
    with closing(SqliteStore(str(tmp_path / "memory.db"))) as store:
        sound, hurt = make("sound word"), make("hurt word")
        store.apply([make.put(sound), make.put(hurt)])
        with store.writing() as db:
            db.execute("update record set content = 'hurt work' where id = ?", (hurt.id,))
        assert [one.id for one in store.find(make.where(), order=Order.ID, limit=-1)] == [sound.id]
        [notice] = store.take_notices()
        assert f"version 1 of record '{hurt.id}' is damaged" in notice
        assert "commonplace doctor" in notice
        with pytest.raises(StoreDamaged, match=hurt.id):
            store.get(hurt.id)


def test_a_row_with_bytes_that_are_no_text_is_carried_over(tmp_path, make):
    """In what a record says, and in what is noted beside it: the rest of the row survives a repair."""
    path = str(tmp_path / "memory.db")
    with closing(SqliteStore(path)) as store:
        beside, within = make("whole words"), make("hurt words")
        store.apply([make.put(beside), make.put(within)])
        with store.writing() as db:
            db.execute("update record set digest = cast(x'f4c4' as text) where id = ?", (beside.id,))
            db.execute("update record set content = cast(x'f420776f726473' as text) where id = ?", (within.id,))
    assert not salvage(path).lost
    with closing(apsw.Connection(path)) as db:
        contents = dict(db.execute("select id, content from record").fetchall())
    assert contents == {beside.id: "whole words", within.id: "\ufffd words"}


def test_the_file_of_a_damaged_record_stays(tmp_path):
    """A sync must not take what it cannot read for erased."""
    world = World(tmp_path)
    world.ok("record", "add", "Use pnpm", "--category", "decisions")
    [file] = (world.project / ".commonplace" / "decisions").iterdir()
    with closing(SqliteStore(str(world.database))) as store, store.writing() as db:
        db.execute("update record set content = 'Use npmm'")
    done = world.run("sync")
    assert b"is damaged" in done.stderr
    assert "Use pnpm" in file.read_text()
    world.run("doctor", "--fix")
    assert "Use pnpm" in world.ok("list")
