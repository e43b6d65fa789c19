"""A standalone file beside its model: python bench/standalone.py RUN --data FILE.

10,000 sentences are made from the sources of FILE by adding, deleting and replacing words and by
joining two of them. The answers of the file and of the model must be the same: target, refusal and
rival, and log p and margin within 1e-4. The file must start and answer within 50 ms of CPU time.
The exit status is 1 if one of these promises is broken.
"""

import argparse
import importlib.util
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "fixtures"))

from equitrans import Trained, read_pairs
from equitrans.training import write_standalone
from variations import variations

SENTENCES, LIMIT_MS = 10_000, 50.0


def differences(trained: Trained, file: Path, asked: list[list[str]]) -> int:
    """Print how many answers differ and how many sentences are refused."""
    spec = importlib.util.spec_from_file_location("standalone", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    plain = module.Answerer(module.STATE)
    differ = refused = 0
    for sentence, expected in zip(asked, trained.predict(asked), strict=True):
        found = plain.answer(sentence)
        refused += expected.refused
        same = (found.reason is not None, found.words) == (expected.refused, expected.words)
        if same and not expected.refused:
            gaps = (found.margin - expected.margin, found.log_prob - expected.log_prob)
            same = found.rival == expected.rival and max(map(abs, gaps)) < 1e-4
        differ += not same
    print(f"{len(asked)} sentences, {refused} refused: {differ} answers differ")
    return differ


def start_ms(file: Path, sentence: str) -> float:
    """The median CPU time of a process that answers one sentence, in ms."""
    times = []
    for _ in range(21):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-I", file, sentence], capture_output=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return 1000 * sorted(times)[10]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    asked = parser.parse_args()
    trained = Trained.load(asked.run)
    seeds = [pair.source for pair in read_pairs(asked.data, characters=trained.characters)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.py"
        write_standalone(trained, file)
        near = list(variations(seeds, ("41", "0", "blick"), SENTENCES))
        differ = differences(trained, file, near)
        started = start_ms(file, trained.text(seeds[0]))
        print(f"{file.stat().st_size / 1000:.0f} kB; starts and answers in {started:.0f} ms of CPU")
    return 0 if differ == 0 and started <= LIMIT_MS else 1


if __name__ == "__main__":
    sys.exit(main())
