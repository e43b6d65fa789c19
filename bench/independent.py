"""Train an LSTM with soft attention that is not ours: the one of Joey NMT, from the package index.

    python -m venv joey && joey/bin/pip install joeynmt==2.3.0 importlib_metadata
    python bench/independent.py --python joey/bin/python --seeds 0-5 --scan-dir SCAN \
        --out records/studies/independent-attention.jsonl
    python bench/independent.py --show records/studies/independent-attention.jsonl

Joey NMT runs as a program of its own, with the sizes and the number of updates of our baseline with
soft attention (embedding 64, hidden 128, dropout 0.1, 3,000 updates of 128 pairs, Adam at 0.001,
clipping at 5; its rate falls by a tenth after each of 26 epochs, ours as a cosine). With more
--updates its rate falls as far, more slowly. It differs from ours in two ways that can be removed:
its embeddings start smaller (--embedding-deviation 1 is ours), and its decoder also reads its last
output state (--no-feeding). The checkpoint with the smallest validation loss is tested once. Each
training appends one line of JSON.
"""

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from equitrans import __version__
from equitrans.data import Pair, load_split
from equitrans.experiments import commit

UPDATES, BATCH, EMBEDDING, HIDDEN, DROPOUT = 3000, 128, 64, 128, 0.1
LAST_RATE = 0.9**26
"""The last learning rate, as a part of the first."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--python", default=sys.executable, help="a Python that has joeynmt")
    parser.add_argument("--split", default="length")
    parser.add_argument("--scan-dir", help="folder of the official SCAN files")
    parser.add_argument("--seeds", default="0-5", help="first seed, and the one after the last")
    parser.add_argument("--updates", type=int, default=UPDATES)
    parser.add_argument(
        "--embedding-deviation", type=float, help="embeddings start normally distributed"
    )
    parser.add_argument("--no-feeding", action="store_true", help="without input feeding")
    parser.add_argument("--out", type=Path, help="JSONL file for the figures")
    parser.add_argument("--show", type=Path, help="print the figures of a file")
    args = parser.parse_args()
    if args.show:
        show(args.show)
        return
    first, last = map(int, args.seeds.split("-"))
    split = load_split(args.split, args.scan_dir)
    for seed in range(first, last):
        with tempfile.TemporaryDirectory() as folder:
            found = train(Path(folder), args, split.train, split.test, seed)
        line = json.dumps({"split": args.split, **found})
        print(line, flush=True)
        if args.out:
            with args.out.open("a", encoding="utf-8") as file:
                file.write(line + "\n")


def train(
    folder: Path,
    asked: argparse.Namespace,
    train: Sequence[Pair],
    test: Sequence[Pair],
    seed: int,
) -> dict[str, Any]:
    """Train and test once; the figures as a record."""
    pairs = sorted(train)
    random.Random(seed).shuffle(pairs)
    cut = len(pairs) // 10
    for name, part in (("valid", pairs[:cut]), ("train", pairs[cut:]), ("test", test)):
        (folder / f"{name}.src").write_text("".join(f"{' '.join(p.source)}\n" for p in part))
        (folder / f"{name}.trg").write_text("".join(f"{' '.join(p.target)}\n" for p in part))
    python = asked.python
    config = settings(folder, seed, asked.updates, len(pairs) - cut)
    if asked.embedding_deviation:
        config["model"]["embed_initializer"] = "normal"
        config["model"]["embed_init_weight"] = asked.embedding_deviation
    if asked.no_feeding:
        config["model"]["decoder"]["input_feeding"] = False
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    begun = time.monotonic()
    joey(python, "train", folder / "config.yaml", "--skip-test")
    seconds = time.monotonic() - begun
    said = folder / "said"
    joey(python, "test", folder / "config.yaml", "--output-path", said)
    lines = (folder / "said.test").read_text().splitlines()
    right = [line.split() == list(p.target) for line, p in zip(lines, test, strict=True)]
    lengths = [len(p.target) for p in test]
    every, hit = Counter(lengths), Counter(n for n, r in zip(lengths, right, strict=True) if r)
    return {
        "seed": seed,
        "exact_match": sum(right) / len(right),
        "by_length": {n: [hit[n], every[n]] for n in sorted(every)},
        "settings": {k: config[k] for k in ("model", "training")},
        "valid": validation_losses(folder),
        "seconds": round(seconds, 1),
        "program": program(python),
        "machine": {"kind": platform.machine(), "threads": 1},
        "version": __version__,
        "commit": commit(),
    }


def settings(folder: Path, seed: int, updates: int, pairs: int) -> dict[str, Any]:
    """Joey NMT's settings."""
    side = {"level": "word", "lowercase": False, "voc_min_freq": 1}
    epochs = 1 + updates * BATCH // pairs
    layer: dict[str, Any] = {
        "type": "recurrent",
        "rnn_type": "lstm",
        "embeddings": {"embedding_dim": EMBEDDING, "scale": False, "dropout": DROPOUT},
        "hidden_size": HIDDEN,
        "num_layers": 1,
        "dropout": DROPOUT,
    }
    return {
        "name": "attention",
        "joeynmt_version": "2.3.0",
        "model_dir": str(folder / "model"),
        "use_cuda": False,
        "fp16": False,
        "random_seed": seed,
        "data": {
            "train": str(folder / "train"),
            "dev": str(folder / "valid"),
            "test": str(folder / "test"),
            "dataset_type": "plain",
            "src": {"lang": "src", **side},
            "trg": {"lang": "trg", **side},
        },
        "testing": {
            "beam_size": 1,
            "batch_size": 256,
            "max_output_length": 60,
            "eval_metrics": ["sequence_accuracy"],
        },
        "training": {
            "optimizer": "adam",
            "learning_rate": 0.001,
            "learning_rate_min": 1e-9,
            "scheduling": "exponential",
            "decrease_factor": round(LAST_RATE ** (1 / epochs), 4),
            "clip_grad_norm": 5.0,
            "batch_size": BATCH,
            "batch_type": "sentence",
            "normalization": "batch",
            "loss": "crossentropy",
            "early_stopping_metric": "loss",
            "updates": updates,
            "epochs": epochs,
            "validation_freq": max(1, updates // 10),
            "logging_freq": max(1, updates // 20),
            "keep_best_ckpts": 1,
            "overwrite": True,
            "shuffle": True,
        },
        "model": {
            "initializer": "xavier_uniform",
            "embed_initializer": "xavier_uniform",
            "tied_embeddings": False,
            "tied_softmax": False,
            "encoder": {**layer, "bidirectional": True},
            "decoder": {
                **layer,
                "attention": "bahdanau",
                "init_hidden": "bridge",
                "input_feeding": True,
                "hidden_dropout": DROPOUT,
            },
        },
    }


def joey(python: str, *asked: object) -> None:
    """Run Joey NMT with one thread."""
    done = subprocess.run(
        [python, "-m", "joeynmt", *map(str, asked)],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"joeynmt {asked[0]} ended with {done.returncode}:\n{done.stderr[-2000:]}")


def program(python: str) -> dict[str, str]:
    """The versions of Joey NMT and of torch."""
    names = ("joeynmt", "torch")
    ask = f"from importlib.metadata import version; print(*map(version, {names}))"
    said = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True)
    return dict(zip(names, said.stdout.split(), strict=True))


def validation_losses(folder: Path) -> list[float]:
    """The validation losses per sentence, in order, from Joey NMT's own file."""
    lines = (folder / "model" / "validations.txt").read_text(encoding="utf-8").splitlines()
    return [float(line.partition("loss: ")[2].split()[0]) for line in lines]


def show(path: Path) -> None:
    """Print a table with every seed, by what was changed."""
    print("| training | every seed | mean | smallest validation losses |")
    print("| --- | --- | --- | --- |")
    for name, group in groups(path).items():
        every = [100 * record["exact_match"] for record in group]
        spread = f" ± {statistics.stdev(every):.2f}" if len(every) > 1 else ""
        seeds = " ".join(f"{figure:.2f}" for figure in every)
        mean = f"{statistics.mean(every):.2f}{spread} ({len(every)})"
        losses = " ".join(f"{min(r['valid']):.2g}" for r in group if "valid" in r)
        print(f"| {name} | {seeds} | {mean} | {losses} |")


def groups(path: Path) -> dict[str, list[dict[str, Any]]]:
    """The records of a file by the name of their settings."""
    found: dict[str, list[dict[str, Any]]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        model = record["settings"]["model"]
        name = f"{record['settings']['training']['updates']:,} updates"
        if model["embed_initializer"] == "normal":
            name += f", embeddings start with deviation {model['embed_init_weight']:g}"
        if not model["decoder"]["input_feeding"]:
            name += ", no input feeding"
        found.setdefault(name, []).append(record)
    return found


if __name__ == "__main__":
    main()
