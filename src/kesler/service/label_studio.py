"""The protocol by which Label Studio asks a model, and tells it what people have answered.

Its labelling interface has the choices of a class and the field of a task that is the row::

    <View>
      <Text name="text" value="$body"/>
      <Choices name="team" toName="text"><Choice value="billing"/><Choice value="cards"/></Choices>
    </View>
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from xml.etree import ElementTree

from starlette.responses import Response

from kesler.service import rows_in
from kesler.service.answers import Wanted
from kesler.service.api import Call, Json, answers_of, done, few
from kesler.service.bodies import (
    LabelStudioAnnotation,
    LabelStudioEvent,
    LabelStudioSetup,
    LabelStudioTasks,
    converted,
)
from kesler.service.names import shown_name
from kesler.service.refusals import NOT_VALID, Refusal
from kesler.service.rows_in import Taught
from kesler.service.served import Served

LEARNT, CHANGED, DELETED = "ANNOTATION_CREATED", "ANNOTATION_UPDATED", "ANNOTATIONS_DELETED"
"""The events that change the model; all others change nothing."""


@dataclass(frozen=True, slots=True)
class Interface:
    """What a labelling interface says of a task.

    Parameters
    ----------
    choices : str
        The name of the tag whose choice is the answer.
    shown : str
        The name of the tag that shows the row.
    field : str
        The field of a task's data that is the row.
    is_set : bool
        Whether an answer is a list of classes.
    """

    choices: str
    shown: str
    field: str
    is_set: bool

    @classmethod
    def of(cls, config: str) -> Interface:
        """Read the XML of an interface: its first choices of something that a field shows.

        Raises
        ------
        Refusal
            With status 422, if it is no XML or has no such choices.
        """
        tags = _tags(config)
        fields = {
            tag.get("name"): tag.get("value", "")[1:]
            for tag in tags
            if tag.get("value", "").startswith("$")
        }
        for tag in tags:
            shown = tag.get("toName", "").partition(",")[0]
            if tag.tag == "Choices" and tag.get("name") and fields.get(shown):
                is_set = tag.get("choice") == "multiple"
                return cls(tag.get("name", ""), shown, fields[shown], is_set)
        raise Refusal(
            NOT_VALID,
            "the labelling interface has no Choices whose toName is a tag with a value such as "
            "$text: use the template of text classification",
        )

    def row(self, task: Mapping[str, Any]) -> Any:
        """Return the row of a task; raise unless its data has one."""
        data = task.get("data")
        if not isinstance(data, Mapping) or self.field not in data:
            raise Refusal(NOT_VALID, f"a task has no field {self.field!r}, which the choices need")
        return rows_in.row(data[self.field])

    def answer(self, annotation: LabelStudioAnnotation) -> Any:
        """Return the class, or the classes, of an annotation; None if it says none."""
        if annotation.was_cancelled:
            return None
        for each in annotation.result or []:
            if each.from_name == self.choices and each.type == "choices":
                choices = converted(each.value.get("choices", []), list[Any], "choices")
                found = [rows_in.label(name) for name in choices]
                return found if self.is_set else found[0] if found else None
        return [] if self.is_set else None

    def prediction(self, answer: Mapping[str, Any], version: str) -> dict[str, Any]:
        """Return what a model says of a row, as Label Studio shows it."""
        found, label = [], answer["label"]
        if label is not None:
            choices = [shown_name(each) for each in (label if self.is_set else [label])]
            found = [
                {
                    "from_name": self.choices,
                    "to_name": self.shown,
                    "type": "choices",
                    "value": {"choices": choices},
                }
            ]
        return {"model_version": version, "score": answer["confidence"] or 0.0, "result": found}


def _tags(config: str) -> list[ElementTree.Element]:
    try:
        return [*ElementTree.fromstring(config).iter()]
    except ElementTree.ParseError as error:
        raise Refusal(NOT_VALID, f"the labelling interface is no XML ({error})") from None


# ---- handlers -----------------------------------------------------------------------------------


async def health(call: Call) -> Response:
    """Say that the model can be asked."""
    return Json({"status": "UP", "model_class": type(call.served.estimator).__name__})


async def setup(call: Call) -> Response:
    """Check the labelling interface of a project."""
    body, served = await call.body(LabelStudioSetup), call.served
    Interface.of(body.schema)
    return Json({"model_version": _version(served)})


async def predict(call: Call) -> Response:
    """Predict tasks; the score is the confidence, by which Label Studio can order them."""
    body, served = await call.body(LabelStudioTasks), call.served
    few(call, body.tasks)
    interface, version = Interface.of(body.label_config), _version(served)
    rows = [interface.row(task) for task in body.tasks]
    answers = await call.thread(answers_of, served, rows, Wanted())
    results = [interface.prediction(each, version) for each in answers]
    return Json({"results": results, "model_version": version})


async def webhook(call: Call) -> Response:
    """Learn, change or take back what an event says; all others change nothing."""
    event, served, by = await call.body(LabelStudioEvent), call.served, call.who.name
    if event.action == DELETED:
        deleted = dict.fromkeys(map(_id, event.annotations))
        ids = [id for id in deleted if served.answered(id)]
        outcomes = await done(served.change(partial(served.undo_several, ids, by)))
        return Json({"changed": len(outcomes)})
    if event.action not in (LEARNT, CHANGED) or event.annotation is None:
        return Json({"changed": 0})
    return await _answered(served, event, event.annotation, by)


async def _answered(
    served: Served, event: LabelStudioEvent, annotation: LabelStudioAnnotation, by: str
) -> Response:
    """Learn the answer of an annotation, or change or take back the one it had before."""
    interface = Interface.of(event.project.label_config)
    id, answer = _id(annotation), interface.answer(annotation)
    before = served.answered(id)
    if before is None and answer is None:
        return Json({"changed": 0})
    if before is None:
        row = Taught(interface.row(event.task), answer, id)
        (outcome,) = await done(served.learn([row], by))
    else:
        change = partial(served.undo, id, by)
        if answer is not None:
            change = partial(served.relabel, id, answer, by)
        outcome = await done(served.change(change))
    if isinstance(outcome, Refusal):
        raise outcome
    return Json({"changed": int(outcome["changed"])})


def _version(served: Served) -> str:
    """Return the name of the state of a model."""
    return f"{served.name}-{served.estimator.n_trials_ if served.estimator.n_known_ else 0}"


def _id(annotation: LabelStudioAnnotation) -> str:
    """Return the id of an annotation in the history."""
    return f"label-studio-{annotation.id}"
