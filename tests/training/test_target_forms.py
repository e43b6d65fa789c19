"""Target columns that the words around a word choose, such as cases."""

import random

import pytest

from equitrans import LexicalClass, Pair, Trained, TransducerConfig, discover, extend, fit
from equitrans.data import Reading
from equitrans.training.alone import answerer

NOUNS = tuple(f"{a}{b}" for a in "bdfgkl" for b in ("a", "e", "o", "u"))
VERBS = ("see", "take", "hold")
CASES = tuple(f"{noun.upper()}N" for noun in NOUNS)
CLASSES = (
    LexicalClass(
        "nouns", NOUNS, tuple(map(str.upper, NOUNS)), target_forms=(("accusative", CASES),)
    ),
    LexicalClass("verbs", VERBS, tuple(map(str.upper, VERBS))),
)


def sentences(n: int, clauses: tuple[int, ...], *, seed: int) -> list[Pair]:
    """Subjects have one form, objects the other."""
    draw = random.Random(seed)
    pairs = []
    for _ in range(n):
        source: list[str] = []
        target: list[str] = []
        for i in range(draw.choice(clauses)):
            subject, thing = draw.sample(NOUNS, 2)
            verb = draw.choice(VERBS)
            source += ["and"] * (i > 0) + [subject, verb]
            target += [verb.upper(), subject.upper()]
            if draw.random() < 0.7:
                source.append(thing)
                target.append(f"{thing.upper()}N")
        pairs.append(Pair(tuple(source), tuple(target)))
    return pairs


@pytest.fixture(scope="module")
def trained() -> Trained:
    return fit(sentences(120, (1, 2), seed=0), CLASSES, model=TransducerConfig(aligner="recursive"))


def test_a_form_is_read_as_a_word_and_a_mark_and_written_again():
    reading = Reading(CLASSES)
    pair = Pair(("ba", "see", "da"), ("SEE", "BA", "DAN"))
    read = reading.source(pair.source)
    symbols = reading.target(pair.target, read)
    assert symbols == ("SEE", "BA", "DA", "‹+ accusative›")
    assert reading.write(symbols, read) == pair.target
    assert reading.write(("‹+ accusative›", "SEE"), read) == ("SEE",)  # nothing to mark
    assert reading.write((), read) == ()


def test_a_refused_sentence_has_no_words(trained):
    (refused,) = trained.predict(["see see see"])
    assert refused.refused
    assert refused.words == ()


def test_a_column_that_a_source_column_has_too_is_no_mark():
    forms = (("plural", ("das",)),), (("plural", ("DAS",)),)
    assert LexicalClass("nouns", ("da",), ("DA",), *forms).inflected == {}


def test_rules_choose_forms_in_longer_sentences(trained):
    test = sentences(40, (3, 4), seed=1)
    assert trained.score(test) == 1.0
    plain = answerer(trained)
    assert [plain.answer(pair.source).words for pair in test] == [pair.target for pair in test]


def test_a_new_row_has_both_forms(trained):
    more = extend(trained, "nouns", {"zi": ("ZI", "ZIN")}).trained
    assert more.predict(["zi see ba and ba see zi"])[0].words == (
        *("SEE", "ZI", "BAN"),
        *("SEE", "BA", "ZIN"),
    )
    assert more.audit(sentences(5, (1,), seed=2)).passed


@pytest.mark.parametrize("seed", [3, 4])
def test_discovery_finds_the_forms(seed):
    found = discover(sentences(250, (1, 2), seed=seed))
    nouns = next(c for c in found.classes if "ba" in c.source)
    rows = {*zip(nouns.source, nouns.target, nouns.target_forms[0][1], strict=True)}
    assert rows == {(n, n.upper(), f"{n.upper()}N") for n in NOUNS}
    notes = found.evidence[found.classes.index(nouns)].notes
    assert any("the words around them choose it" in note for note in notes)


def test_one_word_with_two_translations_has_no_column():
    pairs = [p for p in sentences(250, (1,), seed=5) if "ba" in p.source or len(p.source) == 2]
    assert all(not c.target_forms for c in discover(pairs).classes)
