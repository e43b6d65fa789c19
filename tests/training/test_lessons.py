"""LANE's lessons: which sentences they have, how long they last, and how they are resumed."""

from dataclasses import replace

import pytest
import torch

from equitrans.data.pairs import Pair
from equitrans.data.source import Data, DataConfig, load_data
from equitrans.errors import DivergenceError, LearningWarning, RunError
from equitrans.models import LaneConfig
from equitrans.paper import Symmetry
from equitrans.training import fit, lessons_warning, recipe
from equitrans.training.checkpoints import Checkpoint
from equitrans.training.config import RunConfig, TrainingConfig
from equitrans.training.learners import start
from equitrans.training.lessons import LessonEpoch, Lessons, taught, teach
from equitrans.training.loop import TrainState
from equitrans.training.runs import Run
from equitrans.training.trained import Trained

pytestmark = pytest.mark.usefixtures("float32")

SMALL = LaneConfig(size=8, samples=2)
QUICK = TrainingConfig(optimizer="adadelta", learning_rate=1.0, batch=512, clip=0.5, epochs=4)


def lessons_of(split: str) -> Lessons:
    config = RunConfig.from_settings(recipe("lane", split) | {"split": split, "validation": 0.0})
    data = load_data(config.data, seed=0)
    assert isinstance(config.model, LaneConfig)
    return Lessons.of(data, Symmetry.of((), data.train), config.model)


