"""No setting makes a training end with NaN or infinite weights."""

import pytest

from equitrans import LexicalClass, TrainingConfig, TransducerConfig, fit
from equitrans.errors import DivergenceError
from equitrans.models import AttentionConfig

VERBS = LexicalClass("verbs", ("walk", "run"), ("WALK", "RUN"))
PAIRS = [("walk", "WALK"), ("run twice", "RUN RUN"), ("walk twice", "WALK WALK")]
"""Fewer than ten pairs have no validation pairs."""

SETTINGS = [
    {"learning_rate": 1000.0},
    {"learning_rate": 1000.0, "clip": None},
    {"learning_rate": 1000.0, "optimizer": "adam", "clip": None, "schedule": "constant"},
    {"learning_rate": 1000.0, "weight_decay": 1e30},
    {"learning_rate": 1000.0, "weight_decay": 1e38, "updates": 1},
    {"learning_rate": 1000.0, "weight_decay": 1e38, "updates": 2, "clip": None},
    {"weight_decay": 1e38},
    {"weight_decay": 1e38, "optimizer": "adam", "clip": None},
    {"clip": 1e-38},
    {"clip": 1e38, "learning_rate": 100.0},
    {"learning_rate": 1e-38},
    {"seconds": 0.1, "learning_rate": 1000.0, "weight_decay": 1e30, "updates": None},
]


@pytest.mark.usefixtures("float32")
@pytest.mark.parametrize("model", [TransducerConfig(dropout=0.0), AttentionConfig(hidden=8)])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_weights_are_finite_or_training_stops_with_an_error(settings, model):
    training = TrainingConfig(**{"updates": 25} | settings)
    try:
        trained = fit(PAIRS, [VERBS], model=model, training=training)
    except DivergenceError:
        return
    assert all(bool(weight.isfinite().all()) for weight in trained.model.parameters())
    assert len(trained.predict(["run", "walk twice"])) == 2
