# The commands people type. CMake is the build system; this file only calls it.
BUILD ?= build
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
CMAKE_FLAGS ?=
.PHONY: all setup build demo test bench format lint install uninstall deb release-check clean help

all: build

# Installs the Debian packages that are missing (needs root or sudo); on other systems names them and stops.
setup:
	@scripts/setup

# The command, the libraries and the plug-in for MPI; tests too once `make test` has asked for them.
build: setup
	@$(CONFIGURE)
	@cmake --build $(BUILD) -j $(JOBS)

TESTS := $(shell sed -n 's/^BUILD_TESTING:BOOL=//p' $(BUILD)/CMakeCache.txt 2>/dev/null)
CONFIGURE = cmake -S . -B $(BUILD) -DBUILD_TESTING=$(or $(TESTS),OFF) $(CMAKE_FLAGS) > $(BUILD).log 2>&1 || \
	{ cat $(BUILD).log; exit 1; }; rm -f $(BUILD).log

# Simulates the pendulum, trains DVBF and its rival, prints the paper's tables beside ours, writes demo/report.html.
demo: setup
	@$(CONFIGURE)
	@cmake --build $(BUILD) -j $(JOBS) --target dvbf_cli
	@$(BUILD)/dvbf reproduce pendulum -o demo --force

# Programs are tested with cmocka, algebra against LAPACK. The Python package is tested by pytest, the report in a browser, the manual pages by groff, the headers in C++, a decimal
# comma in a locale made from `locales`, ranks over Open MPI.
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

# With DESTDIR=FOLDER below that folder, for those who make packages.
install: build
	@DESTDIR="$(DESTDIR)" cmake --install $(BUILD)

uninstall:
	@DESTDIR="$(DESTDIR)" cmake -DBUILD="$(BUILD)" -P cmake/uninstall.cmake

# Debian packages, in build-deb/: dvbf, dvbf-mpi, libdvbf0, libdvbf-core0, libdvbf-dev, python3-dvbf, and their source package.
deb: setup
	@scripts/setup libopenmpi-dev build-essential debhelper dh-python dpkg-dev fakeroot
	@JOBS=$(JOBS) scripts/deb build-deb

# Slower checks before a release; a step that cannot be done here says why. STEPS=--skip root,fuzz leaves some out.
release-check: setup
	@scripts/setup libcmocka-dev liblapacke-dev python3-numpy
	@scripts/release-check $(STEPS)

clean:
	@rm -rf $(BUILD)
