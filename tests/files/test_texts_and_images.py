"""Texts in columns and folders, images in folders: trained, saved, loaded and predicted."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from calibayes.errors import DataError, InvalidArgumentError
from calibayes.files import DataSettings, load, predict_file, train
from calibayes.files.image_coding import ImageCoding
from calibayes.files.labelled_rows import read_labelled
from calibayes.files.network_description import plan_of
from calibayes.files.prepare import prepare
from calibayes.files.read_rows import folder_blocks, labelled_files
from calibayes.files.text_coding import TextCoding
from calibayes.networks import WordBag
from calibayes.networks.word_weights import WordWeights
from calibayes.tables import TableOptions, frame_block

TOPICS = {"sea": "The ship sailed over deep water with fish", "sky": "A bird flew past clouds into blue air"}
SEVERAL = 20


def texts(seed: int = 0) -> list[tuple[str, str]]:
    generator = np.random.default_rng(seed)
    return [
        (topic, " ".join(generator.permutation(words.split())[:5])) for topic, words in TOPICS.items() for _ in range(SEVERAL)
    ]


def images(folder: Path, mode: str = "L", size: int = 30) -> Path:
    """Bright left halves, and bright right halves."""
    generator = np.random.default_rng(0)
    for place, side in enumerate(("left", "right")):
        (folder / side).mkdir(parents=True)
        for i in range(SEVERAL):
            pixels = generator.integers(0, 90, (size, size + 6, 3))
            pixels[:, place * size // 2 : (place + 1) * size // 2] += 120
            Image.fromarray(pixels.astype(np.uint8)).convert(mode).save(folder / side / f"{i}.{'png' if i % 2 else 'jpg'}")
    return folder


def test_a_text_is_the_indices_of_its_known_words_each_once() -> None:
    coding = TextCoding(("title", "body"), ("ship", "über", "bird"), 4, once=True)
    table = frame_block({"title": ["Ship!", None], "body": ["a bird, ÜBER ship", "nothing"]})
    assert coding.encode(table).tolist() == [[0, 1, 3, 2], [0, 0, 0, 0]]
    assert TextCoding(("body",), ("ship", "über", "bird"), 2, once=False).encode(table).tolist() == [[3, 2], [0, 0]]


def test_rare_words_count_more() -> None:
    weights = WordWeights(4).fit(torch.tensor([[1, 2], [1, 0], [1, 0]])).rarity
    assert weights[1] == pytest.approx(1.0)
    assert weights[2] == pytest.approx(1 + np.log(4 / 2))
    assert weights[3] == pytest.approx(1 + np.log(4))


def test_the_word_bag_adds_vectors_with_weights_whose_squares_sum_to_one() -> None:
    net = WordBag(4, classes=3, dim=5, weights=torch.tensor([9.0, 3.0, 4.0, 1.0]))
    found = net(torch.tensor([[0, 1, 2], [0, 0, 0]]))
    vectors = net.embedding.weight
    by_hand = net.classifier(torch.stack([0.6 * vectors[1] + 0.8 * vectors[2], torch.zeros(5)]))
    assert torch.allclose(found, by_hand, atol=1e-6)


def test_texts_in_a_column_are_learnt(tmp_path: Path) -> None:
    frame = pd.DataFrame(texts(), columns=["topic", "body"]).assign(extra=1)
    frame.to_csv(tmp_path / "t.csv", index=False)
    trained = train(tmp_path / "t.csv", target="topic", text="body", scheme="fnn", learning_rate=0.02, epochs=20)
    assert [plan.name for plan in trained.model.plans] == ["word-bag"]
    assert "columns not used: 'extra'" in " ".join(trained.data.notes)
    assert trained.scores.accuracy == 1.0
    trained.model.save(tmp_path / "m")
    found = load(tmp_path / "m").predict({"body": ["ship and fish", "bird in blue air", ""]})
    assert [trained.model.classes[k] for k in found.decision][:2] == ["sea", "sky"]
    assert found.confidence[2] < found.confidence[:2].min()


def test_the_only_column_of_texts_need_not_be_named(tmp_path: Path) -> None:
    made = pd.DataFrame(texts(), columns=["topic", "body"])
    made["body"] += [f" n{k}" for k in range(len(made))]
    made.insert(0, "number", range(1000, 1000 + len(made)))
    made.to_csv(tmp_path / "notes.csv", index=False)
    found = read_labelled(tmp_path / "notes.csv", DataSettings(target="topic"))
    assert found.settings.text == ("body",)
    assert "Column 'body' is taken for texts to classify by." in found.notes
    days = pd.date_range("2024-01-01", periods=len(made)).astype(str)
    for other in (made["number"] + 0.5, made["number"][::-1], days):  # each may say something
        made["number"] = np.asarray(other)
        made.to_csv(tmp_path / "notes.csv", index=False)
        assert read_labelled(tmp_path / "notes.csv", DataSettings(target="topic")).settings.text == ()


def test_different_numbers_beside_a_name_are_learnt_from(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    income, debt = (generator.choice(100_000, 300, replace=False) for _ in range(2))
    frame = pd.DataFrame({"customer": [f"First{k} Last{k}" for k in range(300)], "income": income, "debt": debt})
    frame["label"] = np.where(income > debt, "approve", "decline")
    frame.to_csv(tmp_path / "loans.csv", index=False)
    trained = train(tmp_path / "loans.csv", scheme="logistic-regression", folds=3)
    assert trained.model.coding.needs == ("income", "debt")
    assert trained.scores.accuracy > 0.9


def test_a_folder_of_texts_is_as_good_as_a_column(tmp_path: Path) -> None:
    for place, (topic, body) in enumerate(texts()):
        (tmp_path / "all" / topic).mkdir(parents=True, exist_ok=True)
        (tmp_path / "all" / topic / f"{place}.txt").write_text(body)
    pd.DataFrame(texts(), columns=["label", "text"]).to_csv(tmp_path / "t.csv", index=False)
    folder = prepare(tmp_path / "all", DataSettings())
    column = prepare(tmp_path / "t.csv", DataSettings(target="label", text=("text",)))
    assert (folder.splits.classes, folder.coding.needs) == (column.splits.classes, column.coding.needs)
    both = [sorted(map(tuple, prepared.splits.train[0].tolist())) for prepared in (folder, column)]
    assert len(both[0]) == len(both[1]) == 26


def test_images_in_folders_are_learnt_and_predicted(tmp_path: Path) -> None:
    folder = images(tmp_path / "all")
    trained = train(folder, scheme="bnn", beta=0.001, epochs=6, batch_size=8, learning_rate=0.01, predictive_samples=3)
    assert (trained.model.plans[0].name, trained.data.inputs.dtype) == ("small-cnn", torch.uint8)
    assert trained.scores.accuracy == 1.0
    trained.model.save(tmp_path / "m")
    model = load(tmp_path / "m")
    done = predict_file(model, folder, tmp_path / "out.csv")
    out = pd.read_csv(tmp_path / "out.csv")
    assert (done.rows, done.labelled) == (2 * SEVERAL, True)
    assert (out["label"] == out["decision"]).mean() > 0.95
    assert out["file"][0] == str(folder / "left" / "0.jpg")
    one = predict_file(model, folder / "left" / "1.png", tmp_path / "one.csv")
    assert (one.rows, one.labelled) == (1, False)


def test_colour_and_large_images_have_their_networks(tmp_path: Path) -> None:
    folder = images(tmp_path / "all", "RGB")
    small, large = (prepare(folder, DataSettings(image_size=size)) for size in (None, 40))
    assert (plan_of(small.network(), 32).name, small.splits.train[0].shape[1:]) == ("small-cnn", (3, 32, 32))
    assert (plan_of(large.network(), 40).name, large.splits.train[0].shape[1:]) == ("resnet20", (3, 40, 40))
    assert large.network().eval()(large.splits.test[0][:2]).shape == (2, 2)
    grey = prepare(images(tmp_path / "grey"), DataSettings(network="resnet20"))
    assert grey.splits.train[0].shape[1:] == (3, 32, 32)


def test_sixteen_bits_are_not_cut_off(tmp_path: Path) -> None:
    Image.fromarray(np.full((12, 12), 32768, dtype=np.uint16)).save(tmp_path / "a.png")
    assert ImageCoding(1, 10).encode(frame_block({"file": [str(tmp_path / "a.png")]})).unique().tolist() == [128]


def test_folders_that_cannot_be_learnt_from_are_refused(tmp_path: Path) -> None:
    folder = images(tmp_path / "all")
    with pytest.raises(InvalidArgumentError, match="no --text for a folder"):
        prepare(folder, DataSettings(text=("body",)))
    torn = folder / "left" / "0.jpg"
    torn.write_bytes(torn.read_bytes()[:300])
    with pytest.raises(DataError, match=r"left/0.jpg'.*not a complete PNG or JPEG"):
        prepare(folder, DataSettings())
    torn.unlink()
    (folder / "left" / "notes.txt").write_text("words")
    with pytest.raises(DataError, match="images and texts"):
        prepare(folder, DataSettings())
    (folder / "left" / "notes.txt").rename(folder / "left" / "model.pkl")
    with pytest.raises(DataError, match=r"model.pkl' is neither an image"):
        prepare(folder, DataSettings())


def test_hidden_folders_are_not_read_and_links_and_names_that_lead_nowhere_are_refused(tmp_path: Path) -> None:
    for name in ("sea/a.txt", "sea/.ipynb_checkpoints/a.txt", "sky/deep/b.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("words")
    assert [(path.name, label) for path, label in labelled_files(tmp_path)] == [("a.txt", "sea"), ("b.txt", "sky")]
    for place in (tmp_path / "lost", tmp_path / "sky" / "lost"):
        place.symlink_to("nowhere")
        with pytest.raises(DataError, match=r"lost': this is a link to something that is not there"):
            labelled_files(tmp_path)
        place.unlink()
    (tmp_path / "sea" / os.fsdecode(b"\xff.txt")).write_text("words")
    with pytest.raises(DataError, match=r"this name is not UTF-8 text\. Rename it"):
        list(folder_blocks(tmp_path, TableOptions()))


def test_transparent_places_are_white_and_a_row_without_an_image_is_named(tmp_path: Path) -> None:
    clear = Image.new("RGBA", (12, 12), (0, 0, 0, 0))
    clear.save(tmp_path / "rgba.png")
    Image.new("LA", (12, 12), (0, 0)).save(tmp_path / "la.png")
    palette = Image.new("P", (12, 12), 3)
    palette.putpalette([9] * 48)
    palette.save(tmp_path / "p.png", transparency=bytes(16))
    for coding in (ImageCoding(1, 10), ImageCoding(3, 10)):
        for name in ("rgba", "la", "p"):
            assert coding.encode(frame_block({"file": [str(tmp_path / f"{name}.png")]})).unique().tolist() == [255]
        with pytest.raises(DataError, match="Row 2, column 'file': there is no image"):
            coding.encode(frame_block({"file": [str(tmp_path / "la.png"), None]}))


@pytest.mark.parametrize(("tag", "kind"), [(0x010E, 5), (0x0100, 5), (0x011A, 2)])
def test_an_image_whose_metadata_is_damaged_is_named(tmp_path: Path, tag: int, kind: int) -> None:
    entries = struct.pack(">HHII", tag, kind, 8 if kind == 2 else 1, 38) + struct.pack(">HHIHH", 0x0112, 3, 1, 6, 0)
    metadata = b"Exif\0\0MM\0*" + struct.pack(">IH", 8, 2) + entries + bytes(4) + b"abcdefgh"
    Image.new("L", (20, 30)).save(tmp_path / "odd.png", exif=metadata)
    with pytest.raises(DataError, match=r"odd\.png': this is not a complete PNG or JPEG image"):
        ImageCoding(1, 10).encode(frame_block({"file": [str(tmp_path / "odd.png")]}))


def test_predictions_of_a_folder_of_texts_say_which_file_is_which(tmp_path: Path) -> None:
    for place, (topic, body) in enumerate(texts()):
        (tmp_path / "all" / topic).mkdir(parents=True, exist_ok=True)
        (tmp_path / "all" / topic / f"{place}.txt").write_text(body)
    model = train(tmp_path / "all", scheme="fnn", epochs=1).model
    predict_file(model, tmp_path / "all" / "sea", tmp_path / "out.csv")
    assert pd.read_csv(tmp_path / "out.csv")["file"][0] == str(tmp_path / "all" / "sea" / "0.txt")
