"""Rules, charts, description lengths and the search for rules, against brute force."""

import math
import random
from itertools import combinations, product

import pytest
from hypothesis import given, strategies as st

from equitrans.data.pairs import Pair
from equitrans.models.recursive.derivations import Weights, alignments, best_tree, held
from equitrans.models.recursive.description import Code
from equitrans.models.recursive.induce import induce
from equitrans.models.recursive.io import (
    Learned,
    Names,
    learned_from_json as from_json,
    learned_to_json as to_json,
)
from equitrans.models.recursive.observe import observe
from equitrans.models.recursive.parsing import parse
from equitrans.models.recursive.rules import HOLE, Grammar, Rule, constant
from equitrans.models.recursive.search import explain
from equitrans.paper.symmetry import Symmetry
from worlds import TURNS, VERBS

A, B, OP, TWICE, NOT = range(5)
RULES = [
    Rule((A,), (0,)),
    Rule((B,), (0,)),
    Rule((HOLE, OP, HOLE), (2, 0)),
    Rule((HOLE, TWICE), (0, 0)),
    Rule((NOT, HOLE), (~7, 1)),
    Rule((HOLE, HOLE), (0, 1)),
    Rule((HOLE, OP, B), (0,)),
]


def brute(grammar, weights, form, i=0, j=None):
    """Every derivation of a span: its rule, its yield and its score, one by one."""
    j = len(form) if j is None else j
    found = []
    for r, rule in enumerate(grammar.rules):
        m = len(rule.left)
        for cuts in combinations(range(i + 1, j), m - 1):
            ends = (i, *cuts, j)
            spans = [(ends[k], ends[k + 1]) for k in range(m)]
            if any(
                s != HOLE and (q != p + 1 or form[p] != s)
                for s, (p, q) in zip(rule.left, spans, strict=True)
            ):
                continue
            below = [brute(grammar, weights, form, *spans[hole]) for hole in rule.holes]
            for kids in product(*below):
                score = weights.rule[r]
                for k, (hole, (child, _, s)) in enumerate(zip(rule.holes, kids, strict=True)):
                    score += s + weights.child[r][k][child]
                    score += held(weights, form, r, k, spans[hole])
                texts = {hole: kid[1] for hole, kid in zip(rule.holes, kids, strict=True)}
                found.append((r, rule.join(spans, texts), score))
    return found


def random_weights(grammar, draw):
    zero = Weights.zero(grammar, (A, B))
    return Weights(
        [draw.gauss(0, 1) for _ in zero.rule],
        [[[draw.gauss(0, 1) for _ in c] for c in b] for b in zero.child],
        [[[draw.gauss(0, 1) for _ in c] for c in b] for b in zero.holds],
        (A, B),
    )


forms = st.lists(st.sampled_from([A, B, OP, TWICE, NOT]), min_size=1, max_size=5).map(tuple)
GRAMMARS = [Grammar([*RULES[:2], *more]) for n in range(5) for more in combinations(RULES[2:], n)]
grammars = st.sampled_from(range(len(GRAMMARS)))


@given(grammars, forms, st.integers(0, 99))
def test_alignments_are_those_of_brute_force_and_sum_to_one(number, form, seed):
    grammar = GRAMMARS[number]
    weights = random_weights(grammar, random.Random(seed))
    by_text: dict[str, float] = {}
    for _, text, score in brute(grammar, weights, form):
        by_text[text] = by_text.get(text, 0.0) + math.exp(score)
    found = alignments(grammar, weights, form)
    total = sum(by_text.values())
    assert {a.text for a in found} == set(by_text)
    for a in found:
        # yields fainter than e^-14 of the best are forgotten
        assert math.exp(a.log_prob) == pytest.approx(by_text[a.text] / total, abs=1e-5)
    if found:
        assert math.fsum(math.exp(a.log_prob) for a in found) == pytest.approx(1, abs=1e-12)


@given(grammars, forms, st.integers(0, 99))
def test_the_best_tree_is_the_best_derivation(number, form, seed):
    grammar = GRAMMARS[number]
    weights = random_weights(grammar, random.Random(seed))
    every = brute(grammar, weights, form)
    tree = best_tree(grammar, weights, form)
    assert (tree is None) == (not every)
    if tree is not None:
        assert tree.rule == max(every, key=lambda d: d[2])[0]


@given(grammars, forms)
def test_a_parse_under_a_target_finds_what_brute_force_finds(number, form):
    grammar = GRAMMARS[number]
    weights = Weights.zero(grammar, (A, B))
    texts = {text for _, text, _ in brute(grammar, weights, form)}
    for text in texts:
        assert parse(grammar, form, tuple(text)).root == text
    other = (*"\0" * 30,)
    assert parse(grammar, form, other).root is None


def test_a_target_left_open_is_parsed_by_what_it_allows():
    grammar = Grammar(RULES[:4])
    assert parse(grammar, (A, OP, A), ("\0\2", "\0\2")).root == "\2\0"
    assert parse(grammar, (A, OP, A), ("\0", "\0\2")).root is None


