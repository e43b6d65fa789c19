"""A learned grammar looked at again: its bits, and which of its rules are worth keeping."""

import math

import pytest

from equitrans.models.recursive.description import Code, choice
from equitrans.models.recursive.observe import Observation
from equitrans.models.recursive.passes import RECONSIDERED, Learner
from equitrans.models.recursive.rules import HOLE, Grammar, Rule

A, B, TWICE, AND, FIRST, MARK = range(6)
CODE = Code(symbols=4, targets=8, noise=1 / 16)
WORD, DOUBLE = Rule((A,), (0,)), Rule((HOLE, TWICE), (0, 0))
BOTH, KEEP = Rule((HOLE, AND, HOLE), (0, 2)), Rule((HOLE, FIRST, HOLE), (0,))


def seen(form, text, count=1):
    """An observation; the text may leave words open."""
    return Observation(form, tuple(text), (), count)


def learned(observations, *rules, code=CODE):
    return Learner(observations, code, Grammar(rules))


# --- bits


def test_pairs_that_are_lost_cost_as_new_or_as_contradictions():
    observations = [
        seen((A, TWICE), "\0", 2),
        seen((A, TWICE, TWICE), "\0\0", 3),
        seen((B, TWICE), "\0\0", 5),
        seen((A,), "\0", 70),
    ]
    learner = learned(observations, WORD, DOUBLE)
    # the grammar says something else of the first two; ten pairs have what the rule names
    expected = 2 * CODE.contradiction(1) + 3 * CODE.contradiction(2) + 5 * CODE.novelty(2)
    rule = Rule((HOLE, TWICE), (0,))
    lost = observations[:3]
    assert learner.loss(lost, learner.grammar, [rule]) == pytest.approx(expected - choice(5, 10))
    named = Rule((A, TWICE), (0,))
    assert learner.loss(lost, learner.grammar, [named]) == pytest.approx(expected)
    one = 2 * CODE.contradiction(1) - choice(2, 5)
    assert learner.loss(lost[:1], learner.grammar, [named]) == pytest.approx(one)
    # under a grammar that says nothing of them, all are new
    new = 2 * CODE.novelty(1) + 8 * CODE.novelty(2)
    assert learner.loss(lost, Grammar([WORD]), [rule]) == pytest.approx(new)
    assert learner.loss([], learner.grammar, [rule]) == 0


def test_misfits_are_the_rules_in_holes_where_no_target_has_them():
    form = (A, AND, A, TWICE)
    learner = learned([seen((B,), "\0"), seen(form, "\0\2\2")], BOTH, WORD, DOUBLE)
    # (a and a) twice, which the target is not
    assert learner.misfits() == {(2, 0, 0), (0, 2, 1)}
    learner = learned([seen(form, "\0\2\0\2")], BOTH, WORD, DOUBLE)
    assert learner.misfits() == {(0, 2, 2), (2, 0, 1)}
    nothing = learned([seen((A,), "\0")], BOTH, WORD, DOUBLE)
    assert nothing.misfits() == set()


def test_what_stands_in_a_hole_that_is_dropped_is_no_misfit():
    form = (A, FIRST, A, FIRST, A)
    learner = learned([seen(form, "\0")], BOTH, DOUBLE, WORD, KEEP)
    # the first hole may hold (a first a) as well, for the same target; the last one is dropped
    assert learner.misfits() <= {(3, 0, 2), (3, 0, 3)}
    assert len(learner.misfits()) == 1


def test_the_bits_of_it_all_are_those_of_rules_exceptions_and_weights():
    observations = [
        seen((A, AND, A, TWICE), "\0\2\2"),
        seen((B,), "\0", 2),
        seen((A, TWICE), "\0", 2),
    ]
    learner = learned(observations, BOTH, WORD, DOUBLE)
    assert len(learner.misfits()) == 2
    exceptions = 2 * CODE.novelty(1) + 2 * CODE.contradiction(1) - choice(2, 5)
    weights = 2 * 0.5 * math.log2(3 + 1)
    expected = CODE.rules([BOTH, WORD, DOUBLE]) + exceptions + weights
    assert learner.bits(observations[1:]) == pytest.approx(expected)


