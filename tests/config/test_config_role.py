"""role.yaml: what it may say, what it means if it says nothing, and how a mistake is told."""

from __future__ import annotations

import os

import pytest

from commonplace.model.errors import ConfigError
from commonplace.model.records import Channel, Kind
from commonplace.roles.dialect import (
    CronTrigger,
    FileWatchTrigger,
    MemorySettings,
    SharedMemory,
    WebhookTrigger,
    ephemeral,
    load,
    model_settings,
)
from commonplace.roles.operator import environment
from stands import rows

DOCUMENT = """\
apiVersion: initrunner/v1
kind: Agent
metadata:
  name: assistant
  description: Agent with rich memory
spec:
  role: |
    You are a helpful assistant with long-term memory.
  model:
    provider: openai
    name: gpt-4o-mini
  memory:
    max_sessions: 10
    max_resume_messages: 20
    semantic:
      max_memories: 1000
    episodic:
      max_episodes: 500
    procedural:
      max_procedures: 100
    consolidation:
      enabled: true
      interval: after_session
"""
FLAT = "name: assistant\nrole: You help.\nmodel: openai:gpt-4o-mini\n"


@pytest.fixture
def role(tmp_path):
    """Read a role from a file with this text; flat unless it has a spec."""

    def role(text):
        file = tmp_path / "role.yaml"
        file.write_text(text, encoding="utf-8")
        return load(str(file))

    return role


@pytest.fixture
def refused(role, tmp_path):
    """What is said of a role that cannot be followed, without the file's name before it."""

    def refused(text):
        with pytest.raises(ConfigError) as caught:
            role(text)
        file = f"{tmp_path / 'role.yaml'}: "
        assert str(caught.value).startswith(file)
        return str(caught.value).removeprefix(file)

    return refused


def test_the_documents_own_role_is_read(role):
    """The quick start means what it says."""
    read = role(DOCUMENT)
    assert (read.name, read.description) == ("assistant", "Agent with rich memory")
    assert read.prompt == "You are a helpful assistant with long-term memory.\n"
    assert read.model.spec == "openai:gpt-4o-mini"
    assert read.memory == MemorySettings()


def test_the_flat_form_means_the_same(role):
    """Without an envelope the keys of metadata and spec stand side by side."""
    flat = role(FLAT + "memory:\n  semantic:\n    max_memories: 1000\n")
    assert (flat.name, flat.model.spec, flat.memory) == ("assistant", "openai:gpt-4o-mini", MemorySettings())


def test_one_nested_key_enables_everything(role):
    """The minimal section has every default of the document."""
    memory = role(FLAT + "memory:\n  semantic:\n    max_memories: 7\n").memory
    assert {kind: settings.keep for kind, settings in memory.kinds.items()} == {
        Kind.SEMANTIC: 7,
        Kind.EPISODIC: 500,
        Kind.PROCEDURAL: 100,
    }
    assert (memory.max_sessions, memory.max_resume_messages, memory.store_backend) == (10, 20, "sqlite")
    assert (memory.consolidation.enabled, memory.consolidation.interval) == (True, "after_session")
    assert (memory.consolidation.max_episodes_per_run, memory.consolidation.model_override) == (20, None)
    assert not memory.embeddings.is_set


@rows(
    "section, said",
    [
        ("memory:\n  max_session: 3\n", "memory.max_session: unknown key; valid keys: max_sessions, "),
        (
            "memory:\n  semantic:\n    most: 3\n",
            "memory.semantic.most: unknown key; valid keys: enabled, max_memories",
        ),
        ("memory:\n  max_sessions: 0\n", "memory.max_sessions: should be between 1 and "),
        ("memory:\n  max_sessions: many\n", "memory.max_sessions: should be a whole number, not 'many'"),
        ("memory:\n  episodic:\n    enabled: maybe\n", "memory.episodic.enabled: should be true or false, not 'maybe'"),
        ("memory:\n  semantic: 5\n", "memory.semantic: should be a mapping with enabled, max_memories, not 5"),
        ("memory: yes please\n", "memory: should be a mapping with max_sessions, "),
        ("memory:\n  store_backend: redis\n", "memory.store_backend: should be one of sqlite, lancedb, postgres"),
        ("memory:\n  embeddings:\n    provider: x\n", "memory.embeddings.provider: should be one of "),
        ("memory:\n  consolidation:\n    interval: daily\n", "memory.consolidation.interval: should be one of "),
        ("memory:\n  max_memories: 50\n", "memory.max_memories: is now `semantic.max_memories`"),
        ("tool: []\n", "tool: unknown key; valid keys: name, "),
        ("tools:\n  - type: shell\n", "tools[0].type: should be one of delegate, not 'shell'"),
        ("tools:\n  - type: delegate\n", "tools[0].agents: is missing"),
        ("triggers:\n  - type: cron\n    prompt: go\n", "triggers[0].schedule: is missing"),
        ("triggers:\n  - type: cron\n    when: go\n", "triggers[0].when: unknown key; valid keys: schedule, "),
        ("triggers:\n  type: cron\n", "triggers: should be a list"),
        ("guardrails:\n  max_iterations: 0\n", "guardrails.max_iterations: should be between 1 and "),
    ],
)
def test_a_mistake_is_told_with_its_place_and_what_is_allowed(refused, section, said):
    """Unknown keys and bad values are refused by file and path."""
    assert refused(FLAT + section).startswith(said)


