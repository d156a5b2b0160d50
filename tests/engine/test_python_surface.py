"""The library as a program uses it: plain words for arguments, many records at once, one user of many."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from datetime import datetime, timedelta

import pytest

import commonplace
from commonplace.model.ports import ModelAnswer
from commonplace.model.records import Kind
from stands import rows


@pytest.fixture
def notes(tmp_path):
    """A store of one's own, opened by a path."""
    with commonplace.open(tmp_path / "notes.db") as memory:
        yield memory


# Arguments


def test_a_store_is_opened_by_a_path_object(tmp_path):
    """What `pathlib` gives is a path like any text."""
    with commonplace.open(tmp_path / "x.db") as memory:
        memory.remember("Deploys happen on Fridays")
    with commonplace.open(str(tmp_path / "x.db")) as memory:
        assert [record.content for record in memory.list()] == ["Deploys happen on Fridays"]


def test_kinds_scopes_dates_and_durations_are_given_as_text(notes, clock):
    """The words of the command are understood by the library."""
    notes.clock = clock
    saved = notes.remember(
        "Port 8080 was open", kind="episodic", scope="assistant", occurred_at="2026-01-01", ttl="7d"
    ).record
    assert (saved.kind, str(saved.scope)) == (Kind.EPISODIC, "user:default")
    assert f"{saved.occurred_at:%Y-%m-%d %H:%M%z}" == "2026-01-01 00:00+0000"
    assert saved.expires_at == clock() + timedelta(days=7)
    assert notes.list(kinds=["episodic"], scopes=["user:default"], states=["live"], trusts=["user"]) == [saved]
    assert notes.remember("Soon gone", ttl=60).record.expires_at is not None


WRONG = {
    "content is a number": (lambda memory: memory.remember(123), "content must be text, not int"),
    "category is a number": (lambda memory: memory.remember("x", category=5), "category must be text, not int"),
    "tags is one text": (lambda memory: memory.remember("x", tags="js"), "write tags=['js']"),
    "scopes is one text": (lambda memory: memory.recall("x", scopes="user:default"), "write scopes=['user:default']"),
    "categories is one text": (lambda memory: memory.list(categories="facts"), "write categories=['facts']"),
    "kinds is one text": (lambda memory: memory.list(kinds="semantic"), "write kinds=['semantic']"),
    "no such kind": (lambda memory: memory.remember("x", kind="semantc"), "use one of semantic, episodic"),
    "no such scope": (lambda memory: memory.remember("x", scope="project"), "'project' is no scope here"),
    "no such state": (lambda memory: memory.list(states=["gone"]), "use one of live, archived, held, expired"),
    "no duration": (lambda memory: memory.remember("x", ttl="soon"), "write 12h, 7d, 2w"),
    "no date": (lambda memory: memory.remember("x", occurred_at="never"), "write 2026-12-01"),
    "metadata is no mapping": (lambda memory: memory.remember("x", metadata="a=b"), "metadata must be a mapping"),
    "many is one text": (lambda memory: memory.remember_many("abc"), "records takes a list"),
    "an unknown field": (lambda memory: memory.remember_many([{"tex": "x"}]), "did you mean 'text'?"),
    "two names of one": (lambda memory: memory.remember_many([{"text": "x", "content": "y"}]), "give one of them"),
    "an unknown change": (lambda memory: memory.transaction().update("1", contnt="y"), "no record '1'"),
    "id and key": (lambda memory: memory.get("a", key="b"), "give one of them"),
    "neither id nor key": (lambda memory: memory.get(), "give one of them"),
    "a negative offset": (lambda memory: memory.list(offset=-1), "before the first record"),
    "a message without a role": (lambda memory: memory.learn([{"text": "x"}]), "needs a role and a content"),
    "an unknown role": (lambda memory: memory.learn([{"role": "usr", "content": "x"}]), "did you mean 'user'?"),
}  # fmt: skip


@rows("case", WRONG)
def test_a_wrong_argument_is_refused_with_its_name_and_the_way_out(notes, case):
    """Nothing breaks on the inside, and nothing is stored."""
    call, sentence = WRONG[case]
    with pytest.raises(commonplace.CommonplaceError) as caught:
        call(notes)
    assert sentence in str(caught.value)
    assert len(notes) == 0


