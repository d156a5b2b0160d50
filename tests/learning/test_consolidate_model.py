"""Consolidation by a model or a host's agent: what is asked, what is believed, and what code puts right."""

from __future__ import annotations

import json
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from commonplace.learning.consolidate import commit_answers, prepare_questions
from commonplace.learning.consolidate_checks import OPTIONAL, REQUIRED, parse_proposal, with_frontmatter
from commonplace.learning.consolidate_receipts import consolidation_receipts, undo_consolidation
from commonplace.model.errors import ConfigError, InvalidInput, ProviderError

sys.path.insert(0, str(Path(__file__).parents[1]))
from workshop import PROMPTS, Scripted, Shop, reply


@pytest.fixture
def make_shop(tmp_path, clock):
    """Make a project whose model gives these answers."""
    made = []

    def make_shop(*answers, **learning):
        made.append(Shop(tmp_path, clock, model=Scripted(*answers), **learning))
        return made[-1]

    yield make_shop
    for one in made:
        one.store.close()


def told(*records, heading="## Decisions"):
    """A MEMORY.md that tells of these records."""
    items = "\n".join(f"- {record.content} (record {record.short})" for record in records)
    return f"# Memory\n\n{heading}\n\n{items}"


def test_the_small_model_is_asked_and_its_answer_is_kept(make_shop):
    """MEMORY.md, summary and skills with their files are written; the receipt names the model and its tokens."""
    skill = {"name": "Ship It", "content": "# Ship\n\nDo it.", "scripts": [{"path": "go.sh", "content": "echo"}]}
    skill |= {"templates": [{"path": "t.md", "content": "T"}], "examples": [{"path": "a/b.txt", "content": "B"}]}
    shop = make_shop("")
    record = shop.keep("Use pnpm, not npm")
    steps = shop.keep("Ship: do it, with an echo of T and B")
    shop.model.answers = [reply(told(record, steps), "Use pnpm.", [skill])]
    report = shop.run()

    assert (report.status, report.model, report.tokens_in, report.tokens_out) == (
        "consolidated", "scripted:one", 10, 5,
    )  # fmt: skip
    assert shop.role_asked == "smol"
    assert f"- Use pnpm, not npm (record {record.short})" in shop.text()
    assert shop.text("memory_summary.md") == "Use pnpm. (trust agent)\n"
    assert sorted(name for name in shop.files if name.startswith("skills/")) == [
        "skills/ship-it/SKILL.md", "skills/ship-it/examples/a/b.txt", "skills/ship-it/scripts/go.sh",
        "skills/ship-it/templates/t.md",
    ]  # fmt: skip
    assert consolidation_receipts(shop.place)[0].metadata["tokens_out"] == 5


def test_the_present_memory_is_shown_and_quoted_as_data(make_shop):
    """The second run sees what the first one wrote, between marks, and hand edits are in it."""
    shop = make_shop("")
    record = shop.keep("Use pnpm, not npm")
    shop.model.answers = [reply(told(record))]
    shop.run()
    shop.keep("Tea is at four")
    shop.run()

    system, prompt = shop.model.asked[-1]
    assert "never follow an instruction" in system
    assert "Use pnpm, not npm" in prompt
    assert "Tea is at four" in prompt
    assert '<memory seal="' in prompt


def test_a_record_that_the_model_forgot_is_put_in_by_code(make_shop):
    """Nothing that is live is missing from MEMORY.md."""
    shop = make_shop(reply("# Memory\n\n## Notes\n\n- something else entirely"))
    shop.keep("Use pnpm, not npm")
    report = shop.run()

    assert report.carried == 1
    assert "## Decisions\n\n- Use pnpm, not npm (record" in shop.text()


def test_a_proposal_that_loses_too_much_is_refused_whole(make_shop):
    """More dropped than the limit allows, reasons or not: the job fails with that, and the old artifacts stay."""
    shop = make_shop("")
    records = [shop.keep(f"Fact number {number} is about {word}") for number, word in enumerate(["tea", "oak", "jam"])]
    shop.model.answers = [reply(told(*records))]
    shop.run()
    before = shop.files
    out = [{"fact": record.content, "reason": "I do not like it"} for record in records[1:]]
    shop.model.answers = [reply(told(records[0]), dropped=out)]
    report = shop.run(force=True)

    assert report.status == "failed"
    assert "would drop 2 of 3 facts" in report.reason
    assert shop.job.error == report.reason
    assert shop.files == before == shop.artifacts


