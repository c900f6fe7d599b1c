# SPDX-License-Identifier: Apache-2.0
#
# Needs Go, git and make; everything else is built from pinned Go modules into
# .cache (or $ADMITKIT_CACHE). Run `make` to see the targets.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# The machine is one: but for what hack/beside.sh runs, two test runs only make each other slow.
.NOTPARALLEL:

FUZZTIME ?= 30s
BENCH ?= .
BENCHCOUNT ?= 6
ROWS ?=
SIZES ?=
SHAPES ?=
BENCHFLAGS ?=
ORACLE_CASES ?= 200000
GOTESTFLAGS ?=

GO := go
NEXT := -modfile=hack/next/go.mod
# The end-to-end tests, the proofs and the command line tool have targets of their own.
unit_packages = $(shell $(GO) list ./... | grep -v -e /test/e2e -e '/test/proof$$' -e '/test/projects$$' -e '/cmd/admitkit$$')
# What uses those libraries, or behaves as they do.
next_packages = $(shell $(GO) list ./pkg/... ./internal/{k8svalidation,customresource,decode,encode,shape} ./examples/... ./test/differential | grep -v -e /pkg/patch -e /idempotence/internal/ -e '/pkg/idempotence$$')
ginkgo_color = $(if $(MAKE_TERMOUT),,-ginkgo.no-color)
# Building the API server says what it does, and prints its folder last.
with_apiserver = assets=$$(hack/apiserver/build.sh) && KUBEBUILDER_ASSETS=$$assets

##@ See it work

.PHONY: help
help: ## Show the targets
	@awk 'BEGIN { FS = ":.*## "; print "usage: make TARGET" } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z0-9-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Run both examples behind a real kube-apiserver and show what they do
	@$(with_apiserver) $(GO) run ./hack/demo

##@ Test

.PHONY: test
test: check lint api-check narrow ## Run every check and test (CI runs this)
	@hack/apiserver/build.sh >/dev/null # once, before two of them want it
	@mkdir -p .cache && hack/beside.sh .cache/corpus.log corpus unit cli e2e next
	@$(MAKE) --no-print-directory projects proof certmanager monitoring browser bench-test

.PHONY: narrow
narrow: ## Build what a webhook is made of for a platform of 32 bits
	GOARCH=386 $(GO) build ./pkg/{certs,install,metrics,patch,review,tracing,webhook}/...

.PHONY: unit
unit: ## Run the unit tests, the examples' tests among them, with the race detector
	@$(with_apiserver) $(GO) test -race -timeout 30m $(GOTESTFLAGS) $(filter-out %/pkg/idempotence %/docs,$(unit_packages))
	@$(with_apiserver) $(GO) test $(GOTESTFLAGS) ./docs ./hack/docs # the harness on every lesson: ten times as long with the race detector
	$(GO) test -race -run 'Selected|Conditions|ReadsAnswers|LeavesBehind' $(GOTESTFLAGS) ./pkg/idempotence
	$(GO) test -run Alloc ./internal/encode ./pkg/review ./pkg/webhook ./pkg/metrics # counts are not right with the race detector

.PHONY: cli
cli: ## Run the transcripts of the command line tool, and its harness against patterns in Go and Python
	@$(with_apiserver) $(GO) test -timeout 30m $(GOTESTFLAGS) ./cmd/admitkit

.PHONY: projects
projects: ## Scaffold projects, run their own `make test`, and apply them to a real kube-apiserver
	@$(with_apiserver) $(GO) test -count=1 -timeout 20m -v $(GOTESTFLAGS) ./test/projects

.PHONY: corpus
corpus: ## Hold the harness against webhooks good and bad; GOTESTFLAGS="-random-cases=200 -url-share=1" for more of them
	@$(with_apiserver) $(GO) test -timeout 40m -parallel 4 $(GOTESTFLAGS) ./pkg/idempotence

.PHONY: examples
examples: ## Run the tests of the examples only
	@$(with_apiserver) $(GO) test -race $(GOTESTFLAGS) ./examples/...

.PHONY: e2e
e2e: ## Run the end-to-end specs against a real kube-apiserver, listing each
	@mkdir -p .cache && rm -f .cache/e2e.json
	@status=0; $(with_apiserver) $(GO) test -race -count=1 -timeout 20m -v $(GOTESTFLAGS) ./test/e2e \
		-ginkgo.json-report=$(CURDIR)/.cache/e2e.json -ginkgo.poll-progress-after=60s $(ginkgo_color) || status=$$?; \
	if [[ -f .cache/e2e.json ]]; then $(GO) run ./hack/specs .cache/e2e.json || status=1; fi; exit $$status

.PHONY: proof
proof: ## Prove that restarts, rotations, overload and hostile clients fail no call (short form)
	@$(with_apiserver) $(GO) test -race -count=1 -timeout 10m -v -run 'Restart|Rotation|Kill' $(GOTESTFLAGS) ./test/proof
	@$(with_apiserver) $(GO) test -count=1 -timeout 10m -v -run 'Overload|Hostile' $(GOTESTFLAGS) ./test/proof # these compare times

