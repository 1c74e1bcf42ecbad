# Everything is set up by the first target that needs it; the environment lives in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# Tests start many short processes: each would compile every module anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup kubernetes demo test test-threads test-adapters test-clients bench-apiserver interop test-go chaos-election explore-election explore-certificates check format lock wheel release public-api kind-types test-types measure-types context-page test-lowest test-newest pythons clean bench bench-cel bench-rules bench-setup bench-row bench-page bench-check bench-controller bench-webhooks bench-simulation fuzz-webhooks profile bench-workqueue kube conformance world example storm fuzz-apiserver fuzz-rules corpus public-kinds mutants docs docs-look diagrams recording cel-spec cel-fuzz cel-record type-checks-record corpus-own corpus-record soak soak-year test-soak simulate-bugs simulate-examples same-again versions

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

# What the documentation's site needs on top.
$(VENV)/.docs: $(VENV)/.dev
	@$(PIP) install --constraint constraints.txt --group docs
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

# An environment of its own: the foreign clients bring half a hundred packages that nothing else here may come to need.
test-adapters: $(VENV)/.created  ## Run the adapters' tests with the real kubernetes, kubernetes_asyncio, kr8s and lightkube
	@$(PYTHON) -m venv build/adapters
	@build/adapters/bin/python -m pip --disable-pip-version-check --quiet install --upgrade 'pip>=25.1'
	@build/adapters/bin/python -m pip --disable-pip-version-check --quiet install --constraint constraints.txt --editable '.[server]' --group test --group adapters
	@build/adapters/bin/python -m pytest tests/cache/adapters $(PYTEST_FLAGS)

# The same environment and kopf; what is not installed is skipped by name.
test-clients: $(VENV)/.created  ## Use the embedded server from other people's clients, unmodified
	@$(PYTHON) -m venv build/adapters
	@build/adapters/bin/python -m pip --disable-pip-version-check --quiet install --upgrade 'pip>=25.1'
	@build/adapters/bin/python -m pip --disable-pip-version-check --quiet install --constraint constraints.txt --editable '.[server]' --group test --group clients
	@DELTALOOP_CLIENTS=1 build/adapters/bin/python -m pytest tests/interop/clients $(PYTEST_FLAGS)

# INTEROP=short: client-go's present version only. Needs Go and its module proxy; skipped by name where Go is missing.
interop: $(VENV)/.dev  ## Contend with client-go's own elector, both ways
	@DELTALOOP_INTEROP=$(or $(INTEROP),full) $(BIN)/python -m pytest tests/interop $(PYTEST_FLAGS)

# Minutes the first time: it compiles client-go. Skipped by name where Go or its module proxy is missing.
test-go: $(VENV)/.dev  ## Use the embedded server from Go: client-go's parts, controller-runtime's own suites, a page's programs
	@DELTALOOP_INTEROP=full $(BIN)/python -m pytest tests/interop/go_client tests/interop/controller_runtime tests/interop/clients $(PYTEST_FLAGS)

# The official client is in an environment of its own; its run shows what it does, and never fails.
chaos-election: $(VENV)/.dev  ## Force 200 changes of leadership, then the same on the official Python client's elector
	@$(BIN)/python -m tests.chaos.election --changes $(or $(CHANGES),200)
	@$(PYTHON) -m venv build/official
	@build/official/bin/python -m pip --disable-pip-version-check --quiet install kubernetes
	@$(BIN)/python -m tests.chaos.official --python build/official/bin/python --changes $(or $(OFFICIAL_CHANGES),200)

# Two processes at most 3 GB each; the suite runs a short form.
explore-election: $(VENV)/.dev  ## Visit every state of two and three candidates: never two leaders, always a way back to one
	@$(BIN)/python -m tests.leaderelection.core.explore_all

# Half a minute; the suite runs a short form.
explore-certificates: $(VENV)/.dev  ## Follow every order of the requests of two replicas that keep webhooks' certificates
	@$(BIN)/python -m tests.webhooks.core.certificates.orders

