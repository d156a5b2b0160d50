"""What people do to files, and what becomes of it."""

from __future__ import annotations

import pytest

from commonplace.files.sync import SyncReport
from commonplace.model.errors import NotFound, StoreError
from commonplace.model.queries import State
from commonplace.model.records import Channel, Kind, Trust


def texts(recalled):
    """What was found, in order."""
    return [hit.text for hit in recalled.hits]


def test_nothing_changed_is_nothing_done(sync, kept, tree):
    """A sync of what is as it was says nothing and touches nothing."""
    kept()
    before = tree()

    assert sync() == sync() == SyncReport()
    assert tree() == before


def test_a_changed_body_is_the_next_version(opened, kept, edit, sync, folder):
    """A person's words become the record's, with the file as their source."""
    record, path = kept()
    edit(path, "Use pnpm, not npm", "Use yarn.\n\nReally.")
    report = sync()

    after = opened.memory.get(record.id)
    assert report.changed == (str(path.relative_to(folder)),)
    assert (after.content, after.version, after.created_at) == ("Use yarn.\n\nReally.", 2, record.created_at)
    assert (after.source.channel, after.source.ref, after.trust) == (Channel.FILE, report.changed[0], Trust.USER)
    assert [past.content for past in opened.memory.history(record.id)][1] == "Use pnpm, not npm"
    assert texts(opened.memory.recall("yarn")) == ["Use yarn.\n\nReally."]
    assert not opened.memory.recall("pnpm").hits


def test_a_changed_frontmatter_is_the_next_version(opened, kept, add_line, sync):
    """Tags, aliases, pins and dates can be edited; whoever does so does not become the source of the words."""
    record, path = kept()
    add_line(path, "aliases: [package manager]\npinned: yes\noccurred: 2024-02-29\nteam: web")
    add_line(path, "tags:\n  - js\n  - 'build: tools'")
    sync()

    after = opened.memory.get(record.id)
    assert (after.tags, after.pinned, after.metadata["team"]) == ({"js", "build: tools"}, True, "web")
    assert after.occurred_at.isoformat() == "2024-02-29T00:00:00+00:00"
    assert after.source == record.source
    assert opened.memory.recall("package manager")[0].id == record.id


def test_a_line_taken_out_is_meant(opened, kept, edit, sync):
    """Who deletes a key, a value, a pin or an expiry from the file deletes it from the record."""
    options = {"key": "k", "value": {"a": 1}, "tags": ["x"], "pinned": True, "metadata": {"aliases": ["b"]}}
    record, path = kept("words", **options)
    for line in ("key: k\n", 'value: {"a": 1}\n', "tags: [x]\n", "pinned: true\n", "aliases: [b]\n"):
        edit(path, line, "")
    sync()

    after = opened.memory.get(record.id)
    assert (after.key, after.value, after.tags, after.pinned, after.aliases) == (None, None, set(), False, ())
    assert (after.content, after.trust, after.created_at) == ("words", record.trust, record.created_at)


@pytest.mark.parametrize(
    "text",
    [
        "We deploy on Fridays",
        "We deploy on Fridays\n",
        "---\ntags: [ops]\n---\nWe deploy on Fridays",
        "\ufeffWe deploy on Fridays\r\n",
    ],
    ids=["bare", "with a newline", "with frontmatter", "from Windows"],
)
def test_a_new_file_without_an_id_is_a_new_record(opened, folder, sync, text):
    """It gets an id, keeps its name, and is found."""
    (folder / "decisions").mkdir()
    path = folder / "decisions" / "my own name.md"
    path.write_bytes(text.encode())
    report = sync()

    [record] = opened.memory.list()
    assert report.added == ("decisions/my own name.md",)
    assert (record.content, record.category, record.kind, record.version) == (
        "We deploy on Fridays",
        "decisions",
        Kind.SEMANTIC,
        1,
    )
    assert (record.source.channel, record.trust) == (Channel.FILE, Trust.USER)
    assert f"id: {record.id}\n" in path.read_text()
    assert texts(opened.memory.recall("fridays")) == ["We deploy on Fridays"]
    assert sync().is_empty


