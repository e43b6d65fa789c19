"""Files of settings for equitrans train --config: YAML without aliases, or JSON."""

from pathlib import Path
from typing import Any

import yaml
from jsonargparse import get_loader, set_loader

from equitrans.errors import ConfigError, named, shown
from equitrans.files import read_text

MODE = "yaml without aliases"
"""Name of the loader for jsonargparse, which reads the file too."""


DEEPEST = 10
"""Largest number of nested levels of a file."""


def _load(text: str) -> Any:
    """The value of a YAML text. An alias raises ConfigError, because a few aliases of aliases stand
    for more values than any memory holds; so does deep nesting, which takes quadratic time.
    """
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            raise ConfigError(f"line {line}: *{named(event.anchor)} is an alias; write its value")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise ConfigError(f"line {line}: more than {DEEPEST} levels; settings have two")
    return get_loader("yaml")(text)


set_loader(MODE, _load, (yaml.YAMLError,))


def read_config(path: str | None) -> dict[str, Any]:
    """The settings of a YAML or JSON file."""
    if path is None:
        return {}
    text = read_text(Path(path), ConfigError)
    try:
        content = _load(text)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    except Exception as error:  # of YAML, or a ValueError of a malformed date
        raise ConfigError(f"{path}: not a YAML file: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: expected lines of the form name: value")
    for name, value in content.items():
        # a nested value is not a setting
        kind = str if name in ("kind", "recipe", "split") else bool | int | float | str | None
        values = value.values() if isinstance(value, dict) else [value]
        if not isinstance(name, str) or not all(isinstance(each, kind) for each in values):
            raise ConfigError(f"{path}: {shown(name)} is {shown(value)}; expected a value")
    if isinstance(kind := content.get("model"), str):
        message = f"model is {shown(kind)}; write kind: {named(kind)}, and its settings under model"
        raise ConfigError(f"{path}: {message}")
    return content