# Some ten minutes the first time: it compiles both with Go. KUBEBUILDER_ASSETS names binaries that are there already.
# VERSION=1.33.13: another kube-apiserver than our own version's.
kube: $(VENV)/.dev  ## Build a real kube-apiserver and etcd, into a cache outside the tree
	@$(BIN)/python -m tests.kube.build $(if $(VERSION),--version $(VERSION))

# Each is built if it is not there: ten minutes each. VERSIONS="1.33.13": that one alone, and the page has that column alone.
versions: $(VENV)/.dev  ## Try client, informers, election and managers on several kube-apiservers; writes docs/versions.md
	@$(BIN)/python -m tests.versions $(or $(VERSIONS),1.33.13 1.36.3 1.37.2)

# Needs Go, its module proxy, and pip's index; half an hour, most of it for building the server. See docs/how-to.
kubernetes: $(VENV)/.dev  ## Raise Kubernetes, or go back: make kubernetes VERSION=1.x.y rewrites all that follows from it
	@$(BIN)/python -m tools.kubernetes $(VERSION)

# The real server's column appears where its binaries are: make kube.
conformance: $(VENV)/.dev  ## Run the conformance suite on the embedded and on the real API server
	@$(BIN)/python -m tests.conformance $(PYTEST_FLAGS)

bench-webhooks: $(VENV)/.dev  ## Print how many reviews a second a server of webhooks answers, and how fast
	@$(BIN)/python -m bench.webhooks $(BENCH_FLAGS)

# FUZZ=100000: longer.
fuzz-webhooks: $(VENV)/.dev  ## Send webhooks 20 000 reviews that are a little, or very, wrong
	@FUZZ_WEBHOOKS=$(or $(FUZZ),20000) $(BIN)/python -m pytest --quiet --numprocesses 0 tests/webhooks/test_fuzz.py $(PYTEST_FLAGS)

# FUZZ_FLAGS="--seconds 600 --seed 7": longer, or the same again.
fuzz-apiserver: $(VENV)/.dev  ## Send the same random requests to the embedded and the real API server for a minute
	@$(BIN)/python -m tests.conformance.fuzz $(FUZZ_FLAGS)

# FUZZ_FLAGS="--seed 1 --evaluations 100000".
fuzz-rules: $(VENV)/.dev  ## Compare what the embedded and the real API server say of random rules in CRDs, and of objects
	@$(BIN)/python -m tests.conformance.fuzz.of_rules $(FUZZ_FLAGS)

# Twenty minutes the first time: it builds them with Go, and the real server. WORLD_FLAGS="deployment helm_3": these steps.
world: $(VENV)/.dev  ## Run a controller manager, scheduler, KWOK, Helm and our examples on both API servers
	@$(BIN)/python -m tests.world $(WORLD_FLAGS)

check: $(VENV)/.dev  ## Format check, lint, types, import contracts
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/lint-imports
	@$(BIN)/mypy
	@$(BIN)/pyright --pythonpath $(BIN)/python
	@mkdir -p build
	@PATH="$(CURDIR)/$(BIN):$$PATH" pyright --verifytypes deltaloop --ignoreexternal > build/type-completeness.txt || { cat build/type-completeness.txt; exit 1; }
	@grep '^Type completeness' build/type-completeness.txt
	@$(BIN)/python -m tests.house.sizes
	@$(BIN)/python -m tools.public_api --check

format: $(VENV)/.dev  ## Format the code and mend what the linter can
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

wheel: $(VENV)/.dev  ## Build the wheel and the source distribution, and try the wheel by itself
	@$(BIN)/python -m tools.release --short

# RELEASE_FLAGS=--untagged: all that a release goes through, of any checkout.
release: $(VENV)/.dev  ## Build a release from its tag, and try all of it in environments of its own; publishes nothing
	@$(BIN)/python -m tools.release $(RELEASE_FLAGS)

public-api: $(VENV)/.dev  ## Record the public API anew, and show what changed
	@$(BIN)/python -m tools.public_api