def test_a_new_file_may_say_everything_itself(opened, folder, sync):
    """Frontmatter of a new file is taken as it is written, in any order, with what is nobody's key as metadata."""
    (folder / "incidents").mkdir()
    head = "expires: 2030-01-01\ntags: [ci]\nkeywords: [flaky]\nseverity: 2\ncreated: 2025-05-05"
    (folder / "incidents" / "red.md").write_text(f"---\n{head}\n---\n\nThe build is red\n")
    sync()

    [record] = opened.memory.list()
    assert (record.kind, record.tags, record.keywords, record.metadata["severity"]) == (
        Kind.EPISODIC,
        {"ci"},
        ("flaky",),
        2,
    )
    assert (record.expires_at.year, record.created_at.year) == (2030, 2025)


def test_a_renamed_file_is_the_same_record(opened, kept, sync, folder):
    """The name is the person's: it stays, also when the record changes later."""
    record, path = kept()
    path.rename(path.with_name("pnpm.md"))
    report = sync()

    assert (report.added, report.changed, report.archived) == ((), (), ())
    assert opened.memory.get(record.id) == record
    opened.memory.update(record.id, content="Use pnpm 10")
    assert [file.name for file in (folder / "decisions").iterdir()] == ["pnpm.md"]
    assert "Use pnpm 10" in (folder / "decisions" / "pnpm.md").read_text()
    assert sync().is_empty


@pytest.mark.parametrize("name", ["decisions/pnpm.md", "principles/pnpm.md"])
def test_a_file_moved_a_moment_ago_has_no_second_one(opened, kept, folder, sync, tree, *, name):
    """An update before the next sync leaves the file alone; the sync finds it where the person put it."""
    record, path = kept()
    (folder / name).parent.mkdir(exist_ok=True)
    path.rename(folder / name)
    opened.memory.update(record.id, tags=["js"])
    report = sync()

    assert (report.troubles, report.added, list(tree())) == ((), (), [name])
    assert "js" in tree()[name] or name.startswith("principles")
    assert len(opened.memory.history(record.id)) >= 2


def test_a_file_renamed_a_moment_ago_is_erased_with_its_record(opened, kept, sync, tree):
    """Forgetting finds the file under its new name."""
    record, path = kept()
    path.rename(path.with_name("pnpm.md"))
    opened.memory.forget(record.id)

    assert tree() == {}
    assert (sync().added, opened.memory.list(states=State)) == ((), [])


def test_a_renamed_and_edited_file_is_the_same_record(opened, kept, edit, sync):
    """Both at once are both taken."""
    record, path = kept()
    edit(path, "pnpm", "yarn")
    path.rename(path.with_name("yarn.md"))
    sync()

    assert opened.memory.get(record.id).content == "Use yarn, not npm"
    assert [past.id for past in opened.memory.list(states=State)] == [record.id]


def test_a_deleted_file_archives_its_record(opened, kept, sync):
    """Out of recall, but kept, and restorable by the verb."""
    record, path = kept()
    path.unlink()
    report = sync()

    assert report.archived == (record.id,)
    assert not opened.memory.recall("pnpm").hits
    assert opened.memory.get(record.id).archived_at is not None
    assert sync().is_empty
    opened.memory.restore(record.id)
    assert "archived:" not in path.read_text()
    assert texts(opened.memory.recall("pnpm")) == ["Use pnpm, not npm"]


def test_a_file_that_comes_back_restores_its_record(opened, kept, sync):
    """Who puts the file back wants the record back."""
    record, path = kept()
    data = path.read_bytes()
    path.unlink()
    sync()
    path.write_bytes(data)

    assert sync().restored == (record.id,)
    assert opened.memory.get(record.id).archived_at is None
    assert texts(opened.memory.recall("pnpm")) == ["Use pnpm, not npm"]
    assert "archived:" not in path.read_text()
    assert sync().is_empty


