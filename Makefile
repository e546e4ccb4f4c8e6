# make demo, make test: both set up .venv from the lock first. PYTHON=python3.12 takes another interpreter.
PYTHON ?= python3
DATA ?= examples/publications
READY := .venv/.ready

.PHONY: demo test check setup clean

setup: $(READY)

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Triplewire needs Python 3.11 or newer; set PYTHON=..."; exit 1; }
	@echo "Setting up .venv (about a minute, once)"
	@$(PYTHON) -m venv .venv
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	@touch $@

demo: $(READY)
	@.venv/bin/triplewire pipeline demo --input "$(DATA)"

test: $(READY)
	@.venv/bin/python -m pytest -n 2 --dist loadgroup --no-loadscope-reorder

check: $(READY)
	@.venv/bin/ruff check .
	@.venv/bin/mypy --strict src
	@.venv/bin/lint-imports

clean:
	rm -rf .venv build dist out
