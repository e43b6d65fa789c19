# All targets run in .venv. Make creates it on first use.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-sse test-avx2 browser check lint types bench reliability results pages docs site house fuzz coverage mutation screencast lock audit release-check clean

demo: .venv/installed
	$(BIN)/python examples/demo.py demo

# Types and shapes are checked at run time where tensors are computed. It makes training and the search for rules three
# times slower, so the other tests go without.
PYTEST = $(BIN)/python -m pytest -n 2 --dist loadfile
SHAPES = --jaxtyping-packages=equitrans,beartype.beartype

test: .venv/installed browser
	$(PYTEST) $(SHAPES) tests/paper tests/models tests/analysis --ignore tests/models/recursive
	$(PYTEST) tests/data tests/models/recursive tests/training tests/experiments tests/explorer tests/cli tests/system src

# Types and documentation are checked side by side: each uses one core.
check: .venv/installed
	$(MAKE) --no-print-directory -j 2 lint types docs
	$(MAKE) --no-print-directory test

# The numerical tests with the vector instructions of older processors, whose kernels round differently.
NUMERICAL = tests/paper tests/models tests/analysis tests/training

test-sse: .venv/installed
	ATEN_CPU_CAPABILITY=default DNNL_MAX_CPU_ISA=SSE41 $(PYTEST) $(SHAPES) $(NUMERICAL)

test-avx2: .venv/installed
	ATEN_CPU_CAPABILITY=avx2 DNNL_MAX_CPU_ISA=AVX2 $(PYTEST) $(SHAPES) $(NUMERICAL)

# The tests of the explorer's page need Chromium. Install it if this machine allows it.
browser:
	@command -v chromium chromium-browser >/dev/null \
	|| { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -q && apt-get install -y -q chromium; } \
	|| echo "Chromium is not installed and cannot be installed here; pytest skips the tests of the explorer's page"

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

# Long versions of the reliability tests: half an hour on two cores.
reliability: .venv/installed
	$(BIN)/python bench/reliability.py

# Update the tables of README.md and docs/ from records/.
results: .venv/installed
	$(BIN)/python docs/update.py

# Run every command of the documentation at full length: minutes.
pages: .venv/installed
	$(BIN)/python tests/fixtures/pages.py --full

docs: .venv/installed
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html

# Put the built documentation into docs/_build/site, which has a folder for each version and a select of them.
site: docs
	$(BIN)/python docs/versions.py docs/_build/html docs/_build/site

# Draw the packages of src/equitrans, their sizes and their imports.
house: .venv/installed
	$(BIN)/python docs/picture.py docs/pictures/house.png

# Record the terminal of docs/learn.md as an animated picture.
screencast: .venv/installed
	$(BIN)/python docs/screencast.py docs/pictures/screencast.svg

fuzz: .venv/installed
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[fuzz]'
	$(BIN)/python fuzz/run.py --workers 2 --out records/reliability/fuzz-1.json

# Coverage of statements and branches by the tests; fails below 95 %.
coverage: .venv/installed browser
	$(BIN)/python bench/covered.py

# Mutation testing of the paper, discovery, decoding and the recursive aligner: two hours on two cores.
mutation: .venv/installed
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[mutation]'
	$(BIN)/python bench/mutation.py run --workers 2
	$(BIN)/python bench/mutation.py write

# Write requirements-dev.lock: the versions of constraints.txt with the hashes of their files.
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
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes --no-deps -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

.venv/release: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[release]'
	touch $@
