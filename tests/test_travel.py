"""A model leaves the machine that it was trained on: files, cards, the hub, other processes."""

import json
from dataclasses import replace

import pytest
import torch

from equitrans.errors import RunError
from equitrans.extension import extend
from equitrans.fitting import fit
from equitrans.models.transducer import TransducerConfig
from equitrans.pairs import Pair
from equitrans.runs import Run
from equitrans.scan import VERBS
from equitrans.trained import Trained
from equitrans.training import TrainingConfig

PAIRS = [
    Pair((v, *rest), (a,) * n)
    for v, a in zip(VERBS.source, VERBS.target, strict=True)
    for rest, n in (((), 1), (("twice",), 2), (("thrice",), 3))
]


@pytest.fixture(autouse=True)
def _float32():
    torch.set_default_dtype(torch.float32)


@pytest.fixture(scope="module")
def trained():
    torch.set_default_dtype(torch.float32)
    return fit(PAIRS, [VERBS], training=TrainingConfig(updates=300))


def change(path, **changes):
    content = json.loads(path.read_text()) | changes
    path.write_text(json.dumps(content))


# --- files


def test_directories_of_the_first_format_still_load(trained, tmp_path):
    trained.save(tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path / "best.safetensors")
    change(tmp_path / "config.json", format=1)
    assert Trained.load(tmp_path).predict(["jump twice"]) == trained.predict(["jump twice"])
    (tmp_path / "best.safetensors").unlink()
    with pytest.raises(RunError, match=r"model.safetensors is missing"):
        Trained.load(tmp_path)
