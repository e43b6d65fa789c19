"""Reading and writing: phrases, other spellings, open classes, words that are read apart."""

import pytest
from hypothesis import given, strategies as st

from equitrans.data.classes import check_together, format_classes, read_classes
from equitrans.data.pairs import Pair
from equitrans.data.reading import Read, Reading, lower_first_words
from equitrans.errors import DataError, SymmetryError
from equitrans.lexical import PLACES, LexicalClass

ROOMS = LexicalClass(
    "rooms",
    ("living room", "hall", "room"),
    ("LIVING ROOM", "HALL", "ROOM"),
    aliases=(("front room", "living room"), ("hallway", "hall"), ("SALON", "LIVING ROOM")),
)
NUMBERS = LexicalClass("numbers", ("dozen",), ("12",), pattern="[0-9]+")
NAMES = LexicalClass("names", ("ann",), ("ann",), open=True)


def test_the_longest_phrase_is_read_as_one_symbol_and_spelled_out_again():
    reading = Reading((ROOMS,))
    read = reading.source(("room", "living", "room", "living"))
    assert read.symbols == ("room", "living room", "living")
    target = reading.target(("ROOM", "LIVING", "ROOM"), read)
    assert target == ("ROOM", "LIVING ROOM")
    assert reading.write(target, read) == ("ROOM", "LIVING", "ROOM")


def test_other_spellings_are_read_as_the_word_of_the_table():
    reading = Reading((ROOMS,))
    read = reading.source(("the", "front", "room", "hallway"))
    assert read.symbols == ("the", "living room", "hall")
    assert reading.target(("SALON",), read) == ("LIVING ROOM",)


def test_phrases_that_overlap_are_refused_with_both_readings():
    reading = Reading((LexicalClass("c", ("new york", "york city"), ("A", "B")),))
    assert reading.source(("york", "city")).symbols == ("york city",)
    with pytest.raises(DataError, match="'new york' and 'york city' overlap"):
        reading.source(("new", "york", "city"))


def test_words_that_match_a_pattern_take_places_in_order_of_appearance():
    reading = Reading((NUMBERS,))
    read = reading.source(("from", "37", "to", "5", "or", "37", "dozen"))
    one, two = "‹numbers 1›", "‹numbers 2›"
    assert read.symbols == ("from", one, "to", two, "or", one, "dozen")
    target = reading.target(("5", "37", "99", "12"), read)
    assert target == (two, one, "99", "12")  # 99 is not copied
    assert reading.write(target, read) == ("5", "37", "99", "12")
    assert [read.spell(symbol) for symbol in read.symbols[:2]] == ["from", "37"]


def test_pairs_that_differ_in_a_number_stay_different_if_places_are_spread():
    pairs = [Pair(("to", number), (number,)) for number in ("3", "14", "15")]
    assert len(set(Reading((NUMBERS,)).pairs(pairs))) == 1
    spread = Reading((NUMBERS,), spread=True)
    assert len(set(spread.pairs(pairs))) > 1
    assert all(x[1] == y[0] for x, y in spread.pairs(pairs))


def test_unknown_words_join_an_open_class_after_training_only():
    words = ("call", "zed", "ann")
    assert Reading((NAMES,)).source(words).symbols == words
    known = Reading((NAMES,), known=frozenset(["call", "ann"]))
    read = known.source(words)
    assert read.symbols == ("call", "‹names 1›", "ann")
    assert known.write(("CALL", "‹names 1›"), read) == ("CALL", "zed")


def test_unknown_words_join_an_open_class_only_where_it_stands():
    verbs = LexicalClass("verbs", ("call", "meet"), ("CALL", "MEET"))
    names = LexicalClass("names", ("ann",), ("ann",), open=True, after=("<verbs>", "and", ""))
    reading = Reading((verbs, names), known=frozenset({"call", "meet", "ann", "and", "now"}))
    read = reading.source(("meet", "zed", "and", "kim"))
    assert read.symbols == ("meet", "‹names 1›", "and", "‹names 2›")
    assert reading.source(("zed",)).symbols == ("‹names 1›",)
    reason = "unknown word 'zed'; words of class 'names' stand only after <verbs>, and, the start"
    assert reading.attempt(("call", "ann", "now", "zed")) == reason
    assert reading.attempt(("now", "mect")) == "unknown word 'mect'; did you mean 'meet'?"


