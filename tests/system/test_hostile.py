"""Hostile model directories: none runs code, reads other files, or takes more memory than its
files declare. Each is rejected with a message that says why.
"""

import json
import os
import re
import resource
import struct
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save

from equitrans.data import Data, Pair
from equitrans.errors import EquitransError, RunError
from equitrans.models.configs import TransducerConfig
from equitrans.paper.symmetry import LexicalClass, Symmetry
from equitrans.training.checkpoints import Checkpoint
from equitrans.training.runs import Run
from equitrans.training.tensors import pack, read_header
from equitrans.training.trained import WEIGHTS, Trained

SMALL = TransducerConfig(k=4, d=3, embedding=5, hidden=6)


pytestmark = pytest.mark.usefixtures("float32")


@contextmanager
def little_memory(megabytes=300):
    """Limit the memory of this process to its present size and some megabytes more."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    largest = pages * resource.getpagesize() + megabytes * 1_000_000
    resource.setrlimit(resource.RLIMIT_AS, (largest, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def test_the_memory_limit_of_these_tests_holds():
    with little_memory(), pytest.raises(RuntimeError, match="allocate"):
        torch.empty(200_000_000)


@pytest.fixture
def model(tmp_path):
    """A directory that can be loaded."""
    verbs = LexicalClass("verbs", ("walk", "jump"), ("WALK", "JUMP"))
    symmetry = Symmetry.of([verbs], [(("walk", "twice"), ("WALK", "WALK"))])
    Trained.new(SMALL, symmetry, max_length=9).save(tmp_path / "model")
    Trained.load(tmp_path / "model")
    return tmp_path / "model"


def config(path, **changes):
    content = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(content | changes))


def vocabulary(path, **changes):
    content = json.loads((path / "vocabulary.json").read_text())
    (path / "vocabulary.json").write_text(json.dumps(content | changes))


def sized(path, **sizes):
    config(path, model=json.loads((path / "config.json").read_text())["model"] | sizes)


def rewrite(path, header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    (path / WEIGHTS).write_bytes(struct.pack("<Q", len(text)) + text + data)


def tensors(path, change):
    found = load_file(path / WEIGHTS)
    change(found)
    (path / WEIGHTS).write_bytes(save(found))


def link(path, name, to):
    (path / name).unlink(missing_ok=True)
    (path / name).symlink_to(to)


def words(n, prefix="w"):
    return [f"{prefix}{i}" for i in range(n)]


def big_class(path, n):
    members = {"name": "big", "source": words(n), "target": words(n, "W")}
    vocabulary(path, source=words(n), target=words(n, "W"), classes=[members])


def flip(path):
    raw = bytearray((path / WEIGHTS).read_bytes())
    raw[-3] ^= 1
    (path / WEIGHTS).write_bytes(raw)


def sparse(path, name, size):
    with (path / name).open("r+b") as file:
        file.truncate(size)


def empty(shape):
    return {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}


def described(path):
    """A header with the names of a model's tensors, which are empty."""
    return {name: empty([0]) for name in load_file(path / WEIGHTS)}


ONE = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
BILINEAR = "aligner.bilinear"
HEADER = "{p}/{w} is damaged: Error while deserializing header: "

