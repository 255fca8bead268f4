# The commands people type. CMake is the build system; this file only calls it.
BUILD ?= build
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
CMAKE_FLAGS ?=
.PHONY: all setup build demo test bench format lint install uninstall deb release-check clean help

all: build

# Installs missing Debian packages (needs root or sudo); on other systems lists them and stops.
setup:
	@scripts/setup

# The command, the libraries and the MPI plug-in; tests too after the first `make test`.
build: setup
	@$(CONFIGURE)
	@cmake --build $(BUILD) -j $(JOBS)

TESTS := $(shell sed -n 's/^BUILD_TESTING:BOOL=//p' $(BUILD)/CMakeCache.txt 2>/dev/null)
CONFIGURE = cmake -S . -B $(BUILD) -DBUILD_TESTING=$(or $(TESTS),OFF) $(CMAKE_FLAGS) > $(BUILD).log 2>&1 || \
	{ cat $(BUILD).log; exit 1; }; rm -f $(BUILD).log

# Simulates the pendulum, trains DVBF and the Deep Kalman Filter, prints the paper's tables with ours, writes demo/report.html.
demo: setup
	@$(CONFIGURE)
	@cmake --build $(BUILD) -j $(JOBS) --target dvbf_cli
	@$(BUILD)/dvbf reproduce pendulum -o demo --force

# C tests use cmocka, algebra LAPACK, the Python package pytest, the report a browser, manual pages groff, headers a C++ compiler,
# the decimal comma a locale built from `locales`, ranks Open MPI.
test:
	@scripts/setup libcmocka-dev liblapacke-dev libopenmpi-dev openmpi-bin g++ binutils groff-base chromium chromium-driver \
	  curl jq locales python3-numpy python3-pytest
	@$(MAKE) --no-print-directory build TESTS=ON
	@scripts/tests $(BUILD) -j $(JOBS)

bench:
	@scripts/setup libopenblas-dev
	@$(MAKE) --no-print-directory build
	@bench/run $(BUILD)

format:
	@scripts/setup clang-format
	@git ls-files '*.c' '*.h' | xargs clang-format -i

lint: build
	@scripts/setup clang-format clang-tidy cppcheck
	@scripts/lint $(BUILD)

# DESTDIR=FOLDER installs below that folder, for packaging.
install: build
	@DESTDIR="$(DESTDIR)" cmake --install $(BUILD)

uninstall:
	@DESTDIR="$(DESTDIR)" cmake -DBUILD="$(BUILD)" -P cmake/uninstall.cmake

# Debian packages, in build-deb/: dvbf, dvbf-mpi, libdvbf0, libdvbf-core0, libdvbf-dev, python3-dvbf, and their source package.
deb: setup
	@scripts/setup libopenmpi-dev build-essential debhelper dh-python dpkg-dev fakeroot
	@JOBS=$(JOBS) scripts/deb build-deb

# Slow checks before a release; a step that cannot run says why. STEPS=--skip root,fuzz leaves some out.
release-check: setup
	@scripts/setup libcmocka-dev liblapacke-dev python3-numpy
	@scripts/release-check $(STEPS)

clean:
	@rm -rf $(BUILD)
