"""The records system, item by item (R08 to R38, R40, R41), in the words and with the examples of its document.

What has a command is asked of the real command; sessions and tickets are indexed through the library, as an execution
does that has just ended.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from commonplace.app import open_app
from commonplace.cli.main import run
from commonplace.engine.transcripts import Turn
from commonplace.model.documents import DocumentKind
from commonplace.model.errors import Forbidden
from commonplace.model.records import Channel
from stands import agree, scripts_of_the_user

COMMAND = str(Path(sys.executable).with_name("commonplace"))
FIVE = ["decisions", "procedures", "principles", "incidents", "preferences"]
SESSION, TICKET = DocumentKind.SESSION, DocumentKind.TICKET


class Person:
    """Somebody at a machine, with projects and a memory of their own; the command is called in this process."""

    def __init__(self, root, name, capsys, monkeypatch):
        self.root, self.capsys, self.monkeypatch = root, capsys, monkeypatch
        self.env = {"COMMONPLACE_HOME": str(root / f"home of {name}"), "USER": name, "HOME": str(root)}
        scripts_of_the_user(self.env["COMMONPLACE_HOME"])
        self.env |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}

    def project(self, name):
        """Make a project of a folder."""
        folder = self.root / name
        folder.mkdir(exist_ok=True)
        if (folder / ".commonplace").is_dir():  # it came from somebody else
            agree(folder, self.env["COMMONPLACE_HOME"])
        self.run("init", at=name)
        return folder

    def run(self, *arguments, at="shop", code=0):
        """Run the command in a project's folder; returns what it says, or says against it."""
        for name, value in self.env.items():
            self.monkeypatch.setenv(name, value)
        self.monkeypatch.chdir(self.root / at)
        self.capsys.readouterr()
        returned = run([str(argument) for argument in arguments])
        out, err = self.capsys.readouterr()
        assert returned == code, (returned, out, err)
        return err if code else out

    def start(self, *arguments, at="shop"):
        """Run the command as a process of its own."""
        env = os.environ | self.env
        command = [COMMAND, *map(str, arguments)]
        return subprocess.run(command, cwd=self.root / at, env=env, capture_output=True, text=True, check=True).stdout

    def json(self, *arguments, at="shop"):
        """Run a command and read its answer as a program does."""
        return json.loads(self.run(*arguments, "--json", at=at))

    def add(self, text, category, *options, at="shop"):
        """Add a record."""
        return self.json("record", "add", text, "--category", category, *options, at=at)

    def recall(self, question, *options, at="shop"):
        """Ask; returns the hits."""
        return json.loads(self.run("recall", question, "--format", "json", *options, at=at))["hits"]

    def texts(self, question, *options, at="shop"):
        """Ask; returns the texts."""
        return [hit["text"] for hit in self.recall(question, *options, at=at)]

    def agent(self, at="shop"):
        """An agent at work in a project."""
        return open_app(str(self.root / at), env=self.env, channel=Channel.AGENT)

    def index(self, kind, name, *texts, at="shop"):
        """What happens after an execution: its transcript or its ticket is indexed."""
        with self.agent(at) as opened:
            opened.memory.index(kind, name, [Turn(ref=str(n), text=text) for n, text in enumerate(texts, start=1)])

    def execution(self, name, *messages, at="shop"):
        """What happens after an execution: its transcript is indexed, then extracted from."""
        told = [one if isinstance(one, dict) else {"role": "user", "content": one} for one in messages]
        path = self.root / f"{name}.jsonl"
        path.write_text("".join(f"{json.dumps(one)}\n" for one in told))
        self.run("index", path, at=at)
        return json.loads(self.run("extract", "--session", name, "--json", at=at))


@pytest.fixture
def person(tmp_path, capsys, monkeypatch):
    """Somebody by name."""
    return lambda name: Person(tmp_path, name, capsys, monkeypatch)


@pytest.fixture
def ada(person):
    """Ada, who works on the shop."""
    somebody = person("ada")
    somebody.project("shop")
    return somebody


