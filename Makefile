# Thin over cargo and xtask: what a person types. `make` alone lists the targets.

CARGO ?= cargo
# The build of the program: release, quick or dev. `make test` takes the one that the tests have made, which is nearly as fast where it matters.
PROFILE ?= release
export PROFILE
# The program to drive; without it, that of PROFILE, which is built first.
FLASHYARD_PROGRAM ?=
export FLASHYARD_PROGRAM
FLASHYARD = $(or $(FLASHYARD_PROGRAM),$(CARGO) run --profile $(PROFILE) --quiet -p flashyard-cli --bin flashyard --)
# The Python of `make test-python`.
PYTHON ?= python3
# How long `make fuzz` stays at each of its targets.
FUZZ_SECONDS ?= 3600
# A trace file to drive the demo with; without it the workloads are generated.
TRACE ?=
# The crate of `make mutants`: its directory in crates/pure; SHARD=0/8 takes every eighth mutant.
CRATE ?= kernel
SHARD ?=

.DEFAULT_GOAL := help
.PHONY: help demo quick dist test-dist test-pack test faults faults-cvfs planted mutants record-fio how-to fuzz bench lint docs web lint-web test-web test-linux test-live test-lives test-long test-studies test-spdk test-python site

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 16

demo: ## run the seven designs on generated workloads, or on TRACE=FILE
	$(FLASHYARD) demo $(if $(TRACE),--trace '$(TRACE)')

quick: ## build the program quickly after a change, as target/quick/flashyard: as optimized as a release, but each crate for itself
	$(CARGO) build --profile quick -p flashyard-cli --bin flashyard

dist: ## pack the program as one static file with completions and manual pages, in target/dist (some minutes; the static C library)
	program=$$(packaging/build.sh) && packaging/pack.sh target/dist "$$program"

test-dist: ## run what `make dist` made where there is nothing else but devices, neither a C library nor a shell, and follow the tutorials with it (a minute)
	packaging/try.sh target/dist docs/tutorials/first-run.md docs/tutorials/your-drive.md docs/tutorials/your-jbof.md docs/tutorials/served-drive.md

# With this program `make test` has followed the longer tutorials.
test-pack: ## pack the program of the tests as `make dist` packs a release, and try the package beside the shared libraries that it needs (half a minute)
	packaging/pack.sh target/pack $(or $(FLASHYARD_PROGRAM),$(or $(CARGO_TARGET_DIR),target)/debug/flashyard)
	FLASHYARD_DYNAMIC=1 packaging/try.sh target/pack docs/tutorials/first-run.md docs/tutorials/served-drive.md

test: PROFILE = dev
# Tests bring in features of other people's crates that the program alone has not: building it alone would compile almost everything again.
test: FLASHYARD_PROGRAM = $(abspath $(or $(CARGO_TARGET_DIR),target))/debug/flashyard
test: ## every test, the demo, the shorter reproductions and quick numbers of the longer ones against their golden tables, the commands of the pages and, where they lie beside the repository, the recorded traces
	$(CARGO) xtask skipped --forget
	$(CARGO) xtask test
	$(MAKE) demo
	$(FLASHYARD) faults --points 20000
	$(FLASHYARD) faults --world cvfs --points 5000
	$(FLASHYARD) faults --world mirror --points 5000
	$(CARGO) xtask golden --short
	$(CARGO) xtask pages-run
	$(CARGO) xtask real-traces
	$(CARGO) xtask skipped

test-lives: ## the studies that take minutes, against their golden tables (an hour and a half of two cores)
	$(CARGO) build --profile $(PROFILE) -p flashyard-cli --bin flashyard
	$(CARGO) xtask golden --long

test-long: ## the tests that take minutes each: the table of wear leveling, a hundred thousand crash points, the oracle's speed, combinations of memories (fifteen minutes)
	$(CARGO) test --release -p flashyard-ftl --test wear_leveling -- --ignored --nocapture
	$(CARGO) test --release -p flashyard-cvfs --test crashes -- --ignored --nocapture
	$(CARGO) test --release -p flashyard-faults --lib -- --ignored --nocapture
	$(CARGO) test --release -p flashyard-far-memory --test combinations --test pictures -- --ignored
	$(CARGO) test --release -p flashyard-paraid --test heteroraid -- --ignored

test-studies: ## the tables of the pages on lending against runs, with the package that `make test-python` has built (some minutes)
	python/.venv/bin/python python/studies/lending.py --check

test-spdk: ## the host of SPDK against our target, from a Python module that it takes from the package index (huge pages)
	FLASHYARD_REQUIRE=pynvme $(CARGO) test -p flashyard-conformance --test pynvme -- --nocapture

