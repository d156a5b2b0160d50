"""The audit log: every change with ids and never a word, in its transaction, in a chain that shows tampering."""

from __future__ import annotations

import threading

import pytest

from commonplace.app import copier_of
from commonplace.engine.audit import verify_log
from commonplace.engine.transfer import migrate
from commonplace.model.changes import Archive, Audit, Delete, Load, Supersede, Touch, Trim
from commonplace.model.errors import Conflict
from commonplace.model.queries import Order
from commonplace.stores.auditor import Auditor

KEY = b"the key of the data folder"


@pytest.fixture
def audited(store, tmp_path, clock):
    """A store that keeps a log."""
    auditor = Auditor(actor="user", key=lambda: KEY, clock=clock, path=str(tmp_path / "audit"))
    store.make_auditor = lambda: auditor
    store.auditor_of_test = auditor
    return store


def entries(store):
    """The log, shortly."""
    return [(one.seq, one.verb, one.record, one.version) for one in store.audit_log(limit=-1)]


def problems(store):
    """What a look at the log finds."""
    note = store.auditor_of_test.read()
    log = store.audit_log(limit=-1)
    return verify_log(log, KEY, noted=note.seq, noted_digest=note.digest, lost=note.lost).problems


def tamper(store, sql, values=()):
    """Change the database behind the store's back."""
    with store.writing() as db:
        db.run(sql, values)


def test_every_change_of_a_record_is_logged(audited, make):
    """With its id, the version that it made and the verb; uses and files are no changes."""
    one, other = make("one"), make("other")
    audited.apply([make.put(one), make.put(other)])
    [done] = audited.apply([make.update(one.replace(version=1), content="changed")])
    audited.apply([Touch(ids=(one.id,), at=make.clock())])
    audited.apply([Supersede(id=other.id, by=one.id, at=make.clock(), now=make.clock())])
    audited.apply([Archive(where=make.where(), at=make.clock())])
    audited.apply([Delete(where=make.anything(ids=frozenset({other.id})))])

    assert done.records[0].version == 2
    assert entries(audited) == [
        (1, "put", one.id, 1), (2, "put", other.id, 1), (3, "update", one.id, 2), (4, "supersede", other.id, 2),
        (5, "archive", one.id, 3), (6, "erase", other.id, None),
    ]  # fmt: skip
    assert problems(audited) == ()


def test_an_act_is_logged_under_its_own_name(audited, make):
    """Whatever it changes; one that changes nothing has one entry without a record."""
    one = make("one")
    audited.apply([Load(versions=(one.replace(version=1),), terms=((),)), Audit(verb="import")])
    audited.apply([Audit(verb="export")])
    assert entries(audited) == [(1, "import", one.id, 1), (2, "export", None, None)]


def test_what_was_not_changed_is_not_logged(audited, make):
    """A duplicate, and a transaction that failed."""
    one = make("one")
    audited.apply([make.put(one)])
    audited.apply([make.put(make("one"), dedupe=True)])
    with pytest.raises(Conflict):
        audited.apply([make.put(make("two")), make.put(one, expect=7)])

    assert entries(audited) == [(1, "put", one.id, 1)]


def test_the_log_holds_no_content(audited, make):
    """An erased record leaves its id in the log and nothing else."""
    one = make("umbrella", key="secret-key", tags=frozenset({"tagged"}))
    audited.apply([make.put(one)])
    audited.apply([Delete(where=make.where())])

    assert [verb for _, verb, *_ in entries(audited)] == ["put", "erase"]
    text = repr(audited.audit_log(limit=-1))
    assert not any(word in text for word in ("umbrella", "secret-key", "tagged"))


def test_making_room_is_logged(audited, make):
    """What is evicted is gone as well."""
    one, other = make("one"), make("two")
    audited.apply([make.put(one), make.put(other)])
    audited.apply([Trim(where=make.where(), keep=1, order=Order.OLDEST)])
    assert entries(audited)[-1][1:3] == ("evict", one.id)


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("update audit set verb = 'put' where seq = 3", "entry 3 was changed"),
        ("update audit set record = null where seq = 2", "entry 2 was changed"),
        ("update audit set actor = 'other' where seq = 5", "entry 5 was changed"),
        ("delete from audit where seq = 2", "entry 2 is missing"),
        ("delete from audit where seq in (2, 3)", "entries 2 to 3 are missing"),
        ("update audit set seq = case seq when 2 then -3 else -2 end where seq in (2, 3)", "missing"),
        ("delete from audit where seq = 5", "entry 5 is missing: the end of the log was cut off"),
        ("delete from audit", "entries 1 to 5 are missing: the end of the log was cut off"),
    ],
)
def test_a_log_that_was_tampered_with_is_noticed(audited, make, sql, found):
    """A changed, removed, moved or cut off entry."""
    for number in range(5):
        audited.apply([make.put(make(f"record {number}")), Audit(verb="approve")])
    assert problems(audited) == ()
    tamper(audited, sql)
    if "-3" in sql:
        tamper(audited, "update audit set seq = -seq where seq < 0")

    assert found in problems(audited)[0] or "was changed" in problems(audited)[0]


def test_a_cut_off_end_is_still_noticed_after_the_next_write(audited, make):
    """The next entries take the numbers of those that are missing, and hide nothing."""
    for number in range(3):
        audited.apply([make.put(make(f"record {number}"))])
    tamper(audited, "delete from audit where seq = 3")
    audited.apply([make.put(make("later"))])
    audited.apply([make.put(make("still later"))])

    assert problems(audited) == ("1 entry missing at the end when it was written again",)


def test_a_log_under_another_key_is_not_ours(audited, make):
    """Who does not have the key cannot write one that passes."""
    audited.apply([make.put(make("one"))])
    note = audited.auditor_of_test.read()
    report = verify_log(audited.audit_log(limit=-1), b"another key", noted=note.seq, noted_digest=note.digest, lost=0)
    assert report.problems == ("entry 1 was changed, or one was put in or moved before it",)


def test_the_log_moves_with_its_store(audited, new_store, make):
    """A copy has the same chain."""
    audited.apply([make.put(make("one")), make.put(make("two"))])
    other = new_store()
    migrate(copier_of(audited), copier_of(other))

    assert other.audit_log(limit=-1) == audited.audit_log(limit=-1)


def test_writers_at_once_make_one_chain(audited, make):
    """No two entries have one number, and each follows on the one before."""
    threads = [
        threading.Thread(target=lambda name=name: [audited.apply([make.put(make(f"{name} {n}"))]) for n in range(5)])
        for name in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [seq for seq, *_ in entries(audited)] == list(range(1, 31))
    assert problems(audited) == ()


def test_entries_of_one_record_are_found(audited, make):
    """Also from a number on."""
    one, other = make("one"), make("other")
    audited.apply([make.put(one), make.put(other)])
    audited.apply([Archive(where=make.where(), at=make.clock())])

    assert [entry.seq for entry in audited.audit_log(record=one.id, limit=-1)] == [1, 3]
    assert [entry.seq for entry in audited.audit_log(after=2, limit=1)] == [3]