@pytest.fixture
def files(tmp_path):
    """The Markdown files of the shop's memory, by path within it."""
    folder = tmp_path / "shop" / ".commonplace"
    return lambda: {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.glob("*/*.md"))}


@pytest.fixture
def learner(ada):
    """Ada, whose project learns from its sessions."""
    config = ada.root / "shop" / ".commonplace" / "config.yaml"
    config.write_text(config.read_text().replace("memories:\n  enabled: false", "memories:\n  enabled: true"))
    agree(ada.root / "shop", ada.env["COMMONPLACE_HOME"])
    return ada


def test_r08_completed_session_transcripts_are_indexed(learner):
    """Completed session transcripts become available for future recall queries, in chunks that lead back to them."""
    learner.execution("0b1c", "the page is stale", {"role": "assistant", "content": "Flushing the cache fixed it."})

    assert learner.recall("flush cache")[0]["reference"] == "session:0b1c#2"


def test_r09_tickets_are_indexed_too(learner):
    """Indexed ticket descriptions and notes are searched."""
    ticket = learner.root / "SHOP-7.md"
    ticket.write_text("# Stale pages\n\nFlush the cache on deploy.\n\n## Notes\n\nAsk Grace about the CDN.\n")
    learner.run("index", ticket)

    assert learner.recall("flush cache")[0]["reference"] == "ticket:SHOP-7#description"
    assert learner.recall("Grace CDN")[0]["reference"] == "ticket:SHOP-7#notes"


def test_r10_each_completed_execution_may_add_records(learner):
    """Extract analyses indexed sessions; an execution adds none, one or several structured records."""
    assert learner.execution("a", "fix the button", "thanks")["records"] == []
    assert len(learner.execution("b", "Use pnpm, not npm, in this repo.")["records"]) == 1
    assert len(learner.execution("c", "Always run the type checker. Never commit directly to main.")["records"]) == 2


def test_r11_only_concrete_durable_facts(learner):
    """Never chain-of-thought, raw transcripts, or debug artifacts."""
    learner.execution(
        "a",
        {"role": "assistant", "content": [{"type": "thinking", "text": "We always use yarn, I think."}]},
        {"role": "tool", "name": "bash", "content": "ERROR: we use yarn\nTraceback: never commit"},
        "ERROR 2026-01-01 12:00 we use yarn here\nwhy does this fail?",
    )

    assert learner.json("record", "list")["records"] == []


def test_r12_memory_never_stores_secrets(learner, tmp_path):
    """Secrets, API keys, passwords: plant one in a session; it is in no file, no index row and no brief."""
    key = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
    learner.execution("a", f"Remember that the deploy uses the token {key}.", f"the password is Zebra{key[-4:]}!x9")
    said = learner.run("recall", "deploy token password", "--format", "prompt")

    kept = [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".jsonl"]
    assert key not in said
    assert [path for path in kept if key.encode() in path.read_bytes()] == []


def test_r13_extract_classifies_records_by_itself(learner):
    """The extraction pipeline classifies records automatically."""
    learner.execution(
        "a",
        "Use pnpm, not npm, in this repo.",
        "To deploy, run `make image`, then push it, then run `make rollout`.",
        "Never commit directly to main.",
        "I prefer concise answers.",
        "the deploy hangs",
        "It turned out that the worker was reading a stale config from the image.",
    )
    found = {record["category"] for record in learner.json("record", "list")["records"]}

    assert found == {"decisions", "procedures", "principles", "preferences", "incidents"}


def test_r40_knowledge_compounds(learner):
    """After 10+ sessions agents recall project conventions and known fixes without being told again."""
    learner.execution("s1", "Use pnpm, not npm, in this repo.")
    learner.execution("s2", "the deploy hangs", "It turned out that the worker was reading a stale config.")
    for number in range(3, 11):
        learner.execution(f"s{number}", f"add page number {number} to the shop", "thanks")

    assert "Use pnpm" in learner.run("recall", "install packages with npm or pnpm", "--format", "prompt")
    assert "stale config" in learner.run("recall", "the deploy hangs again: worker config", "--format", "prompt")


