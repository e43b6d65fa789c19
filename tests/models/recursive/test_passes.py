"""Passes over the observations: learning, drafts, pruning, and their description lengths."""

import math
from dataclasses import replace

import pytest

from equitrans.models.recursive.description import Code, choice
from equitrans.models.recursive.observe import Observation
from equitrans.models.recursive.passes import Learner
from equitrans.models.recursive.rules import HOLE, Grammar, Rule
from equitrans.models.recursive.search import Explanation

A, B, TWICE, AND, FIRST, MARK = range(6)
CODE = Code(symbols=4, targets=8, noise=1 / 16)
WORD, ONE, OTHER = Rule((A,), (0,)), Rule((A, A), (0,)), Rule((A, A), (1,))
DOUBLE = Rule((HOLE, TWICE), (0, 0))
BOTH, KEEP = Rule((HOLE, AND, HOLE), (0, 2)), Rule((HOLE, FIRST, HOLE), (0,))


def seen(form, text, count=1):
    """An observation; a word of the text may have several atoms."""
    return Observation(form, tuple(text), (), count)


def learned(observations, *rules, code=CODE):
    return Learner(observations, code, Grammar(rules))


def rules_of(learner):
    return set(learner.grammar.rules)


# --- a pass over the observations


def test_learning_returns_the_observations_without_a_derivation():
    right = [seen((A,), "\0", 20), seen((A, TWICE), "\0\0", 20)]
    wrong = seen((A, TWICE, TWICE), "\0\0\0\0\0")
    learner = Learner([*right, wrong], CODE, Grammar())
    assert learner.learn() == [wrong]
    assert rules_of(learner) == {WORD, DOUBLE}


def test_constituents_are_juxtaposed_only_if_the_learner_may():
    observations = [seen((A,) * n, map(chr, range(n)), 9) for n in range(1, 6)]
    plain = Learner(observations, CODE, Grammar([WORD]))
    joined = Learner(observations, CODE, Grammar([WORD]), juxtapose=True)
    assert joined.learn() == plain.learn() == []
    assert rules_of(joined) == {WORD, Rule((HOLE, HOLE), (0, 1))}
    assert not any(set(rule.left) == {HOLE} for rule in plain.grammar.rules)


def test_a_pass_stops_when_its_bits_exceed_the_limit():
    observations = [seen((A,), "\0"), seen((B,), "\0"), seen((A, TWICE), "\0\0")]
    learner = Learner(observations, CODE, Grammar(), limit=0.5)
    assert not learner.over_limit
    assert learner.learn() == [observations[0]]  # missed before the pass explained it
    assert learner.over_limit
    assert rules_of(learner) == {WORD}
    patient = Learner(observations, CODE, Grammar(), limit=CODE.rule(WORD))
    patient.learn()
    assert Rule((B,), (0,)) in patient.grammar
    assert DOUBLE not in patient.grammar


# --- the gain of new rules


def gain_of(observations, rules, start=()):
    learner = Learner(observations, CODE, Grammar(start))
    o, *others = observations
    return learner._gain(Explanation(0.0, frozenset(rules)), o, others)


def test_the_gain_of_rules_is_the_bits_of_newly_explained_pairs_minus_their_own():
    observations = [
        seen((A, TWICE), "\0\0", 2),
        seen((A, TWICE, TWICE), "\0\0\0\0", 3),
        seen((A, TWICE, B), "\0"),  # stays unexplained
        seen((A,), "\0", 5),  # derived before
        seen((A, B), "\0", 5),
    ]
    rule = Rule((A, TWICE), (0, 0))
    again = Rule((A, TWICE, TWICE), (0, 0, 0, 0))
    price = CODE.rules([WORD, rule]) - CODE.rules([WORD])
    assert gain_of(observations, [rule], [WORD]) == pytest.approx(2 * CODE.novelty(2) - price)
    price = CODE.rules([WORD, rule, again]) - CODE.rules([WORD])
    saved = 2 * CODE.novelty(2) + 3 * CODE.novelty(4)
    assert gain_of(observations, [rule, again], [WORD]) == pytest.approx(saved - price)


# --- drafts