def test_a_sentence_with_more_new_words_than_places_is_refused():
    reading = Reading((NUMBERS,))
    some = tuple(map(str, range(PLACES)))
    assert len(set(reading.source(some).symbols)) == PLACES
    with pytest.raises(DataError, match="more than 16 new words of class 'numbers'"):
        reading.source((*some, "99"))


def test_target_words_are_read_apart_and_written_together():
    reading = Reading(split=".")
    target = reading.target(("set", "kitchen.lamp.left", "3.5", "etc."), Read(()))
    assert target == ("set", "kitchen", "⁀.⁀", "lamp", "⁀.⁀", "left", "3.5", "etc.")
    assert reading.write(target, Read(())) == ("set", "kitchen.lamp.left", "3.5", "etc.")


def test_a_word_of_a_class_is_the_same_alone_and_in_a_word_that_is_read_apart():
    rooms = LexicalClass("rooms", ("kitchen", "living room"), ("kitchen", "living room"))
    reading = Reading((rooms,), split=".")
    read = reading.source(("the", "kitchen", "living", "room"))
    target = reading.target(("kitchen.lamp", "kitchen", "living", "room"), read)
    assert target == ("kitchen", "⁀.⁀", "lamp", "kitchen", "living room")


def test_classes_of_older_models_keep_the_sign_at_the_end_of_their_words():
    rooms = LexicalClass("rooms", ("kitchen", "attic"), ("kitchen.⁀", "attic.⁀"))
    reading = Reading((rooms,), split=".")
    target = reading.target(("set", "kitchen.lamp"), Read(("kitchen", "lamp")))
    assert target == ("set", "kitchen.⁀", "lamp")
    assert reading.write(target, Read(())) == ("set", "kitchen.lamp")


def test_each_of_several_signs_is_a_word_that_keeps_its_place():
    reading, words = Reading(split="(),.:"), ("when(dark)", "msg(bob,lb.3.5)", "f(g(x))", "a:")
    target = reading.target(words, Read(()))
    assert target[:4] == ("when", "⁀(⁀", "dark", "⁀)")
    assert target[4:11] == ("msg", "⁀(⁀", "bob", "⁀,⁀", "lb", "⁀.⁀", "3.5")
    assert target[12:18] == ("f", "⁀(⁀", "g", "⁀(⁀", "x", "⁀)")
    assert target[17] == target[18]  # both brackets are one word of the vocabulary
    assert reading.write(target, Read(())) == words


@given(st.lists(st.text("ab(),.3", min_size=1, max_size=8), max_size=4).map(tuple))
def test_writing_inverts_reading_at_several_signs(words):
    reading = Reading(split="(),.")
    target = reading.target(words, Read(()))
    assert reading.write(target, Read(())) == words
    assert reading.target(target, Read(())) == target


sentences = st.lists(
    st.sampled_from(["living", "room", "hall", "hallway", "front", "7", "8", "x"]), max_size=6
).map(tuple)


@given(sentences, sentences)
def test_reading_symbols_again_changes_nothing_and_writing_inverts_reading(source, target):
    reading = Reading((ROOMS, NUMBERS, NAMES), split=".", known=frozenset(["x", "room", "hall"]))
    pair = reading.pair(Pair(source, target))
    assert reading.pair(pair) == pair
    read = reading.source(source)
    assert reading.write(reading.target(target, read), read) == target


def test_characters_can_be_phrases():
    reading = Reading((LexicalClass("c", ("sh", "s"), ("ʃ", "z")),), characters=True)
    assert reading.source(tuple("sash")).symbols == ("s", "a", "sh")


