"""The JSON format of a learned grammar, and the report of learning with its warnings."""

import json
from collections import Counter

import pytest

from equitrans.data.pairs import Pair
from equitrans.errors import DataError
from equitrans.models import build
from equitrans.models.configs import TransducerConfig
from equitrans.models.recursive.description import Code
from equitrans.models.recursive.fields import LARGEST
from equitrans.models.recursive.induce import Induction
from equitrans.models.recursive.io import (
    Learned,
    learned_from_json as from_json,
    learned_to_json as to_json,
)
from equitrans.models.recursive.learn import (
    UNCERTAIN,
    _derived,
    _report,
    _warnings,
)
from equitrans.models.recursive.observe import Observation, Observations, observe
from equitrans.models.recursive.rules import HOLE, Grammar, Rule
from equitrans.paper.symmetry import LexicalClass
from worlds import COLORS, TURNS, VERBS, symmetry

LONELY = LexicalClass("lonely", ("after",), ("stop",))
WORLD = symmetry(COLORS, LONELY, VERBS, TURNS)
CONFIG = TransducerConfig(aligner="recursive", k=5, d=4)
CODE = Code(symbols=4, targets=8, noise=0.1)


def symbol(word):
    return HOLE if word == "_" else WORLD.source_classes[WORLD.source.index[word]]


def rule(left, *right):
    """Numbers are places, words of the target stand for themselves."""
    places = (k if isinstance(k, int) else ~WORLD.target.index[k] for k in right)
    return Rule(tuple(map(symbol, left.split())), tuple(places))


WORD, DOUBLE = rule("walk", 0), rule("_ twice", 0, 0)
BOTH, SILENT = rule("_ and _", 2, "go", 0), rule("after and")


def of(source, target):
    return Pair(tuple(source.split()), tuple(target.split()))


# --- writing and reading JSON


LEARNED = Learned(
    Grammar([WORD, BOTH, SILENT, rule("left red", 1)]),
    (4, 3, 1, 0),
    9,
    ((of("run twice", "RUN stop"), "it is wrong"),),
    ("doubt",),
    12.5,
    0.125,
)
WRITTEN = {
    "rules": [
        {"text": "<verbs> → 0", "left": [{"class": "verbs"}], "right": [0], "support": 4},
        {
            "text": "□ and □ → 2 'go' 0",
            "left": [None, "and", None],
            "right": [2, "go", 0],
            "support": 3,
        },
        {
            "text": "<lonely> and →",
            "left": [{"class": "lonely"}, "and"],
            "right": [],
            "support": 1,
        },
        {
            "text": "<turns> <colors> → 1",
            "left": [{"class": "turns"}, {"class": "colors"}],
            "right": [1],
            "support": 0,
        },
    ],
    "pairs": 9,
    "exceptions": [
        {"source": ["run", "twice"], "target": ["RUN", "stop"], "reason": "it is wrong"}
    ],
    "warnings": ["doubt"],
    "bits": 12.5,
    "noise": 0.125,
}


def test_json_names_words_classes_and_places():
    assert to_json(LEARNED, WORLD) == WRITTEN


def test_reading_json_inverts_writing_it():
    again = from_json(json.loads(json.dumps(WRITTEN)), WORLD)
    assert again.grammar.rules == LEARNED.grammar.rules
    kept = ("support", "pairs", "exceptions", "warnings", "bits", "noise")
    assert [getattr(again, k) for k in kept] == [getattr(LEARNED, k) for k in kept]


def test_the_state_before_learning_has_no_rules():
    nothing = Learned.nothing()
    assert (len(nothing.grammar), nothing.support, nothing.pairs) == (0, (), 0)
    assert from_json(to_json(nothing, WORLD), WORLD).support == ()


# --- invalid JSON


