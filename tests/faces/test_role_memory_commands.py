"""`commonplace memory ... ROLE` and `commonplace init --template`: every option, message and exit code."""

from __future__ import annotations

import json
import re

import pytest

from commonplace.model.records import Kind
from commonplace.roles.dialect import load
from commonplace.roles.memory import role_memory
from stands import agree, rows

ROLE = "name: assistant\nrole: You help.\nmodel: openai:gpt-4o-mini\n"
USER = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "hi"}]}


@pytest.fixture
def outside(outside, monkeypatch):
    """A machine without keys."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return outside


@pytest.fixture
def role(outside):
    """A role.yaml in the working directory, with a memory that says nothing special."""

    def role(memory="memory: {}\n", file="role.yaml", text=ROLE):
        (outside.folder / "work" / file).write_text(text + memory, encoding="utf-8")
        return file

    return role


@pytest.fixture
def filled(role):
    """A role that remembers one thing of each kind, and two sessions, one of another agent."""
    file = role()
    with role_memory(load(file)) as held:
        memory = held.memory()
        memory.remember("The user prefers dark mode.", category="preferences")
        memory.remember("Deployed v2.1 to staging.", category="autonomous_run", kind=Kind.EPISODIC)
        memory.remember("Run the tests before deploying.", category="deployment", kind=Kind.PROCEDURAL)
        held.sessions.save("0123456789ab", [USER])
        held.sessions.agent = "somebody"
        held.sessions.save("ba9876543210", [USER])
    return file


def left(file):
    """What is there of a role: the kinds of its memories, and how many sessions it and the other agent have."""
    with role_memory(load(file), embedded=False) as held:
        own = len(held.sessions.all())
        held.sessions.agent = "somebody"
        return {record.kind.value for record in held.memory().list()}, own, len(held.sessions.all())


# list


def test_list_shows_type_category_date_and_the_beginning(outside, filled):
    """Newest first; the type is there to be read."""
    *lines, last = outside.ok("memory", "list", filled).lines
    assert [re.sub(r"^#[0-9a-z]+ ", "", re.sub(r"\(.*?\)", "(when)", line)) for line in lines] == [
        "[procedural:deployment] (when) Run the tests before deploying.",
        "[episodic:autonomous_run] (when) Deployed v2.1 to staging.",
        "[semantic:preferences] (when) The user prefers dark mode.",
    ]
    assert last == "3 memories shown."


def test_list_can_be_narrowed(outside, filled):
    """By type, by category, by number."""
    assert "dark mode" in outside.ok("memory", "list", filled, "--type", "semantic").lines[0]
    assert "Run the tests" in outside.ok("memory", "list", filled, "--category", "Deployment").lines[0]
    assert outside.ok("memory", "list", filled, "--limit", "1").lines[-1] == "1 memories shown."
    assert outside.ok("memory", "list", filled, "--category", "none").out == "No memories found.\n"
    assert len(outside.ok("memory", "list", filled, "--json").json["memories"]) == 3


def test_list_shows_a_hundred_characters_in_one_line(outside, role):
    """Long contents are cut, line ends shown."""
    file = role()
    with role_memory(load(file)) as held:
        held.memory().remember("a\n" + "b" * 300)
    assert outside.ok("memory", "list", file).lines[0].endswith(") a ⏎ " + "b" * 96)


def test_list_of_a_role_that_never_remembered_makes_no_store(outside, role):
    """Looking leaves nothing behind."""
    assert outside.ok("memory", "list", role()).out == "No memories found.\n"
    assert [file.name for file in outside.home.iterdir()] == ["config.yaml"]  # the test's own


def test_a_type_that_there_is_not_is_refused(outside, filled):
    """The words and the exit code are the document's."""
    for command in (["list"], ["clear", "--force"]):
        done = outside("memory", command[0], filled, *command[1:], "--type", "x")
        assert (done.code, done.err) == (1, "commonplace: Invalid type 'x'. Use: episodic, semantic, procedural\n")


# clear


@pytest.mark.parametrize(
    ("options", "question", "after"),
    [
        ([], "all memory data", (set(), 0, 1)),
        (["--what", "all"], "all memory data", (set(), 0, 1)),
        (["--what", "sessions"], "sessions", ({"semantic", "episodic", "procedural"}, 0, 1)),
        (["--what", "memories"], "memories", (set(), 1, 1)),
        (["--type", "semantic"], "semantic memories", ({"episodic", "procedural"}, 1, 1)),
        (["--what", "memories", "--type", "episodic"], "episodic memories", ({"semantic", "procedural"}, 1, 1)),
    ],
)
def test_clear_touches_only_what_was_asked(outside, filled, options, question, after):
    """It asks in the document's words; another agent's sessions stay in any case."""
    done = outside.ok("memory", "clear", filled, *options, stdin=b"y\n")
    assert done.err.startswith(f"Clear {question} for assistant? [y/N]")
    assert done.out.endswith("Cleared memory for assistant.\n")
    assert left(filled) == after


