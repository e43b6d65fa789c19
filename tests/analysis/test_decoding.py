"""Beam search against exhaustive search, alone and in batches; theorem 1."""

import itertools
import math
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from equitrans.analysis.decoding import beam_search, select
from equitrans.analysis.evaluation import predict
from equitrans.data.batches import pad_source
from equitrans.data.pairs import Pair
from equitrans.models.direct import Hypothesis
from equitrans.paper.vocabulary import BOS, EOS, N_SPECIAL, PAD
from plain import PlainTransducer
from worlds import SYMMETRIES, assert_close, elements, moved, random_pairs, small, unshared


class Seen(NamedTuple):
    code: Tensor  # the words so far, as one number


class Table:
    """A scorer whose log-probabilities are drawn afresh for every prefix."""

    def __init__(self, words, seed=0, spread=1.5):
        self.words, self.seed, self.spread = words, seed, spread
        self.cache = {}

    def scores(self, code):
        if code not in self.cache:
            draw = torch.Generator().manual_seed(hash((self.seed, code)) % 2**31)
            logits = self.spread * torch.randn(
                self.words + N_SPECIAL, generator=draw, dtype=torch.float64
            )
            logits[[PAD, BOS]] = -math.inf
            self.cache[code] = torch.log_softmax(logits, 0)
        return self.cache[code]

    def start(self, source):
        return Seen(source[:, 0] * 0 + source[:, 1])

    def step(self, state, previous):
        code = state.code * 31 + previous
        return torch.stack([self.scores(int(c)) for c in code]), Seen(code)

    def exhaustive(self, first, max_length):
        """All finished hypotheses, best first."""
        found = []
        for n in range(max_length):
            for words in itertools.product(range(N_SPECIAL, N_SPECIAL + self.words), repeat=n):
                code, total = first, 0.0
                for previous, word in itertools.pairwise((BOS, *words, EOS)):
                    code = code * 31 + previous
                    total += float(self.scores(code)[word])
                found.append(Hypothesis(words, total))
        return sorted(found, key=lambda h: -h.score)


@pytest.mark.parametrize("seed", range(8))
def test_a_beam_wide_enough_finds_what_exhaustive_search_finds(seed):
    scorer = Table(words=2, seed=seed)
    source = torch.tensor([[BOS, 5, EOS], [BOS, 9, EOS]])
    found = beam_search(scorer, source, width=200, max_length=5, n_best=4)
    for first, hypotheses in zip((5, 9), found, strict=True):
        finished = [h for h in hypotheses if h.finished]
        expected = scorer.exhaustive(first, 5)
        assert [h.words for h in finished] == [h.words for h in expected[: len(finished)]]
        assert finished[0].log_prob == pytest.approx(expected[0].log_prob, abs=1e-12)


