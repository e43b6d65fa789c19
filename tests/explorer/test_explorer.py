"""The explorer without a server: views, registry, evaluation, queue, cache."""

import asyncio
import json
import os
import re
import shutil
import threading
import tracemalloc
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from equitrans.data import recorded
from equitrans.data.pairs import Pair
from equitrans.data.scan import CLASSES, everything
from equitrans.data.source import DataConfig, load_data
from equitrans.errors import ConfigError, DataError, SymmetryError
from equitrans.explorer import comparison, entry, evaluation, queue, registry, views
from equitrans.explorer.entry import Entry
from equitrans.explorer.evaluation import Evaluation
from equitrans.explorer.queue import BusyError, Cache, WorkQueue
from equitrans.explorer.registry import MissingRunError, Question, Registry
from equitrans.models.configs import MODELS, TransducerConfig
from equitrans.models.recursive import aligner as recursive_aligner
from equitrans.paper.symmetry import Symmetry
from equitrans.training.config import RunConfig
from equitrans.training.runs import Run
from equitrans.training.trained import Trained
from shows import SENTENCE
from tiny import tiny_split

PAIRS = [pair for pair in everything() if len(pair.target) <= 6]
SYMMETRY = Symmetry.of(CLASSES["both"], PAIRS)
PAIR = Pair(("jump", "left", "and", "walk", "twice"), ("I_TURN_LEFT", "I_JUMP", "I_WALK", "I_WALK"))
SMALL = {"hidden": 12, "embedding": 4}


def untrained(kind: str = "transducer", **settings: object) -> Trained:
    config = MODELS[kind](**({"k": 4, "d": 3} if kind == "transducer" else {}), **settings)
    return Trained.new(config, SYMMETRY, max_length=10, seed=1)


def answered(trained: Trained, command: str):
    words = views.read_command(trained, command)
    return views.answer(trained, words, trained.n_best([words], n=3)[0])


@pytest.fixture(scope="module")
def models(shown):
    return Registry.load([shown / name for name in ("jump", "rules", "attention", "bare")])


def test_answers_that_tie_are_those_of_the_command_itself():
    trained = untrained(translator="table", **SMALL)  # all target words are equally likely
    even = Registry([Entry("even", trained, None)])
    for command in ("walk", "jump", "run right"):
        question = Question("even", (), command)
        (expected,) = trained.n_best([command], n=registry.N_BEST, width=registry.N_BEST)
        assert [best.words for best in even.answer(question).best] == [h.words for h in expected]


@pytest.mark.parametrize("kind", ["transducer", "wu"])
def test_posterior_is_prior_times_emission_normalised(kind):
    found = views.align(untrained(kind, **SMALL), PAIR)
    assert not found.soft
    for posterior, prior, emitted in zip(found.posterior, found.prior, found.emitted, strict=True):
        joint = [p * q for p, q in zip(prior, emitted, strict=True)]
        assert posterior == pytest.approx([j / sum(joint) for j in joint], abs=1e-4)
        assert sum(prior) == pytest.approx(1, abs=1e-4)
    assert max(max(row) for row in found.prior) < 0.9  # not by being certain anyway


def test_prior_of_a_recursive_aligner_is_its_alignment(models):
    trained = models.find("rules").trained
    command = ("jump", "twice")
    found = views.align(trained, Pair(command, ("I_JUMP", "I_JUMP")))
    assert found.source == ("BOS", *command, "EOS")
    assert found.prior == ((0, 1, 0, 0), (0, 1, 0, 0), (0, 0, 0, 1))
    assert found.emitted[0][1] == pytest.approx(1, abs=1e-3)
    other = views.align(trained, Pair(command, ("I_JUMP",)))  # no alignment has that length
    assert other.prior[0] == (0, 0, 0, 0)


def test_soft_attention_has_no_prior():
    found = views.align(untrained("attention"), PAIR)
    assert found.soft
    assert found.prior is None
    assert sum(found.posterior[0]) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("kind", MODELS)
