"""What a service says to machines: the document of its endpoints, and its figures."""

import itertools
import json
import re
from types import SimpleNamespace

import numpy as np
import pytest

from desks import error_of, post, served
from kesler.service.endpoints import ENDPOINTS
from kesler.service.metrics import BOUNDS, Metrics

# ---- the document -------------------------------------------------------------------------------


def test_every_endpoint_is_in_the_document_and_on_the_page(desk):
    document = desk.get("/openapi.json").json()
    page = desk.get("/api").text
    for each in ENDPOINTS:
        operation = document["paths"][each.path][each.method.lower()]
        assert each.role in operation["description"]
        assert f"{each.method} {each.path}" in page
    assert document["openapi"].startswith("3.1")
    assert not re.search(r'(src|href)="https?:', page)


def schemas_in(value):
    """All schemas of fields within an OpenAPI document."""
    if isinstance(value, dict):
        yield from value.get("properties", {}).values()
        for each in value.values():
            yield from schemas_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from schemas_in(each)


def test_the_document_has_a_type_for_every_field(desk):
    document = desk.get("/openapi.json").json()
    known = document["components"]["schemas"]
    found = [*schemas_in(document)]
    assert len(found) > 50
    for each in found:
        assert each.keys() & {"type", "anyOf", "$ref"}, each
    for name in re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document)):
        assert name in known
    predict = known["PredictRequest"]
    assert predict["additionalProperties"] is False
    assert predict["properties"]["explain"]["maximum"] == 1000
    path = document["paths"]["/api/models/{model}/import"]["post"]
    form = path["requestBody"]["content"]["multipart/form-data"]["schema"]["properties"]
    assert {each["name"] for each in path["parameters"]} == {"model", *form} - {"file", "labels"}
    assert form["skip_lines"]["type"] == "integer" and form["header"]["type"] == "boolean"
    sent = document["paths"]["/api/models/{model}/predict"]["post"]["requestBody"]["content"]
    assert sorted(sent) == ["application/json", "application/x-ndjson"]


OF_OPENAPI = {
    "document": "openapi info paths security components servers tags",
    "scheme": "type scheme bearerFormat description",
    "operation": "operationId summary description parameters responses requestBody tags security",
    "parameter": "name in description required schema",
    "response": "description content headers",
    "request": "description content required",
    "content": "schema example",
}
"""The fields that OpenAPI 3.1 has for what the document may contain."""


def test_the_document_has_the_fields_of_openapi(desk):
    document = desk.get("/openapi.json").json()
    found = [("document", document)]
    (scheme,) = document["components"]["securitySchemes"].values()
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    found.append(("scheme", scheme))
    operations = [each for path in document["paths"].values() for each in path.values()]
    assert len({each["operationId"] for each in operations}) == len(operations) == len(ENDPOINTS)
    for each in operations:
        assert each["description"] and each["summary"]
        bodies = [*each["responses"].values(), each.get("requestBody", {"content": {}})]
        found += [("operation", each), ("request", bodies.pop())]
        found += [("response", body) for body in bodies]
        found += [("parameter", parameter) for parameter in each["parameters"]]
        found += [("content", kind) for body in bodies for kind in body["content"].values()]
        for parameter in each["parameters"]:
            assert parameter["in"] in ("path", "query") and parameter["schema"]
    for kind, value in found:
        assert value.keys() <= set(OF_OPENAPI[kind].split()), (kind, value)


def test_endpoints_take_the_queries_of_the_document(taught):
    document, n = taught.get("/openapi.json").json(), 0
    for path, operations in document["paths"].items():
        of_query = [each for each in operations.get("get", {}).get("parameters", ())
                    if each["in"] == "query"]  # fmt: skip
        for each in of_query:
            value = 1 if each["schema"]["type"] == "integer" else "spam"
            answer = taught.get(path.format(model="mail"), params={each["name"]: value})
            assert answer.is_success, answer.text
            n += 1
        unknown = taught.get(path.format(model="mail"), params={"unknown": 1})
        assert not of_query or "unknown" in error_of(unknown, 422)
    assert n == 8


def test_the_document_says_what_is_required_and_what_comes(desk):
    document = desk.get("/openapi.json").json()
    lines = set()
    for path, operations in document["paths"].items():
        for method, each in operations.items():
            (endpoint,) = (e for e in ENDPOINTS if (e.path, e.method.lower()) == (path, method))
            required = [p["name"] for p in each["parameters"] if p.get("required")]
            assert required == re.findall(r"{(\w+)}", path)
            request, takes = each.get("requestBody"), bool(endpoint.body or endpoint.files)
            assert (request is not None) == takes and (not takes or request["required"] is True)
            if takes and "application/x-ndjson" in request["content"]:
                lines.add(endpoint.name)
            (code,) = each["responses"].keys() - {"default"}
            assert code == ("201" if endpoint.name == "create" else "200")
            for kind, content in each["responses"][code]["content"].items():
                if isinstance(endpoint.returns, str):
                    assert (kind, content) == (endpoint.returns, {})
                    continue
                places = [f"#/components/schemas/{e.__name__}" for e in endpoint.returns]
                references = [{"$ref": place} for place in places]
                one = references[0] if len(references) == 1 else {"oneOf": references}
                assert (kind, content) == ("application/json", {"schema": one})
    assert lines == {"predict", "learn"}
    assert desk.post("/api/models", json={"name": "new"}).status_code == 201


