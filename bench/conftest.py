"""Reduce the output of pytest-benchmark to figures and the kind of machine, without its name."""

from typing import Any

MACHINE = ("machine", "python_version", "system")
FIGURES = ("min", "median", "max", "rounds")


def pytest_benchmark_update_json(output_json: dict[str, Any]) -> None:
    output_json.pop("commit_info", None)
    info = output_json["machine_info"]
    cpu = info.get("cpu", {}).get("brand_raw", "")
    output_json["machine_info"] = {k: info[k] for k in MACHINE} | {"cpu": cpu}
    for row in output_json["benchmarks"]:
        row["stats"] = {name: row["stats"][name] for name in FIGURES}
