"""Analyses, alignments, best derivations and parses, against a list of all derivations."""

import math
from itertools import combinations, product

import pytest
from hypothesis import given, strategies as st

from equitrans.models.recursive import aligner as recursive_aligner, chart, rules
from equitrans.models.recursive.aligner import FAINT, KEPT, Weights, alignments, best_tree
from equitrans.models.recursive.chart import Pieces, Tree, parse, yield_of
from equitrans.models.recursive.rules import HOLE, Grammar, Rule, constant, constant_word, lay
from trees import (
    CLASSES,
    FORMS,
    NOT,
    OP,
    RICH,
    RULES,
    TWICE,
    A,
    B,
    derivations,
    log_sum,
    random_aligner,
    score,
)

GRAMMARS = [
    Grammar([*RULES[:2], *more])
    for n in range(5)
    for more in combinations([*RULES[3:7], RULES[8]], n)
]
grammars = st.sampled_from(range(len(GRAMMARS)))
forms = st.lists(st.sampled_from([A, B, OP, TWICE, NOT]), min_size=1, max_size=5).map(tuple)

# --- analyses


def test_every_target_word_has_a_constant_and_no_position_is_one():
    assert [constant_word(constant(word)) for word in (0, 1, 500)] == [0, 1, 500]
    assert [constant_word(chr(n)) for n in (0, 1, 0xFFFF)] == [None, None, None]


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_analyses_are_the_roots_of_all_derivations(form):
    expected = {}
    for j in range(1, len(form) + 1):
        for i in range(j):
            if roots := {(tree.rule, tree.spans) for tree in derivations(RICH, form, i, j)}:
                expected[i, j] = roots
    found = Grammar(RICH.rules).analyses(form)
    assert {span: set(analyses) for span, analyses in found.items()} == expected
    assert all(len(set(analyses)) == len(analyses) for analyses in found.values())


def test_the_empty_form_has_no_analysis():
    assert RICH.analyses(()) == {}


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


# --- alignments: the sum over derivations


def expected_alignments(grammar, weights, form):
    """Log p(a | form) of every yield, from the list of all derivations."""
    by_text = {}
    for tree in derivations(grammar, form):
        by_text.setdefault(yield_of(grammar, tree), []).append(score(grammar, weights, form, tree))
    total = log_sum([s for scores in by_text.values() for s in scores] or [0.0])
    return {text: log_sum(scores) - total for text, scores in by_text.items()}


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_an_alignment_has_the_summed_probability_of_its_derivations(form):
    weights = random_aligner().weights()
    expected = expected_alignments(RICH, weights, form)
    found = alignments(RICH, weights, form)
    assert len(expected) <= KEPT
    assert {a.text: a.log_prob for a in found} == pytest.approx(expected, abs=1e-4)
    assert [a.log_prob for a in found] == sorted((a.log_prob for a in found), reverse=True)


@given(grammars, forms, st.integers(0, 99))
def test_alignments_agree_with_brute_force_and_sum_to_one(number, form, seed):
    grammar = GRAMMARS[number]
    weights = random_aligner(grammar, seed).weights()
    expected = expected_alignments(grammar, weights, form)
    found = alignments(grammar, weights, form)
    assert {a.text for a in found} == set(expected)
    for a in found:
        # a chart drops yields of less than e^-14 of the best
        assert math.exp(a.log_prob) == pytest.approx(math.exp(expected[a.text]), abs=1e-5)
    if found:
        assert math.fsum(math.exp(a.log_prob) for a in found) == pytest.approx(1, abs=1e-12)


def test_without_weights_all_derivations_are_equally_likely():
    form = (A, OP, B, TWICE)
    trees = derivations(RICH, form)
    assert len({len(list(tree.nodes())) for tree in trees}) > 1
    texts = [yield_of(RICH, tree) for tree in trees]
    for a in alignments(RICH, Weights.zero(RICH, CLASSES), form):
        assert math.exp(a.log_prob) == pytest.approx(texts.count(a.text) / len(texts))


