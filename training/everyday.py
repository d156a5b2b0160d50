# ruff: noqa: INP001, S311, SIM905, E501
"""Everyday sentences of our own: what people tell and ask about their lives, with WordNet's nouns in the gaps.

Registries carry manuals and novels and next to no small talk.  The teacher says what each sentence means, so these need
only bring the words of daily life together with the words around them; no answer and no data set is behind them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

COUNT = 120_000

#: slot -> WordNet's lexicographer files or a list of our own
SLOTS: dict[str, str] = {
    "who": "sister|brother|mom|dad|wife|husband|partner|son|daughter|friend|neighbor|boss|roommate|cousin|grandma|grandpa"
    "|best friend|girlfriend|boyfriend|coworker|teacher|doctor|therapist|coach|kids|aunt|uncle|niece|nephew|landlord",
    "when": "yesterday|last week|last month|last year|this morning|tonight|tomorrow|next week|next month|on Monday|on Friday"
    "|last weekend|two days ago|in January|in the summer|a few years ago|last night|on Saturday|this spring|in 2019|recently",
    "place": "park|beach|museum|gym|library|office|school|hospital|mountains|lake|airport|supermarket|restaurant|church|garden"
    "|bookstore|cinema|coffee shop|mall|farm|city|village|forest|river|theater|stadium|zoo|animal shelter|community center",
    "city": "Paris|London|New York|Tokyo|Berlin|Chicago|Boston|Seattle|Rome|Toronto|Sydney|Austin|Madrid|Denver|Miami|Dublin"
    "|Amsterdam|Lisbon|San Francisco|Los Angeles|Barcelona|Vienna|Prague|Hawaii|Mexico|Japan|Italy|India|Brazil|Canada",
    "hobby": "painting|running|hiking|cooking|reading|gardening|swimming|dancing|photography|knitting|cycling|yoga|chess|camping"
    "|fishing|pottery|singing|writing|woodworking|skiing|climbing|surfing|baking|gaming|drawing|volunteering|meditation"
    "|playing the guitar|playing the piano|playing the violin|learning Spanish|playing tennis|playing basketball|kayaking",
    "feel": "happy|excited|nervous|tired|proud|sad|worried|relieved|grateful|stressed|lonely|overwhelmed|inspired|calm|scared"
    "|disappointed|hopeful|confused|angry|embarrassed|surprised|bored|anxious|content",
    "color": "red|blue|green|yellow|black|white|purple|orange|pink|brown|gray|golden",
    "number": "two|three|four|five|six|seven|ten|twelve|twenty|fifty|a hundred",
    "trait": "kind|funny|patient|stubborn|shy|creative|generous|honest|brave|clever|quiet|loyal|curious|messy|ambitious",
    "job": "@noun.person:nurse teacher engineer driver artist writer designer manager lawyer chef pilot baker counselor",
    "food": "@noun.food:pizza pasta salad bread cheese chocolate coffee tea soup cake sushi rice chicken steak",
    "animal": "@noun.animal:dog cat puppy kitten horse rabbit parrot turtle hamster bird fish snake lizard",
    "thing": "@noun.artifact:car bike phone laptop guitar camera book house couch lamp bracelet necklace tent backpack",
    "plant": "@noun.plant:rose tulip tomato basil oak maple fern cactus lily sunflower orchid apple",
    "event": "@noun.event:wedding birthday concert festival race party accident game marathon graduation funeral",
    "act": "@noun.act:interview project trip class course workshop meeting adoption move vacation lesson performance",
    "body": "@noun.body:knee back shoulder ankle wrist head foot hand eye ear tooth stomach",
    "state": "@noun.state:allergy asthma flu cold diabetes anxiety depression illness divorce pregnancy injury",
    "idea": "@noun.cognition:goal plan dream idea theory memory lesson interest skill habit belief hobby",
    "say": "@noun.communication:song movie book letter poem story article podcast speech email show song",
    "feelings": "@noun.feeling:love joy fear hope pride anger regret gratitude excitement",
}

TEMPLATES = """
I {when} went to the {place} with my {who}.
My {who} and I went to {city} {when}.
I just got a new {animal}, and it loves {food}.
My {who} bought a {color} {thing} {when}.
We had {food} and {food} for dinner {when}.
I've been {hobby} for {number} years.
I started {hobby} {when} and it makes me feel {feel}.
I work as a {job} in {city}.
My {who} works as a {job} and is very {trait}.
I was so {feel} about the {event}!
I feel {feel} because of the {act}.
The {event} at the {place} was amazing, thanks for asking!
Hey, how have you been? I'm {feel} about the {event} {when}.
That's great! I love {hobby} too. Do you also like {hobby}?
Wow, your {thing} looks wonderful! Where did you get it?
I hurt my {body} while {hobby} {when}.
I have a problem with my {body}, so I saw the {job}.
My {who} was diagnosed with {state} {when}.
I'm allergic to {food}, so I never eat {food}.
My favorite {say} is about a {animal} and a {job}.
I finished a {say} about {feelings} {when}.
My {who} gave me a {thing} for my birthday.
I lost my {thing} at the {place}, but my {who} found it.
We planted a {plant} and some {plant} in the garden.
The {plant} in our garden is finally blooming.
I'm planning a {act} to {city} next year.
I signed up for a {act} about {hobby}.
I want to become a {job} because I care about {idea}.
My {idea} is to open a {place} one day.
I adopted {number} {animal}s from the animal shelter.
My {animal} is called {name} and is {number} years old.
I moved from {city} to {city} {when}.
We celebrated my {who}'s {event} {when}.
I took a photo of a {color} {thing} next to a {animal}.
Thanks! My {who} helped me with the {act}.
You should try the {food} at the new {place}.
I'm reading a {say} by {name} right now.
I can't make it {when}, I have a {act} with my {who}.
I prefer {food} over {food}.
I don't like {food}, but I really like {hobby}.
My {who} taught me {hobby} when I was a child.
It's been hard since the {event}, but {hobby} gives me {feelings}.
The {act} was cancelled because of the {event}.
I spent {number} hours on the {act} {when}.
I paid {number} dollars for the {thing}.
Remind me to buy {food} and a {thing} {when}.
Please always answer in short sentences about {idea}.
What did you do at the {place} {when}?
What kind of {thing} did you buy {when}?
What is the name of your {animal}?
When did you go to {city}?
When did your {who} start {hobby}?
Where did your {who} get the {thing}?
Who gave you the {color} {thing}?
Why did you decide to become a {job}?
How long have you been {hobby}?
How many {animal}s do you have?
How did you feel about the {event}?
What {food} does your {who} like?
Which {say} did you read {when}?
What is your favorite {say}?
What does your {who} do to relax?
What are you allergic to?
What inspired you to start {hobby}?
What happened at the {event} {when}?
What did your {who} say about the {act}?
Did your {who} ever visit {city}?
Is your {who} still a {job}?
What is your {idea} for the {event}?
What plants grow in your garden, {plant} or {plant}?
Can you recommend a {thing} for {hobby}?
Can you suggest {food} recipes for my {who}?
How much did the {thing} cost?
What color is the {thing}?
{food}, {food} and {thing}
{hobby} with my {who}
{name}'s {event}
"""
NAMES = (
    "Anna Ben Carla David Emma Frank Grace Henry Isabel Jack Kate Leo Maria Noah Olivia Paul Rosa Sam Tina Victor Wendy"
    " Alex Julia Max Lucy Oscar Bella Charlie Daisy Milo Ruby Luna Rocky"
).split()
#: WordNet's categories of nouns, in the order of their numbers, which begin at 4
CATEGORIES = (
    "act animal artifact attribute body cognition communication event feeling food group location motive object person"
    " phenomenon plant possession process quantity relation shape state substance time"
).split()
NUMBER, KIND, WORD = 1, 2, 4  # fields of a line of WordNet's


def nouns(folder: Path, category: str, known: list[str]) -> list[str]:
    """Nouns of one of WordNet's categories, and our own many times over, since most of WordNet's are rare."""
    want = f"{CATEGORIES.index(category.removeprefix('noun.')) + 4:02d}"
    found = []
    for line in next(folder.glob("**/data.noun")).read_text(encoding="utf-8").splitlines():
        fields = line.split()
        if (
            len(fields) > WORD
            and fields[NUMBER] == want
            and fields[KIND] == "n"
            and re.fullmatch(r"[a-z]+(_[a-z]+)?", fields[WORD])
        ):
            found.append(fields[WORD].replace("_", " "))
    return found + known * max(1, len(found) // len(known) // 2)


def sentences(wordnet: Path) -> Iterator[str]:
    """The same sentences every time."""
    chance = random.Random(7)
    choices = {}
    for slot, given in SLOTS.items():
        category, _, known = given.removeprefix("@").partition(":")
        choices[slot] = nouns(wordnet, category, known.split()) if given.startswith("@") else given.split("|")
    choices["name"] = NAMES
    templates = [line for line in TEMPLATES.splitlines() if line]
    for _ in range(COUNT):
        parts = [fill(chance.choice(templates), choices, chance) for _ in range(chance.choice((1, 1, 1, 2, 2, 3)))]
        yield " ".join(parts)


def fill(template: str, choices: dict[str, list[str]], chance: random.Random) -> str:
    """A template with each gap filled by chance."""
    text = re.sub(r"\{(\w+)\}", lambda gap: chance.choice(choices[gap[1]]), template)
    return re.sub(r"\b([Aa]) (?=[aeiou])", r"\1n ", text)
