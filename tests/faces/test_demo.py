"""The first minute."""

from __future__ import annotations

import re
import tempfile
import time
from pathlib import Path


def test_the_demo_does_what_it_says(outside):
    """It keeps, asks, finds a hand edit, asks the past, shows the brief, says where to go, and leaves nothing."""
    outside.env(TMPDIR=outside.folder)
    began = time.monotonic()
    done = outside.start("demo")
    assert (done.code, time.monotonic() - began < 20) == (0, True)
    for shown in (
        "$ commonplace init",
        "$ commonplace record add",
        "just release",
        '<memory seal="',
        "commonplace status",
    ):
        assert shown in done.out
    assert "a secret (password) was removed" in done.err
    now, then = re.findall(r"--limit 1.*\n.*\tUse (\w+), not", done.out)
    assert (now, then) == ("bun", "pnpm")
    assert not list(outside.folder.glob("commonplace-demo-*"))
    assert [file.name for file in outside.home.iterdir()] == ["config.yaml"]  # the test's own


def test_the_demo_leaves_the_caller_where_they_were(cli, pnpm):
    """Called within a process it gives folder and environment back."""
    cli.monkeypatch.setattr(tempfile, "tempdir", str(cli.folder))
    cli.ok("demo")
    assert Path.cwd() == cli.folder / "work"
    assert cli.recall("pnpm") == [pnpm["content"]]
