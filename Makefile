# Each verb sets up what it needs: Rust (cargo), Python 3.9 up and make must be there, the rest is fetched.

PYTHON ?= python3
CARGO ?= cargo
VENV ?= .venv
TORCH ?= 2.13.0
SECONDS_EACH ?= 60
# Tests at a time: most of them wait more than they compute.
TOGETHER ?= 4
# Jobs of scenarios at a time: they use memory, and what they grow by in a second is looked at.
SCENARIOS_TOGETHER ?= 4

# A new machine sets neither, and a test that needs one of them would fail there.
unexport PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE

BIN := $(VENV)/bin
TORCH_STAMP := $(VENV)/torch-$(TORCH)
TOOLS_STAMP := $(VENV)/tools-3
DEMO := target/demo

.PHONY: demo test test-all test-rust test-loom test-python test-outside test-side-by-side test-scenarios scenarios guests
.PHONY: test-side-by-side-all lint bench fuzz install clean

# The crash that puzzles people, on real torch, and what ullage says of it. Its job fails; the demo does not.
demo: $(VENV)/installed
	@mkdir -p $(DEMO)
	@rm -f $(DEMO)/verdict.json
	ULLAGE_HOME=$(CURDIR)/$(DEMO)/runs $(BIN)/ullage run --json $(DEMO)/verdict.json -- $(BIN)/python examples/crash.py; test $$? -eq 1
	@$(BIN)/python examples/check_demo.py $(DEMO)/verdict.json

# Those that look at what is left in /dev/shm have one of their own where they may: what another kills leaves names there.
OWN_SHM := $(shell unshare --mount sh tests/own_shm.sh true 2>/dev/null && echo "unshare --mount sh tests/own_shm.sh")
EMPTY :=
BESIDE := $(if $(OWN_SHM),+,$(EMPTY) $(EMPTY))

# Each part runs whatever became of those before it; the end says how each of them went. Those with a + between them run
# side by side: two compile while one mostly waits.
PARTS := install test-python+test-rust+test-loom test-outside$(BESIDE)test-side-by-side$(BESIDE)test-scenarios
test:
	@$(PYTHON) tests/parts.py "$(MAKE)" $(PARTS)

# What `make test` leaves out because it takes long.
test-all:
	@$(PYTHON) tests/parts.py "$(MAKE)" $(subst test-side-by-side,test-side-by-side-all,$(PARTS)) test-python-thorough test-batches test-arena-kills-all test-faults-all test-two-machines test-fleet growth

# One profile, so that what the command needs is compiled once.
test-rust:
	$(CARGO) test --workspace --exclude ullage-native --release --no-fail-fast --lib --bins --tests

# Every order of the arena's atomics.
test-loom:
	$(CARGO) test --release -p ullage-arena --lib --features loom

# What takes long in them: the founding crash under each start method, workers of spawn, faults seeded in the arena.
.PHONY: test-python-thorough
test-python-thorough: install
	ULLAGE_TEST_EXAMPLES=1000 $(BIN)/python -m pytest -n $(TOGETHER) --dist worksteal -m thorough

test-python: install
	$(BIN)/python -m pytest -n $(TOGETHER) --dist worksteal

# What the outside sees: the same command with and without ullage, every process found, ullage killed and stopped.
# Together but for the last two: one reads the clock of the kernel's counters, one what is left in /dev/shm.
OUTSIDE := transparency screens page fleet-small terminal metrics disks fleet-copy discovery outage commands completions snippets clean check arena-kills arena-points
.PHONY: $(OUTSIDE:%=test-%) test-kill-recorder test-faults
test-outside: install
	status=0; $(MAKE) --keep-going --jobs=$(TOGETHER) --output-sync=target $(OUTSIDE:%=test-%) || status=1; \
	$(MAKE) --keep-going test-kill-recorder test-faults && exit $$status

test-transparency: install
	$(BIN)/python tests/transparency.py --ullage $(BIN)/ullage

# Fleets of recordings whose first failure is known; with the bars of time and memory for thousands, alone.
.PHONY: test-fleet
test-fleet: install
	$(BIN)/python tests/fleet.py --ullage $(BIN)/ullage

test-fleet-small: install
	$(BIN)/python tests/fleet.py --ullage $(BIN)/ullage --small

