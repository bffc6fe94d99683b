# Everything is done through these targets; each sets up what it needs.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Spark is told where Java is; the script installs one where it may.
WITH_JAVA = JAVA_HOME="$$(sh scripts/find-java.sh)" && export JAVA_HOME &&
BENCH ?= local-window local-join
MINUTES ?= 10

.DEFAULT_GOAL := help
.PHONY: help setup test test-all fuzz lint types demo bench figures docs clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' Makefile

setup: $(STAMP) ## make .venv, install everything, find (or install) Java
	@java=$$(sh scripts/find-java.sh) && echo "setup: ready, with Java in $$java"

$(STAMP): pyproject.toml constraints.txt
	@sh scripts/setup-venv.sh
	@touch $(STAMP)

test: lint types ## lint, types and the tests, in a few minutes
	@$(WITH_JAVA) $(BIN)/python -m tests.side_by_side -q -m "not slow" $(ARGS)

test-all: lint types ## the same with the slow tests and many more random examples, new in each run
	@$(WITH_JAVA) HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -q $(ARGS)

fuzz: $(STAMP) ## new random queries for MINUTES=10, against DuckDB; a failure prints its seed
	@$(BIN)/python -m tests.oracle.fuzz --minutes $(MINUTES)

lint: $(STAMP) ## ruff
	@$(BIN)/ruff check --quiet --output-format concise src tests

types: $(STAMP) ## mypy, strict
	@$(BIN)/mypy --no-error-summary

demo: $(STAMP) ## a live auction with an idle source, on Spark
	@$(WITH_JAVA) $(BIN)/millstream demo

bench: $(STAMP) ## the benchmarks; BENCH="name ..." chooses
	@$(WITH_JAVA) for name in $(BENCH); do $(BIN)/millstream bench $$name || exit 1; done

figures: $(STAMP) ## the papers' figures, with their claims beside what we measure
	@for name in ets query-graph punctuated-join feedback; do $(BIN)/millstream figures $$name || exit 1; done

docs: $(STAMP) ## check the docs: links, and the files their tables name
	@$(BIN)/python -m pytest -q tests/test_project.py tests/docs -k docs

clean: ## remove everything make and the tests have made
	@rm -rf $(VENV) build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse demo figures
	@find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
