"""learn: rules, a judgement by cross-validation over forms, and what to write next."""

import json
import warnings
from dataclasses import replace

import pytest

from equitrans import LexicalClass, Trained, TrainingConfig, TransducerConfig, fit, learn
from equitrans.errors import ConfigError, DataError
from equitrans.models import Suggestion
from equitrans.training.alone import answerer
from equitrans.training.asking import sentences_to_ask
from equitrans.training.studied import _refusals, with_pairs
from equitrans.training.study import compound_sign, divide

pytestmark = pytest.mark.usefixtures("float32")

ONE = [(f"{v} the {d}", f"{d.upper()} {v}") for v in ("start", "stop") for d in ("lamp", "fan")]
TWICE = [(f"{x} twice", f"{y} {y}") for x, y in ONE[:2]]
AND = [(f"{x} and {z}", f"{y} {w}") for (x, y), (z, w) in [(ONE[0], ONE[3]), (ONE[1], ONE[2])]]
WRONG = [("stop the fan twice", "LAMP start")]
PAIRS = ONE + TWICE + AND


@pytest.fixture(scope="module")
def study():
    return learn(PAIRS + WRONG, folds=2, second=TrainingConfig(updates=5))


def test_the_rules_explain_all_pairs_but_the_wrong_one(study):
    assert study.trained.predict(["stop the fan twice and stop the lamp"])[0].words == (
        *("FAN", "stop", "FAN", "stop"),
        *("LAMP", "stop"),
    )
    assert [pair.target for pair, _ in study.grammar.exceptions] == [("LAMP", "start")]


def test_every_pair_is_held_out_once_and_judged(study):
    held = study.held
    assert held is not None
    assert held.folds == held.planned == 2
    assert len(held.report.pairs) == len(set(held.report.pairs)) == len(PAIRS + WRONG)
    assert held.right + held.wrong + held.report.refused == len(held.report.pairs)
    assert 0 <= held.sure[1] <= held.sure[0] <= held.right + held.wrong
    assert 0 <= held.second[1] <= held.second[0] <= held.report.refused


def test_the_model_has_the_figures_of_its_judgement(study):
    figures = study.trained.origin.figures
    assert figures.test_set == "held-out forms, 2 of 2 folds"
    assert (figures.test_right, figures.test_pairs) == (study.held.right, len(PAIRS + WRONG))


def test_the_page_names_classes_rules_unexplained_pairs_and_suggestions(study):
    page = str(study)
    for text in (
        "lamp → LAMP",
        "twice",
        "Held-out pairs",
        "there are only ",
        "their search for rules is shorter",
        "Unexplained: 1 pair",
        "Write next",
    ):
        assert text in page
    assert "stop the fan twice → LAMP start" in page
    assert "the rules say: FAN stop FAN stop" in page
    content = json.loads(json.dumps(study.to_dict()))
    assert content["explained"] == content["pairs"] - 1
    assert content["held_out"]["right"] == study.held.right
    assert len(content["held_out"]["answers"]) == len(PAIRS + WRONG)


def test_the_page_says_that_no_question_is_open(study):
    page = str(replace(study, suggestions=()))
    assert "Write next\n  no question about these rules is open" in page


def test_pairs_of_one_form_share_a_part(study):
    parts = divide(study.held.report.pairs, study.trained, 3, seed=1)
    forms = [{study.trained.template(pair.source) for pair in part} for part in parts]
    assert len(parts) == 3
    assert all(a.isdisjoint(b) for i, a in enumerate(forms) for b in forms[:i])
    assert sum(map(len, parts)) == len(PAIRS + WRONG)


def test_without_time_one_fold_is_judged():
    held = learn(ONE + TWICE, seconds=0.0).held
    assert held is not None
    assert held.folds == 1 < held.planned


def test_pairs_of_one_form_are_not_judged():
    study = learn(ONE)
    assert study.held is None
    assert "all pairs have one form" in str(study)
    assert learn(ONE + TWICE, folds=0).held is None


def test_compound_target_words_are_read_apart():
    rooms, things = ("kitchen", "office", "attic"), ("lamp", "fan", "radio")
    pairs = [(f"dim {t} in {r}", f"set {r}.{t}") for r in rooms for t in things][:8]
    study = learn(pairs)
    assert study.trained.split == "."
    assert study.trained.predict(["dim radio in attic"])[0].words == ("set", "attic.radio")
    assert compound_sign(study.trained._pairs(ONE)) is None


def test_compounds_of_parts_that_stand_alone_too_are_read_apart():
    plants = {"roses": "ROSE", "beans": "BEAN", "ferns": "FERN"}
    beds = {"north": "n", "south": "s"}
    pairs = [(f"water the {p}", f"open {t}") for p, t in plants.items()]
    pairs += [
        (f"water the {p} in the {b} bed", f"open {t}@{place}")
        for p, t in plants.items()
        for b, place in beds.items()
    ]
    told: list[str] = []
    study = learn(pairs[:-1], folds=0, tell=told.append)
    assert study.trained.split == "@"
    assert told[0] == "reading target words apart at @"
    asked = "water the ferns in the south bed"
    assert study.trained.predict([asked])[0].words == ("open", "FERN@s")
    assert answerer(study.trained).answer(asked).text == "open FERN@s"


