"""Rule models without torch: the same answers, from one Python file."""

import json
import random
import subprocess
import sys
import threading

import pytest
import torch

from equitrans import LexicalClass, Symmetry, Trained, TransducerConfig
from equitrans.data.pairs import as_pairs
from equitrans.data.reading import Reading
from equitrans.data.scan import CLASSES
from equitrans.errors import ConfigError, RunError
from equitrans.models.recursive.io import learned_from_json
from equitrans.models.recursive.learn import fit_translator
from equitrans.training.alone import _compare, answerer, plain_state, write_standalone
from equitrans.training.plain import Answerer

pytestmark = pytest.mark.usefixtures("float32")

THINGS = LexicalClass(
    "things",
    ("lamp", "floor lamp", "fan"),
    ("lamp", "floor_lamp", "fan"),
    aliases=(("light", "lamp"),),
)
ROOMS = LexicalClass("rooms", ("kitchen", "living room", "room lamp"), ("kit.⁀", "liv.⁀", "rl.⁀"))
NUMBERS = LexicalClass("numbers", (), (), pattern="[0-9]+")
NAMES = LexicalClass("names", (), (), open=True)
HOME = [
    ("start the lamp in the kitchen", "kit.lamp on"),
    ("start the floor lamp in the living room", "liv.floor_lamp on"),
    ("dim the fan in the kitchen to 5", "kit.fan level 5"),
    ("dim the light in the living room to 70 and dim the fan in the kitchen to 5", ""),
    ("call Ada and call Bob and start the lamp in the kitchen", ""),
]
PHRASE = [{"class": "things"}, "in", "the", {"class": "rooms"}]
HOME_RULES = [
    (["start", "the", *PHRASE], [5, 2, "on"], []),
    (["dim", "the", *PHRASE, "to", {"class": "numbers"}], [5, 2, "level", 7], []),
    (["call", {"class": "names"}], ["call", 1], []),
    ([None, "and", None], [0, 2], [[0, 1, 2, 3], [0, 1, 3]]),
    ([None, "please"], [0], [[0]]),
]
SCAN_RULES = [
    ([{"class": "verbs"}], [0], []),
    ([{"class": "verbs"}, {"class": "directions"}], [1, 0], []),
    ([None, "twice"], [0, 0], [[0, 1]]),
    ([None, "and", None], [0, 2], [[0, 1, 2, 3], [0, 1, 2]]),
    ([None, "after", None], [2, 0], [[0, 1, 2], [0, 1, 2, 3]]),
]


def made(classes, rules, pairs, split=None):
    """A rule model with given rules and random weights; its translator is trained."""
    reading = Reading(tuple(classes), split=split)
    words = sorted({w for left, right, _ in rules for w in (*left, *right) if isinstance(w, str)})
    symmetry = Symmetry.of(classes, [*reading.pairs(pairs), (words, words)])
    content = {
        "rules": [{"left": x, "right": y, "support": 1, "holes": h} for x, y, h in rules],
        "root": list(range(len(rules))),
        "pairs": 9,
        "exceptions": [],
        "warnings": [],
        "bits": 1.0,
        "noise": 0.05,
    }
    config = TransducerConfig(aligner="recursive")
    learned = learned_from_json(content, symmetry)
    trained = Trained.new(config, symmetry, max_length=4010, learned=learned, split=split)
    fit_translator(trained.model)
    with torch.no_grad():
        for weights in trained.model.aligner.parameters():
            weights.normal_(generator=torch.Generator().manual_seed(1))
    trained.model.aligner.forget()
    return trained


@pytest.fixture(scope="module")
def home():
    """Rules with phrases, another spelling, numbers, names, and words that are written together."""
    torch.set_default_dtype(torch.float32)
    return made([THINGS, ROOMS, NUMBERS, NAMES], HOME_RULES, as_pairs(HOME[:3]), ".")


@pytest.fixture(scope="module")
def scan():
    torch.set_default_dtype(torch.float32)
    return made(CLASSES["both"], SCAN_RULES, ())