def test_every_kind_of_model_has_all_views(kind):
    trained = untrained(kind)
    seen = views.describe(kind, trained, has_data=False, recorded=None)
    assert seen.kind == kind
    assert seen.parameters > 0
    answer = answered(trained, "jump twice")
    assert [word.home for word in answer.words] == ["verbs", None]
    assert answer.template == "<verbs> twice"
    pair = Pair(("jump", "twice"), ("I_JUMP", "I_JUMP"))
    assert len(views.align(trained, pair).posterior) == 3
    translates = kind in ("transducer", "backoff")
    assert (views.table(trained).missing is None) == seen.has_table == translates
    assert seen.has_derivations == (kind in ("lane", "backoff"))
    assert (views.derive(trained, pair.source).missing is None) == (kind == "lane")
    assert len(views.orbits(trained, pair).members) == 4
    json.dumps([asdict(answer), asdict(views.align(trained, pair))], allow_nan=False)


def test_table_outlines_classes_also_after_a_word_is_added(models):
    before = models.find("jump").trained
    after = models.model("jump", ("blick I_BLICK verbs",))
    assert after.symmetry.classes[0].source[-1] == "blick"
    for trained, size in ((before, 4), (after, 5)):
        found = views.table(trained)
        assert [(b.name, b.top, b.left, b.height) for b in found.blocks] == [
            ("verbs", 0, 0, size),
            ("directions", size, size, 2),
        ]
        c = trained.symmetry.classes[0]
        assert found.sources[:size] == c.source
        assert found.targets[:size] == c.target
        assert all(sum(row) == pytest.approx(1, abs=1e-4) for row in found.prob)
        own = {round(found.prob[i][i], 6) for i in range(size)}
        assert len(own) == 1  # one number for all of a class


def test_large_table_shows_classes_first_and_counts_the_words_left_out(monkeypatch):
    monkeypatch.setattr(views, "SHOWN", 5)
    found = views.table(untrained())
    assert found.sources == ("walk", "look", "run", "jump", "left")
    assert (len(found.prob), len(found.prob[0])) == (5, 6)
    assert found.left_out == len(SYMMETRY.source.words) - 5 + len(SYMMETRY.target.words) - 5
    assert [(b.name, b.height) for b in found.blocks] == [("verbs", 4), ("directions", 1)]


def test_recursive_aligner_without_classes_has_no_table():
    config = TransducerConfig(aligner="recursive")
    trained = Trained.new(config, Symmetry.of([], PAIRS), max_length=4)
    assert "no classes" in views.table(trained).missing
    assert "no classes" in views.orbits(trained, PAIR).missing


def test_swap_within_an_orbit_keeps_the_likelihood():
    trained = untrained()
    found = comparison.swap(
        trained, answered(trained, "jump twice"), answered(trained, "run twice")
    )
    assert found.source_changes == (0,)
    facts = {fact.what.split(",")[0]: fact for fact in found.facts}
    assert facts["the form"].promised
    assert all(fact.promised and fact.same for fact in facts.values())
    assert len(facts) == 3


def test_swap_to_another_orbit_promises_only_the_alignment(models):
    trained = models.find("jump").trained
    found = comparison.swap(
        trained, answered(trained, "walk and run"), answered(trained, "walk and walk")
    )
    *_, alignment, likelihood = found.facts
    assert alignment.promised
    assert alignment.same
    assert not likelihood.promised


def test_swap_reports_an_aligner_that_breaks_its_promise():
    trained = untrained()
    aligner = trained.model.aligner
    jump = SYMMETRY.source.index["jump"]
    aligner.source_classes[jump] = aligner.source_classes[SYMMETRY.source.index["twice"]]
    before, after = (answered(trained, f"{verb} and run") for verb in ("walk", "jump"))
    after = replace(after, best=before.best)
    _, alignment, _ = comparison.swap(trained, before, after).facts
    assert alignment.promised
    assert not alignment.same


