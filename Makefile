# `make demo` and `make test` need nothing but Python 3.11 or newer on Debian or Ubuntu.
SHELL := /bin/bash
VENV ?= .venv
BIN := $(VENV)/bin
REQUESTS ?= 50000
RUNS ?= 20
INPUT ?= configs/quickstart.txt
OUTPUT ?= out

.DEFAULT_GOAL := help
.PHONY: help demo test check lint wheel fmt bench chaos soak lock clean

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

chaos: $(VENV)/.dev ## Kill and stop workers, orchestrator and brokers at many moments; RUNS=20 of each.
	@STAGEWIRE_CHAOS_RUNS=$(RUNS) $(BIN)/python -m pytest tests/integration/workers tests/integration/rabbitmq

soak: $(VENV)/.dev ## Send REQUESTS=50000 requests over RabbitMQ; memory must not grow.
	@$(BIN)/python scripts/soak_pipeline.py $(REQUESTS)

lock: $(VENV)/.dev ## Renew requirements/dev.lock from the bounds in pyproject.toml.
	@$(BIN)/python scripts/lock.py

clean: ## Remove what the other targets made.
	@rm -rf $(VENV) out dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
