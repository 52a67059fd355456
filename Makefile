# `make demo` shows what plegwatch is for. `make check` (a minute), `make test` (20 minutes) and `make test-long` (hours) prove
# that it works. Each target fetches or builds what it needs (devtools/localServices/prepare) into a cache outside the checkout.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help check demo test kubelet-test release-test cluster-test versions lake test-long histories torture soak critest fleet torture-mutants engine-mutants lint lint-style lint-types lint-page-types lint-imports lint-unused lint-words format generate check-generated build bench bench-agent bench-controller bench-page bench-questions fleet-database pictures experiment image release keep-release verify-release advisories cluster clean

node := devtools/localServices/node
root := $(filter 0,$(shell id -u))
# Only root can run a real containerd. Without the API server, the table comes straight from SQL.
demo_programs := $(if $(NO_KUBE),node npm postgres redis,demo) $(if $(root),containerd runc images)
# Exit code 3 of devtools/localServices/prepare: a program is not available on this machine, and prepare has printed why.
prepare = devtools/localServices/prepare $(1) || [ $$? = 3 ]

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## Run the demo on this machine: two real kubelets of which one falls back (root), a lossy and an unsafe runtime (ONCE=1 prints once; NO_KUBE=1 starts no API server)
	@$(call prepare,$(demo_programs))
	@$(node) build.mjs
	@./bin/plegwatch-dev demo $(if $(ONCE),--once) $(if $(NO_KUBE),--no-kube)

# All test processes load the same packages: compiled once, they load faster. For `check`, fewer processes at once than beside kubelets, which mostly wait, cost less.
check test kubelet-test release-test: export NODE_COMPILE_CACHE := $(CURDIR)/node_modules/.cache/node-compile
check: lint ## Run the quick checks while you work: style, types, imports, unit tests, the long ones shortened (a minute)
	@PLEGWATCH_HISTORIES=100 $(node) node_modules/vitest/vitest.mjs run --project 'unit*' --maxWorkers=$$(($$(nproc) + 2))

test: ## Run the tests on real services (20 minutes; TESTS="test/integration/sql" runs only those)
	@$(call prepare,test)
	@$(node) node_modules/vitest/vitest.mjs run --project 'unit*' --project integration $(TESTS)

kubelet-test: ## Run the tests on real kubelets that fall back, hang and restart, and the demo's (root; 6 minutes, and 10 to build a kubelet; TESTS as above)
	@$(call prepare,kubelet-test)
	@$(node) node_modules/vitest/vitest.mjs run --project kubelet $(TESTS)

release-test: ## Test what users install: the chart in every version of Kubernetes, the image, a signed release (6 minutes, and 10 to build its tools; TESTS as above)
	@$(call prepare,release-test)
	@$(node) node_modules/vitest/vitest.mjs run --project release $(TESTS)

cluster-test: ## Install plegwatch in a real cluster of two nodes, and break every part of it (root; 15 minutes)
	@$(call prepare,cluster)
	@$(node) node_modules/vitest/vitest.mjs run --project cluster $(TESTS)

versions: ## Try real kubelets 1.28 to 1.37 with real containerds 1.7 to 2.4, and generate what documents say of them (root; half an hour, and as long to build; VERSIONS='1.37 with containerd 2.4')
	@$(call prepare,versions)
	@failed=0; $(node) node_modules/vitest/vitest.mjs run --project versions --maxWorkers=2 $(if $(VERSIONS),-t '$(VERSIONS)') $(TESTS) || failed=$$?; $(MAKE) --no-print-directory generate; exit $$failed

lake: ## Ask a lake of Parquet files the documented questions through Spark (three minutes; fetches 500 MB)
	@$(call prepare,node npm postgres spark)
	@$(node) node_modules/vitest/vitest.mjs run --project spark $(TESTS)

test-long: engine-mutants torture-mutants ## Run what takes hours: all mutants, a million histories, a million mutated messages, every flipped bit, 100 torture schedules, 100,000 operations on inboxes, a soak, critest, a large fleet, replicas that die, real versions, the long benchmark (root)
	@$(MAKE) histories HISTORIES=1000000
	@PLEGWATCH_HISTORIES=500000 $(node) node_modules/vitest/vitest.mjs run test/integration/fuzzDecoders.test.ts src/agent/spool/flippedBits.test.ts
	@PLEGWATCH_HISTORIES=30000 $(node) node_modules/vitest/vitest.mjs run test/integration/fuzzAgent.test.ts
	@$(MAKE) torture TORTURE='--schedules 100 --operations 100000 --quiet'
	@$(MAKE) soak
	@$(MAKE) critest
	@$(MAKE) fleet
	@PLEGWATCH_REPLICA_MINUTES=10 PLEGWATCH_REPLICA_NODES=100 $(node) node_modules/vitest/vitest.mjs run test/integration/replicas.test.ts
	@PLEGWATCH_HUNG_PODS=109 $(node) node_modules/vitest/vitest.mjs run test/integration/hungList.test.ts
	@$(MAKE) versions
	@$(MAKE) bench PLEGWATCH_BENCH_LONG=1

