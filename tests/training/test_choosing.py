"""The choice between discovered classes and their rivals by bits."""

import random

from equitrans.data.discovery import Discovery, Evidence, discover
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


def sums(count, seed):
    """Sums of products; a product binds first."""
    draw = random.Random(seed)
    found = []
    for _ in range(count):
        sizes = draw.choices((1, 1, 2), k=draw.choice((1, 2, 3)))
        terms = [draw.choices("abc", k=size) for size in sizes]
        target = ""
        for term in terms:
            product = term[0].upper()
            for factor in term[1:]:
                product = f"( MUL {product} {factor.upper()} )"
            target = f"( ADD {target} {product} )" if target else product
        found.append((" plus ".join(map(" times ".join, terms)), target))
    return as_pairs(found)


def test_a_small_class_that_pairs_contradict_is_undone_if_the_rules_then_explain_more():
    pairs = sums(40, 1)
    letters = LexicalClass("letters", tuple("abc"), tuple("ABC"))
    signs = LexicalClass("signs", ("plus", "times"), ("ADD", "MUL"))

    def best(contradicted):
        evidence = [Evidence(9, n, None, {}) for n in (0, contradicted)]
        found = Discovery((letters, signs), tuple(evidence), {}, ())
        return best_classes(pairs, found, Reading())

    assert best(0) == (letters, signs)  # nothing to doubt
    assert best(1) == (letters,)
    model = fit(pairs, [letters], model=TransducerConfig(aligner="recursive"))
    assert model.score(sums(40, 2)) == 1.0
