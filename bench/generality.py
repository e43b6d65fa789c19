"""Measure learned rules on data that they were not made for: one JSON line per file or language.

    python bench/generality.py languages home mlc --data-dir BENCHMARKS
    python bench/generality.py scan and compounds --scan-dir SCAN
    python bench/generality.py tongues scale --processes 2

``in`` and ``long`` are percentages of exact matches at training length and beyond it, ``refused``
counts refused test sentences, ``sure`` counts wrong answers with p > 0.9, and ``margin`` has the
median margins of right and wrong answers. ``--only TEXT`` selects rows by name.
"""

import argparse
import json
import os
import random
import resource
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "fixtures"))

import torch

from equitrans import Pair, Trained, TransducerConfig, fit, load_split, read_pairs
from equitrans.data import CLASSES, everything
from equitrans.errors import EquitransError
from tongues import TONGUES, Tongue

RECURSIVE = TransducerConfig(aligner="recursive")

SPLITS = [
    "simple", "add_jump", "add_turn_left", "around_right", "opposite_right", "right",
    "jump_around_right", "length", *(f"simple_p{p}" for p in (1, 2, 4, 8, 16, 32, 64)),
]  # fmt: skip

CLAUSES = [("N <v> N", "1 0 2"), ("N <v>", "1 0")]

OTHERS = [
    # which operator binds first is shown by pairs of operators that meet in training
    Tongue(
        "three levels",
        {
            "S": [("T", "0"), ("S or T", "| 0 2"), ("S nor T", "2 0")],
            "T": [("F", "0"), ("T with F", "0 2 0")],
            "F": [("<k>", "0"), ("very F", "1 1"), ("open S close", "1")],
        },
        longest=8,
        beyond=18,
    ),
    # operators on the right that bind tighter than those on the left
    Tongue(
        "left over right",
        {
            "S": [("T", "0"), ("again S", "1 1"), ("never S", "NO 1")],
            "T": [("<u>", "0"), ("T fast", "0 0 0"), ("T so", "SO 0")],
        },
        longest=5,
        beyond=10,
    ),
    Tongue(
        "joined clauses",
        {
            "S": [("C", "0"), ("S while C", "2 & 0"), ("S so C", "0 2")],
            "C": [("P <v> P", "1 0 2"), ("P <v>", "1 0"), ("C twice", "0 0")],
            "P": [("<n>", "0"), ("<j> P", "1 0"), ("P near <n>", "2 0")],
        },
        longest=9,
        beyond=16,
    ),
    # two kinds of nouns; the article and every adjective agree
    Tongue(
        "agreement",
        {
            "S": [("F", "0"), ("M", "0"), ("S plus F", "0 + 2"), ("S plus M", "0 + 2")],
            "F": [("my E", "MINHA 1")],
            "M": [("my I", "MEU 1")],
            "E": [("<f>", "0"), ("big E", "1 GRANDA")],
            "I": [("<m>", "0"), ("big I", "1 GRANDO")],
        },
        longest=8,
    ),
    # the verb agrees with its subject, which stands before a phrase of the other number
    Tongue(
        "verbs agree",
        {
            "S": [("A goes", "0 VAS"), ("B go", "0 VAN"), ("S and then A stops", "0 ; 3 HALT")],
            "A": [("a <n>", "1"), ("a <n> by A", "1 @ 3"), ("a <n> by B", "1 @ 3")],
            "B": [("<q> <n>", "0 1"), ("<q> <n> by A", "0 1 @ 3")],
        },
        longest=9,
    ),
    Tongue(
        "orders",
        {
            "S": [("C", "0"), ("kindly C", "1"), ("C also S", "0 ; 2")],
            "C": [
                ("put D at R", "SET 3 1"),
                ("fetch D from R", "GET 3 1"),
                ("fetch R 's D", "GET 1 3"),
                ("is D at R", "ASK 3 1"),
            ],
            "D": [("the <d>", "1"), ("<d>", "0")],
            "R": [("<r>", "0"), ("<r> number <z>", "0 2")],
        },
        longest=12,
        beyond=24,
    ),
    Tongue(
        "verb last",
        {
            "S": [("N ga N o <v>", "4 ( 0 , 2 )"), ("N ga S to <w>", "4 ( 0 , 2 )")],
            "N": [("<n>", "0"), ("N no <n>", "2 . 0")],
        },
        longest=11,
        beyond=20,
    ),
    Tongue(
        "nothing short",
        {"S": [("C", "0"), ("S then C", "0 2"), ("S before C", "2 0")], "C": CLAUSES,
         "N": [("<n>", "0"), ("the <n>", "1"), ("<j> <n>", "1 0")]},
        shortest=15,
        longest=20,
        beyond=30,
    ),
    Tongue(
        "many words",
        {"S": [("C", "0"), ("S then C", "0 2"), ("S before C", "2 0")], "C": CLAUSES,
         "N": [("<n>", "0"), ("the <n>", "1"), ("<j> <n>", "1 0")]},
        longest=12,
        beyond=24,
        size=165,
    ),
]  # fmt: skip

