"""The plateau of 19.80 % on Length is the commands whose parts occur in training."""

from collections import Counter
from pathlib import Path

from equitrans.data import load_split
from equitrans.data.scan import VERBS
from equitrans.experiments.records import read_records

RECORDS = Path(__file__).parents[2] / "records"


def test_records_on_the_plateau_have_the_commands_without_an_unseen_phrase_right():
    split = load_split("length")
    phrases = {
        f"{verb} around {direction} thrice"
        for verb in VERBS.source
        for direction in ("left", "right")
    }

    def has_phrase(source):
        return any(phrase in " ".join(source) for phrase in phrases)

    assert not any(has_phrase(pair.source) for pair in split.train)
    others = Counter(len(p.target) for p in split.test if not has_phrase(p.source))
    assert (others.total(), len(split.test)) == (776, 3920)

    records = read_records(RECORDS / "length.jsonl").values()
    plateau = [r["test"] for r in records if r["test"] and r["test"]["right"] == others.total()]
    assert len(plateau) >= 3
    for test in plateau:
        assert {int(n): right for n, (right, _) in test["by_length"].items() if right} == others
