# Needs make and Python 3.11 to 3.14, nothing else. `make help` says what there is.
PYTHON ?= $(shell for name in python3.14 python3.13 python3.12 python3.11 python3; do \
	"$$name" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null && echo "$$name" && break; done)

VENV := .venv
BIN := $(VENV)/bin/python
SUPERVISOR := $(BIN) -m config.embedded.supervisor
# Installed is what the locks say: a changed lock has another checksum, and so another stamp.
checksum = $(shell cat $(1) | cksum | cut -d' ' -f1)
LOCKS := requirements/base.txt requirements/model.txt
BASE := $(VENV)/base-$(call checksum,$(LOCKS)).stamp
DEV := $(VENV)/dev-$(call checksum,$(LOCKS) requirements/dev.txt).stamp
BENCH := $(VENV)/bench-$(call checksum,$(LOCKS) requirements/dev.txt requirements/bench.txt).stamp
TORCH := $(VENV)/torch-$(call checksum,$(LOCKS) requirements/torch-cpu.txt requirements/torch-cuda.txt).stamp
RENDER := $(VENV)/render-$(call checksum,$(LOCKS) requirements/render.txt).stamp
INSTALL := $(BIN) -m pip install --disable-pip-version-check --quiet --no-deps --require-hashes

NAME ?=
ARGS ?=
export SOURCE DEMO_EXIT

.PHONY: help demo up stop status test lint bench soak torch render lock clean
.DEFAULT_GOAL := help

help:
	@echo "make demo          stack up, this project's documents in, two questions asked; SOURCE=path: your own; DEMO_EXIT=1: stop after"
	@echo "make up            the stack in the foreground; Ctrl-C stops it"
	@echo "make stop          stop what runs in the background"
	@echo "make status        what runs, and what it costs in memory"
	@echo "make test          tests; ARGS=\"-k words\" is passed on"
	@echo "make lint          ruff"
	@echo "make bench         NAME=ingest ARGS=\"...\": tests/benchmarks/ingest.py"
	@echo "make soak          the long tests, then the soaks as JSON lines; NAME=... for one soak"
	@echo "make torch         the torch backend into the same virtualenv (GPU workers, and tests that compare with it)"
	@echo "make render        what drives a Chromium of this machine, for sources with web.render: auto"
	@echo "make lock          requirements/*.txt anew from *.in (needs uv)"
	@echo "make clean         virtualenv and caches away; DATA=1: the embedded services' data too"

demo: $(BASE)
	@trap 'exit 130' INT TERM; if [ "$$DEMO_EXIT" = 1 ]; then trap '$(SUPERVISOR) stop' EXIT; fi; \
	$(SUPERVISOR) up --detach && $(SUPERVISOR) exec -- $(BIN) manage.py demo

up: $(BASE)
	@$(SUPERVISOR) up --if-stopped

# Neither installs anything: where nothing is installed, nothing runs.
stop status:
	@$(if $(wildcard $(VENV)/base-*.stamp),$(SUPERVISOR) $@,echo "Nothing is running here.")

test: $(DEV)
	$(BIN) -m pytest -n 2 -m "not soak" $(ARGS)

lint: $(DEV)
	$(BIN) -m ruff check .

bench: $(DEV) $(if $(filter crawl,$(NAME)),$(BENCH))
	@test -n "$(NAME)" || { echo "Which one? make bench NAME=ingest, NAME=crawl, NAME=extract, NAME=pages, NAME=quality, NAME=search or NAME=stage"; exit 2; }
	$(BIN) tests/benchmarks/$(NAME).py $(ARGS)

soak: $(DEV)
	$(if $(NAME),,$(BIN) -m pytest -m soak)
	$(BIN) tests/benchmarks/soak.py $(NAME) $(ARGS)

torch: $(TORCH)

render: $(RENDER)

lock:
	sh requirements/lock.sh

clean:
	@if [ -x $(BIN) ]; then $(SUPERVISOR) stop; if [ "$(DATA)" = 1 ]; then $(SUPERVISOR) erase; fi; fi
	rm -rf $(VENV) build staticfiles .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN):
	@test -n "$(PYTHON)" || { echo "No Python 3.11 to 3.14 with venv and ensurepip found (Debian: apt install python3-venv). Or: make PYTHON=/path/to/python3"; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(BASE): | $(BIN)
	@echo "Installing what a server needs (once)"
	$(INSTALL) $(foreach lock,$(LOCKS),-r $(lock))
	@rm -f $(VENV)/base-*.stamp && touch $@

$(DEV): $(BASE)
	$(INSTALL) -r requirements/dev.txt
	@rm -f $(VENV)/dev-*.stamp && touch $@

$(BENCH): $(DEV)
	$(INSTALL) -r requirements/bench.txt
	@rm -f $(VENV)/bench-*.stamp && touch $@

$(TORCH): $(BASE)
	$(INSTALL) -r requirements/torch-cpu.txt && $(BIN) -c "import torch" || $(INSTALL) -r requirements/torch-cuda.txt
	$(BIN) -c "import sentence_transformers"
	@rm -f $(VENV)/torch-*.stamp && touch $@

$(RENDER): $(BASE)
	$(INSTALL) -r requirements/render.txt
	@$(BIN) -c "from ingestion.render import missing; print(missing() or 'Pages that need JavaScript can be rendered here.')"
	@rm -f $(VENV)/render-*.stamp && touch $@
