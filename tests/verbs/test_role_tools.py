"""The tools of a role: the formats of the document, letter by letter, and mistakes that a model can mend."""

from __future__ import annotations

import re

import pytest

from commonplace.agents import answer_call
from commonplace.engine.memory import Memory
from commonplace.model.queries import State
from commonplace.model.records import Channel, Kind
from commonplace.providers.local import LocalEmbedder
from commonplace.roles import role_tools
from commonplace.roles.dialect import KindSettings, MemorySettings, Role
from stands import rows

ID = "[0-9a-z]{20}"


@pytest.fixture
def held_by(store, clock):
    """The tools of an agent with these memory settings, in a store of every sort."""

    def held_by(**settings):
        role = Role(name="a", file="a", prompt="hi", model=None, memory=MemorySettings(**settings))
        binding = role.bind(Channel.AGENT, home="/data")
        return role_tools(Memory(store, binding, clock=clock, embedder=LocalEmbedder()))

    return held_by


@pytest.fixture
def call(held_by, clock):
    """Call a tool of an agent with the default settings; a second passes after each call."""
    held = held_by()

    def call(name, **arguments):
        answer = answer_call(held, name, arguments)
        clock.forward()
        return answer

    return call


def id_of(answer):
    """The id in a confirmation."""
    return re.search(f"id=({ID})", answer)[1]


def test_the_tools_are_those_of_the_kinds_that_are_on(held_by):
    """Those that write come and go with their kind; those that read are always there."""
    always = {"recall", "list_memories", "forget", "update", "replace"}
    off = KindSettings(enabled=False, keep=1)
    assert {tool.name for tool in held_by()} == always | {"remember", "learn_procedure", "record_episode"}
    assert {tool.name for tool in held_by(semantic=off)} == always | {"learn_procedure", "record_episode"}
    assert {tool.name for tool in held_by(procedural=off, episodic=off)} == always | {"remember"}
    assert {tool.name for tool in held_by(semantic=off, procedural=off, episodic=off)} == always


def test_every_tool_describes_itself_as_function_calling_wants_it(held_by):
    """Names, descriptions and schemas are plain JSON."""
    schemas = {tool.name: tool.schema() for tool in held_by()}
    assert schemas["recall"]["parameters"]["required"] == ["query"]
    assert list(schemas["recall"]["parameters"]["properties"])[:3] == ["query", "top_k", "memory_types"]
    assert list(schemas["remember"]["parameters"]["properties"]) == ["content", "category"]
    assert list(schemas["list_memories"]["parameters"]["properties"])[:3] == ["category", "limit", "memory_type"]
    assert all(schema["description"] for schema in schemas.values())


@pytest.mark.parametrize(
    ("tool", "said"),
    [("remember", "Remembered"), ("learn_procedure", "Learned procedure"), ("record_episode", "Recorded episode")],
)
def test_a_write_is_confirmed_with_its_id_and_its_category(call, tool, said):
    """The words are the document's."""
    assert re.fullmatch(rf"{said} \(id={ID}, category=general\)", call(tool, content="the sky is blue"))


@pytest.mark.parametrize(
    ("said", "kept"), [("UI Prefs!!", "ui_prefs"), ("__a--b__", "a_b"), ("!!", "general"), ("Ä", "general")]
)
def test_a_category_is_sanitised(call, said, kept):
    """Small letters and digits, one underscore for anything else."""
    assert call("remember", content="dark mode", category=said).endswith(f"category={kept})")


def test_recall_has_the_documents_format(call):
    """A header and the content, blocks between dashes; the score is the one that orders them."""
    call("remember", content="The user prefers dark mode.", category="preferences")
    call("record_episode", content="Switched the editor to dark mode today.", category="autonomous_run")
    answer = call("recall", query="The user prefers dark mode.")
    first, second = answer.split("\n\n---\n\n")
    assert re.fullmatch(
        r"\[Type: semantic \| Category: preferences \| Score: 0\.9\d\d \| 2026-01-01T12:00:00\+00:00\]\n"
        r"The user prefers dark mode\.",
        first,
    )
    assert re.fullmatch(
        r"\[Type: episodic \| Category: autonomous_run \| Score: 0\.\d{3} \| 2026-01-01T12:00:01\+00:00\]\n.*", second
    )


def test_recall_can_be_narrowed_to_types_and_to_a_number(call):
    """Only of the types that are named, at most so many; five if nothing is said."""
    for number in range(6):
        call("remember", content=f"deploy number {number} went to the staging server")
        call("learn_procedure", content=f"deploy step {number}: look at the staging server")
    assert call("recall", query="deploy staging").count("[Type:") == 5
    some = call("recall", query="deploy staging", top_k=3, memory_types=["procedural"])
    assert some.count("[Type: procedural") == some.count("[Type:") == 3


def test_nothing_yet_and_nothing_found_are_told_apart(call):
    """An empty store is not a question without an answer."""
    assert call("recall", query="x") == call("list_memories") == "No memories stored yet."
    call("remember", content="the sky is blue")
    assert call("list_memories", memory_type="episodic") == "No memories found."
    assert call("recall", query="sky", memory_types=["episodic"]) == "No relevant memories found."