@pytest.mark.parametrize(
    ("split", "updates"),
    [
        ("length", [188, 207, 426, 1274, 2650, 3866, 4248]),
        ("add_jump", [136, 134, 261, 805, 1765, 2789, 3301]),
    ],
)
def test_lessons_of_scan_have_the_sentences_of_up_to_three_to_nine_words(split, updates):
    lessons = lessons_of(split)
    assert lessons.words == (3, 4, 5, 6, 7, 8, 9)
    assert [-(-len(lessons.rows(n)) // 4) for n in range(7)] == updates
    assert [lessons.epochs(n) for n in range(7)] == [30, 30, 20, 10, 5, 1, 1]
    assert [lessons.entropy(n) for n in range(3)] == [0.1, 0.05, 0.025]
    assert lessons.entropy(20) == 1e-4


def test_copies_of_a_pair_are_one_row():
    jump = [row for row in lessons_of("add_jump").train if len(row[0]) == 1]
    assert len(jump) == 4


def test_short_validation_pairs_are_training_pairs_too():
    data = load_data(DataConfig(split="length"), seed=1)
    lessons = Lessons.of(data, Symmetry.of((), data.train + data.valid), LaneConfig(short=3))
    short = {row for row in lessons.valid if len(row[0]) <= 3}
    assert short
    assert set(lessons.valid) & set(lessons.train) == short
    assert len(lessons.valid) == len(data.valid)


def test_every_lesson_adds_sentences_and_the_first_has_some():
    pairs = tuple(Pair(("a",) * n, ("A",)) for n in (5, 5, 9, 20))
    data = Data(pairs, (), (), (), "", "")
    assert Lessons.of(data, Symmetry.of((), pairs), LaneConfig()).words == (5, 9, 20)
    assert Lessons.of(data, Symmetry.of((), pairs), LaneConfig(first=12)).words == (12, 20)


TIMES = (("", 1), ("twice", 2), ("twice thrice", 6), ("twice thrice now", 6))
PAIRS = tuple(
    Pair((verb, *rest.split()), (verb.upper(),) * n)
    for verb in ("walk", "jump", "run")
    for rest, n in TIMES
)
DATA = Data(PAIRS[:8], PAIRS[8:], (), (), "", "")


def learning(data: Data = DATA, model: LaneConfig = SMALL, training: TrainingConfig = QUICK):
    symmetry = Symmetry.of(data.classes, data.train + data.valid)
    trained = Trained.new(model, symmetry, max_length=50, seed=0)
    return start(trained.model, model, training, data, seed=0)


def test_training_ends_when_all_validation_pairs_are_predicted():
    found = list(learning(model=replace(SMALL, passing=0.0)))
    assert [epoch.lesson for epoch in found] == [3]  # no pair needs to be predicted


def test_a_lesson_that_is_not_learned_ends_after_its_epochs():
    state = learning(model=replace(SMALL, last=2)).state
    lessons = Lessons.of(DATA, state.model.symmetry, replace(SMALL, last=2))
    assert lessons.words == (3, 4)
    state.lesson, state.lesson_epochs = 0, 29
    assert [epoch.lesson for epoch in teach(state, lessons, QUICK)] == [3, 4, 4]
    assert taught(state, lessons, QUICK)


def test_limits_of_epochs_updates_and_seconds_end_the_training():
    assert len(list(learning())) == 4
    for limit in ({"updates": 3}, {"seconds": 1e-6}):
        *_, last = learning(training=replace(QUICK, epochs=None, **limit))
        assert last.updates == limit.get("updates", 1)


def test_an_epoch_reports_reward_lesson_and_accuracy():
    first = next(iter(learning()))
    assert isinstance(first, LessonEpoch)
    assert first.train_loss == pytest.approx(1 - first.reward)
    assert 0 <= first.reward <= 1
    assert first.valid_loss > 0
    assert "lesson of 3 words: reward" in str(first)


def test_without_validation_pairs_the_training_pairs_decide():
    data = Data(PAIRS, (), (), (), "", "")
    first = next(iter(learning(data)))
    assert first.valid_loss is first.valid_accuracy is None
    assert first.is_best


def test_the_composer_learns_more_slowly_than_the_solver():
    composer, solver = learning().state.optimizer.param_groups
    assert (composer["lr"], solver["lr"]) == (0.1, 1.0)
    assert composer["weight_decay"] == solver["weight_decay"] == QUICK.weight_decay


def test_a_start_without_success_is_followed_by_another_one():
    found = list(learning(training=replace(QUICK, epochs=2, restarts=1)))
    assert [epoch.start for epoch in found] == [1, 1, 2, 2]
    assert [epoch.lesson for epoch in found] == [3] * 4


@pytest.mark.parametrize("part", ["composer.query", "solver.score"])
def test_weights_that_are_nan_stop_the_training(part):
    broken = learning()
    with torch.no_grad():
        broken.model.get_parameter(part).fill_(torch.nan)
    with pytest.raises(DivergenceError, match="epoch 1, update 1: the training loss is nan"):
        list(broken)


def test_a_failed_training_advises_another_seed():
    pairs = [(" ".join(p.source), " ".join(p.target)) for p in PAIRS]
    with pytest.warns(LearningWarning, match="the lessons ended without success; try another seed"):
        fit(pairs, model=SMALL, training=QUICK)


# --- run directories


@pytest.fixture
def run_of(tmp_path):
    def make(name: str) -> Run:
        settings = {"split": "simple_p1", "kind": "lane", "model.size": 8, "model.samples": 2}
        settings |= {f"training.{k}": v for k, v in vars(QUICK).items()}
        config = RunConfig.from_settings(settings)
        return Run.create(tmp_path / name, config, load_data(config.data, seed=0))

    return make


def test_a_log_has_lessons_and_is_checked(run_of):
    run = run_of("run")
    for _ in run.train(run.load_data()):
        pass
    epochs = run.epochs()
    assert [set(map(type, (e["lesson"], e["reward"]))) for e in epochs] == [{int, float}] * 4
    assert run.figures().valid_accuracy == epochs[-1]["valid_accuracy"]
    warning = lessons_warning(run)
    assert warning is not None
    assert warning.endswith("needs 99 %; try another --seed")
    log = run.path / "epochs.jsonl"
    log.write_text(log.read_text().replace('"lesson": ', '"lesson": -'))
    with pytest.raises(RunError, match="lesson is -"):
        run.epochs()


def test_a_checkpoint_of_another_optimizer_is_damaged(run_of):
    run = run_of("run")
    next(iter(run.train(run.load_data())))
    learning = run.learning(run.load_data())
    other = TrainState.new(learning.model, TrainingConfig(), seed=0)
    learning.state.optimizer = other.optimizer
    with pytest.raises(RunError, match="it has the state of another optimizer"):
        Checkpoint(run.path / "state.safetensors").load(learning)


def test_counters_of_lessons_are_part_of_a_checkpoint(run_of):
    run = run_of("run")
    steps = iter(run.train(run.load_data()))
    next(steps)
    state = run.learning(run.load_data()).state
    assert (state.lesson, state.lesson_epochs, state.epoch) == (0, 1, 1)
    steps.close()