torture: ## Search for lost records under random faults (3 minutes; TORTURE='--seed N' repeats a schedule)
	@$(call prepare,node npm postgres redis)
	@$(node) build.mjs
	@$(node) test/torture/main.ts $(or $(TORTURE),--schedules 3 --quiet)

torture-mutants: ## Check that make torture detects builds that lose records on purpose (10 minutes)
	@$(call prepare,node npm postgres redis)
	@$(node) test/torture/mutants.ts

histories: ## Try random histories of the comparison (HISTORIES=10000; SEED=N repeats the ones that a run printed)
	@$(call prepare,npm)
	@PLEGWATCH_HISTORIES=$(or $(HISTORIES),10000) PLEGWATCH_SEED=$(or $(SEED),$(shell shuf -i 1-2147483647 -n 1)) \
		$(node) node_modules/vitest/vitest.mjs run --project 'unit*' test/engine/comparison.property.test.ts

soak: ## Run a real node for hours: drops at a known rate, restarts, an independent witness (root; SOAK='--hours 2')
	@$(call prepare,test)
	@$(node) build.mjs
	@$(node) --import ./bench/sqlAsText.ts test/soak/main.ts $(SOAK)

critest: ## Run the CRI's own validation tests and 200 random pods on a real containerd, with drops and kills, beside two witnesses (root; 25 minutes; CRITEST='--containerd 2.4 --seed N')
	@$(call prepare,node npm postgres redis containerd containerd-2.4 runc cni images critest)
	@$(node) build.mjs
	@$(node) --import ./bench/sqlAsText.ts test/critest/main.ts $(CRITEST)

fleet: ## Store what 5,000 simulated nodes send for 30 minutes (15 GiB; NODES=60 STARTS=2 MINUTES=3 for less; CONTROLLERS=2 freezes and kills one of two)
	@$(call prepare,test)
ifeq ($(CONTROLLERS),2)
	@PLEGWATCH_REPLICA_NODES=$(or $(NODES),5000) PLEGWATCH_REPLICA_STARTS=$(or $(STARTS),20) PLEGWATCH_REPLICA_MINUTES=$(or $(MINUTES),10) \
		$(node) node_modules/vitest/vitest.mjs run test/integration/replicas.test.ts
else
	@PLEGWATCH_FLEET_NODES=$(or $(NODES),5000) PLEGWATCH_FLEET_STARTS=$(or $(STARTS),20) PLEGWATCH_FLEET_MINUTES=$(or $(MINUTES),30) \
		$(node) node_modules/vitest/vitest.mjs run test/integration/fleetSimulation.test.ts
endif

engine-mutants: ## Check that a test fails for each broken rule of the comparison (hours; MUTANTS="3 7" runs only those)
	@$(call prepare,npm)
	@$(node) test/engine/mutants/run.ts $(MUTANTS)

lint: ## Check style, types, imports between folders, unused code, how sentences begin
	@$(call prepare,npm)
	@$(MAKE) --no-print-directory --jobs=2 --output-sync --keep-going lint-style lint-types lint-page-types lint-imports lint-unused lint-words
lint-style:
	@node_modules/.bin/biome ci .
# Several checkers would each work out the same types of packages. What it found is kept: unchanged files are not checked again.
lint-types:
	@$(node) node_modules/typescript/bin/tsc --noEmit --checkers 1 --incremental --tsBuildInfoFile node_modules/.cache/types.tsbuildinfo
lint-page-types:
	@$(node) node_modules/typescript/bin/tsc --noEmit -p src/ui/page
lint-imports:
	@$(node) node_modules/dependency-cruiser/bin/dependency-cruiser.mjs src devtools test bench
lint-unused:
	@$(node) node_modules/knip/bin/knip.js
lint-words:
	@git grep -l '' -- '*.md' '*.ts' '*.tsx' '*.sql' '*.yaml' | xargs $(node) devtools/lint/words.ts

format: ## Format the sources
	@$(call prepare,npm)
	@node_modules/.bin/biome check --write .

generate: ## Regenerate the CRI types (from proto/), the CRD (from src/controller/reports/status.ts) and the chart's, and the reference pages
	@$(call prepare,npm)
	@PATH="$$(dirname "$$(devtools/localServices/where node)"):$$PATH" node_modules/.bin/buf generate
	@$(node) devtools/referencePages.ts

