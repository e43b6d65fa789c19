"""Folders to and from the Hugging Face hub. Knows files, not models. Who one is there is the
business of its own library: ``hf auth login``, or HF_TOKEN.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import Any

from equitrans.errors import ConfigError, RunError

_NAME = re.compile(r"[\w.-]+/[\w.-]+")


def load_hub() -> Any:
    """The library of the hub, which not every installation has."""
    try:
        return import_module("huggingface_hub")
    except ModuleNotFoundError as missing:
        raise ConfigError(f"the hub needs {missing.name}: pip install 'equitrans[hub]'") from None


@contextmanager
def fetched(
    name: Path | str, files: Sequence[str], *, revision: str | None = None
) -> Iterator[Path]:
    """A folder with some of the files of a model: itself if it is one, or, for a while, what the
    hub has under a name.
    """
    if Path(name).is_dir():
        yield Path(name)
        return
    if not _NAME.fullmatch(str(name)):
        raise RunError(f"{name}: no such folder, nor a name on the hub, which is owner/name")
    hub = load_hub()
    try:
        cache = hub.snapshot_download(str(name), revision=revision, allow_patterns=[*files])
    except (OSError, ValueError, hub.errors.HTTPError) as error:
        raise RunError(f"{name}: no such folder, and not from the hub: {_first(error)}") from None
    with TemporaryDirectory() as folder:
        # in the cache files are links to where all of them are kept; a model has files of its own
        for file in files:
            if (path := Path(cache) / file).is_file():
                copyfile(path, Path(folder) / file)
        try:
            yield Path(folder)
        except RunError as error:
            raise RunError(f"{name} on the hub: {error}") from None


def push(folder: Path, name: str, *, private: bool = False, revision: str | None = None) -> str:
    """Put a folder on the hub under a name, which is made if it is new, and give its address."""
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{name!r} is no name on the hub; it must be owner/name")
    hub = load_hub()
    api = hub.HfApi()
    try:
        address = api.create_repo(name, private=private, exist_ok=True)
        if revision is not None:
            api.create_branch(name, branch=revision, exist_ok=True)
        api.upload_folder(
            repo_id=name,
            folder_path=folder,
            revision=revision,
            commit_message="A model saved by equitrans",
        )
    except (OSError, ValueError, hub.errors.HTTPError) as error:
        raise RunError(f"{name} could not be put on the hub: {_first(error)}") from None
    return str(address)


def _first(error: Exception) -> str:
    r"""The line of an error that says most: the first that is more than a number of HTTP.

    >>> _first(OSError("404 Client Error.\n\nRepository Not Found.\nPlease make sure"))
    'Repository Not Found.'
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if not re.match(r"\d{3} (Client|Server) Error", line)]
    return (telling or lines or [type(error).__name__])[0]