@pytest.mark.parametrize(
    ("broken", "line", "reason"),
    [
        ("tags: [a, b", 3, "is not YAML"),
        ("tags: a: b: c", 2, "is not YAML"),
        ("\ttags: x", 2, "is not YAML"),
        ("id: again", 3, "says 'id' twice"),
        ("pinned: perhaps", 2, "pinned must be true or false"),
        ("expires: tomorrow", 2, "expires must be a date"),
        ("held: perhaps", 2, "held must be true or false"),
        ("value: &a [*a]", 2, "uses an anchor or an alias"),
    ],
)
def test_a_broken_file_is_reported_and_everything_else_goes_on(
    opened, kept, edit, add_line, *, sync, folder, broken, line, reason
):
    """Path and line are named; its record and the file stay as they are; the others are taken."""
    record, path = kept()
    _, other = kept("Deploy on Mondays")
    add_line(path, broken)
    edit(path, "Use pnpm", "Use yarn")
    edit(other, "Mondays", "Fridays")
    before = path.read_text()
    report = sync()

    [trouble] = report.troubles
    assert (trouble.path, trouble.line) == (str(path.relative_to(folder)), line)
    assert reason in trouble.reason
    assert (path.read_text(), opened.memory.get(record.id)) == (before, record)
    assert texts(opened.memory.recall("deploy")) == ["Deploy on Fridays"]


def test_a_mended_file_is_taken(opened, kept, edit, add_line, sync):
    """Trouble is not remembered against anybody."""
    record, path = kept()
    add_line(path, "tags: [a, b")
    assert sync().troubles
    edit(path, "tags: [a, b", "tags: [a, b]")
    assert not sync().troubles
    assert opened.memory.get(record.id).tags == {"a", "b"}


CONFLICT = "<<<<<<< HEAD\nUse yarn\n=======\nUse bun\n>>>>>>> theirs"


@pytest.mark.parametrize("where", ["Use pnpm, not npm", "tags: [js]"], ids=["in the body", "in the frontmatter"])
def test_a_conflict_of_git_is_reported_and_not_ingested(opened, kept, edit, sync, where):
    """Two people's edits wait until somebody has resolved them; both stay in the file."""
    record, path = kept(tags=["js"])
    edit(path, where, CONFLICT)
    [trouble] = sync().troubles

    assert "git conflict markers; resolve them first" in trouble.reason
    assert opened.memory.get(record.id) == record
    assert CONFLICT in path.read_text()
    assert not opened.memory.recall("bun").hits
    edit(path, CONFLICT, where if ":" in where else "Use bun")
    assert not sync().troubles


def test_a_new_file_with_a_conflict_is_no_record(opened, folder, sync):
    """What was never merged is never remembered."""
    (folder / "decisions").mkdir()
    (folder / "decisions" / "merge.md").write_text(CONFLICT)

    assert "conflict" in sync().troubles[0].reason
    assert opened.memory.list(states=State) == []


def test_a_file_moved_to_another_category_is_reclassified(opened, kept, sync, folder, tree):
    """The folder says the category."""
    record, path = kept("Run the tests first")
    (folder / "procedures").mkdir()
    path.rename(folder / "procedures" / path.name)
    sync()

    after = opened.memory.get(record.id)
    assert (after.category, after.kind, after.version) == ("procedures", Kind.PROCEDURAL, 2)
    assert list(tree()) == [f"procedures/{path.name}"]
    assert sync().is_empty