def test_swap_of_a_model_without_symmetry_promises_nothing():
    trained = untrained("attention")
    found = comparison.swap(trained, answered(trained, "jump"), answered(trained, "run"))
    assert [fact.promised for fact in found.facts] == [True, False]  # the form stays anyhow
    assert "nothing is promised" in found.facts[1].why


def test_swap_across_forms_is_refused():
    trained = untrained()
    with pytest.raises(DataError, match="different forms"):
        comparison.swap(trained, answered(trained, "jump twice"), answered(trained, "jump thrice"))


def test_large_family_is_not_shown():
    trained = untrained()
    many = " and ".join(["jump left"] * 4).split()
    found = views.orbits(trained, Pair(tuple(many), ("I_JUMP",)))
    assert not found.members
    assert "4,096 pairs" in found.missing
    long = views.orbits(trained, Pair(("jump", "left"), ("I_JUMP",) * 10_000))
    assert "8 pairs and 80,016 words" in long.missing


def test_long_record_of_orbits_is_shown_in_part(monkeypatch):
    losses = [1.0] * 4
    records = [{"epoch": n, "observed": [4], "losses": losses} for n in range(1_000)]
    found = views.recorded(untrained(), "jump twice", records)
    assert len(found.moments) == views.MOMENTS
    assert found.moments[1].epoch == 5
    monkeypatch.setattr(views, "FAMILY", 3)
    with pytest.raises(DataError, match="a family of 4 pairs; at most 3"):
        views.recorded(untrained(), "jump twice", records)


def test_target_word_without_a_source_word_has_no_family():
    found = views.orbits(untrained(), Pair(("jump",), ("I_WALK",)))
    assert "does not come from a word of its class" in found.missing


def test_recorded_orbits_are_those_of_the_run(models):
    one = models.find("jump")
    found = one.records
    lines = one.run.orbit_records()
    assert found.sentence == SENTENCE
    assert found.sources[0] == SENTENCE
    assert [moment.epoch for moment in found.moments] == [line["epoch"] for line in lines]
    assert len(found.moments) >= 3
    for moment, line in zip(found.moments, lines, strict=True):
        sizes = sorted(moment.observed.count(n) for n in set(moment.observed))
        assert sizes == sorted(line["observed"])
    assert len(set(found.theoretical)) == 4


@pytest.mark.parametrize(
    "line",
    [
        "[]",
        "{",
        '{"epoch": 0, "observed": []}',
        '{"epoch": 0, "observed": [], "losses": [1]}',
        '{"epoch": 0, "observed": [], "losses": ["a"]}',
    ],
)
def test_damaged_orbit_record_does_not_stop_loading(shown, tmp_path, line):
    shutil.copytree(shown / "jump", tmp_path / "jump")
    (tmp_path / "jump" / "orbits.jsonl").write_text(line + "\n", encoding="utf-8")
    one = Registry.load([tmp_path / "jump"]).find("jump")
    assert one.records.missing.startswith("The record cannot be read")
    assert one.describe().recorded is None


def test_derivation_covers_its_words(models):
    trained = models.find("rules").trained
    found = views.derive(trained, ("jump", "twice", "and", "walk", "left"))
    assert found.missing is None
    root, *rest = found.nodes
    assert (root.depth, root.start, root.stop) == (0, 0, 5)
    assert all(0 <= node.start < node.stop <= 5 and node.depth > 0 for node in rest)


@pytest.mark.parametrize(
    ("command", "message"), [("", "no words"), ("jump " * 65, "65 words; at most 64")]
)
def test_invalid_command_is_refused(command, message):
    with pytest.raises(DataError, match=message):
        views.read_command(untrained(), command)


def test_words_are_added_one_after_the_other_and_few_models_are_kept(models):
    words = ("blick I_BLICK verbs", "dax I_DAX verbs")
    trained = models.model("jump", words)
    assert trained.symmetry.classes[0].source[-2:] == ("blick", "dax")
    assert models.model("jump", words) is trained
    best = trained.predict(["dax and blick"])[0].words
    plain = models.find("jump").trained.predict(["walk and run"])[0].words
    assert best == tuple({"I_WALK": "I_DAX", "I_RUN": "I_BLICK"}.get(w, w) for w in plain)
    models.extensions.limit = 10 * models.extensions.size
    for number in range(40):
        models.model("jump", (f"w{number} I_W{number} verbs",))
    assert models.extensions.size <= models.extensions.limit


