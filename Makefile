# make try   creates .venv, installs tracehunch with the pinned torch, and runs `tracehunch attention`
# make test  creates .venv, installs what the tests need, and runs lint, types, import contracts and tests
# make docs  builds the documentation site into site/
# make bench times tracehunch on traces of up to 100 MB; make bench-full beside its peers, up to 3 GB (docs/benchmarks.md)
# Needs Python 3.11 or newer and make; PYTHON=python3.12 picks another interpreter.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PEERS ?= .peers
TRACELENS ?= git+https://github.com/AMD-AGI/TraceLens@171dd74721ca1ec45709e5805b68ae1f65e27811
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt
SETUP := pyproject.toml constraints.txt Makefile

.PHONY: try test lint types contracts unit docs bench bench-full clean

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
	$(BIN)/python benchmarks/speed.py --sizes 1,10,100 --rounds 3 --parts start-up,look,checks,diff

# TraceLens goes in alone, then what its PyTorch side needs: the rest of its list is for JAX and mail
bench-full: $(VENV)/.test $(PEERS)/.done
	$(BIN)/python benchmarks/speed.py --docs docs/benchmarks.md \
	  $(foreach peer,hta tracelens tb plain,--peer $(peer)=$(PEERS)/$(peer)/bin/python)

$(PEERS)/.done: Makefile
	for peer in hta tracelens tb plain; do $(PYTHON) -m venv $(PEERS)/$$peer || exit; done
	$(PEERS)/plain/bin/python -m pip install --quiet orjson==3.13.0 msgspec==0.23.0
	$(PEERS)/hta/bin/python -m pip install --quiet HolisticTraceAnalysis==0.5.0
	$(PEERS)/tb/bin/python -m pip install --quiet torch_tb_profiler==0.4.3
	$(PEERS)/tracelens/bin/python -m pip install --quiet --no-deps '$(TRACELENS)'
	$(PEERS)/tracelens/bin/python -m pip install --quiet pandas tqdm openpyxl tabulate orjson PyYAML matplotlib
	@touch $@

clean:
	rm -rf $(VENV) $(PEERS)

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; v = sys.version.split()[0]; sys.exit(0 if sys.version_info >= (3, 11) else f"tracehunch needs Python 3.11 or newer, {sys.executable} is {v}: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.try: $(VENV)/bin/python $(SETUP)
	$(PIP) --editable '.[torch,fast]'
	@touch $@

$(VENV)/.test: $(VENV)/bin/python $(SETUP)
	$(PIP) --editable '.[torch,fast,zstd,remote,dask,parquet,transformers,lightning,notebook,dev,docs]'
	@touch $@

$(VENV)/.docs: $(VENV)/bin/python $(SETUP)
	$(PIP) --editable '.[docs]'
	@touch $@