check-generated: ## Fail if a generated file is stale
	@$(call prepare,npm)
	@PATH="$$(dirname "$$(devtools/localServices/where node)"):$$PATH" node_modules/.bin/buf generate --output dist/generated
	@diff -u src/cri/runtime.ts dist/generated/src/cri/runtime.ts || { echo 'src/cri/runtime.ts is stale: run make generate and commit.' >&2; exit 1; }
	@$(node) devtools/referencePages.ts --check

bench: ## Compare the cost of agent, controller and page with their budgets (root; an hour; PLEGWATCH_BENCH_LONG=1: agents after an hour)
	@missed=0; for half in agent controller page; do $(MAKE) --no-print-directory bench-$$half || missed=$$?; done; exit $$missed

bench-agent: ## Compare the cost of an agent with that of the kubelet's Go client (root; 30 minutes)
	@$(call prepare,bench etcd kubernetes kubelet-1.37 containerd-2.4)
	@$(node) build.mjs
	@$(node) bench/agentCost.ts
	@$(node) bench/podsWatchCost.ts

bench-controller: ## Compare controllers, Postgres and Redis with their budgets (20 minutes; PLEGWATCH_BENCH_PARTS='drain lag' runs only those)
	@$(call prepare,bench etcd kubernetes)
	@$(node) build.mjs
	@$(node) --import ./bench/sqlAsText.ts bench/controller/main.ts

bench-page: ## Measure how long the page takes to be drawn, with 5,000 nodes and with a busy day (two minutes)
	@$(call prepare,node npm postgres chromium)
	@$(node) build.mjs
	@$(node) bench/page.ts

pictures: ## Take the pictures of the page that docs show (three minutes; PICTURES='DIR hours pool' writes these views into a folder, at three widths and in both lights)
	@$(call prepare,node npm postgres chromium)
	@$(node) build.mjs
	@$(node) --import ./bench/sqlAsText.ts bench/pagePictures.ts $(PICTURES)

fleet-database: ## Show two groups, a fleet database over them, its page, and an answer of Spark (four minutes; ONCE=1 ends it by itself)
	@$(call prepare,node npm postgres spark)
	@$(node) build.mjs
	@$(node) --import ./bench/sqlAsText.ts bench/fleetDatabase.ts

bench-questions: ## Measure how long each documented question takes on ten million events of 200 nodes (15 minutes; 10 GiB; PLEGWATCH_BENCH_CALM_NODES=40000 adds calm nodes)
	@$(call prepare,node npm postgres)
	@$(node) build.mjs
	@$(node) bench/questions.ts

experiment: ## Measure what Evented PLEG saves containerd and the kubelet (root; 30 minutes; EXPERIMENT='--pods 10 --windows 3')
	@$(call prepare,node npm containerd containerd-2.4 kubelet-1.37 runc images etcd kubernetes)
	@$(node) bench/experiment/main.ts $(EXPERIMENT)

build: ## Bundle the program into dist/ for ./bin/plegwatch
	@$(call prepare,npm)
	@$(node) build.mjs

image: ## Build the image with buildah, as archives in dist/image/ (IMAGE=registry.example/plegwatch:0.1.0)
	@$(call prepare,node npm image-base buildah)
	@$(node) build.mjs
	@"$$(devtools/localServices/where image-node)" devtools/image/build.ts $(IMAGE)

release: image ## Make a release in dist/release/: images, chart, CRD, plugin, components, notices, provenance, checksums (KEY=cosign.key signs it; IMAGE as above)
	@$(call prepare,helm $(if $(KEY),cosign))
	@$(node) devtools/release/release.ts $(if $(KEY),--key '$(KEY)')

keep-release: ## Keep program and chart of the release that was just made in test/released/, so that tests upgrade from it
	@$(call prepare,node npm)
	@$(node) devtools/release/keep.ts

verify-release: ## Verify a release offline, by its publisher's public key (KEY=cosign.pub; RELEASE=FOLDER)
	@$(call prepare,node npm)
	@$(node) devtools/release/verify.ts '$(or $(RELEASE),dist/release)' '$(KEY)'

advisories: ## Fail if npm knows an advisory against a package of the product
	@$(call prepare,node npm)
	@PATH="$$(dirname "$$(devtools/localServices/where node)"):$$PATH" node devtools/release/advisories.ts

cluster: ## Run a real cluster of two nodes on this machine, with plegwatch installed by its chart, and a shell in it (root; ONCE=1 prints once, EMPTY=1 leaves out plegwatch)
	@$(call prepare,cluster)
	@$(MAKE) --no-print-directory image
	@./bin/plegwatch-dev cluster $(if $(ONCE),--once) $(if $(EMPTY),--empty)

clean: ## Remove dist/ and node_modules/ (not the cache: see devtools/localServices/README.md)
	@rm -rf dist node_modules
