# A thin front: every target is one script, the build itself is meson's.
#   V=1 shows every command.  JOBS=n limits parallel compilers.

.DEFAULT_GOAL := help
.PHONY: help run test test-kube build release asan clang lint format fuzz bench docs \
	conformance long screenshots setup clean install uninstall deb dist test-package \
	test-reproducible test-other

V ?=
export V JOBS CI
# Where `make install` puts things; scripts/install has the defaults.
export DESTDIR prefix bindir libdir datadir mandir docdir unitdir bashdir zshdir fishdir

bin := build/src/app/mcp-orchestrator

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | \
	    awk -F '\t' '{ printf "make %-17s %s\n", $$1, $$2 }'

run: ## set up, build and start; prints the page's address
	@scripts/setup --for run
	@scripts/build release
	@exec $(bin) serve --print-link $(ARGS)

test: ## set up, build and run every test
	@scripts/setup --for test
	@scripts/build release
	@scripts/build asan
	@scripts/test $(TESTS)

test-kube: ## the tests of boxes in pods, on a Kubernetes cluster of its own
	@scripts/setup --for kube
	@scripts/build asan
	@scripts/kube run scripts/test --kube $(TESTS)

build: release ## the same as release

release: ## the optimised, hardened build in build/
	@scripts/setup --for run
	@scripts/build release

asan: ## the debug build with ASan and UBSan in build-asan/
	@scripts/setup --for test
	@scripts/build asan

clang: ## the asan build by the other compiler, in build-clang/
	@scripts/setup --for lint
	@scripts/build clang

install: ## install the release build (DESTDIR, prefix; after make release)
	@scripts/install

uninstall: ## remove what make install has installed there
	@scripts/install --uninstall

deb: ## the Debian package for this machine, into dist/
	@scripts/setup --for deb
	@scripts/deb --check

dist: ## all that a release consists of, for arm64 and amd64, into dist/
	@scripts/setup --for dist
	@scripts/deb --check arm64
	@scripts/deb --check amd64
	@scripts/dist

test-package: ## the tests of Debian packages, tarballs and images, both architectures
	@scripts/setup --for package
	@scripts/build release
	@scripts/deb --check arm64
	@scripts/deb --check amd64
	@scripts/dist arm64 amd64 bundle sums
	@scripts/fresh-system arm64
	@scripts/fresh-system amd64
	@scripts/systemd-root
	@scripts/test --package $(TESTS)

other := $(if $(filter arm64,$(shell dpkg --print-architecture)),amd64,arm64)
test-other: ## the unit tests of the other architecture, by emulation
	@scripts/setup --for package
	@scripts/build cross-$(other)
	@scripts/test --other $(TESTS)

test-reproducible: ## build a release twice, in different surroundings, and compare
	@scripts/setup --for reproducible
	@scripts/reproducible $(ARCHES)

lint: ## format, layers, banned calls, clang-tidy, docs, hardening
	@scripts/setup --for lint
	@scripts/build release
	@scripts/lint $(LINT)

format: ## let clang-format rewrite every C file
	@scripts/setup --for lint
	@scripts/lint --fix

fuzz: ## every fuzz target for 60 s each (FUZZ_SECONDS=n)
	@scripts/setup --for lint
	@scripts/fuzz $(or $(FUZZ_SECONDS),60)

conformance: ## the official MCP suite, both wires, server and client
	@scripts/setup --for test
	@scripts/build asan
	@scripts/conformance

long: ## crowds (100,000 calls; ten minutes of failures), 1,000 runs of scripts with kills, all suites with two workers, all of clang-tidy, 20 published servers in boxes, 50 behind one gateway and the clients of other makers, two builds of a release
	@scripts/setup --for test
	@scripts/build asan
	@scripts/build bench
	@MO_LONG=1 scripts/test it/crowd
	@MO_LONG=1 scripts/test it/connections_crowd
	@MO_LONG=1 scripts/test it/replicas_crowd
	@MO_LONG=1 MO_WORKERS=2 scripts/test it/crowd
	@MO_LONG=1 MO_WORKERS=2 scripts/test it/connections_crowd
	@MO_LONG=1 MO_WORKERS=2 scripts/test it/replicas_crowd
	@MO_LONG=1 scripts/test it/talk_script_kills
	@scripts/setup --for kube
	@MO_LONG=1 scripts/kube run scripts/test --kube kube/crowd
	@MO_LONG=1 scripts/test workers/
	@scripts/setup --for lint
	@scripts/lint tidy
	@for part in 1 2 3 4 5 6 7; do \
	    MO_PUBLISHED=$$part scripts/test it/mcp_published || exit 1; done
	@scripts/setup --for published
	@scripts/test --published
	@$(MAKE) --no-print-directory test-reproducible

bench: ## build and run the benchmarks
	@scripts/setup --for bench
	@scripts/bench

docs: ## build the documents as pages (build-docs/site) and check them
	@scripts/setup --for run
	@scripts/docs
	@scripts/check-docs

screenshots: ## pictures of every view, both themes, into docs/img
	@scripts/setup --for test
	@scripts/build release
	@MO_BIN=$(CURDIR)/$(bin) scripts/node tests/browser/screenshots.mjs docs/img

setup: ## install everything the targets above may need
	@scripts/setup --for all

clean: ## remove what was built; keeps the installed npm packages
	rm -rf build build-* dist ui/dist ui/dist.sum ui/dist.packages *.log
