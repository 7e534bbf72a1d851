# `make demo` and `make test` need nothing but Python 3.11 or newer on Debian or Ubuntu.
SHELL := /bin/bash
VENV ?= .venv
BIN := $(VENV)/bin
INPUT ?= configs/quickstart.txt
OUTPUT ?= out

.DEFAULT_GOAL := help
.PHONY: help demo test chaos check lint wheel fmt bench lock clean

help: ## List the targets.
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 18

$(VENV)/.made: scripts/make-venv
	@scripts/make-venv $(VENV)
	@touch $@

$(VENV)/.runtime: $(VENV)/.made pyproject.toml
	@$(BIN)/pip install --quiet --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.made pyproject.toml requirements/dev.lock
	@$(BIN)/pip install --quiet --require-hashes --requirement requirements/dev.lock
	@$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@ $(VENV)/.runtime

$(VENV)/.bench: $(VENV)/.dev
	@$(BIN)/pip install --quiet --group bench
	@touch $@

demo: $(VENV)/.runtime ## Turn a text into Morse code you can hear: out/sentences.txt, out/tone.wav.
	@$(BIN)/stagewire run configs/quickstart.yaml --input $(INPUT) --output $(OUTPUT)

test: $(VENV)/.dev ## Run the whole test suite.
	@$(BIN)/python -m pytest

chaos: $(VENV)/.dev ## Kill agents, controllers, Redis and RabbitMQ at random moments, 20 times each.
	@STAGEWIRE_CHAOS_RUNS=20 $(BIN)/python -m pytest tests/integration/writes/test_chaos.py

check: lint wheel ## Run what CI runs besides the tests.

lint: $(VENV)/.dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

wheel: $(VENV)/.dev
	@$(BIN)/python scripts/check_wheel.py

fmt: $(VENV)/.dev ## Format the sources and apply safe fixes.
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format .

bench: $(VENV)/.bench ## Measure speed and memory beside named peers; prints a table of ratios.
	@$(BIN)/python benchmarks/run.py

lock: $(VENV)/.dev ## Renew requirements/dev.lock from the bounds in pyproject.toml.
	@$(BIN)/python scripts/lock.py

clean: ## Remove what the other targets made.
	@rm -rf $(VENV) out dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
