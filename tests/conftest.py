"""All tests run in float64, on one CPU thread, with a fixed seed."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import settings

settings.register_profile("equitrans", deadline=None, max_examples=50, derandomize=True)
settings.load_profile("equitrans")

# here and not in a fixture: fixtures of a module run before those of a test
torch.set_num_threads(1)
# --device auto must not choose a GPU, which rounds differently; torch looks at this on first use
os.environ["CUDA_VISIBLE_DEVICES"] = ""
# a shell ignores Ctrl-C in the background, and the processes that tests interrupt would inherit it
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture
def float32(_float64: None) -> None:
    """Use float32, the default of users."""
    torch.set_default_dtype(torch.float32)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Return a function that runs a command in this process: status, output, errors."""
    from equitrans.cli.main import main

    def call(*arguments: object) -> tuple[int, str, str]:
        status = main([str(a) for a in arguments])
        out, err = capsys.readouterr()
        return status, out, err

    return call


@pytest.fixture(scope="session")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with small runs (jump, rules, attention) and an exported model (bare)."""
    from shows import make_runs

    return make_runs(tmp_path_factory.mktemp("shown"))
