"""Every command on a model with columns, other spellings, phrases, numbers and new names."""

import pytest

from equitrans.explorer import views
from equitrans.training.trained import Trained

CLASSES = """\
[[class]]
name = "nouns"
source = ["dog", ["living room", "front room"], "fish"]
source_forms.plural = ["dogs", "living rooms", ""]
target = ["DOG", "LIVING ROOM", "FISH"]

[[class]]
name = "numbers"
pattern = "[0-9]+"

[[class]]
name = "names"
source = ["ann"]
target = ["ann"]
open = true
after = ["call"]
"""
PAIRS = [
    ("see the dog", "SEE DOG"),
    ("see the dogs", "SEE DOG PL"),
    ("see the living room", "SEE LIVING ROOM"),
    ("see the front room 3 times", "SEE LIVING ROOM 3"),
    ("see the fish 12 times", "SEE FISH 12"),
    ("call ann", "CALL ann"),
    ("call ann and see the dogs", "CALL ann ; SEE DOG PL"),
    ("see the dog 2 times and call ann", "SEE DOG 2 ; CALL ann"),
]
NEW = "see the living rooms 7 times and call bob"
ANSWER = "SEE LIVING ROOM PL 7 ; CALL bob"

pytestmark = pytest.mark.usefixtures("float32")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    from equitrans.cli.main import main

    path = tmp_path_factory.mktemp("tables")
    (path / "classes.toml").write_text(CLASSES)
    (path / "pairs.tsv").write_text("".join(f"{x}\t{y}\n" for x, y in PAIRS))
    files = ("--data", path / "pairs.tsv", "--classes", path / "classes.toml")
    line = ("train", *files, "--model.aligner", "recursive", "--out", path / "run", "--quiet")
    assert main([*map(str, line)]) == 0
    return path


def test_check_names_class_words_that_no_pair_has(run, folder):
    status, out, _ = run("check", folder / "pairs.tsv", "--classes", folder / "classes.toml")
    assert status == 0
    assert "class nouns: no source has living rooms" in out


def test_predict_reads_and_writes_and_refuses_misplaced_names(run, folder):
    status, out, _ = run("predict", folder / "run", NEW)
    assert (status, out) == (0, f"{ANSWER}\n")
    status, _, err = run("predict", folder / "run", "see bob")
    assert status == 1
    assert "unknown word 'bob'; words of class 'names' stand only after call" in err
    _, out, _ = run("predict", folder / "run", NEW, "--alignments")
    assert "LIVING ROOM ← 3 living rooms" in out


def test_evaluate_orbits_and_audit_show_words(run, folder):
    _, out, _ = run("evaluate", folder / "run", "--data", folder / "pairs.tsv")
    assert "8 of 8" in out
    _, out, _ = run("orbits", folder / "run", "see the front room 3 times")
    assert "see the living room 3 times  SEE LIVING ROOM 3" in out
    assert "see the fish 3 times         SEE FISH 3" in out
    status, out, _ = run("audit", folder / "run", "--data", folder / "pairs.tsv")
    assert status == 0
    assert "7 by 'nouns', 3 by 'numbers', 3 by 'names'" in out


def test_extend_adds_a_row_with_all_its_forms(run, folder, tmp_path):
    row = "guest room/guest rooms=GUEST ROOM"
    status, _, _ = run("extend", folder / "run", "--class", "nouns", row, "--out", tmp_path / "m")
    assert status == 0
    _, out, _ = run("predict", tmp_path / "m", "see the guest rooms 5 times")
    assert out == "SEE GUEST ROOM PL 5\n"


def test_export_and_standalone_keep_the_tables(run, folder, tmp_path):
    assert run("export", folder / "run", "--out", tmp_path / "exported")[0] == 0
    assert run("predict", tmp_path / "exported", NEW)[1] == f"{ANSWER}\n"
    card = (tmp_path / "exported" / "README.md").read_text(encoding="utf-8")
    assert "dog / dogs → DOG, living room / living rooms → LIVING ROOM, fish → FISH" in card


def test_grammar_names_columns(run, folder):
    _, out, _ = run("grammar", folder / "run")
    assert "<nouns.plural>" in out


def test_explorer_shows_the_words_of_tables(folder):
    trained = Trained.load(folder / "run")
    words = views.read_command(trained, NEW)
    answer = views.answer(trained, words, trained.n_best([words], n=1)[0])
    assert " ".join(answer.best[0].words) == ANSWER
    pair = views.best_pair(answer)
    assert "living rooms" in views.align(trained, pair).source
    assert views.orbits(trained, pair).members
    described = views.describe("m", trained, has_data=False, recorded=None)
    assert "dogs" in str(described.classes)
