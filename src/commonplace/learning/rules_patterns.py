"""What a clause says, by rule: which of the five categories it states, for whom, and about what; or nothing.

Pure, English only, and made to miss rather than to guess: a clause has to say a durable thing in one of the ways that
people use for it, and must show none of the signs that it is asked, supposed, reported, meant for one task, or meant
as a joke.  Which turns are read at all is decided in ``rules``.
"""

# ruff: noqa: E501 - one pattern a line: broken up they could not be read against each other

from __future__ import annotations

import re

from commonplace.model.values import Value
from commonplace.text.cleaning import slug
from commonplace.text.tools import EXCLUSIVE as _EXCLUSIVE
from commonplace.text.tools import GROUPS as _GROUP


class Reading(Value):
    """What a clause was found to state."""

    category: str
    scope: str  #: project | assistant
    subject: str | None
    start: int  #: where the fact begins within the clause
    end: int  #: where it ends


_WORDS_TOO = "make just solid next express spring drone gin fly oracle dragonfly composer helm vite"
_NAMED = """
typescript javascript python rust golang java kotlin swift ruby php scala elixir graphql grpc rest docker podman git
github gitlab bitbucket linux macos ubuntu debian android ios node nodejs deno polars pandas numpy pytorch
tensorflow spark airflow dbt snowflake bigquery clickhouse elasticsearch opensearch grafana prometheus sentry datadog
nginx caddy envoy istio vault keycloak auth0 stripe tailwind storybook figma jira lodash
axios openapi swagger protobuf json yaml toml xml csv parquet html css sql oauth jwt saml cors https
  jupyter semver
"""
_WORK = """
repo repository monorepo codebase committing rebase pr mr ci cd compile deploy deployment deploying rollout backend
frontend api endpoint database db schema migration microservice config env dependency dependencies script cli linter lint linting
formatter indentation docstring docs readme changelog bug timeout logger deadlock auth uuid timestamp utc float mock
fixture stub e2e staging prod localhost url dns proxy i18n unicode regex parser webhook cron etl dag async refactor hotfix
diff camelcase snakecase lockfile gpl sdk polyfill stylesheet encryption ssl tls ssh kernel firmware compiler
linker toolchain codepath typecheck serializer middleware pull-request merge-request
"""
# These are used of other things too: they count where software was mentioned before.
_LOOSE = """
code coding test testing commit branch merge push pull build release pipeline server client route query table column row
index cache queue job worker service container image pod cluster configuration environment variable function method class
module package library import export type typing interface component hook props state handler controller model view
template command flag terminal shell format formatting indent tabs spaces comment documentation version error exception
crash retry log logging metric alert memory heap leak thread process lock transaction session token secret password login
permission user tenant customer invoice id key timezone date datetime decimal integer string bool null snapshot coverage
unit integration production dev local port host domain gateway balancer bucket file folder directory path locale
translation encoding request response header cookie payload event message topic stream batch schedule scheduler parameter
argument return promise loop recursion algorithm review reviewer approval ticket issue sprint feature toggle patch tag
naming kebab-case casing abbreviation license licence framework plugin extension css pixel accessibility money currency
rounding precision hash certificate firewall vpn driver board sensor binary artifact registry account dashboard runner
locally upstream downstream pin pinned warning heading text button screen chart render layer value field app apps lib libs
training run runs data name names
"""
_CUES = frozenset(_NAMED.split()) | frozenset(_WORK.split()) | frozenset(_GROUP) - frozenset(_WORDS_TOO.split())
_LOOSE_CUES = frozenset(_LOOSE.split()) | frozenset(_GROUP)
_SHAPE = re.compile(
    r"`_+`|\b\w+\.(?:py|js|ts|tsx|jsx|rs|go|java|rb|sql|md|json|ya?ml|toml|sh|css|html|cfg|ini|lock|env)\b"
    r"|(?<!\w)[\w.@-]*/[\w.@/-]+\w|\b\w+_\w+\b|\b[a-z]+[A-Z]\w+|(?<!\w)--?[a-z][\w-]+|\b[A-Z]{3,}\b|\bv?\d+\.\d+"
)
_WORD = re.compile(r"[A-Za-z][\w+#-]*")