# Half a minute; what a user's checkers say, by their own defaults.
test-types: $(VENV)/.dev  ## Have mypy and pyright find the mistakes in thirty programs, and none in thirty others
	@$(BIN)/python -m tests.type_checks

# Two minutes. The table in docs/concepts/types.md is what it printed last.
measure-types: $(VENV)/.dev  ## Measure what the stubs cost checkers and editors
	@$(BIN)/python -m tests.type_checks.measure

kind-types: $(VENV)/.dev  ## Write the stubs of the built-in kinds anew, which type checkers read
	@$(BIN)/python -m tools.kind_types.generate

context-page: $(VENV)/.dev  ## Write docs/context.md anew: what a reconcile can reach, from the docstrings
	@$(BIN)/python -m tools.context_page

# What the two have in common; the first one's versions follow from pyproject.toml.
EVERYTHING := --editable '.[cli,server,metrics,schemas,otel,zstd,pydantic]' --group test
test-lowest: $(VENV)/.created  ## Run the tests with the lowest versions that pyproject.toml allows
	@$(PYTHON) -m venv build/lowest
	@build/lowest/bin/python -m pip --disable-pip-version-check --quiet install --upgrade 'pip>=25.1'
	@build/lowest/bin/python -m tools.release.lowest > build/lowest.txt
	@build/lowest/bin/python -m pip --disable-pip-version-check --quiet install --constraint build/lowest.txt $(EVERYTHING)
	@build/lowest/bin/python -m pytest -p tools.forked_tests --forks $(or $(WORKERS),2) $(PYTEST_FLAGS)

test-newest: $(VENV)/.created  ## Run the tests with the newest versions that there are
	@$(PYTHON) -m venv build/newest
	@build/newest/bin/python -m pip --disable-pip-version-check --quiet install --upgrade 'pip>=25.1'
	@build/newest/bin/python -m pip --disable-pip-version-check --quiet install --upgrade --upgrade-strategy eager $(EVERYTHING)
	@build/newest/bin/python -m pytest -p tools.forked_tests --forks $(or $(WORKERS),2) $(PYTEST_FLAGS)

# MUTANTS_FLAGS="--room cache --sample 200 --seed 1"; all of a room takes up to half an hour. Not in CI.
mutants: $(VENV)/.dev  ## Seed small mistakes into one room and list those that its tests let pass
	@$(BIN)/python -m tests.mutants.systematic $(or $(MUTANTS_FLAGS),--room pacing)

# CORPUS names the folder (docs/corpus.md); CORPUS_FLAGS="--project keda --only sample-3": one project, one object.
corpus: $(VENV)/.dev  ## Send other projects' CRDs and objects to the embedded and to the real API server, and compare
	@$(BIN)/python -m tests.corpus --corpus $(or $(CORPUS),../shared/corpus) $(CORPUS_FLAGS)

# CEL_SPEC names the folder of the language's tests (github.com/google/cel-spec, tests/simple/testdata).
cel-spec: $(VENV)/.dev  ## Run the tests of the Common Expression Language's specification
	@$(BIN)/python -m tests.cel_spec $(or $(CEL_SPEC),../shared/cel-spec) $(CEL_FLAGS)

# A minute. CORPUS as above; KINDS_FLAGS="--kind HTTPRoute --mutations 2000": one kind, more of it.
public-kinds: $(VENV)/.dev  ## Write ten kinds of other projects as classes, and compare what servers say of their objects
	@$(BIN)/python -m tests.public_kinds --corpus $(or $(CORPUS),../shared/corpus) $(KINDS_FLAGS)

# Both need Go, and cel-go's modules. CEL_FLAGS="NUMBER SEED" says how many expressions, and which.
cel-fuzz: $(VENV)/.dev  ## Hold random expressions against cel-go in kube-apiserver's environment: values, errors, costs, estimates
	@$(BIN)/python -m tests.cel.fuzz $(CEL_FLAGS)

cel-record: $(VENV)/.dev  ## Write down anew what cel-go answers to our expressions; more of them are read, a line each
	@$(BIN)/python -m tests.cel.record