HOSTILE = {
    "a hidden size of a thousand million": (
        lambda p: sized(p, hidden=10**9),
        "{p} does not describe a model: model.hidden is 1000000000; the limit is 1000000",
    ),
    "weights by the thousand million": (
        lambda p: sized(p, hidden=100_000),
        "{p} does not describe a model: it has more weights than {p}/{w}",
    ),
    "a class by the ten million": (
        lambda p: big_class(p, 100_000),
        "{p} does not describe a model: class 'big' has 100000 words; the limit is 10000",
    ),
    "classes by the thousand": (
        lambda p: vocabulary(
            p,
            source=words(3_000),
            target=words(3_000),
            classes=[{"name": w, "source": [w], "target": [w]} for w in words(3_000)],
        ),
        "{p} does not describe a model: 3000 classes; the limit is 1000",
    ),
    "a group by the million": (
        lambda p: (
            config(p, kind="gordon", model={}),
            vocabulary(
                p,
                source=words(600),
                target=words(600),
                classes=[
                    {"name": n, "source": part, "target": part}
                    for n, part in (("a", words(600)[:300]), ("b", words(600)[300:]))
                ],
            ),
        ),
        "{p} does not describe a model: the group of the classes has 90000 elements; the "
        "model 'gordon' has weights for each element, and the limit is 1000",
    ),
    "too many words": (
        lambda p: vocabulary(p, target=[*words(100_000), "WALK", "JUMP"]),
        "{p} does not describe a model: 100002 target words; the limit is 100000",
    ),
    "a table of words by words": (
        lambda p: (
            sized(p, translator="table"),
            vocabulary(p, source=words(9_000), target=words(9_000), classes=[]),
        ),
        "{p} does not describe a model: a table of 9003 × 9003 words is too large; choose "
        "model.translator stack, or at most 30000000 entries",
    ),
    "predictions without end": (
        lambda p: config(p, max_length=10**9),
        "{p} does not describe a model: max_length is 1000000000; it must be from 1 to 4010",
    ),
    "a description without end": (
        lambda p: sparse(p, "vocabulary.json", 70_000_000),
        "{p}/vocabulary.json has 70000000 bytes; the limit is 64000000",
    ),
    "a model by the name of a function": (
        lambda p: config(p, kind="os.system"),
        "{p} does not describe a model: unknown model 'os.system'; "
        "known: attention, backoff, gordon, lane, russin, transducer, trees, wu",
    ),
    "a setting by the name of an attribute": (
        lambda p: sized(p, __class__="os.system"),
        "{p} does not describe a model: '__class__' is not a setting; known: aligner, d, dropout, "
        "embedding, encoder, forget_bias, group, hidden, k, marginal, scaled, translator, "
        "warm_start",
    ),
    "a class whose name moves the cursor": (
        lambda p: vocabulary(p, classes=[{"name": "\x1b[2J", "source": [], "target": []}]),
        "{p} does not describe a model: invisible character U+001B control character at position "
        "1; remove it",
    ),
    "an origin with a name of a megabyte": (
        lambda p: config(p, origin={"\x1b" + "x" * 10**6: 1}),
        "{p} does not describe a model: '\\x1b" + "x" * 43,
    ),
    "a link to a secret": (
        lambda p: link(p, "vocabulary.json", "/etc/passwd"),
        "{p}/vocabulary.json is a link to /etc/passwd, outside of the directory",
    ),
    "a link upwards": (
        lambda p: link(p, "config.json", "../secret.json"),
        "{p}/config.json is a link to ../secret.json, outside of the directory",
    ),
    "weights elsewhere": (
        lambda p: link(p, WEIGHTS, "../secret.json"),
        "{p}/{w} is a link to ../secret.json, outside of the directory",
    ),
    "a log elsewhere": (
        lambda p: link(p, "epochs.jsonl", "../secret.json"),
        "{p}/epochs.jsonl is a link to ../secret.json, outside of the directory",
    ),
    "a link to itself": (
        lambda p: link(p, "config.json", "config.json"),
        "{p} is not a complete run directory: config.json is missing",
    ),
    "a pipe that never ends": (
        lambda p: ((p / "config.json").unlink(), os.mkfifo(p / "config.json")),
        "{p}/config.json is a pipe or a device; expected a file",
    ),
    "a log that never ends": (
        lambda p: os.mkfifo(p / "epochs.jsonl"),
        "{p}/epochs.jsonl is a pipe or a device; expected a file",
    ),
    "a device": (
        lambda p: link(p, "config.json", "/dev/zero"),
        "{p}/config.json is a link to /dev/zero, outside of the directory",
    ),
    "a pickle": (
        lambda p: (p / WEIGHTS).write_bytes(
            b"\x80\x04\x95\x1f\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93"
        ),
        HEADER + "header too large",
    ),
    "nothing": (
        lambda p: (p / WEIGHTS).write_bytes(b""),
        HEADER + "header too small",
    ),
    "a header by the exabyte": (
        lambda p: (p / WEIGHTS).write_bytes(b"\xff" * 7 + b"\x7f{}"),
        HEADER + "header too large",
    ),
    "a header by the megabyte": (
        lambda p: rewrite(p, b" " * 5_000_000),
        "{p}/{w} is damaged: a header of 5000000 bytes; the limit is 4000000",
    ),
    "a header that is not JSON": (
        lambda p: rewrite(p, b"{"),
        HEADER + "invalid JSON in header: EOF while parsing an object at line 1 column 1",
    ),
    "a header that is nested too deeply": (
        lambda p: rewrite(p, b'{"a":' * 100_000),
        HEADER + "invalid JSON in header: recursion limit exceeded at line 1 column 636",
    ),
    "a header that is a list": (
        lambda p: rewrite(p, []),
        HEADER + "invalid JSON in header: invalid type: sequence",
    ),
    "a tensor name with a line break": (
        lambda p: rewrite(p, {"a\nb": ONE | {"data_offsets": [4, 8]}}, b"12345678"),
        "{p}/{w} is damaged: 'Error while deserializing header: ",
    ),
    "a text of a megabyte in place of a tensor": (
        lambda p: rewrite(p, {"a": "b" * 1_000_000}),
        HEADER + 'invalid JSON in header: invalid type: string "bbb',
    ),
    "one name for two tensors": (
        lambda p: rewrite(p, b'{"a": {}, "a": {}}'),
        HEADER + "invalid JSON in header: missing field `dtype`",
    ),
    "metadata that are numbers": (
        lambda p: rewrite(p, {"__metadata__": {"a": 1}}),
        HEADER + "invalid JSON in header: invalid type: integer `1`, expected a string",
    ),
    "a negative shape": (
        lambda p: rewrite(p, {"a": ONE | {"shape": [-1]}}, b"1234"),
        HEADER + "invalid JSON in header: invalid value: integer `-1`",
    ),
    "a shape larger than its bytes": (
        lambda p: rewrite(p, {"a": ONE | {"shape": [10**12]}}, b"1234"),
        HEADER + "invalid shape, data type, or offset for tensor",
    ),
    "a shape that overflows": (
        lambda p: rewrite(p, {"a": ONE | {"shape": [2**40, 2**40]}}, b"1234"),
        HEADER + "overflow computing buffer size",
    ),
    "two tensors in one place": (
        lambda p: rewrite(p, {"a": ONE, "b": ONE}, b"1234"),
        HEADER + "invalid offset for tensor",
    ),
    "a gap between tensors": (
        lambda p: rewrite(p, {"a": ONE | {"data_offsets": [4, 8]}}, b"12345678"),
        HEADER + "invalid offset for tensor `a`",
    ),
    "less data than declared": (
        lambda p: rewrite(p, {"a": ONE}, b"123"),
        HEADER + "incomplete metadata, file not fully covered",
    ),
    "more data than declared": (
        lambda p: rewrite(p, {"a": ONE}, b"12345"),
        HEADER + "incomplete metadata, file not fully covered",
    ),
    "a sparse file of a terabyte": (
        lambda p: sparse(p, WEIGHTS, 10**12),
        "{p}/{w} is damaged: Cannot allocate memory (os error 12)",
    ),
    "a tensor too few": (
        lambda p: tensors(p, lambda t: t.pop(BILINEAR)),
        "{p}/{w} does not fit the model that {p} describes: tensor aligner.bilinear is missing",
    ),
    "a tensor too many": (
        lambda p: tensors(p, lambda t: t.update(more=torch.zeros(1))),
        "{p}/{w} does not fit the model that {p} describes: unexpected tensor 'more'",
    ),
    "a tensor of another shape": (
        lambda p: tensors(p, lambda t: t.update({BILINEAR: torch.zeros(12, 6)})),
        "{p}/{w} does not fit the model that {p} describes: "
        "aligner.bilinear has shape 12×6; expected 6×12",
    ),
    "whole numbers": (
        lambda p: tensors(p, lambda t: t.update({BILINEAR: torch.zeros(6, 12).long()})),
        "{p}/{w} does not fit the model that {p} describes: "
        "aligner.bilinear has data type I64; expected F32 or F64",
    ),
    "weights that are NaN": (
        lambda p: tensors(p, lambda t: t[BILINEAR].fill_(torch.nan)),
        "{p}/{w} has NaN or infinite weights; train the model again",
    ),
    "weights that overflow in float32": (
        lambda p: tensors(p, lambda t: t.update({BILINEAR: torch.ones(6, 12).double() * 1e300})),
        "{p}/{w} has NaN or infinite weights; train the model again",
    ),
    "weights whose products overflow": (
        lambda p: tensors(p, lambda t: t[BILINEAR].fill_(-1e20)),
        "{p}/{w}: aligner.bilinear has weights of up to 1e+20; the limit is 1e+06",
    ),
    "a tensor of too many dimensions": (
        lambda p: rewrite(p, described(p) | {BILINEAR: empty([0] * 100_000)}),
        "{p}/{w} is damaged: a tensor of 100000 dimensions; the limit is 8",
    ),
    "a shape of a megabyte": (
        lambda p: rewrite(p, {"a": empty([0, *[2**63] * 50_000])}),
        "{p}/{w} is damaged: a tensor of 50001 dimensions; the limit is 8",
    ),
    "a size of five thousand digits": (
        lambda p: rewrite(p, json.dumps({"a": empty([0, 7])}).replace("7", "7" * 5_000).encode()),
        HEADER + "invalid JSON in header: number out of range",
    ),
    "tensor names that move the cursor": (
        lambda p: rewrite(p, described(p) | {"\x1b[2J" * 10_000: empty([0])}),
        "{p}/{w} does not fit the model that {p} describes: unexpected tensor '\\x1b[2J",
    ),
    "a flipped bit": (
        flip,
        "{p}/{w} is damaged: its data do not match its SHA-256 checksum",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_directory_is_rejected_within_little_memory(model, name):
    make, message = HOSTILE[name]
    (model.parent / "secret.json").write_text('{"format": 1, "secret": "hunter2"}')
    make(model)
    with little_memory(), pytest.raises(RunError) as refused:
        Trained.load(model)
    text = str(refused.value)
    expected = message.format(p=model, w=WEIGHTS)
    # safetensors says more behind its messages
    more = "deserializing" in message or "\\x1b" in message  # or shortens a name
    assert text.startswith(expected) if more else text == expected
    assert text.isprintable()
    assert len(text) < 1500
    assert "hunter2" not in text


def test_a_sparse_file_of_a_terabyte_is_rejected_without_a_memory_limit(model):
    sparse(model, WEIGHTS, 10**12)
    with pytest.raises(RunError, match="incomplete metadata, file not fully covered"):
        Trained.load(model)


def test_a_link_within_the_directory_is_followed(model):
    (model / WEIGHTS).rename(model / "weights")
    link(model, WEIGHTS, "weights")
    Trained.load(model)


def test_a_file_that_is_cut_off_anywhere_is_rejected(model):
    for name in (WEIGHTS, "vocabulary.json", "config.json"):
        content = (model / name).read_bytes()
        for length in range(0, len(content) - 1, max(1, len(content) // 60)):
            (model / name).write_bytes(content[:length])
            with pytest.raises(EquitransError):
                Trained.load(model)
        (model / name).write_bytes(content)
    Trained.load(model)


PROGRAM = """
import sys
from equitrans.training.trained import WEIGHTS, Trained

path = sys.argv[1]
Trained.load(path).predict(["walk twice"])  # lazy imports happen now
seen = []
sys.addaudithook(lambda event, arguments: seen.append((event, arguments)))
Trained.load(path).predict(["walk twice"])
found = [a[0] for event, a in seen if event == "open" and not isinstance(a[0], int)]
opened = {str(path) for path in found}
did = {event for event, _ in seen}
print(sorted(opened), sorted(did & {"exec", "import", "os.system", "subprocess.Popen"}))
"""


def test_loading_a_model_opens_only_its_files_and_runs_no_code(model):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(model)], capture_output=True, text=True, check=True
    )
    names = sorted((WEIGHTS, "config.json", "vocabulary.json"))
    assert done.stdout.strip() == f"{[str(model / name) for name in names]} []"


# --- checkpoints


@pytest.fixture
def data():
    """One pair for the model of these tests."""
    return Data((Pair(("walk",), ()),), (), (), (), "", "")


@pytest.fixture
def run(model, data):
    """A run with a checkpoint."""
    config(model, training={}, seed=0, digest="", data={"split": "simple"})
    opened = Run.open(model)
    learning = opened.learning(data)
    for p in learning.model.parameters():
        p.grad = torch.ones_like(p)
    learning.state.optimizer.step()
    Checkpoint(model / "state.safetensors").save(learning, finished=False)
    opened.learning(data)
    return opened


def counters(**changes):
    usual = {"epoch": 1, "updates": 3, "seconds": 1.0, "best_epoch": 0, "best_loss": 2.0}
    return {"counters": json.dumps(usual | {"finished": False} | changes)}


@pytest.mark.parametrize(
    ("change", "metadata", "message"),
    [
        ({}, {}, "is damaged: its counters are missing or not JSON"),
        ({}, {"counters": "[" * 100_000}, "is damaged: its counters are missing or not JSON"),
        ({}, counters(epoch="7"), "is damaged: epoch is '7'"),
        ({}, counters(updates=-1), "is damaged: updates is -1"),
        ({}, counters(finished=1), "is damaged: finished is 1"),
        ({}, counters(best_loss=float("nan")), "is damaged: best_loss is nan"),
        ({"optimizer.0.step": None}, counters(), "tensor optimizer.0.step is missing"),
        ({"optimizer.0.exp_avg": torch.zeros(10**6)}, counters(), "has shape 1000000; expected "),
        (
            {"optimizer.999.step": torch.zeros(())},
            counters(),
            "unexpected tensor 'optimizer.999.step'",
        ),
        ({"optimizer.x.y.z": torch.zeros(())}, counters(), "unexpected tensor 'optimizer.x.y.z'"),
        ({"model.more": torch.zeros(3)}, counters(), "unexpected tensor 'model.more'"),
        ({"best.more": torch.zeros(3)}, counters(), r"best\..* is missing"),
        (
            {f"model.{BILINEAR}": torch.zeros(1)},
            counters(),
            "has shape 1; expected 6×12",
        ),
    ],
    ids=str,
)
def test_a_hostile_checkpoint_is_rejected(run, data, change, metadata, message):
    path = run.path / "state.safetensors"
    found = {k: v for k, v in (load_file(path) | change).items() if v is not None}
    path.write_bytes(pack(found, metadata))
    with little_memory(), pytest.raises(RunError, match=re.escape(str(path))) as refused:
        run.learning(data)
    assert re.search(message.replace("×", "."), str(refused.value))


def test_the_header_of_a_file_has_the_shapes_of_its_tensors(model):
    header = read_header(model / WEIGHTS)
    assert header.shapes[BILINEAR] == (6, 12)
    loaded = Trained.load(model).model.state_dict()
    assert header.numbers == sum(t.numel() for t in loaded.values())
