"""Files: atomic writes, safe reads, and locks between processes.

For any content of a file, a reader returns a value or raises an EquitransError with the file and,
if known, the line.
"""

import errno
import json
import os
import re
import socket
import sys
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from equitrans.errors import DataError, EquitransError, RunError, shown
from equitrans.settings import LARGEST_JSON

FORMAT = 2
"""Format number of model directories; directories with another number are rejected."""

LOCK = "lock"
"""Name of the lock file of a run directory."""

INVISIBLE = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u200b\u2060\ufeff\ud800-\udfff]")
"""Rejected characters: control characters except white space, zero-width characters that no script
needs, and lone surrogates. Zero-width joiners are accepted because some scripts spell words with
them."""

TOML_KEYS = 30_000
"""Largest number of keys, dots and tables in a TOML file; each costs the parser a kilobyte."""

TOML_DOTS = 200
"""Largest number of dots on one line of TOML; the parser's time grows with their square."""

TOML_TOKEN = 2000
"""Largest number of characters of a TOML key or number."""

_LONG_TOKEN = re.compile(rf"[\w.+-]{{{TOML_TOKEN + 1}}}")
_STRINGS_AND_COMMENTS = re.compile(
    r'"""[^"\\]*+(?:(?:\\.|"(?!""))[^"\\]*+)*+"""'
    r"|'''[^']*+(?:'(?!'')[^']*+)*+'''"
    r'|"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"'
    r"|'[^'\n]*+'"
    r"|\#[^\n]*+",
    re.DOTALL,
)


# --- writing


def write_atomically(path: Path | str, content: bytes | str) -> None:
    """Replace a file: write a temporary file, flush it, rename it, flush the folder.

    A reader sees the old content or the new one, never a mixture. Symbolic links are followed;
    devices are written to directly.
    """
    path = Path(os.path.realpath(path))  # Path.resolve() raises RuntimeError for a loop of links
    if path.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    if path.exists() and not path.is_file():
        with path.open("wb") as device:
            device.write(_encoded(content))
        return
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(path.parent))
    temporary = _temporary(path)
    with _errors_name(path), _removing(temporary):
        _write_flushed(temporary, content)
        os.replace(temporary, path)
        flush(path.parent)


def write_together(folder: Path, contents: Mapping[str, bytes | str | None]) -> None:
    """Replace files of a folder that belong together; None removes a file.

    All contents are written beside the old files first, so a full disk changes nothing. Then the
    last file is removed, the others are replaced, and the last file appears: a folder with this
    file is complete. The caller holds the folder's lock.
    """
    paths = {name: folder / name for name in contents}
    new = {name: _temporary(paths[name]) for name, text in contents.items() if text is not None}
    with _removing(*new.values()):
        for name, temporary in new.items():
            with _errors_name(paths[name]):
                _write_flushed(temporary, contents[name] or "")
    # from here on temporary files stay after an error: ``refuse_used`` knows the folder by them
    (*_, last) = paths.values()
    last.unlink(missing_ok=True)
    flush(folder)
    for name, path in paths.items():
        with _errors_name(path):
            if name in new:
                os.replace(new[name], path)
            else:
                path.unlink(missing_ok=True)
    flush(folder)


def _encoded(content: bytes | str) -> bytes:
    return content.encode() if isinstance(content, str) else content


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")


def _write_flushed(path: Path, content: bytes | str) -> None:
    """Write a new temporary file to the disk."""
    path.unlink(missing_ok=True)  # left by a killed process with our process number
    with path.open("xb") as file:
        file.write(_encoded(content))
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def _removing(*paths: Path) -> Iterator[None]:
    """Remove temporary files after an error."""
    try:
        yield
    except BaseException:
        for path in paths:
            with suppress(OSError):
                path.unlink()
        raise


