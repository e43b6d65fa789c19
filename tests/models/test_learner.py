"""What rules and exceptions cost, and what a pass over the observations does to a grammar."""

import math
from collections import Counter
from itertools import product

import pytest

from equitrans.models.recursive import passes as module
from equitrans.models.recursive.description import KIND, Code, choice
from equitrans.models.recursive.observe import Observation
from equitrans.models.recursive.passes import DRAFT, EFFORT, FAILURES, SAMPLE, Learner
from equitrans.models.recursive.rules import HOLE, Grammar, Rule
from equitrans.models.recursive.search import Explanation

A, B, TWICE, AND = range(4)
CODE = Code(symbols=4, targets=8, noise=1 / 16)
WORD, ONE, OTHER = Rule((A,), (0,)), Rule((A, A), (0,)), Rule((A, A), (1,))
DOUBLE = Rule((HOLE, TWICE), (0, 0))


def seen(form, text, count=1):
    """An observation; the text may leave words open."""
    return Observation(form, tuple(text), (), count)


def rules_of(learner):
    return set(learner.grammar.rules)


# --- description lengths


def test_a_sign_tells_its_kind_and_which_word_or_place_it_is():
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


def test_the_first_mention_of_a_word_is_free_on_either_side():
    rules = [Rule((A, TWICE), (0, ~5)), Rule((B, TWICE), (~5, ~6, 0))]
    free = 3 * math.log2(CODE.symbols) + 2 * math.log2(CODE.targets)
    assert CODE.rules(rules) == pytest.approx(sum(map(CODE.rule, rules)) - free)
    assert CODE.rules([]) == 0


def test_a_wrong_pair_costs_its_target_or_one_change_of_it():
    assert CODE.wrong == 4
    assert CODE.novelty(3) == pytest.approx(4 + KIND + 3 * (1 + 3))
    assert CODE.contradiction(3) == pytest.approx(4 + KIND + 3 + 2)


@pytest.mark.parametrize(("some", "all_"), [(1, 2), (1, 4), (3, 4), (5, 7), (1, 100)])
def test_a_choice_takes_the_bits_of_its_likeliest_coin(some, all_):
    other = all_ - some
    likely = some * math.log2(some / all_) + other * math.log2(other / all_)
    assert choice(some, all_) == pytest.approx(-likely)


@pytest.mark.parametrize(("some", "all_"), [(0, 0), (0, 1), (1, 1), (0, 5), (5, 5)])
def test_nothing_is_to_be_chosen_among_things_of_one_kind(some, all_):
    assert choice(some, all_) == 0


# --- a pass over the observations


class Listening(Learner):
    """Learns nothing, and tells what it was to explain by what others."""

    def _explain(self, o, others):
        self.told = [*getattr(self, "told", ()), (o, list(others))]


def test_contradictions_wait_until_the_rest_is_explained():
    # the grammar says AA of "a twice", so whatever else is said of it comes last
    observations = [
        seen((B, TWICE), "\0"),
        seen((A, TWICE), "\0"),
        seen((A,), "\0"),
        seen((B,), "\0"),
        seen((A, TWICE, TWICE), "\0"),
        seen((B, A), "\1"),
        seen((A, TWICE, TWICE, TWICE), "\0"),
    ]
    learner = Listening(observations, CODE, Grammar([WORD, DOUBLE]))
    missed = learner.learn()
    o, p, _, q, r, s, t = observations
    assert learner.told == [
        (o, observations[1:]),
        (q, observations[4:]),
        (s, observations[6:]),
        (p, [r, t]),
        (r, [t]),
        (t, []),
    ]
    assert missed == [o, p, q, r, s, t]


def test_a_contradiction_that_new_rules_resolve_is_let_be():
    class Doubling(Listening):
        def _explain(self, o, others):
            super()._explain(o, others)
            self.grammar = self.grammar.plus([Rule((HOLE, TWICE), (0,))])

    observations = [seen((A, TWICE), "\0"), seen((A, TWICE, TWICE), "\0")]
    learner = Doubling(observations, CODE, Grammar([WORD, DOUBLE]))
    assert learner.learn() == []
    assert learner.told == [(observations[0], observations[1:])]