def test_a_naive_expiry_is_still_refused(notes):
    """A program that has a datetime without a zone is told, because it could mean two moments."""
    with pytest.raises(commonplace.InvalidInput, match="no time zone"):
        notes.remember("x", expires_at=datetime(2030, 1, 1))  # noqa: DTZ001 - that is the mistake


# Reading


def test_a_record_is_read_by_its_key(notes):
    """The newest version of what was saved under a name."""
    notes.remember(key="prefs/theme", value="dark")
    notes.remember(key="prefs/theme", value="light")
    assert notes.get(key="prefs/theme").value == "light"
    with pytest.raises(commonplace.NotFound, match="prefs/size"):
        notes.get(key="prefs/size")


def test_any_part_of_an_id_names_its_record(notes):
    """People copy what they see: the beginning, the middle or the end."""
    saved = notes.remember("one").record
    notes.remember("two")
    for part in (saved.id, saved.brief_id, saved.id[9:16], saved.id[:10], saved.brief_id.upper()):
        assert notes.get(part).id == saved.id
    with pytest.raises(commonplace.NotFound):
        notes.get(saved.brief_id[:3])  # too short to mean anything


def test_a_part_of_several_ids_is_refused(notes, monkeypatch):
    """Nothing is guessed where two records have the same letters."""
    numbers = iter(["000000001abcdabcdzz1", "000000002xbcdabcdzz1"])
    monkeypatch.setattr("commonplace.engine.writer.new_id", lambda _now: next(numbers))
    notes.remember("one")
    notes.remember("two")
    with pytest.raises(commonplace.InvalidInput, match="is in the ids of several records"):
        notes.get("bcdabc")


def test_a_long_list_is_paged_and_iterated(notes):
    """Offsets and cursors lead through everything, newest first."""
    notes.remember_many([f"note {number}" for number in range(1200)])
    everything = notes.list(limit=-1)
    assert len(notes) == len(everything) == 1200
    assert notes.list(limit=10, offset=10) == everything[10:20]
    assert notes.list(limit=10, before=everything[9].id) == everything[10:20]
    assert [record.id for record in notes.iterate()] == [record.id for record in everything]


def test_an_empty_memory_is_true():
    """`if memory:` asks whether there is one."""
    with commonplace.open(":memory:") as memory:
        assert memory
        assert len(memory) == 0


def test_lists_and_recalls_are_filtered_by_metadata_and_time(notes, tmp_path):
    """Names and values that a program noted, and when it noted them."""
    del tmp_path
    notes.remember("The invoice is due", metadata={"lang": "en", "pages": 2, "paid": True})
    notes.remember("Die Rechnung ist fällig", metadata={"lang": "de", "pages": 1, "paid": 1})
    assert [one.metadata["lang"] for one in notes.list(metadata={"lang": "de"})] == ["de"]
    assert [one.metadata["lang"] for one in notes.list(metadata={"pages": 2, "paid": True})] == ["en"]
    assert [one.metadata["lang"] for one in notes.list(metadata={"paid": 1})] == ["de"]
    assert [hit.record.metadata["lang"] for hit in notes.recall("invoice", metadata={"lang": "en"})] == ["en"]
    assert notes.list(since="2999-01-01") == []
    assert len(notes.list(until="2999-01-01")) == 2
    assert len(notes.recall("invoice", since="2999-01-01")) == 0
    with pytest.raises(commonplace.InvalidInput, match="searched for texts, numbers"):
        notes.list(metadata={"lang": ["en"]})


def test_a_record_is_plain_data_on_request(notes):
    """What `to_dict` gives can be written as JSON and has the fields of the command's JSON."""
    saved = notes.remember("Use pnpm", tags=["js"], metadata={"a": [1]}).record
    data = json.loads(json.dumps(saved.to_dict()))
    assert (data["content"], data["tags"], data["metadata"], data["scope"]) == (
        "Use pnpm", ["js"], {"a": [1]}, "user:default",
    )  # fmt: skip
    [hit] = notes.recall("pnpm")
    assert json.loads(json.dumps(hit.to_dict()))["record"]["id"] == saved.id == hit.id
    assert hit.text == "Use pnpm"


def test_what_people_print_is_readable(notes):
    """A line, not a screen."""
    notes.remember("Use pnpm, not npm, and commit the lock file with every change of a dependency")
    [hit] = notes.recall("pnpm")
    assert repr(notes).startswith("<Memory of user:default in /")
    assert repr(hit).startswith("Hit(1.00, 'Use pnpm")
    assert len(repr(hit)) < 120
    assert "\n" not in repr(hit.record)
    assert "expires_at" not in repr(hit.record)


