"""What the explorer shows, without a server: values, the shelf, the judge, the desk."""

import asyncio
import json
import shutil
import threading
from dataclasses import asdict, replace

import pytest

from equitrans.data.pairs import Pair
from equitrans.data.scan import CLASSES, everything
from equitrans.data.source import DataConfig, load_data
from equitrans.errors import ConfigError, DataError, SymmetryError, VocabularyError
from equitrans.explorer import judging, queue as desks, registry as shelf, swaps, views
from equitrans.explorer.judging import Judge
from equitrans.explorer.queue import BusyError, Desk
from equitrans.explorer.registry import MissingRunError, Shelf
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
    return Shelf.load([shown / name for name in ("jump", "rules", "attention", "bare")])


@pytest.mark.parametrize("kind", ["transducer", "wu"])
def test_a_posterior_is_its_parts_joined(kind):
    found = views.align(untrained(kind, **SMALL), PAIR)
    assert not found.soft
    for posterior, prior, emitted in zip(found.posterior, found.prior, found.emitted, strict=True):
        joint = [p * q for p, q in zip(prior, emitted, strict=True)]
        assert posterior == pytest.approx([j / sum(joint) for j in joint], abs=1e-4)
        assert sum(prior) == pytest.approx(1, abs=1e-4)
    assert max(max(row) for row in found.prior) < 0.9  # not by being certain anyway


def test_the_parts_of_a_recursive_aligner_are_its_alignments(models):
    trained = models.find("rules").trained
    command = ("jump", "twice")
    found = views.align(trained, Pair(command, ("I_JUMP", "I_JUMP")))
    assert found.source == ("BOS", *command, "EOS")
    assert found.prior == ((0, 1, 0, 0), (0, 1, 0, 0), (0, 0, 0, 1))
    assert found.emitted[0][1] == pytest.approx(1, abs=1e-3)
    other = views.align(trained, Pair(command, ("I_JUMP",)))  # no alignment has that length
    assert other.prior[0] == (0, 0, 0, 0)


def test_soft_attention_has_no_parts():
    found = views.align(untrained("attention"), PAIR)
    assert found.soft
    assert found.prior is None
    assert sum(found.posterior[0]) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("kind", MODELS)
def test_every_model_can_be_looked_at(kind):
    trained = untrained(kind)
    seen = views.describe(kind, trained, has_data=False, recorded=None)
    assert seen.kind == kind
    assert seen.parameters > 0
    answer = answered(trained, "jump twice")
    assert [word.home for word in answer.words] == ["verbs", None]
    assert answer.template == "<verbs> twice"
    pair = Pair(("jump", "twice"), ("I_JUMP", "I_JUMP"))
    assert len(views.align(trained, pair).posterior) == 3
    assert (views.table(trained).missing is None) == seen.has_table == (kind == "transducer")
    assert views.derive(trained, pair.source).missing is not None
    assert len(views.orbits(trained, pair).members) == 4
    json.dumps([asdict(answer), asdict(views.align(trained, pair))], allow_nan=False)


def test_a_table_has_its_classes_as_blocks_also_after_words_were_added(models):
    before = models.find("jump").trained
    after, added = views.add_word(before, "verbs", "blick", "I_BLICK")
    assert added.classes[0].source[-1] == "blick"
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


def test_a_table_of_many_words_shows_the_classes_and_counts_the_rest(monkeypatch):
    monkeypatch.setattr(views, "SHOWN", 5)
    found = views.table(untrained())
    assert found.sources == ("walk", "look", "run", "jump", "left")
    assert (len(found.prob), len(found.prob[0])) == (5, 6)
    assert found.left_out == len(SYMMETRY.source.words) - 5 + len(SYMMETRY.target.words) - 5
    assert [(b.name, b.height) for b in found.blocks] == [("verbs", 4), ("directions", 1)]


def test_a_recursive_aligner_without_classes_has_no_table():
    config = TransducerConfig(aligner="recursive")
    trained = Trained.new(config, Symmetry.of([], PAIRS), max_length=4)
    assert "no classes" in views.table(trained).missing
    assert "no classes" in views.orbits(trained, PAIR).missing


def test_a_swap_within_an_orbit_provably_keeps_the_likelihood():
    trained = untrained()
    found = swaps.compare(trained, answered(trained, "jump twice"), answered(trained, "run twice"))
    assert found.source_changes == (0,)
    facts = {fact.what.split(",")[0]: fact for fact in found.facts}
    assert facts["the form"].promised
    assert all(fact.promised and fact.same for fact in facts.values())
    assert len(facts) == 3


