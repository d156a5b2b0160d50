"""What the page keeps out: hostile text, other origins, forged forms, used links; and what it never asks for."""

from __future__ import annotations

import http.server
import re
import subprocess
import threading
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from tests.page.conftest import COMMAND, audit, follow, serve_page

HOSTILE = {
    "a script": "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">",
    "right to left": "ההחלטה: כל ההחזרים עוברים דרך התור \u202eevil.exe\u202c and English again",
    "a link": "[click](javascript:alert(1)) <a href='https://evil.example/'>here</a> {{ 7 * 7 }} {% raw %}",
    "sixteen kilobytes": ("A long memory with many words in it. " * 450)[:16_000],
    "one long word": "x" * 3_000,
}
EVIL = """<!doctype html><title>evil</title><body><script>
const told = {read: [], sent: []};
async function attempt(list, url, options) {
  try { const answer = await fetch(url, {credentials: "include", ...options}); list.push(answer.type); }
  catch (error) { list.push("refused"); }
}
async function attack(root) {
  const headers = {"Content-Type": "application/x-www-form-urlencoded"}, body = "text=owned&do=backup&csrf=x";
  for (const path of ["", "live", "health", "static/style.css"]) {
    await attempt(told.read, root + "/ui/" + path, {mode: "cors"});
    await attempt(told.sent, root + "/ui/" + path, {mode: "no-cors"});
  }
  for (const path of ["records", "review", "health", "leave"])
    await attempt(told.sent, root + "/ui/" + path, {method: "POST", mode: "no-cors", headers, body});
  return told;
}
</script><iframe id=f></iframe><form id=form method=post><input name=text value=owned></form>"""


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_only_text_everywhere(page, tab, ferry, text):
    """It runs nothing, leads nowhere and moves no other text, on each view that shows it."""
    record = ferry.add(text, "facts", tags=("hostile",))
    for path in ("", "?q=owned+memory+English", "timeline", f"records/{record.id}", f"records/{record.id}/edit"):
        tab.goto(page.url(path))
        assert "Commonplace" in tab.title()
        assert tab.locator("main script, main img, main [href^='javascript'], main [href*='evil']").count() == 0
        assert not tab.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"), path
    tab.goto(page.url(f"records/{record.id}"))
    shown = "".join(tab.locator(".record-text .memo.whole").all_text_contents())
    assert shown == ferry.call("get", record.id).record.content
    assert audit(tab) == {}
    assert page.origins == {page.root}
    assert page.errors == []


