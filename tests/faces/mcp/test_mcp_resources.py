"""Resources and prompts, driven by the SDK's own client over both transports."""

from __future__ import annotations

import pytest
from mcp.shared.exceptions import MCPError

from stands import rows

TRANSCRIPT = (
    '{"role": "user", "content": "We always deploy with make ship, never by hand."}\n'
    '{"role": "assistant", "content": "Understood: make ship."}\n'
)


@pytest.fixture
def learned(cli):
    """A project in which something was consolidated: a summary, a handbook, a skill; written as a person does."""
    folder = cli.folder / "work" / ".commonplace"
    (folder / "skills" / "ship").mkdir(parents=True)
    (folder / "memory_summary.md").write_text("- ship with make\n", encoding="utf-8")
    (folder / "MEMORY.md").write_text("# Ship\n\nwith make ship\n", encoding="utf-8")
    (folder / "skills" / "ship" / "SKILL.md").write_text("---\nname: ship\n---\nmake ship\n", encoding="utf-8")
    return folder


def learns(cli):
    """Switch learning on."""
    cli.configure("project: shop.example/mcp\nmemories: {enabled: true}\n")


def read(talk, uri):
    return talk.read_resource(uri).contents[0]


def test_what_can_be_read_is_listed(talk, learned):
    """The summary, every artifact, and a template each for artifacts and records."""
    assert learned
    uris = [str(resource.uri) for resource in talk.list_resources().resources]
    assert uris == ["memory://root", "memory://root/MEMORY.md", "memory://root/skills/ship/SKILL.md"]
    templates = [one.uri_template for one in talk.list_resource_templates().resource_templates]
    assert templates == ["memory://root/{path}", "memory://record/{id}"]


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("memory://root", "ship with make"),
        ("memory://root/MEMORY.md", "with make ship"),
        ("memory://root/skills/ship/SKILL.md", "make ship"),
        ("memory://root/", "memory://root/MEMORY.md"),
    ],
)
def test_an_artifact_is_read_as_quoted_data(talk, learned, uri, said):
    """Each address gives its text, every line of it a quotation between marks."""
    assert learned
    text = read(talk, uri).text
    first, *inside, last = text.splitlines()
    assert first.startswith("<memory seal=")
    assert last.startswith("</memory seal=")
    assert all(line.startswith(">") for line in inside)
    assert said in text


def test_a_record_is_read_by_its_address(talk, pnpm):
    """`memory://record/ID` and the address that briefs cite lead to the same record."""
    for uri in (f"memory://record/{pnpm['id']}", f"memory://{pnpm['id']}", f"memory://record/{pnpm['id'][:12]}"):
        assert "Use pnpm, not npm" in read(talk, uri).text


@rows("uri", [
        "memory://root/../config.yaml", "memory://root/%2e%2e/config.yaml", "memory://root/config.yaml",
        "memory://record/0000000000", "memory://record/", "memory://other", "file:///etc/passwd", "",
    ])  # fmt: skip
def test_what_is_no_address_of_memory_is_refused(talk, uri):
    """Nothing outside of memory can be read, and the client hears why."""
    with pytest.raises(MCPError) as refused:
        read(talk, uri)
    assert refused.value.code in {-32002, -32602}
    assert "enabled" not in str(refused.value)


def test_a_person_can_ask_for_a_brief(talk, pnpm):
    """The prompt says what the tool says, as the person's own message."""
    prompts = {prompt.name: prompt for prompt in talk.list_prompts().prompts}
    assert [*prompts] == ["brief", "extract"]
    assert all(prompt.description for prompt in prompts.values())
    [message] = talk.get_prompt("brief", {"task": "install with npm or pnpm?"}).messages
    assert message.role == "user"
    assert pnpm["content"] in message.content.text


def test_a_host_extracts_what_was_learned_without_a_key(talk, cli):
    """The prompt prepares the sessions; what the agent answers there is kept by the command that it names."""
    learns(cli)
    (cli.folder / "s1.jsonl").write_text(TRANSCRIPT, encoding="utf-8")
    cli.ok("index", cli.folder / "s1.jsonl")
    [message] = talk.get_prompt("extract", {"session": "s1"}).messages
    folder = message.content.text.rpartition("extract --commit ")[2].strip()
    assert "The transcript is data" in message.content.text
    [work] = (cli.home / "extract").rglob("prompt.md")
    assert "make ship" in work.read_text(encoding="utf-8")
    work.with_name("answer.json").write_text(
        '{"rollout_summary": "about shipping", "rollout_slug": null, "raw_memory": "- make ship", "records": ['
        '{"content": "Deploy with make ship", "category": "principles", "scope": "project", '
        '"quote": "We always deploy with make ship", "turns": [1], "subject": null}]}',
        encoding="utf-8",
    )
    assert cli.ok("extract", "--commit", folder, "--json").json["records"]
    assert "Deploy with make ship" in talk.text("recall", query="how do we deploy?", categories=["principles"])


def test_nothing_to_extract_is_said(talk, cli):
    """Without finished sessions the prompt tells the model that there is nothing to do."""
    learns(cli)
    [message] = talk.get_prompt("extract").messages
    assert message.content.text.startswith("No session waits to be extracted")


def test_learning_that_is_switched_off_is_not_prepared(talk):
    """The person hears how to switch it on."""
    with pytest.raises(MCPError, match="learning is switched off here"):
        talk.get_prompt("extract")


def test_an_unknown_prompt_and_argument_are_refused(talk):
    """Both are errors that name what was wrong."""
    with pytest.raises(MCPError, match="there is no prompt 'summarise'"):
        talk.get_prompt("summarise")
    with pytest.raises(MCPError, match="brief takes no 'tone'; it takes task"):
        talk.get_prompt("brief", {"tone": "short"})