def test_a_swap_to_another_orbit_promises_the_alignment_only(models):
    trained = models.find("jump").trained
    found = swaps.compare(
        trained, answered(trained, "walk and run"), answered(trained, "walk and walk")
    )
    *_, alignment, likelihood = found.facts
    assert alignment.promised
    assert alignment.same
    assert not likelihood.promised


def test_a_promise_that_is_broken_is_seen():
    trained = untrained()
    aligner = trained.model.aligner
    jump = SYMMETRY.source.index["jump"]
    aligner.source_classes[jump] = aligner.source_classes[SYMMETRY.source.index["twice"]]
    before, after = (answered(trained, f"{verb} and run") for verb in ("walk", "jump"))
    after = replace(after, best=before.best)
    _, alignment, _ = swaps.compare(trained, before, after).facts
    assert alignment.promised
    assert not alignment.same


def test_a_model_without_symmetry_promises_nothing_of_a_swap():
    trained = untrained("attention")
    found = swaps.compare(trained, answered(trained, "jump"), answered(trained, "run"))
    assert [fact.promised for fact in found.facts] == [True, False]  # the form stays anyhow
    assert "nothing is promised" in found.facts[1].why


def test_a_swap_across_forms_is_refused():
    trained = untrained()
    with pytest.raises(DataError, match="different forms"):
        swaps.compare(trained, answered(trained, "jump twice"), answered(trained, "jump thrice"))


def test_a_family_that_is_too_large_says_so():
    trained = untrained()
    many = " and ".join(["jump left"] * 4).split()
    found = views.orbits(trained, Pair(tuple(many), ("I_JUMP",)))
    assert not found.members
    assert "4,096 pairs" in found.missing


def test_a_target_that_comes_from_nowhere_has_no_family():
    found = views.orbits(untrained(), Pair(("jump",), ("I_WALK",)))
    assert "does not come from a word of its class" in found.missing


def test_what_was_recorded_is_what_training_saw(models):
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
def test_a_damaged_record_hides_nothing_else(shown, tmp_path, line):
    shutil.copytree(shown / "jump", tmp_path / "jump")
    (tmp_path / "jump" / "orbits.jsonl").write_text(line + "\n", encoding="utf-8")
    one = Shelf.load([tmp_path / "jump"]).find("jump")
    assert one.records.missing.startswith("The record cannot be read")
    assert one.describe().recorded is None


def test_a_derivation_covers_its_words(models):
    trained = models.find("rules").trained
    found = views.derive(trained, ("jump", "twice", "and", "walk", "left"))
    assert found.missing is None
    root, *rest = found.nodes
    assert (root.depth, root.start, root.stop) == (0, 0, 5)
    assert all(0 <= node.start < node.stop <= 5 and node.depth > 0 for node in rest)
    refused = views.derive(trained, ("jump", "jump"))
    assert refused.nodes == ()
    assert "refuses" in refused.missing
    assert answered(trained, "jump jump").best == ()


@pytest.mark.parametrize(
    ("command", "message"),
    [("", "no words"), ("junp", "did you mean 'jump'"), ("jump " * 65, "65 words; up to 64")],
)
def test_a_command_that_cannot_be_read_is_refused(command, message):
    with pytest.raises((DataError, VocabularyError), match=message):
        views.read_command(untrained(), command)


def test_words_are_added_one_upon_the_other_and_a_few_models_are_kept(models, monkeypatch):
    monkeypatch.setattr(shelf, "EXTENDED", 3)
    words = ("blick I_BLICK verbs", "dax I_DAX verbs")
    trained = models.extended("jump", words).trained
    assert trained.symmetry.classes[0].source[-2:] == ("blick", "dax")
    assert models.extended("jump", words).trained is trained
    best = trained.predict(["dax and blick"])[0].words
    plain = models.find("jump").trained.predict(["walk and run"])[0].words
    assert best == tuple({"I_WALK": "I_DAX", "I_RUN": "I_BLICK"}.get(w, w) for w in plain)
    for number in range(5):
        models.extended("jump", (f"w{number} I_W{number} verbs",))
    assert len(models._extended) == 3


@pytest.mark.parametrize(
    ("add", "message"),
    [
        ((), "no word"),
        (("blick",), "word translation class"),
        (("blick I_BLICK nouns",), "no class 'nouns'"),
        (("jump I_X verbs",), "knows the source word"),
        (("a A verbs",) * 9, "too many"),
    ],
)
def test_what_cannot_be_added_is_said(models, add, message):
    with pytest.raises((DataError, SymmetryError), match=message):
        models.extended("jump", add)