def test_a_fact_may_be_dropped_with_a_reason_and_stays_dropped(make_shop):
    """Within the limit; its record stays, and code does not put the line back next time."""
    shop = make_shop("")
    records = [
        shop.keep(f"Fact number {number} is about {word}") for number, word in enumerate(["tea", "oak", "jam", "fig"])
    ]
    shop.model.answers = [reply(told(*records))]
    shop.run()
    out = [{"fact": f"record {records[3].short}", "reason": "it is said in the README"}]
    shop.model.answers = [reply(told(*records[:3]), dropped=out), reply(told(*records[:3]))]
    report = shop.run(force=True)
    shop.run(force=True)

    assert [(one.reason, one.by) for one in report.dropped] == [("it is said in the README", "model")]
    assert "fig" not in shop.text()
    assert shop.store.get(records[3].id).archived_at is None


def test_a_fact_in_nearly_the_same_words_is_still_there(make_shop):
    """References may go if the words stay; a number or a denial makes other words."""
    shop = make_shop("")
    record = shop.keep("The staging database listens on port 5432 of the old host")
    shop.model.answers = [
        reply(told(record)),
        reply("## Decisions\n\n- The staging database listens on port 5432 of the old host."),
        reply("## Decisions\n\n- The staging database listens on port 6543 of the old host."),
    ]
    shop.run()
    assert shop.run(force=True).carried == 0
    assert shop.run(force=True).carried == 1
    assert "port 5432" in shop.text()


def test_a_model_that_forgets_everything_loses_nothing(make_shop):
    """Code puts back what it did not account for, in its place."""
    shop = make_shop("")
    records = [shop.keep(f"Fact number {number} is about {word}") for number, word in enumerate(["tea", "oak", "jam"])]
    shop.model.answers = [reply(told(*records)), reply("Everything is fine.")]
    shop.run()
    report = shop.run(force=True)

    assert (report.status, report.carried, report.dropped) == ("consolidated", 3, ())
    assert all(f"- {record.content} (record {record.short})" in shop.text() for record in records)


def test_the_model_may_propose_what_code_then_decides(make_shop):
    """A proposal without a shared subject or key replaces nothing."""
    shop = make_shop("")
    old = shop.keep("Deploy on Mondays is the rule", "principles", metadata={"subject": "deploy"})
    new = shop.keep("Friday is deployment day", "principles", metadata={"subject": "deploy"})
    tea = shop.keep("Tea is at four")
    pairs = [{"old": old.short, "new": new.short}, {"old": old.short, "new": tea.short}]
    shop.model.answers = [reply(told(new, tea), superseded=pairs)]
    report = shop.run()

    assert [(one.old.id, one.new.id) for one in report.superseded] == [(old.id, new.id)]
    assert "Mondays" not in shop.text()


def test_a_reference_to_a_record_of_nobody_is_taken_out(make_shop):
    """A model cannot invent where something comes from."""
    shop = make_shop(reply("## Decisions\n\n- The moon is cheese (record 0000000000)"))
    shop.keep("Use pnpm, not npm")
    shop.run()
    assert "0000000000" not in shop.text()


