"""Whose repository a folder is: a `.git` that leads elsewhere counts only if that repository names the folder."""

from __future__ import annotations

import os

import pytest

from commonplace.config.paths import find, identity
from commonplace.git.index import Unreadable, read_index
from commonplace.git.objects import first_commit
from commonplace.git.repository import read_config, repository_at, was_cloned
from commonplace.git.user import GitUser
from stands import rows


@pytest.fixture
def private(ada):
    """A private project, and a folder beside it that would like to be it."""
    ada.git("remote", "set-url", "origin", "git@github.com:ada/private.git")
    claims = ada.root / "claims"
    claims.mkdir()
    return claims


def name_of(folder):
    """What the project at a folder is called."""
    return identity(find(str(folder)))


def test_a_file_that_leads_to_a_repository_does_not_make_it_ones_own(ada, private):
    """A hostile folder says in its .git whose repository it is; that one knows nothing of it."""
    (private / ".git").write_text(f"gitdir: {ada.folder}/.git\n")

    assert find(str(private)).git is None
    assert name_of(private) is None


def test_a_worktree_of_somebody_else_does_not_make_it_ones_own(ada, private):
    """Neither the data of a real worktree elsewhere, nor made-up data in the folder itself, is believed."""
    ada.git("worktree", "add", "-q", ada.root / "tree", "-b", "other")
    (private / ".git").write_text(f"gitdir: {ada.folder}/.git/worktrees/tree\n")
    assert name_of(private) is None

    fake = private / "fake"
    fake.mkdir()
    (fake / "commondir").write_text(f"{ada.folder}/.git\n")
    (fake / "gitdir").write_text(f"{private}/.git\n")
    (fake / "HEAD").write_text("ref: refs/heads/main\n")
    (private / ".git").write_text("gitdir: fake\n")
    assert name_of(private) is None
    assert name_of(ada.root / "tree") == name_of(ada.folder) == "github.com/ada/private"


def test_a_folder_with_links_is_not_its_own(ada, private):
    """A .git that is a link, or that has a link or a commondir in it, is another repository's."""
    os.symlink(ada.folder / ".git", private / ".git")
    assert name_of(private) is None
    (private / ".git").unlink()

    ada.git("init", "-q", at=private)
    (private / ".git" / "commondir").write_text(f"{ada.folder}/.git\n")
    assert name_of(private) is None
    (private / ".git" / "commondir").unlink()

    (private / ".git" / "config").unlink()
    os.symlink(ada.folder / ".git" / "config", private / ".git" / "config")
    assert name_of(private) is None


def test_a_stranger_in_the_way_ends_the_look(ada):
    """A folder with such a .git inside a project is not part of that project."""
    inside = ada.folder / "vendored"
    inside.mkdir()
    (inside / ".git").write_text("gitdir: /nowhere\n")

    assert find(str(inside)).root == os.path.realpath(inside)


def test_a_bare_repository_in_the_tree_is_nothing(ada):
    """A folder that looks like a repository's data is a folder of the project."""
    ada.git("init", "-q", "--bare", ada.folder / "nested")

    assert find(str(ada.folder / "nested")).root == os.path.realpath(ada.folder)


def test_the_first_commit_is_the_one_that_git_says(ada):
    """Of several roots the oldest; and none if a commit is packed, which only Git reads."""
    ada.git("checkout", "-q", "--orphan", "other")
    ada.git("commit", "-qm", "another root", GIT_COMMITTER_DATE="2001-02-03T04:05:06Z")
    ada.git("checkout", "-q", "main")
    ada.git("merge", "-q", "--allow-unrelated-histories", "-s", "ours", "--no-edit", "other")
    oldest = ada.git("rev-list", "--max-parents=0", "HEAD").split()[-1]
    assert first_commit(repository_at(str(ada.folder))) == oldest

    ada.git("gc", "-q", "--prune=now")
    assert first_commit(repository_at(str(ada.folder))) is None


CONFIG = r"""
# a comment
[core] bare = false
[remote "or\"igin"]
	url = "https://x/#y" ; behind
	fetch
[User]
	eMail = a@b.c # hers
	name = A \
Long\tname
"""


def test_the_format_of_git_is_read(tmp_path):
    """Quotes, escapes, comments, continued lines, a key without a value, and names in any case."""
    path = tmp_path / "config"
    path.write_text(CONFIG)

    assert read_config(str(path)) == [
        ("core", "", "bare", "false"),
        ("remote", 'or"igin', "url", "https://x/#y"),
        ("remote", 'or"igin', "fetch", "true"),
        ("user", "", "email", "a@b.c"),
        ("user", "", "name", "A Long\tname"),
    ]


def test_a_huge_configuration_is_not_read(tmp_path):
    """Its size is looked at first."""
    path = tmp_path / "config"
    with open(path, "wb") as file:
        file.truncate(1 << 30)
    assert read_config(str(path)) == []


@rows(
    "condition, applies",
    [("gitdir:{root}/", True), ("gitdir:~/work/", False), ("gitdir/i:{upper}/", True), ("onbranch:main", False)],
)
def test_the_users_addresses_are_those_of_their_files(machine, condition, applies):
    """Their own configuration may include others, also for some folders only."""
    ada = machine(f"m{abs(hash(condition))}", "ada@example.com")
    (ada.home / "work.inc").write_text("[user]\n\temail = Ada@Work.example\n")
    given = condition.format(root=ada.root, upper=str(ada.root).upper())
    ada.configure(f'[includeIf "{given}"]\n\tpath = work.inc\n[author]\n\temail = ada@home.example\n')
    emails = {"ada@example.com", "ada@home.example"} | ({"ada@work.example"} if applies else set())

    assert GitUser(ada.env, str(ada.folder)).emails == emails


@pytest.mark.parametrize("name", ["config", "HEAD", "logs/HEAD", "packed-refs", "commondir"])
def test_a_pipe_in_a_repository_is_not_waited_for(tmp_path, name):
    """An archive can bring one; a hook would hang."""
    git = tmp_path / ".git"
    (git / "logs").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / name).unlink(missing_ok=True)
    os.mkfifo(git / name)
    assert name_of(tmp_path) is None
    assert not was_cloned(str(git))


def test_a_pipe_in_the_place_of_the_index_or_of_a_commit_is_not_waited_for(tmp_path):
    """The first cannot be read; of the second nothing is known."""
    os.mkfifo(tmp_path / "index")
    with pytest.raises(Unreadable):
        read_index(str(tmp_path / "index"), {"a"})
    commit = "1" * 40
    (tmp_path / ".git" / "objects" / "11").mkdir(parents=True)
    (tmp_path / ".git" / "HEAD").write_text(f"{commit}\n")
    os.mkfifo(tmp_path / ".git" / "objects" / "11" / commit[2:])
    assert first_commit(repository_at(str(tmp_path))) is None
