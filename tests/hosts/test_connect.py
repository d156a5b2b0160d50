"""Connecting a coding agent changes its settings with care, and disconnecting brings them back."""

from __future__ import annotations

import json
import os
import shutil
import subprocess

import pytest

from commonplace.hosts import jsonc
from hosts.conftest import COMMAND
from stands import rows

#: What people have in their settings before we come; comments, odd layout and all.
BEFORE = {
    "claude-code": {
        ".claude/settings.json": '{\n  "model": "opus",\n  "hooks": {\n    "Stop": [\n'
        '      {"hooks": [{"type": "command", "command": "say done"}]}\n    ]\n  }\n}',
        ".claude.json": '{"numStartups":7,"mcpServers":{"other":{"command":"x","args":[]}},"projects":{}}',
    },
    "codex": {
        ".codex/hooks.json": '{ "hooks": {} }\n',
        ".codex/config.toml": '# mine\nmodel = "gpt-9"   # the best\n\n'
        '[mcp_servers.other]\ncommand = "x"\n\n[tui]\ntheme = "x"\n',
    },
    "gemini": {".gemini/settings.json": '{\n\t// light\n\t"theme": "light", /* really */\n\t"mcpServers": {},\n}\n'},
    "cursor": {
        ".cursor/hooks.json": '{"version": 1, "hooks": {"stop": [{"command": "say done"}]}}',
        ".cursor/mcp.json": '{"mcpServers": {}}',
    },
    "opencode": {".config/opencode/opencode.jsonc": '{\r\n  // comments stay\r\n  "theme": "dark"\r\n}\r\n'},
    "vscode": {".config/Code/User/mcp.json": '{\n    "servers": {},\n    "inputs": []\n}\n'},
}
HOSTS = list(BEFORE)
EVERY = pytest.mark.parametrize("host", HOSTS)


def files(person):
    """Every file of the person's home and project but Commonplace's own, with its bytes and rights."""
    return {
        str(path): (path.read_bytes(), path.stat().st_mode)
        for root in (person.home, person.work)
        for path in root.rglob("*")
        if path.is_file() and ".commonplace" not in path.parts
    }


def folders(person):
    """Every folder there, for those that are made on the way."""
    return {str(path) for path in person.home.rglob("*") if path.is_dir()}


def prepared(person, host):
    """The settings of somebody who has used the agent for long."""
    for path, text in BEFORE[host].items():
        person.file(path, "").write_bytes(text.encode())
    return files(person)


def commands(person):
    """Every command of ours that the settings hold, wherever."""
    said = [data.decode() for data, _ in files(person).values()]
    return [text for text in said if COMMAND in text]


@EVERY
def test_disconnecting_brings_back_the_very_bytes(person, host):
    """Settings with comments, tabs, carriage returns, no last line end: all as before, and no folder is left."""
    before, made = prepared(person, host), folders(person)
    person.ok("connect", host, "--yes")
    assert commands(person)
    person.ok("disconnect", host, "--yes")
    assert files(person) == before
    assert folders(person) == made


@EVERY
def test_what_was_not_there_is_gone_again(person, host):
    """Files and folders that connecting made vanish with it."""
    person.ok("connect", host, "--yes")
    assert commands(person)
    person.ok("disconnect", host, "--yes")
    assert files(person) == {}
    assert folders(person) == set()


@EVERY
def test_a_projects_own_settings_are_brought_back_too(person, host):
    """The same for the files of a project."""
    person.ok("init")
    person.ok("connect", host, "--project", "--yes")
    assert all(path.startswith(str(person.work)) for path in files(person))
    assert commands(person)
    person.ok("disconnect", host, "--yes")
    assert files(person) == {}


@EVERY
def test_connecting_twice_changes_nothing(person, host):
    """The second time there is nothing to do."""
    prepared(person, host)
    person.ok("connect", host, "--yes")
    after = files(person)
    assert "Nothing to change" in person.ok("connect", host, "--yes").out
    assert files(person) == after


@EVERY
def test_only_what_is_ours_goes_where_somebody_has_changed_the_rest(person, host):
    """A line that a person has added since stays, with every other byte."""
    before = prepared(person, host)
    person.ok("connect", host, "--yes")
    expected = {}
    for path, (data, mode) in files(person).items():
        if path.endswith(".js"):
            continue
        mark = b"\n# a word of mine\n" if path.endswith(".toml") else b"\n// a word of mine\n"
        (person.home / path).write_bytes(data + mark)
        expected[path] = (before.get(path, (b"", mode))[0] + mark, mode)
    person.ok("disconnect", host, "--yes")
    left = files(person)
    assert not commands(person)
    assert left.keys() == expected.keys()
    for path, (data, _) in left.items():
        assert data == expected[path][0], path
        assert b"a word of mine" in data


