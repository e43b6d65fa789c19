"""Commands answer every sentence that they can, in order, and say why they refuse the others."""

import gc
import io
import json
import os
import pty
import select
import subprocess
import sys

import pytest
import torch

from equitrans import LexicalClass, TransducerConfig, fit
from equitrans.analysis.reports import Alignment
from equitrans.cli import predict

VERBS = LexicalClass("verbs", ("walk", "run", "jump"), ("WALK", "RUN", "JUMP"))
PAIRS = [
    (f"{verb} {times}".strip(), " ".join([action] * n))
    for verb, action in zip(VERBS.source, VERBS.target, strict=True)
    for times, n in (("", 1), ("twice", 2), ("thrice", 3))
]
TRAINED = [*PAIRS, ("hop", "HOP"), ("hop hop", "HOP HOP"), ("hop hop hop", "HOP HOP HOP")]
ASKED = ["jump twice", "junp", "", "toaster twice", "walk"]

pytestmark = pytest.mark.usefixtures("float32")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A folder with a model of rules, and one that knows the word hop as well."""
    torch.set_default_dtype(torch.float32)
    folder = tmp_path_factory.mktemp("models")
    rules = TransducerConfig(aligner="recursive")
    fit(PAIRS, [VERBS], model=rules).save(folder / "rules")
    fit(TRAINED, [VERBS], model=rules).save(folder / "more")
    return folder


@pytest.fixture
def pipe(monkeypatch):
    def put(lines):
        content = "".join(f"{line}\n" for line in lines).encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    return put


def test_predict_keeps_line_order_and_notes_each_refusal_with_its_line(run, models, pipe):
    pipe(ASKED)
    status, out, err = run("predict", models / "rules")
    assert (status, out) == (1, "JUMP JUMP\n\n\n\nWALK\n")
    assert err.splitlines() == [
        "equitrans: line 2: unknown word 'junp'; did you mean 'jump'?",
        "equitrans: line 3: no words",
        "equitrans: line 4: unknown word 'toaster'",
    ]


def test_predict_gives_the_reason_in_json_and_an_empty_target_in_tsv(run, models, pipe):
    pipe(ASKED)
    status, out, _ = run("predict", models / "rules", "--json", "--alignments")
    found = [json.loads(line) for line in out.splitlines()]
    assert status == 1
    assert [a["source"] for a in found] == ASKED
    assert [a["target"] for a in found] == ["JUMP JUMP", None, None, None, "WALK"]
    assert [a["refused"] for a in found] == [False, True, True, True, False]
    assert {*("margin", "rival", "doubtful", "remark")} <= found[1].keys() == found[2].keys()
    assert [a["reason"] for a in found[2:]] == ["no words", "unknown word 'toaster'", None]
    assert ("alignment" in found[0], "alignment" in found[1]) == (True, False)
    pipe(ASKED)
    status, out, _ = run("predict", models / "rules", "--tsv", "--n-best", 2)
    rows = [line.split("\t") for line in out.splitlines()]
    assert [row[:2] for row in rows] == [
        *(["jump twice", "JUMP JUMP"], ["junp", ""], ["", ""], ["toaster twice", ""]),
        ["walk", "WALK"],
    ]
    assert {len(row) for row in rows} == {4}


def test_a_fallback_refuses_only_the_sentences_that_it_cannot_answer(run, models, pipe):
    pipe(["hop hop", "junp", "jump"])
    fallback = models / "more"
    status, out, err = run("predict", models / "rules", "--fallback", fallback, "--alignments")
    assert status == 1
    assert [line for line in out.splitlines() if not line.startswith("  ")] == [
        *("HOP HOP", "", "JUMP"),
    ]
    assert err.splitlines() == ["equitrans: line 2: unknown word 'junp'; did you mean 'jump'?"]


def test_n_best_prints_the_score_beside_the_probability(run, models):
    _, out, _ = run("predict", models / "rules", "jump twice", "toaster", "--n-best", 2)
    first, second, *refused = out.splitlines()
    score, probability, *words = second.split()
    assert (first, words) == ("jump twice", ["JUMP", "JUMP"])
    assert float(score) < 0 < float(probability) < 1
    assert refused == ["toaster", ""]
    _, out, _ = run("predict", models / "rules", "jump twice", "--n-best", 2, "--json")
    answer = json.loads(out)
    assert answer["score"] == answer["n_best"][0]["score"] == answer["log_prob"] / 3


def test_plot_draws_the_first_alignments_and_says_so(run, models, pipe, tmp_path, monkeypatch):
    monkeypatch.setattr(predict, "DRAWN", 2)
    pipe(["walk", "jump", "run", "run twice"])
    picture = tmp_path / "alignments.png"
    status, out, err = run("predict", models / "rules", "--plot", picture)
    assert (status, out.splitlines()) == (0, ["WALK", "JUMP", "RUN", "RUN RUN"])
    assert err.splitlines() == [f"equitrans: wrote {picture}: the first 2 of 4 alignments"]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_alignments_of_a_stream_are_not_kept(models, pipe, monkeypatch):
    class Output(io.StringIO):
        """Counts the alignments in memory at every write."""

        most = 0

        def write(self, text):
            self.most = max(self.most, sum(type(o) is Alignment for o in gc.get_objects()))
            return super().write(text)

    output = Output()
    monkeypatch.setattr(sys, "stdout", output)
    pipe(["walk", "jump twice", "run thrice"] * 4)
    assert predict.run([str(models / "rules"), "--alignments"]) == 0
    assert output.getvalue().count("JUMP JUMP") == 4
    assert output.most <= 2


def test_predict_answers_line_by_line_at_a_terminal(models):
    ours, theirs = pty.openpty()
    command = [
        sys.executable,
        "-m",
        "equitrans.cli.main",
        "predict",
        str(models / "rules"),
        "--quiet",
    ]
    with (
        open(ours, "wb", buffering=0) as keyboard,
        subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE) as process,
    ):
        os.close(theirs)
        for line, answer in (("jump twice", b"JUMP JUMP\n"), ("junp", b"\n"), ("run", b"RUN\n")):
            keyboard.write(f"{line}\n".encode())
            assert select.select([process.stdout], [], [], 60)[0], "no answer before Ctrl-D"
            assert process.stdout.readline() == answer
        keyboard.write(b"\x04")
        assert process.wait(60) == 1


def test_evaluate_counts_refusals_and_says_why(run, models, tmp_path):
    data = tmp_path / "test.tsv"
    data.write_text(
        "jump twice\tJUMP JUMP\ntoaster\tT\ntoaster twice\tT T\njunp\tJUMP\nwalk\tWALK\n"
    )
    status, out, err = run("evaluate", models / "rules", "--data", data)
    assert status == 0
    first = out.splitlines()[0]
    assert first.startswith("exact match 40.00 % (2 of 5), 3 refused, −log p ")
    assert first.endswith(" per pair, of the 2 pairs without unknown words")
    assert "unknown word 'toaster' " in out
    assert "unknown word 'junp'; did you mean 'jump'?" in out
    assert "the model has no target word 'T'; 2 pairs with it count as wrong" in err
    content = json.loads(run("evaluate", models / "rules", "--data", data, "--json")[1])
    assert content["refused"] == 3
    assert content["scored"] == 2
    assert content["reasons"]["unknown word 'toaster'"] == 2


def test_evaluate_shortens_lists_of_unknown_words(run, models, tmp_path):
    data = tmp_path / "test.tsv"
    data.write_text("".join(f"word{i}\tWORD{i}\n" for i in range(500)))
    status, out, err = run("evaluate", models / "rules", "--data", data)
    assert status == 0
    assert out.startswith("exact match 0.00 % (0 of 500), 500 refused\n")
    assert len(out.splitlines()) < 40
    assert "and 490 other reasons" in out
    assert len(err.splitlines()) == 11
    assert "490 other target words" in err


def test_audit_leaves_out_pairs_with_unknown_words(run, models, tmp_path):
    data = tmp_path / "test.tsv"
    data.write_text("jump twice\tJUMP JUMP\ntoaster\tJUMP\nwalk\tSTROLL\n")
    status, out, err = run("audit", models / "rules", "--data", data)
    assert status == 0
    assert "1 pairs" in out
    assert "left out 2 of 3 pairs, which have unknown words" in err
    data.write_text("toaster\tJUMP\n")
    status, _, err = run("audit", models / "rules", "--data", data)
    assert status == 2
    assert "every pair has an unknown word" in err


def test_orbits_gives_the_reason_of_a_refusal(run, models):
    status, out, err = run("orbits", models / "rules", "toaster twice")
    assert (status, out) == (2, "")
    assert "'toaster twice' has no family: unknown word 'toaster'" in err
