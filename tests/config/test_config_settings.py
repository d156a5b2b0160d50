"""Settings files: every key known, every value checked, mistakes named."""

from __future__ import annotations

import pytest

from commonplace.config import settings
from commonplace.config.settings import MEMORIES, MODELS, PROJECT, USER, load, parse_flat, template, with_switch
from commonplace.model.errors import ConfigError
from stands import rows

BLOCKS = {block.name: {one.name: one.default for one in block.settings} for block in (MEMORIES, MODELS)}
FLAT = {"project": None, "enabled": True, "content_bytes": 16_384, "recall_limit": 10, "recall_budget": None}
FLAT |= {"personal_data": "allow"}
DEFAULTS = FLAT | BLOCKS
OWN = {
    "user": None,
    "enabled": True,
    "store": None,
    "embedder": "local",
    "embedder_base_url": None,
    "embedder_api_key_env": None,
}
OWN |= {"embedder_dimensions": None, "personal_data": "allow", "scripts_speak_as": "agent", "key_hosts": None}


@pytest.fixture
def loaded(tmp_path):
    """Load a settings file with this text."""

    def loaded(text, schema=PROJECT):
        path = tmp_path / "config.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return load(str(path), schema)

    return loaded


def test_a_file_that_is_not_there_says_nothing(tmp_path):
    """Everything has a default."""
    assert load(str(tmp_path / "none.yaml"), PROJECT) == DEFAULTS
    assert load(str(tmp_path / "none.yaml"), USER) == OWN


@rows(
    "text, said",
    [
        ("project: github.com/acme/shop", {"project": "github.com/acme/shop"}),
        ("project: 'My Shop: the app'", {"project": "My Shop: the app"}),
        ("project: 2024", {"project": "2024"}),
        ("project: 007", {"project": "007"}),
        ("project: 1.10", {"project": "1.10"}),
        ("enabled: false", {"enabled": False}),
        ("enabled: true  # for now", {"enabled": True}),
        ("content_bytes: 1048576", {"content_bytes": 1_048_576}),
        ("content_bytes: 1", {"content_bytes": 1}),
        ("recall_limit: 25", {"recall_limit": 25}),
        ("recall_budget: 2000", {"recall_budget": 2000}),
        ("recall_budget:", {}),
        ("recall_budget: null", {}),
        ("# nothing\n\n   # at all\n", {}),
        ("", {}),
        ("---\nenabled: false\n", {"enabled": False}),
        ("{enabled: false, recall_limit: 3}", {"enabled": False, "recall_limit": 3}),
        ("enabled: false\r\nrecall_limit: 3\r\n", {"enabled": False, "recall_limit": 3}),
        ("\ufeffenabled: false", {"enabled": False}),
    ],
)
def test_every_key_can_be_said(loaded, text, said):
    """What a file says holds, and the rest keeps its default."""
    assert loaded(text) == DEFAULTS | said


@pytest.mark.parametrize(
    ("text", "user"), [("user: ada", "ada"), ("user: Ada Lovelace", "Ada Lovelace"), ("user:", None)]
)
def test_the_user_has_settings_too(loaded, text, user):
    """Whose memory it is, and whether it is on."""
    assert loaded(f"{text}\nenabled: false", USER) == OWN | {"user": user, "enabled": False}


def test_the_user_chooses_an_embedder(loaded):
    """Which one, where it is, which variable holds its key, and how long its vectors are."""
    text = "embedder: openai:small\nembedder_base_url: http://127.0.0.1:9/v1\nembedder_dimensions: 256"
    said = {"embedder": "openai:small", "embedder_base_url": "http://127.0.0.1:9/v1", "embedder_dimensions": 256}

    assert loaded(text, USER) == OWN | said


#: The five settings of the document, the ten advanced ones, the one that came later, and ours.
DOCUMENTED = {
    "enabled": False, "maxRolloutAgeDays": 30, "minRolloutIdleHours": 12, "maxRolloutsPerStartup": 64,
    "summaryInjectionTokenLimit": 5000, "threadScanLimit": 300, "maxRawMemoriesForGlobal": 200,
    "stage1Concurrency": 8, "stage1LeaseSeconds": 120, "stage1RetryDelaySeconds": 120, "phase2LeaseSeconds": 180,
    "phase2RetryDelaySeconds": 180, "phase2HeartbeatSeconds": 30, "rolloutPayloadPercent": 0.7,
    "fallbackTokenLimit": 16_000, "phase1InputTokenLimit": 4000, "mode": "rules", "maxRecordsPerSession": 20,
    "askAgent": False,
    "maxLossPercent": 25,
}  # fmt: skip


