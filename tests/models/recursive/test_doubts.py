"""Doubts about all derivations of a form: combinations that lost, and rivals of as few bits."""

import math
from dataclasses import replace

import pytest

from equitrans.data.pairs import Pair
from equitrans.models.configs import TransducerConfig
from equitrans.models.recursive.doubts import CLOSE, Doubts
from equitrans.models.recursive.io import learned_from_json, learned_to_json
from equitrans.models.recursive.licences import ROOT, Licences
from equitrans.models.recursive.rules import HOLE, Grammar, Rule
from equitrans.training.alone import answerer
from equitrans.training.fitting import fit

A, NOT, TWICE = 3, 4, 5
GRAMMAR = Grammar(
    [Rule((A,), (0,)), Rule((NOT, HOLE), (~1, 1)), Rule((HOLE, TWICE), (0, 0))],
)
NEEDED = frozenset({(*ROOT, 1), (*ROOT, 2), (1, 0, 0), (1, 0, 2), (2, 0, 0), (2, 0, 1)})
EPISODE = """
fep lug > YELLOW RED
lug > RED
zup > BLUE
fep > YELLOW
wif > PURPLE
fep blicket > YELLOW YELLOW
wif lug blicket > PURPLE RED PURPLE RED
fep kiki zup > BLUE YELLOW
lug kiki zup blicket > BLUE RED BLUE RED
wif fep zup zup blicket > PURPLE YELLOW BLUE BLUE PURPLE YELLOW BLUE BLUE
"""


@pytest.fixture(scope="module")
def trained():
    lines = [line.split(" > ") for line in EPISODE.strip().splitlines()]
    pairs = [Pair(tuple(x.split()), tuple(y.split())) for x, y in lines]
    return fit(pairs, "discover", model=TransducerConfig(aligner="recursive"))


def test_a_combination_that_lost_raises_a_doubt_if_no_other_derivation_is_licensed():
    lost = frozenset({(2, 0, 1)})
    form = (NOT, A, TWICE)
    assert Doubts(GRAMMAR, Licences(GRAMMAR, NEEDED, lost), ()).share(form) == 0
    without = NEEDED - {(1, 0, 2), (1, 0, 0), (*ROOT, 1)}
    assert Doubts(GRAMMAR, Licences(GRAMMAR, without), ()).share(form) == 0
    assert Doubts(GRAMMAR, Licences(GRAMMAR, without, lost), ()).share(form) == 0.5


def test_a_rival_raises_a_doubt_by_its_odds_where_it_has_another_yield():
    rival = Grammar([GRAMMAR.rules[0], GRAMMAR.rules[1], Rule((HOLE, TWICE), (0, 0, 0))])
    for bits, share in ((0.0, 0.5), (1.0, 1 / 3), (CLOSE, 0.0)):
        doubts = Doubts(GRAMMAR, None, ((bits, rival),))
        assert doubts.share((A, TWICE)) == pytest.approx(share)
        assert doubts.share((NOT, A)) == 0


def test_which_of_two_operators_binds_first_is_no_certain_answer_if_no_pair_shows_it(trained):
    # 'fep' may stand before all the rest, or with 'wif' before 'kiki'
    (answer,) = trained.predict(["fep wif kiki wif kiki zup"])
    assert math.exp(answer.log_prob) < 0.9
    assert answer.margin < math.log(9)
    (answer,) = trained.predict(["lug blicket"])
    assert math.exp(answer.log_prob) > 0.9


def test_a_doubt_is_in_the_probability_the_loss_and_the_plain_answer(trained):
    model = trained.model
    learned = model.learned
    licences = replace(learned.licences, lost=learned.licences.needed)
    loaded = learned_from_json(
        learned_to_json(replace(learned, licences=licences), model.symmetry), model.symmetry
    )
    assert loaded.licences.lost == licences.lost
    (before,) = trained.predict(["lug blicket"])
    try:
        model.take(loaded)
        (doubted,) = trained.predict(["lug blicket"])
        plain = answerer(trained).answer("lug blicket")
        pair = Pair(("lug", "blicket"), doubted.words)
        loss = trained.evaluate([pair]).loss
    finally:
        model.take(learned)
    assert doubted.words == before.words
    assert math.exp(doubted.log_prob) == pytest.approx(0.5, abs=0.01)
    assert doubted.margin == pytest.approx(doubted.log_prob - math.log(0.5))
    assert plain.margin == pytest.approx(doubted.margin, abs=1e-4)
    assert -loss == pytest.approx(doubted.log_prob, abs=1e-4)
