"""Groups of exchangeable words: how they are written, merged and reported."""

import random

import pytest

from equitrans.data.comparisons import abstract, table_of
from equitrans.data.discovery import discover
from equitrans.data.grouping import _merge, group_words
from equitrans.data.lexicon import Lexicon
from equitrans.data.pairs import Pair, as_pairs


def plain_lexicon(words):
    return Lexicon({w: w.upper() for w in words}, {})


def test_abstract_numbers_the_words_of_a_group_by_first_appearance():
    pair = Pair(tuple("bxabca"), tuple("CABAX"))
    source, target = abstract(pair, {"a": 7, "b": 7, "c": 7}, plain_lexicon("abc"))
    assert source == ((7, 0), "x", (7, 1), (7, 0), (7, 2), (7, 1))
    assert target == ((7, 2), (7, 1), (7, 0), (7, 1), "X")


def test_a_table_counts_pairs_that_groups_write_alike():
    pairs = as_pairs([("a x", "A"), ("b x", "B"), ("c x", "C C"), ("a", "A")])
    assert table_of(pairs, dict.fromkeys("abc", 0), plain_lexicon("abc")) == {
        ((0, 0), "x"): {((0, 0),): 2, ((0, 0), (0, 0)): 1},
        ((0, 0),): {((0, 0),): 1},
    }


def random_group_pairs(seed):
    draw = random.Random(seed)
    return [
        Pair(source, tuple(w.upper() for w in draw.sample(source, len(source))))
        for source in {tuple(draw.choices("abcdex", k=draw.randint(1, 5))) for _ in range(60)}
    ]


@pytest.mark.parametrize("seed", range(3))
def test_merging_groups_of_a_table_equals_writing_the_pairs_with_merged_groups(seed):
    pairs, lexicon = random_group_pairs(seed), plain_lexicon("abcde")
    apart = table_of(pairs, dict(zip("abcde", range(5), strict=True)), lexicon)
    merged = {1: 0, 3: 0, 4: 2}
    alike = table_of(pairs, {"a": 0, "b": 0, "c": 2, "d": 0, "e": 2}, lexicon)
    assert _merge(apart, merged) == alike


def apart_when_paired(word, frames, between):
    """A word that is like a and m in some frames; beside one of them its target is reversed."""
    upper = word.upper()
    pairs = [(f"{f} {w}", " ".join([w.upper()] * (i + 1)))
             for i, f in enumerate(frames) for w in ("a", "m", word)]  # fmt: skip
    pairs += [(f"a {between} m", "A M"), (f"m {between} a", "M A")]
    return [*pairs, (f"a {between} {word}", f"{upper} A"), (f"m {between} {word}", f"{upper} M")]


def test_words_whose_pairs_contradict_only_after_a_merge_stay_apart():
    discovery = discover(as_pairs(apart_when_paired("b", ["f1", "f2", "f3", "f4", "f5"], "x")))
    assert [c.source for c in discovery.classes] == [("a", "m")]
    assert discovery.left_out["b"] == (
        "fits 'a', but as one class their pairs contradict each other"
    )


def test_a_merge_refused_in_one_round_stays_refused_in_the_next():
    pairs = apart_when_paired("b", ["f1", "f2", "f3", "f4", "f5"], "x")
    pairs += apart_when_paired("c", ["g1", "g2", "g3", "g4"], "y")
    discovery = discover(as_pairs(dict.fromkeys(pairs)))
    assert [c.source for c in discovery.classes] == [("a", "m")]
    assert {"b", "c"} <= discovery.left_out.keys()


@pytest.mark.parametrize(
    ("size", "wrong", "kinds"), [(2, False, 2), (2, True, 1), (3, True, 2), (4, True, 2)]
)
def test_with_wrong_pairs_a_certain_contradiction_takes_three_pairs(size, wrong, kinds):
    pairs = []
    for kind in "vn":
        for word in (f"{kind}{i}" for i in range(size)):
            pairs += [(f"f{i} {word}", " ".join([word.upper()] * (i + 1))) for i in range(6)]
            pairs.append((f"{word} z", f"{word.upper()} Q" if kind == "v" else f"Q {word.upper()}"))
    if wrong:  # a target with the translation of a word that the source lacks
        pairs.append(("f0 q", "V0"))
    pairs = as_pairs(pairs)
    lexicon = plain_lexicon([f"{kind}{i}" for kind in "vn" for i in range(size)])
    assert len(set(group_words(pairs, lexicon, tolerance=0.2).group.values())) == kinds


def test_the_reason_for_a_word_seen_only_alone_names_the_classes_with_such_words():
    verbs = [("walk twice", "WALK WALK"), ("look twice", "LOOK LOOK"), ("walk", "WALK")]
    colors = [("it red", "RED RED RED"), ("it blue", "BLUE BLUE BLUE"), ("blue", "BLUE")]
    dax = [("dax", "DAX")]
    one, several = discover(as_pairs(verbs + dax)), discover(as_pairs(verbs + colors + dax))
    (verb,) = one.evidence
    assert verb.thin["dax"] == "seen only alone; no other class has such words"
    assert several.left_out["dax"] == (
        "seen only alone; several classes have such words: those of 'walk' and 'red'"
    )
    assert discover(as_pairs(dax)).left_out == {"dax": "seen only alone; no class has such words"}


def test_classes_are_numbered_by_their_first_words():
    pairs = [(f"{w} twice", f"{w.upper()} {w.upper()}") for w in ("walk", "look")]
    pairs += [(f"it {w}", w.upper()) for w in ("red", "blue")]
    classes = discover(as_pairs(pairs)).classes
    assert [(c.name, c.source) for c in classes] == [
        ("class1", ("walk", "look")),
        ("class2", ("red", "blue")),
    ]


def test_the_tolerance_also_applies_to_translations():
    walk = [(f"walk {i} {j}", f"WALK {i}") for i in "12" for j in "34"]
    pairs = as_pairs([*walk, ("5 6", "WALK 5")])
    assert discover(pairs, tolerance=0.2).left_out["walk"].startswith("no other word")
    assert discover(pairs, tolerance=0.1).left_out["walk"].startswith("no target word")


def test_the_example_is_the_first_of_the_shortest_with_more_than_one_source_word():
    frames = ["{}", "x y {}", "p {}", "q {}", "{} z u v"]
    pairs = [(f.format(w), " ".join([w.upper()] * n)) for n, f in enumerate(frames, start=1)
             for w in ("walk", "look")]  # fmt: skip
    (evidence,) = discover(as_pairs(pairs)).evidence
    assert evidence.example == (
        Pair(("p", "walk"), ("WALK",) * 3),
        Pair(("p", "look"), ("LOOK",) * 3),
    )
    assert evidence.thin == {}


def test_a_word_confirmed_by_one_form_of_sentence_is_marked_as_thin():
    pairs = [(f"p {w}", w.upper()) for w in ("walk", "look", "dax")]
    pairs += [(f"q {w}", f"{w.upper()} {w.upper()}") for w in ("walk", "look")]
    (evidence,) = discover(as_pairs(pairs)).evidence
    assert evidence.thin == {"dax": "only one form of sentence confirms it"}
