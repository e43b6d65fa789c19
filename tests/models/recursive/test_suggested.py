"""Suggested sentences are whole sentences of words that pairs have."""

from equitrans.lexical import is_filler
from equitrans.models.configs import TransducerConfig
from equitrans.models.recursive.chart import parse
from equitrans.models.recursive.rules import HOLE, Grammar, Rule, constant
from equitrans.models.recursive.suggestions import parts
from equitrans.training.fitting import fit

TURN, ON, THE, LAMP, AND = 3, 4, 5, 6, 7


def test_parts_are_constituents_or_stand_between_words_that_join():
    before, after = (TURN, ON, THE, LAMP), (TURN, THE, LAMP, ON)
    both = (*before, AND, TURN, LAMP)
    grammar = Grammar(
        [Rule(before, (~1, 3)), Rule(after, (~1, 2)), Rule((HOLE, AND, HOLE), (0, ~2, 2))]
    )
    targets = {before: (constant(1), chr(3)), after: (constant(1), chr(2))}
    trees = {form: parse(grammar, form, target).tree() for form, target in targets.items()}
    assert None not in trees.values()
    # 'turn on' begins and ends like a sentence; 'turn lamp' stands behind 'and'
    assert parts({**trees, both: None}, grammar) == ((TURN, LAMP),)
    assert parts(trees, grammar) == ()
    assert (TURN, ON) in parts(dict.fromkeys(trees), Grammar())  # nothing is known yet


def test_suggestions_have_numbers_and_no_places_of_open_classes():
    pairs = [
        (f"dim the {name} to {n}", f"{name.upper()} level {n}")
        for name, n in (("lamp", 20), ("fan", 35), ("lamp", 45), ("fan", 20), ("heater", 35))
    ]
    pairs += [
        ("dim the lamp to 45 and dim the fan to 20", "LAMP level 45 ; FAN level 20"),
        ("dim the fan to 35 twice", "FAN level 35 ; FAN level 35"),
    ]
    trained = fit(pairs, "discover", model=TransducerConfig(aligner="recursive"))
    assert any(c.is_open for c in trained.symmetry.classes)
    found = trained.suggest(20)
    assert any("twice" in each.source for each in found)
    assert not any(is_filler(word) for each in found for word in each.source)
