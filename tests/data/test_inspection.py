"""Findings in files of pairs: each kind is found in its lines, and good files have none."""

import time

import pytest

from equitrans.data import Pair, format_tsv, inspect_pairs, load_split
from equitrans.paper import LexicalClass

GOOD = """\
dim the lamp	LAMP dim
dim the fan	FAN dim
start the lamp	LAMP start
start the fan	FAN start
dim the lamp twice	LAMP dim dim
start the fan twice	FAN start start
"""


def look(text, **options):
    return inspect_pairs(text.encode().splitlines(keepends=True), **options)


def found(text, **options):
    return {(f.kind, f.lines) for f in look(text, **options).serious}


def test_a_good_file_has_no_finding():
    assert look(GOOD).findings == ()
    assert (look(GOOD).pairs, look(GOOD).source_words, look(GOOD).target_words) == (6, 6, 4)


@pytest.mark.parametrize("split", ["add_jump", "length", "simple_p1"])
def test_scan_has_nothing_that_harms_training(split):
    text = format_tsv(load_split(split).train)
    assert look(text).serious == ()


def test_capitals_at_the_start_and_a_third_column_as_in_cogs_harm_nothing():
    rows = [
        "A cake was eaten by Emma .\teat ( theme = cake , agent = Emma )\tin_distribution",
        "Emma ate a cake .\teat ( agent = Emma , theme = cake )\tin_distribution",
        "The cake was seen by a girl .\tsee ( theme = * cake , agent = girl )\tin_distribution",
        "a cake in the house\tcake ( nmod . in = * house )\tstandalone",
        "A girl saw the house .\tsee ( agent = girl , theme = * house )\tin_distribution",
    ]
    inspection = look("\n".join(rows))
    assert inspection.serious == ()
    (column,) = (f for f in inspection.findings if f.kind == "column")
    assert column.message == "column 3 is ignored: in_distribution, standalone"
    assert [f.lines for f in inspection.findings if f.kind == "case"] == [(1, 3, 5)]


def test_names_of_several_words_in_targets_are_no_compounds():
    rows = ["the front door\tFRONT_DOOR", "the back door\tBACK_DOOR", "the front yard\tFRONT_YARD"]
    assert look("\n".join(rows)).serious == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"source\ttarget\n{GOOD}", ("header", (1,))),
        (f"\nInput sentence\toutput_sequence\n{GOOD}", ("header", (2,))),
        (f'{GOOD}"dim it"\t"DIM"\n', ("quotes", (7,))),
        (f'{GOOD}dim the "lamp"\tLAMP dim\n', ("quotes", (7,))),
        (f"{GOOD}dim the lamp\tdim LAMP\n", ("conflict", (1, 7))),
        (f"{GOOD}Dim the lamp\tLAMP dim\n", ("case", (7,))),
        (f"{GOOD}dim the Lamp\tLAMP dim\n", ("case", (7,))),
        (f"{GOOD}dim a lamp\tLamp dim\n", ("case", (7,))),
        (f"{GOOD}dim one lamp, twice\tLAMP dim dim\n", ("punctuation", (7,))),
        (f"{GOOD}dim one la\u00admp\tLAMP dim\n", ("look-alike", (7,))),
        (f"{GOOD}dim one ｆａｎ\tFAN dim\n", ("look-alike", (7,))),
        (f"{GOOD}{'dim ' * 1001}\tDIM\n", ("long", (7,))),
        (f"{GOOD}dim the fan FAN dim\n", ("separator", (7,))),
        (f"{GOOD}dim the fan\tFAN\tdim\n", ("columns", (7,))),
        (f"{GOOD}\tFAN dim\n", ("source", (7,))),
        (f"{GOOD}dim the\u200b fan\tFAN dim\n", ("invisible", (7,))),
        ("IN: a OUT: A\nb\tB\n", ("format", (2,))),
        ("", ("empty", ())),
    ],
)
def test_what_harms_training_is_found_in_its_lines(text, expected):
    assert found(text) == {expected}
    (finding,) = look(text).serious
    assert finding.advice


def test_every_bad_line_of_a_file_is_reported():
    lines = [b"a,A\n", b"b\tB\n", b"\xff\tC\n", b"\tD\n", b"\n", b"e,E\n", b"f\tF\tx\n"]
    inspection = inspect_pairs(lines)
    kinds = {f.kind: f.lines for f in inspection.serious}
    assert kinds == {"separator": (1, 6), "encoding": (3,), "source": (4,), "columns": (7,)}
    assert (inspection.pairs, inspection.unreadable) == (1, 5)
    csv = next(f for f in inspection.serious if f.kind == "separator")
    assert csv.message.startswith("2 lines are not pairs: ")
    assert csv.message.endswith("is this CSV?")


def test_compound_words_are_named_with_their_parts():
    rooms, things = ("kitchen", "hall"), ("lamp", "fan")
    pairs = [Pair(("dim", r, t), (f"{r}.{t}", "dim")) for r in rooms for t in things]
    (finding,) = look(format_tsv(pairs)).serious
    assert (finding.kind, finding.lines) == ("compound", (1, 2, 3, 4))
    assert "kitchen.lamp looks made of kitchen and lamp" in finding.message
    assert "write them apart" in finding.advice


