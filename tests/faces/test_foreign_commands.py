"""``import --from`` and ``export --to``: other tools' memory in and out through the command."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

GUIDE = "# Shop\n\n## Rules\n\n- Never commit directly to main.\n- Use pnpm, not npm.\n"


@pytest.fixture
def guided(cli):
    """A project with guidance that its people wrote for other tools."""
    Path("AGENTS.md").write_text(GUIDE, encoding="utf-8")
    Path("web").mkdir()
    Path("web/CLAUDE.md").write_text("The storefront is written in Svelte 5.\n", encoding="utf-8")
    Path("node_modules").mkdir()
    Path("node_modules/AGENTS.md").write_text("Somebody else's rules about lint.\n", encoding="utf-8")
    return cli


def test_guidance_comes_in_with_its_origin_and_least_trust(guided):
    """Every file of the tree, but of no dependency; who reads it sees where it is from."""
    done = guided.ok("import", ".", "--from", "agents-md")
    assert done.out == "Imported 3 records (0 duplicates) from 2 files.\n"
    [hit] = [hit for hit in guided.ok("recall", "svelte", "--format", "json").json["hits"] if "Svelte" in hit["text"]]
    record = guided.get(hit["id"])
    assert (record["trust"], record["source"]["channel"]) == ("external", "import")
    assert record["source"]["ref"].startswith("web/CLAUDE.md#")
    assert Path("AGENTS.md").read_text(encoding="utf-8") == GUIDE


def test_a_second_import_brings_nothing_back(guided):
    """Twice is once; what was archived or edited since stays so; only news come in."""
    guided.ok("import", ".", "--from", "agents-md")
    hits = guided.ok("recall", "pnpm", "--format", "json").json["hits"]
    [pnpm] = [hit["id"] for hit in hits if "pnpm" in hit["text"]]
    guided.ok("record", "archive", pnpm)
    Path("AGENTS.md").write_text(GUIDE + "- Tabs are four wide.\n", encoding="utf-8")
    assert guided.ok("import", ".", "--from", "agents-md").out == "Imported 1 record (3 duplicates) from 2 files.\n"
    assert "Use pnpm, not npm." not in guided.recall("pnpm npm")


def test_looking_first_keeps_nothing(guided):
    """--dry-run shows what would be kept, with its category."""
    shown = guided.ok("import", ".", "--from", "agents-md", "--dry-run").lines
    assert shown == [
        "principles: Never commit directly to main.",
        "principles: Use pnpm, not npm.",
        "principles: The storefront is written in Svelte 5.",
    ]
    assert guided.recall("svelte") == []


def test_all_of_it_can_have_one_category(guided):
    """--category decides over what was guessed."""
    guided.ok("import", ".", "--from", "agents-md", "--category", "decisions")
    assert {record["category"] for record in guided.ok("record", "list", "--json").json["records"]} == {"decisions"}


def test_one_bad_line_keeps_nothing(cli):
    """A graph that cannot be read to its end leaves memory as it was."""
    entity = {"type": "entity", "name": "Ada", "entityType": "person", "observations": ["likes green tea"]}
    Path("graph.jsonl").write_text(json.dumps(entity) + "\nnonsense\n", encoding="utf-8")
    done = cli("import", "graph.jsonl", "--from", "mcp-graph")
    assert done.code == 2
    assert "graph.jsonl:2: not JSON" in done.err
    assert cli.recall("tea") == []


def test_a_fact_that_is_too_long_costs_no_other(cli):
    """It is left out by name."""
    rows = [{"id": 1, "memory": "x " * 20_000}, {"id": 2, "memory": "Likes hiking in Wales"}]
    Path("m.json").write_text(json.dumps(rows), encoding="utf-8")
    done = cli.ok("import", "m.json", "--from", "mem0")
    assert done.out == "Imported 1 record (0 duplicates) from 1 file.\n"
    assert "left out: mem0:1#" in done.err


@pytest.mark.parametrize("sort", ["mem0", "initrunner"])
def test_half_a_letter_costs_no_other_fact(cli, sort):
    """A text that was cut in the middle of a picture letter is left out by name."""
    name = {"mem0": "memory", "initrunner": "content"}[sort]
    rows = [{"id": 1, name: "Likes \ud83d"}, {"id": 2, name: "Likes hiking in Wales"}]
    Path("m.json").write_text(json.dumps(rows), encoding="utf-8")
    done = cli.ok("import", "m.json", "--from", sort)
    assert done.out == "Imported 1 record (0 duplicates) from 1 file.\n"
    assert "the content is not valid Unicode" in done.err


def test_a_secret_in_it_is_not_kept(cli):
    """What comes in passes the gate."""
    rows = [{"id": 1, "memory": "The database password is hunter2-Sesame-99x"}]
    Path("m.json").write_text(json.dumps(rows), encoding="utf-8")
    assert "a secret (" in cli.ok("import", "m.json", "--from", "mem0").err
    assert "hunter2" not in str(cli.recall("database password"))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere", "--from", "mem0"], "there is no 'nowhere'"),
        ([".", "--from", "basic-memory"], "nothing in '.' looks like basic-memory"),
        (["f", "--category", "decisions"], "cannot be read"),
        (["f", "--from", "mem0", "--role", "r.yaml"], "--role goes with --from lance, not with --from mem0"),
    ],
)
def test_a_wrong_call_is_answered_in_words(cli, arguments, says):
    """One sentence that names the thing."""
    done = cli("import", *arguments)
    assert (done.code, says in done.err) == (2, True), done


def test_agents_md_gets_our_block_and_keeps_its_own(guided):
    """Between marks, once; what is not ours stays; what came from outside is not handed on as guidance."""
    guided.ok("import", ".", "--from", "agents-md")
    guided.add("The cache is Redis 7", "decisions")
    for _ in range(2):
        guided.ok("export", "--to", "agents-md")
    text = Path("AGENTS.md").read_text(encoding="utf-8")
    assert text.startswith(GUIDE)
    assert text.count("- The cache is Redis 7 (record ") == 1
    assert "Svelte" not in text
    assert guided.ok("import", ".", "--from", "agents-md").out.startswith("Imported 0 records")


def test_a_file_that_we_write_into_keeps_its_rights(cli):
    """What a person has kept to themselves stays so."""
    cli.add("The cache is Redis 7", "decisions")
    Path("AGENTS.md").write_text(GUIDE, encoding="utf-8")
    Path("AGENTS.md").chmod(0o600)
    cli.ok("export", "--to", "agents-md")
    assert Path("AGENTS.md").stat().st_mode & 0o777 == 0o600


def test_claude_codes_folder_gets_a_note_and_an_index_line(cli):
    """The note is ours, in the index one line is."""
    cli.add("The cache is Redis 7", "decisions")
    folder = Path("memory")
    folder.mkdir()
    (folder / "MEMORY.md").write_text("- [Mine](mine.md)\n", encoding="utf-8")
    cli.ok("export", "memory", "--to", "claude-memory")
    assert "- The cache is Redis 7" in (folder / "commonplace.md").read_text(encoding="utf-8")
    index = (folder / "MEMORY.md").read_text(encoding="utf-8")
    assert index.startswith("- [Mine](mine.md)\n")
    assert "](commonplace.md)" in index


def test_skills_are_linked_where_a_host_looks(cli):
    """A skill of ours is linked once; a folder of somebody else's of that name stays."""
    for name in ("deploy", "test"):
        skill = Path(".commonplace/skills", name)
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text(f"---\nname: {name}\ndescription: x\n---\nDo it.\n", encoding="utf-8")
    Path(".claude/skills/test").mkdir(parents=True)
    for _ in range(2):
        done = cli.ok("export", "--to", "skills")
    assert Path(".claude/skills/deploy/SKILL.md").read_text(encoding="utf-8").endswith("Do it.\n")
    assert Path(".claude/skills/deploy").is_symlink()
    assert "was not made by commonplace" in done.err


def test_without_skills_it_says_so(cli):
    """Nothing to link is no error."""
    assert "there are no skills yet" in cli.ok("export", "--to", "skills").err


@pytest.mark.parametrize("sort", ["pipe", "folder"])
def test_guidance_is_written_into_a_file_only(cli, sort):
    """A pipe has nothing to keep around our block: it is refused, and nobody waits for it."""
    (os.mkfifo if sort == "pipe" else os.mkdir)("AGENTS.md")
    done = cli.start("export", "--to", "agents-md")
    assert (done.code, "'AGENTS.md' is not a file" in done.err) == (2, True)