# ---- figures ------------------------------------------------------------------------------------


def test_metrics_are_those_of_prometheus(taught):
    post(taught, "predict", row="cash")
    pages = {"health": "/health", "static": "/static/style.css", "login": "/login", "api": "/api"}
    for path in pages.values():
        taught.get(path)
    text = taught.get("/metrics").text
    for name in pages:
        assert f'kesler_requests_total{{endpoint="{name}",status="200"}} 1' in text
    assert 'kesler_requests_total{endpoint="learn",status="200"} 3' in text
    assert 'kesler_request_seconds_count{endpoint="predict"} 1' in text
    assert 'kesler_rows{model="mail"} 3' in text and 'kesler_classes{model="mail"} 2' in text
    sample = re.compile(r'[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+-]+')
    for line in text.splitlines():
        assert line.startswith("# ") or sample.fullmatch(line), line


def test_times_of_requests_are_counted_below_each_bound_and_summed():
    metrics, rng = Metrics(), np.random.default_rng(0)
    times = {name: rng.exponential(0.3, 50) for name in ("learn", "predict")}
    for name, seconds in times.items():
        for each in seconds:
            metrics.count(name, 200, each)
    for name, seconds in times.items():
        found = dict(line.rsplit(" ", 1) for line in metrics.text([]).splitlines())
        for bound in BOUNDS:
            label = f'kesler_request_seconds_bucket{{endpoint="{name}",le="{bound}"}}'
            assert int(found[label]) == (seconds <= bound).sum()
        assert found[f'kesler_request_seconds_count{{endpoint="{name}"}}'] == "50"
        total = float(found[f'kesler_request_seconds_sum{{endpoint="{name}"}}'])
        assert total == pytest.approx(seconds.sum(), rel=1e-4)


def test_the_bounds_of_times_are_those_of_prometheus_and_two_below():
    text = Metrics()
    for seconds in (0.001, 0.0025, 10.0, 10.1):
        text.count("predict", 200, seconds)
    found = re.findall(r'_bucket{endpoint="predict",le="([^"]*)"} (\d+)', text.text([]))
    assert found == [
        ("0.001", "1"), ("0.0025", "2"), ("0.005", "2"), ("0.01", "2"), ("0.025", "2"),
        ("0.05", "2"), ("0.1", "2"), ("0.25", "2"), ("0.5", "2"), ("1.0", "2"), ("2.5", "2"),
        ("5.0", "2"), ("10.0", "3"), ("+Inf", "4"),
    ]  # fmt: skip


def test_a_request_takes_the_time_from_its_begin_to_its_end(desk, monkeypatch):
    ticks = itertools.count()
    clock = SimpleNamespace(perf_counter=lambda: 1e6 + 0.25 * next(ticks))
    monkeypatch.setattr("kesler.service.web.time", clock)
    for _ in range(3):
        post(desk, "predict", row="cash")
    text = desk.get("/metrics").text
    assert 'kesler_request_seconds_sum{endpoint="predict"} 0.75\n' in text
    assert 'kesler_request_seconds_bucket{endpoint="predict",le="0.25"} 3\n' in text
    assert 'kesler_request_seconds_bucket{endpoint="predict",le="0.1"} 0\n' in text


def test_figures_of_one_name_stand_together_below_one_heading(tmp_path):
    with served(tmp_path / "desk.db") as client:
        for name in ("mail", "post", "desk"):
            client.post("/api/models", json={"name": name})
        post(client, "learn", row="cash", answer="spam")
        client.post("/api/models/mail/import", content="text\nwaits\n")
        lines = client.get("/metrics").text.splitlines()
    helped = [line.split()[2] for line in lines if line.startswith("# HELP ")]
    typed = [line.split()[2] for line in lines if line.startswith("# TYPE ")]
    assert helped == typed and len({*typed}) == len(typed)
    name, found = "", []
    for line in lines:
        if line.startswith("#"):
            name = line.split()[2]
        elif "model=" in line:
            assert line.startswith(f"{name}{{")
            found.append(line)
    assert found == [
        f'{figure}{{model="{model}"}} {n if model == "mail" else 0}'
        for figure, n in (
            ("kesler_rows", 1), ("kesler_mistakes", 0), ("kesler_items_waiting", 1),
            ("kesler_writes_waiting", 0), ("kesler_classes", 1),
        )
        for model in ("desk", "mail", "post")
    ]  # fmt: skip


def test_numbers_have_all_their_digits_and_labels_their_escapes():
    labels = (("model", 'a"b\\c\nd'),)
    text = Metrics().text([("kesler_rows", "Rows.", labels, 123456789), ("up", "Up.", (), 1)])
    assert text.endswith(
        "# HELP kesler_rows Rows.\n# TYPE kesler_rows gauge\n"
        'kesler_rows{model="a\\"b\\\\c\\nd"} 123456789\n'
        "# HELP up Up.\n# TYPE up gauge\nup 1\n"
    )
