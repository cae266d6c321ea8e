# The front door: `make demo` and `make test` bring a bare Debian 12 machine to a running helve.
# Each step of the set-up leaves a stamp, so that a second call does no work twice. One build tree serves ctest and the
# installed package.

PYTHON ?= python3
BUILD ?= build
JOBS ?= $(shell nproc)

.NOTPARALLEL:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
export CCACHE_SLOPPINESS := pch_defines,time_macros
export PIP_DISABLE_PIP_VERSION_CHECK := 1

VENV := .venv
PY := $(abspath $(VENV))/bin/python
PIP_BUILD := --no-build-isolation --no-deps --config-settings=build-dir=$(BUILD) --config-settings=build.targets=_core \
  --config-settings=cmake.define.HELVE_TESTS=ON --config-settings=cmake.define.HELVE_UNITY=ON
# Seconds of one core from nothing, as measured: who waits is told how long.
MODULE_SECONDS := 750
TESTS_SECONDS := 480
about = about $$(( ($(1) / $(JOBS) + 59) / 60 )) min on $(JOBS) cores
# Folders are listed too: deleting a file changes its folder, and the package must be installed anew.
PACKAGE_FILES := $(shell find python/helve -name __pycache__ -prune -o -print)
MODULE = $(wildcard $(BUILD)/python/bindings/_core*.so)

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

demo: install ## set up without tests, then compile and run the first tutorial
	@$(PY) tutorials/01_rms_norm.py

test: install tests ## set up, then run all tests (C++ and Python)
	@$(PY) tests/run.py --build $(BUILD)

test-long: install tests ## sanitizer builds of the usual tests, then larger fuzzing and the full law suites
	@$(MAKE) --no-print-directory sanitized FOLDER=$(BUILD)-asan SANITIZE=address,undefined
	@$(MAKE) --no-print-directory sanitized FOLDER=$(BUILD)-tsan SANITIZE=thread
	@HELVE_TEST_LONG=1 $(PY) tests/run.py --build $(BUILD)

docs: install .stamps/docs ## build the site of the documentation: build/site/html/index.html
	@$(PY) docs/site/build.py $(BUILD)/site

.stamps/docs: pyproject.toml .ci/requirements.py .stamps/venv
	@$(PY) -m pip install -qq -r <($(PY) .ci/requirements.py docs)
	@touch $@

wheel: packages ## build a wheel for each Python from 3.10 to 3.13 that is found into dist/, and try each
	@CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) .ci/wheels $(BUILD)-wheels

clean: ## remove what was built (the Python environment stays)
	rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-tsan $(BUILD)-wheels dist .stamps/build .stamps/install

distclean: clean ## remove the Python environment as well
	rm -rf $(VENV) .stamps

packages: .stamps/packages ## set-up, step 1: the system packages of packages.txt
.stamps/packages: packages.txt .ci/packages
	@.ci/packages
	@mkdir -p .stamps && touch $@

venv: .stamps/venv ## set-up, step 2: the Python environment .venv
.stamps/venv: pyproject.toml .ci/requirements.py .stamps/packages
	@echo "set-up: the Python environment .venv"
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install -qq -r <($(PY) .ci/requirements.py)
	@touch $@

build: .stamps/venv ## set-up, step 3: configure, and compile the module
	@test -e $(BUILD)/configured || { cmake --log-level=NOTICE -G Ninja -S . -B $(BUILD) -DPython_EXECUTABLE=$(PY) \
	  -DHELVE_PYTHON=ON -DHELVE_TESTS=ON -DHELVE_UNITY=ON && touch $(BUILD)/configured; }
	@test -n "$(MODULE)" || echo "set-up: compiling helve, $(call about,$(MODULE_SECONDS))"
	@NINJA_STATUS="[%f/%t, %e s] " ninja -C $(BUILD) -j$(JOBS) _core

tests: build
	@test -e $(BUILD)/src/test_driver || echo "set-up: compiling the tests, $(call about,$(TESTS_SECONDS))"
	@NINJA_STATUS="[%f/%t, %e s] " ninja -C $(BUILD) -j$(JOBS)

install: build ## set-up, step 4: install the package into .venv
	@$(MAKE) -s --no-print-directory .stamps/install
.stamps/install: $(PACKAGE_FILES) $(MODULE) .stamps/venv
	@$(PY) -m pip install -qq $(PIP_BUILD) .
	@touch $@

lint: .stamps/lint ## check the form of all sources, as before a commit (pre-commit)
	@$(VENV)/bin/pre-commit run --all-files

format: .stamps/lint ## give all sources that form
	@git ls-files '*.cc' '*.h' | xargs -n 64 $(VENV)/bin/clang-format -i
	@$(VENV)/bin/ruff check -q --fix .

.stamps/lint: pyproject.toml .ci/requirements.py .stamps/venv
	@$(PY) -m pip install -qq -r <($(PY) .ci/requirements.py lint)
	@touch $@

sanitized: venv
	@test -e $(FOLDER)/build.ninja || cmake --log-level=NOTICE -G Ninja -S . -B $(FOLDER) -DHELVE_PYTHON=OFF -DHELVE_UNITY=ON \
	  -DHELVE_SANITIZE=$(SANITIZE)
	@ninja -C $(FOLDER) -j$(JOBS) --quiet
	@$(PY) tests/run.py --build $(FOLDER) --only-cpp

.PHONY: help demo test tests test-long lint format docs wheel clean distclean packages venv build install sanitized
