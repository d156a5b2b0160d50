"""Opening a memory: one call, a file of one's own or what the command sees."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

import commonplace
from commonplace.app import redaction_key_in, salvage_database
from commonplace.config.project import context
from commonplace.model.errors import StoreError
from commonplace.model.records import Channel
from commonplace.model.scopes import Scope
from commonplace.stores.sqlite.store import SqliteStore
from stands import agree


def test_a_memory_of_ones_own_is_one_call(tmp_path):
    """What was remembered in a file is there when the file is opened again."""
    path = str(tmp_path / "deep" / "memory.db")
    with commonplace.open(path) as memory:
        kept = memory.remember("Prefer concise responses", category="Team Notes", ttl=timedelta(days=1)).record
    with commonplace.open(path) as memory:
        assert memory.get(kept.id) == kept
        assert (kept.category, kept.scope, kept.source.channel) == (
            "team_notes",
            Scope.of(("user", "default")),
            Channel.USER,
        )


def test_users_of_one_file_do_not_see_each_other(tmp_path):
    """A name is a scope."""
    path = str(tmp_path / "memory.db")
    with commonplace.open(path, user="ada") as ada, commonplace.open(path, user="bo") as bo:
        ada.remember("Prefer concise responses")
        assert (len(ada.recall("concise")), len(bo.recall("concise"))) == (1, 0)


def test_a_memory_in_memory_keeps_nothing():
    """Two of them have nothing in common."""
    with commonplace.open(":memory:") as one, commonplace.open(":memory:") as two:
        one.remember("Prefer concise responses")
        assert (len(one.recall("concise")), len(two.recall("concise"))) == (1, 0)


def test_without_a_path_it_is_what_the_command_sees(tmp_path, monkeypatch):
    """The project around the working directory, with its files, and the user's own memory."""
    (tmp_path / "shop" / ".commonplace").mkdir(parents=True)
    (tmp_path / "shop" / ".commonplace" / "config.yaml").write_text("project: shop\n")
    monkeypatch.setenv("COMMONPLACE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "shop")
    agree(tmp_path / "shop")
    with commonplace.open() as memory:
        record = memory.remember("Use pnpm, not npm", category="decisions").record

    assert record.scope == Scope.of(("project", "shop"))
    assert [path.parent.name for path in (tmp_path / "shop" / ".commonplace").glob("*/*.md")] == ["decisions"]


def test_a_file_that_is_no_memory_is_refused(tmp_path):
    """Somebody else's file is not written to."""
    path = tmp_path / "letter.txt"
    path.write_text("Dear reader, " * 1000)

    with pytest.raises(StoreError):
        commonplace.open(str(path))
    assert path.read_text() == "Dear reader, " * 1000


def test_a_database_that_cannot_be_opened_is_kept_and_makes_room(tmp_path):
    """It goes out of the way with its side files, under a name of its own; the next one is made anew."""
    where = context(str(tmp_path), {"COMMONPLACE_HOME": str(tmp_path / "home")})
    (tmp_path / "home").mkdir()
    for number in range(2):
        (tmp_path / "home" / "commonplace.db").write_text(f"damaged {number}" * 1000)
        repair = salvage_database(where)
        assert repair.lost == ("no row could be read; what has files comes back from them",)
        kept = tmp_path / "home" / f"commonplace.db.damaged{'-1' * number}"
        assert kept.read_text().startswith(f"damaged {number}")
        SqliteStore(where.database).close()


def test_the_key_of_marks_is_made_once(tmp_path):
    """Whoever asks first makes it; it is private, and everybody gets the same."""
    keys = []
    threads = [
        threading.Thread(target=lambda: keys.append(redaction_key_in(str(tmp_path / "home"))())) for _ in range(8)
    ]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]

    assert len(keys) == 8
    assert len(set(keys)) == 1
    assert len(keys[0]) == 32
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["redaction.key"]
    assert (tmp_path / "home" / "redaction.key").stat().st_mode & 0o777 == 0o600


def test_equal_secrets_are_equal_marks_in_one_home_only(tmp_path):
    """A mark tells nothing to whoever has another key."""
    marks = []
    for name in ("one", "one", "two"):
        with commonplace.open(str(tmp_path / name / f"{len(marks)}.db")) as memory:
            marks.append(memory.remember("the password is hunter2secretX").redactions[0].mark)

    assert marks[0] == marks[1]
    assert (tmp_path / "one" / "redaction.key").read_bytes() != (tmp_path / "two" / "redaction.key").read_bytes()


def test_a_home_that_cannot_be_made_is_told(tmp_path):
    """The error names the path, in our words."""
    (tmp_path / "file").write_text("in the way")

    with pytest.raises(StoreError, match="cannot be"):
        redaction_key_in(str(tmp_path / "file" / "home"))()
    with pytest.raises(StoreError, match="cannot be"):
        commonplace.open(str(tmp_path / "file" / "memory.db"))
