"""Discovered classes against brute force, with noise, and where no class may be found."""

import random

import pytest

from equitrans.data.comparisons import compare, table_of
from equitrans.data.discovery import discover
from equitrans.data.lexicon import find_lexicon
from equitrans.data.pairs import Pair, as_pairs
from equitrans.data.scan import DIRECTIONS, VERBS, everything, load_split
from equitrans.errors import DataError
from equitrans.training.config import TrainingConfig
from equitrans.training.fitting import fit


def found(discovery):
    """The classes as sets of (source word, target word), without names and order."""
    return {frozenset(zip(c.source, c.target, strict=True)) for c in discovery.classes}


BOTH = {frozenset(zip(c.source, c.target, strict=True)) for c in (VERBS, DIRECTIONS)}


@pytest.mark.parametrize("name", ["add_jump", "simple_p1", "simple_p8"])
def test_scan_s_classes_are_found_in_its_training_sets(name):
    discovery = discover(load_split(name).train)
    assert found(discovery) == BOTH
    assert not discovery.misfits
    assert all(e.contradicted == 0 < e.confirmed for e in discovery.evidence)


def test_a_word_seen_only_alone_joins_its_class_and_is_marked_as_thin():
    words = [w for w in load_split("add_jump").train if len(w.source) < 4]
    verbs, *_ = discover(words).evidence
    assert list(verbs.thin) == ["jump"]
    assert "seen only alone" in verbs.thin["jump"]


@pytest.mark.parametrize("count", [30, 60, 100, 200])
def test_samples_of_few_commands_never_give_a_wrong_class(count):
    pairs = list(everything())
    samples = [random.Random(seed).sample(pairs, count) for seed in range(5)]
    classes = [words for sample in samples for words in found(discover(sample))]
    assert classes
    assert all(any(words <= right for right in BOTH) for words in classes)


def brute_force(pairs, lexicon, a, b):
    """Swap two words and their translations in every pair, and look the result up."""
    swap = {a: b, b: a, lexicon.target[a]: lexicon.target[b], lexicon.target[b]: lexicon.target[a]}
    known = {p.source: p.target for p in pairs}
    confirmed = contradicted = 0
    for pair in pairs:
        source, target = (tuple(swap.get(w, w) for w in side) for side in pair)
        if {a, b} & set(pair.source) and source in known:
            if known[source] != target:
                contradicted += 1
            elif len(source) > 1:
                confirmed += 1
    return confirmed / 2, contradicted / 2  # each comparison is counted from both sides


@pytest.mark.parametrize("seed", range(2))
def test_comparisons_are_those_of_swapping_by_brute_force(seed):
    pairs = random.Random(seed).sample(list(everything()), 700)
    lexicon = find_lexicon(pairs)
    words = list(lexicon.target)
    tallies = compare(table_of(pairs, {w: i for i, w in enumerate(words)}, lexicon))
    compared = 0
    for i, a in enumerate(words):
        for j, b in enumerate(words[i + 1 :], start=i + 1):
            expected = brute_force(pairs, lexicon, a, b)
            tally = tallies.get((i, j))
            assert ((tally.confirmed, tally.contradicted) if tally else (0, 0)) == expected
            compared += sum(expected)
    assert compared > 20


def test_a_word_that_other_words_contradict_is_left_out_with_the_counts():
    pairs = as_pairs(
        [("walk", "WALK"), ("walk twice", "WALK WALK"), ("walk left", "L WALK"),
         ("look", "LOOK"), ("look twice", "LOOK LOOK"), ("look left", "L LOOK"),
         ("stop", "STOP"), ("stop twice", "STOP"), ("stop left", "STOP L")]
    )  # fmt: skip
    discovery = discover(pairs)
    assert found(discovery) == {frozenset({("walk", "WALK"), ("look", "LOOK")})}
    assert discovery.left_out["stop"] == (
        "exchanging it with 'walk' is confirmed 0 times and contradicted 2 times"
    )


@pytest.mark.parametrize("size", [2, 5, 8])
@pytest.mark.parametrize("frames", [1, 4, 8])
def test_a_single_context_keeps_two_kinds_of_words_apart(size, frames):
    pairs = []
    for kind in "vn":
        for word in (f"{kind}{i}" for i in range(size)):
            pairs += [(f"f{i} {word}", " ".join([word.upper()] * (i + 1))) for i in range(frames)]
            target = "{} Q" if kind == "v" else "Q {0} {0}"
            pairs.append((f"{word} z", target.format(word.upper())))
    discovery = discover(as_pairs(pairs))
    assert {frozenset(w[0] for w in c.source) for c in discovery.classes} == {
        frozenset("v"),
        frozenset("n"),
    }
    assert not discovery.misfits


def test_a_word_that_fits_two_contradictory_classes_is_left_out():
    # dax fits both, by one context each, and the two contradict one another
    pairs = as_pairs(
        [("a x", "A"), ("b x", "B"), ("a y", "A A"), ("b y", "B B"), ("a w", "A Q"), ("b w", "B Q"),
         ("c x", "C C C"), ("d x", "D D D"), ("c z", "C C"), ("d z", "D D"), ("c w", "Q C"),
         ("d w", "Q D"), ("dax y", "DAX DAX"), ("dax z", "DAX DAX")]
    )  # fmt: skip
    discovery = discover(pairs)
    assert all("dax" not in c.source for c in discovery.classes)
    assert "do not fit each other" in discovery.left_out["dax"]


