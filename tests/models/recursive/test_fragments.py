"""Fragments of long pairs, and rules that are found with them where no pair is short."""

from equitrans.models.recursive.fragments import fragments
from equitrans.models.recursive.induce import induce
from equitrans.models.recursive.observe import Observation, observe
from equitrans.models.recursive.rules import HOLE, constant
from equitrans.paper.symmetry import Symmetry
from tongues import Tongue

NOUN, VERB, THE, AND, OUCH = 3, 4, 5, 6, 7

LONG = Tongue(
    "long",
    {
        "S": [("C", "0"), ("S then C", "0 2"), ("S before C", "2 0"), ("C twice", "0 0")],
        "C": [("N <v> N", "1 0 2"), ("N <v>", "1 0")],
        "N": [("<n>", "0"), ("the <n>", "1"), ("<j> <n>", "1 0")],
    },
    shortest=13,
    longest=18,
    size=6,
)


def observation(form, text):
    """An observation of a form whose target has positions in hexadecimal, and ``!``."""
    target = tuple(constant(9) if a == "!" else chr(int(a, 16)) for a in text.split())
    return Observation(form, target, (), 1)


def test_a_fragment_has_one_yield_wherever_it_stands():
    pairs = [
        observation((NOUN, VERB, AND, NOUN, VERB), "4 3 1 0"),
        observation((THE, NOUN, VERB, AND, NOUN, VERB), "5 4 2 1"),
        observation((NOUN, VERB, OUCH, AND, THE, NOUN, VERB), "6 5 1 0 1 0 !"),
    ]
    found = {o.form: o.target for o in fragments(pairs)}
    assert found[NOUN, VERB] == (chr(1), chr(0))
    # in front of a noun the word changes nothing
    assert not any(form[0] == THE for form in found)


def test_a_fragment_with_several_yields_is_none():
    pairs = [
        observation((NOUN, VERB, AND, NOUN), "1 0 3"),
        observation((NOUN, VERB, THE, NOUN), "0 1 3"),
    ]
    assert (NOUN, VERB) not in {o.form for o in fragments(3 * pairs)}


def test_fragments_tell_where_repeated_words_come_from():
    either = chr(1) + chr(3)
    certain = [
        observation((NOUN, VERB, AND, VERB, NOUN), "1 0 3 4"),
        observation((VERB, NOUN, THE, NOUN, VERB), "0 1 4 3"),
    ]
    # the noun of both clauses is the same word: it stands behind each verb
    unclear = Observation((VERB, NOUN, OUCH, NOUN, VERB), (chr(0), either, chr(4), either), (), 1)
    found = {o.form: o.target for o in fragments([*3 * certain, *[unclear] * 9])}
    assert found[VERB, NOUN] == (chr(0), chr(1))
    assert found[VERB, NOUN, OUCH, NOUN, VERB] == tuple(map(chr, (0, 1, 4, 3)))


def test_rules_of_sentences_none_of_which_is_short():
    pairs, _ = LONG.pairs(150, seed=1)
    induced = induce(observe(pairs, Symmetry.of(LONG.classes, pairs)))
    assert not induced.lost
    orders = {(rule.left.count(HOLE), rule.right) for rule in induced.grammar.rules}
    assert {(2, (0, 2)), (2, (2, 0)), (2, (1, 0, 2)), (1, (0, 0))} <= orders
    assert len(induced.grammar) <= 9
