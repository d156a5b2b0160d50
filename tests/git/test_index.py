"""The index as a file: every version that Git writes is read as Git reads it."""

from __future__ import annotations

import os

import pytest

from commonplace.git.index import Unreadable, read_index
from commonplace.git.objects import blob_ids, digest_of, id_bytes
from commonplace.git.repository import repository_at

NAMES = ["a", "a/b".replace("/", "-"), "x" * 200, "ünï.md", "dir/one.md", "dir/two.md", "dir/two.md.bak"]


@pytest.fixture(params=["sha1", "sha256"])
def filled(machine, request):
    """A repository with files of many names."""
    ada = machine("ada")
    ada.folder.mkdir()
    ada.git("init", "-q", "-b", "main", f"--object-format={request.param}")
    for name in NAMES:
        path = ada.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"content of {name}")
    ada.git("add", "-A")
    return ada


def listed(ada):
    """What Git says is in the index."""
    rows = (line.split("\t") for line in ada.git("-c", "core.quotePath=false", "ls-files", "-s").splitlines())
    return {name: first.split()[1] for first, name in rows}


@pytest.mark.parametrize("version", [2, 3, 4])
def test_every_version_is_read_as_git_reads_it(filled, version):
    """The blob of each path, and whether its file is as Git left it."""
    if version == 3:
        (filled.folder / "later").write_text("x")
        filled.git("add", "-N", "later")  # an extended flag makes it version 3
    filled.git("update-index", "--index-version", "4" if version == 4 else "2")
    repository = repository_at(str(filled.folder))
    found = read_index(os.path.join(repository.own, "index"), NAMES, id_bytes=id_bytes(repository))

    assert {name: one.blob for name, [one] in found.items()} == {name: listed(filled)[name] for name in NAMES}
    assert all(one.is_unchanged(os.lstat(filled.folder / name)) for name, [one] in found.items())
    (filled.folder / "a").write_text("something longer than it was")
    assert not found["a"][0].is_unchanged(os.lstat(filled.folder / "a"))


def test_the_id_of_a_content_is_gits(filled):
    """A file's content is recognised by the id that Git gives it."""
    repository = repository_at(str(filled.folder))
    digest = digest_of(repository)

    assert all(listed(filled)[name] in blob_ids((filled.folder / name).read_bytes(), digest=digest) for name in NAMES)


def test_a_split_index_is_not_half_read(machine):
    """A part of it is in another file: then Git is asked about every content instead."""
    ada = machine("ada").start()
    ada.git("update-index", "--split-index")
    (ada.folder / "x").write_text("x")
    ada.git("add", "x")

    with pytest.raises(Unreadable):
        read_index(os.fspath(ada.folder / ".git" / "index"), ["x"])


@pytest.mark.parametrize("data", [b"", b"DIRC", b"DIRC\0\0\0\x09\0\0\0\0", b"DIRC\0\0\0\2\0\0\xff\xff" + b"x" * 80])
def test_a_damaged_index_is_said_to_be_unreadable(tmp_path, data):
    """Whatever the bytes are, nothing else is raised."""
    path = tmp_path / "index"
    path.write_bytes(data)
    with pytest.raises(Unreadable):
        read_index(os.fspath(path), ["x"])


def test_a_conflict_has_several_contents(ada, bob):
    """Each side of it is known, so taking one of them is not taken for an edit."""
    ada.commit(("x", "One says this"))
    bob.commit(("x", "Two says that"))
    bob.git("push", "-q", "origin", "HEAD:pr")
    ada.git("fetch", "-q")
    ada.git("merge", "-q", "origin/pr", check=False)
    name = ".commonplace/decisions/x.md"

    assert len(read_index(os.fspath(ada.folder / ".git" / "index"), [name])[name]) == 2