def test_words_of_two_parts_that_are_not_words_of_the_source_are_compounds():
    plants = {"roses": "ROSE", "beans": "BEAN", "ferns": "FERN"}
    beds = {"north": "n", "south": "s"}
    pairs = [
        Pair(("water", "the", p, "in", "the", b, "bed"), ("valve.open", f"{plants[p]}@{beds[b]}"))
        for p in plants
        for b in beds
    ]
    (finding,) = look(format_tsv(pairs)).serious
    assert (finding.kind, finding.sign) == ("compound", "@")
    assert "ROSE@n looks made of ROSE and n" in finding.message
    # a part that is also a word by itself must be the same word: the sign is a word too
    pairs += [Pair(("water", "the", "roses"), ("valve.open", "ROSE"))]
    (finding,) = look(format_tsv(pairs)).serious
    assert finding.sign == "@"
    assert "--split-words @" in finding.advice


def test_parts_that_no_source_word_tells_apart_are_no_compounds():
    words = [f"{a}@{b}" for a in ("x", "y", "z") for b in ("n", "s")]
    pairs = [Pair((f"call{k}", "it"), ("do", word)) for k, word in enumerate(words)]
    for k, word in enumerate(words):  # each compound is one word of the source, in two sentences
        pairs.append(Pair((f"call{k}", "again"), ("redo", word)))
    assert [f.kind for f in look(format_tsv(pairs)).serious] == []


def test_targets_that_are_written_as_code_are_named_with_their_signs():
    things = ("lamp", "fan", "tv")
    pairs = [Pair(("dim", t), (f"dim({t}.level,2)",)) for t in things]
    (finding,) = look(format_tsv(pairs)).serious
    assert (finding.kind, finding.sign) == ("compound", "(),.")
    assert "such as dim(lamp.level,2)" in finding.message
    assert "--split-words '(),.'" in finding.advice
    spaced = [Pair(("dim", t), ("dim", "(", t, ")")) for t in things]
    assert look(format_tsv(spaced)).serious == ()


def test_a_label_in_the_first_column_is_found_and_columns_can_be_chosen():
    text = "".join(f"plain\t{line}\n" for line in GOOD.splitlines())
    assert ("label", ()) in found(text)
    assert found(text, columns="2,3") == set()
    assert [f.message for f in look(text, columns="2,3").findings] == ["column 1 is ignored: plain"]


def test_class_words_of_no_sentence_are_noted_and_phrases_are_looked_for():
    rooms = LexicalClass("rooms", ("the lamp", "hall"), ("LAMP", "HALL"))
    inspection = look(GOOD, classes=[rooms])
    assert inspection.serious == ()
    messages = [f.message for f in inspection.findings]
    assert "class rooms: no source has hall" in messages
    assert "class rooms: no target has HALL" in messages


def test_sentences_that_the_classes_read_in_two_ways_are_found():
    phrases = LexicalClass("p", ("dim the", "the lamp"), ("A", "B"))
    (finding,) = look(GOOD, classes=[phrases]).serious
    assert "'dim the' and 'the lamp' overlap" in finding.message
    assert finding.lines


def test_notes_do_not_harm_training():
    text = (
        f"{GOOD}\ndim the lamp\tLAMP dim\nstop\t\nste\u0301p the lamp\tLAMP step\n"
        f"dim\u00a0the lamp\tLAMP dim\n{'dim ' * 201}\tLONG\n"
    )
    inspection = look(text)
    assert inspection.serious == ()
    notes = {(f.kind, f.lines) for f in inspection.findings if f.kind != "once"}
    assert notes == {
        ("blank", (7,)),
        ("duplicate", (8, 11)),
        ("target", (9,)),
        ("normal form", (10,)),
        ("space", (11,)),
        ("long", (12,)),
    }
    once = [f for f in inspection.findings if f.kind == "once"]
    assert [f.lines for f in once] == [(9, 10), (10, 12)]


def test_with_characters_spaces_around_a_sentence_are_words():
    assert found("ab \txy\nba\tyx\n", characters=True) == {("space", (1,))}
    assert found("ab \txy\nba\tyx\n") == set()


def test_a_long_list_is_shortened_in_a_message_and_complete_in_lines():
    text = "".join(f"word{i}\tWORD{i}\n" for i in range(500))
    once = look(text).findings[0]
    assert once.message.endswith("word0, word1, word2, word3, word4 and 495 more")
    assert once.lines == tuple(range(1, 501))


def test_thirty_thousand_lines_take_seconds():
    text = "".join(f"dim the lamp {i % 700} now\tLAMP {i % 700} dim\n" for i in range(30_000))
    lines = text.encode().splitlines(keepends=True)
    start = time.process_time()
    inspect_pairs(lines)
    assert time.process_time() - start < 10
