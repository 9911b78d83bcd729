"""The bodies of requests and answers: types from which their checks and their schemas follow."""

from __future__ import annotations

import codecs
import re
from typing import Annotated, Any, TypeVar, cast

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field

from kesler.service.refusals import BAD_REQUEST, NOT_VALID, Refusal
from kesler.state.uncertainty import COVERAGES

DEFAULT = "OnlineClassifier"
KINDS = (DEFAULT, "Ensemble", "OnlineMultilabelClassifier", "OnlineOrdinalClassifier")
"""The estimators of which models can be created by their names."""

MOST_CHARACTERS = 200  # of a label, an id or a subject
MOST_FEATURES = 1000

# Limits that `rows_in` checks, since spaces around a text do not count.
_TEXT = {"minLength": 1, "maxLength": MOST_CHARACTERS}
_ESTIMATOR = Meta(description=f"one of {', '.join(KINDS)}", extra_json_schema={"enum": [*KINDS]})

Row = Annotated[
    str | list[int | float] | dict[str, Any],
    Meta(description="a text, a list of numbers, or an object of names and values"),
]
OneOrMore = str | int | float | bool | list[str | int | float | bool]
Label = Annotated[
    OneOrMore,
    Meta(description="a class: a text, a number or a truth value, or a list of these for several"),
]
Id = Annotated[str, Meta(description="the id of a row or event", extra_json_schema=_TEXT)]
OwnId = Annotated[
    str | None,
    Meta(description="an id of your own, by which a repeated request changes nothing"),
]
Subject = Annotated[
    str | None, Meta(description="whom the row is about, so that their rows can be forgotten")
]
Count = Annotated[int, Meta(ge=0)]
Kinds = Annotated[
    list[str], Meta(description="which columns are of another kind now, a sentence for each")
]
Body = TypeVar("Body")


# ---- requests -----------------------------------------------------------------------------------


class Request(Struct, forbid_unknown_fields=True):
    """The body of a request, which has no other fields."""


class CreateRequest(Request):
    """A model to be created."""

    name: Annotated[str, Meta(description="1 to 64 letters, digits, _ and -")]
    estimator: Annotated[str, _ESTIMATOR] = DEFAULT
    settings: Annotated[
        dict[str, Any],
        Meta(description="an object of its parameters, empty for the default"),
    ] = {}


class PredictRequest(Request):
    """A row to be predicted, or several, and what is wanted beside the class."""

    row: Row | UnsetType = UNSET
    rows: Annotated[list[Row], Meta(description="several rows, in place of row")] | UnsetType = (
        UNSET
    )
    coverage: Annotated[
        Annotated[float, Meta(ge=COVERAGES[0], lt=1)] | None,
        Meta(
            description="the share of rows whose set contains the right class, from "
            f"{COVERAGES[0]} to below 1: adds set and may_be_new"
        ),
    ] = None
    probabilities: Annotated[
        bool | Annotated[int, Meta(ge=0, le=MOST_FEATURES)],
        Meta(description="the number of the most probable classes to list, true for all"),
    ] = 0
    explain: Annotated[
        int, Meta(ge=0, le=MOST_FEATURES, description="the number of reasons of an explanation")
    ] = 0
    separator: Annotated[
        Annotated[str, Meta(min_length=1, max_length=MOST_CHARACTERS)] | None,
        Meta(
            description="of classes that are paths, such as taxa, what separates their names, such "
            "as ;: adds path"
        ),
    ] = None
    min_confidence: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        Meta(
            description="the least probability of what is answered: with separator, path ends at a "
            "node of at least this one (0.9 if none is given); else label is null below"
        ),
    ] = None


class TaughtRow(Request):
    """A row with its answer."""

    row: Row
    answer: Label
    id: OwnId = None
    subject: Subject = None


class LearnRequest(Request):
    """A row to be learnt with its answer, or several."""

    row: Row | UnsetType = UNSET
    answer: Label | UnsetType = UNSET
    id: OwnId = None
    subject: Subject = None
    rows: (
        Annotated[list[TaughtRow], Meta(description="several objects with these fields")]
        | UnsetType
    ) = UNSET


class UndoRequest(Request):
    """An event to be taken back, or several."""

    id: Id | UnsetType = UNSET
    ids: Annotated[list[Id], Meta(description="several events, in place of id")] | UnsetType = UNSET


class RelabelRequest(Request):
    """A row that gets another answer."""

    id: Id
    answer: Annotated[OneOrMore, Meta(description="the right class")]


class RenameRequest(Request):
    """A class that gets a new name."""

    old: Annotated[OneOrMore, Meta(description="the class")]
    new: Annotated[OneOrMore, Meta(description="its new name")]


class MergeRequest(Request):
    """A class that ends, and the one that it is merged into."""

    source: Annotated[OneOrMore, Meta(description="the class that ends")]
    target: Annotated[OneOrMore, Meta(description="the class that its rows get")]