def test_list_has_the_documents_format_newest_first(call):
    """One line each, whatever the content is."""
    call("remember", content="The user prefers\ndark mode.", category="preferences")
    call("record_episode", content="Deployed v2.1.", category="run")
    assert call("list_memories") == (
        "[episodic:run] (2026-01-01T12:00:01+00:00) Deployed v2.1.\n"
        "[semantic:preferences] (2026-01-01T12:00:00+00:00) The user prefers ⏎ dark mode."
    )
    assert call("list_memories", limit=1).startswith("[episodic:run]")
    assert call("list_memories", category="Preferences").startswith("[semantic:preferences]")
    assert re.match(f"#{ID} \\[episodic:run\\]", call("list_memories", show_ids=True))


def test_twenty_are_listed_unless_another_number_is_said(call):
    """The default limit is the document's."""
    for number in range(22):
        call("remember", content=f"fact {number}")
    assert len(call("list_memories").splitlines()) == 20


@rows(
    "tool, arguments, said",
    [
        (
            "recall",
            {"query": "x", "memory_types": ["facts"]},
            "each of memory_types must be one of semantic, episodic, procedural, not 'facts'",
        ),
        ("recall", {"query": "x", "memory_types": "semantic"}, "memory_types must be a list, not 'semantic'"),
        (
            "recall",
            {"query": "x", "memory_types": [3]},
            "each of memory_types must be one of semantic, episodic, procedural, not 3",
        ),
        ("recall", {"query": "x", "top_k": 0}, "top_k must be a whole number from 1 to 50, not 0"),
        ("recall", {"query": "x", "top_k": "many"}, "top_k must be a whole number from 1 to 50, not 'many'"),
        ("recall", {"query": "x", "top_k": True}, "top_k must be a whole number"),
        ("recall", {"query": 3}, "query must be a string, not 3"),
        ("recall", {}, "query is required"),
        ("recall", {"query": "x", "k": 3}, "recall takes no 'k'; it takes query, top_k, memory_types"),
        ("list_memories", {"memory_type": "x"}, "memory_type must be one of semantic, episodic, procedural, not 'x'"),
        ("list_memories", {"limit": -1}, "limit must be a whole number"),
        ("remember", {"content": " "}, "the content is blank"),
        ("remember", {"content": "x" * 20_000}, "the content has 20000 bytes; the limit is 16384"),
        ("remember", {"content": None}, "content is required"),
        ("forget", {"id": "nonsense!"}, "there is no record 'nonsense!'"),
        ("update", {"id": "0000000000"}, "update needs content or category"),
        ("replace", {"id": "0000000000", "content": "x"}, "there is no record '0000000000'"),
        ("replace", {"id": "0000000000"}, "content is required"),
        ("list_memories", {"metadata": "cron"}, "metadata must be an object, not 'cron'"),
        ("dream", {}, "there is no tool 'dream'; there are remember, "),
    ],
)
def test_a_mistake_is_a_sentence_that_a_model_can_act_on(call, tool, arguments, said):
    """Nothing that a model sends ends a run."""
    assert call(tool, **arguments).startswith(f"Error: {said}")


def test_arguments_may_come_as_json(held_by):
    """Function-calling APIs send text, and not always good text."""
    held = held_by()
    assert answer_call(held, "remember", '{"content": "a"}').startswith("Remembered (")
    assert answer_call(held, "remember", '{"content": ').startswith("Error: the arguments of remember are not JSON")
    assert answer_call(held, "remember", "[]") == "Error: the arguments of remember should be an object, not []"


def test_the_same_fact_is_kept_once(call):
    """Remembering it three times brings it back once."""
    ids = {id_of(call("remember", content="the user likes tea")) for _ in range(3)}
    assert len(ids) == 1
    assert call("recall", query="tea").count("[Type:") == 1


def test_each_kind_is_pruned_to_its_own_limit_oldest_first(held_by, clock):
    """Other kinds are not touched."""
    held = held_by(semantic=KindSettings(keep=2))
    answer_call(held, "record_episode", {"content": "an old episode"})
    for number in range(4):
        clock.forward()
        answer_call(held, "remember", {"content": f"fact {number}"})
    listed = answer_call(held, "list_memories", {})
    assert [line.rpartition(") ")[2] for line in listed.splitlines()] == ["fact 3", "fact 2", "an old episode"]


def test_a_memory_can_be_forgotten_by_its_id(call):
    """It is gone for good; with or without the mark before the id."""
    kept = id_of(call("remember", content="the user likes tea"))
    assert call("forget", id=f"#{kept}") == f"Forgot (id={kept})"
    assert call("list_memories") == "No memories stored yet."
    assert call("forget", id=kept) == f"Error: there is no record '{kept}'"


