"""Certificates: what is proven, what is measured, what is neither."""

import hashlib
import json

import pytest
import torch

from equitrans import AttentionConfig, Symmetry, Trained, certify
from equitrans.data.pairs import as_pairs, read_pairs
from equitrans.data.scan import CLASSES
from equitrans.errors import DataError
from ruled import home_rules, scan_rules

pytestmark = pytest.mark.usefixtures("float32")

TESTS = """\
walk\tI_WALK
jump left\tI_TURN_LEFT I_JUMP
run twice\tI_RUN I_RUN
look and walk\tI_LOOK I_WALK
look and walk right\tI_LOOK I_WALK
jump jump\tI_JUMP
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certify")
    (folder / "tests.tsv").write_text(TESTS)
    scan_rules().save(folder / "rules")
    home_rules().save(folder / "home")
    started = "start the floor lamp in the living room\tliv.floor_lamp on\n"
    started += "dim the fan in the kitchen to 5\tkit.fan level 5\n"
    (folder / "home.tsv").write_text(f"fix the fan\tfix fan\ncall Ada\tcall Ada\n{started}")
    symmetry = Symmetry.of(CLASSES["verbs"], read_pairs(folder / "tests.tsv"))
    plain = Trained.new(AttentionConfig(), symmetry, max_length=9)
    with torch.no_grad():
        for weights in plain.model.parameters():
            weights.mul_(8)  # so that its answers differ from word to word
    plain.save(folder / "attention")
    return folder


def by_name(found):
    return {each["name"]: each for each in found["statements"]}


def test_a_rule_model_is_certified(run, world):
    status, out, err = run("certify", world / "rules", "--data", world / "tests.tsv", "--json")
    assert (status, err) == (0, "")
    found = json.loads(out)
    names = by_name(found)
    for name in ("equivariance", "unknown words", "types", "determinism"):
        assert (names[name]["kind"], names[name]["passed"]) == ("proven", True)
    assert names["right"]["evidence"].startswith("4 of 6; 95 % interval 30.0 to 90.3 %")
    assert names["refused"]["evidence"].startswith("1 of 6")
    assert names["wrong"]["passed"] is None
    assert {names[name]["kind"] for name in ("other sentences", "thin rules")} == {"open"}


def test_hashes_are_those_of_the_files(run, world):
    _, out, _ = run("certify", world / "rules", "--data", world / "tests.tsv", "--json")
    found = json.loads(out)
    assert set(found["files"]) == {p.name for p in (world / "rules").iterdir()}
    for name, digest in (found["files"] | {"../tests.tsv": found["data_hash"]}).items():
        assert hashlib.sha256((world / "rules" / name).read_bytes()).hexdigest() == digest
    own = found.pop("sha256")
    text = json.dumps(found, ensure_ascii=False, sort_keys=True)
    assert hashlib.sha256(text.encode()).hexdigest() == own


@pytest.mark.parametrize(
    ("limits", "status"),
    [
        (["--least-right", 0.66, "--most-wrong", 0.17], 0),
        (["--least-right", 0.67], 1),
        (["--most-wrong", 0.16], 1),
    ],
)
def test_a_limit_that_is_not_met_gives_status_1(run, world, limits, status):
    arguments = ("certify", world / "rules", "--data", world / "tests.tsv", *limits)
    found, page, _ = run(*arguments)
    assert found == status
    assert ("**FAILED**" in page) == bool(status)
    assert "## Neither proven nor measured" in page


def test_a_model_without_symmetry_fails(run, world):
    status, out, _ = run("certify", world / "attention", "--data", world / "tests.tsv", "--json")
    assert status == 1
    names = by_name(json.loads(out))
    assert (names["equivariance"]["kind"], names["equivariance"]["passed"]) == ("measured", False)
    assert names["types"]["kind"] == "open"


def test_unknown_words_of_an_open_class_are_copied(world):
    found = certify(world / "home", world / "home.tsv", read_pairs(world / "home.tsv"))
    names = {each.name: each for each in found.statements}
    assert (names["unknown words"].kind, names["unknown words"].passed) == ("measured", True)
    assert names["equivariance"].passed
    assert "of things, rooms, numbers, names" in names["equivariance"].evidence
    assert found.passed


def test_an_audit_reads_phrases_and_words_that_are_written_together(run, world):
    status, out, _ = run("audit", world / "home", "--data", world / "home.tsv", "--json")
    assert (status, json.loads(out)["pairs"]) == (0, 4)


def test_no_pairs_are_not_certified(world):
    with pytest.raises(DataError, match="nothing to certify"):
        certify(world / "rules", world / "tests.tsv", as_pairs([]))
