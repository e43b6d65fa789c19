"""What was learned: as it is written down and read again, and what the report says of it."""

import json
from collections import Counter

import pytest

from equitrans.data.pairs import Pair
from equitrans.errors import DataError
from equitrans.models import build
from equitrans.models.configs import TransducerConfig
from equitrans.models.recursive.description import Code
from equitrans.models.recursive.induce import Induced
from equitrans.models.recursive.io import (
    LARGEST,
    Learned,
    learned_from_json as from_json,
    learned_to_json as to_json,
)
from equitrans.models.recursive.learn import (
    ONE_FORM,
    UNEXPLAINED,
    UNSETTLED,
    _doubts,
    _report,
    _settle,
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


# --- as it is written


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


def test_rules_are_written_in_words_classes_and_places():
    assert to_json(LEARNED, WORLD) == WRITTEN


def test_what_was_written_is_read_again_as_it_was():
    again = from_json(json.loads(json.dumps(WRITTEN)), WORLD)
    assert again.grammar.rules == LEARNED.grammar.rules
    kept = ("support", "pairs", "exceptions", "warnings", "bits", "noise")
    assert [getattr(again, k) for k in kept] == [getattr(LEARNED, k) for k in kept]


def test_a_rule_without_a_support_is_not_left_out_in_silence():
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        to_json(Learned(Grammar([WORD, BOTH]), (1,), 1), WORLD)


def test_before_learning_there_is_nothing():
    nothing = Learned.nothing()
    assert (len(nothing.grammar), nothing.support, nothing.pairs) == (0, (), 0)
    assert from_json(to_json(nothing, WORLD), WORLD).support == ()


# --- as anyone may have written it


def refused(content):
    with pytest.raises(DataError) as error:
        from_json(content, WORLD)
    return str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"right": [3]}, "3 is no place on its left side and no word"),
        ({"right": [-1]}, "-1 is no place on its left side and no word"),
        ({"right": [True]}, "True is no place on its left side and no word"),
        ({"right": [0.0]}, "0.0 is no place on its left side and no word"),
        ({"right": "go"}, "not a grammar: right is 'go'"),
        ({"left": []}, "its left side is empty"),
        ({"left": [{"class": "nouns"}]}, "{'class': 'nouns'} is no word, no class and no hole"),
        ({"left": [{"class": "verbs"}], "right": [0]}, "it stands twice"),
    ],
)
def test_a_rule_that_is_none_is_named_by_its_number(change, message):
    first, second, *others = WRITTEN["rules"]
    content = WRITTEN | {"rules": [first, second | change, *others]}
    assert refused(content) == f"not a grammar: rule 2: {message}"


@pytest.mark.parametrize("name", ["rules", "exceptions", "warnings"])
@pytest.mark.parametrize("value", [None, "x", [3]])
def test_what_is_no_list_of_such_things_is_refused(name, value):
    assert refused(WRITTEN | {name: value}) == f"not a grammar: {name} is {value!r}"


@pytest.mark.parametrize("side", ["source", "target"])
def test_an_exception_is_made_of_words(side):
    (exception,) = WRITTEN["exceptions"]
    content = WRITTEN | {"exceptions": [exception | {side: ["run", 3]}]}
    assert refused(content) == f"not a grammar: {side} is ['run', 3]"


@pytest.mark.parametrize(
    ("name", "most", "more"),
    [("pairs", LARGEST, LARGEST + 1), ("bits", LARGEST, LARGEST + 1), ("noise", 0.5, 0.75)],
)
def test_numbers_go_from_zero_to_what_they_can_be(name, most, more):
    # a float tells no larger number from the next, and no more than half of the pairs are wrong
    for value in (0, most):
        assert getattr(from_json(WRITTEN | {name: value}, WORLD), name) == value
    for value in (-1, more, True, False, None, "x"):
        message = f"{name} is {value!r}; it must be a number from 0 to {most}"
        assert refused(WRITTEN | {name: value}) == f"not a grammar: {message}"


# --- the groups of pairs that weights are learned from


def test_each_form_is_settled_by_its_largest_group_that_the_grammar_derives():
    walk, twice = symbol("walk"), symbol("twice")

    def seen(form, text, count):
        return Observation(form, tuple(text), (), count)

    double = (walk, twice)
    derived, lost = seen((walk,), "\0", 5), seen(double, "\0", 9)
    longer = seen((walk, twice, twice), "\0", 9)
    minor = (
        seen((walk,), "\0", 4),  # its form is settled by more pairs
        seen(double, "\0\0\0", 4),
        seen(double, "\0\0", 3),
        seen(double, ("\0", "\0\1"), 2),  # derived, too, but fewer
        seen((walk, twice, twice), "\0\0", 1),
    )
    observations = Observations((derived, lost, longer), minor, (), 37, 14, 4, 8)
    induced = Induced(Grammar([WORD, DOUBLE]), CODE, (lost, longer), 9.0)
    assert _settle(observations, induced) == [derived, minor[2]]


