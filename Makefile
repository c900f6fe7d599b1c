# SPDX-License-Identifier: Apache-2.0
#
# Needs Go, git and make; everything else is built from pinned Go modules into
# .cache (or $ADMITKIT_CACHE). Run `make` to see the targets.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# Test runs slow each other down, so only hack/beside.sh runs two at a time.
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
# KUBERNETES chooses the version of the API server, such as 1.35.
KUBERNETES ?=
ifneq ($(KUBERNETES),)
export ADMITKIT_KUBERNETES := $(KUBERNETES)
unexport KUBEBUILDER_ASSETS
endif
# PKG limits the test targets to these packages, as in make unit PKG=./pkg/patch.
PKG ?=
# VERSION is the tag of a release. DRYRUN=1 builds one without a tag.
VERSION ?=
DRYRUN ?=
# RACE=all runs every unit test with the race detector.
RACE ?=
# A test that needs an API server fails where there is none. Bare go test skips it.
export ADMITKIT_APISERVER ?= required

GO := go
NEXT := -modfile=hack/next/go.mod
# The end-to-end tests, the proofs and the command line tool have their own targets.
unit_packages = $(or $(PKG),$(shell $(GO) list ./... | grep -v -e /test/e2e -e '/test/proof$$' -e '/test/projects$$' -e '/test/skew$$' -e '/test/controlplane$$' -e '/cmd/admitkit$$' -e '/pkg/idempotence$$' -e 'admitkit/docs$$' -e '/hack/docs$$'))
# Code that runs goroutines is tested with the race detector, which takes three to five times as long.
concurrent = /pkg/(webhook|certs|chain|install|metrics|tracing)(/|$$)|/internal/(reload|apiserver|leaks|quickack|cli/dev|cli/audit)(/|$$)|/examples/[a-z-]+$$
# The linker of Go needs a sixth of the time of gcc for a test with the race detector. It is tested on Linux only.
race = -race $(if $(filter Linux,$(shell uname)),-ldflags=-linkmode=internal)
race_packages = $(if $(RACE)$(PKG),$(unit_packages),$(shell printf '%s\n' $(unit_packages) | grep -E '$(concurrent)'))
plain_packages = $(filter-out $(race_packages),$(unit_packages))
# Packages that use the Kubernetes libraries, or behave as they do.
next_packages = $(or $(PKG),$(shell $(GO) list ./pkg/... ./internal/{k8svalidation,customresource,decode,encode,shape} ./examples/... ./test/differential | grep -v -e /pkg/patch -e /idempotence/internal/ -e '/pkg/idempotence$$'))
ginkgo_color = $(if $(MAKE_TERMOUT),,-ginkgo.no-color)
# The script reports its progress on stderr and prints the folder of the API server.
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

.PHONY: quick
quick: ## Test and lint the packages changed since main, without race detector and API server
	@hack/quick.sh $(PKG)

.PHONY: test
test: check api-check narrow ## Run every check and a test of every behaviour (CI runs this)
	@hack/apiserver/build.sh >/dev/null # once, before two targets need it
	@mkdir -p .cache && hack/beside.sh .cache/beside.log "corpus unit-plain projects browser bench-test verifytest" lint unit-race cli e2e next-build certmanager monitoring proof-restarts
	@$(MAKE) --no-print-directory proof-limits # alone, because it compares times

.PHONY: nightly
nightly: export ADMITKIT_CASES = all
nightly: check lint api-check narrow ## Run all of test in full: race detector, both libraries, whole corpus, soak, oracles, fuzzing
	@hack/apiserver/build.sh >/dev/null
	@mkdir -p .cache && hack/beside.sh .cache/corpus.log corpus cli e2e
	@$(MAKE) --no-print-directory unit RACE=all
	@$(MAKE) --no-print-directory next projects soak proof-apiservers controlplane certmanager gallery monitoring browser bench-test verifytest release-test oracle fuzz

.PHONY: narrow
narrow: ## Build the packages that a webhook links for a 32-bit platform
	GOARCH=386 $(GO) build ./pkg/{certs,install,metrics,patch,review,tracing,webhook}/...

.PHONY: unit
unit: unit-race unit-plain ## Run the unit tests, those of concurrent code with the race detector; PKG=./pkg/patch for some