def has_cue(plain: str, *, at_work: bool = False) -> bool:
    """Tell whether a text speaks of software: by a word, by the shape of one, or by two that can mean other things.

    At work one of the latter is enough.
    """
    if _SHAPE.search(plain):
        return True
    words = {form for found in _WORD.findall(plain.lower()) for form in (found, found.removesuffix("s"))}
    return not words.isdisjoint(_CUES) or len(words & _LOOSE_CUES) > (0 if at_work else 1)


_PROJECT = (
    r"(?:repo(?:sitory)?|project|code\s?base|code|app(?:lication)?|team|company|monorepo|service|package|product|docs"
    r"|workspace|organi[sz]ation|library|house|shop)"
)
_HERE = re.compile(rf"\b(?:in|for|of|across|within) (?:this|our|the) (?:whole |entire )?{_PROJECT}\b", re.IGNORECASE)

# Words before a fact that are not part of it.
_OPENING = re.compile(
    r"""(?:(?:ok(?:ay)?|alright|so|and|also|but|btw|by\s+the\s+way|oh|ah+|ugh|yeah|yes|yep|yup|no+(?=\s*[,.!:]|\s+(?:no|we|you|in|our|the|it)\b)|nope|nah|right|great
        |good|cool|nice|well|actually|hey|hi|hello|please|pls|plz|fyi|for\s+your\s+information|for\s+the\s+record|note
        |(?:just\s+)?(?:a\s+)?reminder|in\s+general|generally(?:\s+speaking)?|just|then|sorry|thanks|exactly|perfect|hm+
        |wait|one\s+more\s+thing|correct(?:ion)?|to\s+be\s+clear|important|as\s+(?:i\s+said|discussed|agreed|a\s+rule)
        |for\s+future\s+reference|first\s+of\s+all|make\s+sure\s+(?:that\s+)?(?:you|to|we)|be\s+sure\s+to
        |found\s+it|got\s+it|wrong|a\s+few\s+(?:rules|things)|rules?
        |for\s+next\s+time|after\s+(?:some|a\s+long|much)\s+discussion|the\s+rule\s+is(?:\s+that)?)
        (?:\s*[,:!.\u2013-]+\s*|\s+(?=\S)))+""",
    re.IGNORECASE | re.VERBOSE,
)
_REMEMBER = re.compile(
    r"(?:remember(?:\s+that\b|\s*:)|(?:keep\s+in\s+mind|bear\s+in\s+mind|don'?t\s+forget|note)\s+that\b)\s*",
    re.IGNORECASE,
)
# Words after a fact that are not part of it: what follows from it for the task at hand.
_CLOSING = re.compile(
    r"""(?:,|\s-|\u2013)\s*(?:so\b(?!\s+that\b).*$|(?:(?:so|and|then|but)\s+)*(?:please|pls|plz|can\s+you|could\s+you|you\s+can|you\s+could|now\s+you
        |fix|rename|delete|remove|change|update|add|look|check|revert|redo|use\s+that|do\s+(?:that|it|the\s+same)
        |try|make|move|put|run\s+(?:it|that|them)|ok(?:ay)?$|thanks?|thx|right$)\b.*$)
      | \s+(?:please|pls|plz|ok|okay|thanks|thx|btw|tbh|imo)$""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)

_ASKED = re.compile(
    r"(?:do|does|did|is|are|was|were|can|could|should|shall|would|will|have|has|may|am|what|how|why|which|who|whose|where"
    r"|when(?:'s| is| do| are)|isn't|aren't|don't (?:we|you|they)|any (?:idea|chance|reason))\b(?! (?:not )?allowed)",
    re.IGNORECASE,
)
_OK_TAG = re.compile(r",\s*(?:ok(?:ay)?|got it|understood|alright|please)$", re.IGNORECASE)
_DOUBT = re.compile(
    r"""\b(?:what\s+if|maybe|perhaps|might|would(?!\s+like\s+you\s+to)|could|suppose|imagine|pretend|let'?s\s+say
      |assum(?:e|ing)|i\s+(?:think|guess|believe|assume|suspect|suppose|wonder|wish|hope|doubt)|probably|possibly|wonder
      |wondering|not\s+sure|unsure|no\s+idea|wish|hopefully|consider(?:ing)?|thinking\s+(?:of|about)|in\s+theory|someday
      |some\s+day|at\s+some\s+point|sooner\s+or\s+later|eventually|one\s+day|whether|apparently|seems?|if\s+(?:we|i)\b
      |we'?d|you'?d|they'?d|used\s+to|haven'?t|hasn'?t|(?:isn'?t|aren'?t|not)\s+(?:yet|always|decided)|yet|planning\s+to
      |going\s+to|want\s+to\s+(?:try|see|know)|tempted|should\s+(?:we|i)|we\s+should|i\s+should|thought\s+(?:we|that)
      |don'?t\s+(?:know|think|always|remember|care|mind|worry|bother)|do\s+not\s+(?:know|think|always|remember)
      |(?:un|not\s+)decided|still\s+open|tbd|to\s+be\s+decided|vote|voting|otherwise\s+we)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_REPORTED = re.compile(
    r"""\b(?:(?:he|she|they|boss|docs?|readme|guide|article|book|teacher|page|website|blog|tutorial|vendor|customer
        |client|someone|people|everyone|wiki|spec|manual|somebody)\s+(?:\w+\s+){0,2}(?:says?|said|wrote|writes|claims?|claimed
        |wants?|wanted|told|thinks?|asks?|asked|recommends?|suggests?|use|uses|used|always|never)
      |according\s+to|i\s+(?:never|always)\s+(?!want|prefer|use\b)|i\s+said|you\s+said|you\s+(?:always|never)\s
      |(?:it|this|that)\s+says)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_ONCE = re.compile(
    rf"""\b(?:for\s+now|today|tonight|tomorrow|this\s+(?:time|one|once|week|month|sprint|afternoon|morning|evening)|(?:this|next)\s+weekend|right\s+now
      |temporarily|temporary|meanwhile|in\s+the\s+meantime|until|just\s+once|at\s+the\s+moment|for\s+the\s+(?:demo|moment)
      |(?:in|on|for|at|from|of|to|with|inside)\s+(?:this|that|these|those)\s+(?!(?:\w+\s+)?{_PROJECT}\b)\w+
      |as\s+(?:above|before|usual)|the\s+(?:same|other|second|first|third|last|latter|former|above|new\s+one|old\s+one)\b
      |next\s+(?:week|month|sprint|year)|line\s+\d+|option\s+\w)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_LEANS = re.compile(
    r"\b(?:use|using|do|need|like|want|prefer|run|change|touch|keep|put|in|for|with|of|to)"
    r"\s+\b(?:it|this|that|them|these|those|one|some|something|stuff|things?)\b"
    r"(?:\s*$|\s*,|\s+(?:in|for|on|only|here|there|too|as|when|again)\b)",
    re.IGNORECASE,
)
_LEANING_SUBJECT = re.compile(r"(?:it|this|that|they|he|she)\s+(?!turn)", re.IGNORECASE)
_WORDS_AT_LEAST = 4  # fewer say too little to stand alone

_NOT_A_VERB = (
    r"(?:mind|again|ever|been|seen|heard|had|an?|the|good|nice|fun|great|happy|easy|wrong|true|thought|knew|said|tried"
    r"|sure|more|less|so|too|in|on|at|my|your|felt|wanted|loved|liked|got|was|were|love|nice|did|as|there|here|works?"
    r"|\w+ed|told|happens?|happened|fails?|forget|knows?|get|gets)"
)
_NOT_A_NAME = (
    r"(?:it|this|that|them|these|those|one|both|some|something|the\s+(?:one|same|other|first|second|third|last|latter|former|"
    r"new|old|blue|left|right|above|approach|option|idea|plan|suggestion|proposal|version)|your|his|her|my|option|plan|"
    r"whatever|what|which|a\s+lot|each\s+other|here|there|too\b|an?\s)"
)
_HABIT = (
    r"(?:use|run|write|store|return|keep|name|log|branch|merge|squash|deploy|pin|test|commit|push|mock|throw|raise|catch"
    r"|import|expose|ship|tag|review|format|lint|sign|rebase|document|version|validate|sort|parse|call|put|do"
    r"|release|build|generate|wrap|inject|cache|retry|require|support|target|allow|accept|follow|prefer|avoid|treat|hard-?code"
    r"|check|share|delete|drop|trust|catch|assume|rely|add|touch|edit|change|skip|block|handle|encode|escape|round|convert)"
)
_SUBJECT = r"(?!(?:it|this|that|they|he|she|there|which|these|those|i|you|what|who|here|something|things)\b)"


def _rx(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern.replace(" ", r"\s+"), re.IGNORECASE)


_REPLY = (
    r"(?:answers?|replies|reply|responses?|respond|explanations?|explain|summar(?:y|ies)|apolog\w+|emojis?|bullet "
    r"points?|chat|small talk|greetings?|concise|terse|verbose|brief|to the point)"
)
_TASTE = rf"(?:{_REPLY}|commit messages?|comments?|names?|naming|spelling|spellings?|english|code|diffs?|docs)"
_LANGUAGE = r"(?:english|german|french|spanish|italian|portuguese|dutch|polish|russian|chinese|japanese|korean|turkish)"
_LASTING = r"(?:always|never|from now on|from here on|going forward|in (?:the )?future|next time|in general|generally|every time)"

# In this order, the first that fits: (category, whether the clause itself must speak of software, pattern).
PERSONAL = tuple(
    (subject, _rx(pattern))
    for subject, pattern in (
        ("user_name", r"^(?:please )?call me (?!back|when|if|later|crazy|old|tomorrow)[\w'-]+$"),
        ("answer_language", rf"^(?:please )?(?:always|only)?\s*(?:answer|reply|respond|write|talk|speak)(?: to)?(?: me)?(?: only| always)? in {_LANGUAGE}\b.*"),
        ("answer_style", rf"^(?:please )?keep (?:your|the|all) {_REPLY}\b.{{3,}}"),
        ("answer_style", rf"^(?:please )?(?:always|never|don'?t|do not|stop)\b.{{0,40}}\b{_REPLY}\b.*\b(?:replies|answers|responses|me|future)\b.*"),
        ("answer_style", rf"^(?:please )?(?:always|never) (?:\w+ ){{0,3}}{_REPLY}\b.*"),
        ("answer_style", rf"^(?:please )?be (?:more )?(?:brief|concise|terse|short|direct|blunt|precise)\b.*\b{_LASTING}\b.*"),
        ("answer_style", rf"^(?:please )?{_LASTING},? (?:please )?be (?:more )?(?:brief|concise|terse|short|direct|blunt|precise)\b.*"),
        ("answer_style", rf"^i (?:\w+ )?(?:prefer|like|want|hate|dislike|don'?t (?:like|want|need)|do not (?:like|want|need)|can'?t stand) (?:\w+ ){{0,4}}{_REPLY}\b.*"),
    )
)  # fmt: skip
TASTES = tuple(
    _rx(pattern)
    for pattern in (
        r"^i (?:\w+ )?(?:prefer|favou?r) (?!to (?:see|have)\b)(?!the (?:\w+ )?(?:one|version|option|approach|idea)\b).{4,}",
        r"^i (?:\w+ )?(?:like|love) .{3,60}\b(?:more|better) than\b.{3,}",
        rf"^i (?:\w+ )?(?:like|love|hate|dislike|don'?t (?:like|want)|do not (?:like|want)|can'?t stand) (?:my |any )?(?:[\w-]+ ){{0,3}}{_TASTE}\b.*",
        rf"^i (?:\w+ )?want .{{3,}}\b{_LASTING}\b.*",
        rf"^i (?:\w+ )?{_LASTING} (?:want|prefer) .{{3,}}",
        r"^i(?:'d| would) like you to (?:\w+ ){1,3}(?:before|when|whenever|every time|after)\b.{3,}",
        r"^i(?:'d| would) (?:prefer|rather have) (?:that |it if )?you (?:always|never|didn'?t|don'?t)\b.{3,}",
    )
)  # fmt: skip

_DECIDED = (
    r"(?:decided|agreed|chose|picked|settled|switched|moved|migrated|went with|standardi[sz]ed|dropped|opted|replaced"
    r"|have (?:decided|agreed|chosen|picked|settled|switched|moved|migrated|standardi[sz]ed|dropped|replaced))"
)
_ADVERBS = r"(?:(?:now|all|just|already|also|only|currently|mostly|recently|finally|actually|both|since|then|exclusively|normally|usually) )*"
_MARKED_USE = r"(?:is|are) (?:our standard|the standard (?:here|for)|what we use|our (?:\w+ )?of choice)"

STATED = tuple(
    (category, sure, _rx(pattern))
    for category, sure, pattern in (
        # What broke, and why.
        ("incidents", False, r"\b(?:the )?(?:root cause|(?:actual |real )?(?:culprit|cause|fix|reason|solution)) (?:was|turned out to be|were)\b(?! (?:not|wrong|reverted)\b).{8,}"),
        ("incidents", False, r"^(?:the )?root cause\s*:.{8,}"),
        ("incidents", False, r"\bthe (?:\w+ ){0,2}(?:issue|problem|bug|error|crash|outage|leak|failure)s? (?:was|were) (?:that|due to|caused by|because|the)\b.{6,}"),
        ("incidents", False, r"^(?:it )?turn(?:ed|s) out (?:that (?!i\b|you\b)|(?=(?:the|our|we|an?|there|one|someone|both)\b)).{8,}"),
        ("incidents", False, rf"^{_SUBJECT}.{{4,}}\b(?:was|were|got) (?:caused|broken|triggered) by\b.{{4,}}"),
        ("incidents", False, rf"^{_SUBJECT}.{{3,}}\b(?:broke|failed|crashed|died|hung|leaked|stalled|backed up|went down|was down|stopped (?:working|responding))\b.{{0,80}}\b(?:because|since|due to|after)\b.{{6,}}"),
        ("incidents", False, r"^the (?:only )?workaround (?:is|was)\b.{6,}"),
        # How something is done.
        ("procedures", False, r"^to (?!fix|be\b|do\b|see|me\b|my\b|answer|sum|check|make sure)\w+[^,:]{0,60}[,:]? (?:you (?:have to|need to|must|should|can|first|just)|run|first|just run|it'?s|use|execute|do) .{4,}"),
        ("procedures", False, r"^before (?:you |we |each |every |any |a )?(?:push|commit|merg|deploy|releas|tag|open)\w*\b.{0,30},? (?:please )?(?:always )?(?:you |we )?(?:must |have to |need to )?(?:run|check|update|bump|rebase|execute|regenerate) .{2,}"),
        ("procedures", True, r"^(?:for (?:[\w-]+ ){1,4})?(?:you|we) (?:first )?(?!\w+ed\b|flew|went|took|did|had|was|were|got|made|saw|ran|built|have|had|will|can)\w+ .{2,120}?,? (?:and )?(?:then|after that|afterwards)\b.{4,}"),
        ("procedures", False, r"^first (?:you|we) .{4,120}?\b(?:then|after that|afterwards)\b.{4,}"),
        ("procedures", True, r"^(?:the |our )?(?:\w+ ){1,3}(?:is|are) (?:run|started|built|deployed|released|generated|executed|launched) (?:with|via|by|using) `.+"),
        ("procedures", True, r"^(?:always )?(?:run )?`_+` (?:before|after) .{4,}"),
        ("procedures", True, r"^(?:releases?|deploy(?:ment|s)?|build|setup|set-up|rollback|migration|test)s? (?:steps|process|procedure|checklist|builds?)?\s*:.{12,}"),
        # What we chose.
        ("decisions", False, rf"\bwe(?:'re| are)? {_ADVERBS}(?:use|using) (?!{_NOT_A_NAME})[\w`@\"].*"),
        ("decisions", True, rf"\bwe(?:'ve| have)? {_ADVERBS}{_DECIDED} (?:(?:to|on|for|with|from|off|over|against|that|away) (?!{_NOT_A_NAME})|support\b|(?!{_NOT_A_NAME})).{{3,}}"),
        ("decisions", False, rf"\b(?:let'?s|we'?ll|we will|we) (?:go|going|stick|stay|keep going) (?:with|on) (?!{_NOT_A_NAME}).{{3,}}"),
        ("decisions", True, rf"\bwe(?:'re| are) {_ADVERBS}(?:keeping|staying (?:on|with)|sticking (?:with|to)|dropping|moving (?:to|off|from|away from)|switching (?:to|from)|going with|standardi[sz]ing on) (?!{_NOT_A_NAME}).{{3,}}"),
        ("decisions", True, rf"\bwe'?ll use (?!{_NOT_A_NAME}).{{3,}}"),
        ("decisions", False, r"\bwe (?:no longer|don'?t|do not) (?:use|support|need|run|depend on|ship) .{2,}\b(?:anymore|any more|any longer)\b.*"),
        ("decisions", False, r"\bwe no longer (?:use|support|run|depend on|ship) .{2,}"),
        ("decisions", False, r"\bwe(?:'re| are) an? [\w-]+ (?:shop|house|project|team|code\s?base|company)\b.*"),
        ("decisions", True, rf"^{_SUBJECT}[\w+.-]+(?: [\w+.-]+){{0,3}} {_MARKED_USE}\b.*"),
        ("decisions", True, r"^(?:our|the) (?:\w+ ){1,3}(?:runs on|is built (?:on|with)|is written in) .{2,}"),
        ("decisions", False, r"\bwe (?:only )?support .{3,}"),
        # Rules that hold.
        ("principles", True, rf"^(?:always|never) (?!{_NOT_A_VERB}\b)\w+ .{{2,}}"),
        ("principles", True, rf"\bwe (?:always|never|don'?t ever|must(?: not)?|may not|have to) (?!{_NOT_A_VERB}\b)\w+ .{{2,}}"),
        ("principles", False, rf"\b(?:we|you) (?:don'?t|do not|only) (?!need|have|know|want|like|see|get|think|use to)(?:{_HABIT}) .{{3,}}"),
        ("principles", True, rf"^{_SUBJECT}.{{3,80}}\b(?:is|are|must|has to|have to|need to|needs to) (?:always|never) .{{2,}}"),
        ("principles", True, r"^(?:every|each|all|any|no|new|our|only|public|private|\w+s) (?:[\w`\"/-]+ ){0,5}?(?:must(?: not)?|may(?: not| only)|has to|have to|needs?(?: to| an?)|cannot|can'?t|requires?) (?!(?:fix|fixed|wait|work)\b).{3,}"),
        ("principles", True, r"^(?:all|every|each|our) (?:[\w`\"/-]+ ){1,5}?(?:is|are|gets?) (?:only )?(?:stored|written|named|called|kept|handled|formatted|generated|run|scheduled|validated|tested|returned|logged|reviewed|squashed|signed|versioned|prefixed|suffixed|in|on) .{2,}"),
        ("principles", False, r"\b(?:the|our) (?:naming |coding |code |team |house )?(?:convention|rule|policy|standard|guideline|style|practice)s? (?:here )?(?:is|are|says?|for .{2,40} (?:is|are)) .{3,}"),
        ("principles", False, r"^(?:don'?t|do not|never|no) .{3,}\b(?:unless|without)\b.{3,}"),
        ("principles", True, r"^(?:don'?t|do not) (?:ever |push directly|commit directly|merge your own|force[- ]push)\b.*"),
        ("principles", False, r"^(?:nobody|no one) (?!knows|cares|asked|noticed|told)(?:\w+s|may|can|must|should|is allowed) .{3,}"),
        ("principles", True, r"\b(?:is|are) (?:not allowed|forbidden|only allowed|mandatory|prohibited|banned|off limits)\b.*"),
        ("principles", True, r"^(?:\w+ ){1,4}(?:go|goes|live|lives|belong|belongs) (?:in|into|next to|under|inside)\b .{2,}"),
        ("principles", True, r"^no (?!need|idea|problem|worries|way|one|more|longer|time|change|reason|bug|rush|luck|hurry)(?:[\w-]+ ){0,2}(?:exports?|imports?|mocks?|dependencies|globals?|comments?|secrets?|abbreviations?|ternaries|inline styles?|magic numbers?|singletons?|raw sql|wildcard imports?)$"),
        ("principles", True, r"^(?:commit messages?|branch(?:es| names)?|commits|handlers|tests|migrations|names|headings|endpoints|errors|pull requests|prs|mrs|modules|variables|constants|components) (?:here |in this \w+ )?(?:follow|are (?:always|named|called|written|prefixed|in)|use|start with|end with) .{3,}"),
    )
)  # fmt: skip

# "from now on ..." makes a rule of what would be an order for one task.
_STANDING_ORDER = _rx(r"\b(?:from (?:now|here) on(?:wards?)?|going forward|in (?:the )?future|as a rule|in general)\b")
_IN_PROJECT = _rx(
    rf"^in (?:this|our) {_PROJECT}s?(?: here)?,? (?:we|you|use|all|every|nothing|no|there|only) (?:{_HABIT}|\w+) .{{3,}}"
)
_WHERE_ONLY = re.compile(rf"^in\s(?:this|our|the)\s{_PROJECT}s?(?:\shere)?,?\s*", re.IGNORECASE)
_USE_NOT = _rx(
    rf"^(?:we )?use (?!{_NOT_A_NAME})(?P<name>[\w.+#-]+(?: [\w.+#-]+){{0,3}}?)(?: for [\w -]{{2,40}})?,? (?:and )?(?:not|instead of|rather than|over) (?P<other>[\w.+#-]+)\b.*"
)
_USE = _rx(r"^use (?P<name>[\w.+#-]+)$")
_HABITUAL_USE = _rx(rf"^(?:we )?use (?!{_NOT_A_NAME})[\w.+#-]+.*")
_STATE = _rx(
    r"\b(?:is|are|was) (?:always |all |now |still )*(?:red|green|broken|failing|slow|wrong|late|flaky|passing|done|fine|good|gone|down|up|there|set|ready|failing|empty|missing|mad|sad)\b"
)
# One of these is in everything that the patterns below can find; most clauses have none, and need no closer look.
_HINT = _rx(
    r"\b(?:we|we're|we've|we'll|our|i|i'd|let'?s|always|never|don'?t|do not|must|may|need|needs|needs? to|has to|have to|cannot"
    r"|can'?t|requires?|every|each|all|use|call me|keep|be|answer|reply|respond|write|talk|speak|stop|from now|from here"
    r"|going forward|in future|in the future|as a rule|in general|cause|culprit|fix|reason|solution|was|were|turns? out"
    r"|turned|because|due to|workaround|to|before|first|then|run|deploy\w*|releases?|build\w*|setup|steps|convention|rule"
    r"|policy|standard|guideline|style|practice|unless|without|no|nobody|allowed|forbidden|mandatory|prohibited|banned|off"
    r"|goe?s?|lives?|belongs?|follow|are|is)\b"
)
_CORRECTED = re.compile(r"^(?:no+|nope|wrong|actually)\b", re.IGNORECASE)
_FOR_WHAT = re.compile(
    r"\bfor (?:(?:the|our|all|new|any) )*((?!this|that|it|now|a |me|us|you|us)[a-z][\w-]*(?: [a-z][\w-]*)?)",
    re.IGNORECASE,
)
_PLACE = re.compile(r"\b(?:in|on) (?!this\b|our\b|the repo|here\b)(?:the )?[a-z]+", re.IGNORECASE)
_NEGATIVE = re.compile(r"\b(?:no longer|don'?t|do not|dropped|never|anymore|removed)\b", re.IGNORECASE)


def read(plain: str, *, asked: bool, at_work: bool) -> Reading | None:
    """What the clause states, or None; ``at_work`` if the session has spoken of software before."""
    opening = _OPENING.match(plain)
    start = opening.end() if opening else 0
    explicit = _REMEMBER.match(plain, start)
    start = explicit.end() if explicit else start
    end = len(plain)
    if tag := _OK_TAG.search(plain, start):
        end, asked = tag.start(), False
    if closing := _CLOSING.search(plain, start, end):
        end = closing.start()
    fact = plain[start:end].rstrip(" ,:-")
    if not _HINT.search(fact) and not explicit:
        return None
    if asked or _ASKED.match(fact) or _doubtful(fact):
        return None
    found = _classify_fact(
        fact, explicit=explicit is not None, corrected=bool(_CORRECTED.match(plain)), at_work=at_work
    )
    if found is None:
        return None
    category, scope, subject = found
    return Reading(category=category, scope=scope, subject=subject, start=start, end=start + len(fact))


def _doubtful(fact: str) -> bool:
    """Tell whether a clause is supposed, reported, for this one task, or begins with a condition."""
    head = fact[:4].lower()
    return (
        head.startswith(("if ", "when", "unle"))
        or bool(_DOUBT.search(fact) or _REPORTED.search(fact))
        or (bool(_ONCE.search(fact)) and not _HERE.search(fact))
    )


def _classify_fact(fact: str, *, explicit: bool, corrected: bool, at_work: bool) -> tuple[str, str, str | None] | None:
    """Category, scope and subject of a clause that passed the signs of doubt."""
    for subject, pattern in PERSONAL:
        if pattern.search(fact):
            return "preferences", _reach(fact), subject
    cue = has_cue(fact, at_work=at_work)
    if cue and any(pattern.search(fact) for pattern in TASTES) and not _points_only(fact):
        return "preferences", _reach(fact), None
    if _STATE.search(fact.split(",", 1)[0]):
        return None
    return _match_order(fact, corrected=corrected, cue=cue) or _match_statement(
        fact, explicit=explicit, cue=cue, at_work=at_work
    )


def _match_statement(fact: str, *, explicit: bool, cue: bool, at_work: bool) -> tuple[str, str, str | None] | None:
    """Match a clause against the known forms of statements, or "remember that"."""
    for category, sure, pattern in STATED:
        if (found := pattern.search(fact)) and (cue or (at_work and not sure)) and not _points_only(found[0]):
            return category, "project", _subject(category, fact)
    plainly = explicit and cue and len(fact.split()) >= _WORDS_AT_LEAST and not _points_only(fact)
    return ("principles", "project", None) if plainly else None


def _match_order(fact: str, *, corrected: bool, cue: bool) -> tuple[str, str, str | None] | None:
    """An order that holds from now on, for the project, or against another tool."""
    if (chosen := _USE_NOT.search(fact)) and _are_known(chosen["name"], chosen["other"]):
        return "decisions", "project", _subject("decisions", fact)
    if corrected and (chosen := _USE.search(fact)) and _are_known(chosen["name"]):
        return "decisions", "project", _subject("decisions", fact)
    if (standing := _STANDING_ORDER.search(fact)) and len(fact.split()) > _WORDS_AT_LEAST and cue:
        rest = (fact[: standing.start()] + fact[standing.end() :]).strip(" ,:")
        where_only = len(_WHERE_ONLY.sub("", rest).split()) < 2  # noqa: PLR2004 - a place, and not what is done there
        if where_only or _points_only(fact) or re.match(r"i\b", fact, re.IGNORECASE):
            return None
        category = "decisions" if _HABITUAL_USE.search(rest) else "principles"
        return category, "project", _subject(category, fact)
    if _IN_PROJECT.search(fact) and cue:
        category = "decisions" if re.search(r"\bwe (?:only )?use\b", fact, re.IGNORECASE) else "principles"
        return category, "project", _subject(category, fact)
    return None


def _points_only(fact: str) -> bool:
    """Tell whether a clause leans on a word that only its context explains, where it should name a thing."""
    fact = fact.split(",", 1)[0]
    return bool(_LEANS.search(fact) or _LEANING_SUBJECT.match(fact))


def _reach(fact: str) -> str:
    """Return the scope of a preference: personal, unless the clause names this project."""
    return "project" if _HERE.search(fact) else "assistant"


def _are_known(*names: str) -> bool:
    words = [word for name in names for word in name.lower().split()]
    return any(word in _GROUP or word in _NAMED_SET for word in words)


_NAMED_SET = frozenset(_NAMED.split())


def _subject(category: str, fact: str) -> str | None:
    """A name for what a decision is about, if that is clear: what it is for, else the sort of tool."""
    if category != "decisions" or _NEGATIVE.search(fact):
        return None
    if purpose := _FOR_WHAT.search(fact):
        return slug(_noun(purpose[1]))
    groups = {_GROUP[word] for found in _WORD.findall(fact) if (word := found.lower()) in _GROUP}
    group = groups.pop() if len(groups) == 1 else None
    return group if group in _EXCLUSIVE and not _PLACE.search(fact) else None


def _noun(phrase: str) -> str:
    """The words of a purpose up to the first that only joins."""
    kept = []
    for word in phrase.split():
        if word.lower() in {
            "in",
            "on",
            "because",
            "instead",
            "and",
            "as",
            "from",
            "with",
            "since",
            "now",
            "so",
            "here",
            "we",
            "we'll",
            "i",
            "you",
            "use",
            "to",
            "only",
            "is",
            "are",
        }:
            break
        kept.append(word)
    return " ".join(kept) or phrase