class ForgetRequest(Request):
    """A row, all rows about somebody or all rows of a class, of which one is named."""

    id: Annotated[str, Meta(description="a row")] | UnsetType = UNSET
    subject: Annotated[str, Meta(description="or all rows about somebody")] | UnsetType = UNSET
    label: Annotated[OneOrMore, Meta(description="or all rows of a class")] | UnsetType = field(
        default=UNSET, name="class"
    )


class DiscardRequest(Request):
    """Rows that wait for an answer: those of these ids, or those that contain a text."""

    ids: Annotated[list[str], Meta(description="rows")] | UnsetType = UNSET
    q: Annotated[str, Meta(description="or all that contain this text; all if it is empty")] | (
        UnsetType
    ) = UNSET


class LabelStudioSetup(Struct):
    """A project of Label Studio, which sends other fields as well."""

    schema: Annotated[str, Meta(description="its labelling interface, as XML")]


class LabelStudioTasks(Struct):
    """Tasks of Label Studio to be predicted, which sends other fields as well."""

    tasks: Annotated[
        list[dict[str, Any]], Meta(description="tasks, whose data has the field of the row")
    ]
    label_config: Annotated[str, Meta(description="the labelling interface, as XML")]


class LabelStudioProject(Struct):
    """The project of an event."""

    label_config: str = ""


class LabelStudioResult(Struct):
    """A part of an answer."""

    from_name: str = ""
    type: str = ""
    value: dict[str, Any] = {}


class LabelStudioAnnotation(Struct):
    """An answer, which has other fields as well."""

    id: int
    result: list[LabelStudioResult] | None = None
    was_cancelled: bool = False


class LabelStudioEvent(Struct):
    """An event in Label Studio, which sends other fields as well."""

    action: Annotated[str, Meta(description="what happened, such as ANNOTATION_CREATED")]
    project: Annotated[
        LabelStudioProject, Meta(description="the project with its label_config")
    ] = msgspec.field(default_factory=LabelStudioProject)
    task: Annotated[dict[str, Any], Meta(description="the task that was answered")] = {}
    annotation: Annotated[
        LabelStudioAnnotation | None, Meta(description="the answer, with its id and result")
    ] = None
    annotations: Annotated[
        list[LabelStudioAnnotation], Meta(description="the deleted answers")
    ] = []


# ---- answers ------------------------------------------------------------------------------------


class Failure(Struct):
    """What was wrong."""

    error: Annotated[str, Meta(description="a sentence: what was wrong, where, and what to do")]
    status: int


class Figures(Struct):
    """The sizes of a model and its mistakes so far."""

    name: str
    rows: Annotated[Count, Meta(description="rows learnt")]
    mistakes: Annotated[Count, Meta(description="rows predicted wrong before they were learnt")]
    n_classes: Annotated[Count, Meta(description="classes seen")]
    classes: Annotated[
        list[str], Meta(description="those of most rows, at most 100; /classes has all")
    ]
    waiting: Annotated[Count, Meta(description="rows that wait for an answer")]
    n_writes_waiting: Annotated[Count, Meta(description="changes that wait to be written")]


class Class(Struct):
    """A class that a model has seen."""

    label: Label
    name: Annotated[str, Meta(description="as pages show it: control characters are escapes")]


class Classes(Struct):
    """Classes in the order in which they were seen."""

    classes: list[Class]
    n_found: Annotated[Count, Meta(description="how many there are, those listed and the others")]


class Models(Struct):
    """The models that the token may use."""

    models: list[Figures]


class Deleted(Struct):
    """The name of the model that was deleted."""

    deleted: str


class Probability(Struct):
    """A class with its probability."""

    label: Label
    probability: Annotated[
        float, Meta(description="among the classes seen so far, which confidence does not assume")
    ]


class Node(Struct):
    """A node on the most probable path of classes that are paths."""

    path: str
    probability: Annotated[float, Meta(description="that the path of the row leads through it")]
    new: Annotated[
        float | None, Meta(description="the probability that this path has not been seen yet")
    ]


class Path(Struct):
    """The deepest node that is sure enough, where classes are paths."""

    path: Annotated[str, Meta(description="the names of its ranks; empty if none is sure enough")]
    probability: float
    nodes: Annotated[list[Node], Meta(description="all nodes of the most probable path")]


class Prediction(Struct):
    """What a model says of a row."""

    label: Annotated[
        Label | None,
        Meta(
            description="the class; null before the first is learnt, and below min_confidence "
            "without separator"
        ),
    ]
    confidence: Annotated[
        float | None, Meta(description="the probability that the most probable class is right")
    ]
    set: list[Label] | UnsetType = UNSET
    may_be_new: bool | UnsetType = UNSET
    probabilities: list[Probability] | UnsetType = UNSET
    explanation: dict[str, Any] | UnsetType = UNSET
    path: Path | UnsetType = UNSET


class Predictions(Struct):
    """What a model says of each row."""

    answers: list[Prediction]


class Receipt(Struct):
    """What a change did, once it is on the disk."""

    id: str | None
    changed: Annotated[bool, Meta(description="false where it had been done before")]
    n_rows: Annotated[Count, Meta(description="rows that it concerns")]
    kind: str | UnsetType = UNSET
    kinds: Kinds | UnsetType = UNSET


