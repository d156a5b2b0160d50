"""The policy for personal data, as the settings of each scope have it."""

from __future__ import annotations

from stands import agree

CARD = "4539 1488 0343 " + "6467"


def set_policy(path, policy):
    """Change the line of a settings file, which `init` has written."""
    text = path.read_text()
    text += "" if "personal_data: allow" in text else "personal_data: allow\n"
    path.write_text(text.replace("personal_data: allow", f"personal_data: {policy}"))
    if path.parent.name == ".commonplace":
        agree(path.parents[1])


def test_each_scope_has_a_policy_of_its_own(cli):
    """The project refuses, the user's own memory masks; without a setting a record is tagged."""
    assert cli.add(f"pay with {CARD}")["tags"] == ["personal:card"]
    set_policy(cli.folder / "work/.commonplace/config.yaml", "block")
    set_policy(cli.home / "config.yaml", "mask")

    refused = cli("record", "add", f"pay with {CARD} again", "--category", "decisions")
    assert (refused.code, "`personal_data: block`" in refused.err, CARD in refused.err) == (2, True, False)
    masked = cli.add(f"pay with {CARD}", "preferences", "--scope", "assistant")
    assert (masked["content"].startswith("pay with [secret:card:"), masked["tags"]) == (True, [])


def test_a_file_made_by_hand_is_tagged_or_left(cli):
    """A file with personal data where it is refused stays a file, and the sync says why."""
    folder = cli.folder / "work/.commonplace/decisions"
    folder.mkdir(exist_ok=True)
    (folder / "one.md").write_text(f"pay with {CARD}\n")
    cli.ok("sync")
    assert "tags: ['personal:card']" in (folder / "one.md").read_text().replace('"', "'")
    assert cli.ok("sync").lines[0] == "project: in sync"

    set_policy(cli.folder / "work/.commonplace/config.yaml", "block")
    (folder / "two.md").write_text(f"refund to {CARD}\n")
    done = cli("sync")
    assert "`personal_data: block`" in done.out + done.err
    assert (folder / "two.md").read_text() == f"refund to {CARD}\n"


def test_an_unknown_policy_is_an_error(cli):
    """It names the file, the key and the words that are known."""
    set_policy(cli.home / "config.yaml", "hide")
    assert "personal_data: should be one of allow, mask, block" in cli("status").err
