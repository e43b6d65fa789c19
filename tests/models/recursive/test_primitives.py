"""Primitives on the yields of parts: what they take, what is learned, and their symmetry."""

import random
from itertools import permutations

import pytest
from hypothesis import given, strategies as st

from equitrans import LexicalClass, Pair, TransducerConfig, fit
from equitrans.errors import DataError
from equitrans.models.recursive.chart import origins_of, parse, yield_of
from equitrans.models.recursive.description import PRIMITIVE, Code
from equitrans.models.recursive.io import learned_from_json, learned_to_json
from equitrans.models.recursive.rules import HOLE, Grammar, Rule
from equitrans.models.recursive.tile import tile
from equitrans.models.recursive.uses import CHAINS, Operation, Use, constant, operate
from ruled import LETTERS, edit_rules

WORDS = LexicalClass("words", tuple("abcdefghijklmnop"), tuple("ABCDEFGHIJKLMNOP"))

RECURSIVE = TransducerConfig(aligner="recursive")

FUNCTIONS = {
    "flip": lambda x: x[::-1],
    "roll": lambda x: [*x[1:], *x[:1]],
    "stress": lambda x: [*x, *x[-1:]],
    "skip": lambda x: [*x[:1], *x[2:]],
}


def sentence(rng, depth):
    """A sentence in prefix notation and its target."""
    if depth == 0:
        words = rng.sample(WORDS.source, rng.randint(2, 5))
        return words, [word.upper() for word in words]
    source, target = sentence(rng, depth - 1)
    name = rng.choice(sorted(FUNCTIONS))
    return [name, *source], FUNCTIONS[name](target)


def sentences(n, depths, seed):
    rng = random.Random(seed)
    found = [sentence(rng, rng.choice(depths)) for _ in range(n)]
    return [Pair(tuple(x), tuple(y)) for x, y in found]


@pytest.fixture(scope="module")
def learned():
    return fit(sentences(90, (1, 1, 2), 0), [WORDS], model=RECURSIVE)


@pytest.fixture(scope="module")
def edit():
    return edit_rules()


def test_rules_with_primitives_are_learned(learned):
    assert {
        "flip □ → reverse(1)",
        "roll □ → rest(1) first(1)",
        "stress □ → 1 last(1)",
        "skip □ → first(1) rest(rest(1))",
    } <= set(learned.grammar.texts)
    longer = sentences(40, (3, 4, 5), 1)
    predicted = learned.predict([pair.source for pair in longer])
    assert [p.words for p in predicted] == [pair.target for pair in longer]


def test_a_language_without_such_functions_has_no_primitives():
    rng = random.Random(0)
    pairs = []
    for _ in range(60):
        x, y = (rng.choices(LETTERS.source, k=rng.randint(1, 3)) for _ in range(2))
        pairs.append(Pair(("dup", *x, ",", *y), (*map(str.upper, [*x, *x, *y]),)))
    grammar = fit(pairs, [LETTERS], model=RECURSIVE).grammar.grammar
    assert not any(rule.has_primitives for rule in grammar.rules)


@given(st.data())
def test_primitives_commute_with_any_exchange_of_words(data):
    words = "abcdefg"
    part = data.draw(st.lists(st.sampled_from(words), max_size=6).map("".join))
    uses = [Use(0), *(Use(0, *chain) for chain in CHAINS)]
    right = [use.number for use in data.draw(st.lists(st.sampled_from(uses), max_size=4))]
    exchange = str.maketrans(words, "".join(data.draw(st.permutations(words))))
    whole = operate(right, {0: part}, constant, "")
    assert operate(right, {0: part.translate(exchange)}, constant, "") == whole.translate(exchange)


def test_sorting_does_not_commute_with_an_exchange():
    exchange = str.maketrans("ab", "ba")
    assert "".join(sorted("ab")).translate(exchange) != "".join(sorted("ab".translate(exchange)))


def test_predictions_are_equivariant(learned):
    asked = [pair.source for pair in sentences(10, (2, 3), 2)]
    before = learned.predict(asked)
    rng = random.Random(0)
    for _ in range(4):
        order = rng.sample(WORDS.source, len(WORDS.source))
        new = dict(zip(WORDS.source, order, strict=True))
        said = {old.upper(): word.upper() for old, word in new.items()}
        after = learned.predict([tuple(new.get(word, word) for word in source) for source in asked])
        for one, other in zip(before, after, strict=True):
            assert tuple(said[word] for word in one.words) == other.words
            assert one.log_prob == pytest.approx(other.log_prob)


