# make demo, make cms, make test, make full, make quick, make bench: each sets up .venv from the lock first, `cms` and `test` .venv-cms. PYTHON=python3.12 takes another interpreter.
PYTHON ?= python3
DATA ?= examples/publications
READY := .venv/.ready

CMS := .venv-cms/.ready
SERVICE_PORT ?= 8750
PORT ?= 8000
# seconds after which a test fails as one that waits for ever: many times what the longest takes
TEST_TIMEOUT := 900

.PHONY: demo cms test .tests .tests-of-wagtail full quick bounds bench check setup clean

setup: $(READY)

# bytecode, as where a package is installed: a command starts 0.2 s sooner
$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Triplewire needs Python 3.11 or newer; set PYTHON=..."; exit 1; }
	@echo "Setting up .venv (about a minute, once)"
	@$(PYTHON) -m venv .venv
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	@.venv/bin/python -m compileall -q -j 0 src/triplewire
	@touch $@

demo: $(READY)
	@.venv/bin/triplewire pipeline demo --input "$(DATA)"

# the example site of integrations/wagtail beside a service, until it is stopped: docs/cms.md
cms: export SERVICE_PORT := $(SERVICE_PORT)
cms: export PORT := $(PORT)
cms: $(READY) $(CMS)
	@exec .venv-cms/bin/python examples/cms/run.py

# Wagtail needs none of the libraries of Triplewire, and has a lock and an environment of its own
$(CMS): integrations/wagtail/requirements.lock integrations/wagtail/pyproject.toml
	@echo "Setting up .venv-cms (a few seconds, once)"
	@$(PYTHON) -m venv .venv-cms
	@.venv-cms/bin/python -m pip install --quiet --disable-pip-version-check -r integrations/wagtail/requirements.lock
	@.venv-cms/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e integrations/wagtail
	@.venv-cms/bin/python -m compileall -q integrations/wagtail/src
	@touch $@

# the Wagtail app's tests wait for its service most of the time: they run beside ours, and what they say is shown whole
test:
	@$(MAKE) --no-print-directory --jobs=2 .tests .tests-of-wagtail

.tests: $(READY)
	@.venv/bin/python -m pytest -n 4 --dist loadgroup --no-loadscope-reorder --timeout $(TEST_TIMEOUT)

.tests-of-wagtail: $(READY) $(CMS)
	@cd integrations/wagtail && said=$$(../../.venv-cms/bin/python -m pytest --timeout $(TEST_TIMEOUT) 2>&1); \
	code=$$?; echo; echo "$$said"; exit $$code

# as `test`, with up to ten times the generated cases, all cases of damage, 200 kills: docs/decisions/039
full: $(READY)
	@TRIPLEWIRE_TEST_PAIRS=60000 TRIPLEWIRE_DAMAGE=all .venv/bin/python -m pytest -n 4 --dist loadgroup --no-loadscope-reorder

# unit tests in less than 30 seconds: which ones, tests/conftest.py says; kernels run as plain Python where a test asks one
quick: $(READY)
	@NUMBA_DISABLE_JIT=1 .venv/bin/python -m pytest --quick -m 'not slow' -n 2

# the tests of kernels, which are compiled once more, so that each checks that it stays within its arrays
bounds: export NUMBA_BOUNDSCHECK = 1
bounds: export TRIPLEWIRE_CACHE = $(CURDIR)/.venv/bounds
bounds: $(READY)
	@.venv/bin/triplewire warm-up
	@.venv/bin/python -m pytest -n 2 tests/encode tests/select tests/verify tests/agreement

# all measurements, with their targets: half an hour; `.venv/bin/python -m bench --help` says which there are
bench: $(READY)
	@.venv/bin/python -m bench all

check: $(READY)
	@.venv/bin/ruff check .
	@.venv/bin/mypy --strict src bench
	@.venv/bin/lint-imports

clean:
	rm -rf .venv .venv-cms build dist out
