"""What Label Studio asks of a service, and what its answers change."""

import base64

import pytest

from desks import SECRETS, TOKENS, error_of, exported, served
from kesler import OnlineClassifier, OnlineMultilabelClassifier
from kesler.durable import Journal
from kesler.service import Tokens
from kesler.service.label_studio import Interface
from kesler.service.refusals import Refusal

PATH = "/api/models/mail/label-studio"
CONFIG = """
<View>
  <Header value="Which folder?"/>
  <Text name="shown" value="$body"/>
  <Choices name="folder" toName="shown" choice="single"><Choice value="spam"/></Choices>
</View>
"""
SETS = CONFIG.replace("single", "multiple")


def event(action, id, choices=None, body="win cash", config=CONFIG, **more):
    result = []
    if choices is not None:
        value = {"choices": choices}
        result = [{"from_name": "folder", "to_name": "shown", "type": "choices", "value": value}]
    return {
        "action": action,
        "project": {"id": 3, "title": "mail", "label_config": config},
        "task": {"id": 5, "data": {"body": body}},
        "annotation": {"id": id, "result": result, "lead_time": 2.5, **more},
    }


def ask(client, what, status=200, **body):
    answer = client.post(f"{PATH}/{what}", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


@pytest.fixture
def desk(tmp_path):
    with served(tmp_path / "desk.db") as client:
        client.post("/api/models", json={"name": "mail"})
        yield client


def labels(client):
    return {id: each["label"] for id, each in exported(client).items()}


def test_a_project_is_set_up_and_the_model_is_up(desk):
    assert desk.get(f"{PATH}/health").json() == {"status": "UP", "model_class": "OnlineClassifier"}
    sent = {"project": "3.1", "schema": CONFIG, "hostname": "http://x", "access_token": "y"}
    assert ask(desk, "setup", **sent) == {"model_version": "mail-0"}


def test_answers_are_learnt_changed_and_taken_back(desk):
    assert ask(desk, "webhook", **event("ANNOTATION_CREATED", 1, ["spam"])) == {"changed": 1}
    ask(desk, "webhook", **event("ANNOTATION_CREATED", 2, ["work"], body="team lunch"))
    assert labels(desk) == {"label-studio-1": "spam", "label-studio-2": "work"}
    assert ask(desk, "webhook", **event("ANNOTATION_CREATED", 1, ["spam"])) == {"changed": 0}
    ask(desk, "webhook", **event("ANNOTATION_UPDATED", 1, ["advertising"]))
    assert labels(desk)["label-studio-1"] == "advertising"
    gone = {"action": "ANNOTATIONS_DELETED", "annotations": [{"id": 1}, {"id": 77}, {"id": 1}]}
    assert ask(desk, "webhook", **gone) == {"changed": 1}
    assert labels(desk) == {"label-studio-2": "work"}
    ask(desk, "webhook", **event("ANNOTATION_UPDATED", 1, ["spam"]))  # back again
    assert labels(desk) == {"label-studio-1": "spam", "label-studio-2": "work"}


def test_skipped_and_emptied_answers_are_none(desk):
    skipped = event("ANNOTATION_CREATED", 1, ["spam"], was_cancelled=True)
    assert ask(desk, "webhook", **skipped) == {"changed": 0}
    assert ask(desk, "webhook", **event("ANNOTATION_CREATED", 2)) == {"changed": 0}
    ask(desk, "webhook", **event("ANNOTATION_CREATED", 3, ["spam"]))
    assert ask(desk, "webhook", **event("ANNOTATION_UPDATED", 3)) == {"changed": 1}
    assert labels(desk) == {}
    assert ask(desk, "webhook", action="START_TRAINING", project={"id": 3}) == {"changed": 0}


def test_tasks_are_predicted_with_their_confidence(desk):
    tasks = [{"id": 1, "data": {"body": "win cash"}}, {"id": 2, "data": {"body": "team"}}]
    sent = {"tasks": tasks, "label_config": CONFIG, "project": "3.1", "params": {"context": None}}
    assert ask(desk, "predict", **sent)["results"] == [
        {"model_version": "mail-0", "score": 0.0, "result": []} for _ in tasks
    ]
    for id, choice, body in ((1, "spam", "win cash"), (2, "work", "team lunch")):
        ask(desk, "webhook", **event("ANNOTATION_CREATED", id, [choice], body=body))
    answer = ask(desk, "predict", **sent)
    assert answer["model_version"] == "mail-2"
    for found, row, choice in zip(
        answer["results"], ("win cash", "team"), ("spam", "work"), strict=True
    ):
        plain = desk.post("/api/models/mail/predict", json={"row": row}).json()
        assert found["score"] == plain["confidence"] and plain["label"] == choice
        assert found["result"] == [
            {
                "from_name": "folder",
                "to_name": "shown",
                "type": "choices",
                "value": {"choices": [choice]},
            }
        ]


def test_several_choices_are_label_sets(tmp_path):
    with Journal(tmp_path / "desk.db") as journal:
        journal.open("mail", OnlineMultilabelClassifier()).learn_one("win cash", ["a", "b"])
    with served(tmp_path / "desk.db") as client:
        ask(client, "webhook", **event("ANNOTATION_CREATED", 1, ["a", "c"], config=SETS))
        assert labels(client)["label-studio-1"] == ["a", "c"]
        sent = {"tasks": [{"data": {"body": "win cash"}}], "label_config": SETS}
        (found,) = ask(client, "predict", **sent)["results"]
        assert {"a"} <= {*found["result"][0]["value"]["choices"]}


def test_answers_that_the_model_refuses_are_refused(tmp_path):
    with Journal(tmp_path / "desk.db") as journal:
        journal.open("mail", OnlineClassifier()).learn_one([1.0, 2.0], "spam")
    with served(tmp_path / "desk.db") as client:
        said = ask(client, "webhook", 422, **event("ANNOTATION_CREATED", 1, ["spam"]))
        assert " " in said["error"] and client.get("/api/models/mail").json()["rows"] == 1


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("<View><Text name='a' value='$b'/></View>", "has no Choices whose toName"),
        ("<View><Choices name='a' toName='b'/></View>", "has no Choices whose toName"),
        ("<View>", "is no XML"),
    ],
)
def test_other_interfaces_are_refused(desk, config, said):
    assert said in ask(desk, "setup", 422, schema=config)["error"]