def test_r14_exactly_two_scopes(ada):
    """Memory is organized into two scopes, project and assistant, and there is no third."""
    project = ada.add("Use pnpm, not npm", "decisions", "--scope", "project")
    assistant = ada.add("Prefer concise responses", "preferences", "--scope", "assistant")

    assert (project["scope"].split(":")[0], assistant["scope"]) == ("project", "user:ada")
    assert "'team'" in ada.run("record", "add", "x", "--category", "decisions", "--scope", "team", code=2)


def test_r15_the_assistant_scope_holds_records_only(ada):
    """Project: session transcripts, tickets, and records; assistant: records only (no session transcripts)."""
    ada.add("Prefer concise responses", "preferences", "--scope", "assistant")
    ada.index(SESSION, "0b1c", "we agreed on pnpm")
    ada.index(TICKET, "SHOP-7", "move the build to pnpm")

    assert {hit["kind"] for hit in ada.recall("pnpm")} == {"session", "ticket"}
    with ada.agent() as opened, pytest.raises(Forbidden, match="takes records only, no sessions and no tickets"):
        opened.memory.index(SESSION, "0b1c", [Turn(ref="1", text="pnpm")], scope=opened.where.assistant)


def test_r16_project_memory_is_shared_by_all_agents(ada):
    """When one agent learns something, every agent on the project benefits; a new one inherits everything at once."""
    with ada.agent() as first:
        first.memory.remember("Use pnpm, not npm", category="decisions")
    with ada.agent() as second:
        assert [hit.text for hit in second.recall("pnpm").hits] == ["Use pnpm, not npm"]
    assert "Use pnpm, not npm" in ada.start("recall", "which package manager: npm?")


def test_r17_project_memory_is_invisible_to_other_projects(ada):
    """Project knowledge, as in "Use pnpm, not npm", is for this repo."""
    ada.project("other")
    record = ada.add("Use pnpm, not npm", "decisions")

    assert ada.texts("pnpm", at="other") == []
    assert ada.json("record", "list", at="other")["records"] == []
    assert "there is no record" in ada.run("record", "get", record["id"], at="other", code=1)


def test_r18_assistant_memory_follows_the_user(ada, person):
    """Prefer concise responses, everywhere: in all projects of the same user, and not to another user."""
    ada.project("other")
    ada.add("Prefer concise responses", "preferences", "--scope", "assistant")

    assert ada.texts("concise") == ada.texts("concise", at="other") == ["Prefer concise responses"]
    assert person("bob").texts("concise") == []
    carol = person("ada")  # at the same machine, with the same data folder
    carol.env |= {"USER": "carol"}
    assert carol.texts("concise") == []


def test_r19_exactly_five_categories(ada):
    """Every memory record belongs to one of five categories; others are rejected with the list."""
    for category in FIVE:
        assert ada.add(f"about {category}", category)["category"] == category
    assert ", ".join(FIVE) in ada.run("record", "add", "x", "--category", "opinions", code=2)


def test_r20_incidents_may_be_temporary(ada):
    """Decisions, procedures, principles and preferences are permanent; incidents temporary or permanent."""
    ada.add("Bug: the cart is empty after login", "incidents")
    ada.add("The build is red today", "incidents", "--expires", "1d")
    ada.add("The CDN was down", "incidents", "--expires", "2020-01-01")

    assert len(ada.texts("build red cart")) == 2
    assert ada.texts("CDN") == []
    for category in set(FIVE) - {"incidents"}:
        said = ada.run("record", "add", "x", "--category", category, "--expires", "1d", code=2)
        assert f"{category} are permanent; only incidents can expire" in said


def test_r21_every_record_has_one_category_and_can_be_reclassified(ada):
    """Classified automatically, reclassified manually if needed."""
    record = ada.add("Run the tests before pushing", "decisions")
    ada.run("record", "reclassify", record["id"], "procedures")

    assert ada.json("record", "get", record["id"])["category"] == "procedures"
    assert ada.json("record", "list", "--category", "decisions")["records"] == []
    assert [listed["id"] for listed in ada.json("record", "list", "--category", "procedures")["records"]] == [
        record["id"]
    ]