def test_a_category_changed_in_the_frontmatter_moves_the_file(opened, kept, add_line, sync, tree):
    """Saying it is as good as moving it."""
    record, path = kept("Run the tests first")
    add_line(path, "category: principles")
    sync()

    assert opened.memory.get(record.id).category == "principles"
    assert list(tree()) == [f"principles/{path.name}"]


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("opinions/x.md", "words", "is not in the folder of a category; move it to one of decisions, procedures"),
        ("decisions/x.md", "---\ncategory: opinions\n---\nwords", "category must be one of decisions, procedures"),
        (
            "decisions/x.md",
            "---\nexpires: 2030-01-01\n---\nwords",
            "decisions are permanent; only incidents can expire",
        ),
        ("decisions/x.md", "x" * 16_385, "the content has 16385 bytes; the limit is 16384"),
        ("decisions/x.md", "---\ntags: []\n---\n\n", "has no text below its frontmatter"),
        ("decisions/x.md", "", "has no text"),
        ("decisions/x.md", "---\ntags: []\nwords", "has frontmatter that never ends"),
        ("decisions/x.md", "---\nid: 7\n---\nwords", "id is not the 20 letters and digits of a record"),
        ("decisions/x.md", "---\naliases: {a: 1}\n---\nwords", "aliases must be a list"),
    ],
)
def test_a_file_that_cannot_be_a_record_says_why(opened, folder, sync, name, text, *, reason):
    """It is left as it is, and nothing is made of it."""
    (folder / name).parent.mkdir()
    (folder / name).write_text(text)
    [trouble] = sync().troubles

    assert (trouble.path, trouble.line >= 1) == (name, True)
    assert reason in trouble.reason
    assert ((folder / name).read_text(), opened.memory.list(states=State)) == (text, [])


@pytest.mark.parametrize("data", [b"caf\xe9", "words".encode("utf-16"), b"a\x00b"], ids=["Latin-1", "UTF-16", "NUL"])
def test_other_bytes_are_reported(folder, sync, data):
    """What is not UTF-8 text is named as such."""
    (folder / "decisions").mkdir()
    (folder / "decisions" / "x.md").write_bytes(data)

    assert [trouble.path for trouble in sync().troubles] == ["decisions/x.md"]


def test_comments_survive_our_rewrites(opened, kept, add_line):
    """What a person wrote beside the values is theirs, whatever we write."""
    record, path = kept()
    add_line(path, "# agreed in the retro\nteam: web  # was: app")
    opened.folders.sync(opened.where.project)
    opened.memory.update(record.id, content="Use pnpm 10", tags=["js"])
    opened.memory.reclassify(record.id, "principles")

    text = (path.parents[1] / "principles" / path.name).read_text()
    assert "# agreed in the retro\nteam: web  # was: app\n" in text
    assert "tags: [js]\n" in text
    assert text.endswith("\n\nUse pnpm 10\n")


SECRET = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7h8"


@pytest.mark.parametrize(
    "place", [("Use pnpm", f"Use {SECRET}"), ("id: ", f"tags: [{SECRET}]\nid: "), ("id: ", f"note: {SECRET}\nid: ")]
)
def test_a_secret_typed_into_a_file_is_taken_out(opened, desk, kept, edit, sync, *, folder, place):
    """Out of the file and of the database, and the person learns where it was."""
    record, path = kept()
    edit(path, *place)
    report = sync()

    [(where, finding)] = report.redactions
    assert (where, finding.mark in path.read_text()) == (str(path.relative_to(folder)), True)
    opened.close()
    data = b"".join(file.read_bytes() for file in desk.root.rglob("*") if file.is_file())
    assert SECRET.encode() not in data
    assert SECRET not in repr(opened.memory.history(record.id))


def test_a_secret_in_a_new_file_is_taken_out(opened, folder, sync):
    """Before anything of it is kept."""
    (folder / "decisions").mkdir()
    path = folder / "decisions" / "token.md"
    path.write_text(f"The token is {SECRET} for now\n")

    assert [where for where, _ in sync().redactions] == ["decisions/token.md"]
    assert SECRET not in path.read_text() + opened.memory.list()[0].content
    assert "[secret:github-pat:" in path.read_text()


