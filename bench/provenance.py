"""Where a figure comes from."""

import subprocess
from pathlib import Path


def commit() -> str:
    """The commit of the source tree, with a mark if files have changed; empty outside a clone."""
    asked = ["git", "describe", "--always", "--dirty", "--abbrev=40"]
    folder = Path(__file__).parent
    found = subprocess.run(asked, cwd=folder, capture_output=True, text=True, check=False)
    return found.stdout.strip()
