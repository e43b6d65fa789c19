"""Constants that move between words and the rules around them."""

import pytest

from equitrans import TransducerConfig, fit
from equitrans.models.recursive.lowering import lowered, raised
from equitrans.models.recursive.observe import Observation
from equitrans.models.recursive.rules import HOLE, Grammar, Rule, constant
from tongues import Tongue

N, RUN, SOME, BIG = range(4)
S, GO, LARGE = range(3)
WORD = Rule((N,), (0,))
SOME_RUN = Rule((SOME, HOLE, RUN), (1, ~S, ~GO))


def test_a_word_writes_the_constant_that_lost_targets_have_beside_it():
    grammar = Grammar([WORD, SOME_RUN])
    lost = Observation((SOME, BIG, N, RUN), ("\2", constant(S), constant(LARGE)), (), 1)
    (found,) = lowered(grammar, [lost])
    assert found.rules == (WORD, Rule((SOME, HOLE, RUN), (1, ~GO)), Rule((N,), (0, ~S)))


def test_a_constant_before_a_word_is_lowered_too():
    grammar = Grammar([WORD, Rule((SOME, HOLE), (~S, 1))])
    lost = Observation((SOME, BIG, N), (constant(S), "\2", constant(LARGE)), (), 1)
    (found,) = lowered(grammar, [lost])
    assert found.rules == (WORD, Rule((SOME, HOLE), (1,)), Rule((N,), (~S, 0)))


@pytest.mark.parametrize(
    "target",
    [("\2", constant(LARGE)), (constant(LARGE), "\2", constant(GO)), (constant(S), "\2")],
)
def test_only_a_constant_that_a_rule_writes_beside_a_hole_is_lowered(target):
    lost = Observation((SOME, BIG, N, RUN), target, (), 1)
    assert lowered(Grammar([WORD, SOME_RUN]), [lost]) == []
    assert lowered(Grammar([SOME_RUN]), [lost]) == []


def test_a_rule_around_a_word_writes_what_the_word_wrote():
    marked, around = Rule((N,), (~S, 0)), Rule((SOME, HOLE), (1, 1))
    grammar = Grammar([WORD, marked, around])
    steps = [(around, 1, marked), (around, 1, WORD)]
    (found,) = raised(grammar, steps)
    assert found.rules == (WORD, around, Rule((SOME, HOLE), (~S, 1, ~S, 1)))
    assert raised(grammar, steps[1:]) == []


PLURAL = Tongue(
    "plural",
    {
        "S": [
            ("A runs", "0 CORRE"),
            ("B run", "0 CORREN"),
            ("A sees C", "0 VE 2"),
            ("B see C", "0 VEN 2"),
        ],
        "A": [("the X", "EL 1"), ("<q>", "0")],
        "B": [("some Y", "UNOS 1"), ("<q> and <q>", "0 Y 2")],
        "C": [("<q>", "0"), ("the X", "A 1")],
        "X": [("<n>", "0"), ("big X", "1 GRANDE")],
        "Y": [("<n>", "0 S"), ("big Y", "1 GRANDES")],
    },
    longest=10,
    beyond=14,
)


def test_words_with_two_forms_are_found():
    train, _ = PLURAL.pairs(100, seed=1)
    trained = fit(train, PLURAL.classes, model=TransducerConfig(aligner="recursive"))
    judged = PLURAL.judge(train, 40, seed=0)
    answers = trained.predict([pair.source for pair in judged])
    assert [a.words for a in answers] == [pair.target for pair in judged]