@rows(
    "text, said",
    [
        ("", "should be a mapping with apiVersion, kind, metadata, spec"),
        ("name: a\nmodel: openai:x\n", "role: is missing"),
        ("role: hi\nmodel: openai:x\n", "name: is missing"),
        ("name: ../../etc/passwd\nrole: hi\n", "name: should be letters, digits, "),
        ("name: a\nrole: hi\nmodel: gpt\n", "model.provider: should be one of openai, anthropic, google, ollama, test"),
        ("name: a\nrole: hi\nmodel: 'openai:'\n", "model.name: is missing"),
        ("name: a\nrole: hi\nmodel:\n  provider: openai\n  name: x\n  temp: 1\n", "model.temp: unknown key"),
        (DOCUMENT.replace("kind: Agent", "kind: Flow"), "kind: should be Agent, not 'Flow'"),
        (DOCUMENT.replace("initrunner/v1", "v9"), "apiVersion: should be one of commonplace/v1, initrunner/v1"),
        (
            DOCUMENT.replace("max_sessions: 10", "max_sessions: ten"),
            "spec.memory.max_sessions: should be a whole number",
        ),
        ("name: [\n", "line "),
    ],
)
def test_a_role_that_cannot_be_one_is_refused(refused, text, said):
    """The first thing that is wrong is named, in the words of the form that the file has."""
    assert refused(text).startswith(said)


def test_the_old_place_of_max_memories_says_the_new_one(refused):
    """Whoever upgrades is told what to write."""
    said = refused(FLAT + "memory:\n  max_memories: 50\n")
    assert said.endswith("write `semantic:` and below it `max_memories: 50`")


def test_a_file_that_is_not_there_is_told_as_such(tmp_path):
    """The file's name comes first."""
    with pytest.raises(ConfigError, match=r"none\.yaml: cannot be read: No such file"):
        load(str(tmp_path / "none.yaml"))


def test_a_role_without_a_memory_section_says_how_to_get_one(role):
    """It loads and runs; whoever asks for its memory gets a hint."""
    with pytest.raises(ConfigError, match=r"memory: is missing, so this role has no memory; add `memory:`"):
        role(FLAT).memory_settings()


def test_a_custom_address_takes_any_provider(role):
    """Whoever gives a base_url speaks OpenAI's protocol, whatever it is called."""
    model = role("name: a\nrole: hi\nmodel: {provider: vllm, name: llama, base_url: 'http://127.0.0.1:1/v1'}\n").model
    assert (model.spec, model.base_url) == ("llama", "http://127.0.0.1:1/v1")


def test_the_store_lies_in_the_data_folder_under_the_roles_name(role):
    """One database for each agent, unless the role says another."""
    named = role(FLAT + "memory: {}\n")
    assert named.store("/data") == "/data/memory/assistant.db"
    assert str(named.scope("/data")) == "namespace:assistant"
    other = role(FLAT + "memory:\n  store_path: teams/shared.db\n")
    assert other.store("/data") == "/data/teams/shared.db"
    assert str(other.scope("/data")) == "namespace:shared"


@pytest.mark.parametrize("path", ["/etc/memory.db", "../memory.db", "~/memory.db"])
def test_a_store_outside_of_the_data_folder_has_to_be_allowed(role, path):
    """A role from somewhere else cannot choose any file of this machine."""
    text = FLAT + f"memory:\n  store_path: {path}\n"
    with pytest.raises(ConfigError, match=r"outside of the data folder .*restrict_db_paths: false"):
        role(text).store("/data")
    allowed = text + "security:\n  tools:\n    restrict_db_paths: false\n"
    assert os.path.basename(role(allowed).store("/data")) == "memory.db"


@pytest.mark.parametrize(
    ("memory", "said"),
    [
        ("store_backend: postgres", "should be the address of a PostgreSQL database"),
        ("store_backend: postgres\n  store_path: memory.db", "should be the address of a PostgreSQL database"),
        ("store_path: postgresql://ada:secret@db/memory", "is outside of the data folder; .*restrict_db_paths: false"),
    ],
)
def test_a_database_elsewhere_has_an_address_and_is_allowed(role, memory, said):
    """A role from somewhere else cannot send memories away; what is refused is not shown, a password may be in it."""
    with pytest.raises(ConfigError, match=f"memory.store_path: {said}") as caught:
        role(FLAT + f"memory:\n  {memory}\n").store("/data")
    assert "secret" not in str(caught.value)


