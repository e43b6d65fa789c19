"""Files of lexical classes."""

import pytest
from hypothesis import given, strategies as st

from equitrans.data.classes import format_classes, read_classes
from equitrans.errors import DataError, SymmetryError
from equitrans.files import INVISIBLE, normalized
from equitrans.paper.symmetry import LexicalClass
from worlds import VERBS

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
def test_classes_written_to_a_file_are_read_unchanged(tmp_path_factory, words):
    path = tmp_path_factory.mktemp("classes") / "c.toml"
    classes = (LexicalClass("a class", *zip(*words, strict=True)), VERBS)
    path.write_text(format_classes(classes), encoding="utf-8")
    assert read_classes(path) == classes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = ]", "not a TOML file: .*line 1"),
        ("", r"no \[\[class\]\] table"),
        ("klass = 1", "'klass' is unknown"),
        ('[class]\nname = "v"', r"double brackets"),
        ('[[class]]\nname = "v"\nsorce = ["a"]\ntarget = ["A"]', "did you mean 'source'"),
        (
            '[[class]]\nname = "v"\nsource = "a"\ntarget = ["A"]',
            "source is .a.; it must be a list",
        ),
        ('[[class]]\nname = "v"\nsource = ["a"]', "target is missing; it must be a list"),
        ('[[class]]\nname = "v"\nsource = ["a", "b"]\ntarget = ["A"]', "2 source words but 1"),
        ("[[class]]\nname = 3", "name is 3"),
    ],
)
def test_a_malformed_classes_file_raises_with_its_path(tmp_path, text, message):
    path = tmp_path / "classes.toml"
    path.write_text(text)
    with pytest.raises((DataError, SymmetryError), match=message) as error:
        read_classes(path)
    assert str(path) in str(error.value)