test-python: ## the Python package: its wheel in a virtual environment, tests and types (some minutes; Python 3.10 or newer, packages of its index)
	$(PYTHON) -m venv python/.venv
	python/.venv/bin/pip install --quiet --disable-pip-version-check -r python/requirements.txt
	cd python && CARGO_TARGET_DIR=../target .venv/bin/maturin build --quiet --locked --profile dev --compatibility linux --out .venv/wheels
	python/.venv/bin/pip install --quiet --disable-pip-version-check --force-reinstall --no-deps python/.venv/wheels/flashyard-*.whl
	cd python/tests && ../.venv/bin/python -m pytest -q .

test-linux: ## a Linux host connects to all drives that are served, writes and reads one (a minute or two; root, Debian packages)
	tests/live/run.sh connect-all vhost-user vhost-volume zones protection

test-live: ## real clients against an enclosure that serves: Linux over NVMe/TCP, file systems, pulled drives, a volume that shrinks (a quarter of an hour; root, Debian packages)
	tests/live/run.sh
	tests/live/volume.sh

record-fio: ## record what fio makes of the job files whose requests are compared with ours (a minute; fio 3.33)
	tests/live/record-fio.py

faults: ## break a small enclosure at a million points, and see that nothing acknowledged is lost (a quarter of an hour)
	$(FLASHYARD) faults --points 1000000

faults-cvfs: ## cut the power of a volume that shrinks at a hundred thousand points (some minutes)
	$(FLASHYARD) faults --world cvfs --points 100000

planted: ## break the recovery on purpose, and see that the faults find each bug
	$(CARGO) xtask planted

mutants: ## change the code of CRATE=kernel in one place at a time, and list the changes that its tests let pass (minutes to hours; cargo-mutants)
	mkdir -p target/mutants
	CARGO_TARGET_DIR='$(CURDIR)/target/mutants/build' $(CARGO) mutants -p flashyard-$(CRATE) --jobs 1 \
		-o target/mutants/$(CRATE) $(if $(SHARD),--sharding round-robin --shard $(SHARD)) || test $$? -eq 2 -o $$? -eq 3

how-to: ## apply each example of the how-to list in ARCHITECTURE.md to a copy of the last commit, and compile it (some minutes)
	$(CARGO) xtask how-to

fuzz: ## any bytes through every decoder and through a whole connection, an hour each or FUZZ_SECONDS (needs nightly and cargo-fuzz)
	for target in nvme nvme_tcp nvmf_target nvmf_connection nbd_session formats accesses \
		journals aged directories images scenarios jobs; do \
		$(CARGO) +nightly fuzz run $$target -- -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 || exit 1; \
	done

bench: ## speed and memory of the simulator, with a hash of its results
	$(CARGO) run --release --quiet -p flashyard-cli --bin flashyard-bench

lint: ## format, clippy and tidy
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(CARGO) xtask tidy
	$(MAKE) lint-web

docs: ## the API documentation, without a warning
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps

site: ## the documentation as a site in target/site/html, with every key of scenarios; checks its links (Python 3.10 or newer)
	mkdir -p target/site
	$(FLASHYARD) schema > target/site/schema.json
	$(PYTHON) -m venv target/site/venv
	target/site/venv/bin/pip install --quiet --disable-pip-version-check -r docs/site/requirements.txt
	$(PYTHON) docs/site/build.py target/site/schema.json
	NO_MKDOCS_2_WARNING=1 target/site/venv/bin/mkdocs build --quiet --strict -f docs/site/mkdocs.yml

web/node_modules/.package-lock.json: web/package.json web/package-lock.json
	cd web && npm ci
	touch $@

web: web/node_modules/.package-lock.json ## build the pages in web/dist (needs Node and npm; the program does not)
	cd web && npm run --silent build

lint-web: ## types and tests of the pages, and whether web/dist is up to date; skipped without npm
ifeq ($(shell command -v npm),)
	@echo "SKIPPED: npm is missing; nobody checked that web/dist is what its sources give" >&2
	@test -z "$(FLASHYARD_REQUIRE)"
else
	$(MAKE) web/node_modules/.package-lock.json
	cd web && npm run --silent check && npm run --silent test
endif

test-web: ## the pages in a real browser; skipped without npm or chromium
ifeq ($(shell command -v npm),)
	@echo "SKIPPED: npm is missing; the pages were not tested in a browser" >&2
	@test -z "$(FLASHYARD_REQUIRE)"
else
	$(MAKE) web/node_modules/.package-lock.json
	cd web && npm run --silent test-browser
endif
