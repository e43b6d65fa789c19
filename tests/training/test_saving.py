"""Saving a model: whole or not at all, whatever interrupts it, and the same command again works."""

import errno
import os
import shutil
from contextlib import suppress

import pytest
import torch

import kills
from equitrans import files
from equitrans.cli.main import main
from equitrans.errors import RunError
from equitrans.models.configs import TransducerConfig
from equitrans.paper import LexicalClass, Symmetry
from equitrans.training.trained import Trained

pytestmark = pytest.mark.usefixtures("float32")

SMALL = TransducerConfig(k=4, d=3, embedding=5, hidden=6)


def model(*verbs, seed=0):
    verbs = LexicalClass("verbs", verbs, tuple(map(str.upper, verbs)))
    symmetry = Symmetry.of([verbs], [((verbs.source[0], "twice"), verbs.target[:1] * 2)])
    return Trained.new(SMALL, symmetry, max_length=9, seed=seed)


def content(path):
    return {p.name: p.read_bytes() for p in path.iterdir() if not p.name.startswith(".")}


@pytest.mark.parametrize("calls", range(1, 12))
def test_a_full_disk_leaves_the_model_before_or_a_directory_that_is_refused(
    tmp_path, monkeypatch, calls
):
    """Two models of equal shapes, so that a mixture would load."""
    old, new = model("walk", "jump"), model("run", "look", seed=1)
    new.save(tmp_path / "new")
    old.save(tmp_path / "model")
    before = content(tmp_path / "model")
    count = 0

    def fsync(opened):
        nonlocal count
        count += 1
        if count >= calls:
            raise OSError(errno.ENOSPC, "No space left on device")
        os.fsync(opened)

    monkeypatch.setattr(files, "os", kills._Stand(os, {"fsync": fsync}))
    with suppress(OSError):
        new.save(tmp_path / "model")
    monkeypatch.undo()
    found = content(tmp_path / "model")
    if "config.json" in found:
        assert found in (before, content(tmp_path / "new"))
        Trained.load(tmp_path / "model")
    else:
        with pytest.raises(RunError, match=r"config.json is missing"):
            Trained.load(tmp_path / "model")
    new.save(tmp_path / "model")
    assert content(tmp_path / "model") == content(tmp_path / "new")
    assert not [p for p in (tmp_path / "model").iterdir() if p.name.startswith(".")]


@pytest.mark.parametrize("command", ["export", "extend"])
def test_a_killed_export_or_extend_can_be_repeated(tmp_path, command):
    model("walk", "jump").save(tmp_path / "model")
    words = ["--no-test"] if command == "export" else ["--class", "verbs", "run=RUN"]
    torch.set_num_threads(1)

    def work(folder):
        out = str(folder / "out")
        return main([command, str(tmp_path / "model"), *words, "--out", out, "--quiet"])

    whole = tmp_path / "whole"
    kills.whole(work, whole)
    expected = content(whole / "out")
    killed, number = 0, 0
    while True:
        number += 1
        folder = tmp_path / f"killed{number}"
        folder.mkdir()
        if kills.wait(kills.start(work, folder, die_at=number)) == 0:
            break
        killed += 1
        if (folder / "out" / "config.json").exists():  # it died when all was written
            assert content(folder / "out").keys() - {"lock"} == expected.keys()
            Trained.load(folder / "out")
        else:
            assert kills.wait(kills.start(work, folder)) == 0, (folder / "said").read_text()
            assert content(folder / "out") == expected
            assert not [p for p in (folder / "out").iterdir() if p.name.startswith(".")]
        shutil.rmtree(folder)
    assert killed > 8


@pytest.mark.parametrize("largest", [300, 1000, 2000])
def test_an_export_on_a_full_disk_can_be_repeated(tmp_path, largest):
    model("walk", "jump").save(tmp_path / "model")

    def work(folder):
        out = str(folder / "out")
        return main(["export", str(tmp_path / "model"), "--no-test", "--out", out, "--quiet"])

    (tmp_path / "work").mkdir()
    assert kills.wait(kills.start(work, tmp_path / "work", largest=largest)) != 0
    assert kills.wait(kills.start(work, tmp_path / "work")) == 0
    Trained.load(tmp_path / "work" / "out")


def test_a_directory_of_someone_else_is_not_taken_for_a_left_over(tmp_path):
    for names in (["vocabulary.json"], ["README.md"], ["model.safetensors", ".x.tmp"]):
        folder = tmp_path / names[0]
        folder.mkdir()
        for name in names:
            (folder / name).touch()
        with pytest.raises(RunError, match="already exists"):
            files.refuse_used(folder)
    model("walk", "jump").save(tmp_path / "model")
    (tmp_path / "model" / ".config.json.99.tmp").touch()  # a save that had changed nothing yet
    with pytest.raises(RunError, match="already exists"):
        files.refuse_used(tmp_path / "model")


def test_saving_without_rules_over_a_model_with_rules_removes_them(tmp_path):
    model("walk", "jump").save(tmp_path / "model")
    (tmp_path / "model" / "grammar.json").write_text("{}")
    model("walk", "jump").save(tmp_path / "model")
    assert not (tmp_path / "model" / "grammar.json").exists()


def test_a_link_loop_is_one_clear_error(tmp_path, run):
    model("walk", "jump").save(tmp_path / "model")
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    pairs = ["walk\tWALK", "jump\tJUMP", "walk twice\tWALK WALK", "jump twice\tJUMP JUMP"]
    (tmp_path / "pairs.tsv").write_text("\n".join(pairs))
    data = ["--data", tmp_path / "pairs.tsv"]
    for command in (
        ["export", tmp_path / "model", "--no-test", "--out", loop],
        ["export", tmp_path / "model", "--no-test", "--out", loop / "x"],
        ["extend", tmp_path / "model", "--class", "verbs", "run=RUN", "--out", loop],
        ["evaluate", tmp_path / "model", *data, "--errors", loop],
        ["predict", tmp_path / "model", "walk", "--plot", f"{loop}/x.png"],
        ["discover", tmp_path / "pairs.tsv", "--out", loop],
        ["scan", "export", "simple", "--out", loop],
        ["train", *data, "--classes", "none", "--out", loop],
        ["train", "--resume", loop],
        ["predict", loop, "walk"],
        ["evaluate", tmp_path / "model", "--data", loop],
        ["explore", loop],
        ["plot", "curves", loop, "--out", tmp_path / "x.png"],
        ["tables", "table1", "--records", loop],
    ):
        status, _, said = run(*command)
        assert (status, len(said.splitlines())) == (2, 1), (command, said)
