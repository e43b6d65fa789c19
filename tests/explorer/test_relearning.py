"""Learning again from the page, and the sentences that two models answer differently."""

import pytest

from equitrans import TransducerConfig, fit
from equitrans.data import Data
from equitrans.errors import DataError
from equitrans.explorer import differences, lessons
from equitrans.explorer.entry import Entry
from equitrans.explorer.queue import BusyError
from equitrans.explorer.registry import Registry
from equitrans.paper import LexicalClass, Symmetry
from equitrans.training import Trained

pytestmark = pytest.mark.usefixtures("float32")

ONE = [(f"{v} the {d}", f"{d.upper()} {v}") for v in ("start", "stop") for d in ("lamp", "fan")]
TWICE = [(f"{x} twice", f"{y} {y}") for x, y in ONE[:2]]


def entry(pairs, name="rules"):
    model = fit(pairs, "discover", model=TransducerConfig(aligner="recursive"))
    data = Data(model._pairs(pairs), (), (), model.symmetry.classes, "", "")
    return Entry(name, model, None, data)


@pytest.fixture
def registry():
    return Registry([entry(ONE)])


def finished(asked, *question):
    """The last report of something that goes on in another thread."""
    first = asked.ask(*question)
    assert first.state in ("working", "done")
    asked._found[question].result()
    return asked.ask(*question)


def test_what_changes_with_an_answer_is_reported_and_the_new_model_is_there(registry):
    asked = lessons.Lessons(registry)
    found = finished(asked, "rules", tuple("\t".join(pair) for pair in TWICE))
    assert (found.state, found.name, found.asked) == ("done", "rules+1", len(ONE + TWICE))
    assert any("twice" in rule for rule in found.rules_gained)
    assert found.unexplained == (0, 0)
    assert {one.command for one in found.changed} == {source for source, _ in TWICE}
    assert all("twice" in one.before for one in found.changed)
    new = registry.find("rules+1")
    assert new.trained.predict(["stop the fan twice"])[0].words == ("FAN", "stop", "FAN", "stop")
    assert len(new.data.train) == len(ONE + TWICE)
    assert registry.find("rules").trained.predict(["stop the fan twice"])[0].refused


def test_an_answer_replaces_the_pair_of_its_sentence(registry):
    asked = lessons.Lessons(registry)
    pairs = asked._pairs(registry.find("rules"), ("start the lamp\tLAMP on",))
    assert len(pairs) == len(ONE)
    assert pairs[-1].target == ("LAMP", "on")


@pytest.mark.parametrize(
    ("answer", "message"),
    [("start the lamp", "a sentence, a tab and its target"), ("\tLAMP", "a tab and its target")],
)
def test_a_wrong_answer_is_refused(registry, answer, message):
    with pytest.raises(DataError, match=message):
        lessons.Lessons(registry).ask("rules", (answer,))


def test_models_without_rules_or_pairs_and_too_many_are_not_learned(registry, monkeypatch):
    verbs = LexicalClass("verbs", ("walk",), ("WALK",))
    trained = Trained.new(TransducerConfig(), Symmetry.of([verbs], []), max_length=3)
    registry.entries["lstm"] = Entry("lstm", trained, None)
    registry.entries["bare"] = Entry("bare", registry.find("rules").trained, None)
    asked = lessons.Lessons(registry)
    with pytest.raises(DataError, match="only a model with rules"):
        asked.ask("lstm", ("walk\tWALK",))
    with pytest.raises(DataError, match="without its data"):
        asked.ask("bare", ("walk\tWALK",))
    monkeypatch.setattr(lessons, "MOST_PAIRS", 4)
    with pytest.raises(DataError, match="5 pairs, too many"):
        asked.ask("rules", ("walk\tWALK",))
    monkeypatch.setattr(lessons, "MOST_MODELS", 0)
    with pytest.raises(BusyError, match="start equitrans explore again"):
        asked.ask("rules", ("start the lamp\tLAMP on",))


def test_two_models_are_compared_on_the_pairs_of_the_first():
    one, other = entry(ONE + TWICE, "new"), entry(ONE, "old")
    comparison = differences.Comparison(one, other)
    assert comparison.report().state == "working"
    assert list(comparison.steps())
    found = comparison.report()
    assert (found.state, found.test_set) == ("done", "training pairs of new")
    assert (found.done, found.of, found.right) == (6, 6, (6, 4))
    assert [s.command for s in found.sentences] == [source for source, _ in TWICE]
    assert found.sentences[0].one == TWICE[0][1]
    assert found.sentences[0].other.startswith("refused: ")
    assert found.sentences[0].right == (True, False)
    without = differences.Comparison(Entry("bare", one.trained, None), other)
    assert "without its data" in without.missing
