"""From observations to a grammar: the beginnings that are tried, and when learning ends."""

import math
from itertools import pairwise

import pytest

from equitrans.models.recursive import induce as induction
from equitrans.models.recursive.description import Code
from equitrans.models.recursive.induce import NEAR, Induced, induce
from equitrans.models.recursive.observe import Observation, Observations
from equitrans.models.recursive.rules import HOLE, Grammar, Rule, constant

A, B, OP, TWICE = range(4)
CODE = Code(symbols=6, targets=6, noise=0.01)
GO = constant(0)

WORD_A, WORD_B = Rule((A,), (0,)), Rule((B,), (0,))
SWAP = Rule((HOLE, OP, HOLE), (2, 0))
DOUBLE = Rule((HOLE, TWICE), (0, 0))
BESIDE = Rule((HOLE, HOLE), (0, 1))


def said(form, target, count=1):
    return Observation(form, target, (), count)


def seen(*observations, strays=0):
    """Observations, shortest first."""
    count = strays + sum(o.count for o in observations)
    return Observations(observations, (), (), count, strays, symbols=6, targets=6)


ONE_A, ONE_B = said((A,), ("\0",), 5), said((B,), ("\0",), 5)
A_TWICE, B_TWICE = said((A, TWICE), ("\0", "\0"), 5), said((B, TWICE), ("\0", "\0"), 5)
SWAPPED = said((A, OP, B), ("\2", "\0"), 5)
A_B, B_A = said((A, B), ("\0", "\1"), 5), said((B, A), ("\0", "\1"), 5)
ODD = said((A,), (GO,) * 12)
"""No rule pays for itself with this alone."""


@pytest.fixture
def begun(monkeypatch):
    """Where learning began, with what it was told and what came of it."""
    every = []
    plain = induction._induce

    def learn(observations, code, start, **settings):
        every.append((set(start.rules), settings, plain(observations, code, start, **settings)))
        return every[-1][2]

    monkeypatch.setattr(induction, "_induce", learn)
    return every


# --- beginnings


def test_learning_begins_with_drafts_from_each_class_the_best_first_and_with_nothing(begun):
    induced = induce(seen(A_TWICE, B_TWICE, SWAPPED))
    assert [start for start, _, _ in begun] == [
        {WORD_A, WORD_B, DOUBLE, SWAP},
        {WORD_B, DOUBLE, Rule((A, TWICE), (0, 0)), Rule((A, OP, HOLE), (2, 0))},
        set(),
    ]
    assert set(induced.grammar.rules) == {WORD_A, WORD_B, DOUBLE, SWAP}
    assert induced.bits == min(came.bits for _, _, came in begun)
    assert induced.lost == ()


def test_a_beginning_is_given_up_at_twice_the_bits_of_the_best_before_it(begun):
    induce(seen(A_TWICE, B_TWICE, SWAPPED))
    bits = [came.bits for _, _, came in begun]
    limits = [settings["limit"] for _, settings, _ in begun]
    assert limits == [math.inf, *(2 * min(bits[:n]) for n in range(1, len(bits)))]


def test_only_drafts_that_are_not_hopeless_begin(begun, monkeypatch):
    monkeypatch.setattr(induction, "HOPELESS", 1.0)
    induce(seen(A_TWICE, B_TWICE, SWAPPED))
    assert [start for start, _, _ in begun] == [{WORD_A, WORD_B, DOUBLE, SWAP}, set()]


def test_drafts_of_as_many_bits_begin_both(begun):
    induce(seen(ONE_A, ONE_B))
    assert [start for start, _, _ in begun] == [{WORD_A, WORD_B}] * 2 + [set()]


def test_where_no_word_of_a_class_is_translated_learning_begins_with_nothing(begun):
    induced = induce(seen(said((A,), (GO,)), said((B,), (constant(1),))))
    assert [start for start, _, _ in begun] == [set()]
    assert set(induced.grammar.rules) == {Rule((A,), (~0,)), Rule((B,), (~1,))}


