# SPDX-License-Identifier: Apache-2.0
# Build, test and show Drayage. `make help` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

export GOTOOLCHAIN := local

# Looked up when a recipe runs, since set-up may just have installed them.
GO = $(shell scripts/find-go.sh || echo go)
VERSION := $(shell cat VERSION)
DATE = $(shell scripts/build-date.sh)
COMMIT = $(shell git -c safe.directory='*' describe --always --dirty --exclude '*' 2>/dev/null)
RELEASE = github.com/drayage/dray/internal/spec/release

DEMO_CHAIN ?= examples/f1-split.yaml
FUZZ_SMOKE ?= 2s
FUZZ_TIME ?= 2m
HOSTILE_TIME ?= 1h
HOSTILE_CLASSES ?=
DEBIAN ?= 12
BENCH ?=
DB ?=
IMAGE ?=
TAR ?=
PREFIX ?= /usr/local
LIBDIR ?= lib
# Where zsh looks: the folder of packages, or that of the machine's administrator.
ZSHDIR = share/zsh/$(if $(filter /usr,$(abspath $(PREFIX))),vendor-completions,site-functions)

say = printf '\n== %s\n'

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Looked at first, since what needs root would otherwise fail after minutes.
.PHONY: root
root:
	@[ "$$(id -u)" -eq 0 ] || { echo 'error: make $(MAKECMDGOALS) needs root: it installs packages, and makes network namespaces and control groups'; \
		echo "fix: $$(type -P sudo >/dev/null && echo 'sudo make $(MAKECMDGOALS)' || echo "su -c 'make -C $(CURDIR) $(MAKECMDGOALS)'")"; exit 1; } >&2

.PHONY: demo
demo: root ## install what is missing, build, run a chain with its verdicts, compare all transports (as root)
	@$(say) 'installing what is missing (scripts/setup.sh run)'
	@scripts/setup.sh run
	@$(MAKE) --no-print-directory build
	@$(say) 'running $(DEMO_CHAIN): plan, up, verify, report, down'
	@bin/dray run $(DEMO_CHAIN) || { status=$$?; [ $$status -ge 4 ] || exit $$status; echo "(dray run ended with exit status $$status, a verdict about this machine at this time; the demo goes on)"; }
	@$(say) 'comparing every transport of this host: one table, one page (at most three minutes)'
	@scripts/with-hugepages.sh 64 bin/dray bench quick --afresh

.PHONY: experiments
experiments: ## install what is missing, build, measure every published experiment in at most 45 minutes (as root)
	@$(say) 'installing what is missing (scripts/setup.sh experiments)'
	@scripts/setup.sh experiments
	@$(MAKE) --no-print-directory build
	@$(say) 'measuring every published experiment: two minutes of preparation, then at most 41 minutes'
	@scripts/experiments.sh --profile quick

.PHONY: build
build: ## build every program into bin/
	@$(say) "building every program into bin/ with $$($(GO) version | cut -d' ' -f3)"
	@$(MAKE) --no-print-directory programs gen port iq pmd vnf sctp
	@ls bin | sed 's,^,  bin/,'

.PHONY: programs
programs: ## build the programs in Go, dray and dray-guest, into bin/
	@mkdir -p bin
	@CGO_ENABLED=0 scripts/step.sh 'build dray and dray-guest' $(GO) build -trimpath -buildvcs=false -ldflags '-X $(RELEASE).version=$(VERSION) -X $(RELEASE).date=$(DATE) -X $(RELEASE).commit=$(COMMIT)' -o bin/ ./cmd/...
	@ln -sf dray bin/kubectl-dray

.PHONY: gen
gen: ## build draygen and draygen-dpdk into bin/
	@dataplane/build.sh gen plain programs
	@install -D -t bin $$(find out/gen-plain -maxdepth 1 -type f -name 'draygen*' -perm -u+x)

.PHONY: port
port: ## build libdray, and dray-limit into bin/
	@dataplane/build.sh port plain dray-limit libdray.so.$(VERSION)
	@install -D -t bin out/port-plain/dray-limit

.PHONY: iq
iq: ## build libdray_iq, streams of samples, into bin/
	@dataplane/build.sh iq plain libdray_iq.so
	@install -D -m 644 -t bin out/iq-plain/libdray_iq.so