# --- review


def test_a_review_keeps_rules_that_many_use_or_that_are_small_cheapest_first():
    once, often = Rule((A, A, A, A), (0,)), Rule((HOLE, B, B, B), (0,))
    small, unused = Rule((B, A, A), (1,)), Rule((B, A), (1,))
    observations = [
        seen((A,), "\0"),
        seen((A,) * 4, "\0"),
        seen((A, B, B, B), "\0"),
        seen((B, A, A, B, B, B), "\1"),
        seen((B, B), "\0", 3),
    ]
    learner = learned(observations, often, once, small, unused, WORD)
    bits, useful = learner.review()
    assert useful == [WORD, small, often]
    assert sorted(useful) != useful  # by bits, not by name
    assert bits == pytest.approx(learner.bits(observations[-1:]))


# --- pruning


def test_the_largest_needless_rule_goes_first():
    plain = Rule((A, TWICE), (0, 0))
    learner = learned([seen((A,), "\0", 99), seen((A, TWICE), "\0\0", 99)], WORD, DOUBLE, plain)
    assert learner.prune() == []
    assert learner.grammar.rules == (WORD, DOUBLE)


def test_a_rule_s_size_is_counted_in_bits():
    # the larger one is the smaller one by the numbers of its symbols
    marked, large, small = (
        Rule((MARK, HOLE), (1,)),
        Rule((HOLE, MARK, A), (0,)),
        Rule((A, HOLE), (0,)),
    )
    observations = [
        seen((A,), "\0", 99),
        seen((MARK, A), "\1", 99),
        seen((A, MARK, A), "\0", 99),
    ]
    learner = learned(observations, WORD, marked, small, large)
    assert learner.prune() == []
    assert learner.grammar.rules == (WORD, marked, small)


def test_rules_that_are_to_be_kept_are_kept_and_others_go():
    large, other = Rule((A, TWICE, TWICE), (0, 0)), Rule((A, TWICE), (0, 0))
    learner = learned([seen((A,), "\0", 99)], WORD, large, other)
    assert learner.prune(keep=frozenset([large])) == []
    assert learner.grammar.rules == (WORD, large)


def test_a_rule_stays_if_only_some_of_its_users_can_do_without():
    around, after, other = Rule((A, HOLE), (0, 1)), Rule((AND, HOLE), (1,)), Rule((B,), (0,))
    observations = [
        seen((A,), "\0", 99),
        seen((B,), "\0", 99),
        seen((A, AND, A), "\0\2", 99),  # also a (and a)
        seen((B, AND, A, AND, A), "\0\2\4", 99),
    ]
    learner = learned(observations, BOTH, around, after, WORD, other)
    assert learner.prune(keep=frozenset([around, after])) == []
    assert BOTH in learner.grammar


@pytest.mark.parametrize(("saved", "stays"), [(-0.1, False), (0.0, True), (0.1, True)])
def test_a_rule_goes_if_it_costs_more_than_it_saves(saved, stays):
    rule, o = Rule((A, B), (0,)), seen((A, B), "\0")

    class Even(Code):
        def novelty(self, words):
            return self.rules([rule]) + saved

    learner = learned([o], rule, code=Even(symbols=4, targets=8, noise=0.5))
    assert learner.prune() == ([] if stays else [o])
    assert (rule in learner.grammar) == stays


def test_a_rule_goes_once_another_has_gone_that_its_users_need():
    code = Code(symbols=2, targets=2, noise=0.5)
    begin, end = Rule((MARK, HOLE), (1,)), Rule((HOLE, TWICE), (0,))
    one, two = seen((MARK, A), "\1"), seen((MARK, A, TWICE), "\1")
    # two pairs pay for the first rule, one for neither; the second rule goes with the second pair
    price = code.rule(begin) - math.log2(code.symbols)
    assert code.novelty(1) < price < 2 * code.novelty(1)
    learner = learned([seen((A,), "\0", 99), one, two], begin, end, WORD, code=code)
    assert learner.prune() == [one, two]
    assert learner.grammar.rules == (WORD,)


