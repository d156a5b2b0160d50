"""`store_backend`: the same role on each of them remembers, recalls, shares, clears, moves and embeds anew alike."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from commonplace.agents import answer_call
from commonplace.install import hint
from commonplace.model.errors import StoreError
from commonplace.model.records import Channel, Kind
from commonplace.roles import role_tools
from commonplace.roles.dialect import load
from commonplace.roles.memory import has_store, role_memory
from commonplace.roles.transfer import export_entries
from commonplace.stores.lance.store import LanceStore
from stands import POSTGRES, agree, scripts_of_the_user

ALLOWED = "security:\n  tools:\n    restrict_db_paths: false\n"


@pytest.fixture
def env(tmp_path):
    """A machine without any key."""
    return {"COMMONPLACE_HOME": str(tmp_path / "data"), "HOME": str(tmp_path)}


@pytest.fixture
def schema():
    """A schema of a database for one test, which is dropped after it."""
    from commonplace.stores.postgres.store import PostgresStore  # noqa: PLC0415 - only with the extra

    name = f"roles_{os.urandom(6).hex()}"
    mark = "&" if "?" in os.environ[POSTGRES] else "?"
    yield f"{os.environ[POSTGRES]}{mark}schema={name}"
    store = PostgresStore(os.environ[POSTGRES], schema=name)
    with store._connections.alone() as db:
        db.execute(f'drop schema if exists "{name}" cascade')
    store.close()


@pytest.fixture(params=["sqlite", "lancedb", pytest.param("postgres", marks=pytest.mark.postgres)])
def role(request, tmp_path):
    """Read a role with this backend; roles of one name have one store."""
    address = request.getfixturevalue("schema") if request.param == "postgres" else None
    agree(tmp_path, tmp_path / "data")  # an address is the operator's business

    def role(name="assistant", **memory):
        said = {"store_backend": request.param} | ({"store_path": address} if address else {}) | memory
        file = tmp_path / f"{name}.yaml"
        top = f"name: {name}\nrole: You help.\nmodel: test\nmemory: {json.dumps(said)}\n"
        file.write_text(top + (ALLOWED if address else ""), encoding="utf-8")
        return load(str(file))

    return role


def test_what_is_remembered_is_recalled_by_the_next_process(role, env):
    """The tools answer in the document's words, whatever keeps the memories."""
    with role_memory(role(), env=env) as held:
        said = answer_call(role_tools(held.memory()), "remember", {"content": "The user prefers dark mode."})
    assert said.startswith("Remembered (id=")
    with role_memory(role(), env=env) as held:
        found = answer_call(role_tools(held.memory()), "recall", {"query": "The user prefers dark mode."})
    assert found.startswith("[Type: semantic | Category: general | Score: ")
    assert has_store(role(), env=env)


def test_roles_with_one_store_share_their_memories(role, env):
    """One agent's remember is another one's recall, and their conversations stay apart."""
    shared = {} if role().store("/data").startswith("postgresql") else {"store_path": "memory/team.any"}
    one, other = role("one", **shared), role("other", **shared)
    with role_memory(one, env=env) as held:
        held.memory().remember("The deploy runs on Fridays.", kind=Kind.SEMANTIC)
        held.sessions.save("0123456789ab", [{"kind": "request", "parts": [{"part_kind": "user-prompt"}]}])
    with role_memory(other, env=env) as held:
        assert [hit.text for hit in held.memory().recall("when does the deploy run?")] == [
            "The deploy runs on Fridays."
        ]
        assert held.sessions.all() == []


def test_clearing_takes_what_was_asked_for(role, env):
    """Facts go, episodes and conversations stay."""
    with role_memory(role(), env=env) as held:
        memory = held.memory()
        memory.remember("a fact", kind=Kind.SEMANTIC)
        memory.remember("an episode", kind=Kind.EPISODIC)
        assert held.clear(frozenset({Kind.SEMANTIC})) == (1, False)
        assert [record.content for record in memory.list()] == ["an episode"]


def test_memories_move_to_another_backend(role, env, tmp_path):
    """What one role exports another one keeps, once, whatever either of them is kept in."""
    with role_memory(role(), env=env) as held:
        held.memory().remember("The user prefers dark mode.", category="preferences", kind=Kind.SEMANTIC)
        text = json.dumps(export_entries(held.store, held.scope, now=held.clock()))
    plain = tmp_path / "plain.yaml"
    plain.write_text("name: plain\nrole: You help.\nmodel: test\nmemory: {}\n", encoding="utf-8")
    with role_memory(load(str(plain)), env=env) as held:
        assert (held.import_(text).added, held.import_(text).duplicates) == (1, 1)
        assert held.memory().recall("dark mode")[0].text == "The user prefers dark mode."


