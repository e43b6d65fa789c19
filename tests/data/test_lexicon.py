"""Translations of words told by the pairs they stand in: limits and reasons, counted by hand."""

import pytest

from equitrans.data.lexicon import Lexicon, find_lexicon
from equitrans.data.pairs import as_pairs


def fillers(count, start=0):
    """Pairs that have nothing to do with the rest; each has words of its own."""
    return [(f"f{i}", f"F{i}") for i in range(start, start + count)]


def lexicon_of(pairs, **settings):
    """The lexicon without the fillers and their numbers."""
    lexicon = find_lexicon(as_pairs(pairs), **settings)
    shown = ({w: t for w, t in side.items() if w[0] != "f"} for side in
             (lexicon.target, lexicon.missing))  # fmt: skip
    return Lexicon(*shown)


def together(*rows):
    """Pairs of fillers with more words: (how many, source words, target words)."""
    pairs, number = [], 0
    for count, source, target in rows:
        for _ in range(count):
            pairs.append((f"{source} f{number}", f"{target} F{number}"))
            number += 1
    return pairs


NOTHING = "no target word comes and goes with it"


def test_a_translation_may_miss_its_word_in_one_pair_of_five_and_not_in_more():
    assert lexicon_of(together((4, "dax", "T"), (1, "", "T"))) == Lexicon({"dax": "T"}, {})
    more = lexicon_of(together((3, "dax", "T"), (2, "", "T"), (5, "", "")))
    assert more.missing == {"dax": "T comes with it, but with other words too"}
    assert lexicon_of(together((3, "dax", "T"), (2, "", "T")), tolerance=0.4).target == {"dax": "T"}


def test_a_translation_seen_in_fewer_than_five_pairs_has_no_exceptions():
    four, five = (
        together((4, "dax", "T"), (1, "dax", "")),
        together((5, "dax", "T"), (1, "dax", "")),
    )
    assert not lexicon_of(four).target
    assert lexicon_of(five).target == {"dax": "T"}


def test_a_word_that_comes_with_a_part_of_the_pairs_of_a_target_word_is_not_its_source():
    assert not lexicon_of(together((3, "dax", "T"), (7, "", "T"), (5, "", ""))).target


@pytest.mark.parametrize(("dropped", "kept"), [(15, True), (16, False)])
def test_a_quarter_of_a_word_s_pairs_must_have_its_translation(dropped, kept):
    lexicon = lexicon_of(together((5, "dax", "T"), (dropped, "dax", "")))
    assert lexicon.target == ({"dax": "T"} if kept else {})


def test_of_two_translations_the_one_that_is_less_often_apart_is_taken():
    # T is met first, and is missing once; S is missing once too, and stands once without dax
    pairs = together((1, "dax", "T"), (4, "dax", "T S"), (1, "dax", "S"), (1, "", "S"))
    assert lexicon_of(pairs).target == {"dax": "T"}


def test_of_two_words_the_one_that_is_less_often_apart_is_taken():
    pairs = together((1, "walk", "T"), (8, "walk then", "T"), (1, "", "T"), (1, "then", ""),
                     (9, "", ""))  # fmt: skip
    assert lexicon_of(pairs) == Lexicon(
        {"walk": "T"}, {"then": "T comes with it, but with other words too"}
    )


def test_a_word_seen_once_in_place_of_another_is_noise():
    assert lexicon_of([*together((9, "walk", "T")), ("stroll", "T")]).target == {"walk": "T"}


def test_a_word_seen_twice_in_place_of_another_is_its_rival():
    lexicon = lexicon_of([*together((8, "walk", "T")), ("stroll", "T"), ("stroll", "T T")])
    assert not lexicon.target
    assert lexicon.missing["walk"] == "shares its translation T with stroll"


def test_a_word_with_its_translation_takes_no_other_that_comes_with_it_nearly_always():
    pairs = together((5, "walk", "WALK Q"), (1, "walk", "WALK"))
    assert lexicon_of(pairs) == Lexicon({"walk": "WALK"}, {})


def test_several_translations_are_all_named():
    pairs = together((2, "run", "RUN"), (2, "run", "RUNS"))
    assert lexicon_of(pairs).missing == {"run": "has several translations: RUN, RUNS"}


def test_several_words_are_named_in_the_order_of_their_first_appearance():
    words = ["R4", "R1", "R3", "R5", "R2", "R0"]
    pairs = [("run a", " ".join(words)), ("run b", " ".join(reversed(words))), ("run c", "X")]
    missing = find_lexicon(as_pairs(pairs)).missing
    assert missing["run"] == "has several translations: R4, R1, R3, R5, R2, R0"
    assert missing["a"] == "R4, R1, R3, R5, R2, R0 comes with it, but with other words too"


def test_a_target_word_seen_once_is_no_translation():
    assert find_lexicon(as_pairs([("run", "RUN"), ("run run", "RUNS")])).missing == {"run": NOTHING}


def test_one_target_word_that_comes_with_a_few_of_a_word_s_pairs_says_nothing():
    assert lexicon_of(together((2, "dax", "T"), (7, "dax", ""))).missing == {"dax": NOTHING}


def test_target_words_that_come_with_other_words_too_are_named():
    pairs = together((1, "the", "A"), (4, "the", "A B"), (3, "", "A B"), (9, "", ""))
    reason = "A, B comes with it, but with other words too"
    assert lexicon_of(pairs).missing == {"the": reason}


@pytest.mark.parametrize(
    ("alike", "reason"),
    [(4, "T comes with it, but with other words too"), (3, NOTHING)],
)
def test_what_comes_with_a_word_comes_in_at_least_four_of_five_of_its_pairs(alike, reason):
    pairs = together((alike, "dax", "T"), (5 - alike, "dax", ""), (3, "", "T"), (9, "", ""))
    assert lexicon_of(pairs).missing == {"dax": reason}


@pytest.mark.parametrize(
    ("everywhere", "reason"),
    [(8, NOTHING), (7, "T comes with it, but with other words too")],
)
def test_what_is_nearly_everywhere_comes_with_all_words_and_says_nothing(everywhere, reason):
    pairs = together((4, "dax", "T"), (everywhere - 4, "", "T"), (10 - everywhere, "", ""))
    assert lexicon_of(pairs).missing == {"dax": reason}