def test_what_is_not_derived_in_the_end_is_given_back():
    # one wrong pair against many right ones
    right = [seen((A,), "\0", 20), seen((A, TWICE), "\0\0", 20)]
    wrong = seen((A, TWICE, TWICE), "\0\0\0\0\0")
    learner = Learner([*right, wrong], CODE, Grammar())
    assert learner.learn() == [wrong]
    assert rules_of(learner) == {WORD, DOUBLE}


def test_constituents_stand_side_by_side_only_where_asked():
    observations = [seen((A,) * n, map(chr, range(n)), 9) for n in range(1, 6)]
    plain = Learner(observations, CODE, Grammar([WORD]))
    joined = Learner(observations, CODE, Grammar([WORD]), juxtapose=True)
    assert joined.learn() == plain.learn() == []
    assert rules_of(joined) == {WORD, Rule((HOLE, HOLE), (0, 1))}
    assert not any(set(rule.left) == {HOLE} for rule in plain.grammar.rules)


def test_a_pass_is_given_up_once_it_has_spent_more_than_its_limit():
    observations = [seen((A,), "\0"), seen((B,), "\0"), seen((A, TWICE), "\0\0")]
    learner = Learner(observations, CODE, Grammar(), limit=0.5)
    assert not learner.hopeless
    assert learner.learn() == [observations[0]]  # as it was before it was explained
    assert learner.hopeless
    assert rules_of(learner) == {WORD}
    patient = Learner(observations, CODE, Grammar(), limit=CODE.rule(WORD))
    patient.learn()
    assert Rule((B,), (0,)) in patient.grammar
    assert DOUBLE not in patient.grammar


# --- explaining one observation


class Scripted:
    """Stands for the search: gives what it is told to, and remembers what it was asked."""

    def __init__(self, monkeypatch, *found):
        self.found, self.asked = list(found), []
        monkeypatch.setattr(module, "explain", self)

    def __call__(self, grammar, form, target, code, **settings):
        self.asked.append(settings)
        return self.found


def test_after_some_pairs_in_vain_the_others_are_worth_a_tenth_of_the_effort(monkeypatch):
    search = Scripted(monkeypatch)
    observations = [seen((B, *(A,) * n), "\0\0", n + 1) for n in range(FAILURES + 2)]
    learner = Learner(observations, CODE, Grammar())
    assert learner.learn() == observations
    efforts = [asked["effort"] for asked in search.asked]
    assert efforts == [EFFORT] * FAILURES + [EFFORT // 10] * 2
    assert learner.spent == pytest.approx(sum(o.count for o in observations) * CODE.novelty(2))


def test_rules_may_take_more_bits_than_the_pair_that_they_explain(monkeypatch):
    search = Scripted(monkeypatch)
    observations = [seen((A,), "\0" * n) for n in (1, 2, 9)]
    for o in observations:
        Learner([o], CODE, Grammar()).learn()
    bounds = [asked["bound"] for asked in search.asked]
    assert bounds == sorted(bounds)
    # one pair does not pay for them, but others may
    for bound, o in zip(bounds, observations, strict=True):
        assert bound > 2 * CODE.novelty(len(o.target))


@pytest.mark.parametrize(("gain", "taken"), [(-1.0, False), (0.0, False), (0.5, True)])
def test_an_explanation_is_taken_only_if_it_saves_bits(monkeypatch, gain, taken):
    class Sure(Learner):
        def _gain(self, e, o, others):
            return gain

    Scripted(monkeypatch, Explanation(7.0, frozenset([WORD])))
    learner = Sure([seen((A,), "\0", 3)], CODE, Grammar())
    learner.learn()
    assert rules_of(learner) == ({WORD} if taken else set())
    assert learner.spent == pytest.approx(7.0 if taken else 3 * CODE.novelty(1))


def test_of_explanations_that_save_as_much_the_shorter_is_taken_and_the_other_remembered(
    monkeypatch,
):
    first, second = (
        Explanation(bits, frozenset([rule])) for bits, rule in ((9.0, ONE), (8.0, OTHER))
    )
    Scripted(monkeypatch, first, second)
    learner = Learner([seen((A, A), ["\0\1"], 9)], CODE, Grammar())
    learner.learn()
    assert rules_of(learner) == {OTHER}
    assert learner.rejected == Counter({first.rules: 1})


def test_bits_of_several_new_rules_add_up(monkeypatch):
    observations = [seen((A, A), ["\0"], 9), seen((A, A, A), ["\0"], 9)]
    Scripted(monkeypatch, *(Explanation(5.0, frozenset([Rule((A,) * n, (0,))])) for n in (2, 3)))
    learner = Learner(observations, CODE, Grammar())
    assert learner.learn() == []
    assert learner.spent == 10.0


# --- what new rules gain


def gain_of(observations, rules, start=()):
    learner = Learner(observations, CODE, Grammar(start))
    o, *others = observations
    return learner._gain(Explanation(0.0, frozenset(rules)), o, others)


def test_a_rule_gains_what_it_explains_newly_less_its_own_bits():
    observations = [
        seen((A, TWICE), "\0\0", 2),
        seen((A, TWICE, TWICE), "\0\0\0\0", 3),  # has no other symbols than the rule
        seen((A, TWICE, B), "\0"),  # stays unexplained
        seen((A,), "\0", 5),  # is known already
        seen((A, B), "\0", 5),
    ]
    rule = Rule((A, TWICE), (0, 0))
    again = Rule((A, TWICE, TWICE), (0, 0, 0, 0))
    price = CODE.rules([WORD, rule]) - CODE.rules([WORD])
    assert gain_of(observations, [rule], [WORD]) == pytest.approx(2 * CODE.novelty(2) - price)
    price = CODE.rules([WORD, rule, again]) - CODE.rules([WORD])
    saved = 2 * CODE.novelty(2) + 3 * CODE.novelty(4)
    assert gain_of(observations, [rule, again], [WORD]) == pytest.approx(saved - price)


def test_what_is_derived_already_is_not_gained_again():
    known = Rule((A, TWICE, TWICE), (0,))
    observations = [seen((A, TWICE), "\0\0"), seen((A, TWICE, TWICE), "\0", 5)]
    price = CODE.rules([WORD, known, DOUBLE]) - CODE.rules([WORD, known])
    expected = CODE.novelty(2) - price
    assert gain_of(observations, [DOUBLE], [WORD, known]) == pytest.approx(expected)


def test_a_sample_of_pairs_judges_a_rule():
    many = [seen((A, TWICE), "\0\0", n) for n in range(1, 2 * SAMPLE)]
    price = CODE.rules([WORD, DOUBLE]) - CODE.rules([WORD])
    saved = sum(o.count for o in many[:SAMPLE]) * CODE.novelty(2)
    assert gain_of(many, [DOUBLE], [WORD]) == pytest.approx(saved - price)


# --- drafts


def test_a_draft_makes_every_pair_derivable_by_one_rule_whether_it_pays_or_not():
    chain, known = seen((TWICE, TWICE, TWICE, A), "\3" * 8), seen((B,), "\0")
    learner = Learner([known, chain, seen((A, A), ["\0\1"])], CODE, Grammar([Rule((B,), (0,))]))
    learner.draft()
    # smaller rules would take fewer bits together, but they would be more than one
    first, second, third = learner.grammar.rules
    assert first == Rule((B,), (0,))
    assert second.left == chain.form
    assert third in (ONE, OTHER)


def test_holes_of_a_draft_stand_over_what_is_known():
    learner = Learner([seen((A, TWICE), "\0\0")], CODE, Grammar([WORD]))
    learner.draft()
    assert learner.grammar.rules == (WORD, DOUBLE)


def test_a_pair_is_worth_less_effort_in_a_draft(monkeypatch):
    search = Scripted(monkeypatch)
    Learner([seen((A, TWICE), "\0\0")], CODE, Grammar()).draft()
    (asked,) = search.asked
    assert asked["effort"] == DRAFT < EFFORT
    assert asked["bound"] == CODE.rule(Rule((A, TWICE), (0, 0)))  # a rule of words always fits