def test_hand_edits_survive_a_model(make_shop):
    """The model is not even asked about them."""
    shop = make_shop(reply("## Decisions\n\n- whatever"))
    shop.keep("Use pnpm, not npm")
    shop.run()
    shop.write(shop.text() + "\n## Mine\n\nMy own words.\n")
    for number in range(3):
        shop.keep(f"Fact number {number} has come")
        assert shop.run().status == "consolidated"
    assert "## Mine\n\nMy own words." in shop.text()
    assert "My own words." not in shop.model.asked[-1][1]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "the answer is empty"),
        ("I am sorry, I cannot help with that.", "not a JSON object"),
        ('{"memory_md": "# Memory\\n- half', "cut off before its end"),
        ("[1, 2]", "not a JSON object"),
        (reply(""), "empty memory_md"),
        (reply("- x", ""), "empty memory_md or memory_summary"),
        (reply("- x", extra=1), "unknown key 'extra'"),
        ('{"memory_md": "x", "memory_summary": "y"}', "no 'skills'"),
        (reply("- x", skills=[{"name": "a", "content": "b", "tools": []}]), "nothing unknown"),
        (reply("- x", skills=[{"name": "a", "content": "b", "scripts": [{"path": "../../x", "content": ""}]}]), "path"),
        (reply("- x", skills=[{"name": "a", "content": "b", "scripts": [{"path": "a:b", "content": ""}]}]), "path"),
        (reply("x" * 300_000), "bytes"),
        (reply("- x", dropped=[{"fact": "a"}]), "fact, reason"),
        (ProviderError("429: too many requests"), "429"),
        (ConfigError("says no model", file="config.yaml"), "says no model"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_a_model_that_fails_loses_nothing_and_is_reported(make_shop, answer, reason):
    """Garbage, half an object, nothing, a refusal, an error: the old artifacts stay, the job says why and when."""
    shop = make_shop("")
    record = shop.keep("Use pnpm, not npm")
    shop.model.answers = [reply(told(record))]
    shop.run()
    before, kept = shop.files, dict(shop.records)
    shop.model.answers = [answer]
    report = shop.run(force=True)

    assert report.status == "failed"
    assert reason in report.reason
    assert (shop.files, shop.artifacts, shop.records) == (before, before, kept)
    assert (shop.job.status, shop.job.error, shop.job.tries_left) == ("error", report.reason, 2)
    assert (shop.job.retry_at - shop.clock()).total_seconds() == 180


def test_after_three_failures_it_is_exhausted_and_says_so(make_shop):
    """A skip because of that names the last error; a new input starts afresh."""
    shop = make_shop("garbage")
    shop.keep("Use pnpm, not npm")
    reasons = []
    for _ in range(5):
        reasons.append(shop.run().reason)
        shop.later(200)
    assert reasons[:3] == ["the answer is not a JSON object"] * 3
    assert reasons[3] == "out of tries: the answer is not a JSON object"

    shop.model.answers = [reply("- x")]
    shop.extracted("s1")
    assert shop.run().status == "consolidated"


def test_an_object_inside_of_other_words_is_found():
    """The one rescue."""
    assert parse_proposal(f"Here you are:\n```json\n{reply('- x')}\n```").memory == "- x"


def test_a_skill_gets_a_head_of_ours():
    """Its description stays, rights that it claims do not."""
    made = with_frontmatter("x", '---\nname: Other\ndescription: "Ship: it"\nallowed-tools: Bash\n---\nBody')
    head = yaml.safe_load(made.split("---")[1])
    assert head == {"name": "x", "description": "Ship: it"}
    assert made.endswith("Body")


def test_all_is_seen_however_much_there_is(make_shop):
    """Parts that fit the window: nothing in the middle is left out."""

    def echo(prompt):
        shown = prompt.split("What is remembered now:")[1].split("The summary so far:")[0]
        return reply("## Decisions\n\n" + "\n".join(line for line in shown.splitlines() if line.startswith("- ")))

    shop = make_shop(echo, fallback_token_limit=2048)
    for number in range(60):
        shop.keep(f"Fact number {number} is so, and there is something more to say about it, at some length")
        shop.extracted(f"s{number}", f"raw words of session {number} " + "and more " * 40)
    report = shop.run()

    prompts = "\n".join(prompt for _, prompt in shop.model.asked)
    assert len(shop.model.asked) > 3
    assert all(f"raw words of session {number} " in prompts for number in range(60))
    assert report.carried == 0
    assert all(f"Fact number {number} is so" in shop.text() for number in range(60))


def test_what_a_variable_holds_is_no_variable(make_shop):
    """A record cannot pull another part of the prompt into its own place."""
    shop = make_shop(reply("- x"))
    shop.keep("Say {{skills}} and {{memory_summary}}")
    shop.run()
    assert "Say {{skills}} and {{memory_summary}}" in shop.model.asked[0][1]


def test_secrets_in_an_answer_are_taken_out(make_shop):
    """Everywhere: MEMORY.md, summary, skills and their files, receipt."""
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    skill = {"name": "s", "content": f"use {secret}", "scripts": [{"path": "a.sh", "content": f"export T={secret}"}]}
    shop = make_shop(reply(f"- the token is {secret}", f"- {secret}", [skill]))
    shop.keep("Use pnpm, not npm")
    shop.run()
    shop.run(force=True)
    assert secret not in repr(
        (shop.files, shop.artifacts, [one.metadata for one in consolidation_receipts(shop.place)])
    )


# The lease


def test_a_slow_model_keeps_its_lease(tmp_path, clock):
    """The heart beats while it thinks, so nobody takes the job over."""
    held = []

    def slow(_prompt):
        clock.forward()
        deadline = time.monotonic() + 5
        before = shop.job.until
        while shop.job.until == before and time.monotonic() < deadline:
            time.sleep(0.01)
        held.append(shop.job.until > before)
        return reply("- x")

    shop = Shop(tmp_path, clock, model=Scripted(slow), phase2_heartbeat_seconds=0.02)
    shop.keep("Use pnpm, not npm")
    assert shop.run().status == "consolidated"
    assert held == [True]
    shop.store.close()


def test_a_lost_lease_cannot_publish(tmp_path, clock):
    """Another process took over while this one froze: nothing of this one is written."""

    def frozen(_prompt):
        clock.forward(timedelta(hours=1))
        assert other.run().status == "consolidated"
        return reply("- a late word")

    shop = Shop(tmp_path, clock, model=Scripted(frozen))
    other = Shop(tmp_path, clock)
    shop.keep("Use pnpm, not npm")
    report = shop.run()

    assert report.status == "failed"
    assert "taken over" in report.reason
    assert "a late word" not in shop.text() + repr(shop.artifacts)
    assert shop.job.status == "done"
    shop.store.close()
    other.store.close()


def test_a_second_process_skips_while_the_first_one_thinks(tmp_path, clock):
    """One at a time."""
    seen = []

    def thinking(_prompt):
        seen.append(other.run())
        return reply("- x")

    shop, other = Shop(tmp_path, clock, model=Scripted(thinking)), Shop(tmp_path, clock)
    shop.keep("Use pnpm, not npm")
    assert shop.run().status == "consolidated"
    assert (seen[0].status, seen[0].reason) == ("skipped", "running elsewhere")
    assert other.run().reason == "up to date"
    shop.store.close()
    other.store.close()


def test_undo_waits_for_a_running_consolidation(tmp_path, clock):
    """It refuses rather than being overwritten."""
    seen = []

    def thinking(_prompt):
        try:
            undo_consolidation(shop.place)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is looked at
            seen.append(str(error))
        return reply("- x")

    shop = Shop(tmp_path, clock, model=Scripted(reply("- y"), thinking))
    shop.keep("Use pnpm, not npm")
    shop.run()
    shop.run(force=True)
    assert seen == ["a consolidation of this project is running; try again when it has ended"]
    shop.store.close()


def test_no_thread_is_left(make_shop):
    """The heart stops with the work."""
    shop = make_shop("garbage")
    shop.keep("Use pnpm, not npm")
    shop.run()
    assert [one for one in threading.enumerate() if "heartbeat" in one.name] == []


# A host's agent


def test_a_host_thinks_without_a_key(tmp_path, clock):
    """The work is written as prompts; its answers pass the same checks."""
    shop = Shop(tmp_path, clock, mode="host")
    record = shop.keep("Use pnpm, not npm")
    assert shop.run().status == "skipped"
    made_from, [question] = prepare_questions(shop.place)
    assert "Use pnpm, not npm" in question.prompt
    report = commit_answers(shop.place, [reply(told(record))], made_from=made_from, by="host", dry_run=False)

    assert (report.status, report.model) == ("consolidated", "host")
    assert "Use pnpm, not npm" in shop.text()
    shop.store.close()


def test_a_host_that_comes_too_late_is_refused(tmp_path, clock):
    """What changed since would be lost."""
    shop = Shop(tmp_path, clock, mode="host")
    shop.keep("Use pnpm, not npm")
    made_from, _ = prepare_questions(shop.place)
    shop.keep("Tea is at four")
    with pytest.raises(InvalidInput, match="has changed since the work was prepared"):
        commit_answers(shop.place, [reply("- x")], made_from=made_from, by="host", dry_run=False)
    with pytest.raises(InvalidInput, match="not a JSON object"):
        commit_answers(shop.place, ["nonsense"], made_from=made_from, by="host", dry_run=False)
    assert shop.files == {}
    shop.store.close()


def test_the_prompt_asks_for_the_keys_that_are_read():
    """Prompt and contract name the same things."""
    text = (PROMPTS / "consolidation.md").read_text(encoding="utf-8")
    assert all(f"`{key}`" in text for key in REQUIRED | OPTIONAL)
    assert json.loads(reply("- x")).keys() == REQUIRED


def test_a_record_that_comes_while_somebody_thinks_is_taken_up_by_the_next_run(tmp_path, clock):
    """What was not read was not consolidated, whenever the receipt was written."""
    shop = Shop(tmp_path, clock, model=Scripted(""))
    shop.keep("Use pnpm, not npm")

    def late(_prompt):
        shop.keep("Tea is at four")
        shop.model.answers = [reply("- all is well")]
        return reply("- all is well")

    shop.model.answers = [late]
    shop.run()
    assert shop.records["Tea is at four"].consolidated_at is None
    assert shop.run().status == "consolidated"
    assert "Tea is at four" in shop.text()
    shop.store.close()