TABLE = """\
[[class]]
name = "nouns"
source = ["dog", ["living room", "front room"], "fish"]
source_forms."plural" = ["dogs", "living rooms", ""]
target = ["DOG", "LIVING ROOM", "FISH"]
target_forms."old" = ["HOUND", "", ""]

[[class]]
name = "numbers"
pattern = "[0-9]+"

[[class]]
name = "names"
source = ["ann"]
target = ["ann"]
open = true
after = ["call", "", "<nouns>"]
"""


def test_a_file_of_tables_is_read_and_written(tmp_path):
    path = tmp_path / "classes.toml"
    path.write_text(TABLE, encoding="utf-8")
    nouns, numbers, names = read_classes(path)
    assert nouns.source_forms[0] == ("plural", ("dogs", "living rooms", "‹fish plural›"))
    assert nouns.aliases == (("front room", "living room"),)
    assert numbers.is_open
    assert names.open
    assert names.after == ("call", "", "<nouns>")
    text = format_classes((nouns, numbers, names))
    path.write_text(text, encoding="utf-8")
    assert read_classes(path) == (nouns, numbers, names)
    assert "‹" not in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[class]]\nsource = [["a", 3]]\ntarget = ["A"]', "several spellings of one word"),
        ('[[class]]\nsource = ["a"]\ntarget = ["A"]\nsource_forms = ["b"]', "expected columns"),
        ('[[class]]\nsource = ["‹a b›"]\ntarget = ["A"]', "reserved"),
        ("[[class]]\npattern = 3", "pattern is 3; expected a string"),
        ("[[class]]\nopen = true\nafter = 3", "after is 3; expected a list of words"),
        ('[[class]]\nsource = ["a"]\ntarget = ["A"]\nafter = ["b"]', "for classes that are open"),
        ('[[class]]\nopen = "yes"', "open is 'yes'; expected true or false"),
        ("[[class]]\nopen = true\n[[class]]\nopen = true", "one can be open without"),
    ],
)
def test_a_malformed_table_raises_with_its_path(tmp_path, text, message):
    path = tmp_path / "classes.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises((DataError, SymmetryError), match=message) as error:
        read_classes(path)
    assert str(path) in str(error.value)


def test_a_spelling_of_two_classes_is_refused():
    other = LexicalClass("other", ("hallway",), ("X",))
    with pytest.raises(SymmetryError, match="spelling 'hallway' is in two classes"):
        check_together((ROOMS, other))


# --- capitals


def test_first_words_are_lowered_unless_they_are_names():
    pairs = [("The cat", "C"), ("a cat", "D"), ("A dog", "E"), ("Ann", "A"), ("see Ann", "B")]
    made = lower_first_words([Pair(tuple(x.split()), (y,)) for x, y in [*pairs, ("the", "F")]])
    assert [" ".join(x) for x, _ in made] == ["the cat", "a cat", "a dog", "Ann", "see Ann", "the"]
    # rose is a word, but Rose is also a name inside sentences
    names = [Pair(("Rose", "ran"), ("A",)), Pair(("a", "rose"), ("B",)), Pair(("to", "Rose"), ())]
    assert lower_first_words(names) == tuple(names)


@pytest.mark.parametrize(
    ("words", "symbols"),
    [
        (("The", "cat"), ("the", "cat")),
        (("Ann", "The"), ("Ann", "The")),
        (("Living", "room"), ("living room",)),
        (("Zoe",), ("Zoe",)),
    ],
)
def test_a_model_reads_capitals_of_the_first_word(words, symbols):
    rooms = LexicalClass("rooms", ("living room", "attic"), ("LIVING", "ATTIC"))
    known = frozenset({"the", "cat", "Ann", "living room", "attic"})
    reading = Reading((rooms,), known=known, capitals=True)
    assert reading.source(words).symbols == symbols