def test_if_both_changed_the_file_wins_and_the_loser_stays(opened, kept, edit, sync):
    """A person's edit is never overwritten, and what it replaced is in the history."""
    record, path = kept()
    edit(path, "pnpm", "yarn")
    opened.store.store.apply([change_to(opened, record, "Use bun, not npm")])
    sync()

    assert [past.content for past in opened.memory.history(record.id)] == [
        "Use yarn, not npm",
        "Use bun, not npm",
        "Use pnpm, not npm",
    ]
    assert "Use yarn" in path.read_text()
    assert sync().is_empty


def change_to(opened, record, content):
    """The next version of a record, as another process would write it that dies before its file."""
    from commonplace.engine.admission import search_terms  # noqa: PLC0415
    from commonplace.model.changes import Put  # noqa: PLC0415 - used here only

    after = record.replace(content=content, updated_at=opened.clock())
    return Put(record=after, terms=search_terms(after), expect=record.version)


def test_an_edit_wins_over_an_update_that_did_not_see_it(opened, kept, edit, sync):
    """An update by command while the file lies edited loses neither."""
    record, path = kept()
    edit(path, "pnpm", "yarn")
    opened.memory.update(record.id, content="Use bun, not npm")
    sync()

    said = [past.content for past in opened.memory.history(record.id)]
    assert said == ["Use yarn, not npm", "Use bun, not npm", "Use pnpm, not npm"]
    assert "Use yarn" in path.read_text()


@pytest.mark.parametrize("count", [4, 10])
def test_many_files_gone_at_once_are_asked_about(opened, kept, sync, count):
    """A branch without them or a mistake is more likely than a wish: nothing happens but a report."""
    files = [kept(f"note number {n}")[1] for n in range(count)]
    for path in files:
        path.unlink()
    report = sync()

    assert (len(report.missing), report.archived) == (count, ())
    assert len(opened.memory.list()) == count
    assert sync() == report


def test_the_rest_of_a_sync_goes_on_while_files_are_missing(opened, kept, edit, sync):
    """What is asked about holds up nothing else."""
    files = [kept(f"note number {n}")[1] for n in range(6)]
    for path in files[:5]:
        path.unlink()
    edit(files[5], "note number 5", "something new")

    assert (len(sync().missing), texts(opened.memory.recall("something new"))[:1]) == (5, ["something new"])


def test_missing_files_can_be_accepted(opened, kept, sync):
    """Who says that it was meant gets it done."""
    for number in range(5):
        kept(f"note number {number}")[1].unlink()
    report = sync(accept_missing=True)

    assert (len(report.archived), report.missing) == (5, ())
    assert (opened.memory.list(), len(opened.memory.list(states=[State.ARCHIVED]))) == ([], 5)
    assert sync().is_empty


def test_missing_files_that_come_back_are_no_news(opened, kept, sync):
    """The other branch was left again."""
    paths = [kept(f"note number {n}")[1] for n in range(5)]
    data = {path: path.read_bytes() for path in paths}
    for path in paths:
        path.unlink()
    assert sync().missing
    for path in paths:
        path.write_bytes(data[path])

    assert (sync().missing, len(opened.memory.list())) == ((), 5)
    assert all(record.version == 1 for record in opened.memory.list())


def test_a_few_files_may_vanish_without_asking(kept, sync):
    """Three are a tidy-up."""
    for number in range(3):
        kept(f"note number {number}")[1].unlink()

    assert len(sync().archived) == 3


def test_an_absent_folder_is_an_error(opened, kept, sync, folder):
    """It is taken for anything but a wish to archive everything."""
    record, _ = kept()
    folder.rename(folder.with_name("elsewhere"))

    with pytest.raises(StoreError, match="is missing; its records were left as they are"):
        sync()
    assert opened.memory.get(record.id) == record


