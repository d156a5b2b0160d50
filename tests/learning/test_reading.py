"""What memory:// addresses lead to, and what they do not."""

from __future__ import annotations

import os
import threading

import pytest

from commonplace.files.artifacts import FILE_BYTES
from commonplace.learning.addresses import Addresses, read_page
from commonplace.model.changes import PutDocument
from commonplace.model.documents import Document, DocumentKind
from commonplace.model.errors import CommonplaceError, Forbidden, InvalidInput, NotFound
from commonplace.model.records import Channel, Source, Trust


@pytest.fixture
def shelf(opened, folder):
    """What can be read in the project."""
    return Addresses(memory=opened.memory, scope=opened.where.project, folder=str(folder), secret=lambda: b"key")


@pytest.fixture
def artifact(opened, clock):
    """Keep an artifact in the store, as a consolidation does."""

    def artifact(name, content):
        document = Document(
            scope=opened.where.project, kind=DocumentKind.ARTIFACT, name=name, digest=content, content=content,
            source=Source(channel=Channel.CONSOLIDATION), trust=Trust.AGENT, created_at=clock(), updated_at=clock(),
        )  # fmt: skip
        opened.store.apply([PutDocument(document=document)])

    return artifact


@pytest.fixture
def four(artifact):
    """The artifacts of the document, and a script."""
    artifact("memory_summary.md", "the summary")
    artifact("MEMORY.md", "# All of it")
    artifact("skills/deploy/SKILL.md", "a playbook")
    artifact("skills/deploy/scripts/run.sh", "make deploy")


@pytest.mark.usefixtures("four")
@pytest.mark.parametrize(
    ("url", "text", "content_type"),
    [
        ("memory://root", "the summary", "text/markdown"),
        ("memory://root/MEMORY.md", "# All of it", "text/markdown"),
        ("memory://root/memory_summary.md", "the summary", "text/markdown"),
        ("memory://root/skills/deploy/SKILL.md", "a playbook", "text/markdown"),
        ("memory://root/skills/deploy/scripts/run.sh", "make deploy", "text/plain"),
        ("MEMORY://Root/skills%2Fdeploy/SKILL.md", "a playbook", "text/markdown"),
    ],
)
def test_an_artifact_is_read_by_its_address(shelf, url, text, content_type):
    """The addresses of the document lead to the artifacts in the store."""
    page = read_page(shelf, url)

    assert (page.text, page.content_type, page.edited) == (text, content_type, False)


@pytest.mark.usefixtures("four")
@pytest.mark.parametrize(
    ("url", "names"),
    [
        ("memory://root/", ["MEMORY.md", "memory_summary.md", "skills/"]),
        ("memory://root/skills", ["skills/deploy/"]),
        ("memory://root/skills/deploy/", ["skills/deploy/SKILL.md", "skills/deploy/scripts/"]),
    ],
)
def test_a_folder_is_a_list(shelf, url, names):
    """With or without a slash, a folder gives the addresses in it."""
    assert read_page(shelf, url).text.split("\n") == [f"memory://root/{name}" for name in names]


def test_a_record_is_read_whole(shelf, kept):
    """A short id is enough, and nothing of the content is clipped."""
    record, path = kept("word " * 2000 + "end")
    page = read_page(shelf, f"memory://{record.short}")

    assert page == read_page(shelf, f"memory://record/{record.id}")
    assert page.text == path.read_text()
    assert page.record == record
    assert page.text.rstrip().endswith("end")


def test_a_held_record_says_so(shelf, opened, kept):
    """Whoever reads what waits for review is told that it does."""
    record, _ = kept()
    opened.memory.hold(record.id)

    assert "review" in read_page(shelf, f"memory://{record.id}").notes[0]


@pytest.mark.usefixtures("four")
@pytest.mark.parametrize(
    "path",
    [
        "../config.yaml", "skills/../../x", "%2e%2e/x", "%2E%2E%2fx", "..%2fx", "%252e%252e/x", "%252e%252e%252fx",
        "/etc/passwd", "%2fetc/passwd", "skills//x", "..\\x", "%5c..%5cx", "C:/x", "x%00.md", "./MEMORY.md", "..",
        "skills/./deploy/SKILL.md", "x%0ay", "x%E2%80%AEy",
    ],
)  # fmt: skip
def test_what_leads_out_of_the_root_is_refused(shelf, path):
    """Traversal in whatever writing, absolute paths, backslashes, drives and control characters go nowhere."""
    with pytest.raises(Forbidden, match=r"escapes? memory root"):
        read_page(shelf, f"memory://root/{path}")


