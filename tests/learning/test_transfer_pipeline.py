"""Records out and in again: nothing is lost, nothing is kept twice, nothing foreign slips through."""

from __future__ import annotations

import gc
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from commonplace.engine.export_format import export_lines, read_export
from commonplace.engine.memory import Memory
from commonplace.engine.transfer import BATCH, import_items
from commonplace.model.binding import Binding
from commonplace.model.changes import Load, MarkConsolidated
from commonplace.model.errors import Conflict, Forbidden, InvalidInput
from commonplace.model.queries import ANY_STATE, Filter, Order
from commonplace.model.records import Channel, Kind
from commonplace.model.scopes import Scope
from commonplace.roles.transfer import export_entries, read_entries
from commonplace.stores.sqlite.store import SqliteStore

SECRET = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7h8"
FIXTURES = Path(__file__).parents[1] / "fixtures"
ELSEWHERE = Scope.of(("project", "elsewhere"))
HEADER = json.dumps({"format": "commonplace-records", "version": 1})
GOOD = {
    "id": "01jk3v9q2c0123456789", "scope": "project:here", "kind": "semantic", "category": "decisions",
    "content": "good", "key": None, "value": None, "tags": [], "metadata": {},
    "source": {"channel": "user", "ref": None, "parents": []},
    "trust": "user", "pinned": False, "version": 1, "created_at": "2026-01-01T00:00:00Z",
    "updated_at": "2026-01-01T00:00:00Z", "occurred_at": None, "expires_at": None, "archived_at": None,
    "superseded_by": None, "held": False, "consolidated_at": None, "usage": {"recalls": 0, "last_recalled_at": None},
}  # fmt: skip
OTHERS = GOOD | {"id": "01jk3v9q2c012345678z"}


@pytest.fixture
def empty():
    """A store with nothing in it."""
    store = SqliteStore(":memory:")
    yield store
    store.close()


@pytest.fixture
def full(opened, clock):
    """A project with every field of every kind in use, earlier versions and all."""
    memory = opened.memory
    options = {"key": "k", "value": {"a": [1, None, "ä"]}, "tags": ["x", "y z"], "ref": "ticket 7", "pinned": True}
    rich = memory.remember(
        "rich\ncontent", category="incidents", metadata={"aliases": ["b"], "n": 1.5}, **options
    ).record
    clock.forward()
    memory.update(rich.id, content="richer", expires_at=clock().replace(year=2040), occurred_at=clock())
    child = memory.remember("derived", category="principles", parents=[rich.id], scope=opened.where.assistant).record
    memory.archive(memory.remember("archived", category="decisions").record.id)
    memory.hold(memory.remember("held", category="decisions").record.id)
    old = memory.remember("old", category="decisions").record
    clock.forward()
    memory.remember("new", category="decisions", supersedes=old.id)
    Memory(opened.store, opened.where.bind(Channel.AGENT), clock=clock).remember("an agent's", category="decisions")
    opened.store.apply([MarkConsolidated(ids=(child.id,), at=clock())])
    memory.recall("richer")
    memory.recall("richer")
    return opened


def whole(store, scopes, now):
    """Every version of every record, each with all of its fields."""
    where = Filter(scopes=frozenset(scopes), at=now, states=ANY_STATE, versions=True)
    return store.find(where, order=Order.ID, limit=10_000)


def lines_of(opened):
    """An export of everything."""
    return list(export_lines(opened.store, frozenset(opened.binding.reads), now=opened.clock()))


def take(store, lines, *, allowed=(), into=None):
    """Import some lines."""
    return import_items(taker(store, *allowed, *([into] if into else [])), read_export(lines, "it.jsonl"), into=into)


def taker(store, *allowed):
    """A memory that may write to these scopes."""
    binding = Binding(channel=Channel.IMPORT, writes={}, reads=allowed, also_writes=frozenset(allowed))
    return Memory(store, binding, secret=lambda: b"key")


def test_an_export_says_what_it_is(full):
    """The first line names the format, each other line is one record."""
    header, *rest = map(json.loads, lines_of(full))

    assert header == {"format": "commonplace-records", "version": 2, "scopes": sorted(map(str, full.binding.reads))}
    assert len(rest) == len(full.memory.list(states=ANY_STATE))
    assert [said["id"] for said in rest] == sorted(said["id"] for said in rest)


def test_an_export_can_be_read_and_compared(full):
    """Letters of every script stay as they are, and keys stand in one order: equal records are equal lines."""
    line = next(line for line in lines_of(full) if "richer" in line)

    assert '"ä"' in line
    assert list(json.loads(line)) == sorted(json.loads(line))


