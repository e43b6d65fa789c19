"""equitrans suggest and Trained.suggest: sentences that are worth asking for."""

import json

import pytest

from equitrans import Symmetry, Trained, TransducerConfig, fit
from equitrans.data.scan import CLASSES, load_split
from equitrans.errors import ConfigError

pytestmark = pytest.mark.usefixtures("float32")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Rules of forty commands of SCAN, and a model without rules."""
    path = tmp_path_factory.mktemp("suggest")
    pairs = [pair for pair in load_split("simple").train if len(pair.source) < 6][:40]
    rules = TransducerConfig(aligner="recursive")
    fit(pairs, CLASSES["both"], model=rules).save(path / "rules")
    return path, pairs


def test_suggestions_are_new_sentences_with_reasons(run, folder):
    path, pairs = folder
    status, out, err = run("suggest", path / "rules", "--n", 5, "--json")
    assert (status, err) == (0, "")
    found = json.loads(out)
    assert 0 < len(found) <= 5
    known = {" ".join(pair.source) for pair in pairs}
    words = {word for pair in pairs for word in pair.source} | {"jump", "run", "look", "walk"}
    for each in found:
        assert each["source"] not in known
        assert set(each["source"].split()) <= words | {"left", "right"}
        assert each["reasons"]
        assert each["worth"] > 0
    assert len({each["source"] for each in found}) == len(found)
    _, out, _ = run("suggest", path / "rules", "--n", 5)
    assert [line.split("  ")[0] for line in out.splitlines()] == [e["source"] for e in found]


def test_a_model_without_open_questions_says_so(run, folder, monkeypatch):
    path, _ = folder
    monkeypatch.setattr(Trained, "suggest", lambda self, n: [])
    status, out, err = run("suggest", path / "rules")
    assert (status, out) == (0, "")
    assert "no sentence to suggest" in err


def test_a_derivation_is_a_value_and_a_model_without_rules_has_none(folder):
    path, pairs = folder
    trained = Trained.load(path / "rules")
    derived = trained.derive(pairs[0].source)
    assert derived is not None
    symmetry = Symmetry.of(CLASSES["both"], pairs)
    plain = Trained.new(TransducerConfig(), symmetry, max_length=9)
    for ask in (lambda: plain.derive("walk"), lambda: plain.suggest(3)):
        with pytest.raises(ConfigError, match="has no rules"):
            ask()
