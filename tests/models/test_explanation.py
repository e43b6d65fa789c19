"""The search for new rules that make a pair derivable: what it finds, and where it stops."""

from itertools import combinations, product

import pytest
from hypothesis import given, strategies as st

from equitrans.models.recursive.description import Code
from equitrans.models.recursive.parsing import parse
from equitrans.models.recursive.rules import HOLE, Grammar, Rule, constant
from equitrans.models.recursive.search import RIVAL, Explanation, explain

A, B, OP, TWICE, THRICE, DUP = range(6)
CODE = Code(symbols=6, targets=6, noise=0.01)
GO = constant(0)

WORD_A, WORD_B = Rule((A,), (0,)), Rule((B,), (0,))
SWAP = Rule((HOLE, OP, HOLE), (2, 0))
FIRST = Rule((HOLE, OP, HOLE), (0,))
DOUBLE = Rule((HOLE, TWICE), (0, 0))
TRIPLE = Rule((HOLE, THRICE), (0, 0, 0))


def found(rules, form, target, **settings):
    grammar = Grammar(rules)
    return explain(grammar, form, target, CODE, **{"bound": 200.0, **settings})


def sets(rules, form, target, **settings):
    return [set(e.rules) for e in found(rules, form, target, **settings)]


# --- what every explanation is

GRAMMARS = [
    [],
    [WORD_A],
    [SWAP],
    [DOUBLE, WORD_B],
    [WORD_A, WORD_B, FIRST],
    [Rule((A, B), (1,)), WORD_A, DOUBLE],
    [Rule((TWICE, HOLE, B), (~0,)), WORD_A],
]
grammars = st.sampled_from(range(len(GRAMMARS)))


@st.composite
def examples(draw):
    """A form and a target, whose words come from one or two places of it or are constants."""
    form = draw(st.lists(st.sampled_from([A, B, OP, TWICE]), min_size=1, max_size=4))
    places = [chr(p) for p in range(len(form))]
    twins = ["".join(pair) for pair in combinations(places, 2)]
    target = draw(st.lists(st.sampled_from([*places, *places, GO, *twins]), max_size=4))
    return tuple(form), tuple(target)


@given(grammars, examples(), st.booleans(), st.booleans())
def test_new_rules_make_the_pair_derivable(number, example, cautious, juxtapose):
    grammar = Grammar(GRAMMARS[number])
    form, target = example
    bound = 70.0
    every = explain(
        grammar,
        form,
        target,
        CODE,
        bound=bound,
        cautious=cautious,
        juxtapose=juxtapose,
        effort=400,
        n_best=30,
    )
    assert len({e.rules for e in every}) == len(every)
    assert [e.bits for e in every] == sorted(e.bits for e in every)
    for e in every:
        assert parse(grammar.plus(e.rules), form, target).root is not None
        assert e.bits == pytest.approx(sum(map(CODE.rule, e.rules)))
        assert e.bits <= bound
        assert not e.rules & set(grammar.rules)
        assert juxtapose or not any(set(rule.left) == {HOLE} for rule in e.rules)
        assert not cautious or len(e.rules) <= 1


def single_rules(form, target, most):
    """Every rule of fewer bits that can stand somewhere over a form, one by one."""
    words = {~0} if GO in target else set()
    lefts = {
        tuple(left)
        for i in range(len(form))
        for j in range(i + 1, len(form) + 1)
        for cuts in range(j - i)
        for ends in combinations(range(i + 1, j), cuts)
        for left in product(
            *(
                (HOLE, form[p]) if q == p + 1 else (HOLE,)
                for p, q in zip((i, *ends), (*ends, j), strict=True)
            )
        )
        if set(left) != {HOLE}
    }
    for left in lefts:
        for n in range(len(target) + 1):
            if CODE.rule(Rule(left, (0,) * n)) < most:
                rights = product([*range(len(left)), *words], repeat=n)
                yield from (rule for r in rights if CODE.rule(rule := Rule(left, r)) < most)


# a hole over what is known is not asked for anything else, which the fifth grammar would need
@pytest.mark.parametrize("number", [0, 3, 5])
def test_no_single_rule_of_fewer_bits_would_do(number):
    grammar = Grammar(GRAMMARS[number])
    for form, target in [
        ((A, B), ("\1", "\0")),
        ((A, OP, B), ("\0", GO)),
        ((A, TWICE), ("\0", "\0", "\0")),
        ((A, OP, A), ("\0",)),
        ((B, TWICE, TWICE), ("\0", "\0")),
    ]:
        least = found(grammar.rules, form, target)[0].bits
        for rule in single_rules(form, target, least - 1e-9):
            assert parse(grammar.plus([rule]), form, target).root is None


def test_what_is_derived_already_takes_no_rule_and_no_search():
    nothing = [Explanation(0.0, frozenset())]
    assert found([WORD_A, DOUBLE], (A, TWICE), ("\0", "\0"), effort=0) == nothing
    assert isinstance(found([WORD_A], (A,), ("\0",))[0].bits, float)
    assert found([WORD_A, SWAP], (A, OP, A), ("\0\2", "\0"), effort=0) == nothing
    assert found([WORD_A, DOUBLE], (A, TWICE), ("\0",)) != nothing


# --- words of a class


def test_a_word_of_a_class_is_a_constituent_by_itself_without_any_search():
    assert sets([], (A,), ("\0",), effort=0) == [{WORD_A}]
    for form, target in [((A, B), ("\0",)), ((A,), ("\0", "\0")), ((A,), (GO,))]:
        assert sets([], form, target, effort=0) == []
    assert sets([DOUBLE], (A, TWICE), ("\0", "\0")) == [{WORD_A}]


