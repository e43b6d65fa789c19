"""What a benchmark writes down of where it ran: the processor, not the machine's name."""

from typing import Any


def pytest_benchmark_update_machine_info(machine_info: dict[str, Any]) -> None:
    machine_info.pop("node", None)


def pytest_benchmark_update_json(output_json: dict[str, Any]) -> None:
    output_json.pop("commit_info", None)
