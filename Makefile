# Everything runs in .venv, which is made on first use: make demo, make test.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-sse test-avx2 browser check lint types bench reliability results pages docs fuzz coverage mutation lock audit release-check clean

demo: .venv/installed
	$(BIN)/python examples/demo.py demo

test: .venv/installed browser
	$(BIN)/python -m pytest -n 2 --dist loadfile

check: lint types docs test

# the numerical tests with the vector instructions of older processors: kernels round differently
NUMERICAL = tests/paper tests/models tests/analysis tests/training

test-sse: .venv/installed
	ATEN_CPU_CAPABILITY=default DNNL_MAX_CPU_ISA=SSE41 $(BIN)/python -m pytest -n 2 --dist loadfile $(NUMERICAL)

test-avx2: .venv/installed
	ATEN_CPU_CAPABILITY=avx2 DNNL_MAX_CPU_ISA=AVX2 $(BIN)/python -m pytest -n 2 --dist loadfile $(NUMERICAL)

# the explorer's page is tested in a real browser, where one is installed or can be
browser:
	@command -v chromium chromium-browser >/dev/null \
	|| { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -q && apt-get install -y -q chromium; } \
	|| echo "Chromium is missing and cannot be installed here; the tests of the explorer's page will be skipped"

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/installed
	$(BIN)/mypy

bench: .venv/installed
	$(BIN)/python bench/bench.py
	$(BIN)/python -m pytest -o addopts= -q bench/test_scaling.py --benchmark-only --benchmark-columns=min,median \
		--benchmark-json bench/scaling.json
	$(BIN)/python bench/plot_scaling.py bench/scaling.json docs/pictures/scaling.png

# the long forms of the tests of reliability: half an hour on two cores
reliability: .venv/installed
	$(BIN)/python bench/reliability.py

results: .venv/installed
	$(BIN)/python docs/update.py

pages: .venv/installed
	$(BIN)/python tests/fixtures/pages.py --full

docs: .venv/installed
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html

fuzz: .venv/installed
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[fuzz]'
	$(BIN)/python fuzz/run.py --workers 2 --out records/reliability/fuzz-1.json

# how much of the package the tests go through, lines and branches: at least 95 %
coverage: .venv/installed browser
	$(BIN)/python bench/covered.py

# whether the tests notice when the code is changed: two hours on two cores
mutation: .venv/installed
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[mutation]'
	$(BIN)/python bench/mutation.py run --workers 2
	$(BIN)/python bench/mutation.py write

# constraints.txt says which versions; the lock adds what their files must be
lock: .venv/release
	$(BIN)/python release/lock.py

audit: .venv/release
	$(BIN)/python release/audit.py

release-check: .venv/release
	$(BIN)/python release/check.py

clean:
	rm -rf .venv demo build dist docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/installed: pyproject.toml constraints.txt requirements-dev.lock
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

.venv/release: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[release]'
	touch $@
