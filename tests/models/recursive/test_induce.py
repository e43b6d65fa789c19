"""Induction of a grammar: its rules, exceptions and rivals."""

import pytest

from equitrans.models.recursive import induce as induction
from equitrans.models.recursive.description import Code
from equitrans.models.recursive.induce import NEAR_TIE, induce
from equitrans.models.recursive.observe import Observation, Observations
from equitrans.models.recursive.rules import HOLE, Rule, constant

A, B, OP, TWICE, NOT = range(5)
CODE = Code(symbols=6, targets=6, noise=0.01)
GO = constant(0)

WORD_A, WORD_B = Rule((A,), (0,)), Rule((B,), (0,))
SWAP = Rule((HOLE, OP, HOLE), (2, 0))
DOUBLE = Rule((HOLE, TWICE), (0, 0))
BESIDE = Rule((HOLE, HOLE), (0, 1))


def said(form, target, count=1):
    return Observation(form, target, (), count)


def seen(*observations, wrong=0):
    """Observations, shortest first."""
    count = wrong + sum(o.count for o in observations)
    return Observations(observations, (), (), count, wrong, symbols=6, targets=6)


ONE_A, ONE_B = said((A,), ("\0",), 5), said((B,), ("\0",), 5)
A_TWICE, B_TWICE = said((A, TWICE), ("\0", "\0"), 5), said((B, TWICE), ("\0", "\0"), 5)
SWAPPED = said((A, OP, B), ("\2", "\0"), 5)
A_B, B_A = said((A, B), ("\0", "\1"), 5), said((B, A), ("\0", "\1"), 5)
ODD = said((A,), (GO,) * 12)
"""Every rule that explains this observation takes more bits than the observation."""


# --- grammars


def learned(*observations, **settings):
    return set(induce(seen(*observations, **settings)).grammar.rules)


def test_induction_finds_words_operators_and_order():
    induced = induce(seen(A_TWICE, B_TWICE, SWAPPED))
    assert set(induced.grammar.rules) == {WORD_A, WORD_B, DOUBLE, SWAP}
    assert induced.lost == ()


def test_words_of_no_class_are_learned_as_constants():
    found = learned(said((A,), (GO,)), said((B,), (constant(1),)))
    assert found == {Rule((A,), (~0,)), Rule((B,), (~1,))}


def test_one_form_is_learned_as_one_rule():
    assert learned(A_B) == {Rule((A, B), (0, 1))}


def test_constituents_are_juxtaposed_if_the_rules_suggest_it():
    assert learned(ONE_A, ONE_B, A_B, B_A) == {WORD_A, WORD_B, BESIDE}


# --- wrong pairs


def test_an_unexplained_pair_is_lost_and_counts_as_wrong():
    induced = induce(seen(said((B,), ("\0",), 9), ODD))
    assert induced.lost == (ODD,)
    assert induced.grammar.rules == (WORD_B,)
    assert induced.code.noise == pytest.approx(0.1 / 11 + 1 / 10)


def test_at_most_half_of_the_pairs_count_as_wrong():
    induced = induce(seen(ODD))
    assert induced.lost == (ODD,)
    assert induced.code.noise == 0.5
    assert induced.bits == pytest.approx(induced.code.novelty(12))


# --- rivals


def test_a_grammar_of_nearly_as_few_bits_is_a_rival():
    induced = induce(seen(A_TWICE, B_TWICE, SWAPPED))
    ((more, rival),) = induced.rivals
    twice = {Rule((symbol, TWICE), (0, 0)) for symbol in (A, B)}
    assert set(rival.rules) == {*twice, Rule((A, OP, B), (2, 0))}
    assert more == pytest.approx(induced.code.rules(rival.rules) - induced.bits)
    assert 0 < more < NEAR_TIE


# --- more observations than the shortest ones


def test_a_grammar_of_the_shortest_observations_is_extended_to_all(monkeypatch):
    monkeypatch.setattr(induction, "SHORT", 2)
    short, long = seen(ONE_A, A_TWICE), said((A, OP, A), ("\2", "\0"), 5)
    assert set(induce(short).grammar.rules) == {WORD_A, DOUBLE}
    induced = induce(seen(ONE_A, A_TWICE, long))
    assert set(induced.grammar.rules) == {WORD_A, DOUBLE, SWAP}
    assert induced.code.noise == pytest.approx(0.1 / 16)
    assert induced.bits == pytest.approx(induced.code.rules(induced.grammar.rules))
    assert induced.lost == ()


def test_longer_observations_decide_about_rivals(monkeypatch):
    short = induce(seen(A_TWICE, B_TWICE, SWAPPED))
    monkeypatch.setattr(induction, "SHORT", 3)
    neutral, against = (
        said((NOT, NOT, NOT, NOT), (GO,), 5),
        said((B, TWICE, OP, A), ("\3", "\0", "\0")),
    )
    induced = induce(seen(A_TWICE, B_TWICE, SWAPPED, neutral))
    assert len(induced.grammar) > len(short.grammar)
    added = set(induced.grammar.rules) - set(short.grammar.rules)
    assert [set(rival.rules) for _, rival in induced.rivals] == [
        {*rival.rules, *added} for _, rival in short.rivals
    ]
    assert induce(seen(A_TWICE, B_TWICE, SWAPPED, against)).rivals == ()
