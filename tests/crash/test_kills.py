"""Commands that are killed, and what a dead process leaves behind."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from datetime import timedelta

import pytest

from commonplace.app import open_app
from commonplace.model.jobs import Claim, Job, Reason
from commonplace.model.queries import State
from commonplace.stores.sqlite.store import SqliteStore
from faults.kills import COMMANDS, FILES, edit_files, killed_commands, template
from stands import ADA

#: Dies in a sync: when it has committed what it read, before it has written a file or made a vector.
DYING = """
import os
from commonplace.app import open_app
from commonplace.files.mirror import MirroredStore
MirroredStore.write = lambda *_, **__: os._exit(9)
with open_app() as app:
    app.folders.sync(app.where.project)
"""
CLAIMING = """
import sys
from datetime import UTC, datetime, timedelta
from commonplace.model.jobs import Job
from commonplace.model.scopes import Scope
from commonplace.stores.sqlite.store import SqliteStore
job = Job(scope=Scope.parse("user:ada"), kind="extract", key="session", watermark=1)
SqliteStore(sys.argv[1]).claim(job, lease=timedelta(hours=1), now=datetime(2026, 1, 1, 12, tzinfo=UTC))
print("claimed", flush=True)
sys.stdin.read()
"""


def test_a_sync_that_died_is_taken_up_exactly(tmp_path):
    """The next one makes no version twice, and misses no vector."""
    world = template(tmp_path)
    edit_files(world)
    assert world.start(DYING).wait() == 9
    world.ok("sync", "--accept-missing")
    with open_app(str(world.project), env=world.env) as app:
        pasts = [app.memory.history(record.id) for record in app.memory.list(states=State, limit=100)]
        texts = [[version.content for version in past if version.archived_at is None] for past in pasts]
        assert len(texts) >= FILES
        assert all(len(set(past)) == len(past) for past in texts)
        assert app.store.count_unembedded(app.embedder.identity) == 0


def test_a_job_whose_worker_is_dead_is_claimed_at_once(tmp_path, make):
    """While it lives its lease holds; another machine's process is not looked for."""
    path, job = str(tmp_path / "memory.db"), Job(scope=ADA, kind="extract", key="session", watermark=1)
    lease = timedelta(hours=1)
    worker = subprocess.Popen(
        [sys.executable, "-c", CLAIMING, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ
    )
    with worker, closing(SqliteStore(path)) as store:
        assert worker.stdout.readline() == b"claimed\n"
        assert store.claim(job, lease=lease, now=make.clock()).reason is Reason.RUNNING
        worker.kill()
        worker.wait()
        assert isinstance(store.claim(job, lease=lease, now=make.clock()), Claim)


@pytest.mark.slow
def test_a_command_that_is_killed_can_be_run_again(tmp_path):
    """Whatever it was doing."""
    result = killed_commands(tmp_path, len(COMMANDS))
    assert result.violations == []
