"""The estimator in scikit-learn's cross-validation, searches and pipelines."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted

from equitrans import Estimator, TransducerConfig
from equitrans.data.scan import VERBS
from equitrans.errors import ConfigError, DataError, RunError
from equitrans.models.configs import GordonConfig
from equitrans.paper.symmetry import LexicalClass
from equitrans.training.config import TrainingConfig

PAIRS = [
    (" ".join((v, *rest)), " ".join((a,) * n))
    for rest, n in (((), 1), (("twice",), 2), (("thrice",), 3))
    for v, a in zip(VERBS.source, VERBS.target, strict=True)
]
X, Y = [list(side) for side in zip(*PAIRS, strict=True)]
FOLDS = KFold(3, shuffle=True, random_state=0)
RULES = TransducerConfig(aligner="recursive")  # learned at once
NEVER = TrainingConfig(updates=1)


pytestmark = pytest.mark.usefixtures("float32")


def test_cross_validation_finds_what_symmetry_generalises():
    scores = cross_val_score(Estimator([VERBS], model=RULES), X, Y, cv=FOLDS)
    assert scores.tolist() == [1.0, 1.0, 1.0]


def test_predictions_are_strings_or_words_like_the_training_targets():
    words = Estimator([VERBS], model=RULES).fit(
        [x.split() for x in X], [tuple(y.split()) for y in Y]
    )
    assert words.predict([["jump", "twice"]]) == [("I_JUMP", "I_JUMP")]
    texts = Estimator([VERBS], model=RULES).fit(np.array(X), np.array(Y))
    assert texts.predict(np.array(["jump twice"])) == ["I_JUMP I_JUMP"]
    assert texts.score(X, Y) == 1.0
    assert texts.score(X, ["I_WALK"] * len(X)) == 1 / len(X)


def test_a_clone_has_the_settings_and_is_not_fitted():
    first = Estimator([VERBS], model=TransducerConfig(hidden=7), training=NEVER, seed=3)
    first.fit(X, Y)
    again = clone(first)
    assert again.get_params() == first.get_params()
    assert again is not first
    check_is_fitted(first)
    with pytest.raises(NotFittedError):
        check_is_fitted(again)
    with pytest.raises(RunError, match="call fit first"):
        again.predict(X)


def test_a_grid_search_reaches_the_settings_of_model_and_training():
    grid = {"model__aligner": ["lstm", "recursive"], "training__updates": [1]}
    search = GridSearchCV(Estimator([VERBS]), grid, cv=FOLDS)
    search.fit(X, Y)
    assert search.best_params_ == {"model__aligner": "recursive", "training__updates": 1}
    assert search.best_score_ == 1.0
    assert min(search.cv_results_["mean_test_score"]) < 0.5  # the other has learned nothing
    assert search.best_estimator_.training == TrainingConfig(updates=1, lexicon=True)
    assert search.predict(["jump thrice"]) == ["I_JUMP I_JUMP I_JUMP"]


def test_an_estimator_is_the_last_step_of_a_pipeline():
    lower = FunctionTransformer(lambda sentences: [s.lower() for s in sentences])
    pipeline = make_pipeline(lower, Estimator([VERBS], model=RULES))
    predicted = cross_val_predict(pipeline, [x.upper() for x in X], Y, cv=FOLDS)
    assert list(predicted) == Y


def test_settings_are_read_and_changed_by_name():
    estimator = Estimator()
    assert estimator.get_params(deep=False).keys() == {
        *("classes", "model", "training", "seed", "width", "characters")
    }
    estimator.set_params(model__hidden=9, model=GordonConfig())
    assert estimator.model == GordonConfig(hidden=9)  # the larger first, whatever the order
    assert "Estimator(classes=(), model=GordonConfig(" in repr(estimator)
    with pytest.raises(ConfigError, match="'hiden' is not a setting; did you mean 'hidden'"):
        estimator.set_params(model__hiden=9)
    with pytest.raises(ConfigError, match="'sed' is not a setting; did you mean 'seed'"):
        estimator.set_params(sed=1)
    with pytest.raises(ConfigError, match=r"model\.hidden is 0"):
        estimator.set_params(model__hidden=0)
    with pytest.raises(DataError, match="2 sources but 1 targets; each needs one"):
        estimator.fit(["walk", "run"], ["I_WALK"])


def test_an_unknown_word_makes_a_score_and_no_error():
    sources, targets = [*X, "toaster"], [*Y, "I_TOASTER"]
    scores = cross_val_score(Estimator([VERBS], model=RULES), sources, targets, cv=FOLDS)
    assert sorted(scores.tolist())[1:] == [1.0, 1.0]
    assert 0 < min(scores) < 1
    fitted = Estimator([VERBS], model=RULES).fit(X, Y)
    assert fitted.predict(["toaster", "jump twice"]) == ["", "I_JUMP I_JUMP"]
    assert fitted.trained_.predict(["toaster"])[0].reason == "unknown word 'toaster'"


def test_one_sentence_instead_of_a_list_raises_data_error():
    fitted = Estimator([VERBS], model=RULES).fit(X, Y)
    for call in (
        lambda: fitted.predict("jump twice"),
        lambda: fitted.score("jump twice", Y),
        lambda: fitted.fit(X, "I_JUMP"),
    ):
        with pytest.raises(DataError, match=r"sentences are '.*'; expected a list"):
            call()


def test_an_estimator_of_characters():
    sources, targets = ["a", "b", "a!", "b!"], ["A", "B", "AA", "BB"]
    letters = LexicalClass("letters", ("a", "b"), ("A", "B"))
    estimator = Estimator([letters], model=RULES, characters=True).fit(sources, targets)
    assert clone(estimator).get_params()["characters"]
    assert estimator.predict(["a!"]) == ["AA"]
    assert estimator.score(sources, targets) == 1
