"""Turning text into terms, by example."""

import time

import pytest

from commonplace.model.queries import Query
from commonplace.text.words import QUERY_WORDS, TERM_CHARS, plan, terms
from stands import rows

WORDS = {
    "running": "run",
    "Running RUNS": "run run",
    "caf\u00e9 cafe\u0301 Cafe": "cafe cafe cafe",
    "na\u00efve": "naiv",
    "Stra\u00dfe STRASSE": "strass strass",
    "\u0141ukasz S\u00f8ren \u00c6r\u00f8": "lukasz soren aero",
    "\u0130stanbul": "istanbul",
    "\uff26\uff35\uff2c\uff2c \ufb01ne": "full fine",
    "user's users' user": "user user user",
    "don\u2019t don't dont": "dont dont dont",
    "I'm we've they'll she'd": "i we they she",
    "O'Brien": "obrien brien",
    "l'avion": "lavion avion",
    "APIs IDs URLs": "api id url",
    "the cat and the hat": "the cat and the hat",
    "(quoted) \"text\", 'here'!": "quot text here",
}

COMPOUNDS = {
    "foo_bar": "foo_bar foo bar",
    "foo_bar.": "foo_bar foo bar",
    "__init__": "__init__ init",
    "useEffect": "useeffect use effect",
    "HTTPServer": "httpserver http server",
    "parseJSONString": "parsejsonstring parsejsonstr pars json string",
    "GitHub's": "github git hub",
    "getURLs": "geturls geturl get url",
    "iPhone": "iphone iphon phone",
    "state-of-the-art": "state-of-the-art state of the art",
    "e-mail": "e-mail email e mail",
    "Wi-Fi": "wi-fi wifi wi fi",
    "node.js": "node.js nodej node js",
    "src/app/main.py": "src/app/main.py src app main.py mainpi main py",
    "src/main.py:42": "src/main.py:42 src/main.py src main.py mainpi main py 42",
    "/etc/hosts": "etc/hosts etc host",
    "~/.config/nvim": "config/nvim config nvim",
    ".env": "env",
    "app/.env": "app/.env app env",
    "user@example.com": "user@example.com user example.com examplecom exampl com",
    "pnpm@9": "pnpm@9 pnpm 9",
    "@lru_cache": "@lru_cache lru_cache lru cach",
    "org/repo#42": "org/repo#42 org/repo org repo 42",
    "#42": "#42 42",
    "std::vector": "std::vector std vector",
    "--dry-run": "dry-run dryrun dri run",
    "https://example.org/a": "https example.org/a example.org exampleorg exampl org a",
    "C++ c# F#": "c++ c# f#",
    "notepad++": "notepad++ notepad",
    "TCP/IP": "tcp/ip tcp ip",
    "U.S. USA p.m.": "us usa pm",
}

NUMBERS = {
    "E1234": "e1234",
    "v2 S3 k8s 3D": "v2 s3 k8s 3d",
    "a1b2c3d": "a1b2c3d",
    "gpt4": "gpt4 gpt 4",
    "gpt-4": "gpt-4 gpt 4",
    "gpt-3.5-turbo": "gpt-3.5-turbo gpt 3.5 turbo",
    "python3.11": "python3.11 python 3.11",
    "30min": "30min 30 min",
    "v2.1, then": "v2.1 2.1 v2 then",
    "v2.1.3": "v2.1.3 2.1.3 v2 2.1",
    "192.168.0.1": "192.168.0.1 192.168.0 192.168",
    "1.2.3.4.5": "1.2.3.4.5",
    "foo-1.2.3.tar.gz": "foo-1.2.3.tar.gz foo-1.2.3 foo 1.2.3 1.2 tar gz",
    "2024-05-17": "2024-05-17 2024-05 2024",
    "2024/05/17": "2024-05-17 2024-05 2024",
    "2024-05": "2024-05 2024",
    "2024-05-17T10:30:00Z": "2024-05-17t10:30:00z 2024-05-17 2024-05 2024 10:30 10 30",
    "$1,200": "1200 1 200",
    "\u0661\u0662\u0663": "123",
    "m\u00b2": "m2",
}

SCRIPTS = {
    "東京都": "東 東京 京 京都 都",
    "犬": "犬",
    "서울": "서 서울 울",
    "データ": "デ デー ー ータ タ",
    "使用useEffect处理": "使 使用 用 useeffect use effect 处 处理 理",
    "\u0e19\u0e49\u0e21": "\u0e19\u0e49 \u0e19\u0e49\u0e21 \u0e21",  # a tone mark stays on its letter
    "हिन्दी भाषा": "हिन्दी भाषा",
    "Привет": "привет",
    "Ёлка елка": "елка елка",
    "ΟΔΟΣ οδός": "οδοσ οδοσ",
    "\u0645\u064f\u062d\u064e\u0645\u0651\u064e\u062f": "\u0645\u062d\u0645\u062f",  # vowel signs go
}