def rejected(content):
    with pytest.raises(DataError) as error:
        from_json(content, WORLD)
    return str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"right": [3]}, "invalid place 3; expected a word or a number from 0 to 2"),
        ({"right": [-1]}, "invalid place -1; expected a word or a number from 0 to 2"),
        ({"right": [True]}, "invalid place True; expected a word or a number from 0 to 2"),
        ({"right": [0.0]}, "invalid place 0.0; expected a word or a number from 0 to 2"),
        ({"right": "go"}, "right is 'go'; it must be a list"),
        ({"left": []}, "the left side is empty"),
        (
            {"left": [{"class": "nouns"}]},
            "invalid symbol {'class': 'nouns'}; expected a word, a class or null",
        ),
        ({"left": [{"class": "verbs"}], "right": [0]}, "duplicate of an earlier rule"),
        ({"right": ["RUN", 0]}, "constant 'RUN' is in a class; expected a word of no class"),
        (
            {"left": ["run", None], "right": []},
            "'run' is in a class; expected a word of no class, or the class",
        ),
        ({"right": [1]}, "place 1 is 'and'; expected the place of a class or hole"),
        ({"right": ["goo"]}, "unknown word 'goo'"),
        ({"left": ["annd", None]}, "unknown word 'annd'"),
        (
            {"left": [" \ud800"]},
            "unknown word ' \\ud800'",
        ),
    ],
)
def test_an_invalid_rule_is_reported_by_its_number(change, message):
    first, second, *others = WRITTEN["rules"]
    content = WRITTEN | {"rules": [first, second | change, *others]}
    assert rejected(content) == f"not a grammar: rule 2: {message}"


@pytest.mark.parametrize("name", ["rules", "exceptions", "warnings"])
@pytest.mark.parametrize("value", [None, "x", [3]])
def test_a_value_that_is_not_the_expected_list_is_rejected(name, value):
    kind = "strings" if name == "warnings" else "objects"
    message = f"not a grammar: {name} is {value!r}; it must be a list of {kind}"
    assert rejected(WRITTEN | {name: value}) == message


@pytest.mark.parametrize("text", ["\x1b[2Jgone", "\ud800"])
@pytest.mark.parametrize("place", ["warnings", "reason", "source"])
def test_text_with_terminal_escapes_or_lone_surrogates_is_rejected(place, text):
    (exception,) = WRITTEN["exceptions"]
    if place == "warnings":
        content = WRITTEN | {"warnings": [text]}
    else:
        change = {place: text if place == "reason" else [text]}
        content = WRITTEN | {"exceptions": [exception | change]}
    assert rejected(content).startswith("not a grammar: invisible character U+")


@pytest.mark.parametrize("side", ["source", "target"])
def test_an_exception_with_an_invalid_word_is_rejected(side):
    (exception,) = WRITTEN["exceptions"]
    content = WRITTEN | {"exceptions": [exception | {side: ["run", 3]}]}
    assert rejected(content) == f"not a grammar: {side} is ['run', 3]; it must be a list of strings"


@pytest.mark.parametrize(
    ("name", "most", "more"),
    [("pairs", LARGEST, LARGEST + 1), ("bits", LARGEST, LARGEST + 1), ("noise", 0.5, 0.75)],
)
def test_a_number_out_of_range_is_rejected(name, most, more):
    for value in (0, most):
        assert getattr(from_json(WRITTEN | {name: value}, WORLD), name) == value
    for value in (-1, more, True, False, None, "x"):
        message = f"{name} is {value!r}; it must be a number from 0 to {most}"
        assert rejected(WRITTEN | {name: value}) == f"not a grammar: {message}"


# --- the groups of pairs that train the weights


def test_weights_are_trained_on_the_largest_derivable_group_of_each_form():
    walk, twice = symbol("walk"), symbol("twice")

    def seen(form, text, count):
        return Observation(form, tuple(text), (), count)

    double = (walk, twice)
    derived, lost = seen((walk,), "\0", 5), seen(double, "\0", 9)
    longer = seen((walk, twice, twice), "\0", 9)
    minor = (
        seen((walk,), "\0", 4),  # its form has a larger derivable group
        seen(double, "\0\0\0", 4),
        seen(double, "\0\0", 3),
        seen(double, ("\0", "\0\1"), 2),  # derivable, but smaller
        seen((walk, twice, twice), "\0\0", 1),
    )
    observations = Observations((derived, lost, longer), minor, (), 37, 14, 4, 8)
    induced = Induction(Grammar([WORD, DOUBLE]), CODE, (lost, longer), 9.0)
    assert _derived(observations, induced) == [derived, minor[2]]


# --- the report


OTHERS = ("twice", "and", "after", "red", "walk")


def model_of(*rules):
    return build(CONFIG, WORLD, Learned(Grammar(rules), (), 0)).eval()


def report(pairs, *rules, rivals=(), uncertainty=0.0):
    model = model_of(*rules)
    induced = Induction(model.aligner.grammar, CODE, (), 31.5, rivals)
    return _report(model, pairs, observe(pairs, WORLD), induced, uncertainty)


FINE = [
    of("walk", "WALK"),
    of("run", "RUN"),
    of("look twice", "LOOK LOOK"),
    of("jump twice", "JUMP JUMP"),
]


