"""What pairs say of the origins of their target words."""

from equitrans.data.pairs import Pair
from equitrans.models.recursive.observe import observe
from equitrans.paper.symmetry import Symmetry
from worlds import TURNS, VERBS


def seen(*pairs, classes=(VERBS,)):
    made = [Pair(tuple(x.split()), tuple(y.split())) for x, y in pairs]
    return observe(made, Symmetry.of(classes, made))


def sources(pairs):
    return [" ".join(pair.source) for pair in pairs]


def test_an_observation_lists_distinct_pairs_and_counts_copies():
    found = seen(("walk look", "LOOK WALK"), ("run look", "LOOK RUN"), ("walk look", "LOOK WALK"))
    (only,) = found.all
    assert sources(only.pairs) == ["walk look", "run look"]
    assert (only.count, found.count, found.wrong) == (3, 3, 0)


def test_the_first_of_two_equally_large_groups_is_the_observation():
    found = seen(("walk look", "LOOK WALK"), ("run look", "RUN LOOK"))
    assert [o.target for o in found.all] == [("\1", "\0")]
    assert [o.target for o in found.minority] == [("\0", "\1")]


def test_an_outlier_says_how_many_pairs_of_its_form_disagree():
    found = seen(("walk look", "LOOK WALK"), ("run look", "RUN LOOK"), ("run jump", "JUMP RUN"))
    (outlier,) = found.outliers
    assert outlier.pair.source == ("run", "look")
    assert outlier.reason == "disagrees with 2 other pairs of its form"
    assert found.wrong == 1


def test_an_outlier_names_the_target_word_without_a_source_word():
    found = seen(("left", "LTURN WALK"), classes=(VERBS, TURNS))
    assert [s.reason for s in found.outliers] == [
        "no source word of its class translates to 'WALK'"
    ]


def test_observations_are_sorted_by_length_plus_ambiguous_words():
    found = seen(
        ("walk and walk", "WALK WALK"),  # three words, two of them ambiguous
        ("walk and look then", "WALK LOOK"),
        ("walk and look twice now then", "WALK"),
    )
    assert [len(o.form) for o in found.all] == [4, 3, 6]
    assert [o.ambiguous for o in found.all] == [0, 2, 0]


def test_minority_observations_are_sorted_by_number_of_pairs():
    found = seen(
        *[("walk look", "LOOK WALK")] * 4, ("walk run", "WALK"), *[("walk run", "WALK RUN")] * 2
    )
    assert [o.count for o in found.minority] == [2, 1]
    assert [o.target for o in found.minority] == [("\0", "\1"), ("\0",)]


def test_groups_start_from_the_least_ambiguous_pairs():
    found = seen(
        *[("walk look walk", "LOOK WALK")] * 2,  # 1, then 0 or 2
        *[("walk walk run", "WALK RUN")] * 2,  # 0 or 1, then 2
        ("walk look run", "WALK RUN"),  # 0, then 2
    )
    # the second pair joins the unambiguous one before it can join the first
    assert [o.target for o in found.all] == [("\0", "\2")]
    assert found.all[0].count == 3


def test_groups_start_from_the_pairs_with_most_copies_among_equally_ambiguous_ones():
    found = seen(
        ("walk look run", "WALK RUN"),
        *[("walk look run", "LOOK RUN")] * 3,
        *[("walk walk run", "WALK RUN")] * 3,
    )
    assert [o.target for o in found.all] == [("\1", "\2")]
    assert found.all[0].count == 6


def test_description_lengths_assume_at_least_two_symbols_and_two_target_words():
    found = seen(("walk", "WALK"))
    assert (found.symbols, found.targets) == (2, 2)
    found = seen(("walk and then", "WALK go stop"))
    assert (found.symbols, found.targets) == (3, 3)


def test_pairs_of_a_form_narrow_its_target_and_a_contradicting_pair_is_an_outlier():
    pairs = [
        Pair(("walk", "and", "walk"), ("WALK", "WALK")),
        Pair(("walk", "and", "look"), ("LOOK", "WALK")),
        Pair(("run", "and", "jump"), ("JUMP", "RUN")),
        Pair(("run", "and", "look"), ("RUN", "LOOK")),
        Pair(("run", "and", "run"), ("JUMP", "RUN")),
    ]
    found = observe(pairs, Symmetry.of([VERBS], pairs))
    (only,) = found.all
    assert only.target == ("\2", "\0")
    assert only.count == 3
    assert {outlier.pair for outlier in found.outliers} == {pairs[3], pairs[4]}
