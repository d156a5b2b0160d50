"""What a role remembers: which embedder finds it, how episodes become facts, and how it moves to another role."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from commonplace.agents import answer_call
from commonplace.model.changes import AdoptEmbedder
from commonplace.model.documents import DocumentKind
from commonplace.model.errors import (
    ConfigError,
    Conflict,
    DimensionMismatch,
    EmbeddingModelChanged,
    Forbidden,
    InvalidInput,
    ProviderError,
)
from commonplace.model.jobs import Job
from commonplace.model.ports import EmbedderIdentity, ModelAnswer
from commonplace.model.queries import DocumentFilter
from commonplace.model.records import Channel, Kind
from commonplace.roles import role_tools
from commonplace.roles.consolidate import JOB, LEASE, parse_answer
from commonplace.roles.dialect import KindSettings, MemorySettings, load
from commonplace.roles.embedders import check_embedder, embedder_for
from commonplace.roles.memory import consolidation_model, has_store, role_memory
from commonplace.roles.transfer import export_entries
from loopback import LoopbackServer
from stands import agree, rows, scripts_of_the_user


class Speaker:
    """A model that says what it is told to say, and keeps what it was asked."""

    name, window = "test:speaker", None

    def __init__(self, *answers):
        self.answers, self.prompts = list(answers), []

    def ask(self, system, prompt, *, max_tokens, effort="low"):
        """Say the next thing; an error is raised."""
        del system, max_tokens, effort
        self.prompts.append(prompt)
        said = self.answers.pop(0)
        if isinstance(said, BaseException):
            raise said
        return ModelAnswer(text=said, model=self.name)


class Lengths:
    """An embedder that says how long a text is; its name and dimensions are given."""

    def __init__(self, name="test:lengths", dimensions=4):
        self.identity = EmbedderIdentity(name=name, dimensions=dimensions)

    def embed(self, texts, *, query=False):
        """Point somewhere."""
        del query
        return [[1.0] + [0.0] * (self.identity.dimensions - 1) for _ in texts]


@pytest.fixture
def env(tmp_path):
    """A machine without any key."""
    return {"COMMONPLACE_HOME": str(tmp_path / "data"), "HOME": str(tmp_path)}


@pytest.fixture
def trusted(tmp_path):
    """The user trusts the folder of the roles, and has paired their key with this machine."""
    scripts_of_the_user(tmp_path / "data", "key_hosts: OWN_KEY@127.0.0.1")
    agree(tmp_path, tmp_path / "data")


@pytest.fixture
def role(tmp_path):
    """Read a role with this memory section and this model."""

    def role(memory="memory: {}", model="openai:gpt-4o-mini", name="assistant"):
        file = tmp_path / f"{name}.yaml"
        file.write_text(f"name: {name}\nrole: You help.\nmodel: {model}\n{memory}\n", encoding="utf-8")
        return load(str(file))

    return role


@pytest.fixture
def held(role, env, clock):
    """The memory of a role that says nothing special."""
    with role_memory(role(), env=env, clock=clock) as held:
        yield held


def embeddings(**said):
    """A memory section that names an embedder."""
    return "memory: " + json.dumps({"embeddings": said})


# Which embedder


@rows("memory, model, keys, name", [
        ("memory: {}", "openai:x", {"OPENAI_API_KEY": "k"}, "openai:text-embedding-3-small"),
        ("memory: {}", "anthropic:x", {"OPENAI_API_KEY": "k"}, "openai:text-embedding-3-small"),
        ("memory: {}", "google:x", {"GOOGLE_API_KEY": "k"}, "google:text-embedding-004"),
        ("memory: {}", "ollama:x", {}, "ollama:nomic-embed-text"),
        (embeddings(provider="google"), "openai:x", {"GOOGLE_API_KEY": "k"}, "google:text-embedding-004"),
        (embeddings(provider="local"), "openai:x", {"OPENAI_API_KEY": "k"}, "commonplace-static-1"),
        (embeddings(model="text-embedding-3-large"), "openai:x", {"OPENAI_API_KEY": "k"},
         "openai:text-embedding-3-large"),
        (embeddings(model="ollama:mxbai-embed-large"), "openai:x", {}, "ollama:mxbai-embed-large"),
        (embeddings(provider="google", model="gemini-embedding-001"), "openai:x", {"GOOGLE_API_KEY": "k"},
         "google:gemini-embedding-001"),
        (embeddings(provider="anthropic"), "ollama:x", {"OPENAI_API_KEY": "k"}, "openai:text-embedding-3-small"),
    ])  # fmt: skip
def test_the_embedder_is_the_models_then_the_providers_then_the_agents(role, memory, model, keys, name):
    """The order is the document's, and nothing has to be said when it can be followed."""
    chosen = embedder_for(role(memory, model), keys)
    assert (chosen.embedder.identity.name, chosen.notes) == (name, ())


