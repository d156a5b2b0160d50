"""Rows of records: each field is spelled once, and a later column changes no hash."""

from datetime import UTC, datetime, timedelta

import pytest

from commonplace.model.errors import StoreDamaged
from commonplace.model.records import Channel, Kind, Record, Source, Trust, Usage
from commonplace.stores.rows import FIELDS, SHARED_COLUMNS, row_hash, row_record, row_records, stored_row
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
    assert row_record([*fields_of(FULL), 3, stored_row(FULL, 1, valid_from=NOW)[len(FIELDS)]]) == FULL
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
    whole = [*fields_of(FULL), None, None]
    damaged = [*fields_of(other), None, None]
    damaged[FIELDS.index("kind")] = "semantik"
    assert [record.id for record in row_records([whole, whole])] == [FULL.id, FULL.id]
    with pytest.raises(StoreDamaged, match=other.id):
        row_records([whole, damaged, whole])
