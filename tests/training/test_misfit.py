"""Warnings for models that do not fit their pairs, and calls of fit in several threads."""

import threading
import warnings

import pytest
import torch

from equitrans import LexicalClass, Trained, TrainingConfig, TransducerConfig, fit
from equitrans.cli.main import main
from equitrans.errors import LearningWarning
from equitrans.models import GordonConfig

VERBS = LexicalClass("verbs", ("walk", "run", "look"), ("WALK", "RUN", "LOOK"))
PAIRS = [
    (f"{word} {often}".strip(), " ".join([name] * count))
    for word, name in zip(VERBS.source, VERBS.target, strict=True)
    for often, count in (("", 1), ("twice", 2), ("thrice", 3), ("again and again", 4))
]
UNTRAINED = TrainingConfig(updates=1, restarts=0)


@pytest.mark.parametrize(
    ("model", "cure"),
    [
        (TransducerConfig(), r"rules instead of the LSTM \(model.aligner recursive\)"),
        (GordonConfig(hidden=4), r"try more updates \(training.updates\)"),
    ],
)
def test_a_model_that_does_not_fit_its_pairs_says_so_with_the_cure(model, cure):
    with pytest.warns(LearningWarning, match=f"only . of 12 training pairs.*{cure}"):
        fit(PAIRS, [VERBS], model=model, training=UNTRAINED)


def test_a_model_that_fits_its_pairs_gives_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trained = fit(PAIRS, [VERBS], training=TrainingConfig(updates=600))
    assert trained.score(PAIRS) == 1


def test_rules_that_do_not_explain_the_pairs_say_so():
    noise = [(f"a{i} b{i * 7 % 5}", f"C{i * 3 % 7} D{i % 3} E{i * 5 % 4}") for i in range(12)]
    with pytest.warns(LearningWarning, match="no rules explain the others"):
        fit(noise, (), model=TransducerConfig(aligner="recursive"))


def test_train_prints_the_warning(tmp_path, capsys):
    file = tmp_path / "pairs.tsv"
    file.write_text("".join(f"{x}\t{y}\n" for x, y in PAIRS))
    out = str(tmp_path / "run")
    options = ["--training.updates", "1", "--training.restarts", "0", "--quiet"]
    assert main(["train", "--data", str(file), "--classes", "none", "--out", out, *options]) == 0
    assert "training pairs" not in capsys.readouterr().err
    out = str(tmp_path / "loud")
    assert (
        main(["train", "--data", str(file), "--classes", "none", "--out", out, *options[:-1]]) == 0
    )
    assert "the model predicts only" in " ".join(capsys.readouterr().err.split())


def test_calls_in_threads_with_one_seed_give_one_model():
    found: list[Trained] = []

    def call() -> None:
        found.append(fit(PAIRS, [VERBS], training=TrainingConfig(updates=60, restarts=0)))

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    weights = [t.model.state_dict() for t in found]
    assert len(weights) == 4
    assert all(torch.equal(w[name], weights[0][name]) for w in weights for name in w)
