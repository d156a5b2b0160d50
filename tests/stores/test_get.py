"""``Store.get``: the present version of a record, in whatever state and scope; None if there is none."""

from datetime import timedelta

from commonplace.model.changes import Archive, Touch
from commonplace.model.ids import new_id
from commonplace.model.records import CEILING, Channel, Kind, Source, Trust, Usage
from commonplace.model.scopes import Scope
from stands import rows

FIELDS = {
    "scope": Scope.parse("pipeline:release/agent:reviewer"),
    "kind": Kind.PROCEDURAL,
    "category": "runbooks",
    "key": "deploy/steps",
    "value": {"steps": ["build", "ship"], "dry": True, "tries": 3, "rate": 0.25, "owner": None},
    "tags": frozenset({"Ops", "with space", 'quo"te', "%_\\"}),
    "metadata": {"aliases": ["rollout"], "nested": {"deep": [1, 2.5, None]}},
    "source": Source(channel=Channel.EXTRACTION, ref="session:1#4", parents=("0" * 20, "1" * 20)),
    "trust": Trust.EXTERNAL,
    "pinned": True,
    "held": True,
}


def test_a_record_comes_back_as_it_was_put(store, make):
    """Every field of a record survives the way into the store and back."""
    moments = {name: make.clock.forward(timedelta(microseconds=1)) for name in ("occurred_at", "consolidated_at")}
    record = make("ship it 🎉 naïve\0 'quoted' \u202e", **FIELDS, **moments, expires_at=make.clock.forward())
    store.apply([make.put(record)])
    assert store.get(record.id) == record.replace(version=1)


@rows("value", [0, 0.1, "", "x", [], {}, False, [None], {"": "none"}, 2**53, "\u2028\\"])
def test_any_json_value_comes_back(store, make, value):
    """A structured value comes back with its own type, the empty and the false ones too."""
    record = make(value=value)
    store.apply([make.put(record)])
    found = store.get(record.id).value
    assert found == value
    assert type(found) is type(value)


@rows("channel", list(Channel))
def test_every_channel_and_trust_comes_back(store, keep, channel):
    """Where a record came from and how far it may be believed are kept."""
    kept = keep(source=Source(channel=channel), trust=CEILING[channel])
    found = store.get(kept.id)
    assert (found.source.channel, found.trust) == (channel, CEILING[channel])


def test_what_is_not_there_is_none(store):
    """An id that nobody has is no error."""
    assert store.get("0" * 20) is None


@rows("text", ["", "'", "x' or 1=1 --", "%", "_" * 20, "\0", "0" * 20 + "%"])
def test_an_id_is_never_a_pattern(store, keep, text):
    """No text but the id itself finds a record."""
    keep()
    assert store.get(text) is None


def test_a_record_is_got_in_whatever_state(store, make, keep):
    """Archived, held and expired records are there when asked for by id."""
    archived, held, expired = keep(), keep(held=True), keep(expires_at=make.clock())
    store.apply([Archive(where=make.where(ids=frozenset({archived.id})), at=make.clock.forward())])
    assert store.get(archived.id).archived_at == make.clock()
    assert store.get(held.id).held
    assert store.get(expired.id) == expired


def test_the_present_version_is_the_one_that_is_got(store, make, keep):
    """After an update the earlier words are history."""
    kept = keep("the sky is blue")
    store.apply([make.update(kept, content="the sky is grey")])
    assert (store.get(kept.id).content, store.get(kept.id).version) == ("the sky is grey", 2)


def test_usage_comes_with_the_record(store, make, keep):
    """How often it was recalled is read with the record."""
    kept = keep()
    store.apply([Touch(ids=(kept.id,), at=make.clock.forward())])
    assert store.get(kept.id) == kept.replace(usage=Usage(recalls=1, last_recalled_at=make.clock()))


def test_moments_come_back_in_utc(store, make):
    """A moment given in another time zone is the same moment, to the microsecond."""
    local = make.clock().astimezone(tz=None) + timedelta(microseconds=7)
    record = make(created_at=local, updated_at=local, id=new_id(local))
    store.apply([make.put(record)])
    found = store.get(record.id).created_at
    assert found == local
    assert found.utcoffset() == timedelta(0)