type-checks-record: $(VENV)/.dev  ## Write down anew what a status controller warns of in policies; more of them are read, a line each
	@$(BIN)/python -m tests.apiserver.core.admission.policies.record_type_checks

# No real server is needed: its answers are recorded.
corpus-own: $(VENV)/.dev  ## The same with CRDs and objects of our own, and with what a real server answered to them once
	@$(BIN)/python -m tests.corpus --own $(CORPUS_FLAGS)

corpus-record: $(VENV)/.dev  ## Write down anew what a real server answers to our own CRDs and objects
	@$(BIN)/python -m tests.corpus --record

bench-setup: $(VENV)/.dev  ## Build what the benchmark compares with: Python, Go and Rust clients
	@$(BIN)/python -m bench.peers.build

# Two to three hours; goes on where it was interrupted. BENCH=short: less than a minute. BENCH_FLAGS: see bench/run.py.
bench: $(VENV)/.dev  ## Measure ours against every other client; writes bench/results and docs/performance.md
	@$(BIN)/python -m bench.run $(or $(BENCH),full) $(BENCH_FLAGS)

bench-row: $(VENV)/.dev  ## Repeat one row: make bench-row CASE=list-10k PEER=official
	@$(BIN)/python -m bench.run row --cases $(or $(CASE),list-10k) --peers $(or $(PEER),floor) $(BENCH_FLAGS)

bench-page: $(VENV)/.dev  ## Write docs/performance.md from the committed summary
	@$(BIN)/python -m bench.run page

bench-check: $(VENV)/.dev  ## Fail if CPU, as a ratio to the floor's, is much more than what is committed
	@$(BIN)/python -m bench.run check $(BENCH_FLAGS)

# PYTHONS=python3.12,/opt/python/bin/python3.14t names them; some minutes for each. PYTHONS_FLAGS=--only-figures: without tests.
pythons: $(VENV)/.dev  ## Run the tests and a short benchmark on each Python that is here; writes docs/pythons.md
	@$(BIN)/python -m bench.pythons $(if $(PYTHONS),--pythons $(PYTHONS)) $(PYTHONS_FLAGS)

# Some 45 minutes for seven rounds; goes on where it was interrupted, and needs a machine that does nothing else.
# CONTROLLER=short: a minute, on the server that answers at once. CONTROLLER_FLAGS="--rounds 10 --fresh": see bench/controller.
bench-controller: $(VENV)/.dev  ## Measure a whole controller beside the same one on controller-runtime, kube-rs and kopf
	@$(BIN)/python -m bench.controller $(if $(filter short,$(CONTROLLER)),--short,--server real,replayed --rounds 7 --write) $(CONTROLLER_FLAGS)

profile: $(VENV)/.dev  ## Write where our time goes to build/bench/profiles
	@$(BIN)/python -m bench.profiling $(BENCH_FLAGS)

# SECONDS=600 for long searches; NAME=rabbitmq-782 for one.
simulate-bugs: $(VENV)/.dev  ## Look for published bugs of operators by the simulator, and for alarms on what is mended
	@$(BIN)/python -m examples.simulation.bugs --seconds $(or $(SECONDS),60) $(NAME)

# BENCH_FLAGS="--runs 50" for a short one.
bench-simulation: $(VENV)/.dev  ## Measure what runs of the simulator take
	@$(BIN)/python -m bench.simulation $(BENCH_FLAGS)

same-again: $(VENV)/.dev  ## Make runs of the simulator twice, and compare them step by step
	@PYTHONHASHSEED=0 $(BIN)/python -m tests.simulation.same_again --runs $(or $(RUNS),100)

# RUNS=10000 for many schedules of each; NAME=database for one.
simulate-examples: $(VENV)/.dev  ## Look for alarms of the simulator on the other examples
	@$(BIN)/python -m examples.simulation.ordinary --runs $(or $(RUNS),1000) $(NAME)