.PHONY: unit-race
unit-race: ## Run the unit tests of concurrent code with the race detector
	@$(if $(race_packages),$(with_apiserver) $(GO) test $(race) -timeout 30m $(GOTESTFLAGS) $(race_packages))
ifeq ($(PKG),)
	$(GO) test $(race) -run 'Selected|Conditions|ReadsAnswers|LeavesBehind' $(GOTESTFLAGS) ./pkg/idempotence
endif

.PHONY: unit-plain
unit-plain: ## Run the other unit tests
ifeq ($(PKG),)
	@$(if $(plain_packages),$(with_apiserver) $(GO) test -timeout 30m $(GOTESTFLAGS) $(plain_packages))
	@$(with_apiserver) $(GO) test $(GOTESTFLAGS) ./docs ./hack/docs # the harness tests every example: ten times as long with the race detector
	$(GO) test -run Alloc ./internal/encode ./pkg/review ./pkg/webhook ./pkg/metrics # the race detector allocates too
endif

.PHONY: cli
cli: ## Run the transcripts of the command line tool, and its harness against patterns in Go and Python
	@$(with_apiserver) $(GO) test -timeout 30m $(GOTESTFLAGS) ./cmd/admitkit

.PHONY: projects
projects: ## Scaffold projects, run their own `make test`, and apply them to a real kube-apiserver with controllers
	@assets=$$(hack/apiserver/build.sh --also kube-controller-manager) && helm=$$(hack/tools/build.sh helm) && HELM=$$helm KUBEBUILDER_ASSETS=$$assets $(GO) test -count=1 -timeout 20m $(GOTESTFLAGS) ./test/projects

.PHONY: corpus
corpus: ## Run the harness on correct and broken webhooks; ADMITKIT_CASES=all for more of them
	@$(with_apiserver) $(GO) test -timeout 40m -parallel 4 $(GOTESTFLAGS) ./pkg/idempotence

.PHONY: examples
examples: ## Run the tests of the examples only
	@$(with_apiserver) $(GO) test $(race) $(GOTESTFLAGS) ./examples/...

.PHONY: e2e
e2e: ## Run the end-to-end specs against a real kube-apiserver, listing each
	@$(with_apiserver) $(GO) test $(race) -count=1 -timeout 20m -v $(GOTESTFLAGS) ./test/e2e -ginkgo.poll-progress-after=60s $(ginkgo_color)

.PHONY: proof
proof: proof-restarts proof-limits ## Prove that restarts, rotations, overload and hostile clients fail no call (short form)

.PHONY: proof-restarts
proof-restarts: ## The part of proof with restarts, kills and rotations
	@$(with_apiserver) $(GO) test $(race) -count=1 -timeout 10m -v -run 'Restart|Rotation|Kill' $(GOTESTFLAGS) ./test/proof

.PHONY: proof-apiservers
proof-apiservers: ## The proofs with three API servers on one etcd, of which one sees each change a second late
	@$(with_apiserver) ADMITKIT_APISERVERS=3 $(GO) test $(race) -count=1 -timeout 30m -v -run 'APIServers|Restart|Rotation|Kill' $(GOTESTFLAGS) ./test/proof

.PHONY: controlplane
controlplane: ## Run hooks under a whole control plane: kube-apiserver, kube-controller-manager and kube-scheduler
	@assets=$$(hack/apiserver/build.sh --also kube-controller-manager --also kube-scheduler) && KUBEBUILDER_ASSETS=$$assets $(GO) test $(race) -count=1 -timeout 30m -v $(GOTESTFLAGS) ./test/controlplane -ginkgo.poll-progress-after=90s $(ginkgo_color)

.PHONY: proof-limits
proof-limits: ## The part of proof with overload and hostile clients
	@$(with_apiserver) $(GO) test -count=1 -timeout 10m -v -run 'Overload|Hostile' $(GOTESTFLAGS) ./test/proof # these compare times

.PHONY: soak
soak: ## Run the proofs in their long form: 20 restarts, 10 rotations, a minute of overload
	@ADMITKIT_SOAK=1 $(MAKE) --no-print-directory proof GOTESTFLAGS='-timeout 60m $(GOTESTFLAGS)'