def test_archiving_by_hand_and_back(opened, kept, edit, add_line, sync):
    """A date in the file archives; taking it out restores."""
    record, path = kept()
    add_line(path, "archived: 2026-01-01")
    sync()
    assert opened.memory.get(record.id).state(opened.clock()) is State.ARCHIVED
    assert not opened.memory.recall("pnpm").hits
    edit(path, "archived: 2026-01-01\n", "")
    sync()
    assert texts(opened.memory.recall("pnpm")) == ["Use pnpm, not npm"]


def test_the_file_of_an_archived_record_may_go(opened, kept, sync, folder):
    """It is archived already: nothing happens, and nothing is expected there any more."""
    record, path = kept()
    opened.memory.archive(record.id)
    opened.store.settle()
    path.unlink()

    assert sync().is_empty
    assert opened.store.files(str(folder)) == []
    assert not opened.folders.is_changed(opened.where.project)


def test_a_person_releases_what_is_held_in_the_file(opened, kept, edit, sync):
    """Review can be done in an editor."""
    record, path = kept(held=True)
    assert not opened.memory.recall("pnpm").hits
    edit(path, "held: true\n", "")
    sync()

    assert opened.memory.get(record.id).held is False


def test_nobody_makes_himself_trusted_in_a_file(opened, desk, edit, sync):
    """Trust and source of a known record are the store's to say."""
    agent = desk.open(channel=Channel.AGENT)
    record = agent.memory.remember("Use pnpm", category="decisions").record
    agent.store.settle()
    path = next((desk.root / "shop" / ".commonplace" / "decisions").iterdir())
    edit(path, "source: agent", "source: user")
    edit(path, "trust: agent", "trust: user")
    sync()

    after = opened.memory.get(record.id)
    assert (after.source, after.trust) == (record.source, Trust.AGENT)


def test_a_copied_file_is_asked_about(opened, kept, sync):
    """One id is one record; whoever wants two deletes a line."""
    record, path = kept()
    copy = path.with_name("copy.md")
    copy.write_bytes(path.read_bytes())
    [trouble] = sync().troubles

    assert (trouble.path, len(opened.memory.list())) == ("decisions/copy.md", 1)
    assert "delete its id line" in trouble.reason
    copy.write_text(copy.read_text().replace(f"id: {record.id}\n", "").replace("pnpm", "bun"))
    sync()
    assert {live.content for live in opened.memory.list()} == {"Use pnpm, not npm", "Use bun, not npm"}


def test_a_key_that_is_taken_holds_up_one_file_only(opened, kept, edit, sync, folder):
    """Two files with one key are one too many: the second is reported, and everything else goes on."""
    kept("port 3000", key="port")
    _, other = kept("Deploy on Mondays")
    edit(other, "Mondays", "Fridays")
    (folder / "decisions" / "copy.md").write_text("---\nkey: port\n---\nport 4000\n")
    [trouble] = sync().troubles

    assert trouble.path == "decisions/copy.md"
    assert "the key 'port' is taken" in trouble.reason
    assert texts(opened.memory.recall("deploy")) == ["Deploy on Fridays"]
    assert texts(opened.memory.recall("port")) == ["port 3000"]


def test_an_edited_key_that_is_taken_holds_up_one_file_only(opened, kept, edit, sync):
    """An edit that cannot be is reported; the record stays as it is."""
    kept("port 3000", key="port")
    record, path = kept("port 4000", key="other port")
    edit(path, "key: other port", "key: port")
    _, third = kept("Deploy on Mondays")
    edit(third, "Mondays", "Fridays")

    assert "the key 'port' is taken" in sync().troubles[0].reason
    assert opened.memory.get(record.id) == record
    assert texts(opened.memory.recall("deploy")) == ["Deploy on Fridays"]


