"""What goes to the user's own memory is in no file of the project's folder, whichever way it was learned."""

from __future__ import annotations

import json

import pytest
from learners import Scripted, fact, lines, reply

from commonplace.learning.consolidate import consolidate_memory
from commonplace.learning.extract_host import commit_extraction, prepare_extraction
from commonplace.model.changes import PutDocument
from commonplace.model.documents import DocumentKind
from commonplace.model.queries import DocumentFilter

OWN = "I prefer terse haiku answers, in every project."
SHARED = "We decided to use pnpm, not npm, in this repo."
WORDS = ("haiku", "terse")

EXTRACTED = reply(
    fact("The user prefers terse haiku answers", "preferences", scope="assistant", quote=OWN, turns=[1]),
    fact("Use pnpm, not npm", quote="use pnpm, not npm", turns=[2]),
    summary="The user likes terse haiku answers; pnpm was chosen", raw=f"- {OWN}\n- use pnpm", slug="haiku_pnpm",
)  # fmt: skip


def consolidated(prompt):
    """A model that repeats whatever it is shown."""
    shown = [line for line in prompt.splitlines() if line.lstrip().startswith("- ")]
    memory = "\n".join(["# Memory", "", "## Decisions", "", *shown, "- Use pnpm"])
    return json.dumps({"memory_md": memory, "memory_summary": "\n".join(shown) or "pnpm", "skills": []})


@pytest.fixture
def learned(place, learn, indexed, clock, tmp_path):
    """Learn from the session in that mode, to the end."""

    def by_host(thinks):
        indexed("s1", lines(OWN, SHARED))
        clock.forward()
        prepared = prepare_extraction(thinks, str(tmp_path / "prepared"), only=["s1"])
        [work] = [path.parent for path in (tmp_path / "prepared").glob("*/work.json")]
        (work / "answer.json").write_text(EXTRACTED)
        assert not commit_extraction(thinks, prepared.folder).failed
        return consolidate_memory(place, force=True)

    def learned(mode):
        model = Scripted(lambda prompt: EXTRACTED if "Session `" in prompt else consolidated(prompt))
        thinks = place.replace(learning=place.learning.replace(mode=mode), model=lambda _role: model)
        if mode == "host":
            return by_host(thinks)
        learn("s1", lines(OWN, SHARED), place=thinks)
        return consolidate_memory(thinks, force=True)

    return learned


def leaks(folder):
    """The files of a folder in which a word of the user's own is."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    found = [path.name for path in files if any(word in path.read_text(errors="replace") for word in WORDS)]
    return found + [path.name for path in files if any(word in path.name for word in WORDS)]


@pytest.mark.parametrize("mode", ["rules", "model", "host"])
def test_no_file_of_the_project_has_a_word_of_the_users_own_memory(opened, place, learned, folder, mode):
    """Raw memories, summaries, MEMORY.md, skills are of the project's facts alone; the record is where it belongs."""
    assert learned(mode).status == "consolidated"
    assert leaks(folder) == []
    assert "pnpm" in (folder / "raw_memories.md").read_text()
    own = [record for record in opened.memory.list(limit=50) if record.scope == place.personal]
    assert [record for record in own if "haiku" in record.content]


def test_an_extraction_of_an_earlier_version_is_cleaned_when_it_is_shown(opened, place, learn, folder):
    """Its text was not divided then; what is written to the project's folder is."""
    learn("s1", lines(OWN, SHARED))
    where = DocumentFilter(scopes=frozenset({place.scope}), kinds=frozenset({DocumentKind.EXTRACTION}))
    [made] = place.store.documents(where, limit=9)
    place.store.apply([PutDocument(document=made.replace(content=f"- {OWN}\n- {SHARED}", digest="earlier"))])
    consolidate_memory(place, force=True)

    assert leaks(folder) == []
    assert "pnpm" in (folder / "raw_memories.md").read_text()
    assert len(opened.memory.list(limit=50)) == 2
