"""The records system's configuration: which project, whose assistant memory, what may be done."""

from __future__ import annotations

import os

import pytest

from commonplace.app import open_app
from commonplace.config.project import context
from commonplace.model.binding import CONTENT_BYTES
from commonplace.model.errors import ConfigError, Forbidden, InvalidInput
from commonplace.model.records import CATEGORIES, Channel, Kind
from commonplace.model.scopes import Scope
from stands import agree


@pytest.fixture
def around(tmp_path):
    """Look around from a folder, with a home of our own."""

    def around(folder, **env):
        if (folder / ".commonplace").is_dir():
            agree(folder, tmp_path / "home")
        return context(str(folder), {"COMMONPLACE_HOME": str(tmp_path / "home"), "USER": "ada"} | env)

    return around


@pytest.fixture
def shop(repository):
    """A repository with a remote and a .commonplace/."""
    folder = repository("shop", "git@github.com:acme/shop.git")
    (folder / ".commonplace").mkdir()
    return folder


def configure(folder, text):
    """Write a project's settings."""
    (folder / ".commonplace" / "config.yaml").write_text(text)


def test_a_project_and_a_user_are_two_scopes(around, shop, tmp_path):
    """Exactly two: the project's, and the user's own."""
    where = around(shop)

    assert where.project == Scope.of(("project", "github.com/acme/shop"))
    assert where.assistant == Scope.of(("user", "ada"))
    assert where.database == str(tmp_path / "home" / "commonplace.db")
    assert where.folders == {
        where.project: os.path.realpath(shop / ".commonplace"),
        where.assistant: str(tmp_path / "home" / "assistant"),
    }


def test_a_configuration_overrides_the_identity(around, shop):
    """A fork can keep its own memory, a split repository share one."""
    configure(shop, "project: acme-shop-fork\n")

    assert around(shop).project == Scope.of(("project", "acme-shop-fork"))


def test_a_plain_folder_is_a_project_if_it_says_so(around, tmp_path):
    """Without a repository the configuration names the project."""
    (tmp_path / "notes" / ".commonplace").mkdir(parents=True)
    configure(tmp_path / "notes", "project: notes\n")
    assert around(tmp_path / "notes").project == Scope.of(("project", "notes"))


def test_nowhere_there_is_only_the_user(around, tmp_path):
    """Outside of any project the assistant memory is all there is."""
    where = around(tmp_path)

    assert (where.place, where.project) == (None, None)
    assert where.bind(Channel.USER).reads == (where.assistant,)
    with pytest.raises(InvalidInput, match="there is no project here"):
        where.scope("project")


@pytest.mark.parametrize(
    ("env", "name"),
    [
        ({}, "ada"),
        ({"COMMONPLACE_USER": "countess"}, "countess"),
        ({"USER": "", "LOGNAME": "augusta"}, "augusta"),
        ({"USER": "", "USERNAME": "ADA"}, "ADA"),
        ({"USER": ""}, "default"),
    ],
)
def test_the_user_is_whoever_is_logged_in(around, tmp_path, env, name):
    """By the environment, whatever the system calls it."""
    assert around(tmp_path, **env).assistant == Scope.of(("user", name))


