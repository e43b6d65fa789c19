"""Why a sentence has no derivation."""

from dataclasses import replace

import pytest

from equitrans.data.pairs import Pair
from equitrans.models.recursive.rules import HOLE, Rule
from worlds import SOURCE, TURNS, VERBS, small_recursive, symmetry

WORLD = symmetry(VERBS, TURNS)


def word(text):
    return WORLD.source_classes[SOURCE.index[text]]


RULES = [
    Rule((word("walk"),), (0,)),
    Rule((HOLE, word("twice")), (0, 0)),
    Rule((HOLE, word("and"), HOLE), (0, 2)),
    Rule((HOLE, word("after"), word("left")), (2, 0)),
]


def refusal(sentence, rules=RULES, exceptions=()):
    model = small_recursive(WORLD, rules, noise=0.05)
    model.take(replace(model.learned, exceptions=tuple((pair, "wrong") for pair in exceptions)))
    return model.refusal(sentence.split())


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [
        (
            "jump jump",
            "no rule joins 'jump' and 'jump'; derived: 'jump' (word 1), 'jump' (word 2)",
        ),
        (
            "jump twice and",
            "no rule joins 'jump twice' and 'and'; derived: 'jump twice' (words 1 to 2); "
            "nearest rule: □ and □ → 0 2",
        ),
        ("twice", "no rule derives 'twice'; nearest rule: □ twice → 0 0"),
        (
            "walk after walk",
            "no rule joins 'walk', 'after' and 'walk'; derived: 'walk' (word 1), 'walk' (word 3); "
            "nearest rule: □ after <turns> → 2 0",
        ),
        ("jump twice red", "no rule contains 'red'"),
        (
            "jump run walk jump look run",
            "no rule joins 'jump', 'run', 'walk', 'jump' and 2 more parts; derived: "
            "'jump' (word 1), 'run' (word 2), 'walk' (word 3), 'jump' (word 4), …",
        ),
    ],
)
def test_a_reason_names_what_no_rule_joins(sentence, reason):
    assert refusal(sentence) == reason


def test_a_reason_names_an_unexplained_pair_of_the_same_form():
    pairs = [
        Pair(("look", "run"), ("LOOK",)),
        Pair(("run", "jump"), ("RUN",)),
        Pair(("look", "and", "run"), ("LOOK",)),
        Pair(("unknown", "run"), ("LOOK",)),
    ]
    reason = refusal("jump jump", exceptions=pairs)
    assert reason.endswith("; unexplained training pair of this form: 'look run' → 'LOOK'")
    assert "unexplained" not in refusal("jump left", exceptions=pairs)


def test_a_model_without_rules_says_so():
    assert refusal("jump", rules=[]) == "the model has no rules"


def test_a_reason_is_short_and_on_one_line():
    reason = refusal(" ".join(["twice", "jump"] * 400), exceptions=[])
    assert len(reason) < 1000
    assert reason.isprintable()