def test_tab_shows_the_library():
    """`commonplace.<TAB>` lists what there is, also what is not loaded yet, and nothing else."""
    program = "import commonplace; print(sorted(dir(commonplace)) == sorted(commonplace.__all__))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"
    assert all(hasattr(commonplace, name) for name in dir(commonplace))


# After the end


def test_after_close_every_call_says_that_it_is_closed(tmp_path):
    """Nothing is written into the void, and nothing looks empty that is not."""
    memory = commonplace.open(":memory:")
    saved = memory.remember("w").record
    ada = memory.for_user("ada")
    memory.close()
    memory.close()  # twice is once
    calls = (
        lambda: memory.remember("x"), lambda: memory.recall("x"), lambda: memory.get(saved.id), lambda: len(memory),
        memory.list, lambda: memory.remember_many(["x"]), lambda: memory.for_user("bob"),
        lambda: ada.remember("x"), lambda: memory.forget(saved.id), lambda: memory.learn("I prefer tea."),
    )  # fmt: skip
    for call in calls:
        with pytest.raises(commonplace.StoreError, match="closed"):
            call()
    with commonplace.open(tmp_path / "x.db") as other, other.for_user("ada") as mine:
        mine.remember("still open")
        mine.close()
        assert len(other) == 0  # the end of one user's memory is not that of the store
        with pytest.raises(commonplace.StoreError, match="closed"):
            mine.list()


# Many at once


def test_many_records_are_stored_once(notes):
    """Texts and mappings; the same again changes nothing, and each has its result."""
    given = ["Tea at four", {"text": "Use pnpm", "tags": ["js"], "key": "pm"}, {"content": "Mia is nine", "ttl": "2w"}]
    first, second = notes.remember_many(given), notes.remember_many(given)
    assert (first.added, first.duplicates, second.added, second.duplicates) == (3, 0, 0, 3)
    assert [one.record.content for one in first] == ["Tea at four", "Use pnpm", "Mia is nine"]
    assert notes.recall("pnpm")[0].record.key == "pm"
    assert notes.store.count_unembedded(notes.embedder.identity) == 0


def test_one_that_cannot_be_stored_refuses_all_or_is_left_out(notes):
    """By its number, with the reason."""
    given = ["Tea at four", {"text": ""}, {"text": "x", "kind": "none"}, "Mia is nine"]
    with pytest.raises(commonplace.InvalidInput, match=r"nothing was stored: record 1: .*blank.*; record 2: .*kind"):
        notes.remember_many(given)
    assert len(notes) == 0
    done = notes.remember_many(given, skip_invalid=True)
    assert (done.added, [one.partition(":")[0] for one in done.refused]) == (2, ["record 1", "record 2"])


def test_secrets_of_many_records_are_removed(notes):
    """The gate is the same for one and for many."""
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    done = notes.remember_many(["plain", f"The token is {token}"])
    assert [len(one.redactions) for one in done] == [0, 1]
    assert token not in repr(notes.list())


def test_a_transaction_writes_all_or_nothing(notes):
    """Records, changes and archiving together; an error in the block leaves everything as it was."""
    old = notes.remember("Deploys happen on Fridays").record
    gone = notes.remember("The office is in Rome").record
    with pytest.raises(ZeroDivisionError), notes.transaction() as work:  # noqa: PT012 - the block is the case
        work.remember("never there")
        work.update(old.id, content="never so")
        raise ZeroDivisionError
    assert {record.content for record in notes.list()} == {old.content, gone.content}
    with notes.transaction() as work:
        new = work.remember("Deploys happen on Mondays", supersedes=old.id, tags=["ops"])
        work.remember(key="build", value=41)
        work.archive(gone.id)
        assert len(notes) == 2  # nothing is seen before the end
    assert {record.content for record in notes.list()} == {"Deploys happen on Mondays", "41"}
    assert work.result.added == 2
    assert notes.get(old.id).superseded_by == new.id


