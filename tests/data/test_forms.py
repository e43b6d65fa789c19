"""Other spellings and columns, phrases that share a translation, and words by their places."""

import random

import pytest

from equitrans.data.adoption import adopt
from equitrans.data.discovery import discover
from equitrans.data.lexicon import Lexicon, shared_out
from equitrans.data.pairs import Pair, as_pairs
from equitrans.data.phrases import find_phrases

ONES = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
TENS = (None, "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")


def rows(pairs):
    """The forms of each row, column by column, and other spellings, of all classes."""
    return [
        {
            target[0]: (source, {s for s, of in c.aliases if of in source})
            for source, target in c.rows
        }
        for c in discover(pairs).classes
        if not c.is_open
    ]


def calls(seed, count):
    """Calls with synonyms, names, and two conjunctions that have one sign in the target."""
    draw = random.Random(seed)
    verbs = {"PHONE": ["call", "ring"], "PAY": ["pay"], "HELP": ["help", "assist"]}
    verbs["MEET"] = ["meet", "visit"]
    names = [f"{a}{b}" for a in ("an", "be", "ca", "do", "el") for b in ("na", "lo", "ri", "tu")]

    def call():
        verb, name, twice = draw.choice(list(verbs)), draw.choice(names), draw.random() < 0.3
        target = f"{verb} ( {name} )"
        return f"{draw.choice(verbs[verb])} {name}{' twice' * twice}", f"{target} " * twice + target

    pairs = {}
    for _ in range(count):
        source, target = call()
        while draw.random() < 0.4:
            other, more = call()
            if draw.random() < 0.6:
                source, target = f"{source} and {other}", f"{target} & {more}"
            else:
                source, target = f"{source} after {other}", f"{more} & {target}"
        pairs[source] = target
    return as_pairs(pairs.items())


@pytest.mark.parametrize("seed", range(4))
def test_words_that_one_sign_translates_do_not_tell_synonyms_apart(seed):
    found = {t: forms for table in rows(calls(seed, 160)) for t, forms in table.items()}
    spellings = {t: {*source, *others} for t, (source, others) in found.items()}
    assert all(len(source) == 1 for source, _ in found.values())  # no columns
    assert spellings["PHONE"] == {"call", "ring"}
    assert spellings["HELP"] == {"help", "assist"}
    assert "&" not in spellings  # and, after


@pytest.mark.parametrize("seed", range(4))
def test_words_for_tens_are_a_column_and_not_other_spellings(seed):
    draw = random.Random(seed)
    pairs = {}
    for _ in range(220):
        sources, targets = [], []
        for _ in range(draw.choice((1, 2))):
            tens, ones = draw.randrange(9), draw.randrange(9)
            word = TENS[tens]
            sources.append(f"{word} {ONES[ones]}" if word else ONES[ones])
            targets.append(f"{tens + 1} {ones + 1}" if word else str(ones + 1))
        sign = draw.choice(("minus", "over"))
        pairs[f" {sign} ".join(sources)] = {"minus": " - ", "over": " / "}[sign].join(targets)
    (digits,) = (table for table in rows(as_pairs(pairs.items())) if "7" in table)
    for digit in range(2, 10):
        assert digits[str(digit)] == ((ONES[digit - 1], TENS[digit - 1]), set())


def windows(seed, count):
    """Commands with names of two words that share them, some with two spellings."""
    draw = random.Random(seed)
    names = {"FL": ["front left"], "FR": ["front right"], "RL": ["rear left", "back left"],
             "RR": ["rear right", "back right"], "ROOF": ["roof"]}  # fmt: skip
    pairs = {}
    for _ in range(count):
        t, verb = draw.choice(list(names)), draw.choice(("open", "shut", "wash"))
        again = draw.choice(("", " twice", " now"))
        target = f"{verb.upper()} WINDOW {t}" + {" now": " NOW"}.get(again, "")
        target = f"{target} {target}" if again == " twice" else target
        pairs[f"{verb} the {draw.choice(names[t])} window{again}"] = target
    return as_pairs(pairs.items())


@pytest.mark.parametrize("seed", range(4))
def test_phrases_may_share_out_the_pairs_of_a_target_word(seed):
    pairs = windows(seed, 300)
    words = {" ".join(g): t for g, t in find_phrases(pairs).items()}
    assert words == {
        "front left": "FL", "front right": "FR", "rear left": "RL", "back left": "RL",
        "rear right": "RR", "back right": "RR",
    }  # fmt: skip
    (table,) = (found for found in rows(pairs) if "RL" in found)
    assert set(table) == {"FL", "FR", "RL", "RR", "ROOF"}
    assert {*table["RL"][0], *table["RL"][1]} == {"rear left", "back left"}