LARGE = Tongue(
    "large",
    {
        "S": [("C", "0"), ("S then C", "0 2"), ("S before C", "2 0"), ("( S )", "1")],
        "C": [("P <v> P", "1 0 2"), ("P <v>", "1 0"), ("P <v> twice", "1 0 1 0")],
        "P": [("<n>", "0"), ("<j> <n>", "1 0"), ("the <n>", "1"), ("P of <n>", "2 0")],
    },
    longest=25,
    beyond=40,
)

Job = tuple[str, Callable[..., dict[str, Any]], tuple[Any, ...]]


def main() -> None:
    """Run the asked measurements in several processes and print their rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", nargs="+", choices=sorted(PARTS))
    parser.add_argument("--data-dir", type=Path, help="folder of languages/, home/ and mlc/")
    parser.add_argument("--scan-dir", help="folder of the official SCAN files")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", default="", help="text in the names of rows")
    parser.add_argument("--errors", type=int, default=0, help="number of wrong answers to show")
    asked = parser.parse_args()
    jobs = [job for part in asked.what for job in PARTS[part](asked) if asked.only in job[0]]
    with ProcessPoolExecutor(
        asked.processes, initializer=torch.set_num_threads, initargs=(1,)
    ) as pool:
        rows = [(name, pool.submit(_timed, call, arguments)) for name, call, arguments in jobs]
        for name, row in rows:
            found = row.result()
            errors = found.pop("errors", [])
            print(json.dumps({"name": name} | found), flush=True)
            for error in errors[: asked.errors]:
                print("   ", error, file=sys.stderr)


def _timed(call: Callable[..., dict[str, Any]], arguments: tuple[Any, ...]) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    began = time.process_time()
    try:
        row = call(*arguments)
    except EquitransError as error:
        row = {"error": str(error)}
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return row | {"total_s": round(time.process_time() - began, 1), "peak_mib": memory}


def measured(
    train: Sequence[Pair], classes: Any, tests: dict[str, Sequence[Pair]]
) -> tuple[Trained, dict[str, Any]]:
    """Learn rules, and judge them on several tests."""
    began = time.process_time()
    trained = fit(train, classes, model=RECURSIVE)
    row: dict[str, Any] = {"learn_s": round(time.process_time() - began, 1)}
    assert trained.grammar is not None
    row |= {
        "rules": len(trained.grammar.grammar),
        "unexplained": len(trained.grammar.exceptions),
        "warnings": len(trained.grammar.warnings),
    }
    errors: list[str] = []
    refused = sure = 0
    margins: dict[bool, list[float]] = {True: [], False: []}
    for part, pairs in tests.items():
        right = 0
        answers = trained.n_best([p.source for p in pairs], n=1)
        for pair, (best, *_) in zip(pairs, answers, strict=True):
            good = not best.refused and best.words == pair.target
            right += good
            if best.refused:
                refused += 1
            else:
                margins[good].append(getattr(best, "margin", 0.0))
            if not good:
                sure += not best.refused and best.log_prob > -0.105
                said = (
                    best.reason if best.refused else f"{best.log_prob:.2f} {' '.join(best.words)}"
                )
                errors.append(f"{part}: {' '.join(pair.source)} → {' '.join(pair.target)} | {said}")
        row[part] = round(100 * right / len(pairs), 1) if pairs else None
    middle = {
        "right" if good else "wrong": round(statistics.median(m), 1)
        for good, m in margins.items()
        if m
    }
    return trained, row | {"refused": refused, "sure": sure, "margin": middle, "errors": errors}


def languages(asked: argparse.Namespace) -> Iterator[Job]:
    """Small languages with classes discovered."""
    for path in sorted((asked.data_dir / "languages").glob("*.train.tsv")):
        yield path.name.removesuffix(".train.tsv"), language, (path,)


def language(path: Path) -> dict[str, Any]:
    name = path.name.removesuffix(".train.tsv")
    characters = name == "pasttense"
    pairs = {
        part: read_pairs(path.with_name(f"{name}.{part}.tsv"), characters=characters)
        for part in ("train", "in", "long")
    }
    train = pairs.pop("train")
    try:
        return measured(train, "discover", pairs)[1]
    except EquitransError as error:
        return measured(train, (), pairs)[1] | {"discovery": str(error)}


def home(asked: argparse.Namespace) -> Iterator[Job]:
    """A home's commands, and sentences to refuse."""
    for size in (40, 80, 150):
        yield f"home {size}", home_size, (asked.data_dir / "home", size)


def home_size(folder: Path, size: int) -> dict[str, Any]:
    train = read_pairs(folder / f"pairs-{size}.tsv")
    trained, row = measured(train, "discover", {"in": read_pairs(folder / "test.tsv")})
    bad = (folder / "to-refuse.txt").read_text().splitlines()
    answered = [p for p in trained.predict(bad) if not p.refused]
    row["to_refuse_answered"] = len(answered)
    row["errors"] += [f"answered: {' '.join(p.words)}" for p in answered]
    return row


