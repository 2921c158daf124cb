# `make demo` shows Mergeward at work and `make test` checks everything. Both install into .venv first; neither needs root.

VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2
SOURCES := app loop_guards migrations tests bench docs/examples
PIP := $(BIN)/python -m pip --disable-pip-version-check
UV_COMPILE := $(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-strip-extras --no-annotate \
	--no-emit-index-url --custom-compile-command "make lock" --quiet

# The first Python that is new enough; on most machines `python3`.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$p"; break; }; done)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help tools install demo test lint types contracts unit prove mutants cases fmt docs lock build clean

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

tools: # says in one line what the machine lacks, with the command that installs it
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: sudo apt-get install -y python3 python3-venv git" \
		"(where python3 is older: sudo apt-get install -y python3.11-venv git)" >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "Python's venv is missing: sudo apt-get install -y $$($(PYTHON) -c 'import sys; print("python3-venv" if "$(PYTHON)" == "python3" else "python3.%d-venv" % sys.version_info[1])')" >&2; exit 1; }
	@test -x "$$(git --exec-path 2>/dev/null)/git-http-backend" || { \
		echo "git with its http-backend is missing: sudo apt-get install -y git" >&2; exit 1; }

$(BIN)/python: | tools
	@echo "making $(VENV) with $(PYTHON)"
	@"$(PYTHON)" -m venv --clear $(VENV)

# The stamps hold that these exact lock files are installed, so a repeated call starts nothing.
$(VENV)/.runtime: requirements.lock pyproject.toml | $(BIN)/python
	@echo "installing what mergeward runs on (about a minute, once)"
	@$(PIP) install --quiet --require-hashes -r requirements.lock
	@$(PIP) install --quiet --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: requirements-dev.lock pyproject.toml | $(BIN)/python
	@echo "installing mergeward and its development tools (about a minute, once)"
	@$(PIP) install --quiet --require-hashes -r requirements-dev.lock
	@$(PIP) install --quiet --no-deps --no-build-isolation -e .
	@touch $(VENV)/.runtime $@

install: $(VENV)/.dev ## everything, for development, into .venv

demo: $(VENV)/.runtime ## the whole story on loopback: no key, no outside service
	@$(BIN)/mergeward demo $(ARGS)

test: lint types contracts unit ## every check there is

lint: $(VENV)/.dev ## ruff: rules and format
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)

types: $(VENV)/.dev ## mypy, strict
	$(BIN)/mypy

contracts: $(VENV)/.dev ## the layers of docs/architecture.md hold
	$(BIN)/lint-imports

unit: $(VENV)/.dev ## pytest; WORKERS=n sets how many processes, ARGS="..." what to pass on
	$(BIN)/python -m pytest -n $(WORKERS) $(ARGS)

prove: $(VENV)/.dev ## the whole proof that the loop halts, nothing cut (an hour); ARGS="--thorough" for more
	$(BIN)/python -m tests.loop_guards.model.explore --runs 100000 --coverage $(ARGS)
	$(BIN)/python -m tests.loop_guards.model.mutants
	$(BIN)/python -m tests.loop_guards.model.noise

mutants: $(VENV)/.dev ## how many small mistakes in the guards the tests notice (minutes); ARGS="a module"
	$(BIN)/python -m tests.loop_guards.model.mutation --jobs $(WORKERS) $(ARGS)

cases: $(VENV)/.dev ## how many of the collected real failures are held, by category
	$(BIN)/python -m tests.case_table

fmt: $(VENV)/.dev ## format, and fix what ruff can fix
	$(BIN)/ruff check --fix-only $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

docs: $(VENV)/.dev ## write the parts of docs/ that are made from code
	$(BIN)/python -m app.policy.schema docs
	$(BIN)/python -m app.policy.guards_doc docs

lock: $(VENV)/.dev ## resolve the lock files anew from pyproject.toml
	$(UV_COMPILE) --upgrade --group build -o requirements.lock
	$(UV_COMPILE) --upgrade --group dev -c requirements.lock -o requirements-dev.lock

build: $(VENV)/.dev ## the wheel, in dist/
	$(BIN)/hatchling build -t wheel -d dist

clean: ## remove what the targets above made
	rm -rf $(VENV) dist build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +
