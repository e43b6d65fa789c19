"""Groups of words and what is reported of them: counts, limits and reasons by hand."""

import random
from collections import Counter

import pytest

from equitrans.data.discovery import discover
from equitrans.data.grouping import (
    NEIGHBOURS,
    Tally,
    _choose,
    _compare,
    _contradictory,
    _merge,
    _neighbours,
    _reason,
    abstract,
    group_words,
    table_of,
)
from equitrans.data.lexicon import Lexicon
from equitrans.data.pairs import Pair, as_pairs

# --- pairs written with groups


def plain_lexicon(words):
    return Lexicon({w: w.upper() for w in words}, {})


def test_words_of_one_group_are_numbered_by_first_appearance():
    pair = Pair(tuple("bxabca"), tuple("CABAX"))
    source, target = abstract(pair, {"a": 7, "b": 7, "c": 7}, plain_lexicon("abc"))
    assert source == ((7, 0), "x", (7, 1), (7, 0), (7, 2), (7, 1))
    assert target == ((7, 2), (7, 1), (7, 0), (7, 1), "X")


def test_pairs_that_groups_make_the_same_are_counted():
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
def test_merging_groups_of_a_table_is_writing_the_pairs_with_the_merged_groups(seed):
    pairs, lexicon = random_group_pairs(seed), plain_lexicon("abcde")
    apart = table_of(pairs, dict(zip("abcde", range(5), strict=True)), lexicon)
    merged = {1: 0, 3: 0, 4: 2}
    alike = table_of(pairs, {"a": 0, "b": 0, "c": 2, "d": 0, "e": 2}, lexicon)
    assert _merge(apart, merged) == alike


# --- comparing groups

TWO_GROUPS = {"a": 0, "m": 0, "b": 1, "n": 1}


def compared(pairs, several=2):
    return _compare(table_of(as_pairs(pairs), TWO_GROUPS, plain_lexicon(TWO_GROUPS)), several)[0, 1]


@pytest.mark.parametrize(("several", "firmly"), [(1, 3), (2, 2), (3, 0)])
def test_every_context_that_contradicts_counts_and_firmly_with_several_pairs_on_both_sides(
    several, firmly
):
    pairs = [(f"{w} {f}", f"{w.upper()} {f}") for w in "amb" for f in "xyz"]
    pairs += [(f"n {f}", f"N {f}") for f in "xy"]
    pairs = [(s, t if s[0] in "am" else t[::-1]) for s, t in pairs]  # b and n: turned round
    agreeing = [(f"{w} u", f"{w.upper()}") for w in "ab"]
    assert compared(pairs + agreeing, several) == Tally(1, 3, firmly)


@pytest.mark.parametrize(("several", "firmly"), [(1, 3), (2, 2), (3, 0)])
def test_every_sentence_with_both_groups_that_contradicts_counts_and_firmly_with_several_pairs(
    several, firmly
):
    def turned(first, frame, second):  # the words of the first group come first in all targets
        names = sorted((first, second), key=TWO_GROUPS.__getitem__)
        return f"{first} {frame} {second}", " ".join(names).upper()

    pairs = [turned(*s) for f in "xy" for s in (("a", f, "b"), ("m", f, "n"))]
    pairs += [turned(*s) for f in "xy" for s in (("b", f, "a"), ("n", f, "m"))]
    pairs += [turned("a", "z", "b"), turned("b", "z", "a")]
    agreeing = [("a u b", "A B"), ("b u a", "B A")]
    assert compared(pairs + agreeing, several) == Tally(1, 3, firmly)


def test_two_pairs_on_both_sides_are_several_unless_said_otherwise():
    pairs = [(f"{w} x", w.upper()) for w in "am"] + [(f"{w} x", f"{w.upper()} X") for w in "bn"]
    table = table_of(as_pairs(pairs), TWO_GROUPS, plain_lexicon(TWO_GROUPS))
    assert _compare(table) == {(0, 1): Tally(0, 1, 1)}


def test_each_group_of_a_context_is_compared_with_the_next_few():
    groups = sorted(random.Random(0).sample(range(100), 30))
    assert set(_neighbours(groups)) == {
        (a, b) for a in groups for b in groups
        if 0 < groups.index(b) - groups.index(a) <= NEIGHBOURS
    }  # fmt: skip


def test_what_noise_explains_ends_beyond_the_tolerated_share():
    assert not Tally(4, 1).spoiled(0.2)
    assert Tally(4, 2).spoiled(0.2)
    assert Tally(99, 1, 1).spoiled(0.2)


# --- choosing what to merge


def chosen(edges, refused=(), tolerance=0.2):
    return _choose({e: t if isinstance(t, Tally) else Tally(t) for e, t in edges.items()},
                   set(refused), tolerance)  # fmt: skip