@pytest.mark.usefixtures("trusted")
def test_a_custom_address_is_asked_in_openais_protocol(role, env):
    """The key comes from the variable that the role names."""
    with LoopbackServer() as server:
        memory = embeddings(provider="openai", model="own", base_url=server.base_url, api_key_env="OWN_KEY")
        with role_memory(role(memory), env=env | {"OWN_KEY": "k1"}) as held:
            answer_call(role_tools(held.memory()), "remember", {"content": "the sky is blue"})
    assert server.embedded[-1].texts == ["the sky is blue"]
    assert {request.headers["authorization"] for request in server.embedded} == {"Bearer k1"}


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("openai:x", "OPENAI_API_KEY is not set"),
        ("google:x", "GOOGLE_API_KEY is not set"),
        ("test", "the role names no other"),
        ("{provider: openai, name: x, base_url: 'http://127.0.0.1:1/v1'}", "the model is at an address of its own"),
    ],
)
def test_without_a_key_the_local_embedder_serves_and_says_so(role, model, reason):
    """It is a fallback, stated and not silent."""
    chosen = embedder_for(role(model=model), {})
    assert chosen.embedder.identity.name == "commonplace-static-1"
    [note] = chosen.notes
    assert note.startswith(f"memories are embedded by the local embedder: {reason}")


def test_an_embedder_that_a_role_names_is_not_replaced(role):
    """Without its key words alone find things, and that is said."""
    chosen = embedder_for(role(embeddings(provider="openai")), {})
    assert chosen.embedder.identity.name == "openai:text-embedding-3-small"
    assert chosen.notes == (
        "memories are found by their words alone: openai needs a key, and OPENAI_API_KEY is not set",
    )


def test_a_key_that_comes_later_does_not_break_a_store(role, env, clock):
    """A store keeps to its vectors until it is embedded anew; the way is told."""
    with role_memory(role(), env=env, clock=clock) as held:
        held.memory().remember("the sky is blue")
    with role_memory(role(), env=env | {"OPENAI_API_KEY": "k"}, clock=clock) as held:
        assert held.embedder.identity.name == "commonplace-static-1"
        assert "role reembed" in held.notes[0]


@pytest.mark.parametrize(
    ("model", "keys", "note"),
    [
        (
            "ollama:x",
            {"OPENAI_API_KEY": "k"},
            "the memory keeps to openai:text-embedding-3-small; `commonplace role re",
        ),
        ("anthropic:x", {"OPENAI_API_KEY": "k"}, None),
        ("openai:x", {}, "memories are found by their words alone: OPENAI_API_KEY is not set"),
        ("test", {"OPENAI_API_KEY": "k"}, None),
    ],
)
def test_another_model_of_the_agent_does_not_change_the_embedder_of_a_store(role, model, keys, note):
    """Who speaks is one thing, by what memories are found is another."""
    stored = EmbedderIdentity(name="openai:text-embedding-3-small", dimensions=1536)
    chosen = embedder_for(role(model=model), keys, stored)
    assert chosen.embedder.identity == stored
    assert [said.startswith(note) for said in chosen.notes] == ([True] if note else [])


def test_another_model_is_told_by_name_with_the_way_out(role, env, clock):
    """Vectors of two models are never mixed, also if they are of one length."""
    with role_memory(role(), env=env, clock=clock) as held:
        held.memory().remember("the sky is blue")
    other = role(embeddings(provider="openai", model="text-embedding-3-large"))
    with (
        pytest.raises(
            EmbeddingModelChanged, match=r"'commonplace-static-1', the embedder in use is 'openai:.*role reembed"
        ),
        role_memory(other, env=env | {"OPENAI_API_KEY": "k"}),
    ):
        pass
    with role_memory(other, env=env, embedded=False) as held:
        assert len(held.memory().list()) == 1


