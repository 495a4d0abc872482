"""Models as one file that runs anywhere: ONNX, or PyTorch's own format."""

from __future__ import annotations

from calibayes.exporting.export_model import export_model
from calibayes.exporting.export_posterior import Exported, export

__all__ = ["Exported", "export", "export_model"]
