"""Models as one file that runs anywhere: ONNX, or PyTorch's own format."""

from __future__ import annotations

from calibayes.exporting.export_model import export_model
from calibayes.exporting.export_posterior import export
from calibayes.exporting.write_export import Exported

__all__ = ["Exported", "export", "export_model"]