def test_another_length_is_told_by_name_with_the_way_out(held):
    """A model that changed under its name is noticed too."""
    held.store.apply([AdoptEmbedder(identity=EmbedderIdentity(name="m", dimensions=4))])
    with pytest.raises(DimensionMismatch, match="vectors of 4 dimensions, this one has 8; `commonplace role reembed"):
        check_embedder(held.role, held.store, Lengths("m", 8))


@pytest.mark.usefixtures("trusted")
def test_reembedding_is_the_way_out(role, env, clock):
    """After it the role opens with the embedder that it says, and everything is found."""
    with role_memory(role(), env=env, clock=clock) as held:
        held.memory().remember("the sky is blue")
    with LoopbackServer() as server:
        other = role(embeddings(provider="openai", model="own", base_url=server.base_url))
        with role_memory(other, env=env, clock=clock, anew=True) as held:
            assert held.reembed().embedded == 1
        with role_memory(other, env=env, clock=clock) as held:
            assert held.memory().recall("the sky is blue")[0].similarity == pytest.approx(1, abs=1e-3)


def test_an_embedder_that_cannot_be_is_a_mistake_of_the_role(role, env):
    """It is told with the file and the place."""
    with pytest.raises(
        ConfigError, match=r"assistant\.yaml: memory\.embeddings: the embedder 'local' takes no base_url"
    ):
        embedder_for(role(embeddings(provider="local", base_url="http://127.0.0.1:1")), env)


# The store


def test_asking_whether_there_is_a_store_makes_none(role, env):
    """Looking leaves nothing behind."""
    assert not has_store(role(), env=env)
    assert not os.path.exists(env["COMMONPLACE_HOME"])


def test_a_store_is_made_with_its_folders_for_nobody_else_to_read(role, env):
    """The folder is the owner's, and so is the file."""
    with role_memory(role("memory:\n  store_path: deep/er/own.db"), env=env) as held:
        held.memory().remember("the sky is blue")
    home = env["COMMONPLACE_HOME"]
    for path, mode in ((home, 0o700), (f"{home}/deep/er/own.db", 0o600)):
        assert os.stat(path).st_mode & 0o777 == mode


def test_sessions_alone_need_no_dimensions(held):
    """A store that only keeps conversations knows no embedder."""
    held.sessions.save("0123456789ab", [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "hi"}]}])
    assert held.store.embedder() is None


def test_two_roles_with_one_store_share_their_memories(role, env, clock):
    """What one remembers the other recalls; sessions stay apart."""
    shared = "memory:\n  store_path: memory/team.db"
    with role_memory(role(shared, name="writer"), env=env, clock=clock) as writer:
        writer.memory().remember("the release is on Friday")
        writer.sessions.save(
            "0123456789ab", [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "hi"}]}]
        )
    with role_memory(role(shared, name="reader"), env=env, clock=clock) as reader:
        assert "Friday" in answer_call(role_tools(reader.memory()), "recall", {"query": "when is the release?"})
        assert reader.sessions.all() == []


def test_clearing_episodes_keeps_what_was_learned_from_them(held):
    """Only what was asked for goes."""
    held.memory().remember("deployed on Friday", kind=Kind.EPISODIC)
    held.consolidate(Speaker("fact: deploys are on Fridays [1]"))
    held.clear(frozenset({Kind.EPISODIC}))
    assert [record.content for record in held.memory().list()] == ["deploys are on Fridays"]


# Consolidation


@pytest.fixture
def episodes(held, clock):
    """Record so many episodes, a second apart."""

    def episodes(count):
        made = []
        for number in range(count):
            made.append(held.memory().remember(f"episode {number}", category="run", kind=Kind.EPISODIC).record)
            clock.forward()
        return made

    return episodes


def pending(held):
    """How many episodes wait."""
    return sum(record.consolidated_at is None for record in held.memory().list(kinds=[Kind.EPISODIC], limit=1000))


def test_facts_are_kept_with_their_source_and_the_episodes_marked(held, episodes):
    """A fact leads back to what it comes from."""
    first, second, _ = episodes(3)
    done = held.consolidate(Speaker("preference: The user likes tea [1, 2]\nfact: The ratio is 3:1: always"))
    assert (done.episodes, done.created, done.unread) == (3, 2, ())
    facts = {record.content: record for record in held.memory().list(kinds=[Kind.SEMANTIC])}
    assert facts["The user likes tea"].source.parents == (first.id, second.id)
    assert len(facts["The ratio is 3:1: always"].source.parents) == 3
    assert {record.category for record in facts.values()} == {"preference", "fact"}
    assert all(record.metadata == {"source": "consolidation"} for record in facts.values())
    assert pending(held) == 0


