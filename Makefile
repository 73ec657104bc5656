# `make` prints what there is. Everything runs in $(VENV), which is created on first use and refreshed when
# pyproject.toml changes. Packages come from wherever pip is configured to look.

PYTHON  ?= python3
VENV    ?= .venv
BACKEND ?= cpu
SEED    ?= 0
DEPTH   ?= standard
JOBS    ?= auto

BIN   := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help certify test lint format docs vectors bench clean

help:  ## this list
	@grep -E '^[a-z]+:.*## ' Makefile | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 18
	@echo
	@echo "  Variables: BACKEND=$(BACKEND) SEED=$(SEED) DEPTH=$(DEPTH) JOBS=$(JOBS) PYTHON=$(PYTHON) VENV=$(VENV)"

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "halfulp needs Python 3.11 or later, and $(PYTHON) is $$($(PYTHON) --version 2>&1)." >&2; \
	  echo "Name another interpreter: make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[test,lint]'
	@touch $@

certify: $(STAMP)  ## put a backend on trial: make certify BACKEND=cpu DEPTH=quick SEED=1
	$(BIN)/halfulp certify --backend=$(BACKEND) --seed=$(SEED) --depth=$(DEPTH) $(if $(filter-out auto,$(JOBS)),-n $(JOBS))

test: $(STAMP)  ## test halfulp itself
	$(BIN)/python -m pytest tests -n $(JOBS)

lint: $(STAMP)  ## ruff and mypy
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: $(STAMP)  ## let ruff rewrite the sources
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

docs: $(STAMP)  ## write the generated pages of docs/ anew
	$(BIN)/python docs/_generate.py
	$(BIN)/python docs/_generate.py detection

vectors: $(STAMP)  ## write the golden vectors anew, their archive and their wheel
	$(BIN)/halfulp vectors generate --out vectors/data --archive dist/halfulp-vectors.tar.gz
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist ./vectors-package

bench: $(STAMP)  ## measure the oracle; see benchmarks/README.md
	$(BIN)/python benchmarks/judge_speed.py

clean:  ## remove what the other targets made
	rm -rf $(VENV) build dist src/*.egg-info .hypothesis .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
