# Each verb sets up what it needs: Rust (cargo), Python 3.9 up and make must be there, the rest is fetched.

PYTHON ?= python3
CARGO ?= cargo
VENV ?= .venv
TORCH ?= 2.13.0
SECONDS_EACH ?= 60

BIN := $(VENV)/bin
TORCH_STAMP := $(VENV)/torch-$(TORCH)
DEMO := target/demo

.PHONY: demo test test-rust test-python test-outside test-scenarios scenarios guests lint bench fuzz install clean

# The crash that puzzles people, on real torch, and what ullage says of it. Its job fails; the demo does not.
demo: install
	@mkdir -p $(DEMO)
	@rm -f $(DEMO)/verdict.json
	ULLAGE_HOME=$(CURDIR)/$(DEMO)/runs $(BIN)/ullage run --json $(DEMO)/verdict.json -- $(BIN)/python examples/crash.py; test $$? -eq 1
	@$(BIN)/python examples/check_demo.py $(DEMO)/verdict.json

test: test-rust test-python test-outside test-scenarios

# One profile, so that what the command needs is compiled once. The second line tries every order of the arena's atomics.
test-rust:
	$(CARGO) test --workspace --exclude ullage-native --release
	RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom $(CARGO) test --release -p ullage-arena --lib

test-python: install
	$(BIN)/python -m pytest

# What the outside sees: the same command with and without ullage, every process found, ullage killed and stopped.
test-outside: install
	$(BIN)/python tests/transparency.py --ullage $(BIN)/ullage
	$(BIN)/python tests/discovery.py --ullage $(BIN)/ullage
	$(BIN)/python tests/kill_recorder.py --ullage $(BIN)/ullage --times 12
	$(BIN)/python tests/outage.py --ullage $(BIN)/ullage --stop 6 --kills 4
	$(BIN)/python tests/clean.py --ullage $(BIN)/ullage --python $(BIN)/python
	$(BIN)/python tests/check.py --ullage $(BIN)/ullage --python $(BIN)/python
	$(BIN)/python tests/arena_kills.py --times 2
	$(BIN)/python tests/arena_kills.py --points --times 1 --methods fork

test-scenarios: install
	$(BIN)/python scenarios/run.py --ullage $(BIN)/ullage --python $(BIN)/python --set smoke

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

lint: install
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --release -- -D warnings
	$(CARGO) run -q --release -p xtask -- check-architecture
	$(CARGO) run -q --release -p xtask -- check-docs
	$(BIN)/ruff check python examples
	$(BIN)/ruff format --check python examples
	$(BIN)/mypy

# About ten minutes; watching.py alone, with longer windows and a million mappings (root), a quarter of an hour.
bench: install
	$(BIN)/pip install -q psutil
	$(BIN)/python benches/watching.py --ullage $(BIN)/ullage --python $(BIN)/python --only forked plain thousand --seconds 60
	$(BIN)/python benches/cost.py --ullage $(BIN)/ullage --python $(BIN)/python
	$(BIN)/python benches/transport.py

# How large recordings are, what a kill costs them, and whether other tools open them.
.PHONY: bench-recording
bench-recording: install
	$(BIN)/pip install -q pyarrow polars duckdb
	$(CARGO) build --release -p ullage-recording --example footprint
	$(BIN)/python benches/recording.py --ullage $(BIN)/ullage --python $(BIN)/python --footprint target/release/examples/footprint

fuzz:
	fuzz/run.sh $(SECONDS_EACH)

# pip builds the command and the module with cargo in target/release, where the tests find what it compiled.
install: $(TORCH_STAMP)
	$(BIN)/pip install -q .

$(TORCH_STAMP):
	$(PYTHON) -c 'import sys; sys.exit("Python 3.9 or newer is needed: make PYTHON=python3.11") if sys.version_info < (3, 9) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q torch==$(TORCH) numpy pytest hypothesis ruff mypy
	touch $@

clean:
	$(CARGO) clean
	rm -rf $(VENV)