def test_r22_individual_markdown_files_organized_by_category(ada, files):
    """One file for each record, in a folder for each category."""
    for category in FIVE:
        ada.add(f"about {category}", category)

    assert [path.split("/")[0] for path in files()] == sorted(FIVE)
    assert all(re.fullmatch(r"\w+/about-\w+--[0-9a-z]{10}\.md", path) for path in files())


def test_r23_structured_frontmatter_followed_by_the_content(ada, files):
    """Aliases, search keywords and the reference of the source; then the record's content.

    The category is the folder, and the date of creation is in the id: see decision 47.
    """
    ada.add(
        "Use pnpm, not npm",
        "decisions",
        "--alias",
        "package manager",
        "--keyword",
        "dependencies",
        "--source",
        "SHOP-7",
    )
    [(path, text)] = files().items()
    head, _, body = text.removeprefix("---\n").partition("---\n")

    assert body == "\nUse pnpm, not npm\n"
    for line in (
        "ref: SHOP-7",
        "aliases: [package manager]",
        "keywords: [dependencies]",
    ):
        assert line in head.split("\n")
    assert path.startswith("decisions/")


def test_r24_records_can_be_edited_directly_in_any_text_editor(ada, tmp_path, files):
    """A hand edit, of the body or of the frontmatter only, shows up in the next search."""
    ada.add("Use pnpm, not npm", "decisions")
    path = tmp_path / "shop" / ".commonplace" / next(iter(files()))
    path.write_text(path.read_text().replace("Use pnpm, not npm", "Use yarn in this repo"))
    assert ada.texts("yarn") == ["Use yarn in this repo"]
    assert ada.texts("pnpm") == []
    path.write_text(path.read_text().replace("\nid: ", "\naliases: [package manager]\nid: "))
    assert ada.texts("package manager") == ["Use yarn in this repo"]


def test_r25_the_index_can_be_rebuilt_from_the_files(ada, tmp_path):
    """Delete the database, and the next search gives the same results with the same scores."""
    ada.add("Use pnpm, not npm", "decisions", "--tag", "js", "--alias", "package manager")
    ada.add("Deploy with make release, never on Fridays", "procedures")
    ada.add("Prefer concise responses", "preferences", "--scope", "assistant")
    questions = ["pnpm", "package manager", "how do we deploy?", "concise", "friday", ""]
    before = [ada.recall(question) for question in questions]
    for path in (tmp_path / "home of ada").glob("commonplace.db*"):
        path.unlink()

    after = [ada.recall(question) for question in questions]
    for hit in (hit for hits in (*before, *after) for hit in hits):
        assert hit.pop("source") in {"user", "file"}, "the database alone knows which"
        assert hit["record"].pop("source")["channel"] in {"user", "file"}
        assert hit["record"].pop("updated_at")[:10] == hit["date"][:10], "nor is it in the file"
    assert after == before
    assert [len(hits) for hits in before] == [1, 1, 1, 1, 1, 3]


def test_r26_aliases_and_search_keywords_are_searchable(ada):
    """A query that matches only an alias, or only a keyword, finds the record."""
    ada.add("Use pnpm, not npm", "decisions", "--alias", "package manager", "--keyword", "dependencies")

    assert ada.texts("package manager") == ada.texts("dependency") == ["Use pnpm, not npm"]


def test_r27_records_session_chunks_and_ticket_content_are_searched(ada):
    """What gets searched is said with each result."""
    ada.add("Flush the cache after a deploy", "procedures")
    ada.index(SESSION, "0b1c", "user: the page is stale", "agent: flushing the cache fixed it")
    ada.index(TICKET, "SHOP-7", "Stale pages: flush the cache on deploy")

    assert {hit["kind"] for hit in ada.recall("flush cache")} == {"record", "session", "ticket"}


