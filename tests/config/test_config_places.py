"""Where things are, and what a project is called."""

from __future__ import annotations

import os
import subprocess

import pytest

from commonplace.config.paths import Place, database, find, home, identity
from commonplace.git.repository import canonical
from commonplace.model.errors import InvalidInput
from stands import rows

ADDRESSES = {
    "git@github.com:acme/shop.git": "github.com/acme/shop",
    "git@github.com:acme/shop": "github.com/acme/shop",
    "git@github.com:/acme/shop.git": "github.com/acme/shop",
    "github.com:acme/shop.git": "github.com/acme/shop",
    "https://github.com/acme/shop.git": "github.com/acme/shop",
    "https://github.com/acme/shop": "github.com/acme/shop",
    "https://github.com/acme/shop/": "github.com/acme/shop",
    "https://github.com/acme/shop.git/": "github.com/acme/shop",
    "https://github.com//acme/shop": "github.com/acme/shop",
    "http://github.com/acme/shop.git": "github.com/acme/shop",
    "HTTPS://GitHub.com/acme/shop": "github.com/acme/shop",
    "https://github.com:443/acme/shop.git": "github.com/acme/shop",
    "https://ada:ghp_secret@github.com/acme/shop.git": "github.com/acme/shop",
    "https://x-access-token@github.com/acme/shop.git": "github.com/acme/shop",
    "ssh://git@github.com/acme/shop.git": "github.com/acme/shop",
    "ssh://git@github.com:22/acme/shop.git": "github.com/acme/shop",
    "git://github.com/acme/shop.git": "github.com/acme/shop",
    "git+ssh://git@github.com/acme/shop.git": "github.com/acme/shop",
    "https://gitlab.example.com/a/deep/group/shop.git": "gitlab.example.com/a/deep/group/shop",
    "/srv/git/shop.git": "/srv/git/shop",
    "file:///srv/git/shop.git": "/srv/git/shop",
    "../shop.git": "../shop",
}


@rows("address, name", ADDRESSES.items())
def test_an_address_has_one_form(address, name):
    """However a remote is written, it is one project, and nobody's password is part of its name."""
    assert canonical(address) == name


def test_a_project_is_its_remote(repository):
    """Two clones that spell the address differently are one project."""
    one = repository("one", "git@github.com:acme/shop.git")
    two = repository("two", "https://ada:token@github.com/acme/shop")

    assert identity(find(str(one))) == identity(find(str(two))) == "github.com/acme/shop"


def test_origin_comes_before_other_remotes(repository, git):
    """A fork's upstream does not rename it; without an origin the first remote counts."""
    shop = repository()
    git(shop, "remote", "add", "upstream", "git@github.com:them/shop.git")
    assert identity(find(str(shop))) == "github.com/them/shop"
    git(shop, "remote", "add", "origin", "git@github.com:us/shop.git")
    assert identity(find(str(shop))) == "github.com/us/shop"


def test_a_push_address_is_not_the_address(repository, git):
    """What is only pushed to does not name the project."""
    shop = repository(remote="git@github.com:acme/shop.git")
    git(shop, "remote", "set-url", "--push", "origin", "git@backup.example.com:mirror/shop.git")

    assert identity(find(str(shop))) == "github.com/acme/shop"


def test_a_worktree_is_its_repository(repository, git, tmp_path):
    """Another branch in another folder shares the memory."""
    for shop in (repository("remote", "git@github.com:acme/shop.git"), repository("local")):
        tree = tmp_path / f"tree-of-{shop.name}"
        git(shop, "worktree", "add", "-q", "-b", "other", str(tree))
        assert find(str(tree)).root == os.path.realpath(tree)
        assert identity(find(str(tree))) == identity(find(str(shop)))


def test_a_clone_is_its_origin(repository, git, tmp_path):
    """Clones of one repository are one project."""
    repository("origin")
    for name in ("one", "two"):
        git(tmp_path, "clone", "-q", str(tmp_path / "origin"), name)

    assert identity(find(str(tmp_path / "one"))) == identity(find(str(tmp_path / "two")))


