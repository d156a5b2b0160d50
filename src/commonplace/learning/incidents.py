"""An incident as one record: what went wrong, why, and what mended it, told over several turns and by both.  Pure.

It is kept once the user, or a check, confirms that it is mended: then the symptom is what the user first complained of,
the cause what was said of it since, and the fix what was done last.  Nothing is kept of what nobody confirmed.
"""

# ruff: noqa: E501 - one pattern a line: broken up they could not be read against each other

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from commonplace.engine.transcripts import TOOL, Turn
from commonplace.model.values import Value

TURNS_BACK = 16  # how far before its confirmation an incident may begin
PART_CHARS = 260  # of each part of what is kept
_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?](?!\s|$)[^.!?\n]*)*[.!?]*")
_BROKEN = re.compile(
    r"\b(?:broke\w*|fail\w*|crash\w*|die[ds]?|dead|down|hang\w*|hung|stuck|wrong|error\w*|bug\w*|flak\w*|slow\w*|leak\w*|leaks"
    r"|timeouts?|timed out|oom\w*|50[0-4]s?|40[0-9]s?|empty|blank|missing|lost|loses|drops?|dropped|twice|double|full|flaps?"
    r"|can'?t|can\s?not|cannot|doesn'?t|don'?t work|not work\w*|won'?t|refuses?|rejects?|complain\w*|problem|issue|differs?"
    r"|different|garbled|\?\?\?|weird|spooky|off by|noise|tunnels?|turns? (?:on|off)|goe?s? out|out of|overlap\w*|duplicate[sd]?"
    r"|never (?:arrives?|starts?|ends?)|nothing happens|no longer|red|since (?:yesterday|last|the|monday|tuesday|wednesday|thursday|friday))\b",
    re.IGNORECASE,
)
_SOLVED = re.compile(
    r"\b(?:(?:it |that |now |all )?(?:works?|worked)(?: now| fine| again| perfectly)?(?=[\s.!,:)]|$)|fixed|solved|gone|mended"
    r"|no (?:more )?(?:timeouts?|crash\w*|errors?|drops?|restarts?|duplicates?|stuck|failures?|leaks?)|\d+ (?:drops|errors|failures|restarts)"
    r"|zero (?:restarts|errors|drops)|passes|passed|green|stable|(?:is |looks )?correct now|once\b.*\bout|case closed|disappeared"
    r"|everything is readable|readable|stays? (?:off|on|up)|stayed (?:off|on|up)|believable|runs? (?:through|clean)|it go(?:es)?\b"
    r"|confirmed|that was it|did the trick|good catch|case closed|back (?:up|to normal)|held for|since then|resolved)\b",
    re.IGNORECASE,
)
#: Content with what was done or shown right before.
_CONTENT = re.compile(
    r"\W*(?:(?:ok(?:ay)?|yes|yep|yeah|oh|ah|wow|huh|and|great|nice|perfect|super|thanks|thank you|awesome|excellent)\W+)*"
    r"(?:great|perfect|excellent|awesome|nice|super|thanks|thank you|finally|much better|better|good now|fine now|all good|looks good"
    r"|(?:it|that|they|all|everything|the \w+)\b.{0,40}\b(?:now|again|arrived|came|loads?|opens?|prints?|shows|appears?|there|fine|ok|normal\w*|better|quiet|clean|fast|holds?))\b",
    re.IGNORECASE,
)
_PASSED = re.compile(
    r"\b(?:[1-9]\d* passed|passed|PASS|ok|BUILD SUCCESS\w*|0 (?:failed|failures|errors|differences)|exit(?:ed)?(?: code)? 0)\b|\u2713"
)
_FAILED = re.compile(r"\b[1-9]\d* (?:failed|failures?|errors?)\b|\bFAIL(?:ED|URE)?\b|\bERROR\b")
CHECK_CHARS = 2000  # a check tells its result at the end
_UNSOLVED = re.compile(
    r"\b(?:still|not (?:fixed|solved|yet|gone|working|work)|doesn'?t|didn'?t (?:work|help)|again|only (?:partly|sometimes)|same error"
    r"|but (?:now|it|then|the)|isn'?t|no luck|except|should be (?:fixed|gone)|if it|is it|are they|hope)\b|\?\s*$",
    re.IGNORECASE,
)
_CAUSE = re.compile(
    r"\b(?:because|since|caused|cause|due to|culprit|overlap\w*|mismatch|missing|lacks?|expects?|needs?|reads?|has no|have no|had no|no longer|is not|are not|isn'?t|aren'?t|was not|closes"
    r"|contains?|limited|ran from|removed|picks?|so the|while|whereas|defines?|only|uses?|used|gets?|takes?|holds?|fills?|filled|exceeds?"
    r"|pings?|reports?|two|both|each|every|twice|before|after|would explain|that'?s why|root cause|so root)\b",
    re.IGNORECASE,
)
_GUESS = re.compile(
    r"\b(?:guess|maybe|perhaps|might|could|probably|possibly|likely|i think|looks like|may be|not sure)\b",
    re.IGNORECASE,
)
_DID = re.compile(
    r"\b(?:done|fixed|added|set|set to|replaced|installed|disabled|enabled|removed|dropped|changed|moved|switched|commits?|normali[sz]e\w*|skip\w*|now"
    r"|raised|lowered|pinned|upgraded|downgraded|restarted|reverted|deleted|cleared|rebuilt|renewed|wired|embedd\w*|makes it|scaled?|standardi[sz]\w*"
    r"|guard\w*|wrapped|cached|rewrote|rewritten|turned|off|use[sd]?|made|put|split|merged|limit\w*|rolled|pushed)\b",
    re.IGNORECASE,
)
_EMPTY = re.compile(
    r"^\W*(?:done|ok(?:ay)?|fixed|understood|both (?:fixed|done)|pushed|deployed|merged|good|thanks|yes|no|noted)\W*$",
    re.IGNORECASE,
)