def test_suggestions_begin_and_end_like_pairs(study, monkeypatch):
    sources = [
        "twice stop the fan",
        "stop the fan and",
        "stop stop the fan",
        "start the lamp twice",  # a pair
        "stop the lamp and stop the fan",
    ]
    offered = [Suggestion(tuple(s.split()), ("a reason",), 1.0) for s in sources]
    monkeypatch.setattr(Trained, "suggest", lambda self, n: offered[:n])
    pairs = study.held.report.pairs
    (only,) = sentences_to_ask(study.trained, 3, pairs)
    assert only == offered[4]
    monkeypatch.setattr(Trained, "suggest", lambda self, n: offered[:2])
    assert sentences_to_ask(study.trained, 1, pairs) == (offered[0],)  # better than none


def test_a_warning_about_a_rule_names_its_only_pair(study):
    (rule,) = (text for text in study.grammar.texts if "and" in text)
    given = [f"only 1 pair supports {rule}", "another warning"]
    first, second = with_pairs(given, study.trained, study.held.report.pairs)
    assert first.startswith(f"{given[0]}: ")
    assert " and " in first.removeprefix(given[0])
    assert second == given[1]


def test_a_refusal_names_the_word_in_the_place_of_an_open_class():
    names = LexicalClass("names", (), (), open=True)
    pairs = [("call Ada", "dial Ada"), ("wait", "pause"), ("wait and call Ada", "pause dial Ada")]
    trained = fit(pairs, [names], model=TransducerConfig(aligner="recursive"))
    (answer,) = trained.predict(["call Zoe"])
    assert answer.refused
    assert "'Zoe'" in answer.reason
    assert "‹" not in answer.reason


def test_targets_that_are_written_as_code_are_read_apart():
    pairs = [(f"{v} the {d}", f"{v}({d})") for v in ("start", "stop") for d in ("lamp", "fan")]
    study = learn([*pairs, ("start the radio", "start(radio)")], folds=0)
    assert study.trained.split == "()"
    assert study.trained.predict(["stop the radio"])[0].words == ("stop(radio)",)
    assert "'('" in study.grammar.texts[0]
    assert answerer(study.trained).answer("stop the radio").text == "stop(radio)"


def test_a_second_model_answers_what_the_rules_refuse(study):
    assert study.second is not None
    assert study.second.grammar is None
    assert "the second model answers" in str(study)
    assert learn(ONE + WRONG, folds=0, second=False).second is None


def test_a_second_model_is_learned_only_if_pairs_are_unexplained(monkeypatch):
    monkeypatch.setattr("equitrans.training.study.QUICK_UPDATES", 3)
    useless = learn(ONE + WRONG, folds=0)
    assert useless.second is None
    assert "second model: it is left out: a short training of 3 updates" in str(useless)
    monkeypatch.setattr("equitrans.training.study.USEFUL", 0.0)
    assert learn(ONE, folds=0).second is None
    short = learn(ONE + WRONG, folds=0).second
    assert short is not None
    assert short.origin.training["updates"] == 3


def test_refused_forms_are_counted_together(study):
    rows = _refusals(study, study.held)
    assert sum(n for n, _, _ in rows) == study.held.report.refused
    assert len({reason for _, _, reason in rows}) == len(rows)


def test_fit_of_pairs_alone_is_what_learn_learns():
    with warnings.catch_warnings(record=True):
        trained = fit(ONE + TWICE)
    study = trained.study
    assert study is not None
    assert trained.grammar is not None
    assert trained.grammar.texts == study.grammar.texts
    assert trained.predict(["stop the fan twice"])[0].words == ("FAN", "stop", "FAN", "stop")
    assert trained._repr_html_() == study._repr_html_()
    assert "Held-out pairs" in trained._repr_html_()
    assert trained == replace(trained, study=None)


def test_fit_with_settings_learns_no_rules():
    trained = fit(ONE, training=TrainingConfig(updates=2))
    assert trained.study is trained.grammar is None
    assert trained.symmetry.classes == ()


@pytest.mark.parametrize(
    ("pairs", "more", "message"),
    [
        ([], {}, "there are no pairs"),
        (ONE, {"folds": 1}, "folds is 1; it must be 0, or 2 or more"),
        (ONE, {"suggestions": 0}, "suggestions is 0"),
    ],
)
def test_a_wrong_argument_is_refused(pairs, more, message):
    with pytest.raises((ConfigError, DataError), match=message):
        learn(pairs, **more)