def test_a_submodule_is_a_project_of_its_own(repository, git):
    """Code from elsewhere keeps its own memory."""
    shop, part = repository("shop", "git@github.com:acme/shop.git"), repository("part")
    git(shop, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(part), "vendored")

    assert identity(find(str(shop / "vendored"))) == str(part)
    assert identity(find(str(shop))) == "github.com/acme/shop"


def test_a_renamed_folder_is_the_same_project(repository, tmp_path):
    """The path is no part of the identity."""
    shop = repository("shop")
    before = identity(find(str(shop)))
    shop.rename(tmp_path / "renamed")

    assert identity(find(str(tmp_path / "renamed"))) == before


def test_without_a_remote_the_first_commit_names_the_project(repository, git):
    """Later commits and other branches change nothing."""
    shop = repository()
    first = git(shop, "rev-parse", "HEAD")
    assert identity(find(str(shop))) == f"commit:{first}"
    git(shop, "commit", "-q", "--allow-empty", "-m", "second")
    git(shop, "checkout", "-q", "-b", "branch")
    assert identity(find(str(shop))) == f"commit:{first}"


def test_a_repository_without_commits_has_no_name_yet(tmp_path, git):
    """Nothing has happened in it that could name it."""
    git(tmp_path, "init", "-q")

    assert identity(find(str(tmp_path))) is None


def test_outside_of_a_repository_there_is_no_name(tmp_path):
    """A folder with a .commonplace/ is a place; only a configuration can name it."""
    (tmp_path / ".commonplace").mkdir()

    assert identity(find(str(tmp_path))) is None


