"""Upload and download folders with the Hugging Face hub. Authentication is that of
``huggingface_hub``: ``hf auth login`` or HF_TOKEN.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import Any

from equitrans.errors import ConfigError, RunError, shown
from equitrans.files import as_path

_NAME = re.compile(r"[\w.-]+/[\w.-]+")


def load_hub() -> Any:
    """The module ``huggingface_hub``; raise ConfigError if it is not installed."""
    try:
        return import_module("huggingface_hub")
    except ModuleNotFoundError as missing:
        raise ConfigError(f"the hub needs {missing.name}: pip install 'equitrans[hub]'") from None


@contextmanager
def fetched(
    name: Path | str, files: Sequence[str], *, revision: str | None = None
) -> Iterator[Path]:
    """A folder with some files of a model: ``name`` itself if it is a folder, or a temporary folder
    with the files of the hub's repository ``name``.
    """
    if (folder := as_path(name)).is_dir():
        yield folder
        return
    if not _NAME.fullmatch(str(name)):
        raise RunError(f"{name}: no such folder; a name on the hub has the form owner/name")
    hub = load_hub()
    try:
        cache = hub.snapshot_download(str(name), revision=revision, allow_patterns=[*files])
    except (OSError, ValueError, hub.errors.HTTPError) as error:
        raise RunError(f"{name}: no such folder, and none on the hub: {_first(error)}") from None
    with TemporaryDirectory() as place:
        # the hub's cache has links out of the folder, which loading a model rejects
        for file in files:
            if (path := Path(cache) / file).is_file():
                copyfile(path, Path(place) / file)
        try:
            yield Path(place)
        except RunError as error:
            raise RunError(f"{name} on the hub: {error}") from None


def push(folder: Path, name: str, *, private: bool = False, revision: str | None = None) -> str:
    """Upload a folder to the hub's repository ``name``, created if new; return its address."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigError(f"{shown(name)} is not a name on the hub; expected owner/name")
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
        raise RunError(f"{name} could not be uploaded to the hub: {_first(error)}") from None
    return str(address)


def _first(error: Exception) -> str:
    r"""The first line of an error that is not a bare HTTP status.

    >>> _first(OSError("404 Client Error.\n\nRepository Not Found.\nPlease make sure"))
    'Repository Not Found.'
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if not re.match(r"\d{3} (Client|Server) Error", line)]
    return (telling or lines or [type(error).__name__])[0]
