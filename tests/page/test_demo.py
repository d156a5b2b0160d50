"""``commonplace demo --ui``: a newcomer sees something on every view, and nothing of it is left."""

from __future__ import annotations

import os
import re
import signal
import subprocess

from tests.page.conftest import COMMAND, Page, audit


def test_a_newcomer_sees_something_on_every_view_and_nothing_is_left(chromium, tmp_path):
    """One command; Ctrl-C ends it and its folder."""
    env = os.environ | {"TMPDIR": str(tmp_path), "HOME": str(tmp_path)}
    command = [COMMAND, "demo", "--ui", "--no-browser"]
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        link = next(found[0] for line in process.stdout if (found := re.search(r"http://\S+/ui/enter\S+", line)))
        page = Page(chromium, process, link)
        tab = page.enter()
        for path, words in (
            ("", "Use bun, not pnpm"), ("timeline", "Superseded"), ("review", "smoke test"),
            ("injected/0b1c", "Brief at its start"), ("sessions/0b1c", "harbor-2"), ("health", "No problems."),
        ):  # fmt: skip
            tab.goto(page.url(path))
            assert words in tab.locator("main").inner_text(), path
            assert audit(tab) == {}, path
        tab.context.close()
    finally:
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "Next steps" in rest
    assert not list(tmp_path.glob("commonplace-demo-*"))
