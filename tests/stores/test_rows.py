"""Rows of records: each field is spelled once, and a later column changes no hash."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from commonplace.model.errors import StoreDamaged
from commonplace.model.records import Channel, Kind, Record, Source, Trust, Usage
from commonplace.stores.rows import (
    FIELDS,
    SHARED_COLUMNS,
    row_hash,
    row_record,
    row_records,
    sha256_of,
    stored_row,
    to_json,
)
from stands import ADA

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
FULL = Record(
    id="1kjq6psg32g4k2gtkqns", scope=ADA, kind=Kind.PROCEDURAL, category="procedures", content="run it", key="k",
    value={"b": [1, None], "a": "\0"}, tags=frozenset({"y", "x"}), metadata={"aliases": ["z"]},
    source=Source(channel=Channel.IMPORT, ref="r", parents=("p", "o")), trust=Trust.EXTERNAL, pinned=True, version=7,
    created_at=NOW, updated_at=NOW + timedelta(1), occurred_at=NOW + timedelta(2), expires_at=NOW + timedelta(3),
    archived_at=NOW + timedelta(4), superseded_by="1kjq6psg4rmr4rd8vhhw", held=True,
    consolidated_at=NOW + timedelta(5), approved_at=NOW + timedelta(6), usage=Usage(recalls=3, last_recalled_at=NOW),
)  # fmt: skip


def fields_of(record):
    """A row of the fields, with the path of the scope, as a select gives it."""
    row = stored_row(record, 1, valid_from=NOW)[: len(FIELDS)]
    row[FIELDS.index("scope")] = str(record.scope)
    return row


def test_every_field_of_a_record_comes_back_from_its_row():
    """No field of a record is missing in the table of columns: all are written and read."""
    fields = fields_of(FULL)
    assert row_record([*fields, 3, stored_row(FULL, 1, valid_from=NOW)[len(FIELDS)], row_hash(fields)]) == FULL
    assert all(getattr(FULL, field) != default for field, default in Record.defaults.items())


def test_a_row_is_hashed_with_the_path_of_its_scope():
    """Where a database happens to number a scope changes no hash; the hash is the one that old stores hold."""
    stored = dict(zip(SHARED_COLUMNS, stored_row(FULL, 1, valid_from=NOW), strict=True))
    assert stored["hash"] == row_hash(fields_of(FULL)) == stored_row(FULL, 2, valid_from=NOW)[-1]
    old = row_hash(fields_of(FULL.replace(approved_at=None)))  # which knew of no approval
    assert old == "4d1f8a4051a07d0a36a383eba7b7cfe114293515430e247b72ae736e7dab1adb" != stored["hash"]


def test_a_damaged_row_among_others_is_named():
    """Rows are decoded together, and the error still says which record cannot be read."""
    other = FULL.replace(id="1kjq6psg4rmr4rd8vhhw")
    whole = [*fields_of(FULL), None, None, row_hash(fields_of(FULL))]
    damaged = [*fields_of(other), None, None, row_hash(fields_of(other))]
    damaged[FIELDS.index("kind")] = "semantik"
    assert [record.id for record in row_records([whole, whole])] == [FULL.id, FULL.id]
    with pytest.raises(StoreDamaged, match=other.id):
        row_records([whole, damaged, whole])


def test_a_row_that_makes_sense_and_is_not_what_was_written_is_named_too():
    """A flipped bit in a text decodes: the hash tells, and the others are read where they can answer alone."""
    whole = [*fields_of(FULL), None, None, row_hash(fields_of(FULL))]
    damaged = [*whole]
    damaged[FIELDS.index("content")] = "run iu"
    with pytest.raises(StoreDamaged, match="version 7 of record '1kjq6psg32g4k2gtkqns' is damaged"):
        row_records([whole, damaged])
    named = []
    assert [record.content for record in row_records([whole, damaged, whole], damaged=named)] == ["run it", "run it"]
    assert len(named) == 1


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no reason
@given(st.lists(st.one_of(st.text(), st.integers(), st.none()), min_size=24, max_size=24))
def test_a_row_is_hashed_as_its_json(fields):
    """The quick spelling is the one that earlier stores were written with."""
    later = [["approved_at", fields[23]]] if fields[23] is not None else []
    try:
        known = sha256_of(to_json([*fields[:23], *later]))
    except UnicodeEncodeError:
        return
    assert row_hash(fields) == known
