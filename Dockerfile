# One image for every program; the arguments choose: agent, controller, migrate, maintain, report.
# Any image with Node 24.11 or later and a shell.
ARG NODE_IMAGE=node:24-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY . .
RUN node build.mjs
# A smaller young generation: an agent stands on every node, and its garbage is short-lived.
RUN printf '#!/bin/sh\nexec node --max-semi-space-size=1 --v8-pool-size=1 /app/dist/cli.js "$@"\n' > plegwatch && chmod 755 plegwatch

# The bundle has its packages in it: no node_modules.
FROM ${NODE_IMAGE}
WORKDIR /app
COPY --from=build /app/package.json /app/LICENSE ./
COPY --from=build /app/migrations migrations
COPY --from=build /app/dist dist
COPY --from=build /app/plegwatch /usr/local/bin/plegwatch
# The chart runs agents as root, who owns the runtime's socket.
USER 65532:65532
ENTRYPOINT ["plegwatch"]
CMD ["--help"]
