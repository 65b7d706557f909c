# Build: docker build -t parterre .   Run: see compose.yaml
FROM rust:1.95-bookworm AS build
WORKDIR /parterre
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=target \
    cargo build --release --locked --bin parterre && cp target/release/parterre /parterre-binary

FROM debian:bookworm-slim
RUN apt-get update && apt-get install --yes --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/*
USER 65532:65532
COPY --from=build /parterre-binary /usr/bin/parterre
ENV PARTERRE_LISTEN=0.0.0.0:8000 PARTERRE_ADMIN_LISTEN=0.0.0.0:9000 PARTERRE_DATA=/tmp/parterre LOG_FORMAT=json
EXPOSE 8000 9000
HEALTHCHECK --interval=10s --timeout=6s --start-period=30s CMD ["/usr/bin/parterre", "healthcheck"]
ENTRYPOINT ["/usr/bin/parterre"]
CMD ["serve"]
