# Every target sets up .venv by itself; nothing but git, make and Python 3.11+ is needed.
PYTHON ?= python3
BIN := .venv/bin
ONCE ?=
# Bytecode is kept: without it every process that a test starts compiles the packages again.
export PYTHONDONTWRITEBYTECODE :=
# One more than there are cores: tests of a control plane wait for it most of their time.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
QUICK := tests/agent tests/fuzz tests/schemas tests/scheduler $(addprefix tests/portal/,http identity views) \
  tests/reconciler/*.py $(addprefix tests/reconciler/,accounts acting approvals deciding documents gpr_objects health \
  lifecycle model planning pulls status timekeeping)

.PHONY: demo test quick check bench schemas screenshots pictures outputs site

demo: .venv/ready ## the whole system on this machine (ONCE=1: the story in simulated time)
	$(BIN)/egs demo $(if $(ONCE),--once)

test: .venv/ready ## all tests; at the end, where the time went
	$(BIN)/pytest -n $(WORKERS) --dist loadgroup --max-worker-restart 1 --budget

quick: .venv/ready ## for the inner loop: rooms whose tests start no processes, with few examples
	EGS_TEST_PROFILE=quick $(BIN)/pytest -n auto -m "not slow" $(QUICK)

check: .venv/ready ## lint, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/bench ## measure; prints what docs/explain/benchmarks.md quotes
	$(BIN)/python -m benchmarks

schemas: .venv/ready ## write schemas/json, deploy/crds, the chart's files and the tables in docs again after a model changed
	$(BIN)/python -m schemas.export.generate
	$(BIN)/python -m schemas.export.crds
	$(BIN)/python -m reconciler.deploying.generate
	$(BIN)/python docs/generate.py

screenshots: .venv/docs ## every page of the demo in light, dark and on a phone, into screenshots/ (needs chromium)
	$(BIN)/python docs/screenshots.py screenshots

pictures: .venv/docs ## only the pictures that the documents show, into docs/images (needs chromium)
	$(BIN)/python docs/screenshots.py

outputs: .venv/ready ## write again what the commands in docs/start and the guides print
	EGS_TEST_WRITE_DOCS=1 $(BIN)/pytest -q tests/docs/test_start.py tests/docs/test_guides.py

site: .venv/docs ## the documents as pages with search, into site/; any dead link fails it
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

.venv/docs: .venv/ready
	PIP_CONSTRAINT=constraints.txt $(BIN)/pip install --quiet --disable-pip-version-check -e '.[docs]'
	touch .venv/docs

.venv/bench: .venv/ready
	PIP_CONSTRAINT=constraints.txt $(BIN)/pip install --quiet --disable-pip-version-check -e '.[bench]'
	touch .venv/bench

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	PIP_CONSTRAINT=constraints.txt $(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch .venv/ready
