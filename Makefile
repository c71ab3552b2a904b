# Two commands are all a newcomer needs: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

# Where `make experiment` finds the paper's datasets (built-in samples if empty) and writes.
DATA ?=
OUT ?=
FULL ?=

.PHONY: demo test lint bench experiment lock clean

demo: $(READY)
	$(BIN)/python examples/demo.py demo

test: $(READY)
	$(BIN)/python -m pytest -n auto

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY)
	$(BIN)/python -m benchmarks.bench_core
	$(BIN)/python -m benchmarks.bench_run

# The figures and findings of the paper; FULL=1 runs its whole grid.
experiment: $(READY)
	$(BIN)/kmeander experiment $(if $(DATA),--data "$(DATA)") $(if $(FULL),--full) $(if $(OUT),--out "$(OUT)")

# The environment: everything by name, at the versions of constraints.txt, the kernel built in.
$(READY): pyproject.toml CMakeLists.txt constraints.txt $(wildcard kernel/*)
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "kmeander needs Python 3.11 or newer: make PYTHON=python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "Setting up .venv and building the kernel (about a minute the first time) ..."
	@$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --group dev
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-build-isolation --editable ".[cli,kafka,experiments]"
	@touch $@

# Write down the versions in use, for everybody to use.
lock: $(READY)
	$(BIN)/python -m pip freeze --exclude-editable | grep -v '^kmeander' > constraints.txt

clean:
	rm -rf .venv build dist demo experiment experiment-full