def test_nothing_is_lost(full, empty, clock):
    """Every field of every version is as it was: dates, sources, trust, states and use."""
    done = take(empty, lines_of(full), allowed=full.binding.reads)

    assert whole(empty, full.binding.reads, clock()) == whole(full.store, full.binding.reads, clock())
    assert (done.added, done.duplicates, done.redactions) == (7, 0, ())


def test_questions_are_answered_alike(full, empty, clock):
    """What was exported is found with the same scores, now and as of an earlier moment."""
    take(empty, lines_of(full), allowed=full.binding.reads)
    there, here = Memory(empty, full.binding, clock=clock), Memory(full.store, full.binding, clock=clock)
    for question in ("richer", "rich content", "old new", "derived", "b", "k", ""):
        for moment in (None, clock().replace(second=0), clock().replace(second=1), clock()):
            asked = {"as_of": moment, "count": False}
            assert there.recall(question, **asked).hits == here.recall(question, **asked).hits


def test_importing_twice_changes_nothing(full, empty, clock):
    """What is there already stays as it is."""
    take(empty, lines_of(full), allowed=full.binding.reads)
    before = whole(empty, full.binding.reads, clock())
    again = take(empty, lines_of(full), allowed=full.binding.reads)

    assert (again.added, again.duplicates) == (0, 7)
    assert whole(empty, full.binding.reads, clock()) == before


def test_what_is_newer_here_stays(full, empty, clock):
    """An old export undoes nothing, and a newer one brings what is new."""
    early = lines_of(full)
    record = full.memory.list(states=ANY_STATE)[0]
    full.memory.update(record.id, tags=["newer"])
    late = lines_of(full)
    take(empty, late, allowed=full.binding.reads)

    assert take(empty, early, allowed=full.binding.reads).added == 0
    assert empty.get(record.id).tags == {"newer"}
    other = SqliteStore(":memory:")
    take(other, early, allowed=full.binding.reads)
    assert take(other, late, allowed=full.binding.reads).added == 1
    assert whole(other, full.binding.reads, clock()) == whole(full.store, full.binding.reads, clock())


def test_everything_can_go_into_another_scope(full, empty, clock):
    """Whatever it was exported from, it is all in the one that was named."""
    done = take(empty, lines_of(full), into=ELSEWHERE)

    assert done.added == len(whole(empty, [ELSEWHERE], clock())) - 4 == 7
    assert whole(empty, full.binding.reads, clock()) == []
    before = [record.replace(scope=ELSEWHERE) for record in whole(full.store, full.binding.reads, clock())]
    assert whole(empty, [ELSEWHERE], clock()) == before


def test_an_import_is_written_to_files(full, desk):
    """Records that come in get their Markdown like all others."""
    lines = lines_of(full)
    desk.close()
    for path in (desk.root / "home").glob("commonplace.db*"):
        path.unlink()
    desk.folder("new", "github.com/acme/new")
    there = desk.open("new")
    take(there.store, lines, into=there.where.project)

    files = {path.parent.name for path in (desk.root / "new" / ".commonplace").glob("*/*.md")}
    assert files == {"incidents", "principles", "decisions"}
    assert there.folders.sync(there.where.project).is_empty


def test_records_of_categories_that_are_no_folder_get_no_file(desk, empty, clock):
    """What comes from a memory with other categories is kept, and stands in no sync's way."""
    there = desk.open()
    binding = there.binding.replace(categories=None)
    Memory(empty, binding, clock=clock).remember("from elsewhere", category="team notes")
    take(there.store, list(export_lines(empty, frozenset(binding.reads), now=clock())), into=there.where.project)

    assert [hit.text for hit in there.memory.recall("elsewhere")] == ["from elsewhere"]
    assert there.folders.sync(there.where.project).is_empty