def test_what_was_refused_is_not_chosen_again():
    assert chosen({(0, 1): 5}) == {1: 0}
    assert chosen({(0, 1): 5}, refused=[(0, 1)]) == {}
    assert chosen({(0, 1): Tally(0, 0), (2, 3): Tally(3, 2)}) == {}


def test_the_best_confirmed_goes_first_and_equals_by_number():
    assert chosen({(0, 1): 3, (1, 2): 5}) == {2: 1}
    assert chosen({(1, 2): 3, (0, 1): 3}) == {1: 0}


def test_a_group_is_merged_once_at_a_time():
    assert chosen({(0, 1): 6, (1, 2): 5}) == {1: 0}
    assert chosen({(0, 1): 6, (2, 3): 6, (0, 4): 5}) == {1: 0, 3: 2}


@pytest.mark.parametrize(
    ("tally", "merges"),
    [(Tally(10), True), (Tally(9), False), (Tally(19, 1), False), (Tally(20, 1), True)],
)
def test_half_of_the_best_evidence_will_do_where_nothing_contradicts(tally, merges):
    # 2 would go best with 0, which goes with 1
    expected = {1: 0, 3: 2} if merges else {1: 0}
    assert chosen({(0, 1): 21, (0, 2): 20, (2, 3): tally}) == expected


def test_a_group_between_two_that_contradict_waits_unless_it_fits_one_better():
    against = {(0, 2): Tally(0, 5)}
    assert chosen({(0, 1): 5, (1, 2): 5, **against}) == {}
    assert chosen({(0, 1): 5, (1, 2): 4, **against}) == {1: 0}


# --- merged groups that turn out to contradict


def refuses(*counts, several=2, tolerance=1.0):
    """Whether merging 1 into 0 is refused where sources have targets of these counts."""
    joined = {
        ((0, 0), f"x{i}"): Counter({(f"T{j}",): n for j, n in enumerate(row)})
        for i, row in enumerate(counts)
    }
    bad = _contradictory(joined, {1: 0}, several, tolerance)
    assert bad <= {(0, 1)}
    return bool(bad)


def test_several_pairs_with_another_target_refuse_a_merger_unless_far_outnumbered():
    assert refuses([2, 2])
    assert not refuses([2, 2], several=3)
    assert refuses([3, 3], several=3)
    assert refuses([7, 2])
    assert not refuses([8, 2])
    assert refuses([2, 2], [5])
    assert not refuses([9], [9, 1])


def test_too_large_a_share_of_other_targets_refuses_a_merger():
    assert refuses([4, 1], tolerance=0.2)
    assert not refuses([5, 1], tolerance=0.2)
    assert refuses([4, 1], [1], tolerance=0.2)
    assert refuses([4, 1], [4, 1], [2], tolerance=0.2)


def apart_when_paired(word, frames, between):
    """A word like a and m in some frames; with one of them it stands the other way round."""
    upper = word.upper()
    pairs = [(f"{f} {w}", " ".join([w.upper()] * (i + 1)))
             for i, f in enumerate(frames) for w in ("a", "m", word)]  # fmt: skip
    pairs += [(f"a {between} m", "A M"), (f"m {between} a", "M A")]
    return [*pairs, (f"a {between} {word}", f"{upper} A"), (f"m {between} {word}", f"{upper} M")]


def test_words_whose_pairs_contradict_only_once_merged_are_kept_apart():
    discovery = discover(as_pairs(apart_when_paired("b", ["f1", "f2", "f3", "f4", "f5"], "x")))
    assert [c.source for c in discovery.classes] == [("a", "m")]
    assert discovery.left_out["b"] == "fits 'a', but together their pairs contradict one another"


def test_what_was_refused_in_one_round_is_still_refused_after_the_next():
    pairs = apart_when_paired("b", ["f1", "f2", "f3", "f4", "f5"], "x")
    pairs += apart_when_paired("c", ["g1", "g2", "g3", "g4"], "y")
    discovery = discover(as_pairs(dict.fromkeys(pairs)))
    assert [c.source for c in discovery.classes] == [("a", "m")]
    assert {"b", "c"} <= discovery.left_out.keys()


