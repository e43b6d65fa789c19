"""Classes, what follows from them, and their files."""

import pytest
from hypothesis import given, strategies as st

from equitrans.data.batches import Renaming, representative
from equitrans.data.classes import format_classes, read_classes
from equitrans.errors import DataError, SymmetryError, VocabularyError
from equitrans.files import INVISIBLE, normalized
from equitrans.paper.symmetry import LexicalClass, Symmetry
from equitrans.paper.vocabulary import EOS
from worlds import SOURCE, SYMMETRIES, TARGET, TURNS, VERBS, elements, moved, random_pairs, symmetry


def test_the_group_is_the_product_of_the_classes_factors():
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
def test_classes_number_words_alike_just_if_they_share_a_class(name):
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


@pytest.mark.parametrize("name", SYMMETRIES)
@given(seed=st.integers(0, 10**6))
def test_a_representative_stands_for_its_orbit_and_for_no_other(name, seed):
    world = SYMMETRIES[name]
    (pair,) = random_pairs(seed, 1)

    def encoded(p):
        return world.source.encode(p[0]), world.target.encode(p[1])

    orbit = {encoded(moved([pair], g, world)[0]) for g in elements(world)}
    found = representative(world, *encoded(pair))
    assert found in orbit
    assert {representative(world, *member) for member in orbit} == {found}


def test_class_words_that_the_data_do_not_show_are_known():
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
def test_classes_that_overlap_are_refused(classes, message):
    with pytest.raises(SymmetryError, match=message):
        Symmetry.of(classes, [])


def test_a_class_must_be_whole():
    with pytest.raises(SymmetryError, match="2 source words but 1 target words"):
        LexicalClass("c", ("a", "b"), ("A",))
    with pytest.raises(SymmetryError, match="duplicate source word 'a'"):
        LexicalClass("c", ("a", "a"), ("A", "B"))
    with pytest.raises(SymmetryError, match="is empty"):
        LexicalClass("c", (), ())
    with pytest.raises(VocabularyError, match="unknown word 'hop'"):
        Symmetry(SOURCE, TARGET, (LexicalClass("c", ("hop",), ("JUMP",)),))


names = (
    st.text(st.characters(blacklist_categories=("Cs",)), min_size=1, max_size=5)
    .map(normalized)
    .filter(lambda text: not INVISIBLE.search(text) and text not in VERBS.source + VERBS.target)
)


@given(
    st.lists(
        st.tuples(names, names), min_size=1, max_size=4, unique_by=(lambda t: t[0], lambda t: t[1])
    )
)
def test_classes_survive_their_file(tmp_path_factory, words):
    path = tmp_path_factory.mktemp("classes") / "c.toml"
    classes = (LexicalClass("a class", *zip(*words, strict=True)), VERBS)
    path.write_text(format_classes(classes), encoding="utf-8")
    assert read_classes(path) == classes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = ]", "not a TOML file: .*line 1"),
        ("", r"no \[\[class\]\] table"),
        ("klass = 1", "unknown key 'klass'"),
        ('[class]\nname = "v"', r"double brackets"),
        ('[[class]]\nname = "v"\nsorce = ["a"]\ntarget = ["A"]', "did you mean 'source'"),
        (
            '[[class]]\nname = "v"\nsource = "a"\ntarget = ["A"]',
            "source is .a.; expected a list",
        ),
        ('[[class]]\nname = "v"\nsource = ["a"]', "target is missing; expected a list"),
        ('[[class]]\nname = "v"\nsource = ["a", "b"]\ntarget = ["A"]', "2 source words but 1"),
        ("[[class]]\nname = 3", "name is 3"),
    ],
)
def test_a_wrong_classes_file_is_refused_with_its_name(tmp_path, text, message):
    path = tmp_path / "classes.toml"
    path.write_text(text)
    with pytest.raises((DataError, SymmetryError), match=message) as error:
        read_classes(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("name", SYMMETRIES)
@given(seed=st.integers(0, 10**6))
def test_a_renaming_can_be_undone_even_for_words_that_did_not_appear(name, seed):
    world = SYMMETRIES[name]
    ((source, _), (_, target)) = random_pairs(seed, 2)
    renaming = Renaming(world)
    renaming.source(world.source.encode(source))
    # what a model says of the representative, said of the original: some group element undoes it
    said = world.target.encode(target)
    undone = renaming.original_target(said)
    orbit = {world.target_action(g, said) for g in elements(world)}
    assert undone in orbit
    again = Renaming(world)
    again.source(world.source.encode(source))
    moved_classes = [c for c in world.classes if set(c.source) & set(source)]
    known = [w for c in moved_classes for w in c.target if c.source[c.target.index(w)] in source]
    for word in known:
        (number,) = world.target.encode((word,))
        assert again.original_target(again.target((number,))) == (number,)