def test_a_database_elsewhere_is_named_by_its_address(role):
    """Whoever has the same database has the same memories."""
    text = FLAT + "memory:\n  store_path: postgresql://ada@db/memory?schema=team\n"
    allowed = role(text + "security:\n  tools:\n    restrict_db_paths: false\n")
    assert allowed.store("/data") == "postgresql://ada@db/memory?schema=team"
    assert str(allowed.scope("/data")) == "namespace:memory"


def test_a_lance_store_is_a_folder_with_a_name_of_its_own(role):
    """It lies where the file would, and is the same memory to whoever calls it by the same name."""
    lance = role(FLAT + "memory:\n  store_backend: lancedb\n")
    assert lance.store("/data") == f"/data/memory/{lance.name}.lance"
    assert lance.scope("/data") == role(FLAT + "memory: {}\n").scope("/data")
    with pytest.raises(ConfigError, match="outside of the data folder"):
        role(FLAT + "memory:\n  store_backend: lancedb\n  store_path: /tmp/a.lance\n").store("/data")


def test_a_binding_writes_only_the_kinds_that_are_on_each_within_its_limit(role):
    """A kind that is off has no place to go."""
    text = FLAT + "memory:\n  episodic:\n    enabled: false\n  semantic:\n    max_memories: 3\n"
    binding = role(text).bind(Channel.AGENT, home="/data")
    assert set(binding.writes) == {Kind.SEMANTIC, Kind.PROCEDURAL}
    assert {kind: limit.keep for kind, limit in binding.limits.items()} == {Kind.SEMANTIC: 3, Kind.PROCEDURAL: 100}


def test_sharing_moves_the_store_and_the_limit_and_nothing_else(role):
    """Two roles with one shared store have one scope; a role without a memory gets one."""
    shared = SharedMemory(store_path="memory/team.db", max_memories=9)
    own = role(FLAT + "memory:\n  max_sessions: 3\n").with_shared_memory(shared)
    other = ephemeral(None, prompt="hi", memory=False).with_shared_memory(shared)
    assert own.scope("/data") == other.scope("/data")
    assert (own.memory.semantic.keep, own.memory.max_sessions) == (9, 3)


def test_the_environment_beside_the_role_fills_in_and_never_overrides(role, tmp_path):
    """What is set wins; then the file beside the role; then the one in the data folder."""
    data = tmp_path / "data"
    data.mkdir()
    (tmp_path / ".env").write_text("# keys\nexport OPENAI_API_KEY='beside' # quoted\n\nSET=beside\n")
    (data / ".env").write_text('OPENAI_API_KEY=global\nC_KEY="global"\n')
    env = environment(role(FLAT), {"SET": "set"}, home=str(data))
    assert env == {"SET": "set", "OPENAI_API_KEY": "beside", "C_KEY": "global"}


def test_a_bad_line_of_the_environment_is_named_by_number_alone(role, tmp_path):
    """The line may be half of a key, so it is not repeated."""
    (tmp_path / ".env").write_text("A=1\nsk-half-a-key\n")
    with pytest.raises(ConfigError, match=r"\.env: line 2 is not NAME=value$"):
        environment(role(FLAT), {}, home=str(tmp_path))


def test_triggers_become_values(role):
    """Each sort has its own fields and defaults; a webhook listens on this machine alone."""
    text = FLAT + (
        "triggers:\n"
        "  - {type: cron, schedule: '0 9 * * 1', prompt: Report}\n"
        "  - {type: file_watch, paths: [./notes], extensions: [.md]}\n"
        "  - {type: webhook, port: 9000, secret_env: HOOK_SECRET}\n"
    )
    assert role(text).triggers == (
        CronTrigger(schedule="0 9 * * 1", prompt="Report"),
        FileWatchTrigger(paths=("./notes",), extensions=(".md",)),
        WebhookTrigger(port=9000, secret_env="HOOK_SECRET", host="127.0.0.1"),
    )


def test_a_delegate_tool_may_share_a_store(role):
    """The section of the document is read as written."""
    text = FLAT + (
        "tools:\n  - type: delegate\n    agents:\n      - {name: writer, role_file: writer.yaml}\n"
        "    shared_memory:\n      store_path: memory/team.db\n"
    )
    [tool] = role(text).tools
    assert [agent.role_file for agent in tool.agents] == ["writer.yaml"]
    assert tool.shared_memory == SharedMemory(store_path="memory/team.db", max_memories=1000)


def test_a_role_without_a_file_remembers_unless_told_not_to():
    """Ephemeral use has all three kinds on."""
    model = model_settings("ollama:llama3", file="--model")
    assert len(ephemeral(model, prompt="hi").memory.kinds) == 3
    assert ephemeral(model, prompt="hi", memory=False).memory is None