def test_a_word_with_a_translation_of_its_own_is_in_no_phrase():
    modes = ("shuffle", "repeat", "fade")
    pairs = [
        *((f"turn {mode} {way}", f"mode {mode} {way}") for mode in modes for way in ("on", "off")),
        *((f"skip {n}", f"skip {n}") for n in (2, 3, 5)),
        *((f"play {who} {way}", f"play {who} {way}") for who in "ab" for way in ("on", "off")),
    ]
    assert find_phrases(as_pairs(pairs)) == {}


def fetching(seed, count):
    """Two kinds of commands whose prepositions stand between the same neighbours."""
    draw = random.Random(seed)
    things, places = ("cup", "ball", "book", "box", "pen"), ("table", "shelf", "sofa", "door")
    pairs = {}
    for _ in range(count):
        x, y = draw.choice(things), draw.choice(places)
        if draw.random() < 0.5:
            pairs[f"{draw.choice(('grab', 'take'))} the {x} from the {y}"] = f"GRASP {x} {y}"
        else:
            pairs[f"{draw.choice(('put', 'place'))} the {x} on the {y}"] = f"PUT {x} {y}"
    return as_pairs(pairs.items())


@pytest.mark.parametrize("seed", range(4))
def test_words_of_different_commands_are_no_class_though_their_neighbours_are_alike(seed):
    classes = [{word for (word, *_), _ in table.values()} for table in rows(fetching(seed, 60))]
    assert not any("from" in words and len(words) > 1 for words in classes)
    assert {"cup", "ball", "book", "box", "pen"} in classes


def test_classes_that_stand_in_the_same_places_join_and_others_do_not():
    here, there = ("jan", "apr", "jun", "mar"), ("mom", "dave")
    pairs = [
        *((f"x{i}{m} the payments of {m} now", f"LIST {m}") for m in here for i in range(3)),
        *((f"y{i}{w} {w} with care", f"{w} CARE") for w in there for i in range(3)),
    ]
    lexicon = Lexicon({word: word for word in (*here, *there)}, {})
    group = {"jan": 0, "apr": 0, "jun": 2, "mar": 2, "mom": 4, "dave": 4}
    after = adopt(as_pairs(pairs), group, lexicon, [], tolerance=0.2)
    assert len({after[word] for word in here}) == 1
    assert after["mom"] == after["dave"] != after["jan"]


@pytest.mark.parametrize("seed", range(3))
def test_copied_words_that_rules_always_drop_are_in_the_open_class(seed):
    draw = random.Random(seed)
    names = [f"n{i}" for i in range(120)]
    pairs = [Pair(("drop", "lost1", "lost2", ",", "n1"), ("n1",))]
    for _ in range(250):
        one, two = (tuple(draw.choices(names, k=draw.randint(1, 3))) for _ in range(2))
        verb = draw.choice(("drop", "join", "swap"))
        target = {"drop": two, "join": one + two, "swap": two + one}[verb]
        pairs.append(Pair((verb, *one, ",", *two), target))
    (table,) = discover(pairs).classes
    assert table.open
    assert {word for pair in pairs for word in pair.source} - {*table.source} == {
        "drop", "join", "swap", ",",
    }  # fmt: skip


def test_words_that_stand_elsewhere_are_not_in_the_open_class():
    draw = random.Random(0)
    names = [f"n{i}" for i in range(30)]
    pairs = [
        Pair((v, a, "and", w, b), (v.upper(), a, w.upper(), b))
        for v, w in [("call", "meet"), ("meet", "call")] * 30
        for a, b in [draw.sample(names, 2)]
    ]
    assert all("and" not in c.source for c in discover(pairs).classes)


@pytest.mark.parametrize("seed", range(4))
def test_random_commands_with_shuffled_targets_have_no_class_and_no_phrase(seed):
    pairs = [*windows(seed, 60), *fetching(seed, 60)]
    targets = [pair.target for pair in pairs]
    random.Random(seed).shuffle(targets)
    shuffled = [Pair(pair.source, t) for pair, t in zip(pairs, targets, strict=True)]
    assert find_phrases(shuffled) == {}
    assert discover(shuffled).classes == ()


def test_words_that_share_out_a_translation_by_chance_are_no_forms():
    assert shared_out((0, 1, 2, 3), [(0, 1), (2, 3)], 12, (40, 30)) == []
    assert shared_out((0, 1, 2, 3), [(0, 1), (2, 3)], 4000, (40, 30)) == [(0, 1), (2, 3)]
