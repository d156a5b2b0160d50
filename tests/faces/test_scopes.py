"""Two memories, as the command sees them: the project's and the user's own."""

from __future__ import annotations

import os
import shutil

import pytest

from commonplace.app import open_app
from commonplace.engine.transcripts import Turn
from commonplace.model.documents import DocumentKind
from commonplace.model.errors import Forbidden
from stands import agree


def test_there_are_exactly_two_scopes(cli):
    """R14: any other name is refused with the two."""
    for arguments in (
        ["recall", "x", "--scope", "team"],
        ["record", "list", "--scope", "team"],
        ["sync", "--scope", "all"],
    ):
        done = cli(*arguments)
        assert done.code == 2
        assert "'project', 'assistant'" in done.err


def test_a_new_agent_of_the_project_inherits_everything(cli, pnpm):
    """R16: whoever asks from anywhere in the project sees what anybody kept there."""
    cli.at(cli.folder / "work/src/deep/inside")
    assert cli.recall("pnpm") == [pnpm["content"]]
    assert cli.start("recall", "pnpm").out.count("pnpm") >= 1


def test_another_project_sees_nothing_of_it(cli, pnpm):
    """R17: project memory is invisible elsewhere, by question, by list and by id."""
    cli.at(cli.folder / "other")
    cli.ok("init")
    assert cli.recall("pnpm") == []
    assert cli.ok("record", "list", "--state", "all").out == ""
    assert cli("record", "get", pnpm["id"]).code == 1
    assert "pnpm" not in cli.ok("export").out
    assert "work" not in cli.ok("status").out.replace(str(cli.folder), "")


def test_the_own_memory_follows_its_user_and_nobody_else(cli):
    """R18: preferences are there in every project of the same user, and not of another one."""
    cli.add("Prefer short answers", "preferences", "--scope", "assistant")
    cli.at(cli.folder / "other")
    cli.ok("init")
    assert cli.recall("short answers") == ["Prefer short answers"]
    cli.env(USER="bob")
    assert cli.recall("short answers") == []


def test_outside_of_a_project_there_is_the_own_memory_and_a_hint(outside):
    """Without a repository and without .commonplace/ records go to the assistant's memory, and a hint says so."""
    done = outside.ok("record", "add", "Prefer short answers", "--category", "preferences")
    assert "preferences, assistant" in done.out
    assert "commonplace init" in done.err
    for arguments in (["record", "list"], ["status"]):
        assert "commonplace init" in outside.ok(*arguments).err
    assert outside("record", "add", "x", "--category", "decisions", "--scope", "project").code == 2


def test_init_makes_a_commented_config_and_a_readme(outside):
    """The settings explain themselves, the README says what may be committed, and doing it again changes nothing."""
    made = outside.ok("init", "--json").json
    config = outside.folder / "work/.commonplace/config.yaml"
    assert (made["made"], made["folder"]) == (True, str(config.parent))
    assert f"project: {made['project']}" in config.read_text()
    assert config.read_text().count("# ") >= 5
    assert "You can commit" in (config.parent / "README.md").read_text()
    before = config.read_bytes()
    assert "exists already" in outside.ok("init").out
    assert config.read_bytes() == before


def test_init_in_a_repository_goes_to_its_top(outside, git):
    """The project is the repository, wherever in it one stands."""
    git("init", "-q", ".")
    git("remote", "add", "origin", "git@example.com:team/app.git")
    outside.at(outside.folder / "work/deep")
    assert outside.ok("init", "--json").json["project"] == "example.com/team/app"
    assert (outside.folder / "work/.commonplace/config.yaml").exists()


def test_a_repository_without_a_folder_can_be_asked_but_not_written_to(outside, git):
    """Nothing is put into somebody's repository unasked, and nothing of the project into the user's own memory."""
    git("init", "-q", ".")
    git("remote", "add", "origin", "https://example.com/team/app")
    assert outside("recall", "anything").code == 0
    done = outside("record", "add", "Use pnpm", "--category", "decisions")
    assert done.code == 5
    assert "commonplace init" in done.err
    assert "--scope assistant" in done.err
    outside.add("Use pnpm", "decisions", "--scope", "assistant")


def test_clones_and_worktrees_share_memory(outside, git):
    """The repository is the project: a clone, a worktree and a renamed folder see the same records."""
    top = outside.folder
    git("init", "-q", "--bare", top / "origin.git")
    git("clone", "-q", top / "origin.git", top / "one")
    git("-C", top / "one", "commit", "-q", "--allow-empty", "-m", "first")
    git("-C", top / "one", "push", "-q", "origin", "HEAD")
    git("clone", "-q", top / "origin.git", top / "two")
    git("-C", top / "one", "worktree", "add", "-q", top / "tree")
    outside.at(top / "one")
    outside.ok("init")
    outside.add("Use pnpm")
    for folder in (top / "two", top / "tree"):
        outside.at(folder)
        outside.ok("trust", "--yes")
        assert outside.recall("pnpm") == ["Use pnpm"]
    shutil.move(top / "one", top / "moved")
    outside.at(top / "moved")
    outside.ok("trust", "--yes")
    assert outside.recall("pnpm") == ["Use pnpm"]


