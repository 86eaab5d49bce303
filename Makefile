# make try   creates .venv, installs tracehunch with the pinned torch, and runs `tracehunch attention`
# make test  creates .venv, installs what the tests need, and runs lint, types, import contracts and tests
# make docs  builds the documentation site into site/
# Needs Python 3.11 or newer and make; PYTHON=python3.12 picks another interpreter.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt
SETUP := pyproject.toml constraints.txt Makefile

.PHONY: try test lint types contracts unit docs bench clean

try: $(VENV)/.try
	$(BIN)/tracehunch attention

test: lint types contracts unit

lint: $(VENV)/.test
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(VENV)/.test
	$(BIN)/mypy
	$(BIN)/mypy examples/python_api.py

contracts: $(VENV)/.test
	$(BIN)/lint-imports

unit: $(VENV)/.test
	$(BIN)/python -m pytest --numprocesses 2 --dist loadgroup

docs: $(VENV)/.docs
	$(BIN)/mkdocs build --strict

bench: $(VENV)/.test
	$(BIN)/python benchmarks/load.py

clean:
	rm -rf $(VENV)

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; v = sys.version.split()[0]; sys.exit(0 if sys.version_info >= (3, 11) else f"tracehunch needs Python 3.11 or newer, {sys.executable} is {v}: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.try: $(VENV)/bin/python $(SETUP)
	$(PIP) --editable '.[torch,fast]'
	@touch $@

$(VENV)/.test: $(VENV)/bin/python $(SETUP)
	$(PIP) --editable '.[torch,fast,zstd,transformers,lightning,notebook,dev,docs]'
	@touch $@

$(VENV)/.docs: $(VENV)/bin/python $(SETUP)
	$(PIP) --editable '.[docs]'
	@touch $@
