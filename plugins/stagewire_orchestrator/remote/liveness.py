"""When somebody who is silent counts as gone; the YAML section ``liveness``."""

from __future__ import annotations

from pydantic import Field, PositiveFloat

from stagewire import Options


class Liveness(Options):
    """Clocks of stages in other processes, in seconds. Time in which the transport itself is away does not count."""

    heartbeat: PositiveFloat = Field(1.0, description="Between two signs of life, in both directions.")
    lost_after: PositiveFloat = Field(
        10.0, description="Of silence after which a worker, or an orchestrator, counts as gone."
    )
    start: PositiveFloat = Field(
        60.0, description="That a worker has to register, at the start and after it was lost, before its stage fails."
    )
    backoff: PositiveFloat = Field(0.5, description="Before a worker that died is started again; doubles each time.")
    backoff_max: PositiveFloat = Field(15.0, description="The longest pause before that.")
