"""Verbs that look after a memory: what they return, and what they refuse."""

from __future__ import annotations

import pytest

from commonplace.engine.memory import Memory
from commonplace.model.binding import Binding
from commonplace.model.errors import Conflict, Forbidden, InvalidInput
from commonplace.model.records import Channel, Kind
from commonplace.model.scopes import Scope
from commonplace.records import MemoryAccess
from ferry import CALL, voyage
from stands import sqlite_memory


@pytest.fixture
def ferry(tmp_path):
    """A project after some weeks of use."""
    return voyage(tmp_path)


def test_growth_ends_with_what_the_status_counts(ferry):
    """Twelve weeks back and now; live and held records count alike."""
    grown = {(one.scope, one.what): one.counts for one in ferry.call("growth").rows}
    stored = [one for one in ferry.call("status").stored if one.scope == "project" and one.state.value != "archived"]
    counted = sum(one.count for one in stored if one.kind in {kind.value for kind in Kind})
    assert len(grown["project", "records"]) == 13
    assert grown["project", "records"][-1] == counted


def test_a_file_that_cannot_be_read_is_named_with_its_line_until_it_is_mended(ferry):
    """And a merge that was not finished is a conflict."""
    folder = ferry.root / ".commonplace" / "facts"
    (folder / "flags.md").write_text("---\ntags: [flags\n---\n\nNo end.\n", encoding="utf-8")
    (folder / "merge.md").write_text("One\n<<<<<<< ours\nTwo\n=======\nThree\n>>>>>>> theirs\n", encoding="utf-8")
    found = {one.path.rpartition("/")[2]: (one.kind, one.line) for one in ferry.call("troubles").troubles}
    assert found == {"flags.md": ("file", 3), "merge.md": ("conflict", 2)}
    for path in folder.glob("[fm]*.md"):
        if path.name in found:
            path.unlink()
    assert ferry.call("troubles").troubles == ()


def test_settings_are_previewed_changed_and_guarded(ferry):
    """A preview writes nothing; a file that was changed meanwhile is not written over; comments stay."""
    held = ferry.call("settings")
    before = ferry.config.read_text(encoding="utf-8")
    preview = ferry.call("change_settings", {"recall_limit": 12}, preview=True)
    assert "+recall_limit: 12" in preview.diff
    assert ferry.config.read_text(encoding="utf-8") == before
    ferry.call("change_settings", {"recall_limit": "12", "memories.enabled": False}, digest=held.digest)
    after = ferry.config.read_text(encoding="utf-8")
    assert "recall_limit: 12" in after
    assert "# we learn from sessions" in after
    with pytest.raises(Conflict, match="changed meanwhile"):
        ferry.call("change_settings", {"recall_limit": 13}, digest=held.digest)


@pytest.mark.parametrize("name", ["store", "key_hosts", "scripts_speak_as", "embedder_base_url"])
def test_settings_about_trust_and_where_data_goes_are_not_changed_by_a_verb(ferry, name):
    """A key of a server must not lead every text to another address."""
    with pytest.raises(InvalidInput, match="only you change it"):
        ferry.call("change_settings", {name: "x"}, scope="assistant")


@pytest.mark.parametrize("verb", ["jobs", "backup", "agents", "settings", "check"])
def test_an_agents_own_memory_on_a_server_has_none_of_it(tmp_path, verb):
    """It has no files, no settings and no jobs."""
    scope = Scope.parse("user:agent")
    binding = Binding(channel=Channel.AGENT, writes=dict.fromkeys(Kind, scope), reads=(scope,))
    store = sqlite_memory(tmp_path)
    with pytest.raises(Forbidden, match="without files, settings and jobs"):
        CALL[verb](MemoryAccess(Memory(store, binding)))
    store.close()
