"""The choice between discovered classes and their rivals by bits."""

from equitrans.data.discovery import discover
from equitrans.data.pairs import as_pairs
from equitrans.data.reading import Reading
from equitrans.lexical import LexicalClass
from equitrans.models.configs import TransducerConfig
from equitrans.paper.symmetry import Symmetry
from equitrans.training.choosing import best_classes, source_bits
from equitrans.training.fitting import fit


def test_rivals_are_named_where_pairs_are_few_and_words_are_left_out():
    pairs = as_pairs([("a x", "A X"), ("b x", "B X"), ("c y", "C Y Y"), ("d", "D")])
    found = discover(pairs)
    ((whole,),) = found.rivals
    assert len(whole.source) > max(len(c.source) for c in found.classes)
    assert discover(pairs * 50).rivals == found.rivals
    more = as_pairs([(f"a x {i}", f"A X I{i}") for i in range(60)])
    assert discover([*pairs, *more]).rivals == ()


def test_sources_object_to_a_class_of_words_in_different_places():
    draws = [(v, n) for v in "abcd" for n in "wxyz"]
    pairs = as_pairs([(f"{v} {n}", f"{v.upper()} {n.upper()}") for v, n in draws])

    def bits(*classes):
        tables = [LexicalClass(c, tuple(c), tuple(c.upper())) for c in classes]
        return source_bits(pairs, Symmetry.of(tables, pairs))

    assert bits("abcd", "wxyz") < bits("abcdwxyz")


def test_without_rivals_the_discovered_classes_are_kept():
    pairs = as_pairs([(f"{w} twice", f"{w} {w}") for w in "abc"] + [(w, w) for w in "abc"])
    found = discover(pairs)
    assert found.rivals == ()
    assert best_classes(pairs, found, Reading()) == found.classes


def test_a_model_of_few_pairs_gets_the_classes_with_the_fewest_bits():
    pairs = [("dax", "RED"), ("wif", "BLUE"), ("zup", "PINK"), ("dax fep", "RED RED"),
             ("wif fep", "BLUE BLUE"), ("zup gaz dax", "RED PINK")]  # fmt: skip
    model = fit(pairs, "discover", model=TransducerConfig(aligner="recursive"))
    (c,) = model.symmetry.classes
    assert set(c.source) == {"dax", "wif", "zup"}
    assert model.predict(["zup fep"])[0].words == ("PINK", "PINK")
