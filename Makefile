# make demo | test | test-slow | lint | types | docs | build | bench | bench-spark | bench-compare | clean
#
# Everything runs in .venv, made on first use from PYTHON.  Stamp files remember what is done, so that a second
# run repeats nothing; the kernels are rebuilt when a .pyx, a .pxd, a .pxi, a .h or setup.py is newer than they are.

PYTHON  ?= python3
WORKERS ?= 2

VENV    := .venv
PY      := $(VENV)/bin/python
RUFF    := $(VENV)/bin/ruff
CHECKED := build/checked
# What reaches every kernel: the twins, trees of joins, streams with and without keys, long ones, existence indexes,
# sieves, views.
REACHING := tests/kernels --ignore tests/kernels/test_leaks.py tests/test_joins.py tests/test_sieves.py \
            'tests/test_stream.py::test_pieces_give_what_the_whole_gives[700000]' \
            'tests/test_stream.py::test_keys_are_streams_of_their_own[710000]' \
            'tests/test_stream.py::test_long_streams_are_forgotten_but_for_what_matters[725000-key1]' \
            'tests/test_negation.py::test_an_index_and_a_search_agree_on_longer_streams[10000]' \
            'tests/test_negation.py::test_an_index_and_a_search_agree_on_longer_streams[10300]' \
            'tests/test_negation.py::test_threads_build_their_own' \
            tests/test_kept_views.py tests/test_views.py \
            --deselect 'tests/test_joins.py::test_small_rounds_and_threads_change_nothing[400200]' \
            --deselect 'tests/test_joins.py::test_small_rounds_and_threads_change_nothing[400300]'
SOURCES := setup.py $(wildcard $(addprefix quercus/kernels/*.,pyx pxd pxi h))

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := build
.DELETE_ON_ERROR:
.PHONY: demo test test-slow lint types docs unit unit-spark unit-browser unit-checked java browser build bench bench-spark bench-compare clean

demo: build
	$(PY) -m quercus demo -o build/plan.svg

test: lint types docs unit unit-spark unit-browser unit-checked
	@echo "make test: all passed"

test-slow: build java $(VENV)/.connect
	$(PY) -m pytest -n $(WORKERS) -m slow --ignore tests/spark --ignore tests/browser
	$(PY) -m pytest -m slow tests/spark

lint: $(VENV)/.installed
	$(RUFF) check .
	$(RUFF) format --check .

types: $(VENV)/.spark
	$(PY) -m mypy --strict

# The documents as a site; a link that leads nowhere is an error.
docs: build $(VENV)/.docs
	$(PY) -m sphinx -q -W --keep-going -b html docs build/docs

unit: build
	$(PY) -m pytest -n $(WORKERS) --ignore tests/spark --ignore tests/browser

# One process: Spark itself uses the cores.
unit-spark: build java
	$(PY) -m pytest tests/spark

# One process, one Chromium; where there is none, and none can be installed, these tests are skipped and say so.
unit-browser: build browser
	$(PY) -m pytest tests/browser -rs

# The same kernel tests where an index out of range is an error, not a wrong answer.
unit-checked: build $(CHECKED)/.built
	QUERCUS_KERNELS=$(CURDIR)/$(CHECKED)/quercus/kernels $(PY) -m pytest -n $(WORKERS) $(REACHING)

build: build/.kernels

# Everything that the documents say of speed: results as JSON in benchmarks/results, the tables and pictures of the
# documents, and which aims are met. Spark is left out where there is neither pyspark nor Java (make java).
bench: build $(VENV)/.bench
	$(PY) -m pytest benchmarks -o python_files='bench_*.py' -o python_functions='bench_*' --benchmark-only
	$(PY) -m benchmarks.all

# Against a folder of results that was saved before: make bench-compare SAVED=folder
bench-compare: $(VENV)/.bench
	$(PY) -m benchmarks.compare $(SAVED)

bench-spark: build java
	$(PY) -m benchmarks.spark

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .benchmarks
	find quercus tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
	rm -f quercus/kernels/*.so quercus/kernels/*.c

# ---- what the targets above stand on

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    || { echo "error: $(PYTHON) is not Python 3.11 or newer; name one with 'make PYTHON=python3.12'" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null \
	    || { echo "error: $(PYTHON) cannot make virtual environments; on Debian: apt-get install python3-venv" >&2; exit 1; }
	@$(PYTHON) -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' \
	    || { echo "error: the headers of $(PYTHON) are missing; on Debian: apt-get install python3-dev" >&2; exit 1; }
	@command -v $${CC:-gcc} >/dev/null \
	    || { echo "error: no C compiler ($${CC:-gcc}); on Debian: apt-get install gcc libc6-dev" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(PY)
	QUERCUS_LATER=1 $(PY) -m pip install --quiet --editable '.[dev,viz]'
	@touch $@

$(VENV)/.bench: pyproject.toml $(VENV)/.installed
	QUERCUS_LATER=1 $(PY) -m pip install --quiet --editable '.[bench]'
	@touch $@

$(VENV)/.docs: pyproject.toml $(VENV)/.installed
	QUERCUS_LATER=1 $(PY) -m pip install --quiet --editable '.[docs]'
	@touch $@

$(VENV)/.spark: pyproject.toml $(VENV)/.installed
	QUERCUS_LATER=1 $(PY) -m pip install --quiet --editable '.[spark,java]'
	@touch $@

$(VENV)/.connect: pyproject.toml $(VENV)/.spark
	QUERCUS_LATER=1 $(PY) -m pip install --quiet --editable '.[connect]'
	@touch $@

# Spark runs on Java 17 or newer. Where there is none, it is installed if we may; otherwise the error names the ways out.
FIND_JAVA := $(PY) -c 'from quercus.backends.spark.java import main; main()'

java: $(VENV)/.spark
	@$(FIND_JAVA) >/dev/null 2>&1 || $(MAKE) --no-print-directory .install-java
	@$(FIND_JAVA)

.PHONY: .install-java
.install-java:
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "no Java 17 or newer: installing one with apt-get"; \
	    apt-get update -qq; \
	    apt-get install -qq --yes --no-install-recommends openjdk-17-jre-headless \
	        || apt-get install -qq --yes --no-install-recommends openjdk-21-jre-headless; \
	fi

# Reports and the studio are tested in Debian's Chromium, driven by its chromedriver.
browser:
	@if ! { command -v chromium && command -v chromedriver; } >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "no Chromium: installing one with apt-get"; \
	    { apt-get update -qq && apt-get install -qq --yes --no-install-recommends chromium chromium-driver fonts-dejavu-core; } \
	        || echo "Chromium could not be installed: its tests are skipped"; \
	fi

# A new setup.py may mean new directives, which Cython does not see in its own files' dates.
build/.kernels: $(SOURCES) $(VENV)/.installed
	$(if $(filter setup.py,$?),rm -rf build/cython)
	$(PY) setup.py --quiet build_ext --inplace --parallel $(WORKERS)
	@mkdir -p $(@D) && touch $@

$(CHECKED)/.built: $(SOURCES) $(VENV)/.installed
	rm -rf $(CHECKED) $(if $(filter setup.py,$?),build/cython-checked build/temp-checked)
	QUERCUS_CHECKED=1 $(PY) setup.py --quiet build_ext --parallel $(WORKERS) --build-lib $(CHECKED) --build-temp build/temp-checked
	@touch $@