def test_every_class_that_is_no_constituent_in_the_best_grammar_is_tried_as_one(begun):
    induced = induce(seen(A_B))
    assert induced.grammar.rules == (Rule((A, B), (0, 1)),)
    assert [start for start, _, _ in begun[2:]] == [set(), {WORD_A}, {WORD_B}]


def test_constituents_may_stand_side_by_side_if_the_rules_suggest_it(begun):
    induced = induce(seen(ONE_A, ONE_B, A_B, B_A))
    assert set(induced.grammar.rules) == {WORD_A, WORD_B, BESIDE}
    assert begun[-1][:2] == ({WORD_A, WORD_B}, {"juxtapose": True, "limit": begun[-1][1]["limit"]})
    assert [settings["juxtapose"] for _, settings, _ in begun[:-1]] == [False] * 3


def test_two_left_sides_that_differ_by_a_hole_at_one_end_suggest_it():
    def suggests(*lefts):
        return induction._suggests_juxtaposition(Grammar(Rule(left, (0,)) for left in lefts))

    for longer in [(HOLE, A), (A, HOLE), (HOLE, A, B), (A, B, HOLE)]:
        assert suggests(longer, tuple(s for s in longer if s != HOLE))
        assert not suggests(longer, (OP,))
    assert not suggests((A, HOLE, B), (A, B))
    assert not suggests((A, HOLE, B), (A, HOLE))
    assert not suggests((A, B, HOLE), (A,))
    assert not suggests((A, B), (A,), (B,))
    assert not suggests((HOLE,))
    assert not suggests()


# --- wrong pairs


def test_the_share_of_wrong_pairs_is_never_nothing_and_never_above_a_half():
    assert induction._noise(0, 0) == pytest.approx(0.1)
    assert induction._noise(0, 99) == pytest.approx(0.001)
    assert induction._noise(3, 9) == pytest.approx(0.31)
    assert induction._noise(9, 9) == 0.5
    assert induce(seen(ONE_A, strays=4)).code == Code(6, 6, (4 + 0.1) / (9 + 1))


def test_pairs_that_no_rule_explains_count_as_wrong_and_learning_goes_on_from_the_best(begun):
    induced = induce(seen(said((B,), ("\0",), 9), ODD))
    assert induced.lost == (ODD,)
    assert induced.grammar.rules == (WORD_B,)
    assert induced.code.noise == pytest.approx(0.1 / 11 + 1 / 10)
    # what was found before had another price
    assert [start for start, _, _ in begun] == [{WORD_B}, set(), {WORD_B}]
    assert begun[2][1]["limit"] == math.inf


def test_no_more_than_half_of_the_pairs_count_as_wrong():
    induced = induce(seen(ODD))
    assert induced.lost == (ODD,)
    assert induced.code.noise == 0.5
    assert induced.bits == pytest.approx(induced.code.novelty(12))


# --- rivals


def test_grammars_of_nearly_as_few_bits_are_rivals():
    induced = induce(seen(A_TWICE, B_TWICE, SWAPPED))
    ((more, rival),) = induced.rivals
    # of the three grammars found, one takes too many bits
    twice = {Rule((symbol, TWICE), (0, 0)) for symbol in (A, B)}
    assert set(rival.rules) == {*twice, Rule((A, OP, B), (2, 0))}
    assert more == pytest.approx(induced.code.rules(rival.rules) - induced.bits)
    assert 0 < more < NEAR


def test_a_rival_takes_fewer_bits_more_than_the_limit(monkeypatch):
    ((more, _),) = induce(seen(A_TWICE, B_TWICE, SWAPPED)).rivals
    for limit, rivals in ((more, 0), (more + 1e-6, 1)):
        monkeypatch.setattr(induction, "NEAR", limit)
        assert len(induce(seen(A_TWICE, B_TWICE, SWAPPED)).rivals) == rivals


