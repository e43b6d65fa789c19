"""Build a release and try it out (make release-check).

Wheel and sdist are built twice, and both builds must have the same bytes. Each file is installed
into an empty environment, which trains, uses and loads a model outside of the checkout. The
packages in the environment of the wheel are written to a bill of materials (CycloneDX) beside it.
With --tests, the tests of the unpacked sdist run too, in the environment of this command: half an
hour on two cores. Paths after it run some of them: --tests tests/cli tests/data.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

PAIRS = "walk\tWALK\njump\tJUMP\nwalk twice\tWALK WALK\nrun twice\tRUN RUN\nrun\tRUN\n"
CLASSES = """\
[[class]]
name = "verbs"
source = ["walk", "jump", "run"]
target = ["WALK", "JUMP", "RUN"]
"""
LOAD = """\
import sys, equitrans
assert equitrans.__file__.startswith(sys.prefix), equitrans.__file__
trained = equitrans.Trained.load("run")
words = trained.predict(["jump twice"])[0].words
print(equitrans.__version__, words)
assert words == ("JUMP", "JUMP"), words
"""


def run(*command: object, cwd: Path = ROOT, **environment: str) -> str:
    """Run a command that must succeed, without the checkout and its settings."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=clean | environment,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def build(out: Path) -> dict[str, str]:
    """Build the files of a release and return their SHA-256."""
    # the time of the last commit, so that the same sources always give the same files
    epoch = run("git", "log", "-1", "--format=%ct").strip()
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, SOURCE_DATE_EPOCH=epoch)
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(out.iterdir())}


def try_out(file: Path, place: Path) -> Path:
    """Install a file into an empty environment, use it, and return its Python."""
    started = time.monotonic()
    venv.create(place / "env", with_pip=True)
    python = place / "env" / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", file, cwd=place)
    installed = time.monotonic()
    (place / "pairs.tsv").write_text(PAIRS, encoding="utf-8")
    (place / "classes.toml").write_text(CLASSES, encoding="utf-8")
    command = place / "env" / "bin" / "equitrans"
    run(
        *(command, "train", "--data", "pairs.tsv", "--classes", "classes.toml", "--out", "run"),
        *("--training.updates", 200, "--validation", 0, "--quiet"),
        cwd=place,
    )
    answer = run(command, "predict", "run", "jump twice", cwd=place).strip()
    assert answer == "JUMP JUMP", answer
    loaded = run(python, "-c", LOAD, cwd=place).strip()
    print(
        f"{file.name}: installed in {installed - started:.0f} s, trained, used and loaded in "
        f"{time.monotonic() - installed:.0f} s: {loaded}",
        flush=True,
    )
    return python


def materials(python: Path, out: Path) -> int:
    """Write the bill of materials of an environment and return its number of components."""
    run(
        *(sys.executable, "-m", "cyclonedx_py", "environment", python, "--output-reproducible"),
        *("--pyproject", ROOT / "pyproject.toml", "--of", "JSON", "-o", out),
    )
    return len(json.loads(out.read_text(encoding="utf-8"))["components"])


def run_tests(sdist: Path, place: Path, paths: Sequence[str]) -> None:
    """Run some tests of an unpacked sdist, against the package in it."""
    started = time.monotonic()
    with tarfile.open(sdist) as archive:
        archive.extractall(place, filter="data")
    (home,) = (path for path in place.iterdir() if path.is_dir())
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", *paths]
    last = run(*command, cwd=home, PYTHONPATH=str(home / "src")).strip().splitlines()[-1]
    print(f"tests from {sdist.name}: {last} ({time.monotonic() - started:.0f} s)", flush=True)


def main() -> int:
    """Build twice, compare, install, use, and write the bill of materials."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tests", nargs="*", metavar="PATH", help="run tests of the sdist")
    asked = parser.parse_args()
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    with tempfile.TemporaryDirectory() as place:
        first, second = build(dist), build(Path(place) / "again")
        for name, digest in first.items():
            print(digest, name, flush=True)
        if first != second:
            raise SystemExit(f"two builds differ: {first} {second}")
        wheel, sdist = sorted(dist.iterdir(), key=lambda path: path.suffix != ".whl")
        for file in (wheel, sdist):
            folder = Path(place) / file.suffix[1:]
            folder.mkdir()
            python = try_out(file, folder)
            if file == wheel:
                bill = dist / f"{wheel.name.partition('-py3')[0]}.cdx.json"
                print(f"{bill.name}: {materials(python, bill)} components", flush=True)
        if asked.tests is not None:
            unpacked = Path(place) / "unpacked"
            unpacked.mkdir()
            run_tests(sdist, unpacked, asked.tests or ["tests"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