@pytest.mark.parametrize("width", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", range(4))
def test_stopping_early_finds_the_same_hypotheses(seed, width):
    """Against a plain beam search of one sentence that runs until everything is finished."""
    scorer = Table(words=3, seed=seed, spread=3.0)
    sources = torch.tensor([[BOS, w, EOS] for w in range(3, 23)])
    together = beam_search(scorer, sources, width=width, max_length=8)
    for source, found in zip(sources, together, strict=True):
        expected = plain_beam_search(scorer, int(source[1]), width, 8)
        if expected[0].finished:
            assert found[0].words == expected[0].words
            assert found[0].log_prob == pytest.approx(expected[0].log_prob, abs=1e-12)
        assert beam_search(scorer, source[None], width=width, max_length=8)[0] == found


def plain_beam_search(scorer, first, width, max_length):
    beams = [((), 0.0, first, False)]
    for _ in range(max_length):
        if all(done for *_, done in beams):
            break
        grown = []
        for words, total, code, done in beams:
            if done:
                grown.append((words, total, code, True))
                continue
            code = code * 31 + (words[-1] if words else BOS)
            scores = scorer.scores(code)
            grown += [
                ((*words, word), total + float(scores[word]), code, word == EOS)
                for word in range(EOS, len(scores))
            ]
        beams = sorted(grown, key=lambda b: -b[1] / len(b[0]))[:width]
    return [
        Hypothesis(tuple(w for w in words if w != EOS), total, done)
        for words, total, _, done in beams
    ]


def test_greedy_search_takes_the_best_word_in_each_step():
    scorer = Table(words=3, seed=3)
    (found,), code, words = (
        beam_search(scorer, torch.tensor([[BOS, 7, EOS]]), width=1, max_length=6)[0:1],
        7,
        (),
    )
    previous = BOS
    for _ in range(6):
        code = code * 31 + previous
        previous = int(scorer.scores(code).argmax())
        if previous == EOS:
            break
        words += (previous,)
    assert found[0].words == words


@pytest.mark.parametrize("marginal", ["sum", "max"])
@pytest.mark.parametrize("name", SYMMETRIES)
def test_theorem_1_beam_search_commutes_with_every_element(name, marginal):
    model = small(SYMMETRIES[name], seed=3, marginal=marginal)
    world = model.symmetry
    pairs = random_pairs(11, 12)

    def search(pairs):
        source = pad_source(world.source.encode(x) for x, _ in pairs)
        # wide, so that ties at the edge of the beam do not decide what is found
        return beam_search(model, source, width=60, max_length=5, n_best=2)

    straight = search(pairs)
    compared = 0
    for g in elements(world):
        around = search(moved(pairs, g, world))
        for one, other in zip(straight, around, strict=True):
            assert one[0].log_prob == pytest.approx(other[0].log_prob, rel=1e-9)
            # a tie may be broken either way, and says nothing
            if len(one) > 1 and one[0].score - one[1].score > 1e-6:
                compared += 1
                assert world.target_action(g, one[0].words) == other[0].words
    assert compared > len(elements(world)) * 2


def test_a_sentence_is_decoded_alike_alone_and_in_a_batch():
    model = small(SYMMETRIES["verbs"], seed=1)
    encoded = [model.symmetry.source.encode(x) for x, _ in random_pairs(12, 9)]
    together = beam_search(model, pad_source(encoded), width=3, max_length=9, n_best=3)
    for sentence, expected in zip(encoded, together, strict=True):
        (alone,) = beam_search(model, pad_source([sentence]), width=3, max_length=9, n_best=3)
        assert [h.words for h in alone] == [h.words for h in expected]


def test_the_score_of_a_hypothesis_is_its_likelihood():
    model = small(SYMMETRIES["verbs × turns"], seed=2)
    world = model.symmetry
    sources = [source for source, _ in random_pairs(13, 20)]
    encoded = pad_source(map(world.source.encode, sources))
    found = beam_search(model, encoded, width=60, max_length=5, n_best=60)
    finished = [
        (Pair(source, world.target.decode(h.words)), h.log_prob)
        for source, hypotheses in zip(sources, found, strict=True)
        for h in hypotheses
        if h.finished
    ]
    assert len(finished) > 20
    losses = model.loss(unshared([pair for pair, _ in finished], world)).detach()
    assert_close(-losses, torch.tensor([log_prob for _, log_prob in finished]), 1e-9)


def test_a_hypothesis_that_reaches_the_maximum_length_is_not_finished():
    scorer = Table(words=2, seed=0)
    for code in range(-1, 10**4):
        scorer.cache[code] = torch.log_softmax(
            torch.tensor([-math.inf, -math.inf, -50.0, 1.0, 0.0]), 0
        )
    ((best,),) = beam_search(scorer, torch.tensor([[BOS, 0, EOS]]), width=2, max_length=3)
    assert not best.finished
    assert len(best.words) == 3


def test_ties_within_rounding_are_ordered_by_word_number():
    class Even(Table):
        def scores(self, code):
            noise = 1e-15 * torch.randn(6, generator=torch.Generator().manual_seed(code))
            logits = torch.tensor([-math.inf, -math.inf, 1.0, 1.0, 1.0, 1.0]) + noise
            return torch.log_softmax(logits, 0)

    for first in range(3, 20):
        ((best,),) = beam_search(Even(3), torch.tensor([[BOS, first, EOS]]), width=3, max_length=4)
        assert best.words == ()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_impossible_words_do_not_win_in_a_wide_beam_of_a_large_vocabulary(dtype):
    class Large:
        """A scorer with 100,000 words, of which only the last 200 and EOS are possible."""

        def start(self, source):
            return Seen(source[:, 1])

        def step(self, state, previous):
            scores = torch.full((len(previous), 100_000), -math.inf, dtype=dtype)
            scores[:, -200:] = -torch.linspace(1000.0, 1.0, 200, dtype=dtype)
            scores[:, EOS] = -0.5
            return scores, state

    (found,) = beam_search(Large(), torch.tensor([[BOS, 5, EOS]]), width=100, max_length=3,
                           n_best=100)  # fmt: skip
    assert len(found) == 100
    assert found[0].words == ()
    assert found[1].words == (99_999,)
    assert [h.score for h in found] == pytest.approx(sorted((h.score for h in found), reverse=True))
    assert all(word >= 99_800 for h in found for word in h.words)


def test_no_sentences_give_no_hypotheses():
    assert beam_search(Table(2), torch.zeros(0, 3, dtype=torch.long), width=3, max_length=4) == []


def test_select_takes_rows_of_nested_tensors_and_keeps_shared_values():
    class Deep(NamedTuple):
        inner: Seen
        shared: object

    weights = object()
    rows = select(Deep(Seen(torch.arange(4) * 10), weights), torch.tensor([2, 0, 2]))
    assert rows.inner.code.tolist() == [20, 0, 20]
    assert rows.shared is weights


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("name", ["no class", "verbs × turns", "three classes"])
def test_predict_agrees_with_a_plain_search_of_single_sentences(name, width):
    world = SYMMETRIES[name]
    sources = [pair.source for pair in random_pairs(3, 60)]
    finished = 0
    for seed in range(3):
        model = small(world, seed)
        plain = PlainTransducer(model)
        found = predict(model, sources, width=width, max_length=9)
        for source, (best,) in zip(sources, found, strict=True):
            encoded = list(world.source.encode(source))
            words, log_prob = plain.search(encoded, width=width, max_length=9)
            # words of a class that the source does not show are equally likely: any of them will do
            assert log_prob == pytest.approx(best.log_prob, rel=1e-9)
            assert len(words) == len(best.words)
            if name == "no class":
                assert world.target.decode(words) == best.words
            finished += best.finished
    assert finished > 5
