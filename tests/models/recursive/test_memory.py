"""The memory of parses and explanations answers as the functions do that it remembers."""

from equitrans.models.recursive.description import Code
from equitrans.models.recursive.memory import Memory, Parsed
from equitrans.models.recursive.rules import HOLE, Grammar, Rule, constant
from equitrans.models.recursive.search import explain

A, B, OP, TWICE = range(4)
CODE = Code(symbols=6, targets=6, noise=0.01)
WORD_A, DOUBLE = Rule((A,), (0,)), Rule((HOLE, TWICE), (0, 0))


def rules_of(explanations):
    return [e.rules for e in explanations]


def test_explanations_of_a_renamed_form_are_the_renamed_explanations():
    memory = Memory()
    one, other = (A, OP, B), (OP, TWICE, A)
    first = memory.explain(Grammar(), one, ("\2", constant(3)), CODE, bound=100.0)
    assert set(rules_of(first)) == set(
        rules_of(explain(Grammar(), one, ("\2", constant(3)), CODE, bound=100.0))
    )
    second = memory.explain(Grammar(), other, ("\2", constant(5)), CODE, bound=100.0)
    names = {A: OP, OP: TWICE, B: A, HOLE: HOLE}
    renamed = [
        {
            Rule(tuple(names[s] for s in r.left), tuple(~5 if k == ~3 else k for k in r.right))
            for r in e.rules
        }
        for e in first
    ]
    assert renamed == [set(e.rules) for e in second]
    assert [e.bits for e in first] == [e.bits for e in second]


def test_a_parse_is_that_of_the_grammar_at_hand():
    memory, form, target = Memory(), (A, TWICE), ("\0", "\0")
    for rules in [(WORD_A,), (WORD_A, DOUBLE), (WORD_A, Rule((B, OP), (0,))), (DOUBLE, WORD_A)]:
        grammar = Grammar(rules)
        assert memory.parse(grammar, form, target) == Parsed.of(grammar, form, target)
    parsed = memory.parse(Grammar([DOUBLE, WORD_A]), form, target)
    assert parsed.is_derived
    assert parsed.rules == {WORD_A, DOUBLE}
    assert parsed.steps == {(DOUBLE, 0, WORD_A)}
    assert not memory.parse(Grammar([DOUBLE]), form, target).is_derived
