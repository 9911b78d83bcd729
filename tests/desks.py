"""Services in this process, and what tests ask of them."""

import json
import re

import msgspec
from starlette.testclient import TestClient

from kesler.service import ModelRegistry, Settings, application
from kesler.service.endpoints import ENDPOINTS

LINES = {"content-type": "application/x-ndjson"}
SECRETS = {
    "read": "read-read-read-read",
    "teach": "teach-teach-teach-teach",
    "admin": "admin-admin-admin-admin",
    "other": "other-other-other-other",
}
TOKENS = f"""
# who may do what
read bob {SECRETS["read"]}
teach ann {SECRETS["teach"]}

admin eve {SECRETS["admin"]}
admin oscar {SECRETS["other"]} post,parcels
"""
ROWS = [("win cash now", "spam"), ("team lunch", "work"), ("cash prize", "spam")]


PATHS = [(re.compile(re.sub(r"{\w+}", "[^/]+", each.path)), each) for each in ENDPOINTS]


class CheckedClient(TestClient):
    """A client that finds every answer to be of a type that its endpoint declares."""

    def request(self, method, url, **given):
        answer = super().request(method, url, **given)
        path = str(url).partition("?")[0]
        for pattern, each in PATHS:
            is_asked = each.method == method and pattern.fullmatch(path)
            is_one = answer.headers.get("content-type") == "application/json"
            if is_asked and is_one and answer.is_success:
                assert any(is_of(answer.json(), kind) for kind in each.returns), answer.text
        return answer


def is_of(value, kind):
    """A value has the fields of a type, and no others, and so have those within it."""
    try:
        return keeps(value, msgspec.to_builtins(msgspec.convert(value, kind)))
    except msgspec.ValidationError:
        return False


def keeps(value, found):
    """Another value has all fields that a value has."""
    if isinstance(value, dict):
        return value.keys() <= found.keys() and all(keeps(value[k], found[k]) for k in value)
    if isinstance(value, list):
        return len(value) == len(found) and all(map(keeps, value, found))
    return True


def served(path, clock=lambda: 0.0, **settings):
    """Return a client of a service; for its rates of requests, time stands still."""
    settings = {"rate": 1e6} | settings
    app = application(ModelRegistry(path), Settings(**settings), clock)
    return CheckedClient(app, base_url="http://127.0.0.1:8000")


def exported(client):
    lines = client.get("/api/models/mail/export.jsonl").text.splitlines()
    return {each["id"]: each for each in map(json.loads, lines)}


def bearer(role):
    return {"authorization": f"Bearer {SECRETS[role]}"}


def post(client, what, status=200, **body):
    answer = client.post(f"/api/models/mail/{what}", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def error_of(answer, status):
    """An answer is a refusal: its status, and a sentence."""
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert body["status"] == status and " " in body["error"] and "\n" not in body["error"]
    assert "Traceback" not in body["error"]
    return body["error"]


def state(client):
    """All that a model says of itself."""
    return [
        client.get(f"/api/models/mail{path}").text
        for path in ("", "/history?limit=100", "/items?limit=1000", "/export.jsonl")
    ]