def test_it_can_be_embedded_anew(role, env):
    """Everything that lacks a vector gets one, and is found by its meaning then."""
    with role_memory(role(), env=env, embedded=False) as held:
        held.memory(Channel.USER).remember("The user prefers dark mode.", kind=Kind.SEMANTIC)
    with role_memory(role(), env=env, anew=True) as held:
        assert held.reembed().embedded == 1
        assert held.memory().recall("dark mode")[0].similarity > 0.3


@pytest.mark.parametrize(("before", "after"), [("sqlite", "lancedb"), ("lancedb", "sqlite")])
def test_a_change_of_backend_starts_with_what_was_remembered(env, tmp_path, before, after):
    """The first who looks finds everything; it is copied once and said, and the old store stays as it is."""
    file = tmp_path / "role.yaml"
    texts = {
        name: f"name: changing\nrole: You help.\nmodel: test\nmemory: {{store_backend: {name}}}\n"
        for name in (before, after)
    }
    file.write_text(texts[before], encoding="utf-8")
    with role_memory(load(str(file)), env=env) as held:
        held.memory().remember("The user prefers dark mode.", kind=Kind.SEMANTIC)
        held.sessions.save("0123456789ab", [{"kind": "request", "parts": [{"part_kind": "user-prompt"}]}])
    file.write_text(texts[after], encoding="utf-8")
    assert has_store(load(str(file)), env=env)
    with role_memory(load(str(file)), env=env) as held:
        assert held.memory().recall("dark mode")[0].similarity > 0.3
        assert (len(held.sessions.all()), ": 1 record;" in held.notes[0]) == (1, True)
        held.memory().remember("And tea.", kind=Kind.SEMANTIC)
    with role_memory(load(str(file)), env=env) as held:
        assert (len(held.memory().list()), [note for note in held.notes if "copied" in note]) == (2, [])
    file.write_text(texts[before], encoding="utf-8")
    with role_memory(load(str(file)), env=env) as held:
        assert len(held.memory().list()) == 1


def lancedb_role(folder, **memory):
    """A role whose memories have an index beside them."""
    file = folder / "indexed.yaml"
    said = json.dumps({"store_backend": "lancedb", "semantic": {"max_memories": 5_000}} | memory)
    file.write_text(f"name: indexed\nrole: You help.\nmodel: test\nmemory: {said}\n", encoding="utf-8")
    return load(str(file))


@pytest.mark.slow
def test_many_memories_get_an_index_that_is_written_anew_on_demand(env, tmp_path):
    """Beyond a thousand the folder has a table; if it is lost, ``reembed`` writes it again and says how far it is."""
    meant = lancedb_role(tmp_path)
    entries = json.dumps([{"content": f"Note number {number} on topic {number % 37}."} for number in range(1_200)])
    with role_memory(meant, env=env) as held:
        held.import_(entries)
        assert isinstance(held.store, LanceStore)
        assert held.store.count_indexed() > 1_000
        held.store.withdraw()
        assert held.store.count_indexed() == 0
        heard = []
        assert held.reembed(progress=lambda done, of: heard.append((done, of))).embedded == 0
        assert (held.store.count_indexed(), heard[-1]) == (1_200, (1_200, 1_200))
        assert held.memory().recall("Note number 777 on topic 0.")[0].text == "Note number 777 on topic 0."


def test_the_folder_of_a_lance_store_is_private(env, tmp_path):
    """Records lie beside the tables, and nobody else may look into the folder."""
    with role_memory(lancedb_role(tmp_path), env=env) as held:
        held.memory().remember("a fact", kind=Kind.SEMANTIC)
    folder = tmp_path / "data" / "memory" / "indexed.lance"
    assert (folder.stat().st_mode & 0o077, (folder / "records.db").exists()) == (0, True)


def test_somebody_elses_folder_is_not_started_afresh_in(env, tmp_path):
    """A store of the public implementation at that place is named, with the way to take it over."""
    (tmp_path / "data" / "memory" / "indexed.lance" / "memories.lance").mkdir(parents=True)
    with pytest.raises(StoreError, match="import --from lance"), role_memory(lancedb_role(tmp_path), env=env):
        pass


def test_without_the_extra_the_command_says_what_to_install(env, tmp_path):
    """One sentence and an exit code; nothing is made, and nothing copied from the store that there was."""
    meant = lancedb_role(tmp_path)
    plain = meant.replace(memory=meant.memory.replace(store_backend="sqlite"))
    with role_memory(plain, env=env) as held:
        held.memory().remember("a fact", kind=Kind.SEMANTIC)
    scripts_of_the_user(env["COMMONPLACE_HOME"])
    program = (
        "import sys; sys.modules['lancedb'] = None\nfrom commonplace.cli.main import run\n"
        f"sys.exit(run(['memory', 'import', {meant.file!r}, '-']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | env, input="[]", capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (6, "")
    assert hint("needs the extra `lancedb`", "lancedb") in done.stderr
    assert not (tmp_path / "data" / "memory" / "indexed.lance").exists()
