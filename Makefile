# Retrylens. `make help` lists what there is.
SHELL := /bin/bash
GO    ?= go

.DEFAULT_GOAL := help
.PHONY: help build engine demo test check lint verify-golden bench chaos-ingest fuzz clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/ingest, bin/analyze and bin/engine
	@mkdir -p bin
	@if [ -d web/node_modules ]; then npm --prefix web run -s build; fi
	$(GO) build $(BUILD_FLAGS) -o bin/ ./cmd/...

BUILD_FLAGS ?= -trimpath

.PHONY: web ui-test ui-bench
web: ## fetch what the enhancer of the pages is built with, check it and bundle it; without it the pages are plain
	cd web && npm ci --ignore-scripts && npm run -s check && npm run -s build

ui-test: engine web ## the pages in a real Chromium, against the real binaries
	@$(MAKE) --no-print-directory build BUILD_FLAGS= # what the tests compiled serves again
	cd test/ui && npm ci --ignore-scripts && node run.mjs

ui-bench: engine web ## how long pages take over a day of 2.6 M attempts and over 90 days; rewrites docs/ui-benchmarks.md (about 10 minutes)
	@$(MAKE) --no-print-directory build
	cd test/ui && npm ci --ignore-scripts && node bench.mjs

engine: ## fetch the embedded ClickHouse (once; checksum verified)
	@scripts/fetch-engine.sh

demo: engine build ## simulate a day, import it, tell a masked outage from a flaky provider; EXIT=1 ends at once
	@EXIT="$(EXIT)" scripts/demo.sh

test: test-tools engine check ## install what is missing, then run every test (real engine included; root only if gcc is missing)
	$(GO) test -count=1 -timeout 15m ./...
	$(GO) -C test/sdkmatrix test -count=1 -timeout 15m ./...
	CGO_ENABLED=1 $(GO) test -count=1 -timeout 10m -race $(RACE_PACKAGES)
	CGO_ENABLED=1 $(GO) test -count=1 -timeout 10m -race ./internal/clickhouse -run 'Migrate|Stable|RollupsEqual'
	$(MAKE) --no-print-directory ui-test

# Packages whose code runs concurrently and whose tests need no engine.
RACE_PACKAGES = . ./internal/ingest/... ./internal/ingestd/... ./internal/spool/... ./internal/wire/... ./internal/metrics/... ./retry/...

.PHONY: test-tools
test-tools:
	@scripts/test-tools.sh

check: ## gofmt and go vet
	@test -z "$$(gofmt -l .)" || { echo "gofmt these files:"; gofmt -l .; exit 1; }
	$(GO) vet ./...
	$(GO) -C test/sdkmatrix vet ./...

lint: ## golangci-lint and govulncheck (built from source at their pinned versions the first time)
	$(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0 run
	$(GO) run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./...

verify-golden: engine ## golden attempts imported in every way: one JSON line
	@$(GO) test -count=1 ./test/golden -run TestGoldenReports -summary-line -v | grep '^{' || \
		{ $(GO) test -count=1 ./test/golden -run TestGoldenReports; exit 1; }

.PHONY: sdk-matrix
sdk-matrix: ## the official Go SDKs over the client, recorded and counted: one JSON line (the first time compiles the SDKs, minutes)
	@$(GO) -C test/sdkmatrix run .

bench: engine build ## measure and rewrite docs/benchmarks.md (about 8 minutes)
	$(GO) run ./test/bench -out docs/benchmarks.md
	$(GO) run ./test/ingestbench >> docs/benchmarks.md
	$(GO) run ./test/rollupbench >> docs/benchmarks.md
	$(GO) run ./test/retrybench >> docs/benchmarks.md
	$(GO) run ./test/clientbench >> docs/benchmarks.md

chaos-ingest: engine build ## SECONDS=120 SEED=n: kill, stop and starve ingest and engine under load; one JSON line
	@$(GO) run ./test/chaos -seconds $(or $(SECONDS),120) -seed $(or $(SEED),1)

.PHONY: dashboards
dashboards: ## write dashboards/grafana anew from internal/dashboards
	@$(GO) run ./internal/dashboards/gen dashboards/grafana

.PHONY: detector-bench
detector-bench: ## hold the detector to worlds of known truth: a table and one JSON line (takes minutes)
	@$(GO) run ./test/detectorbench

fuzz: ## a minute on every fuzz target
	@for p in $$($(GO) list ./...); do \
		for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz'); do \
			echo "$$p $$f"; $(GO) test $$p -run '^$$' -fuzz "^$$f\$$" -fuzztime 1m || exit 1; \
		done; \
	done

clean: ## remove what was built and the demo's data
	rm -rf bin out web/static/dist/app.*
