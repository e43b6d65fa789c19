"""Rules laid over forms, parses under a target, and what pairs say of targets."""

from itertools import product

import pytest

from equitrans.data.pairs import Pair
from equitrans.models.recursive import parsing, rules
from equitrans.models.recursive.derivations import text_of
from equitrans.models.recursive.observe import observe
from equitrans.models.recursive.parsing import Pieces, parse
from equitrans.models.recursive.rules import HOLE, Grammar, Rule, constant, constant_word, lay
from equitrans.paper.symmetry import Symmetry
from trees import FORMS, NOT, OP, RICH, TWICE, A, B, derivations
from worlds import TURNS, VERBS

# --- rules


def test_every_target_word_is_a_constant_and_no_position_is():
    assert [constant_word(constant(word)) for word in (0, 1, 500)] == [0, 1, 500]
    assert [constant_word(chr(n)) for n in (0, 1, 0xFFFF)] == [None, None, None]


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_the_analyses_of_a_form_are_the_roots_of_its_derivations(form):
    expected = {}
    for j in range(1, len(form) + 1):
        for i in range(j):
            if roots := {(tree.rule, tree.spans) for tree in derivations(RICH, form, i, j)}:
                expected[i, j] = roots
    found = Grammar(RICH.rules).analyses(form)
    assert {span: set(analyses) for span, analyses in found.items()} == expected
    assert all(len(set(analyses)) == len(analyses) for analyses in found.values())


def test_no_words_have_no_analysis():
    assert RICH.analyses(()) == {}


def test_a_rule_is_of_use_where_its_words_stand_and_there_is_room_for_it():
    grammar = Grammar([Rule((A,), (0,)), Rule((HOLE, OP, HOLE), (0,)), Rule((B, HOLE), (1,))])
    assert [r for r, _ in grammar.usable((A, OP, A))] == [0, 1]
    assert [r for r, _ in grammar.usable((A, OP))] == [0]
    assert [r for r, _ in grammar.usable((B,))] == []
    assert grammar.usable((B, A)) == [(0, grammar.rules[0]), (2, grammar.rules[2])]


def test_equal_parts_of_forms_are_analysed_once(monkeypatch):
    calls = []

    def counted(left, form, i, j, ends):
        calls.append((left, form[i:j]))
        return lay(left, form, i, j, ends)

    monkeypatch.setattr(rules, "lay", counted)
    grammar = Grammar([Rule((A,), (0,)), Rule((HOLE, HOLE), (0, 1))])
    found = grammar.analyses((A, A, A))
    assert len(calls) == len(set(calls)) > 3
    calls.clear()
    assert grammar.analyses((A, A, A)) == found
    assert calls == []


def test_a_left_side_that_is_longer_than_the_span_is_not_laid():
    assert list(lay((A, A), (A,), 0, 1, [[]])) == []
    assert list(lay((A, HOLE), (A,), 0, 1, [[]])) == []
    assert list(lay((A, B, A), (A, B), 0, 2, [[], []])) == []


# --- pieces of a target


TARGETS = [("a", "b", "a"), ("ab", "b", "a"), ("ab", "ab", "c"), ("abc",), ()]


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_a_piece_fits_where_every_atom_is_allowed(target):
    pieces = Pieces(target)
    sentences = ["".join(s) for s in product(*target)]
    for text in ("".join(t) for n in range(5) for t in product("abc", repeat=n)):
        places = {
            start
            for sentence in sentences
            for start in range(len(sentence) - len(text) + 1)
            if sentence[start : start + len(text)] == text
        }
        assert {start for start in range(6) if pieces.at(text, start)} == places
        assert pieces.fits(text) == pieces.fits(text) == bool(places)
        assert pieces.whole(text) == (text in sentences)


def test_a_piece_is_tried_once_at_every_place_that_has_room_for_it():
    tried = []

    class Watched(Pieces):
        def at(self, piece, start):
            tried.append(start)
            return super().at(piece, start)

    pieces = Watched(("ab", "b", "a"))
    assert not pieces.fits("aa")
    assert not pieces.fits("aa")
    assert tried == [0, 1]


# --- parses


def cheapest(form, i, j):
    """For every yield of a span, the smallest number of rules that make it."""

    def cost(tree):
        rule = RICH.rules[tree.rule]
        below = zip(rule.holes, tree.children, strict=True)
        return 1 + sum(cost(child) for hole, child in below if hole in rule.used)

    found = {}
    for tree in derivations(RICH, form, i, j):
        text = text_of(RICH, tree)
        found[text] = min(found.get(text, 1000), cost(tree))
    return found


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_parse_knows_the_pieces_of_the_target_and_what_each_costs_at_least(form):
    everything = cheapest(form, 0, len(form))
    for text in everything:
        target = tuple(a + chr(0) if n % 2 else a for n, a in enumerate(text))
        pieces, parsed = Pieces(target), parse(RICH, form, target)
        for i, j in parsed.spans:
            expected = {y: c for y, c in cheapest(form, i, j).items() if pieces.fits(y)}
            found = {y: step[0] for y, step in parsed.yields.get((i, j), {}).items()}
            assert found == expected
        right = [y for y in everything if pieces.whole(y)]
        assert parsed.root == min(right, key=lambda y: (everything[y], y))
        assert len(parsed.rules()) == everything[parsed.root]


def test_of_equally_short_derivations_the_first_is_taken():
    grammar = Grammar([Rule((A,), (0,)), Rule((NOT, HOLE), (1,)), Rule((HOLE, TWICE), (0,))])
    # (not a) twice and not (a twice) yield the same with as many rules
    assert parse(grammar, (NOT, A, TWICE), ("\1",)).rules() == [1, 2, 0]


def test_the_cheapest_yields_of_a_span_are_kept_up_to_a_number(monkeypatch):
    monkeypatch.setattr(parsing, "_KEPT", 3)
    grammar = Grammar(
        [
            Rule((NOT, HOLE), (1,)),
            Rule((A,), (~9,)),
            Rule((NOT, A), (~5,)),
            Rule((NOT, A), (~4,)),
            Rule((NOT, A), (~3,)),
            Rule((A,), (~1,)),
            Rule((A,), (~2,)),
            Rule((NOT, A), (~8,)),
        ]
    )
    target = ("".join(map(constant, (1, 2, 3, 4, 5, 8, 9))),)
    parsed = parse(grammar, (NOT, A), target)
    # those of one rule before those of two, then by their order
    assert set(parsed.yields[0, 2]) == {constant(word) for word in (3, 4, 5)}
    # as many as are kept are all kept
    assert set(parsed.yields[1, 2]) == {constant(word) for word in (1, 2, 9)}
    assert parsed.root == constant(3)


# --- observations


def seen(*pairs, classes=(VERBS,)):
    made = [Pair(tuple(x.split()), tuple(y.split())) for x, y in pairs]
    return observe(made, Symmetry.of(classes, made))


def said(pairs):
    return [" ".join(pair.source) for pair in pairs]


def test_an_observation_names_its_distinct_pairs_and_counts_their_copies():
    found = seen(("walk look", "LOOK WALK"), ("run look", "LOOK RUN"), ("walk look", "LOOK WALK"))
    (only,) = found.all
    assert said(only.pairs) == ["walk look", "run look"]
    assert (only.count, found.count, found.strays) == (3, 3, 0)


def test_of_groups_that_are_as_large_the_first_is_believed():
    found = seen(("walk look", "LOOK WALK"), ("run look", "RUN LOOK"))
    assert [o.target for o in found.all] == [("\1", "\0")]
    assert [o.target for o in found.minor] == [("\0", "\1")]


def test_a_stray_pair_is_told_how_many_disagree_with_it():
    found = seen(("walk look", "LOOK WALK"), ("run look", "RUN LOOK"), ("run jump", "JUMP RUN"))
    (stray,) = found.exceptions
    assert stray.pair.source == ("run", "look")
    assert stray.reason == "disagrees with 2 other pairs of its form"
    assert found.strays == 1


def test_a_word_without_a_source_is_named():
    found = seen(("left", "LTURN WALK"), classes=(VERBS, TURNS))
    assert [s.reason for s in found.exceptions] == [
        "no source word of its class translates to 'WALK'"
    ]


def test_observations_come_shortest_first_and_doubts_make_them_longer():
    found = seen(
        ("walk and walk", "WALK WALK"),  # three words and two doubts
        ("walk and look then", "WALK LOOK"),
        ("walk and look twice now then", "WALK"),
    )
    assert [len(o.form) for o in found.all] == [4, 3, 6]
    assert [o.doubts for o in found.all] == [0, 2, 0]


def test_minor_observations_come_with_those_of_most_pairs_first():
    found = seen(
        *[("walk look", "LOOK WALK")] * 4, ("walk run", "WALK"), *[("walk run", "WALK RUN")] * 2
    )
    assert [o.count for o in found.minor] == [2, 1]
    assert [o.target for o in found.minor] == [("\0", "\1"), ("\0",)]


def test_the_clearest_pairs_say_first_what_a_form_means():
    found = seen(
        *[("walk look walk", "LOOK WALK")] * 2,  # 1, then 0 or 2
        *[("walk walk run", "WALK RUN")] * 2,  # 0 or 1, then 2
        ("walk look run", "WALK RUN"),  # 0, then 2
    )
    # the clear pair comes last and is one, but the second agrees with it before it does with the
    # first
    assert [o.target for o in found.all] == [("\0", "\2")]
    assert found.all[0].count == 3


def test_of_equally_clear_pairs_those_with_most_copies_say_first_what_a_form_means():
    found = seen(
        ("walk look run", "WALK RUN"),
        *[("walk look run", "LOOK RUN")] * 3,
        *[("walk walk run", "WALK RUN")] * 3,
    )
    assert [o.target for o in found.all] == [("\1", "\2")]
    assert found.all[0].count == 6


def test_there_are_taken_to_be_two_symbols_and_two_target_words_at_least():
    found = seen(("walk", "WALK"))
    assert (found.symbols, found.targets) == (2, 2)
    found = seen(("walk and then", "WALK go stop"))
    assert (found.symbols, found.targets) == (3, 3)