SYMBOLS = {
    "party🎉time": "parti 🎉 time",
    "👍🏽": "👍",
    "❤\ufe0f": "❤",
    "👨\u200d👩": "👨 👩",
    "🇩🇪": "🇩 🇩🇪 🇪",
    "├── src │ ⠋ ■": "src",
    "a\x00b\x1fc": "a b c",
    "\ud800x\udfff": "x",
    "soft\u00adhyphen\ufeff": "softhyphen",
    "zero\u200bwidth": "zero width",
    "\ue000\U0010ffff\u0378": "",
    "_ __ --- ... '' \t\r\n": "",
    "C:\\Users\\ada": "c user ada",
    "a--b foo...bar x->y": "a b foo bar x y",
}


def written(way):
    """Spell the ways of a word as the tables do: terms of one way joined by an ampersand, ways by a bar."""
    return "|".join("&".join(terms_) for terms_ in way)


def asked(query):
    """Return the ways of each word of a planned question, spelled."""
    return [written(word.terms) for word in plan(query).words]


@rows("text, expected", WORDS.items())
def test_words_are_folded_and_stemmed(text, expected):
    """Case, accents and apostrophes do not keep a word from being found."""
    assert terms(text) == expected.split()


@rows("text, expected", COMPOUNDS.items())
def test_a_compound_gives_the_whole_and_its_parts(text, expected):
    """Names, paths and addresses are found as they are and by what they are made of."""
    assert terms(text) == expected.split()


@rows("text, expected", NUMBERS.items())
def test_numbers_dates_and_versions_are_kept_whole(text, expected):
    """A date is found by its month, a version by what it is part of, and a code has no useless parts."""
    assert terms(text) == expected.split()


@rows("text, expected", SCRIPTS.items())
def test_scripts_without_spaces_give_characters_and_pairs(text, expected):
    """Other scripts keep their words and the marks that matter in them."""
    assert terms(text) == expected.split()


@rows("text, expected", SYMBOLS.items())
def test_symbols_are_words_and_everything_else_divides(text, expected):
    """An emoji can be asked for; frames, control characters and broken text are never terms."""
    assert terms(text) == expected.split()


def test_repeated_words_give_repeated_terms():
    """How often a word occurs counts for its rank."""
    assert terms("buffalo Buffalo buffaloes") == ["buffalo", "buffalo", "buffalo"]


@rows("mark", [".", ",", ";", ":", "!", "?", ")", '"', "'", "...", "\u2026", "\u2019", "\u3002"])
@rows("token", ["foo_bar", "v2.1", "useEffect", "E1234", "src/app/main.py", "2024-05-17", "café"])
def test_punctuation_after_a_token_is_no_part_of_it(token, mark):
    """A name at the end of a sentence is the same name."""
    assert terms(f"see {token}{mark} then") == ["see", *terms(token), "then"]


@pytest.mark.parametrize("length", [63, 64, 65, 10_000])
def test_a_long_run_is_cut_and_still_found(length):
    """The first 64 characters are the term, in what is stored and in what is asked."""
    text = "x9" * length

    assert terms(text) == [text[:TERM_CHARS]]
    assert asked(text) == [text[:TERM_CHARS]]


def test_a_term_that_is_cut_does_not_end_in_a_mark():
    """The store relies on it."""
    assert terms("a" * 63 + "-bc")[0] == "a" * 63


def test_base64_is_not_taken_for_camel_case():
    """A blob gives one term and not a hundred."""
    assert len(terms("aGVsbG8gd29ybGQgdGhpcyBpcyBhIHRlc3Qgb2YgYmFzZTY0IGRhdGE=")) == 1


@rows(
    "query, expected",
    [
        ("running", "run"),
        ("foo_bar", "foo_bar|foo&bar"),
        ("useEffect", "useeffect|use&effect"),
        ("iOS", "ios|io"),
        ("e-mail", "e-mail|email|e&mail"),
        ("v2.1", "v2.1|2.1"),
        ("2024-05-17", "2024-05-17"),
        ("src/app/main.py", "src/app/main.py|src&app&main.py"),
        ("main.py:42", "main.py:42|main.py"),
        ("#42", "#42|42"),
        ("c++", "c++"),
        ("E1234", "e1234"),
        ("犬", "犬"),
        ("🎉", "🎉"),
    ],
)
def test_a_word_of_a_question_lists_its_alternatives(query, expected):
    """The whole, or all of its parts."""
    assert asked(query) == [expected]


