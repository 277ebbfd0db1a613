# Thin: each goal is one script or one CMake preset. `make help` lists the goals.
.DEFAULT_GOAL := help
.PHONY: help setup build test test-long demo fleet-demo docs bench accuracy asan tsan fuzz lint format gpu-check package wheel clean

help:  ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup:  ## install what building needs (apt, with sudo where needed)
	@scripts/setup.sh build

build: setup  ## build/release/fullbore
	@scripts/build.sh release fullbore

test:  ## install what is missing, build, run the tests that do not take long: C++ and Python
	@scripts/test.sh

test-long:  ## after make test: tests that take long, and those that compare measured times (quiet machine)
	@scripts/test_long.sh

demo:  ## train a real ResNet under fullbore, apply its advice, compare prediction and measurement
	@scripts/demo.sh

fleet-demo:  ## a dozen planted trainings of several users on a real Slurm cluster here, and the fleet's report (as root)
	@scripts/fleet_demo.sh

docs:  ## the site made from docs/, in build/docs (mkdocs-material, in an environment of its own)
	@scripts/docs.sh

bench:  ## run the benchmarks
	@scripts/bench.sh

accuracy:  ## a tenth of the exam: do what the reports of random programs recommend, and measure it (quiet machine)
	@scripts/accuracy.sh $(ARGUMENTS)

asan:  ## the C++ tests and those of both Python extensions under the address and undefined-behaviour sanitizers
	@scripts/setup.sh test
	@scripts/build.sh asan
	@scripts/ctest.sh asan
	@scripts/sanitize_python.sh asan

tsan:  ## the same under the thread sanitizer
	@scripts/setup.sh test
	@scripts/build.sh tsan
	@scripts/ctest.sh tsan
	@scripts/sanitize_python.sh tsan

fuzz: setup  ## every parser against inputs made to break it, a minute each (needs clang); SECONDS=600 for longer
	@scripts/fuzz.sh $(or $(SECONDS),60)

lint:  ## clang-format, clang-tidy on changed files (ALL=1: on all), oxfmt, ruff
	@scripts/setup.sh lint
	@scripts/lint.sh

format:  ## apply clang-format, oxfmt and ruff's fixes
	@scripts/setup.sh lint
	@scripts/format.sh

gpu-check:  ## all that needs a GPU, in some minutes (WHEEL=dist/...whl: with that, not this build)
	@scripts/gpu_check.sh $(ARGUMENTS)

wheel:  ## dist/*.whl with all libraries inside, for machines that cannot build or fetch (FULLBORE_PYTHONS=python3.9:python3.12)
	@scripts/wheel.sh

package:  ## the .deb, in build/release
	@scripts/package.sh

clean:  ## remove what building left; keeps .venv and recorded runs
	rm -rf build