def test_what_may_not_be_written_is_not_imported(full, empty, clock):
    """A record of a foreign scope stops the import, before anything is kept."""
    with pytest.raises(Forbidden, match="holds a record of"):
        take(empty, lines_of(full), allowed=[full.where.project])
    assert whole(empty, full.binding.reads, clock()) == []


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not JSON"),
        ('{"value": NaN}', "not JSON: NaN is no number"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not a record"),
        ("7", "not a record"),
        ("{}", "not a record: it needs 'id', 'scope', 'kind', 'content', 'source'"),
    ],
)
def test_a_broken_line_keeps_nothing_and_is_named(full, empty, clock, line, reason):
    """File and line are said; what was read before it is not kept either."""
    header, *rest = lines_of(full)

    with pytest.raises(InvalidInput, match=r"^it.jsonl:4: ") as caught:
        take(empty, [header, *rest[:1], "", line, *rest[1:]], allowed=full.binding.reads)
    assert reason in str(caught.value)
    assert whole(empty, full.binding.reads, clock()) == []


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("id", "short", "is not a record id"),
        ("scope", "nowhere", "is not a scope"),
        ("kind", "odd", "kind must be one of semantic, episodic, procedural, working, not 'odd'"),
        ("category", "No Slug\n", "is not a category"),
        ("content", " ", "the content is blank"),
        ("content", "a\ud800", "the content is not valid Unicode"),
        ("content", "x" * 1_048_577, "the content has 1048577 bytes"),
        ("content", 7, "content must be a string, not 7"),
        ("key", 7, "key must be a string, not 7"),
        ("value", [[[[[[[1]]]]]]], "the value is nested deeper than 6 levels"),
        ("tags", "abc", "tags must be a list, not 'abc'"),
        ("tags", [1], "each of tags must be a string, not 1"),
        ("metadata", [["a", 1]], "metadata must be an object, not [['a', 1]]"),
        ("metadata", {"a": "x" * 30_000}, "everything but the content has"),
        ("source", {"channel": "root", "ref": None, "parents": []}, "source.channel must be one of user, agent, "),
        ("source", {"channel": "user", "ref": 7, "parents": []}, "source.ref must be a string, not 7"),
        ("trust", "absolute", "trust must be one of external, agent, user, not 'absolute'"),
        ("pinned", "false", "pinned must be true or false, not 'false'"),
        ("version", 0, "0 is not a number from 1 on"),
        ("version", 10**30, "is not a number from 1 on"),
        ("version", True, "version must be a whole number, not True"),
        ("created_at", "yesterday", "created_at must be a date such as 2026-05-31T12:00:00Z, not 'yesterday'"),
        ("superseded_by", "01jk3v9q2c0123456789", "is superseded but not archived"),
        ("usage", {"recalls": -1, "last_recalled_at": None}, "-1 is not a number from 0 on"),
        ("usage", {"recalls": 1, "last_recalled_at": 7}, "usage.last_recalled_at must be a date"),
        ("versions", {}, "versions must be a list, not {}"),
        ("versions", [{}], "it needs 'id'"),
        ("versions", [OTHERS], "an earlier version belongs to another record"),
        ("versions", [GOOD | {"scope": "project:there"}], "an earlier version belongs to another record"),
    ],
)
def test_a_field_that_cannot_be_is_named(opened, empty, clock, *, field, value, reason):
    """Whatever a foreign file says, it is a record or a sentence."""
    opened.memory.remember("good", category="decisions")
    header, line = lines_of(opened)
    broken = json.dumps(json.loads(line) | {field: value})

    with pytest.raises(InvalidInput, match=r"^it.jsonl:2: not a record: ") as caught:
        take(empty, [header, broken], allowed=opened.binding.reads)
    assert reason in str(caught.value)
    assert whole(empty, opened.binding.reads, clock()) == []


def test_a_date_without_a_zone_is_utc(empty):
    """As everywhere else."""
    take(empty, [HEADER, json.dumps(GOOD | {"occurred_at": "2026-01-01"})], into=ELSEWHERE)
    assert empty.get(GOOD["id"]).occurred_at == datetime(2026, 1, 1, tzinfo=UTC)


def test_a_field_of_a_later_version_is_passed_over(empty):
    """What this version does not know does not stop an import."""
    assert take(empty, [HEADER, json.dumps(GOOD | {"mood": "sunny"})], into=ELSEWHERE).added == 1


def test_memory_does_not_grow_with_the_file(empty):
    """What was read waits on disk: at the last line hardly any of the changes before it is held."""

    def lines():
        yield HEADER
        for number in range(300):
            yield json.dumps(GOOD | {"id": f"{number:020}", "content": f"note {number}"})
        held.append(sum(type(thing) is Load for thing in gc.get_objects()))

    held = []
    before = sum(type(thing) is Load for thing in gc.get_objects())
    assert take(empty, lines(), into=ELSEWHERE).added == 300
    assert held[0] - before < 5


FIELDS = ("id", "scope", "kind", "category", "content", "key", "value", "tags", "metadata", "source", "trust", "pinned",
          "version", "created_at", "updated_at", "occurred_at", "expires_at", "archived_at", "superseded_by", "held",
          "consolidated_at", "usage", "versions")  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None)