test-screens: install
	$(BIN)/python tests/screens.py --ullage $(BIN)/ullage

test-page: install
	$(BIN)/python tests/page.py --ullage $(BIN)/ullage --python $(BIN)/python

# The live view in tmux; says so where there is none.
test-terminal: install
	$(BIN)/python tests/terminal.py --ullage $(BIN)/ullage --python $(BIN)/python

# Prometheus, node_exporter and promtool, which are named where they are not there.
test-metrics: install
	$(BIN)/python tests/metrics.py --ullage $(BIN)/ullage

# A full disk and a hung one; only root has them.
test-disks: install
	$(BIN)/python tests/disks.py --ullage $(BIN)/ullage

# Copies on a shared disk that is full, hung or absent; root has the first two.
test-fleet-copy: install
	$(BIN)/python tests/fleet_copy.py --ullage $(BIN)/ullage

# To a folder and to S3 (moto's server) and back, in a venv of its own.
.PHONY: test-fleet-store
test-fleet-store:
	$(PYTHON) -m venv target/fleet-store
	target/fleet-store/bin/pip install -q pyarrow 'moto[server]' pytest
	PYTHONPATH=python target/fleet-store/bin/python -m pytest python/tests/test_fleet_store.py

test-discovery: install
	$(BIN)/python tests/discovery.py --ullage $(BIN)/ullage

test-kill-recorder: install
	$(BIN)/python tests/kill_recorder.py --ullage $(BIN)/ullage --times 12

test-outage: install
	$(BIN)/python tests/outage.py --ullage $(BIN)/ullage --rounds 400 --kills 4

test-clean: install
	$(BIN)/python tests/clean.py --ullage $(BIN)/ullage --python $(BIN)/python

test-commands: install
	$(BIN)/python tests/commands.py --ullage $(BIN)/ullage --python $(BIN)/python

test-completions: install
	$(BIN)/python tests/completions.py --ullage $(BIN)/ullage

test-snippets: install
	$(BIN)/python tests/snippets.py --python $(BIN)/python

test-check: install
	$(BIN)/python tests/check.py --ullage $(BIN)/ullage --python $(BIN)/python

test-arena-kills: install
	$(OWN_SHM) $(BIN)/python tests/arena_kills.py --times 1

.PHONY: test-arena-kills-all
test-arena-kills-all: install
	$(OWN_SHM) $(BIN)/python tests/arena_kills.py --times 10

test-arena-points: install
	$(OWN_SHM) $(BIN)/python tests/arena_kills.py --points --times 1 --methods fork
	$(BIN)/python tests/fork_threads.py --forks 60

# Signals, forks, collections, exceptions and kills at random moments of jobs; `make test-all` draws more of them.
test-faults: install
	$(OWN_SHM) $(BIN)/python tests/faults.py --ullage $(BIN)/ullage --python $(BIN)/python --events 800 --deaths 1

.PHONY: test-faults-all
test-faults-all: install
	$(OWN_SHM) $(BIN)/python tests/faults.py --ullage $(BIN)/ullage --python $(BIN)/python --events 12000 --deaths 10

# Every third job with ullage and without; `make test-all` runs them all.
test-side-by-side: install
	$(OWN_SHM) $(BIN)/python tests/side_by_side.py --ullage $(BIN)/ullage --python $(BIN)/python --third

test-side-by-side-all: install
	$(OWN_SHM) $(BIN)/python tests/side_by_side.py --ullage $(BIN)/ullage --python $(BIN)/python

# Every kind of batch and dataset under every start method, beside torch's transport; a part of it is in test-python.
.PHONY: test-batches
test-batches: install
	$(BIN)/python tests/batches_side_by_side.py

test-scenarios: install
	$(OWN_SHM) $(BIN)/python scenarios/run.py --ullage $(BIN)/ullage --python $(BIN)/python --set smoke --jobs $(SCENARIOS_TOGETHER)
	$(BIN)/python tests/first_line.py --ullage $(BIN)/ullage --python $(BIN)/python --quick --together $(SCENARIOS_TOGETHER)

# Small jobs that grow, of which none may be called healthy, and small jobs that are well: about five minutes.
.PHONY: first-line
first-line: install
	$(BIN)/python tests/first_line.py --ullage $(BIN)/ullage --python $(BIN)/python