@contextmanager
def _errors_name(path: Path) -> Iterator[None]:
    """Put ``path`` into every OSError: a full disk names no file, others the temporary one."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


def append_line(path: Path, line: str) -> None:
    """Append a line to a log. A process killed here leaves a partial line; readers skip it."""
    with _errors_name(path), path.open("ab") as log:
        log.write(line.encode() + b"\n")


def flush(path: Path) -> None:
    """Flush a file, or the names in a folder, to the disk."""
    if sys.platform == "win32":
        return  # Windows cannot open folders and flushes renames by itself
    try:
        opened = os.open(path, os.O_RDONLY)
    except PermissionError:
        return  # a folder with write permission but without read permission
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # not supported by this file system
            raise
    finally:
        os.close(opened)


def remove_leftovers(folder: Path) -> None:
    """Remove temporary files of killed processes; the caller holds the folder's lock."""
    for path in folder.glob(".*.tmp"):
        path.unlink(missing_ok=True)


@contextmanager
def locked(path: Path | str, *, what: str, timeout: float = 0.0) -> Iterator[None]:
    """Hold a lock file; raise RunError if another process holds it for ``timeout`` seconds.

    The kernel holds the lock, so a lock file left by a killed process locks nothing.
    """
    path = Path(path)
    lock = FileLock(path, timeout=timeout)
    try:
        lock.acquire()
    except Timeout:
        holder = path.read_bytes()[:200].decode(errors="replace").strip()
        raise RunError(
            f"{what} is in use by {holder or 'another process'}; wait until it ends, or end it"
        ) from None
    try:
        path.write_text(f"process {os.getpid()} on {socket.gethostname()}\n")
        yield
    finally:
        with suppress(FileNotFoundError):
            path.unlink()
        lock.release()


# --- reading


def normalized(text: str) -> str:
    r"""The text in Unicode's composed form (NFC): equal-looking texts become equal.

    >>> normalized("cafe\u0301") == "café"
    True
    """
    return unicodedata.normalize("NFC", text)


def check_visible(text: str) -> None:
    r"""Raise DataError at the first invisible character: two words would look equal and differ.

    >>> check_visible("a\u200bb")
    Traceback (most recent call last):
    equitrans.errors.DataError: invisible character U+200B ZERO WIDTH SPACE at position 2; remove it
    """
    if found := INVISIBLE.search(text):
        code = found[0]
        name = unicodedata.name(code, "NUL" if code == "\0" else "control character")
        raise DataError(
            f"invisible character U+{ord(code):04X} {name} at position {found.start() + 1}; "
            "remove it"
        )


def read_text(path: Path, error: type[EquitransError] = DataError) -> str:
    """The content of a UTF-8 file without its byte order mark."""
    raw = path.read_bytes()
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as wrong:
        line = raw.count(b"\n", 0, wrong.start) + 1
        raise error(f"{path}:{line}: not UTF-8: {wrong.reason}") from None


def read_json(path: Path, error: type[EquitransError] = DataError) -> Any:
    """The value of a JSON file."""
    text = read_text(path, error)
    try:
        return json.loads(text)
    except json.JSONDecodeError as wrong:
        raise error(f"{path} is damaged: {wrong}") from None
    except (ValueError, RecursionError) as wrong:
        raise error(f"{path} is damaged: {_reason(wrong)}") from None


def read_toml(path: Path, error: type[EquitransError] = DataError) -> dict[str, Any]:
    """The tables of a TOML file."""
    text = read_text(path, error)
    if (excess := _too_costly(_STRINGS_AND_COMMENTS.sub("", text))) is not None:
        raise error(f"{path}: {excess}")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as wrong:
        raise error(f"{path} is not a TOML file: {wrong}") from None
    except (ValueError, RecursionError) as wrong:
        raise error(f"{path} is not a TOML file: {_reason(wrong)}") from None