def test_no_word_can_be_added_to_a_model_that_learns_each(models):
    with pytest.raises(SymmetryError, match="only a transducer can be extended"):
        models.extended("attention", ("blick I_BLICK verbs",))


@pytest.mark.parametrize("name", ["jump", "rules", "attention"])
def test_a_settled_model_says_the_same(models, name):
    one = models.find(name)
    sentences = ["jump twice", "walk and run", "look"]
    assert one.quick.n_best(sentences, n=3) == one.trained.n_best(sentences, n=3)
    pair = Pair(("walk", "and", "run"), ("I_WALK", "I_RUN"))
    assert views.align(one.quick, pair) == views.align(one.trained, pair)
    assert views.table(one.quick) == views.table(one.trained)


def test_a_shelf_knows_its_runs(models, shown):
    assert list(models.shown) == ["jump", "rules", "attention", "bare"]
    with pytest.raises(MissingRunError, match="did you mean 'jump'"):
        models.find("junp")
    assert list(Shelf.load([shown / "jump", shown / "jump"]).shown) == ["jump", "jump-2"]
    with pytest.raises(ConfigError, match="nothing to show"):
        Shelf.load([])


def test_an_exported_model_is_shown_without_its_data(models):
    one = models.find("bare")
    assert one.run is None
    assert one.suggest("") == ()
    assert "without its data" in one.judge
    assert one.records.missing == "Nothing was recorded through training."
    assert one.trained.predict(["jump"]) == models.find("jump").trained.predict(["jump"])


def test_data_that_is_gone_is_missed_kindly(shown, tmp_path):
    shutil.copytree(shown / "jump", tmp_path / "jump")
    config = json.loads((tmp_path / "jump" / "config.json").read_text(encoding="utf-8"))
    config["data"]["file"] = str(tmp_path / "gone.tsv")
    (tmp_path / "jump" / "config.json").write_text(json.dumps(config), encoding="utf-8")
    one = Shelf.load([tmp_path / "jump"]).find("jump")
    assert one.judge.startswith("The data cannot be read")


def test_commands_are_suggested_by_their_beginning_first(models):
    one = models.find("jump")
    found = one.suggest("walk")
    assert found[0].startswith("walk")
    assert all("walk" in command for command in found)
    assert 0 < len(one.suggest("")) <= shelf.SUGGESTED
    assert one.suggest("no such thing") == ()


def test_a_judge_finds_what_an_evaluation_finds(monkeypatch):
    monkeypatch.setattr(judging, "CHUNK", 3)
    trained = untrained()
    pairs = [*PAIRS[:60], Pair(("unknown",), ("I_JUMP",))]
    judge = Judge(trained, pairs, "test")
    assert judge.report(None, 1).state == "working"
    steps = 1
    while judge.step():
        steps += 1
    assert steps > 1  # a little at a time
    report = trained.evaluate(pairs[:-1])
    found = judge.report(None, 1)
    assert (found.state, found.done, found.right) == ("done", 61, sum(report.right))
    assert found.matching == len(report.errors) + 1
    said = {" ".join(pair.source): words for pair, words in report.errors}
    pages = [judge.report(None, page).mistakes for page in range(1, found.pages + 1)]
    assert {m.command: m.predicted for page in pages for m in page} == {**said, "unknown": None}
    worst = found.templates[0]
    some = judge.report(worst.template, 1)
    assert {m.template for m in some.mistakes} == {worst.template}
    assert some.matching == worst.pairs - worst.right
    assert len(found.mistakes) == judging.PAGE
    assert judge.report(None, 10**6).page == found.pages


def test_a_run_on_a_split_is_judged_by_its_test_pairs(tmp_path):
    with tiny_split():
        config = RunConfig(data=DataConfig(split="tiny"), model=TransducerConfig(k=4, d=3))
        run = Run.create(tmp_path / "run", config, load_data(config.data, seed=0))
        one = shelf.Shown("run", run.trained, run)
        assert one.judge.which == "test"
        assert one.judge.of == len(one.data.test)


def test_a_recursive_aligner_forgets_before_it_remembers_too_much(models, monkeypatch):
    monkeypatch.setattr(recursive_aligner, "REMEMBERED", 3)
    aligner = models.find("rules").trained.model.aligner
    aligner.forget()
    form = models.find("rules").trained.model.form
    vocabulary = models.find("rules").trained.symmetry.source
    for words in (("jump",), ("jump", "twice"), ("jump", "left"), ("jump", "thrice"), ("jump",)):
        assert aligner.alignments(form(vocabulary.encode(words)))
        assert len(aligner._memory) <= 3


