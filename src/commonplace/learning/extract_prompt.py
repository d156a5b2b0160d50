"""The prompt by which a person lets the agent of their host learn from sessions that are over."""

from __future__ import annotations

import os
import shlex
from hashlib import sha256

from commonplace.app import App
from commonplace.learning.extract_host import INSTRUCTIONS, prepare
from commonplace.learning.opening import open_learning_workspace
from commonplace.model.scopes import Scope
from commonplace.text.cleaning import slug

FOLDER = "extract"  # of prepared extractions, in the data folder


def extraction_prompt(app: App, session: str | None) -> str:
    """Prepare the sessions that are due, or one of them, and return what to ask of a model."""
    work = open_learning_workspace(app)
    folder = os.path.join(app.where.home, FOLDER, _name(work.scope))
    done = prepare(work, folder, only=[session.removeprefix("session:")] if session else None)
    if not done.sessions:
        reasons = sorted({str(skipped.reason) for skipped in done.report.skipped})
        because = f" ({'; '.join(reasons)})" if reasons else ""
        return f"No session waits to be extracted{because}. Say so; there is nothing to do."
    count = f"{len(done.sessions)} finished session{'s' if len(done.sessions) > 1 else ''}"
    return (
        f"{count} of this project can be learned from. The work lies in {folder}\n\n{INSTRUCTIONS}\n"
        f"The last command is: commonplace extract --commit {shlex.quote(folder)}\n"
    )


def _name(scope: Scope) -> str:
    return f"{slug(scope.name)[:40]}-{sha256(str(scope).encode()).hexdigest()[:8]}"
