# Two commands on a machine with Python 3.11 or newer: `make book` and `make test`. `make help` lists the others.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
UV := $(VENV)/lock/bin/uv

# These problems are small: one BLAS thread in each process, and processes in parallel.
export OPENBLAS_NUM_THREADS ?= 1
export OMP_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help book test lint serve lab lock clean

help:             ## list these commands
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

book: $(READY)    ## execute the chapters and build the site
	@$(BIN)/python tools/vendor_js.py
	@PEPCORE_PROGRESS=0 $(BIN)/python tools/build_book.py

test: lint        ## everything that proves package and book right
	$(BIN)/python -m pytest -n 2 --dist loadscope -m "not book"
	@$(MAKE) --no-print-directory book
	PEPCORE_PROGRESS=0 $(BIN)/python -m pytest -n 2 --dist loadscope -m book --nbval --nbval-sanitize-with tests/nbval_sanitise.cfg tests chapters

lint: $(READY)    ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/mypy

serve: book       ## show the built site at http://localhost:8000
	$(BIN)/python -m http.server 8000 --bind 127.0.0.1 --directory _build/html

lab: $(READY)     ## open the chapters in JupyterLab
	$(BIN)/jupyter lab chapters

lock: $(READY)    ## renew requirements.txt from requirements.in, and package-lock.json
	test -x $(UV) || ($(PYTHON) -m venv $(VENV)/lock && $(VENV)/lock/bin/python -m pip install --quiet uv)
	$(UV) pip compile --quiet --upgrade --universal --python-version 3.11 requirements.in -o requirements.txt \
	  --no-header --no-emit-index-url --no-emit-find-links
	$(BIN)/python tools/vendor_js.py --lock

clean:            ## remove everything that these commands made
	rm -rf $(VENV) node_modules _vendor _build build *.egg-info
	find . -name __pycache__ -prune -exec rm -rf {} +

$(READY): requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version.split()[0] + "; name another with: make book PYTHON=python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --requirement requirements.txt
	$(BIN)/python -m pip install --quiet --no-deps --editable .
	@touch $@