# What the live view and now.json cost, over a simulated day of 64 busy processes.
VIEWED := target/view
.PHONY: bench-view
bench-view:
	$(CARGO) run --release -p ullage-recording --example footprint -- 64 busy $(VIEWED) 24
	$(CARGO) run --release -p ullage-cli --example view_costs -- $(VIEWED)

# What the page of a day of 64 processes costs to make and to draw, and the verdict of three days (Chromium, node, java).
PAGE_CHECK := target/page-check
.PHONY: bench-page
bench-page: install $(PAGE_CHECK)/installed
	$(CARGO) build -q --release -p ullage-recording --example footprint
	$(BIN)/python benches/page.py --ullage $(BIN)/ullage --python $(BIN)/python --modules $(PAGE_CHECK) --footprint target/release/examples/footprint

$(PAGE_CHECK)/installed: benches/page-check/package.json benches/page-check/package-lock.json
	mkdir -p $(PAGE_CHECK)
	cp benches/page-check/package.json benches/page-check/package-lock.json $(PAGE_CHECK)
	npm ci --prefix $(PAGE_CHECK) --no-audit --no-fund --ignore-scripts
	touch $@

# Real training runs of other frameworks with the arena under their loaders, in a venv of their own.
.PHONY: test-integrations
test-integrations: target/integrations/torch-$(TORCH)
	target/integrations/bin/pip install -q -r integrations/requirements.txt
	target/integrations/bin/pip install -q .
	target/integrations/bin/python integrations/run.py

target/integrations/torch-$(TORCH):
	$(PYTHON) -m venv target/integrations
	target/integrations/bin/pip install -q torch==$(TORCH) numpy
	touch $@

# Every cause that can be provoked on this machine, and its healthy twin.
scenarios: install
	$(BIN)/python scenarios/run.py --ullage $(BIN)/ullage --python $(BIN)/python --set all

# Causes that look alike, two by two: each is called what it is and not what the other is.
.PHONY: lookalikes
lookalikes: install
	$(BIN)/python scenarios/run.py --ullage $(BIN)/ullage --python $(BIN)/python --lookalikes --guest-logs .guest/logs/6.1

# What docs/guide/origin.md says of each situation, against what is said now.
.PHONY: origin
origin: install
	$(BIN)/python scenarios/run.py --ullage $(BIN)/ullage --python $(BIN)/python --origin --guest-logs .guest/logs/6.1

# Those that belong to a whole machine, in small virtual ones, and the Rust tests on their kernels (qemu; see guests/README.md).
guests: install
	CARGO=$(CARGO) $(PYTHON) guests/run.py --kernel 5.10 --kernel 6.1 --kernel 6.12 --ullage $(BIN)/ullage --tests

# Small jobs that grow in one known way each, and the word that they get: about ten minutes.
.PHONY: growth
growth: install
	$(BIN)/python tests/growth_classes.py --ullage $(BIN)/ullage --python $(BIN)/python --together 4

# Real limits of cgroup v1: needs root, and a machine that has it.
.PHONY: test-cgroup-v1
test-cgroup-v1: install
	$(BIN)/python tests/cgroup_v1.py --ullage $(BIN)/ullage

# What `ullage compare` says of two machines that differ in one thing.
.PHONY: test-two-machines
test-two-machines: install
	$(BIN)/python tests/two_machines.py --ullage $(BIN)/ullage --python $(BIN)/python

# torch's own tests of its loader and its multiprocessing, with ullage and without: hours, in a venv with torch 2.6.0.
.PHONY: test-torch-own
test-torch-own: target/torch-own/torch-2.6.0
	target/torch-own/bin/pip install -q .
	target/torch-own/bin/python tests/torch_own.py

target/torch-own/torch-2.6.0:
	$(PYTHON) -m venv target/torch-own
	target/torch-own/bin/pip install -q torch==2.6.0 numpy expecttest hypothesis psutil dill
	touch $@

# Wheels for each CPython from 3.9 on that is found here, and the source archive, into dist/: for glibc 2.28, and checked.
.PHONY: wheels
wheels:
	$(PYTHON) packaging/wheels.py

# Those wheels in a venv each: the crash and its cure, and the time from installing to the first verdict. Fetches torch for each.
.PHONY: try-wheels
try-wheels:
	$(PYTHON) packaging/try_wheels.py