class Incident(Value):
    """An incident that was confirmed to be mended, by the turns in which it was told."""

    confirmed: int  #: the number of the turn that confirms it
    symptom: tuple[int, str]  #: the number of the turn, and its words
    causes: tuple[tuple[int, str], ...]
    fixes: tuple[tuple[int, str], ...]

    @property
    def turns(self) -> tuple[int, ...]:
        """The turns that tell of it, the symptom's first."""
        told = [self.symptom[0], *(at for at, _ in (*self.causes, *self.fixes)), self.confirmed]
        return tuple(dict.fromkeys(told))

    @property
    def content(self) -> str:
        """What is kept: symptom, cause and fix in the words of those who said them."""
        cause = " ".join(_ended(words) for _, words in self.causes)
        fix = " ".join(_ended(words) for _, words in self.fixes)
        return f"{_ended(self.symptom[1])}{f' Cause: {cause}' if cause else ''}{f' Fix: {fix}' if fix else ''}"


def find_incidents(turns: Sequence[Turn], own: Callable[[Turn], str]) -> list[Incident]:
    """Return the incidents of a session; ``own`` gives the words of a turn that are its speaker's."""
    found: list[Incident] = []
    begins = 0
    for number, turn in enumerate(turns):
        if turn.speaker != "user" or number - begins < 2:  # noqa: PLR2004 - a complaint, and what was done about it
            continue
        if _is_solved(turns, number, own(turn)) and (
            one := _told(turns, own, max(begins, number - TURNS_BACK), number)
        ):
            found.append(one)
            begins = number
    return found


def _is_solved(turns: Sequence[Turn], number: int, words: str) -> bool:
    """Whether the user, or a check before them, says that it is mended."""
    head = [one for one in _SENTENCE.findall(words[:PART_CHARS])[:2] if one.strip()]
    if not head or _UNSOLVED.search(head[0]):
        return False
    if any(_SOLVED.search(one) and not _UNSOLVED.search(one) for one in head):
        return True
    last = turns[number - 1]
    checked = (
        last.speaker == TOOL
        and _PASSED.search(last.text[-CHECK_CHARS:])
        and not _FAILED.search(last.text[-CHECK_CHARS:])
    )
    done = last.speaker != TOOL and _DID.search(last.text[:PART_CHARS]) and "?" not in last.text
    return bool((checked or done) and _CONTENT.match(head[0]))


def _told(turns: Sequence[Turn], own: Callable[[Turn], str], start: int, end: int) -> Incident | None:
    said = [(at, turns[at].speaker, own(turns[at])) for at in range(start, end) if turns[at].speaker != TOOL]
    complaint = next(
        ((at, words) for at, who, text in said if who == "user" for words in [_broken(text)] if words), None
    )
    if complaint is None:
        return None
    after = [(at, who, text) for at, who, text in said if at > complaint[0]]
    causes = [(at, words) for at, _, text in after for words in _matching(text, _CAUSE, but=_GUESS)][:2]
    fixes = _fixes(after)
    if not causes or not fixes:
        return None
    return Incident(
        confirmed=end, symptom=complaint, fixes=tuple(one for one in fixes if one not in causes) or fixes,
        causes=tuple(causes),
    )  # fmt: skip


def _broken(text: str) -> str:
    return next((words for words in _sentences(text) if _BROKEN.search(words)), "")


def _fixes(after: Sequence[tuple[int, str, str]]) -> tuple[tuple[int, str], ...]:
    """Return what was done last, and the order for it, if it was the user's."""
    for position in range(len(after) - 1, -1, -1):
        at, who, text = after[position]
        done = [
            words for words in _sentences(text) if _DID.search(words) and not _EMPTY.match(words) and "?" not in words
        ]
        if who == "assistant" and done:
            before = after[position - 1] if position and after[position - 1][1] == "user" else None
            order = _sentences(before[2])[-1:] if before and len(before[2].split()) > 1 else []
            return (*((before[0], words) for words in order if before and "?" not in words), (at, done[0]))
        if who == "assistant" and position and after[position - 1][1] == "user" and _sentences(text):
            order = [words for words in _sentences(after[position - 1][2]) if "?" not in words]
            proposed = _sentences(after[position - 2][2])[-1:] if position > 1 else []
            return (
                *((after[position - 2][0], words) for words in proposed),
                *((after[position - 1][0], words) for words in order[-1:]),
            )
    return ()


def _matching(text: str, wanted: re.Pattern[str], *, but: re.Pattern[str]) -> list[str]:
    return [words for words in _sentences(text) if wanted.search(words) and not but.search(words) and "?" not in words]


def _sentences(text: str) -> list[str]:
    plain = text.replace("\0", " ")
    return [words[:PART_CHARS] for one in _SENTENCE.findall(plain) if len((words := " ".join(one.split())).split()) > 1]


def _ended(words: str) -> str:
    whole = words[:1].upper() + words[1:]
    return whole if whole[-1:] in ".!?" else f"{whole}."
