"""Measure the coverage of the package by its tests, and write a record (make coverage).

    python bench/covered.py
    python bench/covered.py --from coverage.json     # a report of pytest --cov --cov-report=json

Exit status 1 below 95 % of statements or branches.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "records" / "reliability" / "coverage.json"
LEAST = 95.0


def measure(path: Path) -> None:
    """Run the tests and measure all their processes."""
    how = ("-n", "2", "--dist", "loadfile", "--cov", f"--cov-report=json:{path}")
    done = subprocess.run([sys.executable, "-m", "pytest", *how], cwd=ROOT, check=False)
    if done.returncode:
        sys.exit("tests failed; coverage is not recorded")


def main() -> int:
    """Measure, write the record, and compare with LEAST."""
    parser = argparse.ArgumentParser(description="coverage of the package by its tests")
    parser.add_argument("--from", dest="measured", type=Path, help="an existing report")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = asked.measured or Path(folder, "coverage.json")
        if asked.measured is None:
            measure(path)
        found = json.loads(path.read_text(encoding="utf-8"))
    totals = found["totals"]
    row = {
        "statements": totals["num_statements"],
        "gone through, %": round(totals["percent_statements_covered"], 1),
        "branches": totals["num_branches"],
        "taken, %": round(totals["percent_branches_covered"], 1),
    }
    for name, each in sorted(found["files"].items()):
        if each["summary"]["missing_branches"] or each["summary"]["missing_lines"]:
            print(name, f"{each['summary']['percent_covered']:.0f} %", each["missing_lines"])
    versions = {name: version(name) for name in ("equitrans", "coverage", "pytest")}
    text = json.dumps({"rows": [row], "version": versions}, indent=1) + "\n"
    RECORD.write_text(text, encoding="utf-8")
    print(text, end="")
    return 0 if min(row["gone through, %"], row["taken, %"]) >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