def mlc(asked: argparse.Namespace) -> Iterator[Job]:
    """Few-shot episodes."""
    for path in sorted((asked.data_dir / "mlc").glob("*.train.tsv")):
        yield path.name.removesuffix(".train.tsv"), episode, (path,)


def episode(path: Path) -> dict[str, Any]:
    test = read_pairs(path.with_name(path.name.replace("train", "test")))
    return measured(read_pairs(path), "discover", {"in": test})[1]


def scan(asked: argparse.Namespace) -> Iterator[Job]:
    """All splits of SCAN."""
    for name in SPLITS:
        yield name, split, (name, asked.scan_dir)


def split(name: str, scan_dir: str | None) -> dict[str, Any]:
    found = load_split(name, scan_dir)
    return measured(found.train, "discover", {"in": found.test})[1]


def ands(asked: argparse.Namespace) -> Iterator[Job]:
    """SCAN sentences with 2 to 9 ``and`` for models of SCAN."""
    for name in ("simple", "length", "add_jump", "around_right"):
        yield f"and, {name}", several_ands, (name, None)
    for seed in range(4):
        yield f"and, 100 commands, draw {seed}", several_ands, (seed, 100)


def several_ands(name: str | int, size: int | None) -> dict[str, Any]:
    draw = random.Random(0)
    phrases = [p for p in everything() if not {"and", "after"} & set(p.source)]
    test = []
    for _ in range(200):
        parts = draw.choices(phrases, k=draw.randint(3, 10))
        source = tuple(w for part in parts for w in (*part.source, "and"))[:-1]
        test.append(Pair(source, tuple(w for part in parts for w in part.target)))
    if isinstance(name, str):
        train: Sequence[Pair] = load_split(name).train
    else:
        assert size is not None
        train = random.Random(name).sample(everything(), size)
    return measured(train, CLASSES["both"], {"long": test})[1]


def compounds(asked: argparse.Namespace) -> Iterator[Job]:
    """SCAN without some combinations of a modifier, a conjunction and a side of it, which are all
    in the test: derivations compete that training did not compare directly.
    """
    for missing, seed in product((6, 10, 13), range(5)):
        yield f"compounds {missing} {seed}", divided, (missing, seed)


def divided(missing: int, seed: int) -> dict[str, Any]:
    draw = random.Random(seed)
    modifiers = ("twice", "thrice", "opposite", "around", "directed")
    found = list(product(modifiers, ("and", "after"), ("before", "behind")))
    held_out = set(draw.sample(found, missing))

    def combinations(words: Sequence[str]) -> Iterator[tuple[str, str, str]]:
        for join in {"and", "after"} & set(words):
            at = words.index(join)
            for side, part in (("before", words[:at]), ("behind", words[at + 1 :])):
                names = set(part) | (
                    {"directed"} if part[1:2] in (("left",), ("right",)) else set()
                )
                yield from ((m, join, side) for m in modifiers if m in names)

    parts: tuple[list[Pair], list[Pair]] = ([], [])
    for pair in everything():
        parts[not held_out.isdisjoint(combinations(pair.source))].append(pair)
    train, test = parts
    tests = {"in": draw.sample(test, 1000)}
    return measured(train, CLASSES["both"], tests)[1] | {"pairs": len(train)}


def tongues(asked: argparse.Namespace) -> Iterator[Job]:
    """Artificial languages with their classes given, without and with wrong pairs."""
    for tongue, seed in product((*TONGUES, *OTHERS), range(2)):
        count = {"many words": 1000, "nothing short": 500}.get(tongue.name, 200)
        yield f"{tongue.name} {seed}", spoken, (tongue, count, seed, 0.0)
    for tongue in (*TONGUES, *OTHERS[:-2]):
        yield f"{tongue.name}, 3 % wrong", spoken, (tongue, 300, 2, 0.03)


def spoken(tongue: Tongue, count: int, seed: int, wrong: float) -> dict[str, Any]:
    train, spoiled = tongue.pairs(count, seed=seed, wrong=wrong)
    forms = {tuple(p.source) for p in train}
    like, _ = tongue.pairs(300, seed=seed + 77)
    tests = {
        "in": [p for p in like if p.source not in forms][:100],
        "long": tongue.judge(train, 100, seed=seed),
    }
    trained, row = measured(train, tongue.classes, tests)
    if wrong:
        assert trained.grammar is not None
        listed = {pair for pair, _ in trained.grammar.exceptions}
        row["wrong_listed"] = f"{len(listed & set(spoiled))}/{len(set(spoiled))}"
        row["right_listed"] = len(listed - set(spoiled))
    return row


def scale(asked: argparse.Namespace) -> Iterator[Job]:
    """Time and memory on many pairs."""
    for count in (1000, 5000, 20_000):
        yield f"{count} pairs", spoken, (LARGE, count, 0, 0.0)


PARTS: dict[str, Callable[[argparse.Namespace], Iterator[Job]]] = {
    "languages": languages,
    "home": home,
    "mlc": mlc,
    "scan": scan,
    "and": ands,
    "compounds": compounds,
    "tongues": tongues,
    "scale": scale,
}

if __name__ == "__main__":
    main()