# --- explanation


CODE = Code(symbols=6, targets=6, noise=0.01)


def explained(grammar, form, target):
    return [e.rules for e in explain(grammar, form, target, CODE, bound=200.0)]


def test_one_long_pair_is_explained_by_small_rules_together():
    # dup dup dup dup a → a × 16
    dup = 1
    best = explained(Grammar(), (dup, dup, dup, dup, A), ("\4",) * 16)[0]
    assert best == {Rule((A,), (0,)), Rule((dup, HOLE), (1, 1))}


def test_a_cautious_explanation_is_one_rule_over_what_is_known():
    # a and a twice → 0 3 3, where only a is known
    et, twice = 1, 2
    form, target = (A, et, A, twice), ("\0", "\2", "\2")
    assert explain(Grammar(), form, target, CODE, bound=200.0, cautious=True)[0].rules == {
        Rule(form, (0, 2, 2))
    }
    known = Grammar([Rule((A,), (0,)), Rule((HOLE, et, HOLE), (0, 2))])
    assert explain(known, form, target, CODE, bound=200.0, cautious=True)[0].rules == {
        Rule((HOLE, twice), (0, 0))
    }


def test_a_known_rule_at_the_root_says_what_an_unknown_part_means():
    grammar = Grammar([Rule((A,), (0,)), Rule((HOLE, OP, HOLE), (2, 0))])
    best = explained(grammar, (A, OP, A, TWICE), ("\2", "\2", "\0"))[0]
    assert best == {Rule((HOLE, TWICE), (0, 0))}


def test_constants_are_written_by_the_rule():
    grammar = Grammar([Rule((A,), (0,))])
    best = explained(grammar, (NOT, A), (constant(5), "\1"))[0]
    assert best == {Rule((NOT, HOLE), (~5, 1))}


def test_what_a_right_side_drops_must_be_derivable():
    grammar = Grammar([Rule((A,), (0,))])
    assert {Rule((HOLE, OP, HOLE), (0,))} in explained(grammar, (A, OP, A), ("\0",))
    assert {Rule((HOLE, OP, HOLE), (0,))} not in explained(grammar, (A, OP, NOT, NOT), ("\0",))


# --- observations and what is learned


def test_pairs_of_a_form_narrow_each_other_down_and_a_wrong_one_is_left_out():
    pairs = [
        Pair(("walk", "and", "walk"), ("WALK", "WALK")),
        Pair(("walk", "and", "look"), ("LOOK", "WALK")),
        Pair(("run", "and", "jump"), ("JUMP", "RUN")),
        Pair(("run", "and", "look"), ("RUN", "LOOK")),
        Pair(("run", "and", "run"), ("JUMP", "RUN")),
    ]
    seen = observe(pairs, Symmetry.of([VERBS], pairs))
    (only,) = seen.all
    assert only.target == ("\2", "\0")
    assert only.count == 3
    assert {stray.pair for stray in seen.exceptions} == {pairs[3], pairs[4]}


def test_a_word_of_a_class_without_a_source_is_no_constant():
    pairs = [Pair(("left",), ("WALK",))]
    seen = observe(pairs, Symmetry.of([VERBS, TURNS], pairs))
    assert not seen.all
    assert "'WALK'" in seen.exceptions[0].reason


def test_a_rule_costs_more_with_every_symbol_and_wrong_pairs_cost_less_when_there_are_many():
    small, large = Rule((HOLE, A), (0, 0)), Rule((HOLE, A), (0, 0, 0))
    assert CODE.rule(small) < CODE.rule(large) < CODE.rule(Rule((B, A), (0, 0, 0)))
    assert Code(6, 6, 0.2).novelty(3) < CODE.novelty(3)


def test_what_was_learned_survives_being_written_down():
    pairs = [
        Pair(("walk", "twice"), ("WALK", "WALK")),
        Pair(("turn", "left", "and", "jump"), ("LTURN", "JUMP", "go")),
    ]
    symmetry = Symmetry.of([VERBS, TURNS], pairs)
    grammar = induce(observe(pairs, symmetry)).grammar
    learned = Learned(grammar, (1,) * len(grammar), 2, ((pairs[0], "why"),), ("doubt",), 9.5, 0.1)
    again = from_json(to_json(learned, symmetry), symmetry)
    assert again.grammar.rules == grammar.rules
    assert to_json(again, symmetry) == to_json(learned, symmetry)


def test_rules_are_written_with_classes_holes_and_constants():
    pairs = [Pair(("walk", "and", "left"), ("go",))]
    symmetry = Symmetry.of([VERBS], pairs)
    walk, and_, _ = (symmetry.source_classes[w] for w in symmetry.source.encode(pairs[0].source))
    rule = Rule((walk, and_, HOLE), (2, ~symmetry.target.index["go"], 0))
    assert Names(symmetry).rule(rule) == "<verbs> and □ → 2 'go' 0"