SCAN = [
    "walk",
    "jump left",
    "walk twice and run left twice",
    "look right and jump after run twice",
    "run and walk and look after jump and look left",
]


def sentences(seeds, n):
    """Sentences that differ from the given ones by words added, deleted and replaced, or that join
    two of them.
    """
    draw = random.Random(0)
    split = [seed.split() for seed in seeds]
    words = sorted({word for seed in split for word in seed} | {"41", "0", "blick", "light"})
    for _ in range(n):
        found = list(draw.choice(split))
        for _ in range(draw.randrange(3)):
            at = draw.randrange(len(found) + 1)
            found[at : at + draw.randrange(2)] = draw.choices(words, k=draw.randrange(2))
        if draw.random() < 0.2:
            found += [draw.choice(words), *draw.choice(split)]
        yield " ".join(found)


def compare(trained, asked):
    plain = answerer(trained)
    answered = 0
    for sentence, expected in zip(asked, trained.predict(asked), strict=True):
        found = plain.answer(sentence)
        assert (found.reason is not None) == expected.refused, sentence
        assert found.words == expected.words, sentence
        if not expected.refused:
            answered += 1
            assert found.text == trained.text(expected.words)
            assert found.rival == expected.rival
            assert found.margin == pytest.approx(expected.margin, abs=1e-4)
            assert found.log_prob == pytest.approx(expected.log_prob, abs=1e-4)
    return answered


def test_answers_are_those_of_the_model(scan, home):
    """bench/standalone.py compares 10,000 answers of any model."""
    assert 40 < compare(scan, list(sentences(SCAN, 300))) < 280
    assert 40 < compare(home, list(sentences([x for x, _ in HOME], 300))) < 280


def test_the_file_answers_without_equitrans_and_torch(home, tmp_path):
    path = tmp_path / "home.py"
    assert write_standalone(home, path, sentences=[("start", "the", "fan")]) > 1
    asked = ["dim the light in the living room to 12", "dim the blick"]
    done = subprocess.run(
        [sys.executable, "-I", "-X", "importtime", path, "--json", *asked],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["target"] for row in rows] == ["liv.lamp level 12", None]
    assert "sentence 2: " in done.stderr
    assert not [name for name in ("equitrans", "torch", "numpy") if f" {name}\n" in done.stderr]
    done = subprocess.run(
        [sys.executable, "-I", path], input="call Ada\n", capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "call Ada\n")


def test_a_file_that_would_answer_otherwise_is_not_written(home):
    state = plain_state(home)
    state["columns"] = [column[::-1] for column in state["columns"]]
    with pytest.raises(RunError, match="the file would answer 'start the lamp in the kitchen'"):
        _compare(home, Answerer(json.loads(json.dumps(state))), [HOME[0][0].split()])


def test_a_model_without_rules_is_refused(tmp_path):
    symmetry = Symmetry.of([], [(("a",), ("A",))])
    plain = Trained.new(TransducerConfig(), symmetry, max_length=3)
    with pytest.raises(ConfigError, match="not made of rules"):
        write_standalone(plain, tmp_path / "x.py")


@pytest.mark.parametrize("kind", ["model", "plain"])
def test_threads_get_the_answers_of_one_thread(scan, kind):
    """Fresh caches, which all threads fill at once."""
    scan.model.aligner.forget()
    scan.__dict__.pop("reading", None)
    asked = list(sentences(SCAN, 60))
    expected = [p.words for p in scan.predict(asked)]
    scan.model.aligner.forget()
    scan.__dict__.pop("reading", None)
    plain = answerer(scan)
    found: dict[int, list[tuple[str, ...]]] = {}

    def work(number):
        if kind == "plain":
            found[number] = [plain.answer(sentence).words for sentence in asked]
        else:
            found[number] = [scan.predict([sentence])[0].words for sentence in asked]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert [found[n] for n in range(4)] == [expected] * 4
