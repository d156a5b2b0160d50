"""The everyday commands, the parts of the help, names of before, and what a mistyped word is answered with."""

from __future__ import annotations

import click
import pytest

from commonplace.cli.commands import PARTS, all_commands, root
from commonplace.hosts.registry import HOSTS


def test_the_everyday_commands_do_what_the_long_ones_do(cli):
    """`add`, `list`, `show`, `search` and `edit` act on the same records as `record ...` and `recall`."""
    added = cli.ok("add", "Use pnpm, not npm", "--category", "decisions", "--json").json
    assert cli.ok("show", added["id"]).out == cli.ok("record", "get", added["id"]).out
    assert cli.ok("list").out == cli.ok("record", "list").out
    assert "Use pnpm" in cli.ok("search", "package manager: pnpm").out
    cli.ok("edit", added["id"], "Use yarn, not npm", "--add-tag", "js")
    changed = cli.get(added["id"])
    assert (changed["content"], changed["tags"]) == ("Use yarn, not npm", ["js"])
    cli.ok("forget", added["id"], "--yes")
    assert cli.ok("list", "--json").json["records"] == []


def test_edit_opens_the_editor_when_nothing_is_given(cli, pnpm):
    """The content is what the editor has saved."""
    editor = cli.folder / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/pnpm/bun/" "$1"\n')
    editor.chmod(0o700)
    cli.env(EDITOR=editor)
    cli.ok("edit", pnpm["id"])
    assert cli.get(pnpm["id"])["content"] == "Use bun, not npm, in this repository"


def test_edit_with_options_alone_opens_no_editor(cli, pnpm):
    """What is given is changed, and no more."""
    cli.env(EDITOR="/bin/false")
    cli.ok("edit", pnpm["id"], "--tag", "tools")
    assert cli.get(pnpm["id"])["tags"] == ["tools"]


@pytest.mark.parametrize("name", ["recall", "search"])
def test_recall_prints_json_like_every_other_command(cli, pnpm, name):
    """`--json` is `--format json`."""
    assert cli.ok(name, "pnpm", "--json").out == cli.ok("recall", "pnpm", "--format", "json").out
    assert cli.ok(name, "pnpm", "--json").json["hits"][0]["id"] == pnpm["id"]


def test_a_list_is_limited_by_time_source_and_trust_and_sorted(cli):
    """`--since`, `--source`, `--trust` and `--sort` say which records, and in which order."""
    first = cli.add("The first", "facts")["id"]
    second = cli.add("The second", "facts", "--source", "TICKET-7")["id"]

    def ids(*options):
        return [one["id"] for one in cli.ok("list", "--json", *options).json["records"]]

    assert ids() == [second, first]
    assert ids("--sort", "oldest") == [first, second]
    assert ids("--source", "TICKET-7") == [second]
    assert ids("--source", "user") == [second, first]
    assert ids("--source", "import") == []
    assert (ids("--since", "1h"), ids("--since", "2100-01-01")) == ([second, first], [])
    assert (ids("--trust", "user"), ids("--trust", "agent")) == ([second, first], [])
    assert "--before" in cli("list", "--before", first, "--sort", "oldest").err


def test_every_command_is_in_one_part_of_the_help(outside):
    """Commands are grouped; an earlier name of one is in no part and still works."""
    out = outside.ok("--help").out
    assert [line[:-1] for line in out.splitlines() if line.endswith(":") and line[:-1] in PARTS] == list(PARTS)
    assert {listed.part for listed in all_commands().values()} <= {*PARTS, ""}
    assert out.index("Everyday:") < out.index("  add ") < out.index("Project:")
    assert "\n  restore " not in out


OLD = {
    ("memory", "reset"): ("memory", "clear"), ("memory", "rebuild"): ("memory", "enqueue"),
    ("memory", "list"): ("role", "list"), ("memory", "export"): ("role", "export"),
    ("memory", "consolidate"): ("role", "consolidate"), ("restore",): ("restore-backup",),
}  # fmt: skip


def test_each_act_has_one_name_and_the_earlier_one_still_works():
    """An earlier name runs the same function and has no line in the help."""

    def command(words):
        found = root
        for word in words:
            found = found.get_command(click.Context(root), word)
        return found

    assert {old: command(old).callback for old in OLD} == {old: command(new).callback for old, new in OLD.items()}
    shown = set(command(("memory",)).list_commands(click.Context(root)))
    assert shown == {"view", "clear", "enqueue"}


MISTYPED = {
    ("recal", "x"): "did you mean 'recall'?", ("serach", "x"): "did you mean 'search'?",
    ("remember", "x"): "did you mean 'add'?", ("rm", "x"): "did you mean 'forget'?", ("ls",): "did you mean 'list'?",
    ("record", "ad"): "did you mean 'add'?", ("role", "lst"): "did you mean 'list'?",
    ("qqqq",): "see `commonplace --help`", ("add", "x", "--categry", "facts"): "did you mean '--category'?",
    ("add", "x", "--category", "decision"): "did you mean 'decisions'?",
    ("search", "x", "--category", "fact"): "did you mean 'facts'?",
    ("edit", "1", "--expcet", "1"): "did you mean '--expect'?",
    ("connect", "clade-code"): "did you mean 'claude-code'?",
}  # fmt: skip


def test_a_mistyped_word_is_answered_with_the_one_that_was_meant(cli):
    """Commands, options, categories and hosts; the exit code is that of a usage error."""
    failed = {}
    for words, meant in MISTYPED.items():
        done = cli(*words)
        if done.code != 2 or meant not in done.err or "?; see" in done.err:
            failed[words] = done
    assert failed == {}
    assert "claude-code" in HOSTS


def test_a_mistyped_setting_is_answered_with_the_one_that_was_meant(cli):
    """The file is named too."""
    (cli.home / "config.yaml").write_text("enabld: true\n", encoding="utf-8")
    done = cli("list")
    assert done.code == 5
    assert "enabld: unknown setting" in done.err
    assert "did you mean 'enabled'?" in done.err