@given(st.sampled_from(FIELDS), JSON)
@example("metadata", {"": "\ud800"})
@example("occurred_at", "0001-01-01T00:00:00+23:59")
def test_any_field_of_any_value_is_kept_or_refused(field, value):
    """An import ends with a record or with a sentence that names the line, never otherwise."""
    store = SqliteStore(":memory:")
    line = json.dumps(GOOD | {field: value})
    try:
        said = f"{take(store, [HEADER, line], into=ELSEWHERE).added} kept"
    except InvalidInput as error:
        said = str(error)
    store.close()
    assert said == "1 kept" or said.startswith("it.jsonl:2: not a record: ")


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([], "it.jsonl is not an export of Commonplace"),
        (["", "  "], "it.jsonl is not an export of Commonplace"),
        ([json.dumps(GOOD)], "it.jsonl is not an export of Commonplace"),
        (['{"format": "commonplace-records", "version": 3}'], "has version 3 of the format; this can read 2 and older"),
    ],
)
def test_what_is_no_export_is_not_read_as_one(empty, lines, reason):
    """The first line has to say what the file is, in a version that is known."""
    with pytest.raises(InvalidInput, match=reason):
        take(empty, lines, into=ELSEWHERE)


def test_secrets_of_a_foreign_file_are_taken_out(empty, clock):
    """Whoever wrote them, wherever they stand, earlier versions too: they are in no row."""
    said = GOOD | {
        "content": f"the token {SECRET}", "key": SECRET, "value": {"t": SECRET}, "tags": [SECRET],
        "metadata": {"note": SECRET}, "version": 2,
        "source": {"channel": "user", "ref": f"see {SECRET}", "parents": []},
    }  # fmt: skip
    earlier = said | {"content": f"before: {SECRET}", "version": 1}
    done = take(empty, [HEADER, json.dumps(said | {"versions": [earlier]})], into=ELSEWHERE)

    assert len(done.redactions) == 12
    assert SECRET not in repr(whole(empty, [ELSEWHERE], clock()))
    assert "[secret:github-pat:" in empty.get(GOOD["id"]).source.ref


def test_what_only_its_key_tells_is_taken_out_of_a_foreign_file(empty):
    """An import passes the gate as a write does: one word under the name of a password is one."""
    said = GOOD | {"key": "staging-password", "content": "hunter2abcXYZ", "value": "hunter2abcXYZ"}
    take(empty, [HEADER, json.dumps(said)], into=ELSEWHERE)
    assert "hunter2abcXYZ" not in repr(empty.get(GOOD["id"]))


def test_a_key_that_is_taken_stops_the_import(empty, clock):
    """Two records cannot hold one key; nothing of the file is kept."""
    other = GOOD | {"id": "01jk3v9q2c012345678z", "content": "other", "key": "k"}

    with pytest.raises(Conflict, match="the key 'k' is taken"):
        take(empty, [HEADER, json.dumps(GOOD | {"key": "k"}), json.dumps(other)], into=ELSEWHERE)
    assert whole(empty, [ELSEWHERE], clock()) == []


def test_more_than_a_page_goes_through(empty, clock):
    """Exports and imports of any length are whole."""
    store = SqliteStore(":memory:")
    lines = [HEADER, *(json.dumps(GOOD | {"id": f"{n:020}", "content": f"note {n}"}) for n in range(BATCH + 5))]
    told = []
    items = read_export(lines, "it")
    done = import_items(taker(empty, ELSEWHERE), items, into=ELSEWHERE, progress=lambda *much: told.append(much))
    out = list(export_lines(empty, frozenset({ELSEWHERE}), now=clock()))

    assert (done.added, len(out)) == (BATCH + 5, BATCH + 6)
    assert told == [(BATCH, BATCH + 5), (BATCH + 5, BATCH + 5)]
    assert take(store, out, into=ELSEWHERE).added == BATCH + 5
    assert whole(store, [ELSEWHERE], clock()) == whole(empty, [ELSEWHERE], clock())


def test_an_export_of_the_version_before_comes_back_byte_for_byte(empty, clock):
    """It was written before the redesign: every field is read, and written the same again, but for the version."""
    text = (FIXTURES / "export-1.jsonl").read_text(encoding="utf-8")
    here = Scope.of(("project", "here"))
    assert take(empty, text.splitlines(), allowed=[here]).added == 6
    again = "\n".join(export_lines(empty, frozenset({here}), now=clock())) + "\n"
    assert again == text.replace('"version": 1', '"version": 2', 1)


def test_a_role_export_of_the_version_before_comes_back_with_new_ids(empty):
    """Content, category, type, metadata and dates; only ids are given anew."""
    text = (FIXTURES / "role-export.json").read_text(encoding="utf-8")
    binding = Binding(channel=Channel.IMPORT, writes=dict.fromkeys(Kind, ELSEWHERE), reads=(ELSEWHERE,))
    memory = Memory(empty, binding)
    import_items(memory, read_entries(text))
    again = export_entries(empty, ELSEWHERE, now=memory.clock())
    assert [one | {"id": None} for one in again] == [one | {"id": None} for one in json.loads(text)]
