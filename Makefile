# slotkeeper. `make help` lists the targets.

GO        ?= go
PG_CONFIG ?= /usr/lib/postgresql/15/bin/pg_config
VERSION   ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo development)
ROUNDS    ?= 50
SEED      ?=
MAJORS    ?= 13 17 18
CALLS     ?= 100000
KILLS     ?= 100
MINUTES   ?= 30
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

.DEFAULT_GOAL := help
.PHONY: help setup build extension test test-patroni test-majors test-all servers unit regress lint demo torture fuzz chaos instrumented clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install the packages that build and tests need (as root; else it says which commands would)
	@PG_CONFIG=$(PG_CONFIG) test/setup.sh

build: ## build bin/slotkeeper
	$(GO) build -trimpath -ldflags "-X main.version=$(VERSION)" -o bin/slotkeeper ./cmd/slotkeeper

extension: setup ## build the extension and install it into the server of PG_CONFIG (setup does, where it differs)

test: setup build regress unit ## everything that CI runs: regression tests, Go tests, five failovers
	bin/slotkeeper demo --rounds 5 $(if $(SEED),--seed $(SEED))

test-majors: setup build ## the same on MAJORS (13 17 18), with servers unpacked from Debian's other suites
	test/majors.sh $(MAJORS)

test-all: test ## everything, on 19 too; TABLE=README.md writes the table there; takes an hour or two
	$(if $(TABLE),TABLE=$(TABLE)) test/majors.sh 13 15 17 18 19

servers: setup ## what some Go tests start beside that server: 17 and 18, with the extension
	@for major in 17 18; do \
		bin=$$(test/servers.sh $$major | tail -n 1) && PG_CONFIG=$$bin/pg_config test/setup.sh || exit; \
	done

test-patroni: setup build ## the tests beside Patroni: 3.0 with PostgreSQL 15, 4.0 with 17, 4.1 with 18; SHORT=1: a few, on 3.0
	@SHORT=$(SHORT) GO=$(GO) test/patroni.sh

unit: servers build ## the Go tests, those that start servers too
	$(GO) test -parallel 4 -timeout 40m ./... # most of these tests wait most of the time

regress: setup ## the extension's own tests, on servers of their own
	$(MAKE) -C extension PG_CONFIG=$(PG_CONFIG) with_llvm=no check-local

lint: ## vet, formatting, staticcheck
	$(GO) vet ./...
	@files=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$files" || { echo "gofmt these: $$files" >&2; exit 1; }
	$(GO) run $(STATICCHECK) ./...

demo: setup build ## watch a failover that loses nothing, in two minutes
	bin/slotkeeper demo

torture: setup build ## ROUNDS failovers (50) with a random SEED, none of which may lose a row; rotations of 500 MB each
	bin/slotkeeper demo --rounds $(ROUNDS) $(if $(SEED),--seed $(SEED))
	env SLOTKEEPER_ROTATION_MB=500 $(GO) test -count=1 -timeout 1h -run C22 ./test/cases

fuzz: setup ## CALLS hostile calls (100000), KILLS kills, promotions and take-overs (100); takes minutes
	env SLOTKEEPER_FUZZ_CALLS=$(CALLS) SLOTKEEPER_FUZZ_ROUNDS=$(KILLS) $(if $(SEED),SLOTKEEPER_FUZZ_SEED=$(SEED)) \
		$(GO) test -count=1 -v -timeout 2h ./test/fuzz

chaos: setup ## MINUTES (30) of random faults on a primary, four standbys, etcd and two controllers, by a SEED
	env SLOTKEEPER_CHAOS_MINUTES=$(MINUTES) $(if $(SEED),SLOTKEEPER_CHAOS_SEED=$(SEED)) \
		$(GO) test -count=1 -v -timeout 24h -run 'TestChaos$$' ./test/chaos

instrumented: setup ## the extension's tests under -fsanitize=undefined and under valgrind
	PG_CONFIG=$(PG_CONFIG) test/instrumented.sh undefined
	PG_CONFIG=$(PG_CONFIG) test/instrumented.sh valgrind

clean: ## remove what was built
	rm -rf bin
	-$(MAKE) -C extension PG_CONFIG=$(PG_CONFIG) clean
