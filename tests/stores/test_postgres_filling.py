"""What is carried into a PostgreSQL store arrives as it was, whatever characters it is made of."""

import pytest

from commonplace.app import copier_of
from commonplace.engine.transfer import migrate
from commonplace.model.queries import Order

pytestmark = pytest.mark.postgres
HOSTILE = ['a"b', "c\\d", "e\0f", "\1", ",", "{}", " ", '","', '"', "\\", "null", "\t\n", "ü", "日本"]


def test_no_character_ends_or_splits_what_is_carried(new_postgres, file_store, make):
    """Tags and words that look like the marks of an array are one tag and one word."""
    file_store.apply(
        [make.put(make("plain", tags=frozenset(HOSTILE)), terms=('say"so', "back\\slash", '","', "nil\0"))]
    )
    file_store.apply([make.put(make(word, key=word, tags=frozenset({word})), terms=(word,)) for word in HOSTILE])
    theirs = new_postgres()
    migrate(copier_of(file_store), copier_of(theirs))

    kept = theirs.find(make.where(), order=Order.ID, limit=99)
    assert kept == file_store.find(make.where(), order=Order.ID, limit=99)
    for word in HOSTILE:
        found = theirs.find(make.where(tags=frozenset({word})), order=Order.ID, limit=99)
        assert {record.content for record in found} == {"plain", word}


def test_a_key_that_changed_hands_is_carried_to_its_new_holder(new_postgres, file_store, make):
    """Whoever held it in the target has lost it, and a second move leaves nothing to do."""
    [old] = file_store.apply([make.put(make("old", key="k"))])
    theirs = new_postgres()
    migrate(copier_of(file_store), copier_of(theirs))
    file_store.apply([make.update(old.records[0], key=None)])
    file_store.apply([make.put(make("new", key="k"))])
    migrate(copier_of(file_store), copier_of(theirs), replace=True)

    [holder] = theirs.find(make.where(keys=frozenset({"k"})), order=Order.ID, limit=9)
    assert holder.content == "new"
    assert migrate(copier_of(file_store), copier_of(theirs)).written == 0