def test_clear_that_is_declined_changes_nothing(outside, filled):
    """No is an answer, not a failure."""
    done = outside.ok("memory", "clear", filled, stdin=b"n\n")
    assert done.out.endswith("Aborted.\n")
    assert left(filled) == ({"semantic", "episodic", "procedural"}, 1, 1)


def test_clear_where_nobody_answers_changes_nothing(outside, filled):
    """Nothing is guessed; the way is told."""
    done = outside("memory", "clear", filled)
    assert (done.code, "There is no terminal to answer on; --force confirms" in done.err) == (2, True)
    assert left(filled)[0]


def test_clear_with_force_does_not_ask(outside, filled):
    """Scripts say so beforehand."""
    done = outside.ok("memory", "clear", filled, "--force")
    assert (done.out, done.err) == ("Cleared memory for assistant.\n", "")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--what", "sessions", "--type", "semantic"], "--type cannot be combined with --what sessions"),
        (["--what", "everything"], "Invalid --what 'everything'. Use: sessions, memories, all"),
    ],
)
def test_clear_refuses_what_makes_no_sense(outside, filled, options, said):
    """Nothing is cleared then."""
    done = outside("memory", "clear", filled, "--force", *options)
    assert (done.code, done.err) == (1, f"commonplace: {said}\n")
    assert left(filled) == ({"semantic", "episodic", "procedural"}, 1, 1)


def test_clear_without_a_store_says_so(outside, role):
    """There is nothing to ask about."""
    assert outside.ok("memory", "clear", role()).out == "No memory store found.\n"


def test_clear_without_a_role_is_the_projects(cli):
    """Options of the one are refused for the other."""
    assert "Memory data cleared" in cli.ok("memory", "clear", "--yes").out
    done = cli("memory", "clear", "--type", "semantic")
    assert (done.code, "need a ROLE" in done.err) == (2, True)


# export and import


def test_export_has_the_documents_shape(outside, filled):
    """An array, newest first, with these keys in this order."""
    assert outside.ok("memory", "export", filled).out == "Exported 3 memories to memories.json.\n"
    written = (outside.folder / "work" / "memories.json").read_text(encoding="utf-8")
    entries = json.loads(written)
    assert list(entries[0]) == ["id", "content", "category", "created_at", "memory_type", "metadata"]
    assert [entry["memory_type"] for entry in entries] == ["procedural", "episodic", "semantic"]
    assert entries[0]["metadata"] is None
    assert written == json.dumps(entries, ensure_ascii=False, indent=2) + "\n"


def test_export_of_nothing_writes_no_file(outside, role):
    """The message is the document's."""
    assert outside.ok("memory", "export", role(), "-o", "own.json").out == "No memory store found.\n"
    assert not (outside.folder / "work" / "own.json").exists()


def test_an_export_moves_to_another_role_and_twice_is_as_good_as_once(outside, filled, role):
    """The round trip of the document."""
    other = role(file="other.yaml", text=ROLE.replace("assistant", "other"))
    outside.ok("memory", "export", filled, "--output", "mem.json")
    assert outside.ok("memory", "import", other, "mem.json").out == "Imported 3 memories into other.\n"
    assert outside.ok("memory", "import", other, "mem.json").out.startswith("Imported 0 memories into other. 3 known")
    assert outside.ok("memory", "list", other).lines[-1] == "3 memories shown."


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "Expected a JSON array of memory objects."),
        ('[{"content": "a"}, 3]', "Record 1: expected an object, not 3"),
        (
            '[{"content": "a"}, {"content": "b", "memory_type": "x"}]',
            "Record 1: memory_type must be one of episodic, semantic, procedural, not 'x'",
        ),
        ("[", "the file: not JSON"),
    ],
)
def test_an_import_that_cannot_be_read_keeps_nothing(outside, role, text, said):
    """One sentence, exit code 1."""
    file = role()
    done = outside("memory", "import", file, "-", stdin=text.encode())
    assert (done.code, said in done.err) == (1, True)
    assert outside.ok("memory", "list", file).out == "No memories found.\n"


def test_an_import_says_which_embedder_serves(outside, role):
    """The fallback is told once."""
    done = outside.ok("memory", "import", role(), "-", stdin=b'[{"content": "a"}]')
    assert done.err == "commonplace: memories are embedded by the local embedder: OPENAI_API_KEY is not set\n"


def test_the_environment_beside_the_role_is_read_before_embedding(outside, role):
    """A key in it is found; here it leads to a variable that a custom address needs."""
    agree(outside.folder / "work")
    file = role("memory:\n  embeddings: {model: m, base_url: 'http://127.0.0.1:9/v1', api_key_env: OWN_KEY}\n")
    without = outside("memory", "import", file, "-", stdin=b"[]")
    (outside.folder / "work" / ".env").write_text("OWN_KEY=k1\n")
    assert "OWN_KEY is not set" in without.err
    assert "OWN_KEY is not set" not in outside("memory", "import", file, "-", stdin=b"[]").err