def test_a_draft_makes_every_pair_derivable_by_one_rule():
    chain, known = seen((TWICE, TWICE, TWICE, A), "\3" * 8), seen((B,), "\0")
    learner = Learner([known, chain, seen((A, A), ["\0\1"])], CODE, Grammar([Rule((B,), (0,))]))
    learner.draft()
    # several smaller rules would take fewer bits
    first, second, third = learner.grammar.rules
    assert first == Rule((B,), (0,))
    assert second.left == chain.form
    assert third in (ONE, OTHER)


def test_holes_of_a_draft_cover_derivable_spans():
    learner = Learner([seen((A, TWICE), "\0\0")], CODE, Grammar([WORD]))
    learner.draft()
    assert learner.grammar.rules == (WORD, DOUBLE)


# --- bits


def test_lost_pairs_cost_the_bits_of_novelties_or_contradictions():
    observations = [
        seen((A, TWICE), "\0", 2),
        seen((A, TWICE, TWICE), "\0\0", 3),
        seen((B, TWICE), "\0\0", 5),
        seen((A,), "\0", 70),
    ]
    learner = learned(observations, WORD, DOUBLE)
    # the first two contradict the grammar; ten pairs have the words of the rule
    expected = 2 * CODE.contradiction(1) + 3 * CODE.contradiction(2) + 5 * CODE.novelty(2)
    rule = Rule((HOLE, TWICE), (0,))
    lost = observations[:3]
    cost = learner.cost(lost, learner.grammar, [rule])
    assert cost.bits == pytest.approx(expected)
    assert cost.choice == pytest.approx(choice(5, 10))
    named = Rule((A, TWICE), (0,))
    assert learner.cost(lost, learner.grammar, [named]).choice == 0
    one = learner.cost(lost[:1], learner.grammar, [named])
    assert one.bits == pytest.approx(2 * CODE.contradiction(1))
    assert one.choice == pytest.approx(choice(2, 5))
    # a grammar that does not derive the forms makes all pairs novelties
    new = learner.cost(lost, Grammar([WORD]), [rule])
    assert new.bits == pytest.approx(2 * CODE.novelty(1) + 8 * CODE.novelty(2))
    assert new.choice == 0
    assert learner.loss(lost) == pytest.approx(expected)
    assert learner.loss([]) == 0


def test_an_exception_never_saves_bits():
    """One wrong pair among many: to tell which one it is takes more bits than the pair."""
    wrong, right = seen((A, TWICE), "\0", 1), seen((A,), "\0", 5000)
    learner = Learner([wrong, right], replace(CODE, noise=0.5), Grammar([WORD, DOUBLE]))
    cost = learner.cost([wrong], learner.grammar, ())
    assert cost.choice > cost.bits > 0
    assert learner.bits([wrong]) > learner.bits([])


def test_misfits_are_rules_in_holes_that_no_target_needs():
    form = (A, AND, A, TWICE)
    learner = learned([seen((B,), "\0"), seen(form, "\0\2\2")], BOTH, WORD, DOUBLE)
    # the target is not that of (a and a) twice
    assert learner.misfits() == {(DOUBLE, 0, BOTH), (BOTH, 2, WORD)}
    learner = learned([seen(form, "\0\2\0\2")], BOTH, WORD, DOUBLE)
    assert learner.misfits() == {(BOTH, 2, DOUBLE), (DOUBLE, 0, WORD)}
    nothing = learned([seen((A,), "\0")], BOTH, WORD, DOUBLE)
    assert nothing.misfits() == set()


def test_rules_in_dropped_holes_are_not_misfits():
    form = (A, FIRST, A, FIRST, A)
    learner = learned([seen(form, "\0")], BOTH, DOUBLE, WORD, KEEP)
    # the first hole may also hold (a first a) for the same target; the last hole is dropped
    assert learner.misfits() <= {(KEEP, 0, WORD), (KEEP, 0, KEEP)}
    assert len(learner.misfits()) == 1


def test_the_description_length_counts_rules_exceptions_and_weights():
    observations = [
        seen((A, AND, A, TWICE), "\0\2\2"),
        seen((B,), "\0", 2),
        seen((A, TWICE), "\0", 2),
    ]
    learner = learned(observations, BOTH, WORD, DOUBLE)
    assert len(learner.misfits()) == 2
    exceptions = 2 * CODE.novelty(1) + 2 * CODE.contradiction(1)
    weights = 2 * 0.5 * math.log2(3 + 1)
    expected = CODE.rules([BOTH, WORD, DOUBLE]) + exceptions + weights
    assert learner.bits(observations[1:]) == pytest.approx(expected)


