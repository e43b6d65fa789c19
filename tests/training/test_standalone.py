"""Rule models without torch: the same answers, from one Python file."""

import json
import subprocess
import sys
import threading

import pytest

from equitrans import Symmetry, Trained, TransducerConfig
from equitrans.errors import ConfigError, RunError
from equitrans.training.alone import _compare, answerer, plain_state, write_standalone
from equitrans.training.plain import Answerer
from ruled import HOME, edit_rules, home_rules, scan_rules
from variations import variations

pytestmark = pytest.mark.usefixtures("float32")


@pytest.fixture(scope="module")
def home():
    return home_rules()


@pytest.fixture(scope="module")
def scan():
    return scan_rules()


SCAN = [
    "walk",
    "jump left",
    "walk twice and run left twice",
    "look right and jump after run twice",
    "run and walk and look after jump and look left",
]


def sentences(seeds, n):
    split = [seed.split() for seed in seeds]
    return map(" ".join, variations(split, ("41", "0", "blick", "light"), n))


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


def test_answers_with_primitives_are_those_of_the_model():
    asked = ["flip swap a b c d", "tag a", "swap twice tag flip a b c", "flip tag a b", "tag tag d"]
    long = ["twice " * 11 + "flip a b", "flip " + "twice " * 11 + "a b c"]
    assert compare(edit_rules(), [*sentences(asked, 100), *asked, *long]) > 20


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
    done = subprocess.run([sys.executable, "-I", path, "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout.startswith("usage: python home.py [--json] [SENTENCE ...]\n")


def test_an_empty_target_has_no_words(home):
    assert answerer(home)._write((), {}) == ()


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