def test_episodes_are_shown_as_the_document_says_oldest_first(held, episodes):
    """At most as many as the role says, the others the next time."""
    episodes(25)
    model = Speaker("fact: a", "fact: b")
    assert [held.consolidate(model).episodes, held.consolidate(model).episodes] == [20, 5]
    assert "- [run] (2026-01-01T12:00:00+00:00) episode 0 #1\n" in model.prompts[0]
    assert "episode 20 " not in model.prompts[0]
    assert "episode 20 " in model.prompts[1]
    assert "- fact: a" in model.prompts[1].partition("Episodes:")[0]


@pytest.mark.parametrize("answer", ["", "\n\n", "There is nothing worth keeping here."])
def test_a_batch_without_a_fact_is_marked_so_that_the_queue_moves_on(held, episodes, answer):
    """The same episodes are not sent again for ever."""
    episodes(25)
    model = Speaker(answer, "fact: something")
    assert held.consolidate(model).created == 0
    assert pending(held) == 5
    held.consolidate(model)
    assert "episode 0 " not in model.prompts[1]


@rows(
    "line, fact",
    [
        ("fact: a", ("fact", "a")),
        ("- bullet: a", ("bullet", "a")),
        ("2. fact1: a", ("fact1", "a")),
        ("* **User_Pref**: a", ("user_pref", "a")),
        ("multi word: a: b", ("multi_word", "a: b")),
        ("PATTERN: see [5]", ("pattern", "see [5]")),
        ("fact:", None),
        (": a", None),
        ("Here is what I found in the episodes: three", None),
        ("no colon", None),
    ],
)
def test_lines_are_read_as_models_write_them(line, fact):
    """Bullets, numbers, capitals and underscores are no reason to lose a fact; prose is none."""
    facts, unread = parse_answer(line, 2)
    assert [(one.category, one.content) for one in facts] == ([fact] if fact else [])
    assert len(unread) == (0 if fact else 1)


def test_a_model_that_fails_marks_nothing_and_can_be_asked_again(held, episodes):
    """An error is an error, however often it comes."""
    episodes(2)
    model = Speaker(*[ProviderError("no answer")] * 4, "fact: a")
    for _ in range(4):
        with pytest.raises(ProviderError, match="no answer"):
            held.consolidate(model)
    assert pending(held) == 2
    assert held.consolidate(model).created == 1


def test_an_interrupted_consolidation_can_be_tried_again_at_once(held, episodes):
    """Ctrl-C gives the work back."""
    episodes(1)
    model = Speaker(KeyboardInterrupt(), "fact: a")
    with pytest.raises(KeyboardInterrupt):
        held.consolidate(model)
    assert held.consolidate(model).created == 1


def test_a_known_fact_is_not_kept_twice(held, episodes):
    """The same words again are counted as known."""
    held.memory().remember("The user likes tea", category="preference")
    episodes(1)
    done = held.consolidate(Speaker("preference: The user likes tea"))
    assert (done.created, done.known) == (0, 1)


def test_facts_are_pruned_to_the_limit_as_well(role, env, clock):
    """Consolidation cannot fill a store beyond what the role allows."""
    with role_memory(role("memory:\n  semantic:\n    max_memories: 2"), env=env, clock=clock) as held:
        held.memory().remember("it rained", kind=Kind.EPISODIC)
        held.consolidate(Speaker("fact: a\nfact: b\nfact: c"))
        assert len(held.memory().list(kinds=[Kind.SEMANTIC])) == 2


def test_two_processes_do_not_consolidate_at_once(held, episodes, clock):
    """The second one is told, and nothing is done twice."""
    episodes(1)
    held.store.claim(Job(scope=held.scope, kind=JOB, key=JOB, watermark=1), lease=LEASE, now=clock())
    with pytest.raises(Conflict, match="running elsewhere"):
        held.consolidate(Speaker("fact: a"))
    clock.forward(LEASE + timedelta(seconds=1))
    assert held.consolidate(Speaker("fact: a")).created == 1


