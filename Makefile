# Thin over cargo and xtask: what a person types. `make` alone lists the targets.

CARGO ?= cargo
FLASHYARD = $(CARGO) run --release --quiet -p flashyard-cli --bin flashyard --
# A trace file to drive the demo with; without it the workloads are generated.
TRACE ?=

.DEFAULT_GOAL := help
.PHONY: help demo test bench lint docs

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 16

demo: ## run the seven designs on generated workloads, or on TRACE=FILE
	$(FLASHYARD) run scenarios/demo/scenario.toml $(if $(TRACE),--set 'workload.trace=$(TRACE)')

test: ## every test, the demo, the reproduction against its golden table and, where they lie beside the repository, the recorded traces
	$(CARGO) test --workspace
	$(MAKE) demo
	$(CARGO) xtask golden
	$(CARGO) xtask real-traces

bench: ## speed and memory of the simulator, with a hash of its results
	$(CARGO) run --release --quiet -p flashyard-cli --bin flashyard-bench

lint: ## format, clippy and tidy
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(CARGO) xtask tidy

docs: ## the API documentation, without a warning
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps
