# Fathom. `make` builds into build/; `make demo` and `make test` first install what is missing.
#
#   make          build build/fathom and the package in build/python
#   make demo     set up, build, profile the example, show the table
#   make test     set up, build, run every test
#   make check    make test, and the C tests again under ASan and UBSan
#   make bench    side by side with the peers; long, needs the package index
#   make install PREFIX=/usr/local
#
# What each step needs is named in tools/setup, the only place that installs anything.

BUILD ?= build
MESON ?= meson
PYTEST ?= python3 -m pytest
JOBS ?= $(shell nproc)

# Pythons that have come or gone since the build was configured change which agents there are to build.
all: $(BUILD)/build.ninja
	@if tools/agent-targets --changed $(BUILD)/agent-targets.txt; then \
	    $(MESON) setup --reconfigure $(BUILD) > /dev/null || { $(MESON) setup --reconfigure $(BUILD); exit 1; }; fi
	@ninja -C $(BUILD) $(QUIET)

$(BUILD)/build.ninja: | needs-build
	@$(MESON) setup $(BUILD) $(SETUP_ARGS) > /dev/null || { $(MESON) setup $(BUILD) $(SETUP_ARGS); exit 1; }

needs-build:
	@tools/setup --check build

setup:
	@tools/setup build test

demo:
	@tools/setup build
	@$(MAKE) --no-print-directory all QUIET=--quiet
	@tools/demo $(BUILD)

test: setup all
	@tools/test $(BUILD)

check: test
	@tools/check-sanitized

bench: all
	@bench/run

install: all
	@$(MESON) install -C $(BUILD)

clean:
	@rm -rf $(BUILD)

.PHONY: all needs-build setup demo test check bench install clean