def test_without_episodes_nobody_is_asked_and_no_key_is_needed(held):
    """There is nothing to do, which is no failure."""
    assert held.consolidate().episodes == 0


def test_facts_that_have_no_place_are_refused_before_anybody_is_asked(role, env, clock):
    """Semantic memory that is off cannot take facts."""
    with role_memory(role("memory:\n  semantic:\n    enabled: false"), env=env, clock=clock) as held:
        held.memory().remember("it rained", kind=Kind.EPISODIC)
        with pytest.raises(Forbidden, match="semantic memory is switched off"):
            held.consolidate(Speaker())


@pytest.mark.usefixtures("trusted")
def test_the_roles_own_endpoint_is_asked_with_its_own_key(role, env, clock):
    """Consolidation works wherever the agent does."""
    with LoopbackServer(answers=["fact: the sky is blue"]) as server:
        model = json.dumps({"provider": "openai", "name": "own", "base_url": server.base_url, "api_key_env": "OWN_KEY"})
        with role_memory(role(model=model), env=env | {"OWN_KEY": "k1"}, clock=clock) as held:
            held.memory().remember("it was sunny", kind=Kind.EPISODIC)
            assert held.consolidate().created == 1
    [chat] = server.chats
    assert (chat.body["model"], chat.headers["authorization"]) == ("own", "Bearer k1")
    assert "it was sunny #1" in chat.prompt


@pytest.mark.parametrize(
    ("model", "override", "spec"),
    [
        ("openai:a", "b", "openai:b"),
        ("openai:a", "openai:b", "openai:b"),
        ("openai:a", "ollama:b", "ollama:b"),
        ("{provider: openai, name: a, base_url: 'http://127.0.0.1:1'}", "org/b:latest", "openai:org/b:latest"),
    ],
)
def test_another_model_may_consolidate(role, model, override, spec):
    """At the role's own address it is a name there."""
    found = consolidation_model(role(f"memory:\n  consolidation:\n    model_override: {override}", model))
    assert found.spec == spec
    assert bool(found.base_url) == ("base_url" in model)


# Moving


@pytest.mark.usefixtures("trusted")
def test_an_export_moves_between_roles_with_different_embedders(role, env, held, episodes):
    """Content, dates, categories and what was consolidated come along; vectors are made anew."""
    episodes(1)
    held.consolidate(Speaker("preference: The user likes tea"))
    text = json.dumps(export_entries(held.store, held.scope, now=held.clock()))
    with LoopbackServer() as server:
        other = role(embeddings(model="own", base_url=server.base_url), name="other")
        with role_memory(other, env=env, clock=held.clock) as into:
            assert into.import_(text).added == 2
            assert pending(into) == 0
            fact, episode = into.memory().list()
            assert (episode.content, episode.created_at) == ("episode 0", datetime(2026, 1, 1, 12, tzinfo=UTC))
            assert fact.metadata == {"source": "consolidation"}
            assert into.memory().recall("The user likes tea")[0].similarity == pytest.approx(1, abs=1e-3)
    assert server.embedded[1].texts == ["The user likes tea", "episode 0"]


def test_an_import_again_changes_nothing(held):
    """What is said already stays as it is."""
    text = json.dumps([{"content": "a"}, {"content": "b", "memory_type": "procedural"}])
    assert held.import_(text).added == 2
    again = held.import_(text)
    assert (again.added, again.duplicates) == (0, 2)


def test_an_import_is_embedded_in_batches_with_progress(role, env):
    """Fifty texts at a time."""
    told = []
    text = json.dumps([{"content": f"fact {n}"} for n in range(120)])
    with role_memory(role(), env=env) as held:
        held.import_(text, progress=lambda *how: told.append(how))
    assert told == [(120, 120), (50, 120), (100, 120), (120, 120)]


