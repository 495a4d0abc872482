"""A service with the bare network beside it: what HTTP and the forward passes alone cost. `benchmarks.serve` starts it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from fastapi import FastAPI, Request, Response

from calibayes.files import load
from calibayes.posterior.drawn_networks import drawn_networks
from calibayes.predictive import samples_for
from calibayes.service.http_app import create_app
from calibayes.service.settings import ServiceSettings
from calibayes.service.supervisor import bound_socket, run_service

__all__ = ["app_with_bare_network"]


def app_with_bare_network(settings: ServiceSettings) -> FastAPI:
    """The service, and ``POST /bare``: numbers that are encoded already in, mean probabilities of the networks out."""
    app = create_app(settings)
    model = load(settings.model)
    drawn = drawn_networks(model.posterior, samples_for(model.posterior, model.samples), model.seed)
    assert drawn is not None
    networks = [each.network for each in drawn]

    async def bare(request: Request) -> Response:
        inputs = torch.tensor(json.loads(await request.body()), dtype=torch.float32)
        with torch.inference_mode():
            probs: Any = sum(network(inputs).softmax(-1) for network in networks)
        return Response(json.dumps((probs / len(networks)).tolist()), media_type="application/json")

    app.post("/bare", response_class=Response)(bare)
    return app


def main() -> None:
    settings = ServiceSettings(model=Path(sys.argv[1]), port=0, max_seconds=120)
    with bound_socket(settings.host, settings.port) as listening:
        print(listening.getsockname()[1], flush=True)
        sys.exit(run_service(settings, listening, app_with_bare_network))


if __name__ == "__main__":
    main()