def test_cache_of_extended_models_counts_their_weights(models):
    models.extensions = Cache(registry.EXTENSION_BYTES)
    trained = models.model("jump", ("blick I_BLICK verbs",))
    weights = sum(p.numel() * p.element_size() for p in trained.model.parameters())
    assert models.extensions.size > weights


def test_model_with_a_large_table_accepts_no_words(monkeypatch, models):
    monkeypatch.setattr(registry, "LARGEST_TABLE", 100)
    models.extensions = Cache(registry.EXTENSION_BYTES)
    with pytest.raises(DataError, match="too many to add one here; equitrans extend can"):
        models.extension("jump", ("blick I_BLICK verbs",))


@pytest.mark.parametrize(
    ("add", "message"),
    [
        (("blick",), "word translation class"),
        (("blick I_BLICK nouns",), "no class 'nouns'"),
        (("jump I_X verbs",), "knows the source word"),
    ],
)
def test_invalid_added_word_is_refused(models, add, message):
    with pytest.raises((DataError, SymmetryError), match=message):
        models.extension("jump", add)


def test_only_a_transducer_accepts_added_words(models):
    with pytest.raises(SymmetryError, match="only a transducer can be extended"):
        models.extension("attention", ("blick I_BLICK verbs",))


@pytest.mark.parametrize("name", ["jump", "rules", "attention"])
def test_fixed_translator_keeps_predictions_alignments_and_table(models, name):
    one = models.find(name)
    sentences = ["jump twice", "walk and run", "look"]
    assert one.fixed.n_best(sentences, n=3) == one.trained.n_best(sentences, n=3)
    pair = Pair(("walk", "and", "run"), ("I_WALK", "I_RUN"))
    assert views.align(one.fixed, pair) == views.align(one.trained, pair)
    assert views.table(one.fixed) == views.table(one.trained)


def test_registry_finds_runs_by_name(models, shown):
    assert list(models.entries) == ["jump", "rules", "attention", "bare"]
    with pytest.raises(MissingRunError, match="did you mean 'jump'"):
        models.find("junp")
    assert list(Registry.load([shown / "jump", shown / "jump"]).entries) == ["jump", "jump-2"]
    with pytest.raises(ConfigError, match="no model to show"):
        Registry.load([])


def test_exported_model_without_data_is_shown(models):
    one = models.find("bare")
    assert one.run is None
    assert one.suggest("") == ()
    assert "without its data" in one.evaluation
    assert one.records.missing == "Nothing was recorded through training."
    assert one.trained.predict(["jump"]) == models.find("jump").trained.predict(["jump"])


@pytest.mark.parametrize("kind", ["missing", "folder", "pipe", "device", "text", "pairs", "large"])
def test_file_that_is_not_the_data_of_the_training_is_not_shown(shown, tmp_path, monkeypatch, kind):
    """A stranger's config.json may name any file of this machine."""
    shutil.copytree(shown / "jump", tmp_path / "jump")
    file = Path("/dev/zero") if kind == "device" else tmp_path / "secret.tsv"
    if kind == "folder":
        file.mkdir()
    elif kind == "pipe":
        os.mkfifo(file)
    elif kind == "text":
        file.write_text("root:x:0:0:secret\n", encoding="utf-8")
    elif kind == "pairs":
        file.write_text("secret\tSECRET\nsecret secret\tSECRET\n", encoding="utf-8")
    elif kind == "large":
        shutil.copy(shown / "pairs.tsv", file)
        monkeypatch.setattr(recorded, "LARGEST_FILE", 100)
    config = json.loads((tmp_path / "jump" / "config.json").read_text(encoding="utf-8"))
    config["data"]["file"] = str(file)
    (tmp_path / "jump" / "config.json").write_text(json.dumps(config), encoding="utf-8")
    one = Registry.load([tmp_path / "jump"]).find("jump")
    assert one.evaluation.startswith("The data of the training cannot be read")
    assert "secret" not in one.evaluation
    assert one.commands == ()
    assert not one.describe().has_data