@rows("text", ["", "\n", "{\n}", "{ }\n", '{"mcpServers": {\n  }}', "\ufeff{}"])
def test_settings_that_say_nothing_are_brought_back_too(person, text):
    """An empty file, empty braces over two lines, a byte order mark."""
    path = person.file(".cursor/mcp.json", text)
    person.ok("connect", "cursor", "--yes")
    assert jsonc.parse(path.read_text()).value["mcpServers"]["commonplace"]["args"] == ["mcp"]
    person.ok("disconnect", "cursor", "--yes")
    assert path.read_text() == text


def test_what_is_between_the_persons_words_goes_without_a_trace(person):
    """They have added a hook after ours and a server before it: both stand as they wrote them."""
    prepared(person, "claude-code")
    person.ok("connect", "claude-code", "--yes")
    path = person.home / ".claude/settings.json"
    own = '{"hooks": [{"type": "command", "command": "mine"}]}'
    path.write_text(jsonc.insert(path.read_text(), ("hooks", "Stop"), json.loads(own), listed=True))
    person.ok("disconnect", "claude-code", "--yes")
    said = json.loads(path.read_text())
    assert said["hooks"].keys() == {"Stop"}
    assert [hook["hooks"][0]["command"] for hook in said["hooks"]["Stop"]] == ["say done", "mine"]
    assert path.read_text().startswith(BEFORE["claude-code"][".claude/settings.json"][:100])


def test_nothing_is_changed_before_somebody_agrees(person):
    """Without a terminal and without --yes it refuses, and a dry run only shows."""
    before = prepared(person, "claude-code")
    done = person("connect", "claude-code")
    assert done.code == 2
    assert "--yes says yes" in done.err
    shown = person.ok("connect", "claude-code", "--dry-run").out
    assert f'+{" " * 12}"command": "{COMMAND} hook session-start --host claude-code"' in shown
    assert files(person) == before
    assert not (person.work / ".commonplace").exists()


def test_what_was_there_is_kept_beside(person):
    """The bytes from before are in a file that is named."""
    prepared(person, "gemini")
    done = person.ok("connect", "gemini", "--yes")
    [kept] = [line.rsplit(" ", 1)[1] for line in done.err.splitlines() if "the file before is saved" in line]
    with open(kept, "rb") as file:
        assert file.read() == BEFORE["gemini"][".gemini/settings.json"].encode()


def test_a_backup_that_is_gone_costs_nobody_their_settings(person):
    """Then only what is ours is taken out, as from a file that was changed."""
    before = prepared(person, "gemini")
    person.ok("connect", "gemini", "--yes")
    for kept in (person.data / "connections").glob("*.before"):
        kept.unlink()
    person.ok("disconnect", "gemini", "--yes")
    assert files(person) == before


def test_comments_survive(person):
    """A host that takes comments keeps them."""
    prepared(person, "gemini")
    person.ok("connect", "gemini", "--yes")
    text = (person.home / ".gemini/settings.json").read_text()
    assert "// light" in text
    assert "/* really */" in text
    said = jsonc.parse(text).value
    assert said["hooks"]["BeforeAgent"][0]["hooks"][0]["timeout"] == 5000
    assert said["mcpServers"]["commonplace"] == {"command": COMMAND, "args": ["mcp"]}


def test_a_command_that_has_moved_is_put_right(person):
    """Whoever installs anew connects once more, and one hook of each stays."""
    prepared(person, "claude-code")
    person.ok("connect", "claude-code", "--yes")
    path = person.home / ".claude/settings.json"
    path.write_text(path.read_text().replace(COMMAND, "/old/place/commonplace"))
    person.ok("connect", "claude-code", "--yes")
    assert "/old/place" not in path.read_text()
    assert path.read_text().count("hook prompt") == 1


@pytest.mark.parametrize(
    ("path", "text", "sentence"),
    [
        (".claude/settings.json", "{not json", "is not JSON at line 1"),
        (".claude/settings.json", '{"hooks": []}', "has hooks that is not an object"),
        (".claude/settings.json", '{"hooks": {"Stop": 7}}', "has hooks.Stop that is not a list"),
        (".claude/settings.json", "[]", "that is not an object"),
        (".claude.json", '{"mcpServers": {"commonplace": {"command": "other"}}}', "has mcpServers.commonplace already"),
    ],
)
def test_settings_that_cannot_be_followed_are_refused_in_a_sentence(person, path, text, sentence):
    """Nothing is written, not even to the files that could be."""
    person.file(path, text)
    before = files(person)
    done = person("connect", "claude-code", "--yes")
    assert done.code == 5
    assert sentence in done.err
    assert path in done.err
    assert files(person) == before


