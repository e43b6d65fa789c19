"""Translations found by comparing pairs, and the reasons for words without one."""

from equitrans.data.lexicon import Lexicon, find_lexicon
from equitrans.data.pairs import as_pairs


def lexicon_of(pairs, **settings):
    """The lexicon without the fillers."""
    lexicon = find_lexicon(as_pairs(pairs), **settings)
    shown = ({w: t for w, t in side.items() if w[0] != "f"} for side in
             (lexicon.target, lexicon.missing))  # fmt: skip
    return Lexicon(*shown)


def together(*rows):
    """Pairs of the given words and a filler: (number of pairs, source words, target words)."""
    pairs, number = [], 0
    for count, source, target in rows:
        for _ in range(count):
            pairs.append((f"{source} f{number}", f"{target} F{number}"))
            number += 1
    return pairs


NOTHING = "no target word occurs in the same pairs"


def test_the_tolerance_bounds_the_pairs_of_a_translation_without_its_word():
    assert lexicon_of(together((4, "dax", "T"), (1, "", "T"))) == Lexicon({"dax": "T"}, {})
    more = lexicon_of(together((3, "dax", "T"), (2, "", "T"), (5, "", "")))
    assert more.missing == {"dax": "its pairs contain T, but so do other pairs"}
    assert lexicon_of(together((3, "dax", "T"), (2, "", "T")), tolerance=0.4).target == {"dax": "T"}


def test_a_rare_translation_has_no_exceptions():
    four, five = (
        together((4, "dax", "T"), (1, "dax", "")),
        together((5, "dax", "T"), (1, "dax", "")),
    )
    assert not lexicon_of(four).target
    assert lexicon_of(five).target == {"dax": "T"}


def test_the_translation_with_fewer_exceptions_wins():
    # T is missing in one pair of dax; S is missing in one too, and occurs once without dax
    pairs = together((1, "dax", "T"), (4, "dax", "T S"), (1, "dax", "S"), (1, "", "S"))
    assert lexicon_of(pairs).target == {"dax": "T"}


def test_the_word_with_fewer_exceptions_gets_the_translation():
    pairs = together((1, "walk", "T"), (8, "walk then", "T"), (1, "", "T"), (1, "then", ""),
                     (9, "", ""))  # fmt: skip
    assert lexicon_of(pairs) == Lexicon(
        {"walk": "T"}, {"then": "its pairs contain T, but so do other pairs"}
    )


def test_one_pair_with_another_word_is_noise():
    assert lexicon_of([*together((9, "walk", "T")), ("stroll", "T")]).target == {"walk": "T"}


def test_a_word_that_replaces_another_twice_shares_its_translation():
    lexicon = lexicon_of([*together((8, "walk", "T")), ("stroll", "T"), ("stroll", "T T")])
    assert not lexicon.target
    assert lexicon.missing["walk"] == "shares its translation T with stroll"


def test_a_translation_in_exactly_the_same_pairs_wins_over_one_in_almost_the_same():
    pairs = together((5, "walk", "WALK Q"), (1, "walk", "WALK"))
    assert lexicon_of(pairs) == Lexicon({"walk": "WALK"}, {})


def test_the_reason_names_all_translations():
    pairs = together((2, "run", "RUN"), (2, "run", "RUNS"))
    assert lexicon_of(pairs).missing == {"run": "has several translations: RUN, RUNS"}


def test_reasons_name_words_in_order_of_first_appearance():
    words = ["R4", "R1", "R3", "R5", "R2", "R0"]
    pairs = [("run a", " ".join(words)), ("run b", " ".join(reversed(words))), ("run c", "X")]
    missing = find_lexicon(as_pairs(pairs)).missing
    assert missing["run"] == "has several translations: R4, R1, R3, R5, R2, R0"
    assert missing["a"] == "its pairs contain R4, R1, R3, R5, R2, R0, but so do other pairs"


def test_a_target_word_seen_once_is_not_a_translation():
    assert find_lexicon(as_pairs([("run", "RUN"), ("run run", "RUNS")])).missing == {"run": NOTHING}


def test_the_reason_names_target_words_that_other_pairs_have_too():
    pairs = together((1, "the", "A"), (4, "the", "A B"), (3, "", "A B"), (9, "", ""))
    reason = "its pairs contain A, B, but so do other pairs"
    assert lexicon_of(pairs).missing == {"the": reason}


def test_a_target_word_of_almost_all_pairs_is_not_named():
    pairs = together((4, "dax", "T"), (4, "", "T"), (2, "", ""))
    assert lexicon_of(pairs).missing == {"dax": NOTHING}