def test_suggestions_begin_with_the_text_or_contain_it(models):
    one = models.find("jump")
    found = one.suggest("walk")
    assert found[0].startswith("walk")
    assert all("walk" in command for command in found)
    assert 0 < len(one.suggest("")) <= entry.SUGGESTED
    assert one.suggest("no such thing") == ()


def test_background_evaluation_finds_the_errors_of_evaluate(monkeypatch):
    monkeypatch.setattr(evaluation, "CHUNK", 3)
    trained = untrained()
    pairs = [*PAIRS[:60], Pair(("unknown",), ("I_JUMP",))]
    background = Evaluation(trained, pairs, "test")
    assert background.report(None, 1).state == "working"
    assert sum(1 for _ in background.steps()) > 1
    report = trained.evaluate(pairs[:-1])
    found = background.report(None, 1)
    assert (found.state, found.done, found.right) == ("done", 61, sum(report.right))
    assert found.matching == len(report.errors) + 1
    said = {" ".join(pair.source): words for pair, words in report.errors}
    pages = [background.report(None, page).mistakes for page in range(1, found.pages + 1)]
    found_words = {m.command: m.predicted for page in pages for m in page}
    assert found_words == {**said, "unknown": ()}
    assert {m.reason for page in pages for m in page} == {None, "unknown word 'unknown'"}
    worst = found.templates[0]
    some = background.report(worst.template, 1)
    assert {m.template for m in some.mistakes} == {worst.template}
    assert some.matching == worst.pairs - worst.right
    assert len(found.mistakes) == evaluation.PAGE
    assert background.report(None, 10**6).page == found.pages


def test_evaluation_that_fails_says_so(caplog):
    models = counting()  # fails for a sentence of one word
    pairs = [Pair(("jump", "twice"), ("I_JUMP", "I_JUMP")), Pair(("jump",), ("I_JUMP",))]
    background = Evaluation(models.find("m").trained, pairs, "test")
    assert list(background.steps()) == []
    found = background.report(None, 1)
    assert (found.state, found.done) == ("failed", 0)
    assert "the terminal" in found.missing
    assert "ZeroDivisionError" in caplog.text


def test_slow_evaluation_takes_smaller_steps(monkeypatch):
    monkeypatch.setattr(evaluation, "CHUNK_SECONDS", -1.0)
    steps = sum(1 for _ in Evaluation(untrained(), PAIRS[:200], "test").steps())
    monkeypatch.setattr(evaluation, "CHUNK_SECONDS", 60.0)
    assert steps > sum(1 for _ in Evaluation(untrained(), PAIRS[:200], "test").steps())


def test_rules_are_evaluated_on_the_pairs_they_were_learned_from(models):
    one = models.find("rules")
    assert one.evaluation.which == "training"
    assert one.evaluation.of == len(one.data.train) + len(one.data.valid)
    assert models.find("jump").evaluation.which == "validation"


def test_run_on_a_split_is_evaluated_on_its_test_pairs(tmp_path):
    with tiny_split():
        config = RunConfig(data=DataConfig(split="tiny"), model=TransducerConfig(k=4, d=3))
        run = Run.create(tmp_path / "run", config, load_data(config.data, seed=0))
        one = Entry("run", run.trained, run)
        assert one.evaluation.which == "test"
        assert one.evaluation.of == len(one.data.test)


def test_rules_have_no_validation_pairs(models):
    """Rules are learned from all pairs, so none can validate them."""
    one = models.find("rules")
    assert one.data.valid
    assert not one.data.test
    assert one.evaluation.which == "training"
    assert one.evaluation.of == len(one.data.train) + len(one.data.valid)
    assert models.find("jump").evaluation.which == "validation"