def test_a_repository_without_a_remote_is_its_first_commit(outside, git):
    """A worktree of a repository that was never pushed shares its memory too."""
    git("init", "-q", ".")
    git("commit", "-q", "--allow-empty", "-m", "first")
    git("worktree", "add", "-q", outside.folder / "tree")
    assert outside.ok("init", "--json").json["project"].startswith("commit:")
    outside.add("Use pnpm")
    outside.at(outside.folder / "tree")
    outside.ok("trust", "--yes")
    assert outside.recall("pnpm") == ["Use pnpm"]


def test_the_nearest_folder_is_the_project_outside_of_a_repository(cli, pnpm):
    """Without a repository the nearest .commonplace/ above decides."""
    cli.at(cli.folder / "work/inner")
    assert cli.recall("pnpm") == [pnpm["content"]]
    cli.at(cli.folder / "elsewhere")
    assert cli.recall("pnpm") == []


@pytest.mark.parametrize("scope", ["project", "assistant"])
def test_a_memory_is_switched_off_and_on(cli, scope):
    """R41: while it is off nothing is kept and nothing recalled; then everything is there again."""
    cli.add("The kraken sleeps", "incidents", "--scope", scope)
    assert f"{scope} memory is switched off" in cli.ok("disable", "--scope", scope).out
    assert cli.recall("kraken") == []
    for arguments in (["record", "add", "x", "--category", "incidents"], ["record", "list"], ["recall", "x"]):
        done = cli(*arguments, "--scope", scope)
        assert (done.code, f"commonplace enable --scope {scope}" in done.err) == (4, True)
    assert "switched off" in cli.ok("status").out
    assert cli.ok("enable", "--scope", scope, "--json").json["enabled"] is True
    assert cli.recall("kraken") == ["The kraken sleeps"]


def test_a_switch_turns_one_line_and_keeps_the_rest(cli):
    """R41: comments and other settings stay as their writer left them."""
    config = cli.folder / "work/.commonplace/config.yaml"
    config.write_text("# mine\nproject: local/x  # why\nenabled: true   # on for now\nrecall_limit: 3\n")
    agree(config.parents[1])
    cli.ok("disable", "--scope", "project")
    assert config.read_text() == "# mine\nproject: local/x  # why\nenabled: false   # on for now\nrecall_limit: 3\n"
    cli.ok("enable", "--scope", "project")
    assert "enabled: true   # on for now" in config.read_text()


def test_both_switched_off_says_how_to_go_on(cli):
    """R41: with both off every question is answered by how to switch them on."""
    cli.ok("disable", "--scope", "project")
    cli.ok("disable", "--scope", "assistant")
    done = cli("recall", "x")
    assert (done.code, "commonplace enable" in done.err) == (4, True)
    cli.ok("enable", "--scope", "project")
    assert cli("recall", "x").code == 0


def test_switching_needs_a_project(outside, git):
    """There is no switch where there is no project, or none yet."""
    assert outside("disable", "--scope", "project").code == 2
    git("init", "-q", ".")
    assert outside("disable", "--scope", "project").code == 5
    assert outside("disable").code == 2


@pytest.mark.parametrize("scope", ["project", "assistant"])
def test_clearing_erases_one_memory_and_leaves_the_other(cli, scope):
    """R41: records, versions and files of that memory are gone, those of the other stay."""
    for name in ("project", "assistant"):
        kept = cli.add(f"The {name} kraken", "incidents", "--scope", name)
        cli.ok("record", "update", kept["id"], f"The {name} kraken sleeps")
    assert len(cli.ok("clear", "--scope", scope, "--force", "--json").json["erased"]) == 1
    other = {"project": "assistant", "assistant": "project"}[scope]
    assert cli.recall("kraken") == [f"The {other} kraken sleeps"]
    found = b"".join(path.read_bytes() for path in cli.folder.rglob("*") if path.is_file())
    assert f"The {scope} kraken".encode() not in found


def test_clearing_takes_new_files_too(cli):
    """A file that was never synced does not come back after a clear."""
    folder = cli.folder / "work/.commonplace/decisions"
    folder.mkdir()
    (folder / "mine.md").write_text("The kraken sleeps\n")
    cli.ok("clear", "--scope", "project", "--force")
    assert cli.recall("kraken") == []
    assert list(folder.glob("*.md")) == []


def test_clearing_is_not_done_by_accident(cli, pnpm):
    """Without a terminal neither nothing nor --yes clears; only --force does."""
    done = cli("clear", "--scope", "project")
    assert (done.code, "--force says yes" in done.err) == (2, True)
    done = cli("clear", "--scope", "project", "--yes")
    assert (done.code, "--force" in done.err) == (2, True)
    assert cli("clear", "--force").code == 2
    assert cli.get(pnpm["id"])


@pytest.mark.usefixtures("cli")
def test_a_transcript_is_refused_in_the_own_memory():
    """R15: the assistant's memory holds records only."""
    turns = [Turn(ref="1", text="hello")]
    with open_app() as place, pytest.raises(Forbidden):
        place.memory.index(DocumentKind.SESSION, "s1", turns, scope=place.where.assistant)


@pytest.mark.usefixtures("pnpm")
def test_the_data_folder_is_where_the_variable_says(cli):
    """COMMONPLACE_HOME moves the database and the user's own records."""
    assert (cli.home / "commonplace.db").exists()
    cli.env(COMMONPLACE_HOME=cli.folder / "another")
    assert cli.ok("status", "--json").json["database"]["path"] == str(cli.folder / "another/commonplace.db")
    assert os.path.isdir(cli.folder / "another/assistant")
