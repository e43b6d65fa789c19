"""Models with tables: phrases, other spellings, columns and new words, end to end."""

import math
import random

import pytest
import torch

from equitrans.errors import DataError, SymmetryError
from equitrans.lexical import LexicalClass
from equitrans.models.configs import TransducerConfig
from equitrans.training.config import TrainingConfig
from equitrans.training.fitting import extend, fit
from equitrans.training.trained import Trained

ROOMS = LexicalClass(
    "rooms", ("living room", "hall"), ("LIVING", "HALL"), aliases=(("hallway", "hall"),)
)
NUMBERS = LexicalClass("numbers", (), (), pattern="[0-9]+")
NOUNS = LexicalClass("nouns", ("dog", "cat"), ("DOG", "CAT"), (("plural", ("dogs", "cats")),))
PAIRS = [
    ("dim the hall", "DIM HALL"),
    ("dim the living room", "DIM LIVING"),
    ("put hallway to 20", "HALL 20"),
    ("put living room to 5", "LIVING 5"),
    ("see dog", "SEE DOG"),
    ("see dogs", "SEE DOG PL"),
    ("see cats", "SEE CAT PL"),
]


def fitted(aligner):
    return fit(
        PAIRS,
        [ROOMS, NUMBERS, NOUNS],
        model=TransducerConfig(aligner=aligner),
        training=TrainingConfig(updates=20),
    )


@pytest.fixture(scope="module")
def rules():
    return fitted("recursive")


@pytest.fixture(scope="module", params=["recursive", "lstm"])
def trained(request, rules):
    return rules if request.param == "recursive" else fitted("lstm")


def test_sentences_with_new_combinations_and_new_numbers_are_predicted(rules):
    asked = ["put hall to 37", "see cat", "put living room to 99"]
    answers = [" ".join(p.words) for p in rules.predict(asked)]
    assert answers == ["HALL 37", "SEE CAT", "LIVING 99"]
    assert rules.score(PAIRS) == 1.0


def test_a_new_word_and_another_spelling_have_the_likelihood_of_their_classmates(trained):
    def loss(number, room):
        return trained.evaluate([(f"put {room} to {number}", f"HALL {number}")]).loss

    expected = loss("20", "hall")
    assert math.isclose(loss("4711", "hall"), expected, rel_tol=1e-12)
    assert math.isclose(loss("5", "hallway"), expected, rel_tol=1e-12)


def test_evaluation_alignment_orbits_and_audit_read_and_write(trained):
    report = trained.evaluate([*PAIRS, ("put hall to 6", "HALL 6")])
    assert report.scored == len(PAIRS) + 1
    assert ("put", "<rooms>", "to", "<numbers>") in report.templates
    aligned = trained.align(("put living room to 8", "LIVING 8"))
    assert aligned.source[2] == "living room"
    assert aligned.target[1] == "8"
    family = trained.orbits("put living room to 8", "LIVING 8").family
    assert [" ".join(y) for _, y in family] == ["LIVING 8", "HALL 8"]
    assert trained.audit(PAIRS).passed


def test_a_model_with_tables_is_saved_and_loaded(trained, tmp_path):
    trained.save_pretrained(tmp_path / "model")
    loaded = Trained.from_pretrained(tmp_path / "model")
    asked = ["put hallway to 44", "see cats"]
    for one, other in zip(loaded.predict(asked), trained.predict(asked), strict=True):
        assert one.words == other.words
        assert math.isclose(one.log_prob, other.log_prob, rel_tol=1e-5)  # weights are float32
    assert loaded.symmetry == trained.symmetry


def test_a_row_joins_a_table(rules):
    longer = extend(rules, "nouns", {("cow", "cows"): "COW", "fish": "FISH"}).trained
    answers = [" ".join(p.words) for p in longer.predict(["see cows", "see cow", "see fish"])]
    assert answers == ["SEE COW PL", "SEE COW", "SEE FISH"]
    more = extend(longer, "rooms", {"dining room": "DINING"}).trained
    assert more.predict(["put dining room to 3"])[0].words == ("DINING", "3")
    with pytest.raises(SymmetryError, match="3 source forms of a word"):
        extend(rules, "nouns", {("cow", "cows", "cattle"): "COW"})


def test_target_columns_follow_source_columns():
    nouns = LexicalClass(
        "nouns",
        ("dog", "cat"),
        ("DOG", "CAT"),
        (("plural", ("dogs", "cats")),),
        (("plural", ("DOGS", "CATS")),),
    )
    pairs = [("see dog", "SEE DOG"), ("see cats", "SEE CATS"), ("see dogs", "SEE DOGS")]
    learned = fit(pairs, [nouns], model=TransducerConfig(aligner="recursive"))
    assert learned.score(pairs) == 1.0
    assert learned.predict(["see cat"])[0].words == ("SEE", "CAT")


def test_an_unknown_word_joins_an_open_class_and_two_readings_are_refused():
    names = LexicalClass("names", ("ann", "bob", "new york", "york city"), ("a", "b", "c", "d"))
    closed = fit([("call ann", "CALL a")], [names], model=TransducerConfig(aligner="recursive"))
    assert "overlap" in closed.predict(["call new york city"])[0].reason
    with pytest.raises(DataError, match="overlap"):
        fit([("call new york city", "CALL c")], [names])
    people = LexicalClass("names", ("ann", "bob"), ("ann", "bob"), open=True)
    pairs = [("call ann", "CALL ann"), ("call ann and call bob", "CALL ann CALL bob")]
    model = fit(pairs, [people], model=TransducerConfig(aligner="recursive"))
    (best,) = model.predict(["call zed and call ann and call ivy"])
    assert best.words == ("CALL", "zed", "CALL", "ann", "CALL", "ivy")


def test_a_discovered_class_that_is_open_takes_words_only_where_it_stands(tmp_path):
    draw = random.Random(0)
    names = [a + b for a in ("zor", "mik", "ven") for b in ("ka", "lo", "ni")]
    said = [[(draw.choice(("call", "email")), name)] for name in names * 2]
    said += [[*draw.choice(said), *draw.choice(said)] for _ in range(30)]
    pairs = [
        (" and ".join(map(" ".join, some)), " ".join(f"{v.upper()} {n}" for v, n in some))
        for some in said
    ]
    fit(pairs, "discover", model=TransducerConfig(aligner="recursive")).save(tmp_path / "model")
    model = Trained.load(tmp_path / "model")
    (people,) = (c for c in model.symmetry.classes if c.open)
    right, misplaced = model.predict(["call bob and email ann", "bob and call ann"])
    assert right.words == ("CALL", "bob", "EMAIL", "ann")
    assert "unknown word 'bob'; words of class" in misplaced.reason
    assert people.after


def test_the_stack_of_an_open_class_is_symmetric():
    torch.manual_seed(0)
    people = LexicalClass("names", ("ann", "bob"), ("ann", "bob"), open=True)
    model = fit([("ann", "ann")], [people], training=TrainingConfig(updates=1)).model
    assert model.translator.factors[0].symmetric