def test_cache_of_a_recursive_aligner_is_bounded(models, monkeypatch):
    monkeypatch.setattr(recursive_aligner, "REMEMBERED", 3)
    aligner = models.find("rules").trained.model.aligner
    aligner.forget()
    form = models.find("rules").trained.model.form
    vocabulary = models.find("rules").trained.symmetry.source
    for words in (("jump",), ("jump", "twice"), ("jump", "left"), ("jump", "thrice"), ("jump",)):
        assert aligner.alignments(form(vocabulary.encode(words)))
        assert len(aligner._memory) <= 3


class Counting(Trained):
    """A model that notes every batch that it decodes, and fails for a sentence of one word."""

    def decode(self, sentences, **options):
        CALLS.append(list(sentences))
        if any(len(sentence) == 1 for sentence in sentences):
            raise ZeroDivisionError
        return super().decode(sentences, **options)


CALLS: list[list] = []


def counting() -> Registry:
    CALLS.clear()
    trained = untrained("wu", **SMALL)  # no table, so the registry uses the model itself
    return Registry([Entry("m", Counting(trained.model, trained.config, trained.max_length), None)])


def ask(models: Registry, commands: list[str]) -> list:
    """Ask the work queue for all answers at once; return answers and exceptions."""
    questions = [Question("m", (), command) for command in commands]

    async def run():
        work = WorkQueue(models.answer_together)
        gate = threading.Event()
        first = asyncio.create_task(work.run(gate.wait))
        tasks = [asyncio.create_task(work.run(lambda q=q: models.answer(q), q)) for q in questions]
        await asyncio.sleep(0)  # all of them wait behind the first
        gate.set()
        await first
        found = await asyncio.gather(*tasks, return_exceptions=True)
        work.close()
        return found

    return asyncio.run(run())


def test_predictions_asked_for_together_are_made_in_one_batch_and_cached():
    models = counting()
    commands = [" ".join(pair.source) for pair in PAIRS if len(pair.source) > 1][:40]
    together = ask(models, commands * 2)
    calls = len(CALLS)
    assert calls <= 3
    assert ask(models, commands) == together[:40]
    assert len(CALLS) == calls
    alone = models.find("m").trained.n_best(commands, n=registry.N_BEST, width=registry.N_BEST)
    assert [[guess.words for guess in answer.best] for answer in together[:40]] == [
        [p.words for p in best] for best in alone
    ]


def test_one_prediction_serves_a_whole_orbit():
    trained = untrained()
    models = Registry([Entry("m", trained, None)])
    for verb in ("jump", "walk", "run"):
        answer = models.answer(Question("m", (), f"{verb} twice"))
        best = trained.n_best([f"{verb} twice"], n=registry.N_BEST, width=registry.N_BEST)[0]
        assert [guess.words for guess in answer.best] == [p.words for p in best]
        size = models.cache.size
        models.answer(Question("m", (), "look twice"))
        assert models.cache.size == size


def test_a_failing_prediction_is_reported_and_the_others_of_its_batch_are_answered():
    error, answer, unknown = ask(counting(), ["jump", "jump twice", "junp twice"])
    assert isinstance(error, ZeroDivisionError)
    assert answer.best
    assert answer.reason is None
    assert unknown.best == ()
    assert unknown.reason == "unknown word 'junp'; did you mean 'jump'?"


@pytest.mark.parametrize("command", ["jump jump", "walk walk", "junp twice"])
def test_refused_command_is_answered_with_its_own_reason_and_not_that_of_its_orbit(models, command):
    trained = models.find("rules").trained
    reason = trained.predict([command])[0].reason
    for _ in range(2):  # the second time from the cache
        found = models.answer(Question("rules", (), command))
        assert (found.best, found.reason) == ((), reason)
    derivation = views.derive(trained, tuple(command.split()))
    assert derivation.nodes == ()
    assert reason in derivation.missing
    with pytest.raises(DataError, match=re.escape(reason)):
        views.best_pair(found)
    with pytest.raises(DataError, match=re.escape(reason)):
        comparison.swap(trained, found, found)