.PHONY: soak
soak: ## The same in its long form: 20 restarts, 10 rotations, a minute of overload
	@ADMITKIT_SOAK=1 $(MAKE) --no-print-directory proof GOTESTFLAGS='-timeout 60m $(GOTESTFLAGS)'

.PHONY: next
next: ## Build and test with the newer controller-runtime and Kubernetes libraries
	@hack/next/sync.sh --check
	$(GO) vet $(NEXT) ./...
	@$(with_apiserver) $(GO) test $(NEXT) -timeout 40m $(GOTESTFLAGS) $(next_packages)
	$(GO) test $(NEXT) -run 'Selected|Conditions|ReadsAnswers|LeavesBehind|Patterns/P0' $(GOTESTFLAGS) ./pkg/idempotence

.PHONY: monitoring
monitoring: ## Hold the dashboard and the alert rules against Prometheus' query engine and our metrics
	cd hack/monitoring && $(GO) vet ./... && $(GO) test -count=1 $(GOTESTFLAGS) ./... # go test would not see the files change

.PHONY: browser
browser: ## Look at the HTML report in Chromium (Debian's, installed if this runs as root)
	cd hack/browser && $(GO) vet ./... && $(GO) test -count=1 $(GOTESTFLAGS) ./...

.PHONY: certmanager
certmanager: ## Renew, replace and move certificates with cert-manager itself, under traffic
	cd hack/certmanager && $(GO) vet ./...
	@$(with_apiserver) && export KUBEBUILDER_ASSETS && cd hack/certmanager && $(GO) test -count=1 -timeout 10m -v $(GOTESTFLAGS) . # their code is not ours to check for races

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (30s)
	@hack/fuzz.sh $(FUZZTIME)

.PHONY: oracle
oracle: ## Run the oracles of patches, decoding and encoding over ORACLE_CASES (200000) random cases each
	ADMITKIT_ORACLE_CASES=$(ORACLE_CASES) $(GO) test -count=1 -timeout 120m -v -run Oracle ./pkg/patch
	ADMITKIT_DECODE_CASES=$(ORACLE_CASES) $(GO) test -count=1 -timeout 120m -v -run UnmarshalAgrees ./internal/decode
	ADMITKIT_ENCODE_CASES=$(ORACLE_CASES) $(GO) test -count=1 -timeout 120m -v -run AppendAgrees ./internal/encode

.PHONY: bench
bench: ## Measure admissions and patches against others (QUICK=1, ROWS=, SIZES=, SHAPES=)
	@cd hack/bench && $(GO) run . $(if $(QUICK),-quick) -rows '$(ROWS)' -sizes '$(SIZES)' -shapes '$(SHAPES)' $(BENCHFLAGS)

.PHONY: bench-test
bench-test: ## Test the benchmarks: the candidates agree, the patches of admitkit are right
	cd hack/bench && $(GO) vet ./... && $(GO) test $(GOTESTFLAGS) ./...

.PHONY: gobench
gobench: ## Run the Go benchmarks matching BENCH into .cache/bench/new.txt; OLD=file compares
	@mkdir -p .cache/bench
	@old='$(OLD)'; if [[ -n $$old && ! -f $$old ]]; then echo "OLD=$$old: no such file" >&2; exit 1; fi; \
	if [[ -n $$old && $$old -ef .cache/bench/new.txt ]]; then echo "OLD=$$old is about to be overwritten: copy it first" >&2; exit 1; fi
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(BENCHCOUNT) ./pkg/... | tee .cache/bench/new.txt
	@benchstat=$$(hack/tools/build.sh benchstat) && $$benchstat $(OLD) .cache/bench/new.txt

##@ Keep it clean

.PHONY: check
check: ## Check licence lines, formatting, modules and shell scripts
	@hack/check.sh

.PHONY: lint
lint: ## Run the pinned golangci-lint
	@lint=$$(hack/tools/build.sh golangci-lint) && $$lint run ./... && for module in bench browser certmanager monitoring; do (cd hack/$$module && $$lint run ./...); done

.PHONY: fmt
fmt: ## Format the Go code, imports included
	@lint=$$(hack/tools/build.sh golangci-lint) && $$lint fmt ./...

.PHONY: api
api: ## Write the exported API of each public package to docs/api
	@$(GO) run ./hack/apisnapshot -write

.PHONY: api-check
api-check: ## Fail with the difference if docs/api is not the exported API
	@$(GO) run ./hack/apisnapshot

.PHONY: next-sync
next-sync: ## Rewrite hack/next/go.mod from go.mod
	@hack/next/sync.sh

##@ Build

.PHONY: apiserver
apiserver: ## Build kube-apiserver, etcd and kubectl (about 5 minutes, once) and print their folder
	@hack/apiserver/build.sh

.PHONY: clean
clean: ## Remove everything built here, the API server too (not ADMITKIT_CACHE)
	rm -rf .cache bin
	@if [[ -n $${ADMITKIT_CACHE:-} ]]; then echo "Left alone, as others may use it: $$ADMITKIT_CACHE"; fi
