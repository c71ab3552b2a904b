# A newcomer needs `make demo` and `make test`, a developer `make check`. Before a change goes in: `.ci/run`.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
KERNEL := $(shell find kernel -type f)
SPARK_READY := .venv/.spark-ready
BENCH_READY := .venv/.bench-ready
DOCS_READY := .venv/.docs-ready

# Where `make experiment` finds the paper's datasets (built-in samples if empty) and writes.
DATA ?=
OUT ?=
FULL ?=

# BEYOND=1 lets `make experiment` compare kmeander's defaults with all others; RIVER=1 adds river.
BEYOND ?=
RIVER ?=

# QUICK=1 lets `make bench` run small shapes only, and write nothing down.
QUICK ?=

.PHONY: demo check quick test test-spark lint docs sanitize faults bench bench-spark experiment lock clean

demo: $(READY)
	$(BIN)/python examples/demo.py demo

# After every edit: what needs neither Spark nor browser nor broker, in two to three minutes.
check: lint quick

quick: $(READY)
	$(BIN)/python -m pytest -q -n auto --dist loadgroup --ignore src/kmeander/spark \
		-m "not spark and not browser and not kafka and not slow"

# On Spark 3.5, 4.0 and the newest, each in local[2], on two executors and on Spark Connect; once in a while.
test-spark: $(SPARK_READY)
	set -e; for version in 3.5.7 4.0.1 newest; do \
		for master in "local[2]" "local-cluster[2,1,1024]" connect; do .ci/spark $$version "$$master"; done; \
	done

# Everything; tests of one group, such as those on Spark, share a worker.
test: $(SPARK_READY)
	$(BIN)/python -m pytest -n auto --dist loadgroup

lint: $(SPARK_READY)
	$(BIN)/clang-format --dry-run --Werror $(filter %.hpp %.cpp,$(KERNEL))
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml

# The site, in docs/_build/html: warnings are errors, examples are run, links and spelling checked.
docs: $(DOCS_READY)
	$(BIN)/codespell *.md docs src kernel examples tests benchmarks faults
	$(BIN)/python -m sphinx -E -W --keep-going -n -q -b html docs docs/_build/html
	$(BIN)/python -m docs.check_links docs/_build/html
	@echo "Open docs/_build/html/index.html"

# The kernel's tests with the compiler's sanitizers built in; they stop at the first finding.
sanitize: $(READY)
	.ci/sanitize address
	.ci/sanitize thread

# Every fault of docs/reliability.md, anew; QUICK=1 tries each a few times, and writes nothing down.
faults: $(READY)
	$(BIN)/python -m faults $(if $(QUICK),--quick,--write)

# kmeander beside its peers; DATA=folder adds streams of the paper's datasets.
bench: $(BENCH_READY)
	$(BIN)/python -m benchmarks.bench_peers $(if $(DATA),--data "$(DATA)") \
		$(if $(QUICK),--quick,--json docs/bench.json --picture docs/images/bench.png)
	$(BIN)/python -m benchmarks.bench_footprint $(if $(QUICK),--quick)
	$(BIN)/python -m benchmarks.bench_run
	$(BIN)/python -m benchmarks.bench_follow $(if $(QUICK),--quick)

# On Spark: beside MLlib's StreamingKMeans, and what a batch costs; QUICK=1 leaves out the large ones.
bench-spark: $(SPARK_READY)
	$(BIN)/python -m benchmarks.bench_spark $(if $(DATA),"$(DATA)") $(if $(QUICK),--quick)

# The figures and findings of the paper, or beyond it; FULL=1 runs the whole grid.
experiment: $(if $(RIVER),$(BENCH_READY),$(READY))
	$(BIN)/kmeander experiment $(if $(BEYOND),beyond) $(if $(DATA),--data "$(DATA)") $(if $(FULL),--full) \
		$(if $(RIVER),--river) $(if $(OUT),--out "$(OUT)")

# The environment: everything by name, at the versions of constraints.txt, the kernel built in.
$(READY): pyproject.toml CMakeLists.txt constraints.txt $(KERNEL)
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "kmeander needs Python 3.11 or newer: make PYTHON=python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "Setting up .venv and building the kernel (a minute or two the first time) ..."
	@$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --group dev
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-build-isolation --editable ".[cli,kafka,page,experiments,river,metrics,s3,gs,abfs]"
	@# BERTopic alone, as its guide says: what it embeds texts with would be gigabytes.
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-deps bertopic tqdm pyyaml
	@touch $@

# Spark, which only its tests, its types and its benchmark need: as large as everything else together.
$(SPARK_READY): $(READY)
	@echo "Installing Spark (half a minute) ..."
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --group spark
	@touch $@

# What builds the site.
$(DOCS_READY): $(READY)
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --group docs
	@touch $@

# The peers, which only benchmarks need.
$(BENCH_READY): $(READY)
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --group bench
	@touch $@

# Write down the versions in use, for everybody to use.
lock: $(SPARK_READY) $(BENCH_READY) $(DOCS_READY)
	$(BIN)/python -m pip freeze --exclude-editable | grep -v '^kmeander' > constraints.txt

clean:
	rm -rf .venv build dist docs/_build docs/gallery docs/reference/api demo experiment experiment-full experiment-beyond experiment-beyond-full experiment-alarms experiment-alarms-full