def test_equally_likely_alignments_are_sorted_by_yield():
    grammar = Grammar([Rule((A, B), (1, 0)), Rule((A, B), (0, 1))])
    found = alignments(grammar, Weights.zero(grammar, ()), (A, B))
    assert [a.text for a in found] == ["\0\1", "\1\0"]


def test_a_class_counts_once_in_a_hole():
    weights = Weights.zero(RICH, CLASSES)
    weights.holds[3][1][:] = [0.25, 8.0]
    assert weights.held(3, 1, (B, TWICE, B)) == 0.25
    assert weights.held(3, 1, (A, A)) == 8.0
    assert weights.held(3, 1, (A, A, B)) == 8.25
    assert weights.held(3, 1, (TWICE,)) == 0.0
    assert weights.held(3, 0, (A, B)) == 0.0


def copies(counts, scores):
    """A grammar that repeats a word ``counts`` times, below another rule, with these weights."""
    grammar = Grammar([*(Rule((A,), (0,) * n) for n in counts), Rule((NOT, HOLE), (1,))])
    weights = Weights.zero(grammar, ())
    weights.rule[: len(counts)] = scores
    return grammar, weights


def lengths(grammar, weights):
    return [len(a.text) for a in alignments(grammar, weights, (NOT, A))]


def test_a_chart_drops_yields_far_below_the_best():
    assert lengths(*copies((1, 2), [0.0, -FAINT])) == [1]
    assert lengths(*copies((1, 2), [0.0, -FAINT + 0.01])) == [1, 2]
    assert lengths(*copies((1, 2, 3), [-FAINT, 0.0, -1.0])) == [2, 3]


def test_a_chart_keeps_the_likeliest_yields():
    counts = range(KEPT + 4, 0, -1)
    # more copies are likelier
    grammar, weights = copies(counts, [n / 10 for n in counts])
    assert lengths(grammar, weights) == list(counts)[:KEPT]
    assert lengths(*copies(counts, [0.0] * len(counts))) == list(range(1, KEPT + 1))


def test_kept_alignments_sum_to_one():
    grammar, weights = copies(range(1, KEPT + 5), [0.0] * (KEPT + 4))
    found = alignments(grammar, weights, (A,))
    assert [len(a.text) for a in found] == list(range(1, KEPT + 1))
    assert [math.exp(a.log_prob) for a in found] == pytest.approx([1 / KEPT] * KEPT)


def test_alignments_are_cached_until_the_weights_change():
    aligner = random_aligner()
    before = aligner.alignments(FORMS[3])
    assert aligner.alignments(FORMS[3]) is before
    aligner.load_state_dict(random_aligner(seed=1).state_dict())
    assert aligner.alignments(FORMS[3]) != before


def test_the_cache_of_alignments_is_limited(monkeypatch):
    aligner = random_aligner()
    sizes = [len(form) + sum(len(a.text) for a in aligner.alignments(form)) for form in FORMS[:2]]
    aligner.forget()
    monkeypatch.setattr(recursive_aligner, "REMEMBERED", sum(sizes))
    first, second = (aligner.alignments(form) for form in FORMS[:2])
    assert aligner.alignments(FORMS[0]) is first
    assert aligner.alignments(FORMS[1]) is second
    aligner.alignments(FORMS[2])
    again = aligner.alignments(FORMS[0])
    assert again is not first
    assert again == first


# --- the best derivation


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_the_best_tree_has_the_highest_score(form, seed):
    weights = random_aligner(seed=seed).weights()
    scores = {tree: score(RICH, weights, form, tree) for tree in derivations(RICH, form)}
    assert best_tree(RICH, weights, form) == max(scores, key=lambda tree: scores[tree])