# --- the report


def model_of(*rules):
    return build(CONFIG, WORLD, Learned(Grammar(rules), (), 0)).eval()


def report(pairs, *rules, rivals=(), left=0.0):
    model = model_of(*rules)
    induced = Induced(model.aligner.grammar, CODE, (), 31.5, rivals)
    return _report(model, pairs, observe(pairs, WORLD), induced, left)


FINE = [
    of("walk", "WALK"),
    of("run", "RUN"),
    of("look twice", "LOOK LOOK"),
    of("jump twice", "JUMP JUMP"),
]


def test_a_report_counts_the_distinct_pairs_that_speak_for_each_rule():
    learned = report([*FINE, *FINE], WORD, DOUBLE)
    assert learned.support == (4, 2)
    assert learned.pairs == 4
    assert learned.exceptions == ()
    assert learned.warnings == ()
    assert learned.bits == 31.5
    assert learned.noise == pytest.approx(0.5 / 5)


def test_a_report_says_why_each_exception_is_one():
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


def test_the_share_of_exceptions_is_the_noise_but_never_above_a_half():
    wrong = [of("twice walk", "WALK"), of("twice twice walk", "WALK")]
    assert report([wrong[0], *FINE[:3]], WORD, DOUBLE).noise == pytest.approx(1.5 / 5)
    assert report([*wrong, *FINE[:1]], WORD, DOUBLE).noise == 0.5
    warning, *_ = report([*wrong, *FINE], WORD, DOUBLE).warnings
    assert warning.startswith("33 % of the pairs are not explained: the data may lie outside")


def test_other_grammars_of_nearly_as_few_bits_are_told_by_what_they_have():
    rivals = ((1.25, Grammar([WORD, rule("walk twice", 0, 0), BOTH])), (3.0, Grammar([WORD])))
    assert report(FINE, WORD, DOUBLE, rivals=rivals).warnings == (
        "another grammar takes only 1.2 bits more: it has <verbs> twice → 0 0; □ and □ → 2 'go' 0",
        "another grammar takes only 3.0 bits more: it has fewer rules",
    )


# --- doubts


def doubts(by_form=(), support=(9, 9), unexplained=0.0, left=0.0):
    forms = {(n,): set(used) for n, used in enumerate(by_form)}
    counts = Counter(dict(enumerate(support)))
    return _doubts(model_of(WORD, DOUBLE), forms, counts, unexplained, left)


def test_a_rule_that_at_most_one_pair_speaks_for_is_doubted():
    assert doubts(support=(2, 2)) == []
    assert doubts(support=(2, 1)) == ["only 1 pair speaks for □ twice → 0 0"]
    assert doubts(support=(0, 2)) == ["only 0 pair speaks for <verbs> → 0"]


def test_a_share_of_pairs_that_is_not_explained_is_told_above_a_limit():
    assert doubts(unexplained=UNEXPLAINED) == []
    (found,) = doubts(unexplained=UNEXPLAINED + 0.05)
    assert found.startswith("25 % of the pairs are not explained")


def test_derivations_that_the_rules_do_not_settle_are_told_above_a_limit():
    assert doubts(left=UNSETTLED) == []
    (found,) = doubts(left=0.125)
    assert "do not settle which derivation is right (−log p 0.12 per form)" in found


def test_rules_that_grow_with_the_data_are_told_above_a_limit():
    assert ONE_FORM * 10 == 3.0
    for alone in (0, 1, 3):
        assert doubts([*([n] for n in range(alone)), *[[9]] * (10 - alone)]) == []
    assert doubts([[0], [0], [1], [1], [2], [2]]) == []
    (found,) = doubts([[0, 9], [1, 9], [2, 9], [3, 9], *[[9]] * 6])
    assert found.startswith("4 of 10 forms need a rule of their own: rules that grow")


def test_three_forms_are_enough_for_rules_to_grow_and_two_are_too_few():
    assert doubts([[0], [1]]) == []
    (found,) = doubts([[0], [1], [2]])
    assert found.startswith("3 of 3 forms")