def test_learning_has_the_documented_names_and_defaults():
    """Every name of the document, with its default, and no other but ours."""
    assert BLOCKS["memories"] == DOCUMENTED


def test_a_block_can_be_said_in_part(loaded):
    """What a block does not say keeps its default."""
    said = loaded("memories:\n  enabled: true\n  rolloutPayloadPercent: 0.5\nmodels:\n  default: openai:gpt-5-mini\n")

    assert said["memories"] == DOCUMENTED | {"enabled": True, "rolloutPayloadPercent": 0.5}
    assert said["models"]["default"] == "openai:gpt-5-mini"


@rows("setting", MEMORIES.settings)
def test_each_setting_of_a_block_is_read(loaded, setting):
    """Whatever the setting, another value than its default arrives."""
    other = setting.default + 1 if setting.kind is int else {bool: True, str: "host", float: 0.25}[setting.kind]
    written = str(other).lower()

    assert loaded(f"memories:\n  {setting.name}: {written}")["memories"][setting.name] == other


WRONG = {
    "an unknown key in a block": (
        "memories:\n  enabeld: true",
        "memories.enabeld: unknown setting; valid settings: enabled,",
    ),
    "a block that is a word": ("memories: true", "memories: should be lines of `key: value` below it, not True"),
    "a block in a block": ("memories:\n  mode:\n    a: b", "memories.mode: should be text"),
    "another mode": ("memories:\n  mode: magic", "memories.mode: should be one of rules, model, host, not 'magic'"),
    "a share above one": (
        "memories:\n  rolloutPayloadPercent: 1.5",
        "memories.rolloutPayloadPercent: should be between 0.05 and 1, not 1.5",
    ),
    "a share that is a word": ("memories:\n  rolloutPayloadPercent: half", "rolloutPayloadPercent: should be a number"),
    "two of one key in a block": ("memories:\n  mode: rules\n  mode: host", "line 3: says 'mode' twice"),
    "an unknown key": ("colour: blue", "colour: unknown setting; valid settings: project, enabled, content_bytes"),
    "a key of the other file": ("user: ada", "user: unknown setting"),
    "a switch that is a word": ("enabled: yes", "enabled: should be true or false, not 'yes'"),
    "a switch that is a number": ("enabled: 1", "enabled: should be true or false, not 1"),
    "a number that is a word": ("recall_limit: many", "recall_limit: should be a whole number, not 'many'"),
    "a number that is a switch": ("recall_limit: true", "recall_limit: should be a whole number, not True"),
    "a broken number": ("recall_limit: 1.5", "recall_limit: should be a whole number, not 1.5"),
    "too little": ("recall_limit: 0", "recall_limit: should be between 1 and 1000, not 0"),
    "less than nothing": ("recall_limit: -5", "recall_limit: should be between 1 and 1000, not -5"),
    "too much": ("content_bytes: 1048577", "content_bytes: should be between 1 and 1048576, not 1048577"),
    "far too much": (f"recall_budget: {'9' * 5_000}", "recall_budget: should be a whole number"),
    "a name that is a list": ("project: [a, b]", "project: should be text"),
    "a name that is a switch": ("project: true", "project: should be text, not True"),
    "two of one key": ("enabled: true\nenabled: false", "line 2: says 'enabled' twice"),
    "no space": ("enabled:false", "should be lines of `key: value`"),
    "a list": ("- enabled", "should be lines of `key: value`"),
    "words": ("hello", "should be lines of `key: value`"),
    "broken YAML": ("enabled: true\nproject: [a", r"line \d: is not YAML"),
    "a tab": ("enabled:\n\ttrue", "line 2: is not YAML"),
    "an anchor": ("project: &a b", "line 1: uses an anchor or an alias"),
    "a control character": ("enabled: true # \x07", r"line 1: holds the character U\+0007"),
    "a colon at the end": ("project: acme/shop:", "line 1: is not YAML"),
    "other bytes": (b"project: caf\xe9", "cannot be read"),
}


@pytest.mark.parametrize(("text", "reason"), WRONG.values(), ids=WRONG)
def test_a_mistake_is_named_with_its_file_and_place(loaded, tmp_path, text, reason):
    """Nothing is guessed and nothing is ignored."""
    with pytest.raises(ConfigError, match=reason) as caught:
        loaded(text)
    assert caught.value.file == str(tmp_path / "config.yaml")
    assert str(caught.value).startswith(f"{tmp_path / 'config.yaml'}: ")


