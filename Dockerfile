# One image for the orchestrator, the workers and the agents: `docker build -t stagewire .`
FROM python:3.12-slim AS build
WORKDIR /source
COPY . .
RUN pip wheel --no-cache-dir --wheel-dir /wheels ".[rabbitmq,redis,metrics]"

FROM python:3.12-slim
RUN useradd --create-home --uid 10001 stagewire
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir --no-index --find-links /wheels "stagewire[rabbitmq,redis,metrics]" && rm -r /wheels
COPY configs /configs
USER stagewire
WORKDIR /srv
STOPSIGNAL SIGTERM
ENTRYPOINT ["stagewire"]
CMD ["--help"]
