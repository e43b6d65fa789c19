"""Numbers, phrases, other spellings, columns and rare words, found in random languages of pairs."""

import random

import pytest

from equitrans.data.adoption import adopt, copied_group
from equitrans.data.discovery import discover
from equitrans.data.forms import find_forms
from equitrans.data.lexemes import find_numbers
from equitrans.data.lexicon import Lexicon, find_lexicon
from equitrans.data.pairs import Pair, as_pairs
from equitrans.data.phrases import find_phrases
from equitrans.data.reading import Reading

VERBS = {"GET": ["get", "fetch"], "DROP": ["drop"], "SHOW": ["show", "present"]}
NOUNS = {
    "LAMP": ["lamp", "light"],
    "LIVING": ["living room"],
    "DINING": ["dining room"],
    "HALL": ["hall"],
    "DESK": ["desk"],
}


def commands(seed, count, *, verbs=VERBS, nouns=NOUNS, plural=False, numbers=False):
    """Commands of one or two parts with synonyms, phrases, marked plurals and numbers."""
    draw = random.Random(seed)
    pairs = []
    for _ in range(count):
        sides = []
        for _ in range(draw.choice((1, 1, 2))):
            v, n = draw.choice(list(verbs)), draw.choice(list(nouns))
            noun, mark = draw.choice(nouns[n]), ""
            if plural and draw.random() < 0.5:
                noun, mark = f"{noun}s", " PL"
            source, target = f"{draw.choice(verbs[v])} the {noun}", f"{v} {n}{mark}"
            if numbers:
                number = draw.randint(1, 40)
                source, target = f"{source} to {number}", f"{target} {number}"
            sides.append((source, target))
        sources, targets = zip(*sides, strict=True)
        pairs.append((" and ".join(sources), " ".join(targets)))
    return as_pairs(pairs)


def tables(pairs):
    """The rows of all classes, each with its columns and other spellings."""
    found = set()
    for c in discover(pairs).classes:
        rows = set()
        for source, target in c.rows:
            aliases = [s for s, of in c.aliases if of in source]
            rows.add((frozenset([*source, *aliases]), target))
        found.add(frozenset(rows))
    return found


def expected(words):
    return frozenset((frozenset(forms), (t,)) for t, forms in words.items())


@pytest.mark.parametrize("seed", range(4))
def test_synonyms_and_phrases_are_rows_of_their_classes(seed):
    assert tables(commands(seed, 220)) == {expected(VERBS), expected(NOUNS)}


@pytest.mark.parametrize("seed", range(3))
def test_marked_forms_are_columns(seed):
    nouns = {w.upper(): [w] for w in ("dog", "cat", "cow", "hen")}
    verbs = {w.upper(): [w] for w in ("see", "feed", "call")}
    pairs = commands(seed, 200, verbs=verbs, nouns=nouns, plural=True)
    (table,) = (c for c in discover(pairs).classes if "dog" in c.source)
    assert table.source_forms == (("PL", tuple(f"{word}s" for word in table.source)),)
    assert {w for c in discover(pairs).classes for w in c.source} == {
        *["dog", "cat", "cow", "hen"],
        *["see", "feed", "call"],
    }


def test_copied_numbers_are_an_open_class_and_others_are_not():
    pairs = commands(0, 60, numbers=True)
    numbers = find_numbers(pairs)
    assert numbers is not None
    read = Reading((numbers,)).pairs(pairs)
    assert not any(word.isdigit() for pair in read for side in pair for word in side)
    assert tables(pairs) >= {expected(NOUNS)}
    draw = random.Random(0)
    other = [Pair(p.source, tuple(str(draw.randint(1, 40)) if w.isdigit() else w for w in p.target))
             for p in pairs]  # fmt: skip
    assert find_numbers(other) is None
    assert find_numbers(as_pairs([("room 5", "5"), ("room 5 now", "5 NOW")])) is None


def test_words_of_all_fillers_are_a_rule_s_and_not_of_phrases():
    pairs = as_pairs([(f"dim the {w}", f"{w.upper()} DIM") for w in ("lamp", "fan", "light")] * 2)
    assert find_phrases(pairs) == {}


def test_a_word_with_another_meaning_outside_of_a_phrase_is_in_it():
    nouns = {"HOT_DOG": ["hot dog"], "DOG": ["dog"], "CAT": ["cat"], "TEA": ["tea"]}
    pairs = commands(1, 150, verbs={"GET": ["get"], "SEE": ["see"]}, nouns=nouns)
    assert find_phrases(list(dict.fromkeys(pairs))) == {("hot", "dog"): "HOT_DOG"}


@pytest.mark.parametrize("seed", range(5))
def test_rare_words_that_are_copied_join_one_open_class(seed):
    draw = random.Random(seed)
    names = [f"n{i}" for i in range(150)]
    pairs = []
    for _ in range(130):
        some = draw.sample(names, draw.randint(2, 4))
        verb = draw.choice(["call", "meet"])
        target = " ".join(reversed(some)) if verb == "meet" else " ".join(some)
        pairs.append((f"{verb} {' '.join(some)}", f"{verb.upper()} {target}"))
    (table,) = (c for c in discover(as_pairs(pairs)).classes if c.open)
    seen = {word for source, _ in pairs for word in source.split()} - {"call", "meet"}
    assert {source[0] for source, _ in table.rows} >= {w for w in seen if w in table.source}
    assert len(table.rows) >= 0.95 * len(seen)
    assert not {"call", "meet"} & {*table.source}


@pytest.mark.parametrize("seed", range(8))
def test_shuffled_targets_have_no_class(seed):
    pairs = list(dict.fromkeys(commands(seed, 120, plural=seed % 2 == 0, numbers=seed % 3 == 0)))
    targets = [p.target for p in pairs]
    random.Random(seed).shuffle(targets)
    shuffled = [Pair(p.source, t) for p, t in zip(pairs, targets, strict=True)]
    assert discover(shuffled).classes == ()


def test_a_word_that_stands_elsewhere_is_not_adopted():
    pairs = as_pairs(
        [(f"see the {w} now", f"NOW {w} SEE") for w in "abc"]
        + [(f"see the {w}", f"{w} SEE") for w in "abc"]
        + [("x see", "SEE x"), ("x see the a", "a SEE x")]
    )
    lexicon = find_lexicon(pairs)
    group = {"a": 0, "b": 0, "c": 0, "x": 3}
    assert adopt(pairs, group, lexicon, ["x"], tolerance=0.2)["x"] == 3


def test_the_group_that_unknown_words_join_is_copied_and_has_most_words():
    copies = {w: w for w in "abcdef"}
    group = dict.fromkeys(copies, 0)
    assert copied_group(group, Lexicon(copies, {"the": ""})) == 0
    assert copied_group(group, Lexicon(copies | {"a": "A"}, {"the": ""})) is None
    assert copied_group(group, Lexicon(copies, dict.fromkeys("0123456789", ""))) is None


def test_forms_of_a_translation_share_its_pairs_out():
    pairs = list(dict.fromkeys(commands(0, 200)))
    forms = find_forms(pairs, find_lexicon(pairs), tolerance=0.2)
    assert set(forms["LAMP"]) == {"lamp", "light"}
    assert "HALL" not in forms
