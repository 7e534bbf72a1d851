# `make demo` and `make test` need nothing but Python 3.11 or newer on Debian or Ubuntu.
SHELL := /bin/bash
VENV ?= .venv
BIN := $(VENV)/bin

INPUT ?= configs/quickstart.txt
OUTPUT ?= out
COMPOSE := docker compose --env-file compose/.env --project-name stagewire --file compose/compose.yaml
WITH_WORKERS := --file compose/workers.yaml
SOAK ?= 600
REQUESTS ?= 50000
RUNS ?= 20

.DEFAULT_GOAL := help
.PHONY: help demo test check lint wheel fmt bench chaos soak up feed down lock clean

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

test: $(VENV)/.dev ## Run the whole test suite; installs the services that it starts, if it may.
	@scripts/install-services
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

chaos: $(VENV)/.dev ## Kill, cut and stop workers, agents, brokers and stores at many moments; RUNS=20 of each.
	@STAGEWIRE_CHAOS_RUNS=$(RUNS) $(BIN)/python -m pytest tests/integration/workers tests/integration/rabbitmq \
		tests/integration/shm tests/integration/writes

soak: $(VENV)/.dev ## CSP under random failures for SOAK=600 seconds, REQUESTS=50000 over RabbitMQ: nothing may be left or grow.
	@$(BIN)/python scripts/soak_csp.py --seconds $(SOAK)
	@$(BIN)/python scripts/soak_pipeline.py $(REQUESTS)

up: ## Start RabbitMQ and Redis in containers; WORKERS=yes: the quickstart's stages as well.
	@scripts/compose-env
	@$(COMPOSE) $(if $(WORKERS),$(WITH_WORKERS)) up --detach --wait $(if $(WORKERS),--build)

feed: ## Send INPUT through the workers that `make up WORKERS=yes` started.
	@mkdir -p $(OUTPUT)
	@STAGEWIRE_USER=$$(id -u) STAGEWIRE_OUTPUT=$(abspath $(OUTPUT)) \
		$(COMPOSE) $(WITH_WORKERS) run --rm -T orchestrator < $(INPUT)

down: ## Stop what `make up` started; what the volumes hold stays.
	@scripts/compose-env
	@$(COMPOSE) $(WITH_WORKERS) down

lock: $(VENV)/.dev ## Renew requirements/dev.lock from the bounds in pyproject.toml.
	@$(BIN)/python scripts/lock.py

clean: ## Remove what the other targets made.
	@rm -rf $(VENV) out dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
