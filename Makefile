# Everything is set up by the first target that needs it; the environment lives in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# Tests start many short processes: each would compile every module anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-threads check format wheel release example docs lock generate lab clean

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
	@$(BIN)/python -m tools.install cli server
	@touch $@

# What tests and checks need on top.
$(VENV)/.dev: $(VENV)/.runtime
	@$(BIN)/python -m tools.install cli server --group dev
	@touch $@

# What the documentation's site needs on top.
$(VENV)/.docs: $(VENV)/.dev
	@$(BIN)/python -m tools.install cli server --group docs
	@touch $@

setup: $(VENV)/.dev  ## Create .venv with everything that tests and checks need

demo: $(VENV)/.runtime  ## Run a controller against the embedded API server (ends by itself)
	@$(BIN)/deltaloop demo $(DEMO_FLAGS)

# WORKERS=0 runs them in one process (for a debugger).
# Three for two cores: tests also wait for processes, connections and clocks.
# NIGHTLY=1 runs the long form: more examples, and the tests marked nightly.
test: $(VENV)/.dev  ## Run the tests
	@$(BIN)/python -m pytest -p tools.forked_tests --forks $(or $(WORKERS),3) $(PYTEST_FLAGS)

# Real loops refuse calls from foreign threads in asyncio's debug mode only; virtual ones do so always.
test-threads: $(VENV)/.dev  ## Run the tests of threads in asyncio's debug mode
	@PYTHONASYNCIODEBUG=1 $(BIN)/python -m pytest --quiet -m real_time tests/workqueue tests/blocking tests/runtime tests/events $(PYTEST_FLAGS)

check: $(VENV)/.dev  ## Check format, lint, types, import contracts, English, and the rules of lab/house
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/lint-imports
	@$(BIN)/mypy
	@$(BIN)/pyright --pythonpath $(BIN)/python
	@mkdir -p build
	@PATH="$(CURDIR)/$(BIN):$$PATH" pyright --verifytypes deltaloop --ignoreexternal > build/type-completeness.txt || { cat build/type-completeness.txt; exit 1; }
	@grep '^Type completeness' build/type-completeness.txt
	@$(BIN)/python -m tools.sizes
	@$(BIN)/python -m tools.public_api --check
	@$(BIN)/python -m tools.prose
	@$(BIN)/python -m pytest --quiet --numprocesses 0 lab/house

format: $(VENV)/.dev  ## Format the code and mend what the linter can
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

wheel: $(VENV)/.dev  ## Build the wheel and the source distribution, and try the wheel by itself
	@$(BIN)/python -m tools.release --short

# RELEASE_FLAGS="--key FILE" signs; --untagged: all that a release goes through, of any checkout.
release: $(VENV)/.dev  ## Build a release from its tag, and try all of it in environments of its own; publishes nothing
	@$(BIN)/python -m tools.release $(RELEASE_FLAGS)

# NAME=workqueue, sample_controller, provisioner or replicator; KUBECONFIG=FILE runs it on a real cluster.
example: $(VENV)/.runtime  ## Run one example to its end: make example NAME=workqueue
	@$(BIN)/python -m examples.run $(or $(NAME),workqueue) $(EXAMPLE_FLAGS)

# NO_MKDOCS_2_WARNING hides an advertisement of the theme. Zensical must be able to build the same site.
docs: $(VENV)/.docs  ## Build the documentation in build/site, and check its links and pictures
	@$(BIN)/python -m tools.diagrams --check
	@$(BIN)/python -m tools.site.stage
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs --quiet build --strict --clean
	@$(BIN)/python -m tools.site.links build/site
	@$(BIN)/python -m tools.site.successor

# LOCK_FLAGS=--upgrade takes the newest versions; "--upgrade-package NAME" that of one package.
lock: $(VENV)/.dev  ## Rewrite constraints.txt: a version and the hashes of its files for each requirement
	@$(BIN)/python -m tools.install cli server --group lock
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --custom-compile-command 'make lock' --no-annotate --all-extras --group docs --group dev --group lock --output-file constraints.txt $(LOCK_FLAGS) pyproject.toml

# Stubs of the built-in kinds, diagrams in internals, the signatures of the public API, and the wheel's bill of materials.
generate: $(VENV)/.dev  ## Write the generated files, and show the changes of the public API
	@$(BIN)/python -m tools.kind_types.generate
	@$(BIN)/python -m tools.diagrams
	@$(BIN)/python -m tools.public_api
	@$(BIN)/python -m tools.release.sbom

lab:  ## List the targets of the laboratory: comparisons, benchmarks, fuzzers, long runs
	@$(MAKE) --no-print-directory -C lab help

clean:  ## Remove everything that can be made again
	@rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .cache
