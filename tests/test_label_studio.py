"""A real Label Studio, which asks a served model and tells it what people have answered."""

import os
import shutil
import subprocess
import time

import httpx2 as httpx
import pytest

from serving import HOST, Server, free_port

PROGRAM = shutil.which("label-studio")
KEY, SECRET = "0123456789abcdef0123456789abcdef01234567", "a-secret-of-twenty-letters"
CONFIG = """<View><Text name="shown" value="$body"/><Choices name="folder" toName="shown">
<Choice value="spam"/><Choice value="work"/></Choices></View>"""
TEXTS = ["win cash now", "team lunch today", "cash prize", "team meeting"]
SECONDS = 600  # until the database of Label Studio is made

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="needs the program label-studio")


@pytest.fixture
def studio(tmp_path):
    """A client of Label Studio."""
    port = free_port()
    found = {
        "LABEL_STUDIO_BASE_DATA_DIR": str(tmp_path / "studio"),
        "COLLECT_ANALYTICS": "false",
        "LATEST_VERSION_CHECK": "false",
        "SENTRY_DSN": "",
        "FRONTEND_SENTRY_DSN": "",
        "USE_DEFAULT_BANNED_SUBNETS": "false",  # else it asks no server of this machine
    }
    given = ["--username", "ann@example.org", "--password", "a password", "--user-token", KEY]
    command = [PROGRAM, "start", "-b", "--port", str(port), "--enable-legacy-api-token", *given]
    with open(tmp_path / "log", "wb") as log:
        process = subprocess.Popen(command, env=os.environ | found, stdout=log, stderr=log)
    headers = {"Authorization": f"Token {KEY}"}
    with httpx.Client(base_url=f"http://{HOST}:{port}", headers=headers, timeout=60) as client:
        try:
            wait(lambda: answers(client), SECONDS)
            yield client
        finally:
            process.terminate()
            process.wait()


def answers(client):
    try:
        return client.get("/health").is_success
    except httpx.HTTPError:
        return False


def wait(is_done, seconds=60):
    end = time.monotonic() + seconds
    while not is_done():
        assert time.monotonic() < end
        time.sleep(0.2)


def annotation(choice):
    value = {"choices": [choice]}
    given = {"from_name": "folder", "to_name": "shown", "type": "choices", "value": value}
    return {"result": [given]}


def test_label_studio_teaches_a_model_and_shows_what_it_predicts(studio, tmp_path):
    (tmp_path / "tokens").write_text(f"admin studio {SECRET}\n")
    (tmp_path / "tokens").chmod(0o600)
    options = ("--token-file", str(tmp_path / "tokens"))
    headers = {"Authorization": f"Bearer {SECRET}"}
    with (
        Server(tmp_path / "desk.db", options) as server,
        httpx.Client(base_url=server.url, headers=headers) as desk,
    ):
        desk.post("/api/models", json={"name": "mail"}).raise_for_status()

        def events():
            found = desk.get("/api/models/mail/history").json()["events"]
            return [(each["kind"], each["answer"]) for each in reversed(found)]

        def send(method, path, status, **body):
            answer = studio.request(method, path, json=body or None)
            assert answer.status_code == status, answer.text
            return answer.json() if answer.content else None

        id = send("POST", "/api/projects", 201, title="mail", label_config=CONFIG)["id"]
        studio.post(f"/api/projects/{id}/import", json=[{"body": each} for each in TEXTS])
        url = f"{server.url}/api/models/mail/label-studio"
        basic = {"auth_method": "BASIC_AUTH", "basic_auth_user": "x", "basic_auth_pass": SECRET}
        backend = send("POST", "/api/ml", 201, url=url, project=id, title="kesler", **basic)
        assert backend["state"] == "CO", backend  # connected
        (hook,) = studio.get(f"/api/webhooks?project={id}").json()
        send("PATCH", f"/api/webhooks/{hook['id']}", 200, headers=headers)

        tasks = {each["data"]["body"]: each["id"] for each in tasks_of(studio, id)}
        path = "/api/tasks/{}/annotations"
        first = send("POST", path.format(tasks[TEXTS[0]]), 201, **annotation("spam"))["id"]
        send("POST", path.format(tasks[TEXTS[1]]), 201, **annotation("spam"))
        wait(lambda: len(events()) == 2)
        second = studio.get(f"/api/tasks/{tasks[TEXTS[1]]}").json()["annotations"][0]["id"]
        send("PATCH", f"/api/annotations/{second}", 200, **annotation("work"))
        wait(lambda: len(events()) == 3)
        assert sorted(events()) == [("learn", "spam"), ("learn", "spam"), ("relabel", "work")]

        action = f"/api/dm/actions?id=retrieve_tasks_predictions&project={id}"
        send("POST", action, 200, selectedItems={"all": True, "excluded": []})
        for text, choice in ((TEXTS[2], "spam"), (TEXTS[3], "work")):
            (found,) = studio.get(f"/api/tasks/{tasks[text]}").json()["predictions"]
            assert found["result"][0]["value"]["choices"] == [choice]
            said = desk.post("/api/models/mail/predict", json={"row": text}).json()
            assert found["score"] == pytest.approx(said["confidence"])

        send("DELETE", f"/api/annotations/{first}", 204)
        wait(lambda: len(events()) == 4)
        assert events()[-1][0] == "undo"


def tasks_of(studio, project):
    found = studio.get(f"/api/tasks?project={project}").json()
    return found["tasks"] if isinstance(found, dict) else found