@rows(
    "records, said",
    [
        ({}, "Expected a JSON array of memory objects."),
        ([{"content": "fine"}, "text"], "Record 1: expected an object, not 'text'"),
        (
            [{"content": "fine"}, {"content": "x", "memory_type": "dream"}],
            "Record 1: memory_type must be one of episodic, semantic, procedural, not 'dream'",
        ),
        ([{"content": 3}], "Record 0: content must be a string, not 3"),
        (
            [{"content": "fine"}, {"content": "x", "created_at": "not a date"}],
            "Record 1: created_at must be a date such as",
        ),
        (
            [{"content": "x", "metadata": []}, {"content": "x", "metadata": [1]}],
            "Record 1: metadata must be an object, not [1]",
        ),
        ([{"content": "fine"}, {"content": "x" * 20_000}], "Record 1: the content has 20000 bytes"),
    ],
)
def test_a_bad_record_is_named_and_nothing_is_kept(held, records, said):
    """The whole file is checked before anything is embedded or kept."""
    with pytest.raises(InvalidInput, match=f"^{re.escape(said)}"):
        held.import_(json.dumps(records))
    assert held.memory().list() == []


def test_blank_entries_are_skipped_and_the_rest_made_plain(held, clock):
    """Whitespace is nothing, a category is sanitised, a date to come is today."""
    records = [{"content": " \n"}, {"content": "x", "category": "UI Prefs!!", "created_at": "2999-01-01"}, {}]
    assert held.import_(json.dumps(records)).blank == 2
    [record] = held.memory().list()
    assert (record.category, record.created_at) == ("ui_prefs", clock())


def test_an_import_keeps_to_the_limits_of_the_role(role, env, clock):
    """The oldest go, and their number is told."""
    old = [{"content": f"fact {n}", "created_at": f"2025-01-0{n}T00:00:00+00:00"} for n in range(1, 6)]
    with role_memory(role("memory:\n  semantic:\n    max_memories: 3"), env=env, clock=clock) as held:
        assert held.import_(json.dumps(old)).evicted == 2
        assert [record.content for record in held.memory().list()] == ["fact 5", "fact 4", "fact 3"]


def test_an_embedder_that_fails_does_not_lose_an_import(role, env):
    """The memories are there, found by their words, and it is said why they have no vectors."""
    with role_memory(role(embeddings(provider="openai")), env=env) as held:
        done = held.import_(json.dumps([{"content": "the sky is blue"}]))
        assert (done.added, "OPENAI_API_KEY" in done.unembedded) == (1, True)
        assert held.memory().recall("blue sky")[0].record.content == "the sky is blue"


def test_four_threads_write_one_memory_without_losing_anything(held):
    """Frameworks call tools from threads of their own."""
    offered = role_tools(held.memory())

    def write(who):
        return [answer_call(offered, "remember", {"content": f"{who} fact {number}"}) for number in range(25)]

    with ThreadPoolExecutor(4) as pool:
        said = [answer for answers in pool.map(write, "abcd") for answer in answers]
    assert all(answer.startswith("Remembered (id=") for answer in said)
    assert len(set(said)) == len(held.memory().list(limit=1000)) == 100


WRITER = """\
import sys
from commonplace.roles.memory import role_memory
from commonplace.roles.dialect import load
with role_memory(load(sys.argv[1]), env={"COMMONPLACE_HOME": sys.argv[2]}) as held:
    for number in range(25):
        held.memory().remember(f"{sys.argv[3]} fact {number}")
"""


def test_four_processes_write_one_store_without_losing_anything(role, env):
    """Every memory has an id of its own, also when the store is made by all of them at once."""
    writer = [sys.executable, "-c", WRITER, role().file, env["COMMONPLACE_HOME"]]
    started = [subprocess.Popen([*writer, str(one)]) for one in range(4)]
    assert [process.wait(timeout=60) for process in started] == [0, 0, 0, 0]
    with role_memory(role(), env=env) as held:
        assert len({record.id for record in held.memory().list(limit=1000)}) == 100


def test_a_session_is_one_document_of_the_roles_scope(held):
    """It is saved in place of what was saved of it before, and has no chunks to be recalled by."""
    for words in ("hi", "hi again"):
        message = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": words}]}
        held.sessions.save("0123456789ab", [message])
    [document] = held.store.documents(DocumentFilter(scopes=frozenset({held.scope})), limit=9)
    assert (document.kind, document.name, document.metadata["agent"]) == (
        DocumentKind.SESSION,
        "0123456789ab",
        "assistant",
    )


def test_a_shared_limit_counts_for_everyone(role, env):
    """What a role says of its limit is in its binding."""
    own = role().replace(memory=MemorySettings(semantic=KindSettings(keep=1)))
    with role_memory(own, env=env) as held:
        held.memory().remember("a")
        held.memory(Channel.USER).remember("b")
        assert len(held.memory().list()) == 1