# The same fault in one rank under torchrun (two network namespaces) and under a real Slurm of two nodes: needs root and apt-get.
.PHONY: test-launchers
test-launchers: install
	$(BIN)/python tests/launchers.py --ullage $(BIN)/ullage --python $(BIN)/python

# The Debian package of the command, into dist/.
.PHONY: deb
deb:
	CARGO=$(CARGO) $(PYTHON) packaging/deb.py

# An image that holds the command alone, for other images to copy it from (buildah, podman or docker: BUILDER names it).
BUILDER ?= buildah
.PHONY: image
image: deb
	cp packaging/container/Containerfile target/deb/files
	cp LICENSE-APACHE LICENSE-MIT target/deb/files
	cp target/deb/files/crates target/deb/files/crates.txt
	$(BUILDER) build -t ullage target/deb/files

# Manual pages and completions, into dist/share.
.PHONY: pages
pages:
	$(CARGO) run -q --release -p ullage-cli --example pages -- dist/share $$(git log -1 --format=%cs)

# The pages of docs/ as a site in target/site, strictly: a link that leads nowhere ends it. Not --quiet: what is not printed
# does not count as a warning.
SITE := target/site-tools
.PHONY: docs-site site-check pictures
docs-site: $(SITE)/installed
	NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build --strict
	@echo "$$(find target/site -name '*.html' | wc -l) pages in target/site"

# Each page in headless Chromium: accessibility, errors, links and the search. Needs node and Chromium (CHROMIUM names it).
site-check: docs-site target/site-check/installed
	MODULES=target/site-check node packaging/site/browse.mjs target/site

# The pictures in docs/pictures, of real runs in a real terminal (tmux).
pictures: install $(SITE)/installed
	$(SITE)/bin/python packaging/site/pictures.py --ullage $(BIN)/ullage --python $(BIN)/python

$(SITE)/installed: packaging/site/requirements.txt
	$(PYTHON) -m venv $(SITE)
	$(SITE)/bin/pip install -q -r packaging/site/requirements.txt
	touch $@

target/site-check/installed: packaging/site/package.json packaging/site/package-lock.json
	mkdir -p target/site-check
	cp packaging/site/package.json packaging/site/package-lock.json target/site-check
	npm ci --prefix target/site-check --no-audit --no-fund --ignore-scripts
	touch $@

# Licences, sources and known holes of what is compiled in: deny.toml.
.PHONY: audit audit-tools host-tools
audit:
	$(CARGO) deny check
	$(CARGO) audit

audit-tools:
	$(CARGO) install --locked cargo-deny@0.20.2 cargo-audit@0.22.2

# What the tests use beside Python and Rust, on a host of a continuous integration.
host-tools:
	sudo apt-get update -qq
	sudo apt-get install --yes -qq tmux

lint: install
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --release -- -D warnings
	$(CARGO) run -q --release -p xtask -- check-architecture
	$(CARGO) run -q --release -p xtask -- check-docs
	$(CARGO) run -q --release -p xtask -- check-generated
	$(CARGO) run -q --release -p xtask -- check-words
	$(BIN)/ruff check python examples
	$(BIN)/ruff format --check python examples
	$(BIN)/mypy

# About ten minutes; watching.py alone, with longer windows and a million mappings (root), a quarter of an hour.
bench: install
	$(BIN)/pip install -q psutil
	$(BIN)/python benches/watching.py --ullage $(BIN)/ullage --python $(BIN)/python --only forked plain thousand --seconds 60
	$(BIN)/python benches/agent.py --ullage $(BIN)/ullage --python $(BIN)/python
	$(BIN)/python benches/cost.py --ullage $(BIN)/ullage --python $(BIN)/python
	$(BIN)/python benches/transport.py

# Whether the agent un-shares memory of forked workers, with the libraries of the integrations: half an hour.
.PHONY: bench-memory
bench-memory: install target/integrations/torch-$(TORCH)
	target/integrations/bin/pip install -q -r integrations/requirements.txt pandas
	$(BIN)/python benches/agent_memory.py --ullage $(BIN)/ullage --python target/integrations/bin/python