def test_a_single_word_may_stand_for_a_constant_or_for_itself_twice():
    assert sets([], (A,), (GO,)) == [{Rule((A,), (~0,))}]
    assert sets([], (A,), ("\0", "\0")) == [{Rule((A,), (0, 0))}]


def test_a_dropped_word_of_a_class_that_is_translated_becomes_a_constituent():
    assert sets([FIRST], (A, OP, A), ("\0",)) == [{WORD_A}]
    # nothing says that the words of the other class are
    assert {WORD_A} not in sets([FIRST], (A, OP, B), ("\0",))
    assert {WORD_A, WORD_B} not in sets([FIRST], (A, OP, B), ("\0",))


# --- rules that are known

JUST_A = {"bound": CODE.rule(WORD_A) + 1e-6}
"""Bits for a word of a class, and for nothing else."""


def test_an_old_rule_costs_nothing_where_it_just_fits():
    assert sets([DOUBLE], (A, TWICE), ("\0", "\0"), **JUST_A) == [{WORD_A}]
    ahead = Rule((HOLE, A), (0, 1))
    assert sets([ahead], (A, A), ("\0", "\1"), **JUST_A) == [{WORD_A}]


def test_an_old_rule_that_does_not_fit_does_not_hide_the_next():
    too_long = Rule((HOLE, OP, HOLE, TWICE), (0,))
    for other in (too_long, TRIPLE):
        assert sets([other, DOUBLE], (A, TWICE), ("\0", "\0"), **JUST_A) == [{WORD_A}]


def test_a_rule_that_fits_in_several_ways_is_tried_in_all():
    # at first the rule would drop a word of which nothing is known
    last, known = Rule((HOLE, OP, HOLE), (2,)), Rule((DUP, OP, B), ())
    assert sets([last, known], (DUP, OP, B, OP, A), ("\4",), **JUST_A) == [{WORD_A}]


def test_two_parts_that_are_not_known_are_explained_both():
    best = sets([WORD_A, WORD_B, SWAP], (A, TWICE, OP, B, THRICE), ("\3", "\3", "\3", "\0", "\0"))[
        0
    ]
    assert best == {DOUBLE, TRIPLE}


def test_a_new_rule_explains_more_than_one_part_at_one_price():
    double = Rule((DUP, HOLE), (1, 1))
    best = found([WORD_A], (DUP, DUP, DUP, A), ("\3",) * 8)[0]
    assert best == Explanation(CODE.rule(double), frozenset({double}))


# --- side by side


def test_constituents_stand_side_by_side_only_where_that_is_asked_for():
    beside = {Rule((HOLE, HOLE), (0, 1))}
    pair = (A, B), ("\0", "\1")
    one_word = [{Rule((HOLE, B), (0, 1))}, {Rule((A, HOLE), (0, 1))}, {Rule((A, B), (0, 1))}]
    assert sets([WORD_A, WORD_B], *pair) == one_word
    assert sets([WORD_A, WORD_B], *pair, juxtapose=True) == [beside, *one_word]
    # never three
    every = sets([WORD_A, WORD_B], (A, B, A), ("\0", "\1", "\2"), juxtapose=True)
    assert every[0] == beside
    assert not any(Rule((HOLE, HOLE, HOLE), (0, 1, 2)) in rules for rules in every)


# --- a cautious explanation


def test_the_holes_of_a_cautious_explanation_stand_over_what_is_known():
    form, target = (DUP, DUP, A), ("\2",) * 4
    assert sets([WORD_A], form, target)[0] == {Rule((DUP, HOLE), (1, 1))}
    assert sets([WORD_A], form, target, cautious=True) == [{Rule((DUP, DUP, HOLE), (2,) * 4)}]


def test_a_cautious_explanation_is_never_two_rules():
    form, target = (A, OP, B), ("\2", "\0")
    whole = {Rule(form, (2, 0))}
    assert sets([SWAP], form, target) == [{WORD_A, WORD_B}, whole]
    assert sets([SWAP], form, target, cautious=True) == [whole]


def test_a_cautious_explanation_drops_nothing_that_is_not_known():
    assert sets([FIRST], (A, OP, A), ("\0",), cautious=True) == [{Rule((A, OP, A), (0,))}]


# --- how many, and of how many bits


def test_an_explanation_of_just_the_bound_is_given_and_none_above_it():
    rule = Rule((A, B), (0, 1))
    bits = CODE.rule(rule)
    assert sets([], *((A, B), ("\0", "\1")), bound=bits) == [{rule}]
    assert sets([], *((A, B), ("\0", "\1")), bound=bits - 1e-6) == []
    # a rule that writes nothing is the least there is
    empty = Rule((HOLE, B), ())
    assert CODE.rule(empty) == CODE.least(2)
    assert sets([WORD_A], (A, B), (), bound=CODE.least(2)) == [{empty}]


def test_rivals_of_the_best_are_given_but_cautious_ones_must_be_as_good():
    form, target = (A, OP, B), ("\0", "\2", "\0", "\2")
    every = found([WORD_A, WORD_B], form, target, n_best=100)
    best = every[0].bits
    assert best < every[-1].bits <= RIVAL * best
    assert {Rule(form, (0, 2, 0, 2))} in [e.rules for e in every]
    (only,) = found([WORD_A, WORD_B], form, target, cautious=True)
    assert only == every[0]


def test_the_best_eight_are_given_unless_more_are_asked_for():
    pair = [WORD_A, WORD_B], (A, OP, A, B), ("\0", "\2", "\3", "\3")
    every = found(*pair, n_best=100)
    assert len(every) > 9
    assert found(*pair) == every[:8]
    assert found(*pair, n_best=3) == every[:3]
