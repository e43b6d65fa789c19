"""Description lengths of rules and exceptions."""

import math
from itertools import product

import pytest

from equitrans.models.recursive.description import KIND, Code, choice
from equitrans.models.recursive.rules import HOLE, Rule

A, B, TWICE, AND = range(4)
CODE = Code(symbols=4, targets=8, noise=1 / 16)


def test_the_bits_of_a_rule_are_those_of_its_signs():
    # left: three signs and the end, one of them a word; right: a place, a constant, and the end
    assert CODE.left(Rule((HOLE, AND, HOLE), ())) == pytest.approx(4 * KIND + 2)
    assert CODE.left(Rule((A, AND, B), ())) == pytest.approx(4 * KIND + 6)
    rule = Rule((HOLE, AND, HOLE), (2, ~5))
    assert CODE.rule(rule) == pytest.approx(4 * KIND + 2 + 3 * KIND + math.log2(3) + 3)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_least_bits_of_a_size_are_those_of_the_cheapest_rule(size):
    lefts = [left for left in product((HOLE, A, B), repeat=size) if set(left) != {HOLE}]
    prices = [CODE.rule(Rule(left, right)) for left in lefts for right in ((), (0,), (~1,))]
    assert CODE.least(size) == pytest.approx(min(prices))
    longer = CODE.rule(Rule(lefts[0], (0,))) - CODE.rule(Rule(lefts[0], ()))
    assert CODE.least_place(size) == pytest.approx(longer)


def test_the_first_mention_of_a_word_is_free():
    rules = [Rule((A, TWICE), (0, ~5)), Rule((B, TWICE), (~5, ~6, 0))]
    free = 3 * math.log2(CODE.symbols) + 2 * math.log2(CODE.targets)
    assert CODE.rules(rules) == pytest.approx(sum(map(CODE.rule, rules)) - free)
    assert CODE.rules([]) == 0


def test_a_wrong_pair_costs_its_target_or_one_change():
    assert CODE.wrong == 4
    assert CODE.novelty(3) == pytest.approx(4 + KIND + 3 * (1 + 3))
    assert CODE.contradiction(3) == pytest.approx(4 + KIND + 3 + 2)


@pytest.mark.parametrize(("some", "all_"), [(1, 2), (1, 4), (3, 4), (5, 7), (1, 100)])
def test_a_choice_takes_the_entropy_of_its_shares(some, all_):
    other = all_ - some
    likely = some * math.log2(some / all_) + other * math.log2(other / all_)
    assert choice(some, all_) == pytest.approx(-likely)


@pytest.mark.parametrize(("some", "all_"), [(0, 0), (0, 1), (1, 1), (0, 5), (5, 5)])
def test_a_choice_among_uses_of_one_kind_takes_no_bits(some, all_):
    assert choice(some, all_) == 0
