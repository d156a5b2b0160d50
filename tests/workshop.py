"""A project that learns: a store, a folder, a clock moved by hand, a model that says what it was told, a person."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from commonplace.app import open_store
from commonplace.config.learning import Learning
from commonplace.files.artifacts import stored_artifacts
from commonplace.learning.consolidate import consolidate_memory
from commonplace.learning.workspace import Workspace
from commonplace.model.binding import Binding
from commonplace.model.changes import Enqueue, Put, PutDocument
from commonplace.model.documents import Document, DocumentKind
from commonplace.model.errors import ProviderError
from commonplace.model.ids import new_id
from commonplace.model.jobs import Job
from commonplace.model.ports import ModelAnswer
from commonplace.model.queries import ANY_STATE, Filter, Order
from commonplace.model.records import CATEGORIES, Channel, Kind, Record, Source, Trust
from commonplace.model.scopes import Scope
from commonplace.text.words import terms

SHOP = Scope.of(("project", "shop"))
PROMPTS = Path(__file__).parents[1] / "src" / "commonplace" / "learning" / "prompts"


class Scripted:
    """A model that answers with what it was given, one after the other; the last one again and again."""

    name, window = "scripted:one", None

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def ask(self, system, prompt, *, max_tokens, effort="low"):  # noqa: ARG002 - as the port has it
        """Answer, or raise what stands there instead of an answer."""
        self.asked.append((system, prompt))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        answer = answer(prompt) if callable(answer) else answer
        if isinstance(answer, Exception):
            raise answer
        return ModelAnswer(text=answer, model=self.name, tokens_in=10, tokens_out=5)


class Shop:
    """One project with its store and its folder."""

    def __init__(self, folder, clock, *, store=None, place=None, scope=SHOP, model=None, **learning):
        self.folder, self.clock, self.scope = Path(folder) / "files", clock, scope
        self.store = store or open_store(place or os.fspath(Path(folder) / "memory.db"))
        self.model = model
        self.place = Workspace(
            store=self.store, scope=scope, folder=str(self.folder), bind=self.binding, clock=clock, model=self.role,
            learning=Learning(**{"enabled": True, "mode": "model" if model else "rules"} | learning),
            prompt=lambda name: (PROMPTS / name).read_text(encoding="utf-8"), secret=lambda: b"k" * 32,
        )  # fmt: skip

    def binding(self, channel):
        """Who writes."""
        only = frozenset({self.scope})
        return Binding(channel=channel, writes=dict.fromkeys(Kind, self.scope), reads=(self.scope,), transcripts=only)

    def role(self, role):
        """The model of a role."""
        self.role_asked = role
        if self.model is None:
            raise ProviderError("there is no model")
        return self.model

    def keep(self, content, category="decisions", **fields):
        """Keep a record, a second later."""
        now = self.clock.forward()
        given = {"id": new_id(now), "scope": self.scope, "kind": CATEGORIES.get(category, Kind.SEMANTIC)}
        given |= {"source": Source(channel=Channel.USER), "trust": Trust.USER, "created_at": now, "updated_at": now}
        record = Record(content=content, category=category, **given | fields)
        return self.store.apply([Put(record=record, terms=tuple(terms(content)))])[0].records[0]

    def extracted(self, session, text="raw", *, summary="what it was about", records=(), **fields):
        """Leave what extraction leaves of a session, and ask for a consolidation."""
        now = self.clock.forward()
        document = Document(
            scope=self.scope, kind=DocumentKind.EXTRACTION, name=session, digest=f"{session}{text}", content=text,
            metadata={"summary": summary, "slug": None, "records": list(records)} | fields,
            source=Source(channel=Channel.EXTRACTION), trust=Trust.AGENT, created_at=now, updated_at=now,
        )  # fmt: skip
        job = Job(scope=self.scope, kind="consolidate", key="memory", watermark=int(now.timestamp()))
        self.store.apply([PutDocument(document=document), Enqueue(job=job)])

    def run(self, **options):
        """Consolidate, a second later."""
        self.clock.forward()
        return consolidate_memory(self.place, **options)

    def text(self, name="MEMORY.md"):
        """What the file says."""
        return (self.folder / name).read_text(encoding="utf-8")

    def edit(self, old, new, name="MEMORY.md"):
        """Change a file as a person does."""
        text = self.text(name)
        assert old in text
        self.write(text.replace(old, new), name)

    def write(self, text, name="MEMORY.md"):
        """Write a file as a person does."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    @property
    def artifacts(self):
        """Every artifact in the store, by name, with its text."""
        return {name: one.content for name, one in stored_artifacts(self.place).items()}

    @property
    def files(self):
        """Every file of the folder, by its path, with its text; without the line end that a file has."""
        found = [path for path in self.folder.rglob("*") if path.is_file()] if self.folder.is_dir() else []
        return {str(path.relative_to(self.folder)): path.read_text(encoding="utf-8")[:-1] for path in sorted(found)}

    @property
    def records(self):
        """Every record in whatever state, by its words."""
        where = Filter(scopes=frozenset({self.scope}), at=self.clock(), states=ANY_STATE)
        return {one.content: one for one in self.store.find(where, order=Order.ID, limit=10_000)}

    @property
    def job(self):
        """Where the job of consolidation stands."""
        return next(one for one in self.store.jobs([self.scope], now=self.clock()) if one.job.kind == "consolidate")

    def later(self, seconds):
        """Let time pass."""
        self.clock.forward(timedelta(seconds=seconds))


def reply(memory="", summary="- the short form", skills=(), **more):
    """A model's answer in the form that is asked for."""
    return json.dumps({"memory_md": memory, "memory_summary": summary, "skills": list(skills)} | more)


class Now:
    """The clock of this machine, or one that is ahead of it: for processes of their own."""

    def __init__(self, ahead=timedelta(0)):
        self.ahead = ahead

    def __call__(self):
        return datetime.now(UTC) + self.ahead

    def forward(self, by=timedelta(0)):
        """Move on, and say what time it is then."""
        self.ahead += by
        return self()
