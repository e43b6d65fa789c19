"""Files written whole or not at all."""

import os
from contextlib import suppress
from errno import ENOENT
from pathlib import Path


def write_atomically(path: Path | str, content: bytes | str) -> None:
    """Write under another name, then rename into place: a reader sees the old file or the new
    one.

    A link is followed, and what is no plain file, such as a device, is written to as it is.
    """
    path = Path(path).resolve()
    if path.exists() and not path.is_file():
        with path.open("wb") as device:
            device.write(content.encode() if isinstance(content, str) else content)
        return
    if not path.parent.is_dir():
        raise FileNotFoundError(ENOENT, "there is no such folder", str(path.parent))
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