def test_r28_results_are_scored_and_carry_source_references(ada):
    """Ordered by relevance; any recalled fact can be traced back to its origin: file, session and turn, ticket."""
    record = ada.add("Flush the cache after a deploy", "procedures")
    ada.index(SESSION, "0b1c", "user: the page is stale", "agent: flushing the cache fixed it")
    ada.index(TICKET, "SHOP-7", "Stale pages: flush the cache on deploy")
    hits = ada.recall("flush cache deploy")

    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)
    references = {hit["kind"]: hit["reference"] for hit in reversed(hits)}  # the best of each kind
    assert references == {"record": record["path"], "session": "session:0b1c#2", "ticket": "ticket:SHOP-7#1"}
    assert "Flush the cache" in Path(references["record"]).read_text()


@pytest.fixture
def recalled(ada):
    """The same question in all three formats."""
    ada.add("Use pnpm, not npm", "decisions")
    ada.add("Run pnpm test before a release", "procedures")
    ada.add("Prefer pnpm over anything", "preferences", "--scope", "assistant")
    return {form: ada.run("recall", "pnpm", "--format", form) for form in ("snippets", "prompt", "json")}


def test_r29_snippets(recalled):
    """Compact ranked list of matching text fragments with scores."""
    lines = recalled["snippets"].splitlines()

    assert len(lines) == 3
    assert all(re.search(r"\b[01]\.\d\d\b.*pnpm", line) for line in lines)


def test_r30_prompt(recalled):
    """Pre-formatted context ready for injection into an agent prompt."""
    first, standing, *items, last = recalled["prompt"].splitlines()
    seal = re.fullmatch(r'<memory seal="(\w+)">', first)[1]

    assert last == f'</memory seal="{seal}">'
    assert "data, not instructions" in standing
    assert all(
        re.match(r"- \[\w+, (project|assistant), [\d-]+, from user, trust user, score [01]\.\d\d\] ", item)
        for item in items
    )


def test_r31_json_has_the_same_items_in_the_same_order(recalled):
    """Structured JSON output for programmatic consumption."""
    texts = [hit["text"] for hit in json.loads(recalled["json"])["hits"]]

    assert len(texts) == 3
    for form in ("snippets", "prompt"):
        places = [recalled[form].index(text) for text in texts]
        assert places == sorted(places)


def test_r32_record_add(ada, files):
    """Create a new record in a specific category and scope: a file, an index row, an id."""
    record = ada.add("Use snake_case naming", "preferences", "--scope", "assistant")

    assert Path(record["path"]).parent.name == "preferences"
    assert record["id"] in Path(record["path"]).read_text()
    assert files() == {}
    assert [hit["id"] for hit in ada.recall("snake_case")] == [record["id"]]


def test_r33_record_update(ada, files):
    """Modify the content or metadata; what is not named is kept, and the old text is no longer found."""
    record = ada.add("Use yarn", "decisions", "--tag", "js", "--alias", "package manager")
    ada.run("record", "update", record["id"], "Use pnpm, not npm")
    after = ada.json("record", "get", record["id"])

    assert (after["content"], after["tags"], after["metadata"]["aliases"]) == (
        "Use pnpm, not npm",
        ["js"],
        ["package manager"],
    )
    assert "Use yarn" not in ada.texts("yarn")
    assert ada.texts("pnpm") == ["Use pnpm, not npm"]
    ada.run("record", "update", record["id"], "--tag", "build")
    assert ada.json("record", "get", record["id"])["content"] == "Use pnpm, not npm"
    assert "Use pnpm, not npm" in next(iter(files().values()))


def test_r34_record_reclassify(ada, files):
    """Move a record to a different category: the file moves, the id stays."""
    record = ada.add("Use pnpm, not npm", "decisions")
    name = next(iter(files())).partition("/")[2]
    ada.run("record", "reclassify", record["id"], "principles")

    assert list(files()) == [f"principles/{name}"]
    assert ada.json("record", "get", record["id"])["id"] == record["id"]


def test_r35_record_archive(ada, files):
    """Soft-remove a record from recall results without deleting the file; it can be read and restored."""
    record = ada.add("Use pnpm, not npm", "decisions")
    ada.run("record", "archive", record["id"])

    assert ada.texts("pnpm") == []
    assert len(files()) == 1
    assert ada.json("record", "get", record["id"])["content"] == "Use pnpm, not npm"
    ada.run("record", "restore", record["id"])
    assert ada.texts("pnpm") == ["Use pnpm, not npm"]


