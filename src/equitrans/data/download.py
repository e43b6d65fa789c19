"""The official SCAN files, fetched from their repository: verified, atomic, and not fetched
twice.
"""

from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from equitrans.data.scan import RULES, official_rows
from equitrans.errors import DataError
from equitrans.files import write_atomically

OFFICIAL = "https://raw.githubusercontent.com/brendenlake/SCAN/master"


def download(folder: Path, *, url: str = OFFICIAL) -> Iterator[Path]:
    """Fetch the files of all splits, passing over those that are there and right."""
    for name, rule in RULES.items():
        for part, sha in zip(("train", "test"), rule.shas, strict=True):
            path = folder / rule.files.format(part)
            try:
                official_rows(name, path, sha)
            except DataError:
                path.parent.mkdir(parents=True, exist_ok=True)
                _fetch(f"{url}/{rule.files.format(part)}", name, path, sha)
            yield path


def _fetch(address: str, name: str, path: Path, sha: str) -> None:
    """Into a file beside the right one first, so that wrong rows never stand under its name."""
    try:
        with urlopen(address, timeout=60) as answer:
            content: bytes = answer.read()
    except (URLError, TimeoutError) as error:
        raise DataError(f"{address}: {getattr(error, 'reason', error)}") from None
    fetched = path.with_suffix(".part")
    write_atomically(fetched, content)
    try:
        official_rows(name, fetched, sha)
    except DataError as error:
        fetched.unlink()
        raise DataError(f"{address}: {error}") from None
    fetched.replace(path)
