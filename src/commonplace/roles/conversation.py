"""A conversation with a role's agent: turns with their history, saved as a session that can be resumed."""

from __future__ import annotations

from commonplace.agents.loop import AgentReply, Message, OnText, ignore, load_messages, repair
from commonplace.agents.models import TEST
from commonplace.agents.tolerance import Notify, tolerate
from commonplace.model.records import Kind
from commonplace.roles.agent import RoleAgent, recall_block
from commonplace.roles.dialect import MemorySettings
from commonplace.roles.sessions import Sessions, history_window, new_session, recent_words
from commonplace.text.cleaning import clean

UNSAVED = "the conversation was not saved and cannot be resumed"
UNPRUNED = "old sessions were not erased"
UNCONSOLIDATED = "episodes were not consolidated, and wait for the next time"
NO_CONTEXT = "the agent runs without what it remembers"
INTERRUPTED = "(interrupted)"


class Conversation:
    """The turns of one agent, one after the other, each with the history before it."""

    def __init__(self, agent: RoleAgent, *, notify: Notify, sessions: Sessions | None = None) -> None:
        """Start a new session, saved where the agent's are by default."""
        self.id = new_session()
        self.agent = agent
        self.history: list[Message] = []
        self._sessions = sessions or (agent.held.sessions if agent.held else None)
        self._notify = notify
        self._about = ""
        if agent.project:
            agent.project.begin(self.id)
        self._resumable = (agent.role.memory or MemorySettings()).max_resume_messages

    def resume(self) -> int:
        """Load the newest session under a new name; returns its number of messages."""
        found = self._sessions.newest() if self._sessions else None
        self.history = history_window(found.read(), self._resumable) if found else []
        load_messages(self.history)  # raises now if they are unusable
        self._about = recent_words(self.history)
        return len(self.history)

    def recalls(self) -> bool:
        """Return whether there are memories about the session that was resumed."""
        memory = self.agent.memory
        with tolerate(NO_CONTEXT, notify=self._notify):
            return bool(memory and self._about and recall_block(memory, self._about))
        return False

    def context(self) -> list[str]:
        """Return what stands before the agent in the next turn."""
        return self.agent.context(self._about)

    async def say(
        self, prompt: str, *, on_text: OnText = ignore, finishing: bool = False, tokens: int | None = None
    ) -> AgentReply:
        """Run one turn; a turn that fails leaves the history as it was."""
        cleaned, _ = clean(prompt, what="the prompt")
        context: list[str] = []
        with tolerate(NO_CONTEXT, notify=self._notify):
            context = self.context()
        reply = await self.agent.answer(
            cleaned, self.history, context=context, on_text=on_text, finishing=finishing, tokens=tokens
        )
        self.history = history_window(reply.messages, 2 * self._resumable)
        if self.agent.project:
            self.agent.project.say("user", cleaned)
            self.agent.project.say("assistant", reply.output)
        return reply

    def interrupt(self, prompt: str, partial: str) -> None:
        """Add a turn that was interrupted to the history, as far as it went."""
        request = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": prompt}]}
        text = f"{partial} {INTERRUPTED}".strip()
        response = {"kind": "response", "parts": [{"part_kind": "text", "content": text}]}
        self.history = history_window([*self.history, request, repair(response)], 2 * self._resumable)

    def save(self) -> None:
        """Save the session; a failure is reported and ends nothing."""
        if self.agent.project:
            self.agent.project.save()
        if self._sessions is not None and self.history:
            with tolerate(UNSAVED, notify=self._notify):
                self._sessions.save(self.id, self.history)

    def close(self, *moments: str) -> int:
        """Erase all but the newest sessions, and consolidate if the role does so at one of these moments.

        Returns the number of new facts.  Failures are reported and end nothing.
        """
        if self.agent.project:
            self.agent.project.end()
        memory = self.agent.role.memory
        if self._sessions is None or memory is None:
            return 0
        with tolerate(UNPRUNED, notify=self._notify):
            self._sessions.prune(memory.max_sessions)
        if memory.consolidation.enabled and memory.consolidation.interval in moments:
            with tolerate(UNCONSOLIDATED, notify=self._notify):
                return self._consolidate()
        return 0

    def _consolidate(self) -> int:
        held, model = self.agent.held, self.agent.role.model
        both = frozenset({Kind.EPISODIC, Kind.SEMANTIC})  # what is read, and what is written
        if held is None or model is None or model.provider == TEST or not both <= held.memory().binding.writes.keys():
            return 0
        return held.consolidate().created
