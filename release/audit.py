"""Look for known vulnerabilities of all pinned packages (make audit).

Exit status 0 if there are none, 1 if there are some. If the database cannot be reached, the result
is "not audited" with status 0.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def verdict(output: str, errors: str) -> tuple[int, str]:
    """Return the exit status and the message for an output of pip-audit.

    It lists every package with its vulnerabilities or with the reason why they are unknown. If all
    are unknown, the database was not reached; if some are unknown, each of them is a finding.
    """
    try:
        packages = json.loads(output)["dependencies"]
    except (ValueError, KeyError, TypeError):
        packages = []
    known = [p for p in packages if "skip_reason" not in p]
    if not known:
        reason = (errors.strip().splitlines() or ["no reason given"])[-1][:300]
        return 0, f"NOT AUDITED: the database gave no answer ({reason})"
    found = [f"{p['name']} {p['version']}: {v['id']}" for p in known for v in p["vulns"]]
    found += [f"{p['name']}: {p['skip_reason']}" for p in packages if "skip_reason" in p]
    return bool(found), "\n".join([*found, f"audited {len(known)}, findings {len(found)}"])


def audit(*options: str) -> tuple[str, str]:
    """Return standard output and standard error of pip-audit for the pinned versions."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip_audit", *options, "--no-deps", "--disable-pip"),
            *("-r", ROOT / "constraints.txt", "-f", "json", "--progress-spinner", "off"),
        ],
        capture_output=True,
        text=True,
    )
    return done.stdout, done.stderr


def main() -> int:
    """Audit the pinned versions; strictly, unless that stops at the first unknown package."""
    output, errors = audit("--strict")
    if not output.strip():
        output, _ = audit()
    status, said = verdict(output, errors)
    print(said)
    return status


if __name__ == "__main__":
    sys.exit(main())
