# One image for every program; the arguments choose: agent, controller, migrate, maintain, report, audit.
# `make image` builds it with buildah, for all platforms. devtools/image/build.ts prepares the folders that are copied from the context:
# base-ARCHITECTURE (Node, the libraries that it needs, certificates, users) and app (plegwatch). docs/how-to/image.md

# Neither a shell nor a package manager. A layer of its own, which stays the same until Node or a library changes.
FROM scratch AS base
ARG TARGETARCH
COPY base-${TARGETARCH} /

# No node_modules: the bundle has its packages in it.
FROM base
COPY app /
ARG VERSION
ARG REVISION
ARG CREATED
LABEL org.opencontainers.image.title="plegwatch" \
  org.opencontainers.image.description="Records PLEG evidence of Kubernetes nodes" \
  org.opencontainers.image.licenses="Apache-2.0" \
  org.opencontainers.image.version="${VERSION}" \
  org.opencontainers.image.revision="${REVISION}" \
  org.opencontainers.image.created="${CREATED}"
ENV PATH=/usr/local/bin
WORKDIR /app
# The chart runs agents as root, who owns the runtime's socket.
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/node", "/app/dist/cli.js"]
CMD ["--help"]