# --- explanations that were not taken


def reconsidered(learner, *rejected):
    for rules, times in rejected:
        learner.rejected[frozenset(rules)] = times
    return learner.reconsider(learner.prune())


def test_an_explanation_is_taken_after_all_if_others_become_needless_by_it():
    observations = [seen((A,), "\0", 99), *(seen((A, *(TWICE,) * n), "\0" * 2**n) for n in (1, 2))]
    large = [Rule(o.form, (0,) * len(o.target)) for o in observations[1:]]
    learner = learned(observations, WORD, *large)
    before = learner.bits([])
    assert reconsidered(learner, ([DOUBLE], 1)) == []
    assert learner.grammar.rules == (WORD, DOUBLE)
    assert learner.bits([]) < before


@pytest.mark.parametrize("size", [3, 4])
def test_only_small_explanations_are_looked_at_again(size):
    rest = (TWICE,) * (size - 1)
    large = [Rule((A, *rest, *more), (0,)) for more in ((), rest)]
    observations = [seen((A,), "\0", 99), *(seen(rule.left, "\0", 9) for rule in large)]
    learner = learned(observations, WORD, *large)
    new = Rule((HOLE, *rest), (0,))
    assert reconsidered(learner, ([new], 1)) == []
    assert learner.grammar.rules == ((WORD, new) if size == 3 else (WORD, *large))


@pytest.mark.parametrize(
    ("more", "times", "taken"),
    [(RECONSIDERED, 3, True), (RECONSIDERED, 1, False), (RECONSIDERED - 1, 1, True)],
)
def test_the_explanations_that_were_found_most_often_are_looked_at_again(more, times, taken):
    forms = [(A, *(TWICE,) * n) for n in (1, 2)]
    large = [Rule(form, (0,) * 2 ** (len(form) - 1)) for form in forms]
    observations = [seen((A,), "\0", 99), *(seen(r.left, "\0" * len(r.right), 9) for r in large)]
    learner = learned(observations, WORD, *large)
    useless = [([Rule((B, B), (0,) * n)], 2) for n in range(more)]
    # what the grammar has anyway is not looked at
    reconsidered(learner, ([WORD, *large], 9), *useless, ([DOUBLE], times))
    assert set(learner.grammar.rules) == ({WORD, DOUBLE} if taken else {WORD, *large})


def test_an_explanation_of_as_many_bits_is_not_taken():
    one, other = Rule((A, A), (0,)), Rule((A, A), (1,))
    learner = learned([seen((A, A), ["\0\1"], 9)], one)
    assert reconsidered(learner, ([other], 5)) == []
    assert learner.grammar.rules == (one,)


def test_an_explanation_of_one_bit_less_is_taken():
    code = Code(symbols=2, targets=2, noise=0.5)
    named = Rule((HOLE, FIRST, A), (0,))
    learner = learned([seen((A,), "\0", 99), seen((A, FIRST, A), "\0", 99)], WORD, named, code=code)
    before = learner.bits([])
    assert reconsidered(learner, ([KEEP], 1)) == []
    assert learner.grammar.rules == (WORD, KEEP)
    assert learner.bits([]) == pytest.approx(before - 1)


def test_what_an_explanation_loses_is_given_back():
    # a rule in place of a larger one, by which a pair is lost
    observations = [seen((A,), "\0", 99), seen((A, TWICE), "\0\0", 99), seen((B, TWICE), "\0")]
    learner = learned(observations, WORD, Rule((A, TWICE), (0, 0)))
    assert reconsidered(learner, ([DOUBLE], 1)) == [observations[2]]
