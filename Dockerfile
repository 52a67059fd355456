# One image for every program; the arguments choose: agent, controller, migrate, maintain, report, audit.
# `make image` builds the same image without a container engine: devtools/image/ makes the layers of both.
#
# Node, and the libraries it needs, come from the base image of the build. Give it by digest: docs/how-to/install.md.
# Any Debian with Node 24.11 or later in /usr/local.
ARG NODE_IMAGE

FROM ${NODE_IMAGE} AS build
WORKDIR /src
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY . .
ARG REVISION
RUN PLEGWATCH_COMMIT="$(printf %.12s "$REVISION")" node build.mjs && node devtools/image/folder.ts /image

# Neither a shell nor a package manager, and no node_modules: the bundle has its packages in it.
FROM scratch
ARG VERSION
ARG REVISION
COPY --from=build /image/base /
COPY --from=build /image/app /
LABEL org.opencontainers.image.title="plegwatch" \
  org.opencontainers.image.description="Records PLEG evidence of Kubernetes nodes" \
  org.opencontainers.image.licenses="Apache-2.0" \
  org.opencontainers.image.version="${VERSION}" \
  org.opencontainers.image.revision="${REVISION}"
ENV PATH=/usr/local/bin
WORKDIR /app
# The chart runs agents as root, who owns the runtime's socket.
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/node", "/app/dist/cli.js"]
CMD ["--help"]
