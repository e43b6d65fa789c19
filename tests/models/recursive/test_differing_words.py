"""Words that translate each other in pairs that differ in them, rules by analogy, and agreement."""

import random

from equitrans.data.pairs import Pair
from equitrans.models.configs import TransducerConfig
from equitrans.models.recursive.analogy import complete
from equitrans.models.recursive.description import Code
from equitrans.models.recursive.differences import translated_words
from equitrans.models.recursive.observe import Observation
from equitrans.models.recursive.passes import Learner
from equitrans.models.recursive.rules import HOLE, Grammar, Rule, constant
from equitrans.paper.symmetry import LexicalClass
from equitrans.training.fitting import fit

THE, NOUN, RED, OLD = 3, 4, 5, 6
LE, REDM, OLDM = 1, 2, 3


def observation(form, *target):
    """An observation whose target has positions and constants."""
    atoms = tuple(chr(t) if t >= 0 else constant(~t) for t in target)
    return Observation(form, atoms, (), 1)


def test_words_translate_each_other_where_pairs_differ_in_them_alone():
    pairs = [
        observation((THE, RED, NOUN), ~LE, 2, ~REDM),
        observation((THE, OLD, NOUN), ~LE, 2, ~OLDM),
        observation((THE, NOUN), ~LE, 1),
    ]
    assert translated_words(pairs) == [Rule((RED,), (~REDM,)), Rule((OLD,), (~OLDM,))]
    assert translated_words(pairs[:1]) == []


def test_a_single_pair_pays_for_a_rule_like_others():
    words = [Rule((RED,), (~REDM,)), Rule((OLD,), (~OLDM,))]
    start = Grammar([*words, Rule((HOLE, RED), (0, ~REDM))])
    pair = observation((OLD, OLD), ~OLDM, ~OLDM)
    learner = Learner([pair], Code(symbols=8, targets=8, noise=0.01), start)
    assert complete(learner, [pair]) == []
    assert learner.grammar.rules[-1] == Rule((HOLE, OLD), (0, ~OLDM))
    strange = observation((OLD, OLD), ~OLDM, ~LE)
    learner = Learner([strange], Code(symbols=8, targets=8, noise=0.01), start)
    assert complete(learner, [strange]) == [strange]


def test_adjectives_agree_with_a_noun_that_their_translations_follow():
    # the noun comes first, and the adjectives keep their order: no adjective joins the noun alone
    kinds = {
        "M": LexicalClass("m", ("dog", "king"), ("DOG", "KING")),
        "F": LexicalClass("f", ("cat", "door"), ("CAT", "DOOR")),
    }
    draw = random.Random(0)

    def phrase(most):
        kind = draw.choice("MF")
        row = draw.randrange(2)
        noun, meaning = kinds[kind].source[row], kinds[kind].target[row]
        words = [draw.choice(["red", "old", "big", "soft"]) for _ in range(draw.randint(0, most))]
        meanings = [word.upper() + kind for word in words]
        return Pair(("the", *words, noun), ("L" + kind, meaning, *meanings))

    train = [phrase(2) for _ in range(60)]
    trained = fit(train, list(kinds.values()), model=TransducerConfig(aligner="recursive"))
    assert trained.grammar.exceptions == ()
    for most, least in ((2, 50), (3, 35)):
        pairs = [phrase(most) for _ in range(60)]
        answers = trained.predict([pair.source for pair in pairs])
        right = [a.words == pair.target for a, pair in zip(answers, pairs, strict=True)]
        assert all(good or a.refused for good, a in zip(right, answers, strict=True))
        assert sum(right) >= least
