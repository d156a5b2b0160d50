"""``commonplace extract``, as people and programs call it."""

from __future__ import annotations

import json

import pytest

PNPM = "Use pnpm, not npm, in this repo."
ANSWER = {
    "rollout_summary": "pnpm", "rollout_slug": None, "raw_memory": "- pnpm",
    "records": [{"content": "Use pnpm, not npm", "category": "decisions", "quote": "Use pnpm, not npm"}],
}  # fmt: skip


@pytest.fixture
def learning(cli):
    """A project that learns, with one session."""
    config = cli.folder / "work" / ".commonplace" / "config.yaml"
    cli.configure(config.read_text().replace("  enabled: false", "  enabled: true"))
    write(cli, "0b1c", PNPM)
    return cli


def write(cli, name, text):
    """Index a session that is long over."""
    said = {"role": "user", "content": text, "time": "2026-01-01T09:00:00Z"}
    (cli.folder / f"{name}.jsonl").write_text(json.dumps(said) + "\n")
    cli.ok("index", cli.folder / f"{name}.jsonl")


def settings(cli, old, new):
    """Change a line of the settings."""
    config = cli.folder / "work" / ".commonplace" / "config.yaml"
    assert old in config.read_text()
    cli.configure(config.read_text().replace(old, new))


def test_learning_is_off_until_it_is_switched_on(cli):
    """Off by default, with one switch, which the message names."""
    done = cli("extract")

    assert (done.code, "`memories.enabled: true` in" in done.err) == (4, True)


def test_a_session_becomes_records(learning):
    """The summary says what was taken, and the record is there with its evidence."""
    done = learning.ok("extract", "--session", "0b1c")

    assert done.out == "Extracted 1 record from 1 session\n  0b1c: 1 record\n"
    [record] = learning.ok("record", "list", "--json").json["records"]
    assert (record["category"], record["metadata"]["evidence"]) == ("decisions", ["session:0b1c#1"])


def test_what_is_skipped_is_told_with_its_reason(learning):
    """Too old, up to date: each with the sessions it concerns."""
    settings(learning, "maxRolloutAgeDays: 30", "maxRolloutAgeDays: 1")
    assert "skipped, older than 1 days: 0b1c" in learning.ok("extract").out
    learning.ok("extract", "--force")
    assert "skipped, up to date: 0b1c" in learning.ok("extract").out


def test_programs_get_everything(learning):
    """Sessions, records, reasons."""
    data = learning.ok("extract", "--session", "0b1c", "--json").json

    assert [taken["session"] for taken in data["done"]] == ["0b1c"]
    assert len(data["records"]) == 1
    assert data["failed"] == data["skipped"] == data["empty"] == []


def test_without_a_key_the_coding_agent_thinks(learning, tmp_path):
    """Prepare, answer, commit."""
    settings(learning, "mode: rules", "mode: host")
    assert "extract --prepare DIR" in learning("extract").err
    learning.ok("extract", "--prepare", tmp_path / "todo", "--session", "0b1c")
    [folder] = (tmp_path / "todo").glob("0b1c-*")
    (folder / "answer.json").write_text("{")
    done = learning("extract", "--commit", tmp_path / "todo")
    assert (done.code, "0b1c: the answer was cut off before its end" in done.err) == (1, True)
    (folder / "answer.json").write_text(json.dumps(ANSWER))
    assert learning.ok("extract", "--commit", tmp_path / "todo").out.startswith("Extracted 1 record from 1 session")


def test_a_model_that_is_not_set_up_is_a_matter_of_settings(learning):
    """Exit code 5, with the file and the key."""
    settings(learning, "mode: rules", "mode: model")
    done = learning("extract", "--session", "0b1c")

    assert (done.code, "models.default: says no model" in done.err) == (5, True)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--prepare", "a", "--commit", "b"], "give --prepare or --commit"),
        (["--prepare", ""], "'' cannot be made"),
        (["--commit", "a", "--force"], "--commit takes all answers of its folder"),
        (["--commit", "nowhere"], "'nowhere' cannot be read"),
    ],
)
def test_a_mistake_is_one_sentence(learning, arguments, sentence):
    """Exit code 2."""
    done = learning("extract", *arguments)

    assert (done.code, sentence in done.err) == (2, True)


def test_an_unknown_session_is_not_found(learning):
    """Exit code 1."""
    assert learning("extract", "--session", "nope").code == 1


# One of each kind, each put together here so that no scanner takes this file for a leak.
SECRETS = {
    "GitHub": "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a",
    "AWS": "AKIA" + "Z7Q2K4M9X1B3N5C8",
    "Slack": "xox" + "b-263594206564-2343594206574-FGqddMF8t08v8N7Oq4i57vs1",
    "password": "hunter2-Zebra!77",
    "URL": "postgres://admin:" + "s3cr3tPaSs99@db.example/shop",
    "JWT": "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "PEM": "-----BEGIN RSA PRIVATE " + "KEY-----\nMIIEpAIBAAKCAQEA7bq0\n-----END RSA PRIVATE KEY-----",
    "bearer": "Authorization: Bearer " + "9f8e7d6c5b4a39281706f5e4d3c2b1a0",
}
CORES = ["16C7e42F292c6912", "Z7Q2K4M9X1B3", "FGqddMF8t08v8N7O", "hunter2-Zebra", "s3cr3tPaSs99", "dozjgNryP4J3",
         "MIIEpAIBAAKCAQEA", "9f8e7d6c5b4a3928"]  # fmt: skip


@pytest.mark.parametrize("mode", ["rules", "host"])
def test_no_planted_secret_is_in_any_file_or_output(learning, tmp_path, mode):
    """Records, chunks, extractions, jobs, prepared prompts, Markdown, the database and the terminal: none has one."""
    planted = [f"We use this for the deploy: {secret}" for secret in SECRETS.values()]
    planted[3] = f"The admin password is {SECRETS['password']}, remember that the deploy needs it."
    lines = [{"role": "user", "content": text, "time": "2026-01-01T09:00:00Z"} for text in planted]
    lines += [{"role": "tool", "name": "bash", "content": text} for text in planted]
    source = tmp_path / "elsewhere" / "leaky.jsonl"
    source.parent.mkdir()
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    outputs = [learning.ok("index", source)]
    if mode == "rules":
        outputs.append(learning.ok("extract", "--session", "leaky", "--json"))
    else:
        outputs.append(learning.ok("extract", "--session", "leaky", "--prepare", tmp_path / "todo"))
        assert "[secret:" in next((tmp_path / "todo").glob("leaky*/prompt.md")).read_text()
        [folder] = (tmp_path / "todo").glob("leaky-*")
        said = {"content": " ".join(planted), "category": "decisions"}
        (folder / "answer.json").write_text(json.dumps(ANSWER | {"raw_memory": said["content"], "records": [said]}))
        outputs.append(learning.ok("extract", "--commit", tmp_path / "todo"))
    outputs += [learning("status", "--json"), learning.ok("record", "list", "--json"), learning("recall", "deploy")]

    written = [path for path in tmp_path.rglob("*") if path.is_file() and path != source]
    held = b"\n".join(path.read_bytes() for path in written) + repr(outputs).encode()
    assert [core for core in CORES if core.encode() in held] == []