.PHONY: next
next: ## Build and test with the newer controller-runtime and Kubernetes libraries
	@hack/next/sync.sh --check
	$(GO) vet $(NEXT) ./...
	@$(with_apiserver) $(GO) test $(NEXT) -timeout 40m $(GOTESTFLAGS) $(next_packages)
	@$(with_apiserver) $(GO) test $(NEXT) -run 'Selected|Conditions|ReadsAnswers|LeavesBehind|Patterns/P0' $(GOTESTFLAGS) ./pkg/idempotence

.PHONY: next-build
next-build: ## Build with the newer controller-runtime and Kubernetes libraries
	@hack/next/sync.sh --check
	$(GO) build $(NEXT) ./pkg/... ./internal/...

.PHONY: versions
versions: ## Run the tests with an API server on each supported release of Kubernetes, and both library generations in full
	$(GO) run ./hack/versions
	$(GO) test -count=1 $(GOTESTFLAGS) ./test/skew
	@$(MAKE) --no-print-directory next

.PHONY: monitoring
monitoring: ## Test the dashboard and the alert rules with Prometheus' query engine and our metrics
	cd hack/monitoring && $(GO) vet ./... && $(GO) test -count=1 $(GOTESTFLAGS) ./... # go test does not notice changes of these files

.PHONY: browser
browser: ## Test the HTML report in Chromium (root installs Debian's if it is missing)
	cd hack/browser && $(GO) vet ./... && $(GO) test -count=1 $(GOTESTFLAGS) ./...

.PHONY: verifytest
verifytest: ## Test the module that runs the harness from a project without admitkit in its go.mod
	cd verifytest && $(GO) vet ./... && $(GO) test -count=1 $(GOTESTFLAGS) ./...

.PHONY: release-test
release-test: ## Build a release for this platform, install it, and run the CI workflow of a new project
	cd hack/release && $(GO) vet ./...
	@$(with_apiserver) && export KUBEBUILDER_ASSETS && cd hack/release && $(GO) test -count=1 -timeout 30m -v $(GOTESTFLAGS) ./...

.PHONY: certmanager
certmanager: ## Renew, replace and move certificates with cert-manager itself, under traffic
	cd hack/certmanager && $(GO) vet ./...
	@$(with_apiserver) && export KUBEBUILDER_ASSETS && cd hack/certmanager && $(GO) test -count=1 -timeout 10m -v $(GOTESTFLAGS) . # cert-manager's own code may have races

.PHONY: gallery
gallery: ## Compare the gallery with Kubernetes' own admission controllers, in process and on real API servers
	@$(with_apiserver) $(GO) test -count=1 -timeout 20m -v -run Faults $(GOTESTFLAGS) ./examples/gallery -cut=60s
	@assets=$$(hack/apiserver/build.sh --also kube-controller-manager) && export KUBEBUILDER_ASSETS=$$assets && lint=$$(hack/tools/build.sh golangci-lint) && cd hack/gallery && $$lint run --allow-parallel-runners ./... && $(GO) test -count=1 -timeout 60m -v $(GOTESTFLAGS) . -load=60s

.PHONY: realworld
realworld: ## Run the harness on published webhooks and print its findings with our judgement of each
	@mkdir -p .cache/realworld && $(GO) run ./hack/realworld

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
bench-test: ## Test the benchmarks: the candidates agree and admitkit's patches are correct
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
	@lint=$$(hack/tools/build.sh golangci-lint) && $$lint run --allow-parallel-runners ./... && for module in verifytest hack/{bench,browser,certmanager,monitoring,release}; do (cd $$module && $$lint run --allow-parallel-runners ./...); done

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
apiserver: ## Build kube-apiserver, etcd and kubectl (about 5 minutes, once) and print their folder; KUBERNETES=1.35
	@hack/apiserver/build.sh

.PHONY: release
release: ## Build the files of VERSION (v0.1.0) into dist; DRYRUN=1 for a commit without a tag
	@cd hack/release && $(GO) run . -out $(CURDIR)/dist $(if $(DRYRUN),-dry-run,-version=$(VERSION))

.PHONY: clean
clean: ## Remove everything built here, also the API server (not ADMITKIT_CACHE)
	rm -rf .cache bin dist
	@if [[ -n $${ADMITKIT_CACHE:-} ]]; then echo "Kept, because other checkouts may use it: $$ADMITKIT_CACHE"; fi