def test_a_grammar_of_as_many_bits_is_a_rival_unless_it_is_the_same(monkeypatch):
    found = [[WORD_A, DOUBLE], [DOUBLE, WORD_A], [WORD_B, DOUBLE], [SWAP]]

    def learn(observations, code, start, **settings):
        grammar = Grammar(found.pop(0))
        return Induced(grammar, code, (), 7.0 if len(grammar) == 2 else 7.5)

    monkeypatch.setattr(induction, "_induce", learn)
    induced = induce(seen(A_TWICE, B_TWICE))
    assert induced.grammar.rules == (WORD_A, DOUBLE)
    assert [(more, grammar.rules) for more, grammar in induced.rivals] == [
        (0.0, (WORD_B, DOUBLE)),
        (0.5, (SWAP,)),
    ]


# --- more observations than the shortest


def test_a_grammar_of_the_shortest_observations_is_extended_to_all(monkeypatch):
    monkeypatch.setattr(induction, "SHORT", 2)
    short, long = seen(ONE_A, A_TWICE), said((A, OP, A), ("\2", "\0"), 5)
    assert set(induce(short).grammar.rules) == {WORD_A, DOUBLE}
    induced = induce(seen(ONE_A, A_TWICE, long))
    assert set(induced.grammar.rules) == {WORD_A, DOUBLE, SWAP}
    assert induced.code.noise == pytest.approx(0.1 / 16)
    assert induced.bits == pytest.approx(induced.code.rules(induced.grammar.rules))
    assert induced.lost == ()


def test_rivals_of_the_shortest_observations_stay_rivals(monkeypatch):
    short = induce(seen(A_TWICE, B_TWICE, SWAPPED))
    monkeypatch.setattr(induction, "SHORT", 3)
    more = said((A, TWICE, OP, B), ("\3", "\0", "\0"))
    induced = induce(seen(A_TWICE, B_TWICE, SWAPPED, more))
    assert [set(rival.rules) for _, rival in induced.rivals] == [
        set(rival.rules) for _, rival in short.rivals
    ]


def test_nothing_is_gone_over_again_where_all_observations_are_short(monkeypatch):
    monkeypatch.setattr(induction, "SHORT", 2)
    monkeypatch.setattr(induction, "_extend", None)
    assert set(induce(seen(ONE_A, A_TWICE)).grammar.rules) == {WORD_A, DOUBLE}


def test_a_grammar_that_fits_is_left_as_it_is():
    start = Grammar([WORD_A, DOUBLE, SWAP])
    assert induction._extend([ONE_A, A_TWICE], CODE, start) == Induced(
        start, CODE, (), CODE.rules(start.rules)
    )


def test_a_grammar_to_which_something_is_added_is_pruned():
    start = Grammar([WORD_A, SWAP])
    induced = induction._extend([ONE_A, ODD, A_TWICE], CODE, start)
    assert induced.grammar.rules == (WORD_A, DOUBLE)
    assert induced.code == CODE
    assert induced.lost == (ODD,)
    # the word A is a constituent, so that the odd pair says something else
    choice = -math.log2(1 / 11) - 10 * math.log2(10 / 11)  # one of eleven pairs
    assert induced.bits == pytest.approx(
        CODE.rules(induced.grammar.rules) + CODE.contradiction(12) - choice
    )


def test_what_a_grammar_cannot_take_up_is_lost():
    start = Grammar([WORD_B])
    induced = induction._extend([ONE_B, ODD], CODE, start)
    assert induced.grammar is start
    assert induced.lost == (ODD,)
    assert induced.bits == pytest.approx(CODE.rules([WORD_B]) + CODE.novelty(12))


# --- when learning ends


class Scripted:
    """A learner that finds what it is told to: grammars, their bits, and what was useful."""

    def __init__(self, *turns):
        self.turns = list(turns)
        self.begun, self.hopeless = [], False

    def __call__(self, observations, code, start, **settings):
        self.grammar = start
        return self

    def learn(self):
        self.begun.append(self.grammar.rules)
        self.found, self.value, self.useful = self.turns.pop(0)
        self.grammar = Grammar(self.found)

    draft = learn

    def review(self):
        return self.value, self.useful

    def prune(self):
        return [ONE_A]

    def reconsider(self, lost):
        return [*lost, ONE_B]

    def bits(self, lost):
        return self.value + 100 * len(lost)


@pytest.fixture
def script(monkeypatch):
    def put(*turns):
        learner = Scripted(*turns)
        monkeypatch.setattr(induction, "Learner", learner)
        return learner

    return put


def learned(start=(), limit=math.inf):
    return induction._induce([ONE_A], CODE, Grammar(start), juxtapose=False, limit=limit)


BIG, SMALL, SMALLER = [WORD_A, SWAP], [WORD_A, DOUBLE], [WORD_A]


@pytest.mark.parametrize("bits", [31.0, 30.0, 30.0 - 1e-9])
def test_learning_ends_when_the_bits_do_not_fall_and_the_best_is_kept(script, bits):
    learner = script((BIG, 30.0, [WORD_A]), (SMALL, bits, [DOUBLE]), (SMALLER, 1.0, []))
    induced = learned()
    assert learner.begun == [(), (WORD_A,)]
    assert induced == Induced(induced.grammar, CODE, (ONE_A, ONE_B), bits + 200)
    assert induced.grammar.rules == tuple(BIG)
    script((BIG, 30.0, [WORD_A]), (SMALL, bits, [DOUBLE]), (SMALLER, 1.0, []))
    value, draft = induction._draft([ONE_A], CODE, Grammar())
    assert (value, draft.rules) == (30.0, (WORD_A,))


def test_learning_goes_on_from_what_was_useful_while_the_bits_fall(script):
    turns = (BIG, 30.0, [WORD_A]), (SMALL, 29.5, [DOUBLE]), (SMALLER, 29.7, [WORD_B])
    learner = script(*turns)
    assert learned([WORD_B]).grammar.rules == tuple(SMALL)
    assert learner.begun == [(WORD_B,), (WORD_A,), (DOUBLE,)]
    learner = script(*turns)
    value, draft = induction._draft([ONE_A], CODE, Grammar([WORD_B]))
    assert (value, draft.rules) == (29.5, (DOUBLE,))
    assert learner.begun == [(WORD_B,), (WORD_A,), (DOUBLE,)]


def test_learning_ends_after_six_turns(script):
    turns = [(BIG, 30.0 - n, [WORD_A]) for n in range(7)]
    learner = script(*turns)
    learned()
    assert learner.begun == [(), *[(WORD_A,)] * 5]
    learner = script(*turns)
    assert induction._draft([ONE_A], CODE, Grammar())[0] == 25.0
    assert learner.begun == [(), *[(WORD_A,)] * 5]


def test_learning_ends_when_every_rule_was_useful_in_whatever_order_they_stand(script):
    assert CODE.rule(WORD_A) < CODE.rule(DOUBLE)
    for rules in ([WORD_A, DOUBLE], [DOUBLE, WORD_A]):
        learner = script((rules, 30.0, [WORD_A, DOUBLE]), (SMALLER, 1.0, []))
        assert learned().grammar.rules == tuple(rules)
        assert len(learner.begun) == 1


def test_learning_ends_when_it_is_hopeless(script):
    script((BIG, 30.0, [WORD_A]), (SMALLER, 1.0, [])).hopeless = True
    assert learned().grammar.rules == tuple(BIG)


def test_a_beginning_above_its_limit_is_given_up():
    pairs = [ONE_A, A_TWICE, SWAPPED]
    bits = [
        induction._induce(pairs, CODE, Grammar(), juxtapose=False, limit=limit).bits
        for limit in (0.0, 10.0, math.inf)
    ]
    assert all(more > less for more, less in pairwise(bits))
