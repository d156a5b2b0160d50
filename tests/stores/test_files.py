"""``Store.files``, ``PutFiles`` and ``DropFiles``: what a mirrored folder was last known to hold."""

from commonplace.model.changes import DropFiles, Outcome, PutFiles
from commonplace.model.documents import FileState


def file(path, record="0" * 20, version=1, digest="d", stamp=2**62):
    """What was seen at a path."""
    return FileState(path=path, record=record, version=version, digest=digest, stamp=stamp)


def test_a_folder_is_known_by_path(store):
    """What was noted comes back, in the order of paths."""
    files = (file("b.md"), file("a.md", record="1" * 20, version=3, stamp=-1))
    assert store.apply([PutFiles(folder="/m", files=files)]) == [Outcome()]
    assert store.files("/m") == [files[1], files[0]]


def test_what_is_noted_again_is_replaced(store):
    """Of each path the last note counts."""
    store.apply([PutFiles(folder="/m", files=(file("a.md"),)), PutFiles(folder="/m", files=(file("a.md", version=2),))])
    assert [known.version for known in store.files("/m")] == [2]


def test_stamps_are_known_by_path(store):
    """What a look at every file compares, of one folder only."""
    store.apply([PutFiles(folder="/m", files=(file("b.md", stamp=7), file("a.md", stamp=-1)))])
    store.apply([PutFiles(folder="/mm", files=(file("c.md"),))])
    assert store.file_stamps("/m") == {"a.md": -1, "b.md": 7}


def test_folders_are_apart(store):
    """The same path in another folder is another file, and folders are no prefixes."""
    store.apply(
        [PutFiles(folder="/m", files=(file("a.md"),)), PutFiles(folder="/mm", files=(file("a.md", version=2),))]
    )
    assert [known.version for known in store.files("/m")] == [1]
    assert store.files("/") == []


def test_only_some_records_may_be_asked_for(store):
    """With records given, only their files are shown; with none given, none."""
    files = tuple(file(f"{number}.md", record=str(number) * 20) for number in range(3))
    store.apply([PutFiles(folder="/m", files=files)])
    assert store.files("/m", records={"0" * 20, "2" * 20}) == [files[0], files[2]]
    assert store.files("/m", records=[]) == []


def test_more_records_than_a_statement_has_places(store):
    """Any number of records may be asked for."""
    store.apply([PutFiles(folder="/m", files=(file("a.md"),))])
    assert store.files("/m", records=[f"{number:020d}" for number in range(40_000)]) == [file("a.md")]


def test_dropped_paths_are_forgotten(store):
    """Forgetting a path that is not known is no error."""
    store.apply([PutFiles(folder="/m", files=(file("a.md"), file("b.md")))])
    store.apply(
        [DropFiles(folder="/m", paths=frozenset({"a.md", "x%"})), DropFiles(folder="/", paths=frozenset({"b.md"}))]
    )
    assert [known.path for known in store.files("/m")] == ["b.md"]
