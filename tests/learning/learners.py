"""What the tests of learning share: sessions as files, models that say what they are told to."""

from __future__ import annotations

import json

from commonplace.model.ports import ModelAnswer


def message(role, content, time="2026-01-01T00:00:00Z", **more):
    """One line of a transcript."""
    return json.dumps({"role": role, "content": content, "time": time} | more, ensure_ascii=False)


def lines(*messages):
    """A transcript of user messages, or of lines that are ready."""
    return "".join((one if one.startswith("{") else message("user", one)) + "\n" for one in messages)


def reply(*records, summary="we chose tools", raw="- tools were chosen", slug="tools"):
    """An answer that keeps to the contract."""
    said = {"rollout_summary": summary, "rollout_slug": slug, "raw_memory": raw, "records": list(records)}
    return json.dumps(said)


def fact(content="Use pnpm, not npm", category="decisions", **more):
    """A record of an answer."""
    return {"content": content, "category": category} | more


class Scripted:
    """A model that answers from a list, or by a function of the prompt; an error in the list is raised."""

    name, window = "test:scripted", None

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def ask(self, system, prompt, *, max_tokens, effort="low"):
        """Answer the next thing; the last one again and again."""
        self.asked.append({"system": system, "prompt": prompt, "max_tokens": max_tokens, "effort": effort})
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        answer = answer(prompt) if callable(answer) else answer
        if isinstance(answer, Exception):
            raise answer
        return ModelAnswer(text=answer, model=self.name, tokens_in=100, tokens_out=10)
