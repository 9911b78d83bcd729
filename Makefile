# `make demo` and `make test` need Python 3.11 or newer and nothing else: each makes its own .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help demo test lint types unit papers bench clean

help:
	@echo "make demo    LETTER as a stream: three methods side by side, and a picture"
	@echo "make test    lint, types, the order of the rooms, tests and doctests"
	@echo "make papers  the tables and figures of the sources, from KESLER_DATA"
	@echo "make bench   times beside the peers'"

demo: $(VENV)/installed
	$(BIN)/kesler compare dataset:letter --plot demo.png

test: lint types unit

lint: $(VENV)/tested
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/tested
	$(BIN)/mypy

unit: $(VENV)/tested
	$(BIN)/pytest -n 2

papers: $(VENV)/tested
	$(BIN)/python -m pip install --quiet --group papers
	$(BIN)/python papers/fink2006.py
	$(BIN)/python papers/amit2006.py
	$(BIN)/python papers/constraints.py
	$(BIN)/python papers/ordinal.py
	$(BIN)/python papers/enron_batch.py
	$(BIN)/python papers/lecture.py
	$(BIN)/python papers/mesterharm2001.py
	$(BIN)/python papers/shareboost2011.py
	$(BIN)/python papers/shareboost_mnist.py

bench: $(VENV)/tested
	$(BIN)/python -m pip install --quiet --group bench
	$(BIN)/python benchmarks/stream.py
	$(BIN)/python benchmarks/batch.py
	$(BIN)/python benchmarks/batch_softmax.py
	$(BIN)/python benchmarks/shareboost.py
	$(BIN)/python benchmarks/mixed_norm.py

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
	rm -rf $(VENV) demo.png