def test_the_name_of_a_project_is_found_without_git(repository, tmp_path):
    """The first commit is read from the repository's files: a folder that nobody has looked at has no program run."""
    shop = repository()
    program = "import sys; from commonplace.config.paths import find, identity; print(identity(find(sys.argv[1])))"
    found = subprocess.run(
        [os.sys.executable, "-c", program, str(shop)],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == identity(find(str(shop)))
    assert found.stdout.startswith("commit:")


def test_a_place_is_found_from_deep_inside(repository):
    """The repository's root counts, from wherever one looks."""
    shop = repository(remote="git@github.com:acme/shop.git")
    deep = shop / "src" / "deep"
    deep.mkdir(parents=True)

    assert find(str(deep)) == Place(root=os.path.realpath(shop), folder=None, git=os.path.realpath(shop / ".git"))
    (shop / ".commonplace").mkdir()
    assert find(str(deep)).folder == os.path.realpath(shop / ".commonplace")


def test_a_part_of_a_repository_may_have_its_own_folder(repository):
    """The nearest .commonplace/ within the repository is the one that is used."""
    shop = repository()
    (shop / ".commonplace").mkdir()
    (shop / "web" / ".commonplace").mkdir(parents=True)

    assert find(str(shop / "web")).folder == os.path.realpath(shop / "web" / ".commonplace")
    assert find(str(shop)).folder == os.path.realpath(shop / ".commonplace")


def test_a_folder_above_a_repository_is_not_its_own(repository, tmp_path):
    """A .commonplace/ outside of the repository belongs to somebody else."""
    shop = repository()
    (tmp_path / ".commonplace").mkdir()

    assert find(str(shop)).folder is None


def test_outside_of_a_repository_the_nearest_folder_counts(tmp_path):
    """A plain folder with a .commonplace/ is a project too."""
    (tmp_path / ".commonplace").mkdir()
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    assert find(str(deep)) == Place(
        root=os.path.realpath(tmp_path), folder=os.path.realpath(tmp_path / ".commonplace"), git=None
    )
    (tmp_path / "a" / ".commonplace").mkdir()
    assert find(str(deep)).root == os.path.realpath(tmp_path / "a")


def test_nowhere_is_nowhere(tmp_path):
    """Without a repository and without a folder there is no place."""
    assert find(str(tmp_path)) is None


def test_an_empty_git_folder_is_no_repository(tmp_path):
    """A folder that only has the name does not end the look."""
    (tmp_path / ".commonplace").mkdir()
    (tmp_path / "sub" / ".git").mkdir(parents=True)

    assert find(str(tmp_path / "sub")).root == os.path.realpath(tmp_path)


@pytest.mark.parametrize("text", ["", "nonsense", "gitdir:", "gitdir: ../nowhere", "\xff"])
def test_a_git_file_that_leads_nowhere_names_nothing(tmp_path, text):
    """Whatever stands in a .git file, looking around does not fail."""
    (tmp_path / ".git").write_bytes(text.encode("latin-1"))
    place = find(str(tmp_path))

    assert place is None or identity(place) is None


HOMES = {
    "linux": ("linux", {"HOME": "/h"}, "/h/.local/share/commonplace"),
    "linux with XDG_DATA_HOME": ("linux", {"HOME": "/h", "XDG_DATA_HOME": "/data"}, "/data/commonplace"),
    "linux with a relative one": ("linux", {"HOME": "/h", "XDG_DATA_HOME": "data"}, "/h/.local/share/commonplace"),
    "mac": ("darwin", {"HOME": "/h", "XDG_DATA_HOME": "/data"}, "/h/Library/Application Support/commonplace"),
    "windows": ("win32", {"LOCALAPPDATA": "/users/ada/AppData/Local"}, "/users/ada/AppData/Local/commonplace"),
    "windows without it": ("win32", {"USERPROFILE": "/users/ada"}, "/users/ada/AppData/Local/commonplace"),
    "named": ("linux", {"HOME": "/h", "COMMONPLACE_HOME": "/c", "XDG_DATA_HOME": "/d"}, "/c"),
    "named on a mac": ("darwin", {"HOME": "/h", "COMMONPLACE_HOME": "/c"}, "/c"),
    "named from home": ("linux", {"HOME": "/h", "COMMONPLACE_HOME": "~/mem"}, "/h/mem"),
}


@rows("platform, env, folder", HOMES.values())
def test_the_data_folder_is_where_the_platform_keeps_data(platform, env, folder):
    """COMMONPLACE_HOME decides, else the custom of the system."""
    assert home(env, platform=platform) == folder


def test_a_relative_data_folder_is_made_whole():
    """What is said relative to here stays there when somebody changes folders."""
    assert home({"COMMONPLACE_HOME": "mem"}) == os.path.join(os.getcwd(), "mem")


@rows(
    "env, said, expected",
    [
        ({}, None, "/data/commonplace.db"),
        ({}, "team.db", "/data/team.db"),
        ({}, "/srv/team.db", "/srv/team.db"),
        ({}, "postgresql://db/memory", "postgresql://db/memory"),
        ({"COMMONPLACE_STORE": "postgres://db/other"}, "postgresql://db/memory", "postgres://db/other"),
        ({"COMMONPLACE_STORE": "/srv/one.db"}, "postgresql://db/memory", "/srv/one.db"),
    ],
)
def test_the_store_is_what_stands_nearest(env, said, expected):
    """The environment before the settings before the data folder; a path or an address."""
    assert database({"COMMONPLACE_HOME": "/data"} | env, said) == expected


@pytest.mark.parametrize(("env", "said"), [({"COMMONPLACE_STORE": "sqlite:///srv/one.db"}, None), ({}, "mysql://db/m")])
def test_the_address_of_what_is_no_store_is_refused(env, said):
    """Nobody gets a folder called `mysql:` in the place of a database."""
    with pytest.raises(InvalidInput, match=r"(sqlite|mysql):// is no store; name a file, or a postgresql:// address"):
        database({"COMMONPLACE_HOME": "/data"} | env, said)


@pytest.mark.parametrize("said", ["postgresql:/ada:pw@db/m", "postgres:db", "host=db password=pw dbname=m"])
def test_what_is_almost_the_address_of_a_database_is_refused(said):
    """Nobody gets a file with a password in its name, and the sentence does not repeat it."""
    with pytest.raises(InvalidInput, match=r"^a database is named by its address, which looks like") as told:
        database({"COMMONPLACE_HOME": "/data"}, said)
    assert "pw" not in str(told.value)
