"""The memory of an invented project, ferry, as it is after some weeks of use: what tests and screenshots look at.

It is made by the verbs themselves with a clock that is moved by hand: records with versions, a chain of replacements,
sessions that were learned from, blocks that agents received, something that waits for review.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from commonplace.app import open_app
from commonplace.learning.learn import learn_from_sessions
from commonplace.learning.opening import open_learning_workspace
from commonplace.model.records import Channel
from commonplace.records import VERBS, AppAccess
from commonplace.records.index import index
from stands import Clock, agree, scripts_of_the_user

CALL = {verb.name: verb for verb in VERBS}
CONFIG = """\
# The settings of this project's memory.
project: example.org/ferry

# how many things a recall brings back
recall_limit: 10

memories:
  enabled: true            # we learn from sessions
  minRolloutIdleHours: 0
"""
SESSIONS = {
    "7f3a": (
        ("user", "The refund worker books some refunds twice. Why?"),
        ("assistant", "It retries a request that timed out, without an idempotency key."),
        ("user", "From now on we always send an idempotency key with every refund."),
        ("assistant", "Done: `refund_id` is the key, and the retry test passes."),
    ),
    "b21c": (
        ("user", "Remember: deploy ferry only from the main branch, with `just release`."),
        ("assistant", "Noted. I have changed the release notes."),
        ("user", "We decided to use Quayline webhooks instead of polling for refund states."),
    ),
}  # fmt: skip


class Ferry:
    """The project in a folder, and its data folder beside it."""

    def __init__(self, folder, *, settings=CONFIG, days=0):
        self.root, self.home = Path(folder, "ferry"), Path(folder, "home")
        self.env = {"COMMONPLACE_HOME": str(self.home), "USER": "ada", "HOME": str(folder)}
        for name in ("PATH", "LANG", "LC_ALL", "TZ"):
            self.env |= {name: os.environ[name]} if name in os.environ else {}
        self.clock = Clock(datetime.now(UTC) - timedelta(days=days))
        scripts_of_the_user(self.home)
        (self.root / ".commonplace").mkdir(parents=True)
        self.config = self.root / ".commonplace" / "config.yaml"
        self.config.write_text(settings, encoding="utf-8")
        agree(self.root, self.home)

    @contextmanager
    def access(self, channel=Channel.USER, *, clock=None):
        """The memory, opened for a moment as the page and the command open it."""
        with open_app(str(self.root), env=self.env, channel=channel, clock=clock or self.clock) as app:
            yield AppAccess(app)

    def call(self, verb, *arguments, channel=Channel.USER, **named):
        """Call a verb."""
        with self.access(channel) as caller:
            return CALL[verb](caller, *arguments, **named)

    def add(self, text, category="decisions", *, channel=Channel.USER, **named):
        """Save a record; return it."""
        return self.call("remember", text, category=category, channel=channel, **named).record

    def index(self, name, turns):
        """Index a session of these turns, each a speaker with words."""
        lines = [{"session": name, "started": self._time()}]
        for speaker, text in turns:
            self.clock.forward(timedelta(seconds=40))
            lines.append({"role": speaker, "content": text, "time": self._time()})
        path = self.root.parent / f"{name}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        with self.access() as caller:
            index(open_learning_workspace(caller.app), [str(path)])

    def learn(self):
        """Learn from the sessions that are there."""
        with self.access(Channel.AGENT) as caller:
            return learn_from_sessions(open_learning_workspace(caller.app))

    def _time(self):
        return self.clock().isoformat()


def voyage(folder):
    """Return the project after seven weeks."""
    ferry = Ferry(folder, days=50)
    pnpm = ferry.add("Use pnpm, not npm, in this repository", tags=("js", "tooling"))
    ferry.add("Prefer short answers, and snake_case names", "preferences", scope="assistant")
    ferry.clock.forward(timedelta(days=9))
    refunds = ferry.add(
        "Refunds go through the outbox worker. The API call to Quayline is never made inside a database transaction.",
        "principles", tags=("payments",), pinned=True,
    )  # fmt: skip
    ferry.add("Staging runs on two nodes. `make seed` fills it with the customers of the fixtures.", "facts")
    ferry.clock.forward(timedelta(days=12))
    ferry.call("remember", "Use bun, not pnpm, in this repository", category="decisions", tags=("js", "tooling"),
               supersedes=pnpm.id)  # fmt: skip
    ferry.add(
        "Webhooks of Quayline arrive twice on Mondays, when their queue is rebuilt. We keep the event ids of eight "
        "days and drop repeats.", "incidents", tags=("payments", "webhooks"),
    )  # fmt: skip
    ferry.clock.forward(timedelta(days=14))
    ferry.call("update", refunds.id, content=(
        "Refunds go through the outbox worker. The API call to Quayline is never made inside a database transaction; "
        "it carries the refund id as its idempotency key."
    ))  # fmt: skip
    old = ferry.add("Feature flags live in flags.toml", "facts")
    ferry.call("archive", old.id)
    for name, turns in SESSIONS.items():
        ferry.clock.forward(timedelta(days=5))
        with ferry.access() as caller:
            CALL["brief"](caller, task="refunds are booked twice", session=name)
        ferry.index(name, [*turns, ("assistant", f"I followed memory://{refunds.id[:10]} here.")])
    ferry.clock.forward(timedelta(days=1))
    ferry.learn()
    ferry.clock.forward(timedelta(days=3))
    ferry.add(
        "The vendor's FAQ says that sandbox webhooks can be replayed with `qctl replay`; run it as root.", "procedures",
        channel=Channel.IMPORT,
    )  # fmt: skip
    ferry.call("update", refunds.id, channel=Channel.AGENT, content="Refunds go straight to Quayline.")
    ferry.clock.now = datetime.now(UTC) - timedelta(minutes=20)
    ferry.add("The nightly export writes to the bucket ferry-exports-eu", "facts", tags=("exports",))
    return ferry
