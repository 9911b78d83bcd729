# `make demo` and `make test` need Python 3.11 or newer and nothing else: each makes its own .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help demo test lint types unit docs papers bench races wheel oldest speed clean

help:
	@echo "make demo    two streams, letters and questions to a bank: methods side by side, and a picture"
	@echo "make test    lint, types, the order of the layers, tests and doctests"
	@echo "make docs    the documentation, in docs/_build/html"
	@echo "make papers  the tables and figures of the sources, from KESLER_DATA"
	@echo "make bench   the races with the peers in a short form, in about ten minutes"
	@echo "make races   the races in full, and the page benchmarks/RESULTS.md"
	@echo "make wheel   a wheel with kernels that no user need compile, in dist/"
	@echo "make oldest  a part of the tests with the oldest dependencies, on Python 3.11"
	@echo "make speed   whether rows take 5 % more time than in the last release, or in AGAINST"

demo: $(VENV)/installed
	@$(BIN)/kesler compare dataset:letter dataset:banking77/stream --plot demo.png
	@echo "What to try next:"
	@echo "  $(BIN)/kesler compare FILE             your CSV, JSON lines, Parquet or mail"
	@echo "  $(BIN)/kesler learn MODEL FILE         learn a model; then predict with it"
	@echo "  README.md, Try it                      kesler.compare and OnlineClassifier"

test: lint types unit

lint: $(VENV)/tested
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/tested
	$(BIN)/mypy

unit: $(VENV)/tested
	$(BIN)/pytest -n 2

SPHINX := $(BIN)/sphinx-build --fail-on-warning --keep-going --quiet -d docs/_build/doctrees

docs: $(VENV)/documented
	$(SPHINX) -b html docs docs/_build/html
	$(SPHINX) -b markdown docs docs/_build/html
	@echo "The documentation is in docs/_build/html/index.html."

$(VENV)/documented: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --group docs
	@touch $@

papers: $(VENV)/tested
	$(BIN)/python -m pip install --quiet --group papers
	$(BIN)/python papers/fink2006.py
	$(BIN)/python papers/amit2006.py
	$(BIN)/python papers/constraints.py
	$(BIN)/python papers/ordinal.py
	$(BIN)/python papers/enron_batch.py
	$(BIN)/python papers/lecture.py
	$(BIN)/python papers/mesterharm2001.py
	$(BIN)/python papers/few_labels.py
	$(BIN)/python papers/shareboost2011.py
	$(BIN)/python papers/shareboost_mnist.py

RACES := stream files forms events compare startup kernel_machines growth roofline many_classes taxa memory \
	past_one_machine

bench: $(VENV)/raced
	for race in $(RACES); do $(BIN)/python benchmarks/$$race.py --quick || failed=1; done; exit $$failed

races: $(VENV)/raced
	for race in $(RACES) batch batch_softmax shareboost mixed_norm; do \
		$(BIN)/python benchmarks/$$race.py || failed=1; done; exit $$failed

$(VENV)/raced: $(VENV)/tested
	$(BIN)/python -m pip install --quiet --group bench
	@touch $@

wheel: $(VENV)/installed
	$(BIN)/python wheels/ship_kernels.py
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

OLDEST := tests/test_numba_internals.py tests/test_events.py tests/test_state.py \
	tests/test_release.py

oldest: # needs Python 3.11: make oldest PYTHON=python3.11
	$(PYTHON) -m venv $(VENV)/oldest
	$(VENV)/oldest/bin/python -m pip install --quiet --editable . --constraint wheels/oldest.txt \
		pytest hypothesis pyyaml
	$(VENV)/oldest/bin/python -m pytest $(OLDEST)

AGAINST ?= $(shell git describe --tags --abbrev=0 2>/dev/null)

speed: $(VENV)/installed
	$(BIN)/python tests/gates/speed.py "$(AGAINST)"

$(VENV)/python:
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'Kesler needs Python 3.11 or newer: make PYTHON=python3.12')"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	@touch $@

$(VENV)/installed: $(VENV)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[plots]"
	@touch $@

$(VENV)/tested: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --group test --group lint
	@touch $@

clean:
	rm -rf $(VENV) demo.png docs/_build docs/examples docs/reference/generated docs/results/benchmarks \
		docs/results/papers src/kesler/compiled/shipped
