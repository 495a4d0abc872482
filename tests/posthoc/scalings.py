"""The scalings that tests of all of them go through."""

from __future__ import annotations

from calibayes.posthoc import (
    IsotonicScaling,
    PlattScaling,
    QuadraticScaling,
    Scaling,
    StructuredMatrixScaling,
    TemperatureScaling,
    VectorScaling,
    VennAbersScaling,
)

FOR_MANY_CLASSES: list[type[Scaling]] = [TemperatureScaling, VectorScaling, StructuredMatrixScaling]
FOR_TWO_CLASSES: list[type[Scaling]] = [PlattScaling, IsotonicScaling, QuadraticScaling, VennAbersScaling]