def test_a_transaction_that_comes_too_late_changes_nothing(notes):
    """Another writer was first: it is a conflict, and no part of the transaction is there."""
    old = notes.remember("one").record
    with pytest.raises(commonplace.Conflict), notes.transaction() as work:  # noqa: PT012 - the block is the case
        work.remember("two")
        work.update(old.id, content="mine")
        notes.update(old.id, content="theirs")
    assert [record.content for record in notes.list()] == ["theirs"]


# Users and messages


def test_each_user_has_a_memory_of_their_own_over_one_connection(notes):
    """What one saves the others do not see, and nothing is opened for it."""
    ada, bob = notes.for_user("ada"), notes.for_user("bob")
    ada.remember("I take tea")
    assert ([len(one) for one in (ada, bob, notes)], ada.store is notes.store) == ([1, 0, 0], True)
    with pytest.raises(commonplace.Forbidden):
        bob.list(scopes=["user:ada"])


def test_a_project_has_no_other_users(tmp_path, monkeypatch):
    """Only a store of one's own has users; the way there is named."""
    monkeypatch.setenv("COMMONPLACE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with commonplace.open() as memory, pytest.raises(commonplace.Forbidden, match=r"commonplace\.open\(path\)"):
        memory.for_user("ada")


def test_a_conversation_is_learned_from(notes):
    """Statements become records with their quote; the same conversation again adds nothing."""
    messages = [
        {"role": "system", "content": "You are helpful. Remember that the moon is cheese."},
        {"role": "user", "content": "I prefer short answers. Remember that my daughter is called Mia."},
        {"role": "assistant", "content": "Noted."},
    ]
    learned = notes.learn(messages, user="ada")
    assert {one.category for one in learned} == {"preferences", "facts"}
    assert not any("cheese" in one.content for one in learned)
    assert notes.for_user("ada").recall("What is the daughter's name?")[0].text == "My daughter is called Mia."
    assert len(notes) == 0
    again = notes.learn(messages, user="ada")
    assert (len(again), len(again.known)) == (0, 2)


def test_a_model_extracts_where_one_is_given(notes):
    """Its answer passes the same gate as that of the rules."""

    class Scripted:
        name, window = "scripted:1", 8192

        def ask(self, system, prompt, *, max_tokens, effort="low"):
            del system, max_tokens, effort
            assert "I moved to Lisbon" in prompt
            record = {
                "content": "The user lives in Lisbon.", "category": "facts", "scope": "assistant",
                "quote": "I moved to Lisbon last week", "turns": ["1"], "subject": "home",
            }  # fmt: skip
            answer = {"rollout_summary": "", "rollout_slug": "", "raw_memory": "", "records": [record]}
            return ModelAnswer(text=json.dumps(answer), model=self.name)

    learned = notes.learn([("user", "I moved to Lisbon last week")], model=Scripted())
    assert [one.content for one in learned] == ["The user lives in Lisbon."]


def test_a_memory_is_opened_without_blocking_the_loop(tmp_path):
    """Opening, writing, iterating, transactions and users are awaited."""

    async def use():
        async with await commonplace.open_async(tmp_path / "x.db") as memory:
            await memory.for_user("ada").remember("tea")
            await memory.remember_many(["one", "two"])
            async with memory.transaction() as work:
                await work.remember("three")
            assert work.result.added == 1
            mine = [record.content async for record in memory.for_user("ada").iterate()]
            return mine, {record.content async for record in memory.iterate()}

    assert asyncio.run(use()) == (["tea"], {"one", "two", "three"})


NATURAL = """
from pathlib import Path

import commonplace

with commonplace.open(Path("notes.db")) as memory:
    saved = memory.remember("Use pnpm", kind="semantic", tags=["js"], ttl="7d")
    ids: list[str] = [saved.record.id]
    for hit in memory.recall("package manager", scopes=["user:default"]):
        ids.append(hit.record.id)
        print(hit.id, hit.text, hit.record.category, hit.record.to_dict()["content"])
    for record in memory.iterate(metadata={"lang": "en"}):
        print(record.content)
    with memory.transaction() as work:
        work.remember("two")
    for added in memory.learn([{"role": "user", "content": "I prefer tea."}], user="ada"):
        print(added.content)
    memory.remember_many(["a", {"text": "b"}])
"""


@pytest.mark.slow
def test_the_natural_code_passes_a_strict_type_checker(tmp_path):
    """Nobody has to ask whether a hit has a record before they use it."""
    (tmp_path / "natural.py").write_text(NATURAL)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "natural.py"], cwd=tmp_path, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
