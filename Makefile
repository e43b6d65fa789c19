# Everything runs in .venv, which is made on first use: make demo, make test.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test check lint types bench results docs clean

demo: .venv/installed
	$(BIN)/python examples/demo.py demo

test: .venv/installed
	$(BIN)/python -m pytest

check: lint types docs test

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/installed
	$(BIN)/mypy

bench: .venv/installed
	$(BIN)/python bench/bench.py

results: .venv/installed
	$(BIN)/python docs/update.py

docs: .venv/installed
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html

clean:
	rm -rf .venv demo build dist docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@