def test_predictions_have_a_limited_length():
    trained = replace(untrained(), max_length=4_000)
    assert Entry("m", trained, None).fixed.max_length == views.LONGEST_TARGET
    with pytest.raises(DataError, match="a sentence of 1001 words"):
        views.read_target(trained, (), "I_JUMP " * 1001)


def with_commands(models: Registry, commands: list[str]) -> Registry:
    models.find("m").__dict__["commands"] = tuple(commands)  # in place of the data's
    return models


def test_warm_up_predicts_the_commands_of_the_data_in_small_batches():
    commands = [" ".join(pair.source) for pair in PAIRS if len(pair.source) > 1][:100]
    models = with_commands(counting(), [*commands, "an unknown word"])
    assert sum(1 for _ in models.warm_up("m")) > 1
    assert max(map(len, CALLS)) <= registry.WARM_UP_BATCH
    calls = len(CALLS)
    ask(models, commands)
    assert len(CALLS) == calls


def test_warm_up_of_a_slow_model_ends_after_one_batch(monkeypatch):
    monkeypatch.setattr(registry, "WARM_UP_SECONDS", -1.0)
    commands = [" ".join(pair.source) for pair in PAIRS if len(pair.source) > 1][:100]
    assert list(with_commands(counting(), commands).warm_up("m")) == []
    assert len(CALLS) == 1


def test_background_work_goes_on_between_requests_and_stops_at_an_error(caplog):
    done = []

    def steps():
        for number in range(5):
            done.append(number)
            yield
        raise RuntimeError("it broke")

    async def run():
        work = WorkQueue()
        work.advance(steps())
        for _ in range(200):
            assert await work.run(lambda: 7) == 7
            if "it broke" in caplog.text:
                break
            await asyncio.sleep(0.01)
        work.close()
        work.advance(steps())  # a closed queue ignores it

    asyncio.run(run())
    assert done == [0, 1, 2, 3, 4]
    assert "background work stopped" in caplog.text


def test_queue_refuses_further_requests_when_full_and_times_out(monkeypatch):
    monkeypatch.setattr(queue, "WAITING", 2)
    monkeypatch.setattr(queue, "SECONDS", 0.2)
    gate, called = threading.Event(), []

    async def run():
        work = WorkQueue()
        jobs = [lambda: gate.wait(1), lambda: called.append(1), lambda: called.append(2)]
        done = await asyncio.gather(*map(work.run, jobs), return_exceptions=True)
        gate.set()
        monkeypatch.setattr(queue, "SECONDS", 5.0)
        await work.run(lambda: None)
        work.close()
        return done

    slow, waiting, refused = asyncio.run(run())
    assert isinstance(slow, BusyError)
    assert "longer than 0.2 seconds" in str(slow)
    assert isinstance(waiting, BusyError)
    assert "too many" in str(refused)
    assert called == []  # a request that was given up is not worked on


def test_cache_drops_the_least_recently_used_values_and_counts_keys():
    cache = Cache(10_000)
    for number in range(300):
        cache.put((f"key {number}",), number, 100)
        assert cache.get(("key 0",)) == 0
        assert cache.size <= 10_000
    assert cache.get(("key 1",)) is None
    assert cache.get(("key 299",)) == 299
    cache.put(("key 299",), "new", 100)
    assert cache.get(("key 299",)) == "new"
    tracemalloc.start()
    try:
        cache = Cache(1_000_000)
        before, _ = tracemalloc.get_traced_memory()
        for number in range(10_000):
            cache.put(("/api/models/jump/commands", f"like={number}"), b"[%d]" % number, 10)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 500_000 < kept - before < 1_000_000
    cache = Cache(10_000)
    cache.put(("x" * 2_000,), "long key", 1)
    cache.put(("large",), "large value", 2_000)
    assert cache.get(("x" * 2_000,)) is None
    assert cache.get(("large",)) is None
