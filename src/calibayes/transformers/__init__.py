"""Fine-tune Hugging Face classifiers with calibayes: a ``Trainer`` with an objective and a posterior."""

from __future__ import annotations

from calibayes.extras import require_package

for _name in ("transformers", "accelerate"):
    require_package(_name, "calibayes.transformers", extra="transformers")

from calibayes.transformers.posterior_trainer import compute_metrics as compute_metrics  # noqa: E402
from calibayes.transformers.pretrained_folder import load as load  # noqa: E402
from calibayes.transformers.trainer import CalibayesTrainer as CalibayesTrainer  # noqa: E402

__all__ = ["CalibayesTrainer", "compute_metrics", "load"]
