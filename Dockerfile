# The service as an image of one static program: no shell, no package manager, no root.
#
#   docker build --target ratelimit -t ratelimit .
#
# Targets: ratelimit (the product), trial (stand-in backends and keys for docker-compose.yaml). Each has a twin,
# ratelimit-prebuilt and trial-prebuilt, that takes the program from .cache/bin instead of building it, for where the
# build image cannot be pulled. The twins come first: a builder without BuildKit builds every stage above its target.

FROM scratch AS ratelimit-base
# A number, so that Kubernetes can see that it is not root (runAsNonRoot).
USER 65532:65532
# The defaults are loopback, which in a container nobody reaches. Metrics and state are not for the public either:
# publish only what you mean to.
ENV RATELIMIT_GRPC=0.0.0.0:8081 RATELIMIT_ADMIN=0.0.0.0:9090 RATELIMIT_POLICIES=/etc/ratelimit
EXPOSE 8081 9090
ENTRYPOINT ["/ratelimit"]
CMD ["serve"]
# Healthy means that it answers Envoy, whether or not its store does.
HEALTHCHECK --interval=5s --timeout=2s --start-period=5s CMD ["/ratelimit", "health", "--grpc", "127.0.0.1:8081"]

FROM ratelimit-base AS ratelimit-prebuilt
COPY .cache/bin/ratelimit /ratelimit

FROM scratch AS trial-prebuilt
COPY .cache/bin/trial /trial
USER 65532:65532
ENTRYPOINT ["/trial"]

FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ENV CGO_ENABLED=0
RUN go build -trimpath -ldflags '-s -w' -o /out/ratelimit ./cmd/ratelimit \
 && go build -trimpath -ldflags '-s -w' -o /out/trial ./test/trial

FROM scratch AS trial
COPY --from=build /out/trial /trial
USER 65532:65532
ENTRYPOINT ["/trial"]

FROM ratelimit-base AS ratelimit
# For rediss:// with a certificate of a public authority; --redis-ca names another one.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/ratelimit /ratelimit