@given(grammars, forms, st.integers(0, 99))
def test_the_best_tree_agrees_with_brute_force(number, form, seed):
    grammar = GRAMMARS[number]
    weights = random_aligner(grammar, seed).weights()
    scores = [score(grammar, weights, form, tree) for tree in derivations(grammar, form)]
    tree = best_tree(grammar, weights, form)
    assert (tree is None) == (not scores)
    if tree is not None:
        assert score(grammar, weights, form, tree) == pytest.approx(max(scores))


def test_the_first_rule_wins_a_tie():
    grammar = Grammar([Rule((A,), (0,)), Rule((A,), (0, 0)), Rule((NOT, HOLE), (1,))])
    zero = Weights.zero(grammar, ())
    leaf = Tree(0, ((1, 2),), ())
    assert best_tree(grammar, zero, (NOT, A)) == Tree(2, ((0, 1), (1, 2)), ((1, leaf),))
    assert best_tree(grammar, zero, (A,)) == Tree(0, ((0, 1),), ())


def test_the_first_layout_of_a_rule_wins_a_tie():
    grammar = Grammar([Rule((A,), (0,)), Rule((HOLE, HOLE), (0, 1))])
    tree = best_tree(grammar, Weights.zero(grammar, ()), (A, A, A))
    assert tree is not None
    assert tree.spans == ((0, 1), (1, 3))


def test_a_form_without_a_derivation_has_no_alignment_and_no_tree():
    zero = Weights.zero(RICH, CLASSES)
    assert alignments(RICH, zero, (OP, A)) == []
    assert best_tree(RICH, zero, (OP, A)) is None


# --- pieces of a target


TARGETS = [("a", "b", "a"), ("ab", "b", "a"), ("ab", "ab", "c"), ("abc",), ()]


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_a_piece_fits_where_the_target_allows_every_atom(target):
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


# --- parses under a target


def cheapest(form, i, j):
    """For every yield of a span, the smallest number of rules that make it."""

    def cost(tree):
        used = RICH.rules[tree.rule].used
        return 1 + sum(cost(child) for hole, child in tree.children if hole in used)

    found = {}
    for tree in derivations(RICH, form, i, j):
        text = yield_of(RICH, tree)
        found[text] = min(found.get(text, 1000), cost(tree))
    return found


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_parse_finds_all_pieces_of_the_target_with_their_least_costs(form):
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
        tree = parsed.tree()
        assert yield_of(RICH, tree) == parsed.root
        assert len(list(tree.nodes())) == everything[parsed.root]


@given(grammars, forms)
def test_a_parse_derives_exactly_the_yields_of_brute_force(number, form):
    grammar = GRAMMARS[number]
    for text in {yield_of(grammar, tree) for tree in derivations(grammar, form)}:
        assert parse(grammar, form, tuple(text)).root == text
    assert parse(grammar, form, ("\0",) * 30).root is None


def test_a_parse_under_an_ambiguous_target_finds_an_allowed_yield():
    grammar = Grammar([*RULES[:2], *RULES[3:5]])
    assert parse(grammar, (A, OP, A), ("\0\2", "\0\2")).root == "\2\0"
    assert parse(grammar, (A, OP, A), ("\0", "\0\2")).root is None


def test_of_equally_short_derivations_a_parse_takes_the_first():
    grammar = Grammar([Rule((A,), (0,)), Rule((NOT, HOLE), (1,)), Rule((HOLE, TWICE), (0,))])
    # (not a) twice and not (a twice) have the same yield and the same number of rules
    tree = parse(grammar, (NOT, A, TWICE), ("\1",)).tree()
    assert [node.rule for node in tree.nodes()] == [1, 2, 0]


def test_a_parse_keeps_the_cheapest_yields_of_a_span(monkeypatch):
    monkeypatch.setattr(chart, "KEPT_YIELDS", 3)
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
    # yields of one rule before yields of two rules, then in order
    assert set(parsed.yields[0, 2]) == {constant(word) for word in (3, 4, 5)}
    assert set(parsed.yields[1, 2]) == {constant(word) for word in (1, 2, 9)}
    assert parsed.root == constant(3)