def test_a_mistake_carries_its_parts(loaded):
    """A program can tell which key it was."""
    with pytest.raises(ConfigError) as caught:
        loaded("recall_limit: 0")
    assert (caught.value.path, caught.value.reason) == ("recall_limit", "should be between 1 and 1000, not 0")


def test_a_folder_is_no_settings_file(tmp_path):
    """What cannot be read is an error, not an empty file."""
    with pytest.raises(ConfigError, match="cannot be read"):
        load(str(tmp_path), PROJECT)


@rows(
    "values",
    [
        {},
        {"project": "github.com/acme/shop"},
        {"project": "My Shop: the app # 2", "enabled": False},
        {"project": "true"},
        {"project": "null"},
        {"project": "commit:0123abcd"},
        {"project": "ends with colon:"},
        {"project": "日本"},
        {"recall_budget": 500, "recall_limit": 3, "content_bytes": 99},
    ],
)
def test_a_template_says_what_it_was_given(loaded, values):
    """A file that was just made can be read, and explains every key."""
    text = template(PROJECT, values, title="Settings of this project.")

    assert loaded(text) == DEFAULTS | values
    assert all(setting.help in text for setting in PROJECT)


SWITCHED = {
    "turned": ("enabled: true\n", "enabled: false\n"),
    "with its comment": ("enabled: true   # until June\n", "enabled: false   # until June\n"),
    "among others": (
        "# ours\nproject: a.b/c\n\nenabled: true\n# end\n",
        "# ours\nproject: a.b/c\n\nenabled: false\n# end\n",
    ),
    "without a value": ("enabled:\nrecall_limit: 3\n", "enabled: false\nrecall_limit: 3\n"),
    "not there yet": ("# ours\nproject: a.b/c\n", "# ours\nproject: a.b/c\nenabled: false\n"),
    "in an empty file": ("", "enabled: false\n"),
    "in quotes": ('"enabled": true\n', "enabled: false\n"),
    "with a space": ("enabled : true\n", "enabled: false\n"),
    "without an end": ("enabled: true", "enabled: false"),
    "not the commented one": ("# enabled: true\nenabled: true\n", "# enabled: true\nenabled: false\n"),
    "from a Windows editor": ("enabled: true # x\r\nrecall_limit: 3\r\n", "enabled: false # x\r\nrecall_limit: 3\r\n"),
    "from a Windows editor, bare": ("enabled: true\r\nrecall_limit: 3\r\n", "enabled: false\r\nrecall_limit: 3\r\n"),
}


@rows("before, after", SWITCHED.values())
def test_turning_a_switch_leaves_the_rest_alone(loaded, before, after):
    """Comments, order and other keys stay as their writer left them."""
    assert with_switch(before, "enabled", value=False) == after
    assert loaded(with_switch(before, "enabled", value=False))["enabled"] is False
    assert loaded(with_switch(after, "enabled", value=True))["enabled"] is True


def test_every_setting_explains_itself():
    """A setting without a sentence is not ready."""
    for setting in (*settings.PROJECT, *settings.USER):
        assert setting.help


@pytest.mark.parametrize(
    "text", ["project: github.com/acme/shop\nenabled: true\n", "# a comment\nrecall_limit: 3 # few\n\nrecall_budget:\n"]
)
def test_what_we_write_ourselves_needs_no_parser(text):
    """The fast reader takes what the template and the switch produce."""
    assert parse_flat(text) is not None
    assert parse_flat(template(PROJECT, {"project": "github.com/acme/shop"}, title="Settings.")) is not None


@rows("text, said", [
        ("memories:\n  enabled: true\n", {"memories": {"enabled": True}}),
        ("memories: # x\n\n    # why\n    mode: host # so\nproject: a", {"memories": {"mode": "host"}, "project": "a"}),
        ("models:\n  base_url: http://127.0.0.1:80/v1\n", {"models": {"base_url": "http://127.0.0.1:80/v1"}}),
        ("memories:\n  rolloutPayloadPercent: 0.7", {"memories": {"rolloutPayloadPercent": 0.7}}),
        ("memories:\nmodels:", {"memories": None, "models": None}),
    ])  # fmt: skip
def test_one_level_of_nesting_needs_no_parser(text, said):
    """A block is read as quickly as a line."""
    assert parse_flat(text) == said


@rows(
    "text",
    ["  enabled: true", "a: 1\n  b: 2", "a:\n  b: 1\n    c: 2", "a:\n  b: 1\n c: 2", "a:\n  b:\n    c: 1", "a: 0.70"],
)
def test_what_is_odd_is_left_to_the_parser(text):
    """Deeper or uneven nesting, and numbers that could be text, are not guessed at."""
    assert parse_flat(text) is None