def test_what_is_no_record_is_left_alone(opened, folder, kept, sync):
    """Hidden files are nobody's business; other files, links and deeper folders are named and left as they are."""
    kept()
    (folder / "README.md").write_text("hello")
    (folder / "decisions" / ".hidden.md").write_text("hidden")
    (folder / "decisions" / "notes.txt").write_text("text")
    (folder / "decisions" / "deep").mkdir()
    (folder / "decisions" / "deep" / "x.md").write_text("deep")
    (folder / "decisions" / "link.md").symlink_to("/etc/passwd")
    (folder / ".git").mkdir()
    (folder / ".git" / "x.md").write_text("git")

    report = sync()
    assert [one.path for one in report.troubles] == ["decisions/deep/x.md", "decisions/link.md", "decisions/notes.txt"]
    assert report.replace(troubles=()).is_empty
    assert len(opened.memory.list(states=State)) == 1


def test_leftovers_of_the_dead_are_swept(folder, kept, sync):
    """Whoever writes holds the folder's lock, so the next sync removes what lies about, however young it is."""
    kept()
    left = folder / "decisions" / ".tmp-0011223344556677"
    left.write_text("half")
    sync()

    assert not left.exists()


def test_two_files_of_one_name_never_overwrite_each_other(opened, folder, sync, tree):
    """Reclassifying a record whose new folder has a file of that name leaves that file alone."""
    for category in ("decisions", "procedures"):
        (folder / category).mkdir()
        (folder / category / "deploy.md").write_text(f"words of {category}\n")
    sync()
    (folder / "decisions" / "deploy.md").write_text((folder / "decisions" / "deploy.md").read_text() + "edited since\n")
    record = next(record for record in opened.memory.list() if record.category == "procedures")
    opened.memory.reclassify(record.id, "decisions")

    said = tree()
    assert len(said) == 2
    assert sum("edited since" in text for text in said.values()) == 1
    sync()
    assert {live.content for live in opened.memory.list()} == {
        "words of decisions\nedited since",
        "words of procedures",
    }


def test_a_record_of_another_project_becomes_a_new_one_here(desk, opened, kept):
    """A file carried over from elsewhere is this project's own from now on; the other keeps its record."""
    record, path = kept()
    other = desk.folder("other", "github.com/acme/other")
    (other / "decisions").mkdir()
    (other / "decisions" / path.name).write_bytes(path.read_bytes())
    there = desk.open("other")
    there.folders.sync(there.where.project)

    [carried] = there.memory.list(scopes=[there.where.project])
    assert (carried.content, carried.id != record.id) == (record.content, True)
    assert opened.memory.get(record.id) == record


def test_an_erased_record_takes_its_file_along(opened, kept, sync, tree):
    """Forgotten is forgotten, on disk too."""
    record, _ = kept()
    opened.memory.forget(record.id)

    assert tree() == {}
    assert sync().is_empty


def test_an_erased_record_does_not_come_back_from_its_file(opened, kept, sync, tree):
    """A file that was left behind, because somebody died before removing it, is removed by the next sync."""
    record, path = kept()
    opened.database.apply([delete(opened, record)])
    report = sync()

    assert (report.removed, tree()) == ((f"decisions/{path.name}",), {})
    with pytest.raises(NotFound):
        opened.memory.get(record.id)


def delete(opened, record):
    """The change that erases a record."""
    from commonplace.model.changes import Delete  # noqa: PLC0415 - used here only
    from commonplace.model.queries import ANY_STATE, Filter  # noqa: PLC0415

    ids = frozenset({record.id})
    return Delete(where=Filter(scopes=frozenset({record.scope}), at=opened.clock(), states=ANY_STATE, ids=ids))


def test_a_file_edited_after_its_record_was_erased_is_a_new_record(opened, kept, edit, sync):
    """A person's new words are never thrown away; they are a record of their own."""
    record, path = kept()
    edit(path, "pnpm", "yarn")
    opened.database.apply([delete(opened, record)])
    sync()

    [live] = opened.memory.list()
    assert (live.content, live.id != record.id) == ("Use yarn, not npm", True)