def test_targets_that_depend_on_the_words_are_not_learned():
    pairs = [
        Pair(("sort", *x), tuple(sorted(map(str.upper, x))))
        for n in (2, 3)
        for x in permutations(LETTERS.source, n)
    ]
    predicted = fit(pairs, [LETTERS], model=RECURSIVE).predict([pair.source for pair in pairs])
    assert (
        sum(p.words == pair.target for p, pair in zip(predicted, pairs, strict=True))
        < len(pairs) / 2
    )


def test_tilings_with_primitives_yield_the_target():
    left, spans, part = (9, HOLE), [(0, 1), (1, 5)], "".join(map(chr, (1, 2, 3, 4)))
    target, yields = tuple(map(chr, (4, 2, 3, 1))), {(1, 5): {part: None}}
    found, _ = tile(left, spans, target, yields, longest=3, primitives=4)
    rights = {tiling.right for tiling in found}
    assert all(tuple(operate(right, {1: part}, constant, "")) == target for right in rights)
    middle = Use(1, Operation.REST, Operation.FRONT).number
    assert (Use(1, Operation.LAST).number, middle, Use(1, Operation.FIRST).number) in rights
    assert tile(left, spans, target, yields, longest=3, primitives=3)[0] == []
    assert tile(left, spans, target, yields, longest=3)[0] == []


def test_an_unknown_yield_follows_from_its_reversal():
    left, spans = (9, HOLE), [(0, 1), (1, 3)]
    target = (chr(2), chr(1))
    found, _ = tile(left, spans, target, {}, longest=1, primitives=1)
    reverse = Use(1, Operation.REVERSE).number
    assert ((reverse,), ((1, 3, (chr(1), chr(2))),)) in found


def test_a_known_rule_may_take_nothing():
    middle = Use(1, Operation.REST, Operation.FRONT).number
    right = (Use(1, Operation.LAST).number, Use(1, Operation.FIRST).number, middle)
    known = {(1, 3): {"ab": None}}
    found, _ = tile((9, HOLE), [(0, 1), (1, 3)], tuple("ba"), known, right=right, longest=3)
    assert [tiling.right for tiling in found] == [right]


def test_a_primitive_takes_bits():
    code = Code(symbols=8, targets=8, noise=0.1)
    plain, first = Rule((5, HOLE), (1,)), Rule((5, HOLE), (Use(1, Operation.FIRST).number,))
    assert code.rule(first) == pytest.approx(code.rule(plain) + PRIMITIVE)


def test_parts_that_are_too_long_make_the_whole_too_long():
    flip = Rule((5, HOLE, 6, HOLE), (Use(1, Operation.REVERSE).number,))
    spans = [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert flip.join(spans, {1: 5000, 3: "x"}) == 5000
    assert flip.join(spans, {1: "ab", 3: 5000}) == "ba"


def test_words_have_the_positions_that_they_come_from(edit):
    model = edit.model
    form = model.form(model.symmetry.source.encode(["tag", "flip", "a", "b"]))
    tree = model.aligner.tree(form)
    assert origins_of(model.aligner.grammar, tree) == [0, 3, 0, 3, 2]
    text = yield_of(model.aligner.grammar, tree)
    assert parse(model.aligner.grammar, form, tuple(text)).root == text


def test_grammar_files_keep_primitives(edit):
    content = learned_to_json(edit.model.learned, edit.symmetry)
    assert content["rules"][3]["text"] == "swap □ → last(1) rest(front(1)) first(1)"
    again = learned_from_json(content, edit.symmetry)
    assert again.grammar.rules == edit.model.learned.grammar.rules


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"do": "sort"}, "operation 'sort'; expected one of whole, head"),
        ({"do": ["first"]}, "operation ['first']"),
        ({"do": "rest", "of": "head"}, "operation 'head'; expected one of reverse, first"),
        ({"part": 0}, "parts (0, 0); expected holes, which are [1]"),
        ({"part": True}, "parts (True, True)"),
    ],
)
def test_a_malformed_primitive_is_an_error(edit, change, message):
    content = learned_to_json(edit.model.learned, edit.symmetry)
    content["rules"][3]["right"][0] |= change
    with pytest.raises(DataError) as error:
        learned_from_json(content, edit.symmetry)
    assert message in str(error.value)


def test_all_yields_are_known_where_primitives_may_take_their_words():
    letter, more = Rule((3,), (0,)), Rule((3, HOLE), (0, 1))
    last = Rule((5, HOLE), (Use(1, Operation.LAST).number,))
    form, target = (5, 5, 3, 3), (chr(3),)
    assert parse(Grammar([letter, more, last]), form, target).root == chr(3)
    assert (2, 4) not in parse(Grammar([letter, more]), form, target).yields
    assert (2, 4) in parse(Grammar([letter, more]), form, target, primitives=True).yields