def test_a_report_counts_the_distinct_pairs_that_support_each_rule():
    learned = report([*FINE, *FINE], WORD, DOUBLE)
    assert learned.support == (4, 2)
    assert learned.pairs == 4
    assert learned.exceptions == ()
    assert learned.warnings == ()
    assert learned.bits == 31.5
    assert str(learned).splitlines() == [
        "2 rules, 32 bits; 4 of 4 distinct pairs explained",
        "  <verbs> → 0    4 pairs",
        "  □ twice → 0 0  2 pairs",
    ]
    assert learned.noise == pytest.approx(0.5 / 5)


def test_a_report_gives_the_reason_of_each_exception():
    wrong = [
        of("twice walk", "WALK"),
        of("twice run", "LOOK"),
        of("walk twice", "WALK go"),
        of("run twice", "LOOK LOOK"),
    ]
    learned = report([*wrong, *FINE], WORD, DOUBLE)
    assert learned.exceptions == (
        (wrong[0], "no derivation"),
        (wrong[1], "no source word of its class translates to 'LOOK'"),
        (wrong[2], "disagrees with 2 other pairs of its form"),
        (wrong[3], "no source word of its class translates to 'LOOK'"),
    )
    assert learned.support == (4, 2)
    assert report([wrong[2]], WORD, DOUBLE).exceptions == ((wrong[2], "the rules say: WALK WALK"),)


def test_the_noise_is_the_share_of_exceptions_up_to_a_half():
    wrong = [of("twice walk", "WALK"), of("twice twice walk", "WALK")]
    assert report([wrong[0], *FINE[:3]], WORD, DOUBLE).noise == pytest.approx(1.5 / 5)
    assert report([*wrong, *FINE[:1]], WORD, DOUBLE).noise == 0.5
    warning, *_ = report([*wrong, *FINE], WORD, DOUBLE).warnings
    assert warning.startswith(
        "33 % of the pairs are not explained: rules of this kind may be unable to express the data"
    )


def test_a_warning_lists_the_rules_of_a_rival_grammar():
    rivals = ((1.25, Grammar([WORD, rule("walk twice", 0, 0), BOTH])), (3.0, Grammar([WORD])))
    assert report(FINE, WORD, DOUBLE, rivals=rivals).warnings == (
        "another grammar takes only 1.2 bits more and does not agree about 'walk twice twice': "
        "it has <verbs> twice → 0 0; □ and □ → 2 'go' 0",
        "another grammar takes only 3.0 bits more and does not agree about 'walk twice': "
        "it has fewer rules",
    )
    many = Grammar([rule(f"left {other}", 0) for other in OTHERS])
    (warning,) = report(FINE, WORD, DOUBLE, rivals=((1.0, many), (1.0, many))).warnings
    assert warning.endswith("; 1 more")


def test_a_rival_that_agrees_about_all_sentences_is_no_warning():
    same = Grammar([WORD, rule("walk twice", 0, 0), DOUBLE])
    learned = report(FINE, WORD, DOUBLE, rivals=((1.0, same),))
    assert learned.warnings == ()
    assert len(learned.rivals) == 1


# --- warnings


def warnings(by_form=(), support=(9, 9), unexplained=0.0, uncertainty=0.0):
    forms = {(n,): set(used) for n, used in enumerate(by_form)}
    counts = Counter(dict(enumerate(support)))
    return _warnings(model_of(WORD, DOUBLE), forms, counts, unexplained, uncertainty)


def test_a_warning_names_a_rule_with_at_most_one_supporting_pair():
    assert warnings(support=(2, 2)) == []
    assert warnings(support=(2, 1)) == ["only 1 pair supports □ twice → 0 0"]
    assert warnings(support=(0, 2)) == ["no pair supports <verbs> → 0"]


def test_a_warning_says_that_derivations_are_uncertain():
    assert warnings(uncertainty=UNCERTAIN) == []
    (found,) = warnings(uncertainty=0.125)
    assert "do not determine which derivation is right (−log p 0.12 per form)" in found


def test_a_warning_says_that_the_rules_grow_with_the_data():
    for alone in (0, 1, 3):
        assert warnings([*([n] for n in range(alone)), *[[9]] * (10 - alone)]) == []
    assert warnings([[0], [0], [1], [1], [2], [2]]) == []
    (found,) = warnings([[0, 9], [1, 9], [2, 9], [3, 9], *[[9]] * 6])
    assert found.startswith("4 of 10 forms need a rule of their own: the number of rules grows")
    assert found.endswith("predictions for longer sentences may be wrong")


def test_few_forms_need_many_rules_in_any_case():
    assert warnings([[n] for n in range(9)]) == []