def test_a_memory_can_be_corrected_by_its_id(call, store):
    """The id stays, and so does the version that was there."""
    kept = id_of(call("remember", content="the user likes tea", category="taste"))
    assert call("update", id=kept, content="the user likes coffee") == f"Updated (id={kept}, category=taste)"
    assert call("update", id=kept, category="Drinks") == f"Updated (id={kept}, category=drinks)"
    assert call("list_memories").endswith("[semantic:drinks] (2026-01-01T12:00:00+00:00) the user likes coffee")
    assert (store.get(kept).version, store.get(kept).state(store.get(kept).updated_at)) == (3, State.LIVE)


def test_a_fact_can_take_the_place_of_one_that_holds_no_longer(call, store):
    """Only the new one is recalled and listed; the old one is kept, and leads to it."""
    old = id_of(call("remember", content="The user prefers dark mode.", category="preferences"))
    answer = call("replace", id=old, content="The user prefers light mode.")
    new = id_of(answer)
    assert answer == f"Remembered (id={new}, category=preferences) in place of (id={old})"
    assert "dark" not in call("recall", query="which mode does the user prefer?") + call("list_memories")
    assert (store.get(old).superseded_by, store.get(old).content) == (new, "The user prefers dark mode.")


@pytest.mark.parametrize(
    ("tool", "said"), [("learn_procedure", "Learned procedure"), ("record_episode", "Recorded episode")]
)
def test_what_takes_the_place_of_another_is_of_its_kind(call, tool, said):
    """A procedure is followed by a procedure; the category may be another."""
    old = id_of(call(tool, content="Deploy on Fridays."))
    answer = call("replace", id=f"#{old}", content="Never deploy on Fridays.", category="Policy!")
    assert re.fullmatch(rf"{said} \(id={ID}, category=policy\) in place of \(id={old}\)", answer)


def test_a_memory_is_replaced_once(call):
    """Who names one that was replaced, or says the same again, hears which one holds now."""
    old = id_of(call("remember", content="The office is in Kiel."))
    new = id_of(call("replace", id=old, content="The office is in Bremen."))
    assert call("replace", id=old, content="The office is in Ulm.") == (
        f"Error: '{old}' was replaced by '{new}' already; replace that one"
    )
    assert call("replace", id=new, content="The office is in Bremen.") == f"Error: '{new}' says that already"


def test_what_a_person_said_is_not_replaced_by_an_agent(call, store, clock):
    """The new one waits for a person beside the old one, and the answer says so."""
    role = Role(name="a", file="a", prompt="hi", model=None, memory=MemorySettings())
    person = Memory(store, role.bind(Channel.USER, home="/data"), clock=clock)
    kept = person.remember("I live in Kiel.", kind=Kind.SEMANTIC).record
    answer = call("replace", id=kept.id, content="The user lives in Bremen.")
    why = f"; it is trusted less than {kept.short}, so it is held for review and replaces nothing yet"
    assert re.fullmatch(rf"Remembered \(id={ID}, category=general\){why}", answer)
    assert call("list_memories").endswith(") I live in Kiel.")


def test_ids_can_be_asked_for_with_what_is_recalled(call):
    """Whoever wants to change a memory can search for it; without asking, the format is the document's."""
    kept = id_of(call("remember", content="The user prefers dark mode."))
    assert call("recall", query="dark mode", show_ids=True).startswith(f"#{kept} [Type: semantic | ")
    assert call("recall", query="dark mode").startswith("[Type: semantic | ")


def test_memories_can_be_listed_by_their_metadata(held_by, store, clock):
    """What a trigger brought is told from the rest, however old it is."""
    held = held_by()
    role = Role(name="a", file="a", prompt="hi", model=None, memory=MemorySettings())
    memory = Memory(store, role.bind(Channel.AGENT, home="/data"), clock=clock)
    for number, trigger in enumerate(["cron", "webhook", "cron"]):
        memory.remember(f"Run {number}.", kind=Kind.EPISODIC, metadata={"trigger_type": trigger})
        clock.forward()
    listed = answer_call(held, "list_memories", {"metadata": {"trigger_type": "cron"}})
    assert [line.rpartition(") ")[2] for line in listed.splitlines()] == ["Run 2.", "Run 0."]
    assert answer_call(held, "list_memories", {"metadata": {"trigger_type": "cron"}, "limit": 1}).endswith("Run 2.")
    assert answer_call(held, "list_memories", {"metadata": {"trigger_type": "bell"}}) == "No memories found."


def test_what_was_changed_on_the_way_is_told(call):
    """Control characters are taken out, and the model hears of it."""
    assert call("remember", content="a\x00b").endswith("category=general); 1 control characters were removed")


def test_a_secret_is_taken_out_and_the_model_is_told(call):
    """What is stored does not hold it."""
    answer = call("remember", content="the key is sk-proj-Zx9qLmN4vT7bR2wYp8KdJ3hF6gS1aQ5cE0uI")
    assert "a secret (" in answer
    assert "Zx9qLmN4vT7bR2wYp8KdJ3hF6gS1aQ5cE0uI" not in answer + call("list_memories")


def test_what_an_agent_writes_is_trusted_as_an_agents(call, store):
    """No tool can claim to be a person."""
    record = store.get(id_of(call("remember", content="the user likes tea")))
    assert (record.source.channel, record.kind) == (Channel.AGENT, Kind.SEMANTIC)