def test_evidence_counts_pairs_that_confirm_and_contradict():
    pairs = [(f"{w} twice", f"{w.upper()} {w.upper()}") for w in "abcdefghijkl"]
    pairs += [(f"{w} once", w.upper()) for w in "abcdefghijkl"]
    wrong = [("m twice", "M"), ("n twice", "N"), ("m once", "M"), ("n once", "N")]
    (evidence,) = discover(as_pairs([*pairs, *wrong[:1], wrong[2]]), tolerance=0.6).evidence
    assert evidence.contradicted == 1
    assert evidence.confirmed == 25


def corrupted(pairs, share, seed):
    draw, pairs = random.Random(seed), list(pairs)
    wrong = set()
    for i in draw.sample(range(len(pairs)), round(share * len(pairs))):
        pairs[i] = Pair(pairs[i].source, draw.choice(pairs).target)
        wrong.add(pairs[i])
    return pairs, wrong


@pytest.mark.parametrize("share", [0.01, 0.05])
def test_a_few_wrong_pairs_change_no_class_and_are_listed_as_misfits(share):
    pairs, wrong = corrupted(load_split("simple_p16").train, share, seed=0)
    discovery = discover(pairs)
    assert found(discovery) == BOTH
    assert set(discovery.misfits) <= wrong
    assert len(discovery.misfits) > 0.9 * len(wrong)


def renamed(pairs, word, other, share, seed=0):
    draw = random.Random(seed)
    return [
        Pair(tuple(other if w == word and draw.random() < share else w for w in p.source), p.target)
        for p in pairs
    ]


@pytest.mark.parametrize("share", [0.03, 0.4])
def test_words_that_share_a_translation_are_spellings_of_one_word(share):
    discovery = discover(renamed(load_split("simple_p8").train, "walk", "stroll", share))
    assert found(discovery) == BOTH
    (verbs,) = (c for c in discovery.classes if "walk" in c.source)
    assert verbs.aliases == (("stroll", "walk"),)


def test_a_word_with_several_translations_is_left_out_with_the_reason():
    train = load_split("simple_p8").train
    always = [
        Pair(p.source, tuple(w for t in p.target for w in ((t, "FAST") if t == "I_RUN" else (t,))))
        for p in train
    ]
    sometimes = [
        Pair(p.source, tuple("RUNS" if t == "I_RUN" and len(p.source) > 4 else t for t in p.target))
        for p in train
    ]
    for pairs, other in ((always, "FAST"), (sometimes, "RUNS")):
        discovery = discover(pairs)
        assert "several translations" in discovery.left_out["run"]
        assert other in discovery.left_out["run"]
        assert len(discovery.classes) == 2


def test_a_word_seen_only_alone_is_left_out_if_it_fits_two_classes():
    pairs = as_pairs(
        (sentence.format(w), sentence.format(w).upper())
        for words, sentences in (
            (("walk", "look"), ("{}", "{} twice")),
            (("red", "blue"), ("{}", "paint it {}")),
            (("dax",), ("{}",)),
        )
        for w in words
        for sentence in sentences
    )
    pairs = [Pair(x, tuple(w for w in y if w not in ("TWICE", "PAINT", "IT"))) for x, y in pairs]
    discovery = discover(pairs)
    assert {frozenset(c.source) for c in discovery.classes} == {
        frozenset({"walk", "look"}),
        frozenset({"red", "blue"}),
    }
    assert "several classes" in discovery.left_out["dax"]


def test_words_seen_only_alone_form_no_class():
    discovery = discover(as_pairs([("walk", "WALK"), ("look", "LOOK"), ("run", "RUN")]))
    assert not discovery.classes
    assert all("seen only alone" in reason for reason in discovery.left_out.values())


def test_words_that_rules_sometimes_drop_are_translated_and_form_a_class():
    words = ["a", "b", "c", "d"]
    pairs = [
        Pair(*sides)
        for x in words
        for y in words
        for sides in (
            ((x, "not", y), (x.upper(),)),
            ((x, "and", y), (x.upper(), y.upper())),
            ((x, "instead", "of", y, "twice"), (x.upper(), x.upper())),
        )
    ]
    (c,) = discover(pairs).classes
    assert set(zip(c.source, c.target, strict=True)) == {(w, w.upper()) for w in words}


def test_words_that_always_occur_together_have_no_translation():
    lexicon = find_lexicon(as_pairs([("dax wug", "A B"), ("walk", "WALK")]))
    assert lexicon.target == {"walk": "WALK"}
    assert "always occurs together with wug" in lexicon.missing["dax"]


def test_the_lexicon_of_scan_is_its_verbs_and_directions():
    lexicon = find_lexicon(load_split("length").train)
    both = dict(zip(VERBS.source, VERBS.target, strict=True))
    both |= dict(zip(DIRECTIONS.source, DIRECTIONS.target, strict=True))
    assert lexicon.target == both
    assert lexicon.source == {t: s for s, t in both.items()}


def test_training_can_discover_its_classes():
    pairs = [(f"{v} {n}", " ".join([v.upper()] * k)) for v in ("walk", "look", "run")
             for n, k in (("once", 1), ("twice", 2))]  # fmt: skip
    trained = fit([*pairs, ("walk", "WALK"), ("jump", "JUMP")], "discover",
                  training=TrainingConfig(updates=300))  # fmt: skip
    assert [set(c.source) for c in trained.symmetry.classes] == [{"walk", "look", "run", "jump"}]
    assert trained.predict(["jump twice"])[0].words == ("JUMP", "JUMP")


def test_discovering_classes_of_no_pairs_is_an_error():
    with pytest.raises(DataError, match="no pairs"):
        fit([], "discover")
