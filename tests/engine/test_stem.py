"""The English stemmer: pairs from the published description and vocabulary of Porter2, one rule at a time."""

from commonplace.text.stem import stem
from stands import rows

STEMS = {
    "plurals": "caresses:caress ties:tie cries:cri gaps:gap kiwis:kiwi gas:gas this:this bus:bus grass:grass skis:ski",
    "past forms": "hopped:hop hoped:hope agreed:agre feed:feed plastered:plaster bled:bled died:die tried:tri",
    "gerunds": "running:run hopping:hop hoping:hope sing:sing motoring:motor dying:die lying:lie tying:tie vying:vie",
    "restored e": "luxuriating:luxuri sized:size troubled:troubl conflated:conflat creating:creat making:make",
    "short doubles": "adding:add egged:egg offing:off falling:fall hissing:hiss fizzed:fizz",
    "final y": "cry:cri by:by say:say happy:happi enjoy:enjoy daily:daili youth:youth",
    "double endings": "relational:relat conditional:condit rational:ration digitizer:digit operator:oper"
    " vietnamization:vietnam feudalism:feudal decisiveness:decis hopefulness:hope callousness:callous"
    " formality:formal sensitivity:sensit sensibility:sensibl fearlessly:fearless geologist:geolog geology:geolog",
    "ly": "quickly:quick fully:fulli consistently:consist gently:gentl early:earli only:onli ugly:ugli",
    "single endings": "triplicate:triplic formative:format formalize:formal electrical:electr goodness:good"
    " revival:reviv allowance:allow inference:infer airliner:airlin adjustable:adjust defensible:defens irritant:irrit"
    " replacement:replac adjustment:adjust dependent:depend adoption:adopt homologous:homolog effective:effect",
    "final e and ll": "probate:probat rate:rate cease:ceas controlling:control rolling:roll knave:knave",
    "exceptions": "news:news howe:howe sky:sky skies:sky atlas:atlas bias:bias andes:andes succeed:succeed"
    " proceed:proceed exceeding:exceed inning:inning outing:outing herrings:herring evening:evening",
    "told apart": "general:general generic:generic generate:generat generous:generous university:universiti"
    " universe:univers past:past paste:paste later:later lateral:lateral organ:organ organic:organic",
    "vocabulary": "consigned:consign consolation:consol consonancy:conson conspicuously:conspicu knackeries:knackeri"
    " knightly:knight knitted:knit memories:memori memory:memori databases:databas migration:migrat migrate:migrat",
}
PAIRS = [tuple(pair.split(":")) for pairs in STEMS.values() for pair in pairs.split()]


@rows("word, expected", PAIRS)
def test_a_word_has_the_stem_that_porter2_gives_it(word, expected):
    """Every pair is as the published algorithm has it."""
    assert stem(word) == expected


@rows("word", ["", "a", "as", "by", "is", "go"])
def test_words_of_two_letters_or_fewer_are_their_own_stems(word):
    """There is nothing to take off, and "as" is no plural."""
    assert stem(word) == word


@rows(
    "family",
    [
        "connect connected connecting connection connections",
        "remember remembers remembered remembering",
        "decide decides decided deciding",
        "deploy deploys deployed deploying",
        "index indexed indexing indexes",
    ],
)
def test_forms_of_one_word_meet_at_one_stem(family):
    """Whoever asks in another tense or number finds the same."""
    assert len({stem(word) for word in family.split()}) == 1


@rows("pair", ["general generous", "news new", "universe university", "even evening", "her herring"])
def test_words_of_another_meaning_keep_apart(pair):
    """The exceptions of the description are there for these."""
    one, other = pair.split()

    assert stem(one) != stem(other)