def _too_costly(bare: str) -> str | None:
    """Why tomllib would need too much time or memory for a text without its strings, or None."""
    keys = bare.count("=") + bare.count(".") + len(re.findall(r"^[ \t]*\[", bare, re.MULTILINE))
    if keys > TOML_KEYS:
        return f"{keys} keys and tables; the limit is {TOML_KEYS}"
    if any(line.count(".") > TOML_DOTS for line in bare.split("\n")):
        return f"a line with more than {TOML_DOTS} dots outside of strings"
    if _LONG_TOKEN.search(bare):
        return f"a key or number of more than {TOML_TOKEN} characters"
    return None


def _reason(wrong: Exception) -> str:
    if isinstance(wrong, RecursionError):
        return "its values are nested too deeply"
    return "a number has too many digits"


# --- model directories


def as_path(path: Path | str) -> Path:
    """The path of a name; raise RunError if it is neither text nor a path, or has a NUL."""
    if not isinstance(path, str | os.PathLike) or "\0" in str(path):
        raise RunError(f"{shown(path)} is not the name of a file or folder")
    return Path(path)


def refuse_links(directory: Path) -> None:
    """Raise RunError if a file of the directory links to a place outside it, or is a pipe or a
    device: the author of a model directory must not choose which other files are read or written,
    or make a command wait.
    """
    home = os.path.realpath(directory)
    for path in directory.iterdir() if directory.is_dir() else ():
        if path.is_symlink() and os.path.dirname(os.path.realpath(path)) != home:
            raise RunError(f"{path} is a link to {path.readlink()}, outside of the directory")
        if path.exists() and not path.is_file() and not path.is_dir():
            raise RunError(f"{path} is a pipe or a device; expected a file")


def refuse_used(path: Path | str, *, resumable: bool = False) -> None:
    """Raise RunError unless ``path`` is absent or empty. The files of a killed process do not
    count: lock, temporary files, and parts of a model that waits for its config.json.
    """
    path = as_path(path)
    names = {p.name for p in path.iterdir()} if path.is_dir() else set()
    leftovers = {name for name in names if name.startswith(".") and name.endswith(".tmp")}
    leftovers |= {LOCK, "vocabulary.json"} if LOCK in names else set()
    if "config.json" not in names and any(n.startswith(".config.json.") for n in leftovers):
        leftovers |= {"vocabulary.json", "grammar.json", "model.safetensors", "README.md"}
    if (os.path.lexists(path) and not path.is_dir()) or names - leftovers:
        run = f", or continue it with equitrans train --resume {path}"
        hint = run if resumable and "epochs.jsonl" in names else ""
        raise RunError(f"{path} already exists; choose another directory{hint}")


def read_part(path: Path, *, expected: int | None = FORMAT) -> dict[str, Any]:
    """The object in a JSON file of a model directory; ``expected`` None accepts every format."""
    find_file(path)
    if (size := path.stat().st_size) > LARGEST_JSON:
        raise RunError(f"{path} has {size} bytes; the limit is {LARGEST_JSON}")
    content = read_json(path, RunError)
    if not isinstance(content, dict):
        raise RunError(f"{path} is damaged: expected an object")
    if expected is not None:
        check_format(path, content, expected)
    return content


def check_format(path: Path, content: dict[str, Any], expected: int) -> None:
    """Raise RunError unless the content has the format number that this version reads."""
    found = content.get("format", expected)
    if not isinstance(found, int):
        raise RunError(f"{path} is damaged: its format is {shown(found)}")
    if found != expected:
        version = shown(content.get("version")).strip("'")
        advice = "please upgrade" if found > expected else "please train it again"
        raise RunError(
            f"{path.parent} was written by equitrans {version} in format "
            f"{shown(found)}; this version reads format {expected}: {advice}"
        )


def find_file(path: Path) -> None:
    """Raise RunError unless the file of a model directory exists."""
    if not path.parent.is_dir():
        raise RunError(f"{path.parent}: no such run directory")
    if not path.is_file():
        raise RunError(f"{path.parent} is not a complete run directory: {path.name} is missing")
