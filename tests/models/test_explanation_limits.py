"""How much the search for new rules tries: its limits, and what it leaves alone."""

from itertools import combinations, product
from typing import NamedTuple

import pytest

from equitrans.models.recursive import search as explanation
from equitrans.models.recursive.description import Code
from equitrans.models.recursive.rules import HOLE, Grammar, Rule, constant
from equitrans.models.recursive.search import explain
from equitrans.models.recursive.tile import tile

A, B, OP, TWICE, THRICE, DUP = range(6)
CODE = Code(symbols=6, targets=6, noise=0.01)
GO = constant(0)

WORD_A, WORD_B = Rule((A,), (0,)), Rule((B,), (0,))
SWAP = Rule((HOLE, OP, HOLE), (2, 0))
DOUBLE = Rule((HOLE, TWICE), (0, 0))


def found(rules, form, target, **settings):
    grammar = Grammar(rules)
    return explain(grammar, form, target, CODE, **{"bound": 200.0, **settings})


def test_without_effort_nothing_is_searched_and_a_little_goes_one_step():
    assert found([], (A, B), ("\0", "\1"), effort=0) == []
    assert found([], (A, B), ("\0", "\1"), effort=1)[0].rules == {Rule((A, B), (0, 1))}


class Call(NamedTuple):
    """What was asked about right sides, and in how many tries it was answered."""

    left: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]
    longest: int
    tries: int

    @property
    def span(self):
        return self.spans[0][0], self.spans[-1][1]


@pytest.fixture
def calls(monkeypatch):
    """A list of what the search asks about right sides."""
    every = []

    def ask(left, spans, target, yields, **settings):
        tilings, tries = tile(left, spans, target, yields, **settings)
        every.append(Call(left, spans, settings["longest"], tries))
        return tilings, tries

    monkeypatch.setattr(explanation, "tile", ask)
    return every


def test_the_search_ends_when_the_tries_are_used_up(calls):
    pair = (A, OP, A, TWICE, OP, A), ("\5", "\2", "\2", "\0", GO)
    for effort in (300, 3000):
        calls.clear()
        found([], *pair, effort=effort)
        assert effort <= sum(call.tries for call in calls) < 2 * effort


def test_tries_with_old_rules_count_as_well(calls):
    pair = (A, OP, A, OP, A), ("\4", "\2", "\0", "\0")
    found([SWAP], *pair, effort=1)
    first = list(calls)
    assert [call.spans[1] for call in first] == [(1, 2), (3, 4)]
    for effort, more in ((0, False), (1, True)):
        calls.clear()
        found([SWAP], *pair, effort=sum(call.tries for call in first) + effort)
        assert calls[:2] == first
        assert (len(calls) > 2) == more


def test_an_old_rule_is_tried_in_a_hundred_ways_at_most(calls):
    three = Rule((HOLE, HOLE, HOLE), (0, 1, 2))
    for words, ways in ((14, 78), (16, 100)):
        calls.clear()
        found([three], (OP,) * words, (GO, GO, GO), effort=1)
        assert len(calls) == ways


def test_no_left_side_is_tried_whose_least_bits_are_above_the_bound(calls):
    pair = (A, OP, B, TWICE), ("\2", "\0", "\0", "\2")
    for size in (1, 2, 3):
        found([], *pair, bound=CODE.least(size + 1) - 1e-6)
        assert max((len(call.left) for call in calls), default=1) == size


def test_every_open_part_takes_the_least_bits_of_two_symbols_at_least(calls):
    # two parts are open below the first rule: one of three words, which the second fits, and
    # one of two
    pair = (A, TWICE, TWICE, OP, B, THRICE), ("\4",) * 3 + ("\0",) * 4
    for bound, sizes in {
        2 * CODE.least(2) - 1e-6: set(),
        2 * CODE.least(2) + 1e-6: {2},
        CODE.least(2) + CODE.least(3) + 1e-6: {2, 3},
    }.items():
        calls.clear()
        found([SWAP, DOUBLE], *pair, bound=bound)
        assert {len(call.left) for call in calls if call.span == (0, 3)} == sizes


def test_no_right_side_is_longer_than_the_bits_that_are_left_allow(calls):
    # a word of a class is paid for before the other part of the old rule is looked at
    bound = 40.0
    found([SWAP], (A, OP, B, TWICE), ("\2",) * 20 + ("\0",), bound=bound)
    for span, paid in {(0, 4): 0.0, (2, 4): CODE.rule(WORD_A)}.items():
        here = [call for call in calls if call.span == span]
        assert any(call.longest > 3 for call in here)
        for call in here:
            size = len(call.left)
            left = CODE.left(Rule(call.left, ()))
            assert paid + left + call.longest * CODE.least_place(size) <= bound


def test_no_more_left_sides_of_a_size_are_laid_than_allowed(monkeypatch):
    pair = [WORD_A, WORD_B], (A, OP, B), ("\0", "\2")
    assert len(found(*pair)) > 2
    monkeypatch.setattr(explanation, "LAYOUTS", 1)
    assert found(*pair) == []  # the first of each size has holes alone


def search(rules, form, target, cautious=False):
    return explanation._Search(Grammar(rules), form, target, CODE, False, cautious)


def test_sizes_go_up_by_one_to_nine_and_then_to_the_whole_span():
    here = search([], (A,) * 14, ("\0",))
    for i, j in [(0, 4), (2, 14), (3, 12), (3, 13)]:
        sizes = [0]
        while (size := here.next_size((i, j, ("\0",)), sizes[-1])) is not None:
            sizes.append(size)
        assert sizes == [*range(min(j - i, 9) + 1), *([j - i] if j - i > 9 else [])]


def brute_layouts(form, i, j, size, known, most):
    """Left sides with at most so many holes over what is not known, one by one."""
    for cuts in combinations(range(i + 1, j), size - 1):
        spans = tuple(zip((i, *cuts), (*cuts, j), strict=True))
        kinds = [(HOLE, form[p]) if q == p + 1 else (HOLE,) for p, q in spans]
        for left in product(*kinds):
            holes = [span for s, span in zip(left, spans, strict=True) if s == HOLE]
            if (i, j) not in holes and sum(span not in known for span in holes) <= most:
                yield left, spans


@pytest.mark.parametrize("cautious", [False, True])
def test_left_sides_have_few_holes_over_what_is_not_known(cautious):
    form = (A, TWICE, OP, B, THRICE, A, DUP)
    # where a word of B is translated, one may turn out to be a constituent
    here = search([WORD_A, DOUBLE], form, ("\3",), cautious)
    known = {(0, 1), (0, 2), (5, 6)} | (set() if cautious else {(3, 4)})
    for i, j in [(0, 7), (0, 5), (2, 7), (3, 4)]:
        for size in range(1, j - i + 1):
            most = 0 if cautious else 2 if size <= 4 else 1
            laid = list(here._layouts(i, j, size))
            assert len(laid) == len(set(laid))
            assert set(laid) == set(brute_layouts(form, i, j, size, known, most))
