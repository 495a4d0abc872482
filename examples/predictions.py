"""Predictions of any classifier as a file that `calibayes evaluate` reads: here two of scikit-learn's on its digits.

python examples/predictions.py
calibayes evaluate naive-bayes.csv logistic.csv --report page.html
"""

from __future__ import annotations

from typing import Any

import pandas as pd
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB


def write(name: str, model: Any, images: Any, labels: Any) -> None:
    """One row per example: the true class in ``label``, and the probability of each class in ``p_0``, ``p_1``, …"""
    probs = model.predict_proba(images)
    table = pd.DataFrame(probs, columns=[f"p_{name}" for name in model.classes_])
    table.insert(0, "label", labels)
    table.to_csv(f"{name}.csv", index=False)
    print(f"{name}.csv: {len(table):,} examples, right {100 * model.score(images, labels):.1f} %")


def main() -> None:
    """Train on 600 digits, and write down what the models say about the other 1,197."""
    images, labels = load_digits(return_X_y=True)
    x, x_test, y, y_test = train_test_split(images / 16, labels, train_size=600, random_state=0)
    write("naive-bayes", GaussianNB(var_smoothing=0.03).fit(x, y), x_test, y_test)
    write("logistic", LogisticRegression(max_iter=1000).fit(x, y), x_test, y_test)


if __name__ == "__main__":
    main()