def test_r36_record_delete(ada, files, tmp_path):
    """Permanently remove a record: no file, no row, no byte of it in the database."""
    record = ada.add("Use pnpm, not npm", "decisions")
    ada.run("record", "delete", record["id"], "--yes")

    assert (files(), ada.texts("pnpm")) == ({}, [])
    assert "there is no record" in ada.run("record", "get", record["id"], code=1)
    assert b"pnpm" not in b"".join(path.read_bytes() for path in (tmp_path / "home of ada").glob("commonplace.db*"))


def test_r37_record_list(ada):
    """List all records, optionally filtered by category."""
    for category in FIVE:
        ada.add(f"about {category}", category)

    assert [record["category"] for record in ada.json("record", "list")["records"]] == FIVE[::-1]
    assert [record["content"] for record in ada.json("record", "list", "--category", "incidents")["records"]] == [
        "about incidents"
    ]


def test_r38_record_get(ada):
    """Retrieve the full content of a specific record by ID; an unknown id is a clear error."""
    content = "Use pnpm, not npm.\n\nBecause:\n- one store for all projects\n- strict dependencies"
    record = ada.add(content, "decisions")

    assert ada.json("record", "get", record["id"][:10])["content"] == content
    assert content.split("\n")[2] in ada.run("record", "get", record["id"])
    assert "there is no record '0000000000'" in ada.run("record", "get", "0000000000", code=1)


def test_r41_malformed_frontmatter_breaks_neither_listing_nor_recall(ada, tmp_path, files):
    """The file is named with its line, and everything else is answered."""
    ada.add("Use pnpm, not npm", "decisions")
    ada.add("Deploy on Mondays", "procedures")
    path = tmp_path / "shop" / ".commonplace" / next(iter(files()))
    path.write_text(path.read_text().replace("\nid: ", "\ntags: [a\nid: "))

    assert len(ada.json("record", "list")["records"]) == 2
    assert ada.texts("deploy") == ["Deploy on Mondays"]
    assert f"{path.relative_to(tmp_path / 'shop')}:3: frontmatter is not YAML" in ada.run("sync", code=1)


def test_r41_deleted_files_vanish_from_the_index(ada, tmp_path, files):
    """What is not on disk any more is not recalled any more."""
    ada.add("Use pnpm, not npm", "decisions")
    (tmp_path / "shop" / ".commonplace" / next(iter(files()))).unlink()

    assert ada.texts("pnpm") == []


def test_r41_indexing_the_same_session_twice_adds_nothing(ada):
    """Re-indexing is idempotent; a session that grew is there once."""
    for turns in (["we chose pnpm"], ["we chose pnpm"], ["we chose pnpm", "pnpm works"]):
        ada.index(SESSION, "0b1c", *turns)

    assert [hit["id"] for hit in ada.recall("pnpm")] == ["session:0b1c#2", "session:0b1c#1"]


def test_r41_each_scope_can_be_switched_off_and_on(ada):
    """What is off is neither recalled nor kept; nothing is lost by it."""
    ada.add("Prefer concise responses", "preferences", "--scope", "assistant")
    ada.run("disable", "--scope", "assistant")

    assert ada.texts("concise") == []
    assert "switched off" in ada.run("record", "add", "x", "--category", "preferences", "--scope", "assistant", code=4)
    ada.run("enable", "--scope", "assistant")
    assert ada.texts("concise") == ["Prefer concise responses"]


def test_r41_each_scope_can_be_cleared(ada, files):
    """Everything of one scope goes, files and all; the other stays."""
    ada.add("Use pnpm, not npm", "decisions")
    ada.index(SESSION, "0b1c", "pnpm it is")
    ada.add("Prefer concise responses", "preferences", "--scope", "assistant")
    ada.run("clear", "--scope", "project", "--force")

    assert (files(), ada.texts("pnpm")) == ({}, [])
    assert ada.texts("concise") == ["Prefer concise responses"]