@pytest.mark.usefixtures("four")
@pytest.mark.parametrize(
    ("url", "error", "words"),
    [
        ("memory://", InvalidInput, "needs a namespace"),
        ("memory:///MEMORY.md", InvalidInput, "needs a namespace"),
        ("memory://attic/x", InvalidInput, "unknown namespace"),
        ("memory://record", InvalidInput, "unknown namespace"),
        ("memory://record/root", InvalidInput, "unknown namespace"),
        ("memory://record/1m7gmb4480/x", InvalidInput, "has a path"),
        ("memory://record/1m7gmb4480", NotFound, "no record"),
        ("memory://root?x", InvalidInput, "unknown namespace"),
        ("memory://%72oot", InvalidInput, "unknown namespace"),
        ("file:///etc/passwd", InvalidInput, "not a memory:// address"),
        ("MEMORY.md", InvalidInput, "not a memory:// address"),
        ("memory://root/%ff", InvalidInput, "not UTF-8"),
        ("memory://root/\udcff", InvalidInput, "not valid Unicode"),
        ("memory://1m7gmb4480/x", InvalidInput, "has a path"),
        ("memory://1m7gmb4480", NotFound, "no record"),
        ("memory://root/skills/none/SKILL.md", NotFound, "was not found; memory://root/ lists"),
        ("memory://root/config.yaml", NotFound, "was not found"),
        ("memory://root/" + "x" * 5000, NotFound, "was not found"),
    ],
)  # fmt: skip
def test_a_bad_address_is_one_clear_sentence(shelf, url, error, words):
    """Each mistake is told as what it is."""
    with pytest.raises(error, match=words):
        read_page(shelf, url)


def test_before_the_first_consolidation_artifacts_are_not_available(shelf):
    """An empty memory says why it is empty."""
    for url in ("memory://root", "memory://root/", "memory://root/MEMORY.md"):
        with pytest.raises(NotFound, match="artifacts are not available yet"):
            read_page(shelf, url)


def test_without_a_project_there_are_no_artifacts(shelf):
    """Records can be read everywhere, artifacts belong to a project."""
    with pytest.raises(NotFound, match="no project here"):
        read_page(shelf.replace(scope=None, folder=None), "memory://root")


@pytest.mark.usefixtures("four")
def test_a_file_that_a_person_edited_counts(shelf, folder):
    """Their words are shown before anybody has taken them in, without the secrets in them."""
    (folder / "MEMORY.md").write_text("# Mine\n\nThe password is hunter2hunter2.\n")
    page = read_page(shelf, "memory://root/MEMORY.md")

    assert page.edited
    assert (page.channel, page.trust) == (Channel.FILE, Trust.USER)
    assert page.text.startswith("# Mine")
    assert "hunter2" not in page.text
    assert "a secret" in page.notes[0]


@pytest.mark.usefixtures("four")
def test_a_file_that_says_the_same_is_no_edit(shelf, folder):
    """An artifact is written to disk as well; a line end more is no other text."""
    (folder / "MEMORY.md").write_bytes(b"# All of it\r\n\n")

    assert not read_page(shelf, "memory://root/MEMORY.md").edited


def test_a_file_that_the_store_does_not_have_is_read_and_listed(shelf, folder):
    """Lessons that a person has begun by hand are there at once."""
    (folder / "learned.md").write_text("- Ask first.\n")

    assert read_page(shelf, "memory://root/learned.md").text == "- Ask first."
    assert read_page(shelf, "memory://root/").text == "memory://root/learned.md"


@pytest.mark.usefixtures("four")
@pytest.mark.parametrize("name", ["MEMORY.md", "skills", "skills/deploy/SKILL.md"])
def test_a_link_is_not_followed(shelf, folder, tmp_path, name):
    """A file or a folder that is a link could lead anywhere: it is refused, and not listed."""
    outside = tmp_path / "outside"
    (outside / "deploy").mkdir(parents=True)
    (outside / "deploy" / "SKILL.md").write_text("stolen")
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).symlink_to(outside if name == "skills" else outside / "deploy" / "SKILL.md")
    url = "memory://root/" + ("skills/deploy/SKILL.md" if name == "skills" else name)

    with pytest.raises(Forbidden, match="symbolic link"):
        read_page(shelf, url)
    assert "stolen" not in read_page(shelf, "memory://root/").text


@pytest.mark.usefixtures("four")
def test_a_link_that_comes_while_it_is_read_is_not_followed(shelf, folder, tmp_path):
    """Whoever swaps a file for a link again and again never gets the other file read."""
    secret = tmp_path / "secret"
    secret.write_text("stolen")
    target, spare, done = folder / "MEMORY.md", folder / "spare", threading.Event()

    def swap():
        while not done.is_set():
            spare.unlink(missing_ok=True)
            spare.symlink_to(secret)
            os.replace(spare, target)
            spare.write_text("# Mine")
            os.replace(spare, target)

    swapping = threading.Thread(target=swap)
    swapping.start()
    seen = set()
    for _ in range(500):
        try:
            seen.add(read_page(shelf, "memory://root/MEMORY.md").text)
        except Forbidden:
            seen.add("refused")
    done.set()
    swapping.join()
    assert "refused" in seen
    assert seen <= {"# All of it", "# Mine", "refused"}


@pytest.mark.usefixtures("four")
@pytest.mark.parametrize("data", [b"\xff\xfe", b"x" * (FILE_BYTES + 1)], ids=["not UTF-8", "huge"])
def test_a_file_that_cannot_be_shown_is_told(shelf, folder, data):
    """Neither foreign bytes nor a pasted log are passed off as the artifact."""
    (folder / "MEMORY.md").write_bytes(data)

    with pytest.raises(CommonplaceError, match=r"MEMORY\.md"):
        read_page(shelf, "memory://root/MEMORY.md")


@pytest.mark.usefixtures("four")
def test_a_pipe_in_the_place_of_a_file_does_not_stop_anybody(shelf, folder):
    """What is no file is not waited for."""
    os.mkfifo(folder / "MEMORY.md")

    assert read_page(shelf, "memory://root/MEMORY.md").text == "# All of it"
