"""Measure the peak memory of a training by the number of pairs and of parameters.

    python bench/memory.py --pairs 10000 100000 1000000

Each training is a separate process. Its pairs are generated and written to a file first: commands
of up to three clauses over a class of verbs and a class of objects. It reads the file as
``equitrans train --data`` does, trains for a few seconds, and reports its peak memory.
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

VERBS, OBJECTS = 40, 60


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--pairs", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--hidden", type=int, nargs="*", default=[64, 512, 2048])
    parser.add_argument("--out", type=Path, default=Path("bench/memory.json"))
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        path, classes, hidden = asked.one
        print(json.dumps(train(path, classes, int(hidden))))
        return
    with tempfile.TemporaryDirectory() as folder:
        least = measure(Path(folder), 100, 64)
        by_pairs = [measure(Path(folder), n, 64) for n in asked.pairs]
        by_size = [measure(Path(folder), 100, n) for n in asked.hidden]
    for row in by_pairs:
        row["bytes_per_pair"] = round((row["peak"] - least["peak"]) / row["pairs"])
        print(
            f"{row['pairs']:>9,} pairs: {row['peak'] / 2**20:7.0f} MiB, "
            f"{row['bytes_per_pair']:5d} bytes a pair, {row['seconds']:.0f} s"
        )
    for row in by_size[1:]:
        more = row["peak"] - by_size[0]["peak"]
        row["bytes_per_parameter"] = round(more / (row["parameters"] - by_size[0]["parameters"]), 1)
        print(
            f"{row['parameters']:>11,} parameters: {row['peak'] / 2**20:7.0f} MiB, "
            f"{row['bytes_per_parameter']} bytes a parameter"
        )
    asked.out.write_text(json.dumps({"pairs": by_pairs, "parameters": by_size}, indent=2) + "\n")


def measure(folder: Path, pairs: int, hidden: int) -> dict[str, float]:
    """Run one training in a new process."""
    path, classes = folder / "pairs.tsv", folder / "classes.toml"
    write(path, classes, pairs)
    done = subprocess.run(
        [sys.executable, __file__, "--one", str(path), str(classes), str(hidden)],
        capture_output=True,
        text=True,
        check=True,
    )
    return {"pairs": pairs} | json.loads(done.stdout)


def write(path: Path, classes: Path, pairs: int) -> None:
    """Generate ``count`` distinct pairs."""
    draw = random.Random(0)
    seen: set[str] = set()
    with path.open("w") as file:
        while len(seen) < pairs:
            clauses = [
                (f"v{draw.randrange(VERBS)}", f"o{draw.randrange(OBJECTS)}")
                for _ in range(draw.randint(1, 3))
            ]
            source = " and ".join(f"{v} the {o}" for v, o in clauses)
            if source not in seen or len(clauses) == 1:
                seen.add(source)
                file.write(source + "\t" + " ".join(f"{o} {v}".upper() for v, o in clauses) + "\n")
    names = {"verbs": [f"v{i}" for i in range(VERBS)], "objects": [f"o{i}" for i in range(OBJECTS)]}
    classes.write_text(
        "".join(
            f'[[class]]\nname = "{name}"\nsource = {json.dumps(words)}\n'
            f"target = {json.dumps([word.upper() for word in words])}\n"
            for name, words in names.items()
        )
    )


def train(path: str, classes: str, hidden: int) -> dict[str, float]:
    """Train a run as the command does, for a few seconds."""
    import torch

    from equitrans.data import load_data
    from equitrans.training import Run, RunConfig

    torch.set_num_threads(1)
    started = time.perf_counter()
    settings = {"file": path, "classes": classes, "model.hidden": hidden, "training.seconds": 5}
    config = RunConfig.from_settings(settings)
    data = load_data(config.data, seed=0)
    run = Run.create(Path(path).parent / f"run{time.time_ns()}", config, data)
    for epoch in run.train(data):
        assert epoch.updates > 0
    return {
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "parameters": sum(p.numel() for p in run.trained.model.parameters()),
        "seconds": time.perf_counter() - started,
    }


if __name__ == "__main__":
    main()
