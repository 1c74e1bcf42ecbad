# Everything is set up by the first target that needs it; the environment lives in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help
.PHONY: help setup demo test check format lock wheel clean

help:  ## Show the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "deltaloop needs Python 3.11 or newer; found %s. Name another one: make PYTHON=python3.12 ..." % sys.version.split()[0])'
	@$(PYTHON) -m venv $(VENV) || { echo "python's venv module is missing (on Debian: apt-get install python3-venv)"; exit 1; }
	@$(PIP) install --upgrade 'pip>=25.1'
	@touch $@

# What the demo needs: the package itself with its two extras.
$(VENV)/.runtime: $(VENV)/.created pyproject.toml constraints.txt
	@echo "setting up $(VENV) ..."
	@$(PIP) install --constraint constraints.txt --editable '.[cli,server]'
	@touch $@

# What tests and checks need on top.
$(VENV)/.dev: $(VENV)/.runtime
	@$(PIP) install --constraint constraints.txt --group dev
	@touch $@

setup: $(VENV)/.dev  ## Create .venv with everything that tests and checks need

demo: $(VENV)/.runtime  ## Run a controller against the embedded API server (ends by itself)
	@$(BIN)/deltaloop demo $(DEMO_FLAGS)

test: $(VENV)/.dev  ## Run the tests
	@$(BIN)/python -m pytest $(PYTEST_FLAGS)

check: $(VENV)/.dev  ## Format check, lint, types, import contracts
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/lint-imports
	@$(BIN)/mypy
	@$(BIN)/pyright --pythonpath $(BIN)/python
	@$(BIN)/python -m tests.house.sizes

format: $(VENV)/.dev  ## Format the code and mend what the linter can
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

wheel: $(VENV)/.dev  ## Build the wheel and run a smoke test against it alone
	@rm -rf dist build/wheel-smoke
	@$(BIN)/python -m build --wheel --outdir dist . >/dev/null
	@$(PYTHON) -m venv build/wheel-smoke
	@build/wheel-smoke/bin/python -m pip --disable-pip-version-check --quiet install --constraint constraints.txt "$$(ls dist/*.whl)[cli,server]"
	@cd build/wheel-smoke && bin/python ../../tests/house/wheel_smoke.py

lock: $(VENV)/.dev  ## Rewrite constraints.txt from what is installed now
	@$(BIN)/python -m tests.house.lock > constraints.txt.new && mv constraints.txt.new constraints.txt

clean:  ## Remove everything that can be made again
	@rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
