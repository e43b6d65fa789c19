"""Lexical classes and their group, actions and class functions."""

import pytest

from equitrans.errors import SymmetryError, VocabularyError
from equitrans.paper.symmetry import LexicalClass, Symmetry
from equitrans.paper.vocabulary import EOS
from worlds import SOURCE, SYMMETRIES, TARGET, TURNS, VERBS, moved, symmetry


def test_the_group_is_the_product_of_the_groups_of_the_classes():
    world = symmetry(VERBS, TURNS)
    assert repr(world.group) == "⟨(1234), (56)⟩"
    assert world.group.order == 8
    assert symmetry().group.order == 1
    assert symmetry(VERBS, TURNS, kind="symmetric").group.order == 48


def test_the_same_element_moves_both_sides_in_step():
    world = symmetry(VERBS, TURNS)
    (pair,) = moved(
        [(("walk", "left", "and"), ("WALK", "LTURN", "stop"))], world.group.generators[0], world
    )
    assert pair == (("look", "left", "and"), ("LOOK", "LTURN", "stop"))
    (pair,) = moved([(("walk", "left"), ("WALK", "LTURN"))], world.group.generators[1], world)
    assert pair == (("walk", "right"), ("WALK", "RTURN"))


@pytest.mark.parametrize("name", SYMMETRIES)
def test_words_have_the_same_class_number_if_and_only_if_they_share_a_class(name):
    world = SYMMETRIES[name]
    for side, words, numbers in (
        ("source", SOURCE.words, world.source_classes),
        ("target", TARGET.words, world.target_classes),
    ):
        home = {w: c.name for c in world.classes for w in getattr(c, side)}
        vocabulary = getattr(world, side)
        assert numbers[: EOS + 1] == (0, 1, 2)
        assert sorted(set(numbers)) == list(range(len(set(numbers))))
        for v in words:
            for w in words:
                same = numbers[vocabulary.index[v]] == numbers[vocabulary.index[w]]
                assert same == (v == w or (v in home and home[v] == home.get(w)))


def test_the_vocabulary_has_class_words_that_no_pair_has():
    world = Symmetry.of([VERBS], [(("walk", "twice"), ("WALK", "WALK"))])
    assert set(world.source.words) == {"walk", "look", "run", "jump", "twice"}


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ([VERBS, LexicalClass("more", ("jump",), ("X",))], "source word 'jump' is in two classes"),
        (
            [VERBS, LexicalClass("more", ("hop",), ("JUMP",))],
            "target word 'JUMP' is in two classes",
        ),
        ([VERBS, LexicalClass("verbs", ("hop",), ("HOP",))], "duplicate class name 'verbs'"),
    ],
)
def test_overlapping_classes_raise_an_error(classes, message):
    with pytest.raises(SymmetryError, match=message):
        Symmetry.of(classes, [])


def test_an_incomplete_class_raises_an_error():
    with pytest.raises(SymmetryError, match="2 source words but 1 target words"):
        LexicalClass("c", ("a", "b"), ("A",))
    with pytest.raises(SymmetryError, match="duplicate source word 'a'"):
        LexicalClass("c", ("a", "a"), ("A", "B"))
    with pytest.raises(SymmetryError, match="is empty"):
        LexicalClass("c", (), ())
    with pytest.raises(VocabularyError, match="unknown word 'hop'"):
        Symmetry(SOURCE, TARGET, (LexicalClass("c", ("hop",), ("JUMP",)),))
