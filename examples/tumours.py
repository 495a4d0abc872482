"""A table for `calibayes train`: scikit-learn's measurements of tumours, and whether each was benign.

python examples/tumours.py
calibayes train tumours.csv --target diagnosis -o tumours.model
"""

from __future__ import annotations

from sklearn.datasets import load_breast_cancer


def main() -> None:
    """Write the table to tumours.csv."""
    data = load_breast_cancer(as_frame=True)
    table = data.frame.assign(diagnosis=data.frame["target"].map({0: "malignant", 1: "benign"})).drop(columns="target")
    table.to_csv("tumours.csv", index=False)
    print(f"tumours.csv: {len(table):,} rows, {table.shape[1] - 1} columns and the diagnosis")


if __name__ == "__main__":
    main()