# found runs a build if pkg-config finds a library: found PROGRAM LIBRARY BUILD
found = if pkg-config --exists $(2); then $(3); else echo '$(1) is not built: pkg-config finds no $(2) (scripts/setup.sh run installs it)'; fi

.PHONY: pmd
pmd: ## build net_dray, the DPDK driver, into bin/
	@$(call found,net_dray,libdpdk,if ! scripts/dpdk-source.sh >/dev/null; then echo 'net_dray is not built: there are no headers for drivers (see above)'; else \
		dataplane/build.sh pmd plain librte_net_dray.so && install -D -m 644 -t bin out/pmd-plain/librte_net_dray.so; fi)

.PHONY: vnf
vnf: ## build dray-vnf, network functions on DPDK ports, into bin/
	@$(call found,dray-vnf,libdpdk,dataplane/build.sh vnf plain dray-vnf && install -D -t bin out/vnf-plain/dray-vnf)

.PHONY: sctp
sctp: ## build libdray_sctp, SCTP for kernels without it, into bin/
	@$(call found,libdray_sctp,usrsctp,dataplane/build.sh sctp plain libdray_sctp.so && install -D -m 644 -t bin out/sctp-plain/libdray_sctp.so)

.PHONY: man
man: build ## write the manual pages and shell completion below out/share
	@$(say) 'writing manual pages and completion below out/share'
	@rm -rf out/share
	@mkdir -p out/share/man/man1 out/share/bash-completion/completions out/$(ZSHDIR) out/share/fish/vendor_completions.d
	@bin/dray man out/share/man/man1 $$(find bin -type f ! -name '*.so' ! -name dray)
	@bin/dray completion bash >out/share/bash-completion/completions/dray
	@bin/dray completion zsh >out/$(ZSHDIR)/_dray
	@bin/dray completion fish >out/share/fish/vendor_completions.d/dray.fish

.PHONY: install
install: man install-unit ## install programs, libdray, manual pages, completion and the unit of systemd below PREFIX (/usr/local)
	@$(say) 'installing below $(DESTDIR)$(PREFIX)'
	@scripts/step.sh 'configure out/install' meson setup $$([ ! -d out/install ] || echo --reconfigure) --prefix=$(abspath $(PREFIX)) --libdir=$(LIBDIR) -Dbuildtype=release out/install dataplane/port
	@scripts/step.sh 'build out/install' ninja -C out/install
	@meson install --no-rebuild -C out/install $(if $(DESTDIR),--destdir $(abspath $(DESTDIR))) | grep '^Installing'
	@find bin -type f ! -name '*.so' -exec install -D -t $(DESTDIR)$(abspath $(PREFIX))/bin {} +
	@ln -sf dray $(DESTDIR)$(abspath $(PREFIX))/bin/kubectl-dray
	@install -t $(DESTDIR)$(abspath $(PREFIX))/bin cmd/dray/kubectl_complete-dray
	@find bin -type f -name '*.so' -exec install -D -m 644 -t $(DESTDIR)$(abspath $(PREFIX))/$(LIBDIR) {} +
	@install -D -m 644 -t $(DESTDIR)$(abspath $(PREFIX))/include dataplane/iq/include/dray_iq.h
	@cd out/share && find . -type f -exec install -D -m 644 {} $(DESTDIR)$(abspath $(PREFIX))/share/{} \;

.PHONY: install-unit
install-unit: ## install the unit of systemd alone
	@sed 's|/usr/bin/dray|$(abspath $(PREFIX))/bin/dray|' 'debian/drayage.dray@.service' | install -D -m 644 /dev/stdin '$(DESTDIR)$(abspath $(PREFIX))/lib/systemd/system/dray@.service'

.PHONY: deb
deb: ## make the Debian packages of this release into out/deb (as root, or with all tools installed)
	@$(say) 'making Debian packages (scripts/deb.sh)'
	@scripts/deb.sh

.PHONY: test-deb
test-deb: ## install, upgrade, use and purge the packages in a new root file system; DEBIAN=13 for 13 (as root)
	@scripts/test-deb.sh $(DEBIAN)

.PHONY: check-deb
check-deb: ## the part of test-deb that runs inside: install the packages of out/deb here, then purge them
	@scripts/test-deb.sh --inside

