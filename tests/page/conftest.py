"""A real Chromium on the page of a real process: what a person sees and does."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from ferry import Ferry, voyage

COMMAND = str(Path(sys.executable).with_name("commonplace"))
CHROMIUM = shutil.which("chromium")
MISSING = "these tests drive Debian's Chromium, which is not here; `scripts/browser` installs it"
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
AXE = Path(__file__).with_name("axe.min.js")
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 320, "height": 800}


def pytest_collection_modifyitems(items):
    """Every test here is slow; without the browser it is skipped, and where CI is set it fails."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slow)
            if CHROMIUM is None and not os.environ.get("CI"):
                item.add_marker(pytest.mark.skip(reason=MISSING))


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    """The browser, with a profile of its own; it ends with the module, and so does its event loop."""
    if CHROMIUM is None:
        pytest.fail(MISSING)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=FLAGS, env=os.environ | {"HOME": str(tmp_path_factory.mktemp("browser"))}
        )
        yield browser
        browser.close()


class Page:
    """The page of a process that runs, and the browsers that look at it."""

    def __init__(self, chromium, process, link):
        self.chromium, self.process, self.link = chromium, process, link
        self.root = link.partition("/ui/")[0]
        self.origins, self.errors = set(), []

    def enter(self, **options):
        """Sign in with a browser of its own; the link works once, so further ones share its cookies."""
        context = self.chromium.new_context(viewport=WIDE, reduced_motion="reduce", **options)
        context.set_default_timeout(10_000)
        tab = self._tab(context)
        tab.goto(self.link)
        tab.wait_for_url(f"{self.root}/ui/")
        self.cookies = context.cookies()
        return tab

    def again(self, **options):
        """Open another browser window of the person who has signed in."""
        context = self.chromium.new_context(**{"viewport": WIDE, "reduced_motion": "reduce"} | options)
        context.set_default_timeout(10_000)
        context.add_cookies(self.cookies)
        return self._tab(context)

    def _tab(self, context):
        context.on("request", lambda request: self.origins.add(re.match(r"\w+:(//[^/]*)?", request.url)[0]))
        context.on("weberror", lambda error: self.errors.append(str(error.error)))
        context.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        return context.new_page()

    def url(self, path=""):
        """An address on the page."""
        return f"{self.root}/ui/{path}"


@contextmanager
def serve_page(chromium, ferry, *options):
    """Run `commonplace ui` on a project."""
    process = subprocess.Popen(
        [COMMAND, "ui", "--no-browser", *options], cwd=ferry.root, env=ferry.env, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        yield Page(chromium, process, process.stdout.readline().strip())
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(20)
        process.stdout.close()


@pytest.fixture
def ferry(tmp_path):
    """A project after some weeks of use."""
    return voyage(tmp_path)


@pytest.fixture
def fresh(tmp_path):
    """A project in which nothing is stored yet."""
    return Ferry(tmp_path)


@pytest.fixture
def page(chromium, ferry):
    """The page of that project."""
    with serve_page(chromium, ferry) as page:
        yield page


@pytest.fixture
def tab(page):
    """A browser that has signed in."""
    tab = page.enter()
    yield tab
    tab.context.close()


def follow(tab, link):
    """Click what opens another page, and wait for it."""
    with tab.expect_navigation():
        link.click()


def audit(tab):
    """What axe-core finds on a view as it is now: each finding with the places."""
    tab.evaluate(AXE.read_text(encoding="utf-8"))
    found = tab.evaluate(
        "() => axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']})"
    )
    return {one["id"]: [node["html"][:120] for node in one["nodes"]] for one in found["violations"]}
