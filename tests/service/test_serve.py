"""`calibayes serve` as a client meets it: answers like those of `calibayes predict`, limits, and messages."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tests.files.guaranteed import HEADER, trained
from tests.files.made import write_csv
from tests.service.pets import numbers, rows_of
from tests.service.running import Answer, Service, read, serving

from calibayes.files import predict_file
from calibayes.files.row_actions import joined_set

pytest.importorskip("fastapi")
pytestmark = pytest.mark.serve


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("service") / "pets.model"
    trained().model.save(path)
    return path


@pytest.fixture(scope="module")
def service(model: Path) -> Iterator[Service]:
    limits = ("--max-bytes", "200000", "--max-rows", "1500", "--max-seconds", "20", "--abstain-below", "0.7", "--sets", "0.9")
    with serving(model, *limits) as running:
        yield running


def predicted_by_the_command_line(rows: list[dict[str, str]], folder: Path) -> pd.DataFrame:
    path = write_csv(folder / "new.csv", [list(row.values()) for row in rows], HEADER)
    predict_file(trained().model, path, folder / "out.parquet", abstain_below=0.7, sets=0.9)
    return pd.read_parquet(folder / "out.parquet")


def check_same(answer: Answer, expected: pd.DataFrame, atol: float = 0.0) -> None:
    assert answer.status == 200, answer.body
    given = answer.json["rows"]
    assert len(given) == len(expected)
    for row, (_, want) in zip(given, expected.iterrows(), strict=True):
        assert (row["decision"] or "") == want["decision"]
        assert row["abstain"] == (want["abstain"] == "true") == (row["reason"] is not None)
        assert joined_set(row["set"]) == want["set"]
        for name, probability in row["probabilities"].items():
            assert abs(probability - want[f"p_{name}"]) <= atol
        for name in ("confidence", "epistemic", "aleatoric", "outsider"):
            assert abs(row[name] - want[name]) <= atol


def test_json_and_uploads_agree_with_predict_to_the_last_bit(service: Service, tmp_path: Path) -> None:
    rows = rows_of(900)  # more than one pass through the network
    expected = predicted_by_the_command_line(rows, tmp_path)
    assert 0 < (expected["abstain"] == "true").sum() < len(rows)
    check_same(service.predict(rows), expected)
    check_same(service.predict(numbers(900)), expected)
    data = (tmp_path / "new.csv").read_bytes()
    check_same(service.upload("anything at all.csv", data), expected)
    check_same(service.ask("POST", "/predict", data, Content_Type="text/csv; charset=utf-8"), expected)
    lines = "\n".join(map(json.dumps, rows)).encode()
    check_same(service.upload("rows.jsonl", lines), expected)
    check_same(service.predict(rows[:1]), predicted_by_the_command_line(rows[:1], tmp_path))


def test_concurrent_requests_are_answered_together_each_with_its_own_rows(service: Service, tmp_path: Path) -> None:
    before = service.metrics()
    rows, results = rows_of(200), dict[int, Answer]()
    barrier = threading.Barrier(25)

    def client(number: int) -> None:
        connection = service.connect()
        barrier.wait()
        for place in range(number, 200, 25):
            body: dict[str, Any] = {"rows": [rows[place]]}
            if place % 10 == 9:  # a bad request fails alone
                body["rows"][0] = {**rows[place], "x": "ten"}
            connection.request("POST", "/predict", json.dumps(body), {"Content-Type": "application/json"})
            results[place] = read(connection.getresponse())
        connection.close()

    threads = [threading.Thread(target=client, args=(number,)) for number in range(25)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = predicted_by_the_command_line(rows, tmp_path)
    for place, answer in results.items():
        if place % 10 == 9:
            assert (answer.status, "'ten' is not a number" in answer.detail) == (422, True)
        else:
            check_same(answer, expected[place : place + 1], atol=1e-6)  # another batch rounds differently
    after = service.metrics()
    passes = after["calibayes_pass_rows_count"] - before["calibayes_pass_rows_count"]
    mean = (after["calibayes_pass_rows_sum"] - before["calibayes_pass_rows_sum"]) / passes
    assert mean > 1.2, "requests that arrive together are not predicted together"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"x": 1}], "The model needs columns that are not there: 'z'. There are 'x'."),
        ([{"x": 1, "z": "1,5"}], "Row 1, column 'z': '1,5' has a comma. Write numbers with a decimal point"),
        ([{"x": 1, "z": 2}, {"x": "?", "z": "50%"}], "Row 2, column 'z': '50%' is a percentage."),
        ([{"x": 1, "z": 1e200}], "Row 1, column 'z': '1e+200' is too large a number."),
        ([{"x": 1, "z": [2]}], "Row 1, column 'z': the value is a list. Give it one value."),
        ([{"x": 1, "z": {"y": 2}}], "Row 1, column 'z': the value is a nested object."),
        ([{"x": 1, "z": "\ud800"}], "holds half a character"),
        ([{"x": 1, "z": 2}, {"y": 1}], "Row 2: 'y' is not among the names of the first row."),
        ([[1, 2]], "Row 1: expected an object with a value for each column, but got '[1, 2]'."),
        ([], "There are no rows."),
        ("rows", "Expected 'rows' to be a list of objects, but got 'rows'."),
    ],
)
def test_bad_rows_get_the_message_of_the_command_line(service: Service, rows: Any, message: str) -> None:
    answer = service.predict(rows)
    assert (answer.status, message in answer.detail) == (422, True), answer.body


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "The body is not JSON"),
        (b"{", "The body is not JSON"),
        (b'{"rows": [{"x": NaN, "z": 1}]}', "NaN is not a value in JSON. Send null"),
        (b'{"rows": [{"x": 1e999, "z": 1}]}', "Row 1, column 'x': the number is infinite."),
        (b'{"rows": [{"x": 1, "x": 2, "z": 1}]}', "The name 'x' occurs more than once"),
        (b"[" * 50_000, "nested too deeply"),
        (b'{"rows": [{"x": ' + b"9" * 5000 + b', "z": 1}]}', "The body is not JSON"),
        (b'{"rows": [{"x": "\xff", "z": 1}]}', "The body is not UTF-8 text"),
        (b'{"rows": [{"x": 1, "z": 1}], "model": "/etc/passwd"}', "and nothing else"),
    ],
)
def test_bad_json_is_refused(service: Service, body: bytes, message: str) -> None:
    answer = service.ask("POST", "/predict", body, Content_Type="application/json")
    assert (answer.status, message in answer.detail) == (422, True), answer.body


def test_bad_uploads_get_the_message_of_the_command_line_and_no_path(service: Service) -> None:
    bad = service.upload("new.csv", b"x,z\n1,2\n3,four\n")
    assert (bad.status, bad.detail.startswith("'upload.csv', line 3, column 'z': 'four' is not a number.")) == (422, True)
    assert "is not utf-8 text" in service.upload("new.csv", "x,z\n1,é\n".encode("latin-1")).detail
    assert "the file is empty" in service.upload("new.csv", b"").detail
    assert "the row has 3 cells" in service.upload("new.csv", b"x,z\n1,2,3\n").detail
    assert service.upload("new.csv", b"\x1f\x8b" + b"x" * 50).status == 415
    assert service.upload("new.xlsx", b"PK\x03\x04").status == 415
    refused = service.upload("cat.png", b"\x89PNG")
    assert (refused.status, "does not classify images" in refused.detail) == (415, True)
    assert service.ask("POST", "/predict", b"x=1", Content_Type="application/x-www-form-urlencoded").status == 415
    assert service.ask("POST", "/predict", b"--?", Content_Type="multipart/form-data").status == 400
    kept = service.upload("../../../tmp/../etc/passwd.csv", b"x,z,extra\n1,2,3\n")
    assert (kept.status, kept.json["notes"]) == (200, ["Columns not used: 'extra'."])


def test_limits_on_rows_and_bytes(service: Service) -> None:
    many = service.predict(numbers(1501))
    assert (many.status, "at most 1,500 are taken" in many.detail) == (413, True)
    text = "x,z\n" + "1,2\n" * 1501
    assert service.upload("new.csv", text.encode()).status == 413
    long = service.predict([{"x": "1" * 300_000, "z": 1}])
    assert (long.status, "more than 0.2 MB" in long.detail) == (413, True)
    assert service.predict(numbers(1500)).status == 200


def test_a_thousand_malformed_bodies_and_none_is_the_services_fault(service: Service) -> None:
    rng = random.Random(0)
    good = json.dumps({"rows": numbers(3)}).encode()
    form = b'--m\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\nx,z\n1,2\n\r\n--m--\r\n'
    kinds = [("application/json", good), ("text/csv", b"x,z\n1,2\n3,4\n"), ("multipart/form-data; boundary=m", form)]
    connection = service.connect()
    statuses = set()
    for _ in range(1000):
        kind, body = rng.choice(kinds)
        broken = bytearray(body)
        for _ in range(rng.randint(1, 6)):
            place = rng.randrange(len(broken) or 1)
            change = rng.randrange(4)
            if change == 0:
                del broken[place : place + rng.randint(1, 20)]
            elif change == 1:
                broken[place:place] = rng.randbytes(rng.randint(1, 8))
            elif change == 2:
                broken[place:place] = rng.choice(
                    [b"\x00", b'"', b"[" * 2000, b"\xff\xfe", b"1e999", b"NaN", b"\r", b"\x1f\x8b"]
                )
            else:
                broken = broken[:place]
            broken = broken or bytearray(b" ")
        kind = rng.choice([kind, kind, kind, "application/json", "text/csv", "application/x-ndjson", "", "\x7f", "image/png"])
        connection.request("POST", "/predict", bytes(broken), {"Content-Type": kind})
        statuses.add(read(connection.getresponse()).status)
    connection.close()
    assert {422, 415, 400} <= statuses
    assert not {status for status in statuses if status >= 500}
    assert service.predict(numbers(1)).status == 200


def test_metrics_count_what_was_answered(service: Service) -> None:
    before = service.metrics()
    answer = service.predict([*numbers(300, seed=5), {"x": 50, "z": -50}]).json["rows"]
    service.predict([{"x": 1}])
    after = service.metrics()

    def grown(name: str) -> float:
        return after.get(name, 0.0) - before.get(name, 0.0)

    assert grown("calibayes_rows_total") == 301
    assert grown('calibayes_requests_total{path="/predict",status="200"}') == 1
    assert grown('calibayes_requests_total{path="/predict",status="422"}') == 1
    assert grown('calibayes_request_seconds_count{path="/predict"}') == 2
    assert grown("calibayes_confidence_total") == pytest.approx(sum(row["confidence"] for row in answer))
    assert grown("calibayes_abstained_total") == sum(row["abstain"] for row in answer)
    assert grown("calibayes_outsiders_total") == sum(row["outsider"] > 0.99 for row in answer)
    assert 0 < grown("calibayes_expected_right_total") < 301
    rows = after["calibayes_rows_total"]
    assert after["calibayes_mean_confidence"] == pytest.approx(after["calibayes_confidence_total"] / rows)
    assert after["calibayes_expected_accuracy"] == pytest.approx(after["calibayes_expected_right_total"] / rows)  # one worker
    assert 0 < after["calibayes_abstention_rate"] < 1


def test_the_description_and_openapi_name_the_columns(service: Service) -> None:
    about = service.ask("GET", "/model").json
    assert [column["name"] for column in about["columns"]] == ["x", "z"]
    assert about["limits"]["rows"] == 1500
    assert any("Sets hold the true class" in text for text in about["statements"])
    openapi = service.ask("GET", "/openapi.json").json
    body = openapi["paths"]["/predict"]["post"]["requestBody"]["content"]
    assert body["application/json"]["schema"]["properties"]["rows"]["items"]["required"] == ["x", "z"]
    answer = openapi["paths"]["/predict"]["post"]["responses"]["200"]["content"]["application/json"]["schema"]
    row = service.predict(numbers(1)).json["rows"][0]
    assert set(row) == set(answer["properties"]["rows"]["items"]["properties"])
    assert service.ask("GET", "/nothing").status == 404
    assert service.ask("GET", "/predict").status == 405
    page = service.ask("GET", "/")
    assert "script-src 'self'" in page.headers["content-security-policy"]
