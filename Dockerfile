# Posthaste without the development packages and without the PostgreSQL server it can bring: a container needs DATABASE_URL
# (docs/deployment.md). It runs as a user without rights, writes nothing to its file system, and keeps no secret.
FROM node:24-bookworm-slim AS packages
WORKDIR /app
COPY package.json package-lock.json ./
# No script of a package runs. The image has its own Node, and the embedded server is left out: both are optional packages.
RUN npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund && rm -rf /root/.npm

FROM node:24-bookworm-slim
ENV NODE_ENV=production \
  HOST=0.0.0.0 \
  PORT=8080 \
  POSTHASTE_METRICS_PORT=9464 \
  POSTHASTE_LOG_FORMAT=json
WORKDIR /app
COPY --from=packages /app/node_modules ./node_modules
COPY package.json LICENSE ./
COPY bin ./bin
COPY src ./src
# The settings of the sample receiver are part of the start; without the embedded database nothing listens.
COPY demo/SampleReceiver.ts ./demo/
USER node
EXPOSE 8080 9464
# In every role. Whether the store answers is asked at /readyz: a restart would not heal that.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.POSTHASTE_METRICS_PORT}/healthz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# Node itself is process 1: it gets the SIGTERM and ends its sends in order, within 33 s.
CMD ["node", "src/main.ts"]