def test_a_file_that_is_not_there_is_told_as_such(outside, role):
    """No traceback for a typing mistake."""
    done = outside("memory", "import", role(), "none.json")
    assert (done.code, done.err) == (2, "commonplace: 'none.json' cannot be read: No such file or directory\n")


# consolidate and reembed


def test_consolidate_without_episodes_needs_no_key(outside, role):
    """There is nothing to do, with a store and without."""
    file = role()
    assert outside.ok("memory", "consolidate", file).out == "No episodic memories to consolidate.\n"
    outside.ok("memory", "import", file, "-", stdin=b'[{"content": "a"}]')
    assert outside.ok("memory", "consolidate", file).out == "No episodic memories to consolidate.\n"


def test_consolidate_that_cannot_ask_anybody_fails_honestly(outside, filled):
    """A missing key is one sentence and an exit code, never `nothing to do`."""
    done = outside("memory", "consolidate", filled)
    assert (done.code, done.out) == (6, "")
    assert "needs a key: set the environment variable OPENAI_API_KEY" in done.err


def test_another_embedder_is_refused_until_the_role_is_embedded_anew(outside, filled, role):
    """The error names the way out, and the way works."""
    assert outside.ok("memory", "list", filled).lines[-1] == "3 memories shown."
    changed = role("memory:\n  embeddings: {provider: openai}\n")
    done = outside("memory", "import", changed, "-", stdin=b"[]")
    assert (done.code, "commonplace role reembed role.yaml" in done.err) == (5, True)
    assert outside.ok("memory", "list", changed).lines[-1] == "3 memories shown."
    back = role()
    assert "of assistant with commonplace-static-1" in outside.ok("memory", "reembed", back).out


# Roles that cannot be used


@rows("command", [["list"], ["clear"], ["export"], ["import", "m.json"], ["consolidate"], ["reembed"]])
def test_a_role_without_a_memory_section_gets_a_hint(outside, role, command):
    """Every command says the same, with exit code 1."""
    done = outside("memory", command[0], role(""), *command[1:])
    assert (done.code, done.out) == (1, "")
    assert "memory: is missing, so this role has no memory; add `memory:`" in done.err


def test_a_role_that_cannot_be_followed_is_a_mistake_of_its_file(outside, role):
    """File, place, reason, and the exit code of settings."""
    done = outside("memory", "list", role("memory:\n  max_memories: 5\n"))
    assert (done.code, "role.yaml: memory.max_memories: is now `semantic.max_memories`" in done.err) == (5, True)


def test_a_backend_without_its_address_is_one_sentence(outside, role):
    """PostgreSQL is nowhere by default."""
    done = outside("memory", "list", role("memory:\n  store_backend: postgres\n"))
    assert (done.code, "should be the address of a PostgreSQL database" in done.err) == (5, True)


def test_the_memory_of_an_agent_without_a_file_has_a_name(outside):
    """Whoever runs without a role.yaml can still look, move and clear."""
    outside.ok("memory", "import", "ephemeral", "-", stdin=b'[{"content": "the sky is blue"}]')
    assert outside.ok("memory", "list", "ephemeral").lines[-1] == "1 memories shown."
    assert (outside.home / "memory" / "ephemeral.db").exists()
    assert outside.ok("memory", "clear", "ephemeral", "--force").out == "Cleared memory for ephemeral.\n"


# init --template


def test_init_writes_a_role_that_can_be_used_at_once(outside):
    """It has a memory, and a prompt that knows its tools."""
    done = outside.ok("init", "--name", "assistant", "--template", "memory")
    assert done.out.startswith("Made role.yaml for assistant")
    role = load("role.yaml")
    assert (role.name, role.model.spec, len(role.memory.kinds)) == ("assistant", "openai:gpt-4o-mini", 3)
    assert all(tool in role.prompt for tool in ("remember()", "recall()", "list_memories()"))
    assert outside.ok("memory", "list", "role.yaml").out == "No memories found.\n"
    assert not (outside.folder / "work" / ".commonplace").exists()


def test_init_takes_another_model(outside):
    """Whoever has no key of OpenAI says so."""
    outside.ok("init", "--name", "a", "--template", "memory", "--model", "ollama:llama3:8b", "--json")
    assert load("role.yaml").model.spec == "ollama:llama3:8b"


@rows(
    "options, said",
    [
        (["--name", "a"], "there is no template None; --template takes memory"),
        (["--name", "a", "--template", "x"], "there is no template 'x'"),
        (["--template", "memory"], "an agent needs a name"),
        (["--name", "../a", "--template", "memory"], "metadata.name: should be letters"),
        (["--name", "a", "--template", "memory", "--model", "gpt"], "spec.model.provider: should be one of"),
    ],
)
def test_init_refuses_what_would_not_run(outside, options, said):
    """Nothing is written then."""
    done = outside("init", *options)
    assert (done.code, said in done.err) == (2, True)
    assert not (outside.folder / "work" / "role.yaml").exists()


def test_init_leaves_a_role_that_is_there(outside, role):
    """A person's file is not written over."""
    file = role()
    assert outside("init", "--name", "a", "--template", "memory").code == 2
    assert load(file).name == "assistant"
