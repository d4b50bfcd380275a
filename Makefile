# `make help` lists what there is. Everything that is made goes to .cache/, which is safe to delete.

GO            ?= go
GOLANGCI_LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
VERSION       ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
IMAGE         ?= ratelimit:$(VERSION)
FUZZTIME      ?= 20s
DURATION      ?= 10m

BIN  := .cache/bin
# Packages whose tests drive whole programs: they run one after the other, so that none starves another of CPU.
WHOLE := ./envoy/... ./test/...
PARTS  = $(shell $(GO) list ./... | grep -v -e /envoy -e /test/)

.DEFAULT_GOAL := help
.PHONY: help run test check build lint vet tidy fmt bench matrix soak pgo microbench fuzz image compose clean

help: ## Show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | awk -F'\t' '{printf "  make %-10s %s\n", $$1, $$2}'

run: build ## Try it: service, Envoy and backends on this machine; REDIS=1 keeps the limits in Redis
	@scripts/envoy.sh >/dev/null
	@$(GO) build -o $(BIN)/trial ./test/trial
	@exec $(BIN)/trial run --ratelimit $(BIN)/ratelimit $(if $(REDIS),--redis)

build: ## Build the service into .cache/bin
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o $(BIN)/ratelimit ./cmd/ratelimit

test: ## Run every test, on real Envoy, Redis and docker-compose; installs what is missing if it may
	scripts/needs.sh gcc curl redis-server redis-cli promtool dockerd docker-compose
	scripts/envoy.sh
	$(GO) test -race -shuffle=on $(PARTS)
	$(GO) test -run Allocat $(PARTS) # the race detector allocates, so these tests are built without it
	$(GO) test -race -shuffle=on -p 1 -timeout 15m $(WHOLE)

check: vet lint tidy ## Vet, lint, formatting, tidy go.mod

vet:
	$(GO) vet ./...

lint: $(BIN)/golangci-lint
	$(BIN)/golangci-lint run ./...

tidy:
	$(GO) mod tidy -diff
	$(GO) mod verify

fmt: $(BIN)/golangci-lint ## Format the code
	$(BIN)/golangci-lint fmt ./...

# Rebuilt when the Makefile, and so perhaps the pinned version, changes. It takes a minute or two, once.
$(BIN)/golangci-lint: Makefile
	GOBIN=$(abspath $(BIN)) $(GO) install $(GOLANGCI_LINT)
	@touch $@

BENCH  = $(GO) build -o $(BIN)/bench ./test/bench && exec $(BIN)/bench

# PEER='command line' measures another service in the same rounds: docs/performance.md shows how.
bench: build ## Measure everything (20 minutes) into docs/performance.md; BENCH_FLAGS='-rounds 2 -only outage' for less
	scripts/needs.sh redis-server h2load
	@$(BENCH) $(BENCH_FLAGS)

# MATRIX_FLAGS='-only sentinel -runs 3' plays a part of it, or all of it more than once.
matrix: build ## Break Redis in every way, alone, under Sentinels and as a Cluster (10 minutes), into docs/failure-matrix.md
	scripts/needs.sh redis-server
	@$(GO) build -o $(BIN)/matrix ./test/matrix && exec $(BIN)/matrix $(MATRIX_FLAGS)

soak: build ## Ten minutes (DURATION) at saturation with freezes of Redis; fails if memory or goroutines grow
	scripts/needs.sh redis-server
	@$(BENCH) soak -soak $(DURATION) $(BENCH_FLAGS)

pgo: build ## Record a profile under load, and keep it for the compiler if it pays
	scripts/needs.sh redis-server
	@$(BENCH) pgo $(BENCH_FLAGS)

microbench: ## Run the benchmarks of single functions
	$(GO) test -run '^$$' -bench . -benchmem ./...

fuzz: ## Run every fuzz target for FUZZTIME (20s) each
	scripts/fuzz.sh $(FUZZTIME)

image: ## Build the container image
	docker build --target ratelimit -t $(IMAGE) .

compose: ## Bring up docker-compose.yaml: the same trial in containers, with Redis; SETUP=ha or cluster for more of it
	docker-compose $(if $(SETUP),--env-file deploy/compose/$(SETUP).env) up --build

clean: ## Delete .cache
	rm -rf .cache