# --- review


def test_a_review_keeps_shared_and_small_rules_cheapest_first():
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
    assert sorted(useful) != useful  # by bits, not in sorting order
    assert bits == pytest.approx(learner.bits(observations[-1:]))


# --- pruning


def test_pruning_drops_the_largest_unnecessary_rule_first():
    plain = Rule((A, TWICE), (0, 0))
    learner = learned([seen((A,), "\0", 99), seen((A, TWICE), "\0\0", 99)], WORD, DOUBLE, plain)
    assert learner.prune() == []
    assert learner.grammar.rules == (WORD, DOUBLE)


def test_pruning_measures_the_size_of_a_rule_in_bits():
    # the larger rule in bits is the smaller one in sorting order
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


def test_pruning_never_drops_a_rule_in_keep():
    large, other = Rule((A, TWICE, TWICE), (0, 0)), Rule((A, TWICE), (0, 0))
    learner = learned([seen((A,), "\0", 99)], WORD, large, other)
    assert learner.prune(keep=frozenset([large])) == []
    assert learner.grammar.rules == (WORD, large)


def test_pruning_keeps_a_rule_that_some_observations_need():
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
def test_pruning_drops_a_rule_that_costs_more_bits_than_it_saves(saved, stays):
    rule, o = Rule((A, B), (0,)), seen((A, B), "\0")

    class Even(Code):
        def novelty(self, words):
            return self.rules([rule]) + saved

    learner = learned([o], rule, code=Even(symbols=4, targets=8, noise=0.5))
    assert learner.prune() == ([] if stays else [o])
    assert (rule in learner.grammar) == stays


def test_pruning_drops_a_rule_whose_users_lost_another_rule():
    code = Code(symbols=2, targets=2, noise=0.5)
    begin, end = Rule((MARK, HOLE), (1,)), Rule((HOLE, TWICE), (0,))
    one, two = seen((MARK, A), "\1"), seen((MARK, A, TWICE), "\1")
    # two pairs pay for the first rule, one pair pays for no rule
    price = code.rule(begin) - math.log2(code.symbols)
    assert code.novelty(1) < price < 2 * code.novelty(1)
    learner = learned([seen((A,), "\0", 99), one, two], begin, end, WORD, code=code)
    assert learner.prune() == [one, two]
    assert learner.grammar.rules == (WORD,)


# --- rejected explanations


def reconsidered(learner, *rejected):
    for rules, times in rejected:
        learner.rejected[frozenset(rules)] = times
    return learner.reconsider(learner.prune())


def test_a_rejected_explanation_is_used_if_it_makes_other_rules_unnecessary():
    observations = [seen((A,), "\0", 99), *(seen((A, *(TWICE,) * n), "\0" * 2**n) for n in (1, 2))]
    large = [Rule(o.form, (0,) * len(o.target)) for o in observations[1:]]
    learner = learned(observations, WORD, *large)
    before = learner.bits([])
    assert reconsidered(learner, ([DOUBLE], 1)) == []
    assert learner.grammar.rules == (WORD, DOUBLE)
    assert learner.bits([]) < before


def test_a_rejected_explanation_of_equal_bits_stays_rejected():
    one, other = Rule((A, A), (0,)), Rule((A, A), (1,))
    learner = learned([seen((A, A), ["\0\1"], 9)], one)
    assert reconsidered(learner, ([other], 5)) == []
    assert learner.grammar.rules == (one,)


def test_a_rejected_explanation_of_one_bit_less_is_used():
    code = Code(symbols=2, targets=2, noise=0.5)
    named = Rule((HOLE, FIRST, A), (0,))
    learner = learned([seen((A,), "\0", 99), seen((A, FIRST, A), "\0", 99)], WORD, named, code=code)
    before = learner.bits([])
    assert reconsidered(learner, ([KEEP], 1)) == []
    assert learner.grammar.rules == (WORD, KEEP)
    assert learner.bits([]) == pytest.approx(before - 1)


def test_reconsidering_returns_the_observations_without_a_derivation():
    # a new rule replaces a larger one, and a pair loses its derivation
    observations = [seen((A,), "\0", 99), seen((A, TWICE), "\0\0", 99), seen((B, TWICE), "\0")]
    learner = learned(observations, WORD, Rule((A, TWICE), (0, 0)))
    assert reconsidered(learner, ([DOUBLE], 1)) == [observations[2]]
