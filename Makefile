# Everything is set up by the first target that needs it; the environment lives in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-adapters interop test-go chaos-election check format lock wheel clean bench-workqueue

help:  ## Show the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

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

# An environment of its own: the foreign clients bring half a hundred packages that nothing else here may come to need.
test-adapters: $(VENV)/.created  ## Run the adapters' tests with the real kubernetes, kubernetes_asyncio, kr8s and lightkube
	@$(PYTHON) -m venv build/adapters
	@build/adapters/bin/python -m pip --disable-pip-version-check --quiet install --upgrade 'pip>=25.1'
	@build/adapters/bin/python -m pip --disable-pip-version-check --quiet install --constraint constraints.txt --editable '.[server]' --group test --group adapters
	@build/adapters/bin/python -m pytest tests/cache/adapters $(PYTEST_FLAGS)

# INTEROP=short: client-go's present version only. Needs Go and its module proxy; skipped by name where Go is missing.
interop: $(VENV)/.dev  ## Contend with client-go's own elector, both ways
	@DELTALOOP_INTEROP=$(or $(INTEROP),full) $(BIN)/python -m pytest tests/interop $(PYTEST_FLAGS)

# Minutes the first time: it compiles client-go. Skipped by name where Go or its module proxy is missing.
test-go: $(VENV)/.dev  ## Use the embedded server from Go: typed clients (protobuf), informer, recorders, election
	@DELTALOOP_INTEROP=full $(BIN)/python -m pytest tests/interop/go_client $(PYTEST_FLAGS)

# The official client is in an environment of its own; its run shows what it does, and never fails.
chaos-election: $(VENV)/.dev  ## Force 200 changes of leadership, then the same on the official Python client's elector
	@$(BIN)/python -m tests.chaos.election --changes $(or $(CHANGES),200)
	@$(PYTHON) -m venv build/official
	@build/official/bin/python -m pip --disable-pip-version-check --quiet install kubernetes
	@$(BIN)/python -m tests.chaos.official --python build/official/bin/python --changes $(or $(OFFICIAL_CHANGES),24)

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

bench-workqueue: $(VENV)/.dev  ## Measure the work queue at 1k, 10k, 100k and 1M items
	@$(BIN)/python bench/workqueue.py $(BENCH_SIZES)

lock: $(VENV)/.dev  ## Rewrite constraints.txt from what is installed now
	@$(BIN)/python -m tests.house.lock > constraints.txt.new && mv constraints.txt.new constraints.txt

clean:  ## Remove everything that can be made again
	@rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