@rows(
    "text, sentence",
    [
        ("model = = 1", "is not TOML"),
        ("mcp_servers = 5", "has mcp_servers that is not a table"),
        ("mcp_servers = []", "has mcp_servers that is not a table"),
        ("[[mcp_servers]]\nx = 1", "has mcp_servers that is not a table"),
        ("[mcp_servers]\ncommonplace = true", "has mcp_servers.commonplace already, which is not ours"),
    ],
)
def test_toml_that_cannot_be_followed_is_refused_in_a_sentence(person, text, sentence):
    """The same for Codex."""
    file = person.file(".codex/config.toml", text)
    done = person("connect", "codex", "--yes")
    assert done.code == 5
    assert sentence in done.err
    assert not (person.home / ".codex/hooks.json").exists()
    assert file.read_text() == text


@pytest.mark.parametrize("before", [True, False])
def test_a_hook_of_ours_in_a_group_of_others_costs_no_other(person, before):
    """Whoever puts our command beside their own keeps theirs, byte for byte, when ours is put right or taken out."""
    ours = '{"type": "command", "command": "/old/place/commonplace hook stop --host claude-code"}'
    theirs = '{"type":"command", "command":"say done"}'
    inner = f"{ours}, {theirs}" if before else f"{theirs}, {ours}"
    file = person.file(".claude/settings.json", f'{{"hooks": {{"Stop": [{{"matcher": "*", "hooks": [{inner}]}}]}}}}')
    person.ok("connect", "claude-code", "--yes")
    assert theirs in file.read_text()
    assert "/old/place" not in file.read_text()
    person.ok("disconnect", "claude-code", "--yes")
    assert file.read_text() == f'{{"hooks": {{"Stop": [{{"matcher": "*", "hooks": [{theirs}]}}]}}}}'


def test_a_note_of_an_older_release_is_read(person):
    """Release 0.1 called the fields of a new file ``beside``; what it created is deleted all the same."""
    person.ok("connect", "cursor", "--yes")
    for note in (person.data / "connections").glob("*.json"):
        note.write_text(note.read_text().replace("new_file_fields", "beside"))
    person.ok("disconnect", "cursor", "--yes")
    assert not (person.home / ".cursor/hooks.json").exists()


def test_a_note_that_is_damaged_costs_nobody_their_settings(person):
    """What is ours is known by what it runs; everything else stays."""
    file = person.file(".claude/settings.json", '{"model": "opus"}')
    person.ok("connect", "claude-code", "--yes")
    for note in (person.data / "connections").glob("*.json"):
        note.write_text('{"file": ')
    person.ok("disconnect", "claude-code", "--yes")
    assert "commonplace" not in file.read_text()
    assert jsonc.parse(file.read_text()).value["model"] == "opus"


def test_a_file_that_cannot_be_written_leaves_the_others_as_they_were(person):
    """Half a connection is none: what was written before it is taken back, files, folders and notes."""
    link = person.home / ".config/opencode/opencode.json"
    link.parent.mkdir(parents=True)
    link.symlink_to("x" * 250)  # a name to which nothing can be added, as it is while the file is written
    before, there = files(person), folders(person)
    done = person("connect", "opencode", "--yes")
    assert done.code == 4
    assert "cannot be written" in done.err
    assert (files(person), folders(person)) == (before, there)
    assert list((person.data / "connections").iterdir()) == []


def test_a_link_to_nowhere_leads_nowhere_again(person):
    """The file and the folders that connecting made behind it are removed."""
    link = person.home / ".claude" / "settings.json"
    link.parent.mkdir()
    link.symlink_to(person.home / "dotfiles" / "deep" / "settings.json")
    person.ok("connect", "claude-code", "--yes")
    assert (person.home / "dotfiles/deep/settings.json").exists()
    person.ok("disconnect", "claude-code", "--yes")
    assert link.is_symlink()
    assert not (person.home / "dotfiles").exists()


def test_a_file_that_is_linked_stays_a_link(person):
    """People keep their settings elsewhere and link them."""
    kept = person.file("dotfiles/settings.json", "{}\n")
    link = person.home / ".claude" / "settings.json"
    link.parent.mkdir()
    link.symlink_to(kept)
    person.ok("connect", "claude-code", "--yes")
    assert link.is_symlink()
    assert "commonplace hook" in kept.read_text()
    person.ok("disconnect", "claude-code", "--yes")
    assert link.is_symlink()
    assert kept.read_text() == "{}\n"


def test_the_list_says_what_is_there_and_what_is_connected(person):
    """Detected by its folder, connected by its settings."""
    person.file(".claude/settings.json", "{}")
    person.ok("connect", "gemini", "--yes")
    rows = {row["host"]: row for row in person.ok("connect", "--list", "--json").json["hosts"]}
    assert (rows["claude-code"]["detected"], rows["claude-code"]["connected"]) == (True, [])
    assert rows["gemini"]["connected"] == ["user"]
    assert rows["vscode"]["detected"] is False
    assert "gemini       Gemini CLI   connected (user)" in person.ok("connect", "--list").out


def test_one_command_makes_a_repository_learn(person):
    """After it, what one session says the next one is shown, and the other settings are as they were."""
    subprocess.run(["git", "init", "-q", str(person.work)], check=True)
    done = person.ok("connect", "claude-code", "--yes")
    assert "learning is switched on here" in done.err
    config = (person.work / ".commonplace" / "config.yaml").read_text()
    assert config.count("enabled: true") == 2
    assert "learning: on, by rules" in person.ok("status", "--jobs").out
    person.ok("disconnect", "claude-code", "--yes")
    assert (person.work / ".commonplace" / "config.yaml").read_text() == config


def test_learning_is_left_alone_if_somebody_says_so(person):
    """The agent's settings are changed, the project's are not."""
    person.ok("init")
    before = (person.work / ".commonplace" / "config.yaml").read_text()
    done = person.ok("connect", "claude-code", "--yes", "--no-learn")
    assert "this project does not learn" in done.err
    assert (person.work / ".commonplace" / "config.yaml").read_text() == before


@rows(
    "arguments, sentence",
    [
        (["connect"], "Missing argument HOST"),
        (["connect", "emacs"], "'emacs' is not a host that is known"),
        (["connect", "pi"], "pi cannot be connected"),
        (["connect", "gemini", "--plugin", "x"], "takes no plugin of this format"),
        (["connect", "codex", "--project"], "there is no project around this folder"),
    ],
)
def test_a_mistake_is_told_in_a_sentence(person, arguments, sentence):
    """It names the thing."""
    done = person(*arguments)
    assert done.code == 2
    assert sentence in done.err


# As a plugin


def test_a_plugin_has_hooks_a_server_and_a_skill(person):
    """The directory is Claude Code's format, which Codex takes too; it can be written over itself."""
    for _ in range(2):
        person.ok("connect", "claude-code", "--plugin", "plugin")
    folder = person.work / "plugin"
    hooks = json.loads((folder / "hooks/hooks.json").read_text())["hooks"]
    assert hooks["SessionStart"][0]["hooks"][0]["command"] == f"{COMMAND} hook session-start"
    assert json.loads((folder / ".mcp.json").read_text())["mcpServers"]["commonplace"]["command"] == COMMAND
    assert json.loads((folder / ".claude-plugin/plugin.json").read_text())["name"] == "commonplace"
    assert json.loads((folder / ".claude-plugin/marketplace.json").read_text())["plugins"][0]["source"] == "./"
    assert (folder / "skills/commonplace-memory/SKILL.md").read_text().startswith("---\nname: commonplace-memory\n")


def test_a_plugin_is_not_written_over_something_else(person):
    """A folder with other things in it is somebody's."""
    person.file("mine/notes.txt", "x")
    done = person("connect", "codex", "--plugin", person.home / "mine")
    assert done.code == 2
    assert "is not empty and not a plugin of ours" in done.err
    done = person("connect", "codex", "--plugin", person.home / "mine/notes.txt")
    assert done.code == 4
    assert "plugin.json' cannot be written: " in done.err


DRIVER = """
import { Commonplace } from "./plugin.mjs"
const hooks = await Commonplace({ directory: process.argv[2] })
const parts = [{ type: "text", text: "how do we deploy?" }]
await hooks["chat.message"]({ sessionID: "ses_9" }, { message: {}, parts })
const output = { system: ["You are an agent."] }
await hooks["experimental.chat.system.transform"]({ sessionID: "ses_9" }, output)
await hooks.event({ event: { type: "session.idle", properties: { sessionID: "ses_9" } } })
await hooks.dispose()
console.log(JSON.stringify(output.system))
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
def test_the_plugin_of_opencode_shows_the_brief_and_what_bears_on_the_prompt(person):
    """It runs in the program's own language, and speaks to the real command."""
    person.ok("init")
    person.ok("record", "add", "Deploy with make deploy", "--category", "procedures")
    person.ok("connect", "opencode", "--yes")
    plugin = person.home / ".config/opencode/plugins/commonplace.js"
    person.file("run/plugin.mjs", plugin.read_text())
    driver = person.file("run/driver.mjs", DRIVER)
    done = subprocess.run([shutil.which("node"), str(driver), str(person.work)], capture_output=True, text=True,
                          env=person.env | {"PATH": os.environ["PATH"]}, check=True, timeout=60)  # fmt: skip
    own, brief, recalled = json.loads(done.stdout)
    assert own == "You are an agent."
    assert "# Memory Guidance" in brief
    assert "Deploy with make deploy" in recalled