@pytest.mark.parametrize(
    ("size", "wrong", "kinds"), [(2, False, 2), (2, True, 1), (3, True, 2), (4, True, 2)]
)
def test_where_pairs_are_known_to_be_wrong_it_takes_three_to_contradict(size, wrong, kinds):
    pairs = []
    for kind in "vn":
        for word in (f"{kind}{i}" for i in range(size)):
            pairs += [(f"f{i} {word}", " ".join([word.upper()] * (i + 1))) for i in range(6)]
            pairs.append((f"{word} z", f"{word.upper()} Q" if kind == "v" else f"Q {word.upper()}"))
    if wrong:  # the translation of a word that is not there
        pairs.append(("f0 q", "V0"))
    pairs = as_pairs(pairs)
    lexicon = plain_lexicon([f"{kind}{i}" for kind in "vn" for i in range(size)])
    assert len(set(group_words(pairs, lexicon, tolerance=0.2).group.values())) == kinds


# --- reasons


def test_words_seen_only_alone_are_told_what_else_is():
    verbs = [("walk twice", "WALK WALK"), ("look twice", "LOOK LOOK"), ("walk", "WALK")]
    colors = [("it red", "RED RED RED"), ("it blue", "BLUE BLUE BLUE"), ("blue", "BLUE")]
    dax = [("dax", "DAX")]
    one, several = discover(as_pairs(verbs + dax)), discover(as_pairs(verbs + colors + dax))
    (verb,) = one.evidence
    assert verb.thin["dax"] == "seen only alone, as are words of no other class"
    assert several.left_out["dax"] == (
        "seen only alone, as are words of several classes: those of 'walk' and 'red'"
    )
    assert discover(as_pairs(dax)).left_out == {"dax": "seen only alone, as are words of no class"}


GROUP = {"a": 0, "a2": 0, "b": 1, "c": 2, "d": 3, "e": 4}


@pytest.mark.parametrize(
    ("word", "tallies", "reason"),
    [
        ("b", {}, "no other word stands where it stands"),
        ("b", {(0, 2): Tally(9)}, "no other word stands where it stands"),
        ("b", {(0, 1): Tally(2)}, "fits 'a', but together their pairs contradict one another"),
        ("b", {(1, 2): Tally(2)}, "fits 'c', but together their pairs contradict one another"),
        (
            "b",
            {(0, 1): Tally(2), (1, 2): Tally(1), (1, 3): Tally(1, 1)},
            "fits 'a' and 'c', which do not belong together",
        ),
        (
            "b",
            {(0, 1): Tally(2), (1, 2): Tally(1), (1, 3): Tally(1), (1, 4): Tally(3)},
            "fits 'a' and 'c' and 'd', which do not belong together",
        ),
        (
            "c",  # the most confirmed is named; of equals, the least contradicted
            {(0, 2): Tally(0, 1), (1, 2): Tally(2, 5), (2, 3): Tally(2, 4), (2, 4): Tally(2, 9)},
            "exchanged with 'd', 2 pairs confirm it and 4 contradict it",
        ),
    ],
)
def test_the_reason_names_the_words_it_is_about(word, tallies, reason):
    assert _reason(GROUP[word], GROUP, tallies, 0.2) == reason


# --- what is reported of the classes


def test_classes_are_numbered_by_their_first_words():
    pairs = [(f"{w} twice", f"{w.upper()} {w.upper()}") for w in ("walk", "look")]
    pairs += [(f"it {w}", w.upper()) for w in ("red", "blue")]
    classes = discover(as_pairs(pairs)).classes
    assert [(c.name, c.source) for c in classes] == [
        ("class1", ("walk", "look")),
        ("class2", ("red", "blue")),
    ]


def test_the_tolerance_is_that_of_translations_too():
    walk = [(f"walk {i} {j}", f"WALK {i}") for i in "12" for j in "34"]
    pairs = as_pairs([*walk, ("5 6", "WALK 5")])
    assert discover(pairs, tolerance=0.2).left_out["walk"].startswith("no other word")
    assert discover(pairs, tolerance=0.1).left_out["walk"].startswith("no target word")


def test_the_example_is_the_first_of_the_shortest_but_words_alone_show_least():
    frames = ["{}", "x y {}", "p {}", "q {}", "{} z u v"]
    pairs = [(f.format(w), " ".join([w.upper()] * n)) for n, f in enumerate(frames, start=1)
             for w in ("walk", "look")]  # fmt: skip
    (evidence,) = discover(as_pairs(pairs)).evidence
    assert evidence.example == (
        Pair(("p", "walk"), ("WALK",) * 3),
        Pair(("p", "look"), ("LOOK",) * 3),
    )
    assert evidence.thin == {}


def test_words_that_one_form_of_sentence_confirms_are_in_on_little_evidence():
    pairs = [(f"p {w}", w.upper()) for w in ("walk", "look", "dax")]
    pairs += [(f"q {w}", f"{w.upper()} {w.upper()}") for w in ("walk", "look")]
    (evidence,) = discover(as_pairs(pairs)).evidence
    assert evidence.thin == {"dax": "only one form of sentence confirms it"}
