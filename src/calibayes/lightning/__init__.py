"""Training, validation and ensemble prediction in PyTorch Lightning's Trainer."""

from calibayes.extras import require_package

require_package("lightning", "calibayes.lightning")

from calibayes.lightning.module import CalibayesModule as CalibayesModule  # noqa: E402
