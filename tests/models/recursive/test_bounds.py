"""Lower bounds of missing rules never exceed the bits of an explanation."""

from itertools import combinations

from hypothesis import given, strategies as st

from equitrans.models.recursive.bounds import Bounds
from equitrans.models.recursive.chart import parse
from equitrans.models.recursive.description import Code
from equitrans.models.recursive.rules import HOLE, Grammar, Rule, constant
from equitrans.models.recursive.search import explain

A, B, OP, TWICE = range(4)
CODE = Code(symbols=6, targets=6, noise=0.01)
GO = constant(0)
GRAMMARS = [
    [],
    [Rule((A,), (0,))],
    [Rule((HOLE, OP, HOLE), (2, 0))],
    [Rule((HOLE, TWICE), (0, 0)), Rule((B,), (0,))],
    [Rule((A, B), (1,)), Rule((A,), (0,)), Rule((OP,), (~0,))],
]


def bounds(grammar, form, target):
    return Bounds(grammar.rules, form, target, CODE, parse(grammar, form, target).spans)


@given(
    st.sampled_from(GRAMMARS),
    st.lists(st.sampled_from([A, B, OP, TWICE]), min_size=1, max_size=5),
    st.data(),
)
def test_no_explanation_takes_fewer_bits_than_the_bound(rules, form, data):
    places = [chr(p) for p in range(len(form))]
    target = tuple(data.draw(st.lists(st.sampled_from([*places, GO]), min_size=1, max_size=4)))
    grammar, form = Grammar(rules), tuple(form)
    goal = 0, len(form), target
    bound = bounds(grammar, form, target)
    for e in explain(grammar, form, target, CODE, bound=90.0, effort=500, n_best=20):
        # whatever some of its rules lack, the others have
        for some in [(), *combinations(sorted(e.rules), max(0, len(e.rules) - 1))]:
            rest = e.bits - sum(map(CODE.rule, some))
            if parse(grammar.plus(some), form, target).root is None:
                assert bound.lack([goal], some).bits(CODE) <= rest + 1e-9


def test_the_bound_of_unknown_words_is_nearly_the_rule_that_has_them_all():
    form, target = (A, OP, B, TWICE), ("\0", GO, "\2")
    flat = Rule(form, (0, ~0, 2))
    least = bounds(Grammar(), form, target).lack([(0, 4, target)], ()).bits(CODE)
    # one rule takes as many bits as it has; several may take less: the bound ignores their holes
    assert CODE.rule(flat) - 2 * 2.0 < least <= CODE.rule(flat) + 1e-9
    known = bounds(Grammar([Rule((HOLE, TWICE), (0, 0))]), form, target)
    assert known.lack([(0, 4, target)], ()).bits(CODE) < least


def test_rules_count_only_where_they_fit():
    form, target = (A, OP, B), ("\0", "\2")
    goal = 0, 3, target
    after = Rule((B, OP, HOLE), (0, 2))
    before = Rule((HOLE, OP, B), (0, 2))
    empty = bounds(Grammar(), form, target)
    assert empty.lack([goal], [after]) == empty.lack([goal], ())
    assert empty.lack([goal], [before]).words == 1
    # a rule that writes what the target lacks does not fit either
    assert empty.lack([goal], [Rule((HOLE, OP, B), (0, ~0, 2))]).words == 3