.PHONY: test
test: root ## install what is missing, then lint and test the whole product in at most 12 minutes (as root)
	@$(say) 'installing what is missing (scripts/setup.sh test, scripts/setup.sh kube)'
	@scripts/setup.sh test
	@scripts/setup.sh kube
	@$(MAKE) --no-print-directory build attackers
	@scripts/test.sh short
	@$(say) 'all tests passed; make test-all has more'

.PHONY: test-all
test-all: root ## all tests: make test, then guests, guides, the cluster, packages and more builds, in at most 40 minutes (as root)
	@$(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory test-long

.PHONY: test-long
test-long: root ## what make test-all adds to make test (as root)
	@$(MAKE) --no-print-directory build attackers
	@FUZZ_SMOKE=$(FUZZ_SMOKE) scripts/test.sh long
	@$(say) 'all tests of make test-long passed'

.PHONY: check
check: lint ## lint, then the tests that need neither root nor set-up, in under three minutes
	@$(say) 'testing each package, without root and without the race detector'
	@DRAY_TEST_UNIT=1 CGO_ENABLED=0 $(GO) test -trimpath -vet=off -count=1 $(filter-out %/test/e2e %/test/docs,$(shell $(GO) list ./...)) | grep -v '\[no test files\]'

.PHONY: lint
lint: ## gofmt, go vet, staticcheck, shellcheck, modules, direction of dependencies, house rules
	@scripts/lint.sh

.PHONY: sbom
sbom: build ## write the bill of materials (CycloneDX) of what is built to out/sbom.cdx.json
	@mkdir -p out
	@cd scripts/sbom && $(GO) run -trimpath . ../.. ../../out/sbom.cdx.json
	@echo '  out/sbom.cdx.json'

.PHONY: vulncheck
vulncheck: ## look for known vulnerabilities with govulncheck; needs the network, or DB=URL of a database
	@DB=$(DB) scripts/vulncheck.sh

.PHONY: reproducible
reproducible: ## build everything in two folders, and compare every byte of what make install installs
	@scripts/reproducible.sh

.PHONY: rooms
rooms: ## print the rooms of the Go code and their imports; draws out/rooms.svg
	@mkdir -p out
	@$(GO) run ./test/depcheck/rooms out/rooms.svg

.PHONY: fuzz
fuzz: ## fuzz every target for FUZZ_TIME (2m) each
	@scripts/fuzz.sh $(FUZZ_TIME)

.PHONY: fuzz-coverage
fuzz-coverage: ## fuzz libdray for half a minute, then print which lines that read shared memory were reached; fails below 95 %
	@scripts/setup.sh test
	@dataplane/port/fuzz/coverage.sh

# The programs that test/hostile and test/e2e run inside functions.
.PHONY: attackers
attackers:
	@dataplane/build.sh --tests port plain attackers

.PHONY: hostile
hostile: build attackers ## attack running chains for HOSTILE_TIME (1h) over all classes, or over HOSTILE_CLASSES; writes out/hostile.json (as root)
	@scripts/hostile.sh $(HOSTILE_TIME) $(HOSTILE_CLASSES)

.PHONY: bench
bench: bench-programs ## measure libdray against the current physical limit, the DPDK face and dray-vnf; writes out/bench*.json; BENCH=--quick is shorter
	@out/bench libdray $(BENCH) --json out/bench.json
	@$(MAKE) --no-print-directory bench-dpdk
	@dataplane/build.sh --tests vnf plain bench/dray-vnf-probe
	@out/bench vnf $(filter --quick,$(BENCH)) --json out/bench-vnf.json
	@DRAY_BENCH_JSON=$(CURDIR)/out/bench.json $(GO) test -run '^$$' -bench IdleLinks -benchtime 1x ./internal/link/broker

.PHONY: bench-dpdk
bench-dpdk: bench-programs ## only the DPDK face: net_dray against memif, vhost-user, Open vSwitch and its targets, in five minutes
	@$(MAKE) --no-print-directory build
	@dataplane/build.sh --tests pmd plain tests/serve bench/dray-pmd-cost bench/dray-pmd-trips
	@out/bench dpdk $(filter --quick,$(BENCH)) --json out/bench-dpdk.json

.PHONY: bench-iq
bench-iq: bench-programs ## measure I/Q samples through libdray_iq beside ZeroMQ, in four minutes; writes out/bench-iq.json (as root)
	@$(MAKE) --no-print-directory iq
	@dataplane/build.sh --tests iq plain bench/dray-iq-probe
	@out/bench iq $(filter --quick,$(BENCH)) --json out/bench-iq.json

.PHONY: bench-scale
bench-scale: build ## what 50 to 1,000 functions of one chain cost this host, in two minutes (as root)
	@scripts/bench-scale.sh

# The bench, and the programs that measure libdray for it.
.PHONY: bench-programs
bench-programs:
	@scripts/setup.sh test
	@dataplane/build.sh --tests port plain bench/dray-probe bench/dray-probe-unchecked bench/dray-probe-classless dray-limit
	@CGO_ENABLED=0 $(GO) build -o out/bench ./test/bench

.PHONY: hostile-guest
hostile-guest: ## run the attack tests in a guest with Debian's kernel, which lacks SO_PASSRIGHTS (as root)
	@[ -x bin/dray ] || $(MAKE) --no-print-directory build
	@scripts/hostile-guest.sh

.PHONY: unit-guest
unit-guest: ## start, kill and stop dray@.service in a guest with systemd as its first process (as root)
	@[ -x bin/dray ] || $(MAKE) --no-print-directory build
	@scripts/unit-guest.sh

.PHONY: mutations
mutations: simulations ## remove each check of libdray in turn: a test must fail (minutes); first the simulations at full size
	@scripts/setup.sh test
	@dataplane/port/tests/mutations/run.sh

.PHONY: simulations
simulations: ## check the statistics on all simulated experiments (make test runs a tenth)
	@$(say) 'simulating 2,000 experiments for each figure of the method'
	@DRAY_SIMULATIONS=full CGO_ENABLED=0 $(GO) test -trimpath -count=1 ./internal/result/stats

.PHONY: image
image: ## build the image IMAGE (debian, dpdk, iperf, ovs, pktgen, vnf): a root file system for functions (as root)
	@[ -n "$(IMAGE)" ] || { echo 'which one? make image IMAGE=dpdk' >&2; exit 2; }
	@[ -x bin/dray ] || $(MAKE) --no-print-directory build
	@bin/dray image $(IMAGE) $(if $(TAR),--tar $(TAR))

.PHONY: kube
kube: ## start a Kubernetes cluster of two nodes on this machine; what it needs is built into your cache once (as root)
	@$(say) 'installing what is missing (scripts/setup.sh kube)'
	@scripts/setup.sh kube
	@$(say) 'starting a control plane and two nodes'
	@kube/cluster/cluster.sh up

.PHONY: kube-down
kube-down: ## stop that cluster, and remove every trace of it but the cache (as root)
	@kube/cluster/cluster.sh down

.PHONY: images
images: ## write the container images of Drayage on Kubernetes to out/images, without a daemon or registry
	@[ -x bin/draygen ] || $(MAKE) --no-print-directory gen
	@[ -f bin/librte_net_dray.so ] || $(MAKE) --no-print-directory pmd
	@kube/images.sh

.PHONY: test-kube
test-kube: ## test Drayage on a cluster of two nodes, and the cluster itself, which leaves nothing (as root)
	@scripts/setup.sh kube
	@[ -x bin/dray ] || $(MAKE) --no-print-directory build
	@kube/test/run.sh
	@kube/cluster/test.sh

.PHONY: kube-scale
kube-scale: ## measure 50 pods with 100 links on a cluster of two nodes: times, memory, processor time (as root)
	@scripts/setup.sh kube
	@[ -x bin/draygen ] || $(MAKE) --no-print-directory gen
	@kube/test/run.sh -run TestScale

.PHONY: kube-rates
kube-rates: ## measure packet rate and delay between pods next to the same programs without Kubernetes (as root)
	@scripts/setup.sh kube
	@[ -x bin/dray ] || $(MAKE) --no-print-directory build
	@kube/test/run.sh -run TestRates

.PHONY: fresh
fresh: ## repeat demo and test in a new Debian 12 root file system; DEBIAN=13 for 13 (as root)
	@scripts/fresh.sh $(DEBIAN)

.PHONY: clean
clean: ## remove everything built and written here
	rm -rf bin out