@rows(
    "stored, query",
    [
        ("we use_effect here", "useEffect"),
        ("the useEffect hook", "use effect"),
        ("GPT 4 is slow", "gpt4"),
        ("gpt4 is slow", "GPT-4"),
        ("COVID-19 rules", "covid19"),
        ("send an e-mail", "email"),
        ("send an email", "e-mail"),
        ("Node.js 20", "nodejs"),
        ("nodejs 20", "node.js"),
        ("the file src/app/main.py", "app/main.py"),
        ("src/app/main.py is broken", "src/app/main.py:17"),
        ("moved on 2024-05-17", "2024-05"),
        ("since version 2.1", "v2.1"),
        ("built for python3.11", "Python 3.11"),
        ("costs $1,200", "1200"),
        ("made in the U.S.A.", "USA"),
        ("Zo\u00eb\u2019s caf\u00e9", "zoe cafe"),
        ("东京大学的学生", "大学"),
        ("he is O'Brien", "obrien"),
    ],
)
def test_what_is_stored_is_found_however_it_is_spelled(stored, query):
    """Each word of the question has an alternative that the text holds."""
    held = set(terms(stored))

    assert plan(query).words
    assert all(any(held.issuperset(way) for way in word.terms) for word in plan(query).words)


@pytest.mark.parametrize(
    ("stored", "query"),
    [("he runs OS updates", "iOS"), ("a letter c", "c++"), ("in 2024-06-01", "2024-05-17"), ("E123 failed", "E1234")],
)
def test_a_question_is_not_answered_by_less_than_it_asks(stored, query):
    """What belongs to a thing is no alternative for it."""
    held = set(terms(stored))

    assert not any(held.issuperset(way) for word in plan(query).words for way in word.terms)


def test_a_run_without_spaces_asks_for_its_pairs():
    """Each pair is a word of its own, so that most of a sentence is a match too."""
    assert asked("東京都庁") == ["東京", "京都", "都庁"]


def test_stop_words_are_left_out_of_a_question():
    """Question words and the like say nothing of what is asked."""
    assert asked("What does Ada not like about the new office?") == ["ada", "like", "new", "offic"]


@pytest.mark.parametrize("query", ["who is it", "To be, or not to be", "how many", "What's that?"])
def test_a_question_of_stop_words_only_keeps_them(query):
    """Something must be asked, and stored texts keep their stop words."""
    assert len(plan(query).words) > 1


@pytest.mark.parametrize("word", ["never", "may", "will", "us"])
def test_words_that_can_say_what_is_asked_are_no_stop_words(word):
    """A rule, a month, a name and a country."""
    assert asked(f"what about {word} there") == [word]


def test_equal_words_are_asked_once():
    """The first spelling names the word."""
    words = plan("Running runs run jogging").words

    assert [word.text for word in words] == ["Running", "jogging"]


def test_a_word_keeps_the_case_in_which_it_was_asked():
    """What a face shows of a question looks like the question."""
    assert [word.text for word in plan("Does useEffect need Ada's v2.1?").words] == [
        "useEffect",
        "need",
        "Ada's",
        "v2.1",
    ]


def test_a_long_question_keeps_its_first_words():
    """Sixty-four distinct words are enough to ask with."""
    text = " ".join(f"w{number}x" for number in range(500))

    assert [word.text for word in plan(text).words] == text.split()[:QUERY_WORDS]


def test_a_long_path_asks_for_its_beginning():
    """A question stays small whatever is pasted into it."""
    path = "/".join(f"d{number}" for number in range(1000))

    assert asked(path) == [path[:TERM_CHARS]]


@rows("text", ["", " ", "\x00", "\ud800", '"', "* ( ) ^ -", "___", "\u200d", "\u2500\u2500"])
def test_a_text_without_terms_is_a_question_without_words(text):
    """It is legal, and asks for nothing."""
    assert plan(text) == Query(text=text, words=())
    assert terms(text) == []


@rows("query", ['foo AND "bar', "foo* NEAR(bar)", "foo:bar -baz", "'; drop table entry; --", "{a} ^b"])
def test_operators_are_text(query):
    """Nobody's query language leaks into a question."""
    assert set(terms(query)) >= {term for word in plan(query).words for way in word.terms[:1] for term in way}


@rows("piece", ["1.", "a/", "x's", "Ab1+", "aB", "'s", "@", "-", "a-", "東", "\u0e49", "e\u0301", "\0", "🎉"])
def test_hostile_text_is_read_in_linear_time(piece):
    """A hundred thousand characters of anything take a moment: milliseconds here, a second on a slow day."""
    text = piece * (100_000 // len(piece))
    start = time.process_time()
    terms(text)
    plan(text)

    assert time.process_time() - start < 2