class Counting(Trained):
    """A model that notes what it is asked; only verbs alone are too much for it."""

    def n_best(self, sentences, *, n, width=3):
        CALLS.append(list(sentences))
        if any(len(sentence) == 1 for sentence in sentences):
            raise ZeroDivisionError
        return super().n_best(sentences, n=n, width=width)


CALLS: list[list] = []


def counting() -> Counting:
    CALLS.clear()
    trained = untrained()
    return Counting(trained.model, trained.config, trained.max_length)


def test_predictions_that_are_asked_for_together_are_made_together():
    trained = counting()
    sentences = [pair.source for pair in PAIRS if len(pair.source) > 1][:40]

    async def ask():
        desk = Desk()
        together = await asyncio.gather(*(desk.best(("m",), trained, s) for s in sentences * 2))
        calls = len(CALLS)
        again = await desk.best(("m",), trained, sentences[0])
        desk.close()
        return together, calls, again

    together, calls, again = asyncio.run(ask())
    asked = [sentence for call in CALLS for sentence in call]
    assert calls <= 3
    assert len(CALLS) == calls  # remembered
    assert len(asked) == len(set(asked)) < len(sentences)  # one of an orbit is enough
    alone = untrained().n_best(sentences, n=desks.N_BEST, width=desks.N_BEST)
    assert [[p.words for p in best] for best in together[:40]] == [
        [p.words for p in best] for best in alone
    ]
    assert again == together[0]


def test_what_goes_wrong_is_told_to_whoever_waits_and_the_desk_goes_on():
    trained = counting()

    async def ask():
        desk = Desk()
        with pytest.raises(ZeroDivisionError):
            await desk.best(("m",), trained, ("jump",))
        found = await desk.best(("m",), trained, ("jump", "twice"))
        desk.close()
        return found

    assert asyncio.run(ask())


def test_the_commands_of_the_data_are_foreseen():
    trained = counting()
    commands = [" ".join(pair.source) for pair in PAIRS if len(pair.source) > 1][:100]

    async def ask():
        desk = Desk()
        desk.foresee(("m",), trained, lambda: [*commands, "an unknown word"])
        await asyncio.gather(*desk._tasks)
        calls = len(CALLS)
        await asyncio.gather(*(desk.best(("m",), trained, tuple(c.split())) for c in commands))
        desk.close()
        return calls

    assert asyncio.run(ask()) == len(CALLS)


def test_a_slow_model_is_not_asked_in_advance_for_long(monkeypatch):
    monkeypatch.setattr(desks, "PATIENCE", -1.0)
    trained = counting()
    commands = [" ".join(pair.source) for pair in PAIRS if len(pair.source) > 1][:600]

    async def ask():
        desk = Desk()
        desk.foresee(("m",), trained, lambda: commands)
        await asyncio.gather(*desk._tasks)
        desk.close()

    asyncio.run(ask())
    assert len(CALLS) <= 1


def test_predictions_are_remembered_up_to_a_size(monkeypatch):
    monkeypatch.setattr(desks, "REMEMBERED_WORDS", 1000)
    trained = counting()

    async def ask():
        desk = Desk()
        for pair in PAIRS[20:60]:
            if len(pair.source) > 1:
                await desk.best(("m",), trained, pair.source)
                assert desk._words <= 1000
        assert desk._words == sum(map(desks._weight, desk._predictions.values())) > 0
        desk.close()

    asyncio.run(ask())


def test_a_desk_refuses_more_than_it_can_do(monkeypatch):
    monkeypatch.setattr(desks, "WAITING", 2)
    monkeypatch.setattr(desks, "SECONDS", 0.2)
    gate = threading.Event()

    async def ask():
        desk = Desk()
        done = await asyncio.gather(
            *(desk.work(gate.wait, 1) for _ in range(3)), return_exceptions=True
        )
        gate.set()
        desk.close()
        return done

    slow, _, refused = asyncio.run(ask())
    assert isinstance(slow, BusyError)
    assert "longer than 0.2 seconds" in str(slow)
    assert "too many" in str(refused)


def test_answers_are_remembered_up_to_a_size(monkeypatch):
    monkeypatch.setattr(desks, "REMEMBERED_BYTES", 1000)
    made = []

    async def ask():
        desk = Desk()

        async def make():
            made.append(1)
            return b"x" * 100

        for key in [*"aab", *"cdefghijklmnop", "b"]:
            await desk.remembered((key,), make)
        assert desk._bytes <= 1000
        desk.close()

    asyncio.run(ask())
    assert len(made) == 17  # "a" once, and "b" a second time, since it was forgotten
