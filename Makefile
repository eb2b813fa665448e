# Two commands on a machine with Python 3.11 or newer: `make book` and `make test`. `make help` lists the others.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# These problems are small: one BLAS thread in each process, and processes in parallel.
export OPENBLAS_NUM_THREADS ?= 1
export OMP_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1

# Containers often set this. Without bytecode each of some hundred processes compiles all of its packages anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help ready book test lint student instructor slides zip serve lab pdf lock results bench clean

help:             ## list these commands
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

book: ready       ## execute the chapters and build the site
	@PEPCORE_PROGRESS=0 $(BIN)/python tools/build_book.py

test: lint book   ## everything that proves package and book right
	PEPCORE_PROGRESS=0 $(BIN)/python -m pytest -n 2 --dist loadscope --nbval-built tests chapters

lint: ready       ## ruff, mypy, spelling and grammar
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python tools/spelling.py

student: ready    ## write the assignments, without solutions, to _build/student
	@PEPCORE_PROGRESS=0 $(BIN)/python tools/make_student.py

instructor: book  ## write the notes for teachers, and nbgrader's course, to _build/instructor
	@PYTHONPATH=chapters PEPCORE_PROGRESS=0 $(BIN)/python tools/make_instructor.py

serve: book       ## show the built site at http://localhost:8000, or the next free port
	@$(BIN)/python tools/serve.py

lab: ready        ## open the book in JupyterLab, at its first page
	@$(BIN)/python tools/lab.py

pdf: book         ## print the book into _build/pdf; SOLUTIONS=end, inline or none
	@SOLUTIONS=$(SOLUTIONS) $(BIN)/python tools/make_pdf.py

slides: book      ## write slides for the chapters to _build/slides
	@$(BIN)/python tools/make_slides.py

zip: book        ## pack the book for machines without a network into _build/pepcore-book.zip
	@$(BIN)/python tools/make_zip.py

lock: ready       ## renew requirements.txt from requirements.in, and package-lock.json
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 requirements.in -o requirements.txt \
	  --no-header --no-emit-index-url --no-emit-find-links
	$(BIN)/python tools/vendor_js.py --lock

results: ready   ## list the studies behind the figures: what is done, what is missing, what it costs
	@$(BIN)/python -m figures status

bench: ready      ## time pepcore beside other packages, whose Pythons PEPCORE_BENCH_GPFLOW, _GPY and _GPYTORCH name
	$(BIN)/python tests/benchmarks/bench.py
	$(BIN)/python tests/benchmarks/report.py

clean:            ## remove everything that these commands made
	rm -rf $(VENV) node_modules _vendor _build build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis .coverage
	find . -name .git -prune -o \( -name __pycache__ -o -name .ipynb_checkpoints \) -prune -exec rm -rf {} +
	find . -name .git -prune -o -name '*.part' -exec rm -f {} +
	rm -f figures/*.draft figures/results/*.draft

ready:
	@command -v "$(PYTHON)" >/dev/null || { echo 'There is no "$(PYTHON)": install Python 3.11 or newer, or name another one, as in make book PYTHON=python3.12.' >&2; exit 1; }
	@"$(PYTHON)" tools/set_up.py