# How large recordings are, what a kill costs them, and whether other tools open them.
.PHONY: bench-recording
bench-recording: install
	$(BIN)/pip install -q pyarrow polars duckdb
	$(CARGO) build --release -p ullage-recording --example footprint
	$(BIN)/python benches/recording.py --ullage $(BIN)/ullage --python $(BIN)/python --footprint target/release/examples/footprint

# What each promise of the package costs, beside torch alone: shared and frozen datasets, the zygote, rows, batches.
BENCHES_TORCH := benches/share.py benches/freeze.py benches/zygote.py benches/rows.py benches/steady.py benches/limits.py
.PHONY: bench-torch
bench-torch: install
	status=0; for one in $(BENCHES_TORCH); do $(BIN)/python $$one || status=1; done; exit $$status

# What the copies of simulated nodes write to a shared disk: writes a second, bytes an hour, and how old they get.
.PHONY: bench-fleet-copy
bench-fleet-copy:
	$(CARGO) run --release -p ullage-recording --example footprint -- 64 idle target/fleet-copy 2 copied
	$(CARGO) run --release -p ullage-recording --example footprint -- 64 busy target/fleet-copy 2 copied
	$(CARGO) run --release -p ullage-recording --example footprint -- 8 busy target/fleet-copy 10 copied

# Whether the memory that ullage attributes is what its page tables hold; as root, page frames are counted.
.PHONY: bench-truth
bench-truth: install
	$(CARGO) build --release -p ullage-recording --example totals
	$(BIN)/python benches/truth.py --ullage $(BIN)/ullage --totals target/release/examples/totals

# How well the time is forecast that is left until a limit, in real leaks beside a straight line.
.PHONY: bench-forecast
bench-forecast: install
	$(CARGO) build --release -p ullage-cli --example forecasts
	$(BIN)/python benches/forecast.py --ullage $(BIN)/ullage --forecasts target/release/examples/forecasts

# Whether each shared byte of a job has its true kind and maker (root).
.PHONY: bench-segments
bench-segments: install
	$(BIN)/python benches/segments.py --ullage $(BIN)/ullage --python $(BIN)/python

# Whether watching delays a job of 8 GB that probes its address space a thousand times a second (root): 20 minutes.
.PHONY: bench-harmless
bench-harmless: install
	$(BIN)/python benches/harmless.py --ullage $(BIN)/ullage --python $(BIN)/python

# A batch beside SPDL's shared-memory arena (Python 3.10 or newer).
.PHONY: bench-spdl
bench-spdl: install
	$(BIN)/pip install -q --target target/spdl spdl-core
	$(BIN)/python benches/spdl.py --spdl target/spdl

# Every bench, one after the other: hours, and root for some. A target that fails does not keep the others from running.
.PHONY: bench-all
bench-all: install
	$(MAKE) --keep-going --jobs=1 bench bench-memory bench-recording bench-torch bench-truth bench-forecast bench-segments bench-harmless bench-spdl

fuzz:
	fuzz/run.sh $(SECONDS_EACH)

# pip builds the command and the module with cargo in target/release, where the tests find what it compiled; and only
# where a source is newer than what is installed.
SOURCES := $(shell find crates python/agent python/native python/ullage -type f -not -path '*/__pycache__/*' -not -path '*/target/*' -not -path '*/scenario/*')
install: $(VENV)/installed $(TOOLS_STAMP)

$(VENV)/installed: $(TORCH_STAMP) $(SOURCES) Cargo.toml Cargo.lock pyproject.toml
	@echo "installing ullage into $(VENV)"
	PYO3_PYTHON=$(abspath $(BIN)/python) $(BIN)/pip install -q .
	touch $@

# torch is fetched while ullage is compiled.
$(TORCH_STAMP):
	$(PYTHON) -c 'import sys; sys.exit("Python 3.9 or newer is needed: make PYTHON=python3.11") if sys.version_info < (3, 9) else None'
	$(PYTHON) -m venv $(VENV)
	@$(BIN)/python packaging/set_up.py --python $(BIN)/python --torch $(TORCH) --cargo "$(CARGO)"
	touch $@

# For the tests and the checks; the demo does without.
$(TOOLS_STAMP): $(TORCH_STAMP)
	$(BIN)/pip install -q pytest pytest-xdist hypothesis pyarrow pillow ruff mypy
	touch $@

clean:
	$(CARGO) clean
	rm -rf $(VENV)
