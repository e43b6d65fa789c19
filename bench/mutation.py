"""Mutation testing (make mutation): mutmut changes the code in one place at a time, and a test has
to fail.

    python bench/mutation.py run --workers 2     # two hours; continues an interrupted run
    python bench/mutation.py run 'equitrans.paper.groups.*'
    python bench/mutation.py write               # records/reliability/mutation.json

pyproject.toml lists the modules that are changed and the tests that run. The record has counts
only; ``write`` lists the surviving mutants with their changes in mutants/survivors.json, which git
ignores.
"""

import argparse
import json
import sys
from collections import Counter
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "records" / "reliability" / "mutation.json"
SURVIVORS = ROOT / "mutants" / "survivors.json"

PARTS = {
    "groups": ["paper.groups"],
    "layers": ["paper.layers", "paper.aligner", "paper.translator"],
    "marginals": ["paper.marginals"],
    "decoding": ["analysis.decoding"],
    "discovery": ["data.discovery", "data.grouping", "data.lexicon"],
    "recursive aligner": ["models.recursive"],
}
"""The rows of the record, each with its modules."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Give tests the attribute that mutmut 3.8 reads and pytest 9.2 does not have."""
    item._nodeid = item.nodeid


def run(workers: int, names: list[str]) -> None:
    """Run mutmut with this file as a pytest plugin."""
    from mutmut.__main__ import cli
    from mutmut.configuration import config

    config().pytest_add_cli_args.extend(
        [
            *("-p", "mutation", "-p", "no:cacheprovider", "-W", "ignore:Module already imported"),
            # without this, a second collection in one process escapes the names of tests again
            *("-o", "disable_test_id_escaping_and_forfeit_all_rights_to_community_support=true"),
        ]
    )
    cli(["run", "--max-children", str(workers), *names])


def part_of(module: str) -> str:
    """Return the row that a module counts for."""
    inside = module.removeprefix("equitrans.")
    return next(
        name
        for name, modules in PARTS.items()
        if any(inside == each or inside.startswith(f"{each}.") for each in modules)
    )


def write() -> None:
    """Write the counts of every part to the record, and the survivors to SURVIVORS."""
    from mutmut.mutation.data import SourceFileMutationData
    from mutmut.mutation.diff_apply import get_diff_for_mutant
    from mutmut.stats import status_by_exit_code
    from mutmut.utils.file_utils import walk_mutatable_files

    counts: dict[str, Counter[str]] = {name: Counter() for name in PARTS}
    survivors: dict[str, str] = {}
    for path in sorted(walk_mutatable_files()):
        data = SourceFileMutationData(path=path)
        data.load()
        for name, code in data.exit_code_by_key.items():
            status = status_by_exit_code[code]
            module = name.rpartition("__mutmut_")[0].rpartition(".")[0]
            count = counts[part_of(module)]
            if status == "not checked":
                count[status] += 1
                continue
            count["mutants"] += 1
            if status in ("killed", "timeout"):
                count["killed"] += 1
            else:
                lines = get_diff_for_mutant(name, path=path).splitlines()[2:]
                changed = " ".join(line for line in lines if line[:1] in "+-")
                survivors[name] = " ".join(changed.split())
    rows = []
    for name, count in counts.items():
        made, killed = count["mutants"], count["killed"]
        row = {"part": name, "mutants": made, "killed": killed, "survived": made - killed}
        rows.append(row | {"killed, %": round(100 * killed / max(made, 1), 1)})
        print(rows[-1], f"not run: {count['not checked']}")
    versions = {name: version(name) for name in ("equitrans", "mutmut", "pytest", "torch")}
    record = {"rows": rows, "version": versions}
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    SURVIVORS.write_text(json.dumps(survivors, indent=1) + "\n", encoding="utf-8")
    print(f"{len(survivors)} survivors: {SURVIVORS}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="mutation testing")
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="run the mutants that were not run yet")
    running.add_argument("--workers", type=int, default=2)
    running.add_argument("names", nargs="*", help="mutants to run again")
    commands.add_parser("write", help="write the record")
    asked = parser.parse_args()
    sys.exit(run(asked.workers, asked.names) if asked.command == "run" else write())
