"""The start of the translator: a lexicon of the training pairs."""

import pytest
import torch

from equitrans import LexicalClass, Pair, Trained, TrainingConfig, TransducerConfig, fit
from equitrans.models import AttentionConfig
from equitrans.paper import BOS, EOS, Symmetry
from equitrans.training.config import recipe, usual_training
from equitrans.training.translations import first_translations, start_translator

DEVICES = LexicalClass("devices", ("lamp", "fan", "radio"), ("LAMP", "FAN", "RADIO"))
NUMBERS = LexicalClass("numbers", (), (), pattern="[0-9]+")
PAIRS = [
    *(Pair(("turn", "on", "the", d), ("set", d.upper(), "on")) for d in DEVICES.source),
    *(Pair(("turn", "off", "the", d), ("set", d.upper(), "off")) for d in DEVICES.source),
    *(Pair(("is", "the", d, "on"), ("get", d.upper(), "state")) for d in DEVICES.source[:2]),
    Pair(("dim", "the", "lamp", "to", "‹numbers 3›"), ("set", "LAMP", "level", "‹numbers 3›")),
    Pair(("dim", "the", "fan", "to", "‹numbers 7›"), ("set", "FAN", "level", "‹numbers 7›")),
]
SYMMETRY = Symmetry.of([DEVICES, NUMBERS], PAIRS)


def likely(table: torch.Tensor) -> dict[str, str]:
    """The target word of each source word that is sure of it."""
    words = dict(enumerate(SYMMETRY.source.words, start=EOS + 1)) | {BOS: "BOS", EOS: "EOS"}
    targets = dict(enumerate(SYMMETRY.target.words, start=EOS + 1)) | {EOS: "EOS"}
    best = table.max(1)
    return {words[x]: targets[int(best.indices[x])] for x in words if best.values[x] > 0.6}


def test_each_word_writes_one_word_and_each_target_word_is_written():
    found = likely(first_translations(SYMMETRY, PAIRS))
    own = {"lamp": "LAMP", "fan": "FAN", "on": "on", "off": "off", "is": "get", "EOS": "EOS"}
    assert own.items() <= found.items()
    assert found["‹numbers 3›"] == "‹numbers 3›"
    for source, target in PAIRS:
        written = {found.get(word) for word in ("BOS", *source)}
        assert written >= {*target}  # also 'state', which has no source word of its own


def test_the_first_translations_are_an_equivariant_distribution():
    table = first_translations(SYMMETRY, PAIRS)
    torch.testing.assert_close(table.sum(1), torch.ones(len(table)).double())
    source, target = SYMMETRY.source_action, SYMMETRY.target_action
    for g in source.group.generators:
        x = torch.tensor(source(g, range(len(table))))
        y = torch.tensor(target(g, range(table.shape[1])))
        torch.testing.assert_close(table[x][:, y], table)


@pytest.mark.parametrize("translator", ["stack", "table"])
def test_a_translator_starts_with_the_lexicon(translator):
    config = TransducerConfig(translator=translator)
    model = Trained.new(config, SYMMETRY, max_length=9).model
    start_translator(model, PAIRS)
    with torch.no_grad():
        found = model.translator(torch.arange(len(SYMMETRY.source))).exp()
    assert likely(found) == likely(first_translations(SYMMETRY, PAIRS))


def test_a_model_without_translator_keeps_its_weights():
    model = Trained.new(AttentionConfig(), SYMMETRY, max_length=9).model
    before = {name: value.clone() for name, value in model.state_dict().items()}
    start_translator(model, PAIRS)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_own_data_start_with_the_lexicon_and_scan_does_not():
    assert usual_training(TransducerConfig()).lexicon
    assert "training.lexicon" not in recipe("default", "add_jump")
    assert not TrainingConfig().lexicon


def test_a_few_pairs_teach_new_numbers_and_a_word_without_source():
    dim = [("dim the lamp to 3", "set LAMP level 3"), ("dim the fan to 7", "set FAN level 7")]
    pairs = [*PAIRS[:8], *dim]
    training = TrainingConfig(updates=150, lexicon=True)
    trained = fit(pairs, [DEVICES, NUMBERS], training=training)
    asked = ["dim the radio to 58", "is the radio on"]
    assert [" ".join(p.words) for p in trained.predict(asked)] == [
        "set RADIO level 58",
        "get RADIO state",
    ]