class Outcome(Struct, omit_defaults=True):
    """What became of a row: it was learnt, or there is an error."""

    id: str | UnsetType | None = UNSET
    changed: bool | UnsetType = UNSET
    n_rows: int | UnsetType = UNSET
    kind: str | UnsetType = UNSET
    kinds: Kinds | UnsetType = UNSET
    error: str | UnsetType = UNSET
    status: int | UnsetType = UNSET


class Outcomes(Struct):
    """What became of each row."""

    outcomes: list[Outcome]


class Event(Struct):
    """An event of the history."""

    number: int
    kind: str
    id: str
    time: float
    by: str | None
    taken_back: bool
    target: str | None
    answer: Label | None
    current: Label | None
    row: Row | None
    subject: str | None


class History(Struct):
    """Events, the last first."""

    events: list[Event]
    before: Annotated[
        int | None, Meta(description="the value of before for the next page, null on the last")
    ]


class Item(Struct):
    """A row that waits for an answer."""

    id: str
    row: Row
    subject: str | None
    arrived: Annotated[float, Meta(description="seconds since 1970")]
    title: Annotated[str | None, Meta(description="what is shown in place of the row")]
    note: Annotated[str | None, Meta(description="what a program has done with it")]


class Items(Struct):
    """Rows that wait for an answer."""

    items: list[Item]


class ImportReport(Struct):
    """How many rows of a file became what."""

    added: Count
    learnt: Count
    unchanged: Count
    refused: Count
    sentences: Annotated[list[str], Meta(description="why the first of them were refused")]
    ignored: Annotated[list[str], Meta(description="the columns that are not used, beside text")]
    notes: Annotated[list[str], Meta(description="how the file was read, such as its encoding")]


class LabelStudioHealth(Struct):
    """That a model can be asked, in the words of Label Studio."""

    status: str
    model_class: str


class LabelStudioVersion(Struct):
    """The state of a model by a name."""

    model_version: str


class LabelStudioPredictions(Struct):
    """What a model says of each task, in the form of Label Studio."""

    results: Annotated[
        list[dict[str, Any]], Meta(description="a result, and its confidence as score, for each")
    ]
    model_version: str


class LabelStudioChange(Struct):
    """How many rows an event concerned."""

    changed: Count


class DiscardReport(Struct):
    """How many waiting rows were removed."""

    discarded: Count


# ---- checks -------------------------------------------------------------------------------------


_DECODERS: dict[Any, Any] = {}


def _decoder(kind: Any) -> Any:
    """Return the decoder of a type, which is made once."""
    return _DECODERS.get(kind) or _DECODERS.setdefault(kind, msgspec.json.Decoder(kind))


def decoded(data: bytes, kind: type[Body], what: str = "the body") -> Body:
    """Return the body of this type that bytes hold.

    Raises
    ------
    Refusal
        With status 400 unless they are one JSON object in UTF-8 with finite numbers, and with
        status 422 if a field is missing, unknown or of another type.

    Examples
    --------
    >>> decoded(b'{"old": "spam", "new": "advertising"}', RenameRequest)
    RenameRequest(old='spam', new='advertising')
    >>> decoded(b'{"id": 17}', UndoRequest)
    Traceback (most recent call last):
    ...
    kesler.service.refusals.Refusal: the body: id is the id of a row or event: Expected `str`, got \
`int` - at `$.id`
    """
    try:
        try:
            data = data.removeprefix(codecs.BOM_UTF8)
            return cast(Body, _decoder(kind).decode(data))
        except msgspec.ValidationError as error:
            _decoder(Any).decode(data)  # raises unless what follows is JSON as well
            raise _refusal(kind, what, str(error)) from None
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise Refusal(BAD_REQUEST, f"{what} is no JSON in UTF-8 ({str(error)[:200]})") from None


def _refusal(kind: type[Any], what: str, sentence: str) -> Refusal:
    """Return a refusal that says what the field is that msgspec refuses, or which there are."""
    named = re.search(r"`\$\.(\w+)", sentence)
    if named is None and sentence.startswith("Expected `object`"):
        return Refusal(BAD_REQUEST, f"{what} is no JSON object: send {{...}}")
    fields = described(kind)
    if named is None:
        return Refusal(NOT_VALID, f"{what}: {sentence}: its fields are {', '.join(fields)}")
    words = fields.get(named[1])
    return Refusal(NOT_VALID, f"{what}: {f'{named[1]} is {words}: ' if words else ''}{sentence}")


def converted(value: Any, kind: Any, what: str) -> Any:
    """Return a value that JSON held as this type.

    Raises
    ------
    Refusal
        With status 422, if it is of another type.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise Refusal(NOT_VALID, f"{what}: {error}") from None


def described(kind: type[Any]) -> dict[str, str]:
    """Return the fields of a body, and what each is in words.

    Examples
    --------
    >>> described(UndoRequest)
    {'id': 'the id of a row or event', 'ids': 'several events, in place of id'}
    """
    schema = msgspec.json.schema_components([kind])[1][kind.__name__]
    return {name: each.get("description", "") for name, each in schema["properties"].items()}
