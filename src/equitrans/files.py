"""Files written whole or not at all."""

import os
from contextlib import suppress
from pathlib import Path


def write_atomically(path: Path | str, content: bytes | str) -> None:
    """Write under another name, then rename into place: a reader sees the old file or the new
    one.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