def test_the_users_own_settings_name_the_user(around, tmp_path):
    """One name can be used on several machines."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.yaml").write_text("user: countess\n")

    assert around(tmp_path).assistant == Scope.of(("user", "countess"))


@pytest.mark.parametrize(
    ("file", "text", "path"),
    [
        ("home/config.yaml", "user: '  '", "user"),
        ("shop/.commonplace/config.yaml", 'project: "a\\tb"', "project"),
        ("shop/.commonplace/config.yaml", f"project: {'x' * 600}", "project"),
        ("home/config.yaml", "colour: blue", "colour"),
    ],
)
def test_a_name_that_cannot_be_one_is_told_with_its_file(around, shop, tmp_path, *, file, text, path):
    """A mistake in a settings file names the file, whoever finds it."""
    (tmp_path / "home").mkdir()
    (tmp_path / file).write_text(text)

    with pytest.raises(ConfigError) as caught:
        around(shop)
    assert (os.path.realpath(caught.value.file), caught.value.path) == (os.path.realpath(tmp_path / file), path)


def test_the_binding_is_the_records_systems(around, shop):
    """Five categories, of which one may lapse; transcripts in the project only."""
    where = around(shop)
    binding = where.bind(Channel.AGENT)

    assert (binding.channel, binding.reads) == (Channel.AGENT, (where.project, where.assistant))
    assert binding.writes == dict.fromkeys(Kind, where.project)
    assert binding.also_writes == {where.project, where.assistant}
    assert (binding.transcripts, binding.temporary) == ({where.project}, {"incidents"})
    assert (binding.categories, binding.content_bytes) == (CATEGORIES, CONTENT_BYTES)


def test_the_longest_content_can_be_configured(around, shop):
    """A project may keep longer records, or shorter ones."""
    configure(shop, "content_bytes: 100\n")

    assert around(shop).bind(Channel.USER).content_bytes == 100


@pytest.mark.parametrize("name", ["project", "assistant"])
def test_each_memory_can_be_switched_off(around, shop, tmp_path, name):
    """What is off is neither read nor written, and says how to switch it on."""
    (tmp_path / "home").mkdir()
    configure(shop, f"enabled: {'false' if name == 'project' else 'true'}\n")
    (tmp_path / "home" / "config.yaml").write_text(f"enabled: {'false' if name == 'assistant' else 'true'}\n")
    where = around(shop)
    other = where.assistant if name == "project" else where.project

    assert (where.is_enabled(name), where.bind(Channel.USER).reads, list(where.folders)) == (False, (other,), [other])
    with pytest.raises(Forbidden, match=f"the {name} memory is switched off; run `commonplace enable --scope {name}`"):
        where.scope(name)


def test_both_switched_off_leave_nothing(around, shop, tmp_path):
    """There is nothing to bind, and that is said."""
    (tmp_path / "home").mkdir()
    configure(shop, "enabled: false\n")
    (tmp_path / "home" / "config.yaml").write_text("enabled: false\n")

    with pytest.raises(Forbidden, match="both memories are switched off here"):
        around(shop).bind(Channel.USER)


def test_each_memory_has_a_settings_file(around, shop, repository, tmp_path):
    """The project's lies in its folder, the user's own in the data folder; without a folder there is none."""
    assert around(shop).settings_file("project") == os.path.realpath(shop / ".commonplace" / "config.yaml")
    assert around(shop).settings_file("assistant") == str(tmp_path / "home" / "config.yaml")
    with pytest.raises(ConfigError, match="run `commonplace init` to create it"):
        around(repository("bare")).settings_file("project")
    with pytest.raises(InvalidInput, match="there is no project here"):
        around(tmp_path).settings_file("project")


def test_what_is_kept_goes_to_the_project_if_there_is_one(around, shop, tmp_path):
    """Unless told otherwise."""
    assert (around(shop).default, around(tmp_path).default) == ("project", "assistant")


def test_a_scope_is_called_project_or_assistant(around, shop):
    """Other names are answered with these two."""
    where = around(shop)

    assert (where.scope("project"), where.scope("assistant")) == (where.project, where.assistant)
    with pytest.raises(InvalidInput, match="'team' is not a scope; use project or assistant"):
        where.scope("team")


def test_nothing_is_kept_in_a_project_that_was_not_made(around, repository):
    """A repository without a .commonplace/ is read, not written to."""
    where = around(repository("app", "git@github.com:acme/app.git"))

    assert where.project in where.bind(Channel.USER).reads
    assert not where.bind(Channel.USER).may_write(where.project)
    with pytest.raises(ConfigError, match="run `commonplace init` to create it"):
        where.writable_scope("project")
    assert where.writable_scope("assistant") == where.assistant


def everything(folder):
    """Every file below a folder, with its bytes."""
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_nothing_outside_of_home_and_project_is_touched(tmp_path, shop):
    """The user's home stays as it was, and in the project only .commonplace/ changes."""
    (tmp_path / "ada").mkdir()
    env = {"COMMONPLACE_HOME": str(tmp_path / "home"), "HOME": str(tmp_path / "ada"), "USER": "ada"}
    agree(shop, tmp_path / "home")
    before = everything(tmp_path)
    with open_app(str(shop), env=env) as opened:
        opened.memory.remember("Use pnpm, not npm", category="decisions")
        opened.memory.remember("Prefer concise responses", category="preferences", scope=opened.where.assistant)
        opened.recall("pnpm")
        opened.folders.sync(opened.where.project)

    changed = {path for path, data in everything(tmp_path).items() if before.get(path) != data}
    assert {path.relative_to(tmp_path).parts[:2] for path in changed} <= {
        ("shop", ".commonplace"),
        *(("home", path.name) for path in (tmp_path / "home").iterdir()),
    }
    assert before.keys() <= everything(tmp_path).keys()


def test_what_is_kept_is_private(tmp_path, shop):
    """Folders and files of the data folder are the user's alone."""
    env = {"COMMONPLACE_HOME": str(tmp_path / "home"), "USER": "ada"}
    with open_app(str(shop), env=env) as opened:
        opened.memory.remember("the password is hunter2secretX", category="preferences", scope=opened.where.assistant)

    for path in [tmp_path / "home", *(tmp_path / "home").rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path