# NAME=workqueue, sample_controller, provisioner or replicator; KUBECONFIG=FILE runs it on a real cluster.
example: $(VENV)/.runtime  ## Run one example to its end: make example NAME=workqueue
	@$(BIN)/python -m examples.run $(or $(NAME),workqueue) $(EXAMPLE_FLAGS)

# Ten thousand objects, failures, restarts of the server and of the leader; then again among processes, whose leaders are
# killed. Some minutes each. STORM_FLAGS="--objects 1000 --kills 2".
storm: $(VENV)/.dev  ## Run a storm of reconciles until everything has converged
	@$(BIN)/python -m tests.chaos.storm $(STORM_FLAGS)

# A report is in build/soak. HOURS=0.01: a short form. SOAK_FLAGS="--leak tasks": it has to fail.
soak: $(VENV)/.dev  ## Run a server and two replicas among troubles for two hours: what they hold must not grow
	@$(BIN)/python -m tests.soak --hours $(or $(HOURS),2) $(SOAK_FLAGS)

# Some five minutes of CPU for a year. DAYS=30.
soak-year: $(VENV)/.dev  ## The same in virtual time, for a year
	@$(BIN)/python -m tests.soak --days $(or $(DAYS),365) $(SOAK_FLAGS)

test-soak: $(VENV)/.dev  ## Show that the soak, in processes, sees what is left behind, and nothing else
	@NIGHTLY=1 DELTALOOP_SOAK=1 $(BIN)/python -m pytest --quiet --numprocesses 2 tests/soak $(PYTEST_FLAGS)

bench-workqueue: $(VENV)/.dev  ## Measure the work queue at 1k, 10k, 100k and 1M items
	@$(BIN)/python bench/workqueue.py $(BENCH_SIZES)

# The other libraries are in an environment of their own. BENCH_FLAGS="--bound 0.5": fail above that.
bench-cel: $(VENV)/.created  ## Measure an evaluation of a rule beside the libraries for the language that PyPI has
	@$(PYTHON) -m venv build/cel
	@build/cel/bin/python -m pip --disable-pip-version-check --quiet install --constraint constraints.txt --editable . cel-expr-python common-expression-language
	@build/cel/bin/python -m bench.cel $(BENCH_FLAGS)

# CRDS names a file of CRDs as JSON lines, such as a project's of `make corpus`. BENCH_FLAGS="--rounds 3" for a short one.
bench-rules: $(VENV)/.dev  ## Measure what rules and policies cost the embedded server: definitions, writes, statuses
	@$(BIN)/python -m bench.rules $(CRDS) $(BENCH_FLAGS)

# BENCH_FLAGS="--objects 1000 --seconds 2" for a short one. The real server's column appears where `make kube` was run.
bench-apiserver: $(VENV)/.dev  ## Measure the embedded server, beside a real one where there is one
	@$(BIN)/python bench/apiserver.py $(BENCH_FLAGS)

# NO_MKDOCS_2_WARNING: the theme's advertisement is no warning of ours. Zensical's site is built to show that it can be.
docs: $(VENV)/.docs  ## Build the documentation to build/site, with every link and picture checked
	@$(BIN)/python -m tools.diagrams --check
	@$(BIN)/python -m tools.site.stage
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs --quiet build --strict --clean
	@$(BIN)/python -m tools.site.links build/site
	@$(BIN)/python -m tools.site.successor

# Looks with headless Chromium (CHROMIUM=FILE names it); says so, and does nothing, where there is none.
docs-look: docs  ## Look at every page of the built site as a phone and a desk show it
	@$(BIN)/python -m tools.site.look

diagrams: $(VENV)/.dev  ## Draw the state machines anew, from the code, into docs/concepts
	@$(BIN)/python -m tools.diagrams

recording: $(VENV)/.dev  ## Run the demo once and write docs/demo.svg, which plays what it printed
	@$(BIN)/python -m tools.recording

lock: $(VENV)/.dev $(VENV)/.docs  ## Rewrite constraints.txt from what is installed now
	@$(BIN)/python -m tests.house.lock > constraints.txt.new && mv constraints.txt.new constraints.txt

clean:  ## Remove everything that can be made again
	@rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .cache