@contextmanager
def elsewhere():
    """Another site on this machine: another port is another origin."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(EVIL.encode())

        def log_message(self, *_):
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def stored(ferry):
    """Everything that is stored, as it is."""
    return [one.record for one in ferry.call("list", state="all", limit=50).records]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_another_site_can_neither_read_nor_change_anything(page, tab, ferry, host):
    """Its requests carry no cookie and are refused; its frames stay empty; its forms do nothing."""
    before = stored(ferry)
    with elsewhere() as evil:
        tab.goto(evil.replace("127.0.0.1", host))
        told = tab.evaluate(f"attack({page.root!r})")
        assert {*told["read"]} == {"refused"}
        assert {*told["sent"]} <= {"refused", "opaque"}
        tab.evaluate(f"document.getElementById('f').src = {page.url()!r}")
        tab.wait_for_timeout(300)
        assert all("ferry" not in frame.title() for frame in tab.frames[1:] if frame.url.startswith(page.root))
        for path in ("records", "health"):
            tab.goto(evil.replace("127.0.0.1", host))
            tab.evaluate(f"document.getElementById('form').action = {page.url(path)!r}")
            with tab.expect_navigation():
                tab.evaluate("document.getElementById('form').submit()")
            assert "ferry" not in tab.title()
    assert stored(ferry) == before
    assert list(ferry.home.glob("backups/*")) == []


def test_a_form_without_its_token_or_from_another_origin_changes_nothing(page, tab, ferry):
    """Cookie and origin are right, the token is not; token and cookie are right, the origin is not."""
    tab.goto(page.url("review"))
    token = tab.locator("[name=csrf]").first.get_attribute("value")
    cookies = {one["name"]: one["value"] for one in tab.context.cookies()}
    before = stored(ferry)
    form = {"text": "owned", "category": "facts"}
    with httpx.Client(base_url=page.root, cookies=cookies) as client:
        own = {"Origin": page.root}
        assert client.post("/ui/records", data=form, headers=own).status_code == 403
        assert client.post("/ui/records", data=form | {"csrf": "x" * 43}, headers=own).status_code == 403
        assert (
            client.post(
                "/ui/records", data=form | {"csrf": token}, headers={"Origin": "http://evil.example"}
            ).status_code
            == 403
        )
        assert (
            client.post(
                "/ui/records", data=form | {"csrf": token}, headers={"Sec-Fetch-Site": "cross-site"}
            ).status_code
            == 403
        )
        assert client.get("/ui/", headers={"Host": "evil.example"}).status_code >= 400
        assert stored(ferry) == before
        assert client.post("/ui/records", data=form | {"csrf": token}, headers=own).status_code == 303
    assert len(stored(ferry)) == len(before) + 1


def test_the_cookie_and_the_headers_are_strict(page, tab):
    """No script can read the cookie, no other site sends it, and no answer may load or run anything foreign."""
    [cookie] = tab.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/ui")
    headers = tab.goto(page.url()).headers
    assert headers["content-security-policy"].startswith("default-src 'self'; ")
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-frame-options"] == "DENY"
    assert {*headers["cache-control"].split()} == {"no-store"}  # the server says so of all its answers, too


def test_the_link_works_once(page, tab):
    """Whoever finds it later is not let in, and neither is anybody without it."""
    tab.goto(page.url())
    with httpx.Client(follow_redirects=True) as stranger:
        assert stranger.get(page.link).status_code == 401
        for path in ("", "health", "records/x", "live", "static/style.css", "injected/7f3a/plain", "no/such/page"):
            answer = stranger.get(page.url(path))
            assert (answer.status_code, "ferry" in answer.text) == (401, False), path
        assert stranger.post(page.url("health"), data={"do": "backup"}).status_code in (401, 403)
        assert stranger.get(f"{page.root}/v1/records/recall").status_code == 404


def test_signing_out_ends_the_session(page, tab):
    """The cookie opens nothing any more."""
    follow(tab, tab.get_by_role("button", name="Sign out"))
    assert tab.goto(page.url()).status == 401


def test_the_server_has_the_page_behind_its_keys(chromium, ferry):
    """Each address under /ui asks for a key; with one the same views open, and a read-only key changes nothing."""
    made = subprocess.run(
        [COMMAND, "keys", "create", "reader", "--read-only"], cwd=ferry.root, env=ferry.env, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    key = re.search(r"\S{30,}", made.stdout)[0]
    process = subprocess.Popen(
        [COMMAND, "serve", "--port", "0"], cwd=ferry.root, env=ferry.env, stderr=subprocess.PIPE, text=True
    )
    root = re.search(r"serving (\S+)", process.stderr.readline())[1]
    try:
        with httpx.Client(base_url=root) as stranger:
            for path in ("", "timeline", "review", "health", "sessions", "injected", "live", "static/keys.js"):
                answer = stranger.get(f"/ui/{path}")
                assert (answer.status_code, "Staging" in answer.text) == (401, False), path
        tab = chromium.new_page()
        tab.goto(f"{root}/ui/")
        tab.get_by_label("Key of this server").fill("wrong")
        follow(tab, tab.get_by_role("button", name="Sign in"))
        assert tab.get_by_label("Key of this server").is_visible()
        tab.get_by_label("Key of this server").fill(key)
        follow(tab, tab.get_by_role("button", name="Sign in"))
        tab.wait_for_url(f"{root}/ui/")
        assert tab.get_by_role("link", name=re.compile("nightly export")).is_visible()
        tab.goto(f"{root}/ui/health")
        follow(tab, tab.get_by_role("button", name="Back up now"))
        assert "read-only" in tab.locator("main").inner_text()
        assert not Path(ferry.home, "backups").exists()
        tab.close()
    finally:
        process.terminate()
        process.communicate(timeout=20)


def test_every_view_works_without_script(chromium, ferry):
    """Links, forms and disclosures do everything; news are polled."""
    with serve_page(chromium, ferry) as page:
        tab = page.enter(java_script_enabled=False)
        tab.get_by_label("Search memory").fill("staging")
        follow(tab, tab.get_by_role("button", name="Search", exact=True))
        follow(tab, tab.get_by_role("link", name=re.compile("Staging runs on two nodes")))
        follow(tab, tab.get_by_role("button", name="Pin"))
        assert tab.get_by_text("Pinned.").is_visible()
        tab.goto(page.url("timeline"))
        assert tab.locator("noscript meta[http-equiv=refresh]").count() == 1
        tab.get_by_label("Injected").uncheck()
        follow(tab, tab.get_by_role("button", name="Apply"))
        assert "Injected" not in tab.locator(".ev .verb").all_inner_texts()
        tab.context.close()