def test_entities_that_grow_are_refused():
    ten = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 10))
    bomb = f'<!DOCTYPE v [<!ENTITY e0 "{"x" * 100}">{ten}]><View a="&e9;"/>'
    with pytest.raises(Refusal, match="is no XML"):
        Interface.of(bomb)


def test_wrong_tasks_and_events_are_sentences(desk):
    sent = {"tasks": [{"data": {"text": "cash"}}], "label_config": CONFIG}
    assert "no field 'body'" in ask(desk, "predict", 422, **sent)["error"]
    wrong = event("ANNOTATION_CREATED", "one", ["spam"])
    assert "got `str` - at `$.annotation.id`" in ask(desk, "webhook", 422, **wrong)["error"]
    for result in (5, {"a": 1}, ["x"], [{"value": "v"}]):
        odd = event("ANNOTATION_CREATED", 1) | {"annotation": {"id": 1, "result": result}}
        assert "annotation" in ask(desk, "webhook", 422, **odd)["error"]
    for choices in ("spam", {"a": 1}, 7):
        odd = event("ANNOTATION_CREATED", 1, choices)
        assert "choices: Expected `array`" in ask(desk, "webhook", 422, **odd)["error"]
    assert "action" in ask(desk, "webhook", 422, project={})["error"]
    assert labels(desk) == {}


def test_a_token_is_the_password_of_basic_authentication(tmp_path):
    tokens = Tokens.of_text(TOKENS)
    with served(tmp_path / "desk.db", tokens=tokens) as client:

        def answer(secret, name="anybody"):
            pair = base64.b64encode(f"{name}:{secret}".encode()).decode()
            return client.get("/api/models", headers={"authorization": f"Basic {pair}"})

        assert answer(SECRETS["read"]).is_success
        error_of(answer("a wrong password"), 401)
        wrong = {"authorization": "Basic no base64 at all"}
        error_of(client.get("/api/models", headers=wrong), 401)


OTHERS = """
<View>
  <Header value="$title"/>
  <Rating name="stars" toName="shown"/>
  <Choices toName="shown"/>
  <Choices name="lost" toName="nothing"/>
  <Text name="shown" value="$body"/>
  <Choices name="folder" toName="shown,title" choice="single"/>
  <Choices name="mood" toName="shown"/>
</View>
"""


def test_the_first_choices_of_a_field_are_the_answer_whatever_else_there_is(desk):
    assert Interface.of(OTHERS) == Interface("folder", "shown", "body", False)
    assert Interface.of(OTHERS.replace("single", "multiple")).is_set
    asked = event("ANNOTATION_CREATED", 1, ["spam"], config=OTHERS)
    folder = asked["annotation"]["result"][0]
    stars = {"from_name": "folder", "type": "rating", "value": {"rating": 3}}
    mood = {"from_name": "mood", "type": "choices", "value": {"choices": ["glad"]}}
    asked["annotation"]["result"] = [stars, mood, folder]
    assert ask(desk, "webhook", **asked) == {"changed": 1}
    asked["annotation"] = {"id": 2, "result": [stars, mood]}
    assert ask(desk, "webhook", **asked) == {"changed": 0}
    assert labels(desk) == {"label-studio-1": "spam"}


@pytest.mark.parametrize("task", [{}, {"data": None}, {"data": ["body"]}, {"data": {}}])
def test_a_task_without_its_field_is_refused(desk, task):
    said = ask(desk, "predict", 422, tasks=[task], label_config=CONFIG)["error"]
    assert said == "a task has no field 'body', which the choices need"


def test_no_choice_of_several_is_the_empty_set(tmp_path):
    with served(tmp_path / "desk.db") as client:
        sets = {"name": "mail", "estimator": "OnlineMultilabelClassifier"}
        client.post("/api/models", json=sets)
        ask(client, "webhook", **event("ANNOTATION_CREATED", 1, ["a"], config=SETS))
        assert ask(client, "webhook", **event("ANNOTATION_CREATED", 2, config=SETS)) == {
            "changed": 1
        }
        assert labels(client) == {"label-studio-1": ["a"], "label-studio-2": []}
