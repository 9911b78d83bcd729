"""The pages: what is shown, and what their forms do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import MultiDict

from kesler.errors import KeslerError
from kesler.service import rows_in, views
from kesler.service.api import Call, done, forgotten, imported
from kesler.service.import_options import OPTIONS, ImportOptions
from kesler.service.limits import body_of
from kesler.service.names import frequent, labels_of, names_of, shown_name
from kesler.service.refusals import FORBIDDEN, NOT_VALID, Refusal, refusal_of
from kesler.service.rows_in import Taught
from kesler.service.served import Served
from kesler.service.uploads import File

FOLDER = Path(__file__).parent / "template"
PAGES = (
    ("", "Inbox"),
    ("classes", "Classes"),
    ("history", "History"),
    ("error", "Error"),
    ("files", "Files"),
)
MOST_FIELDS = views.EVENTS + 20
Shown = tuple[str, dict[str, Any]]


@cache
def environment() -> Any:
    """Return the templates; what they are given is escaped."""
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )


def rendered(template: str, **values: Any) -> str:
    """Return a page.

    Parameters
    ----------
    template : str
        The name of the template.
    values
        What it shows, beside the values that every page has.
    """
    common = {
        "model": None, "pages": PAGES, "page": None, "who": None, "has_tokens": False,
        "message": "", "failed": False,
    }  # fmt: skip
    text: str = environment().get_template(f"{template}.html.j2").render(**common | values)
    return text


# ---- forms --------------------------------------------------------------------------------------


async def form_of(call: Call) -> MultiDict:
    """Return the fields of a form; raise a refusal unless it is one."""
    data = await body_of(call.request, call.settings.max_import, call.settings.patience)
    try:
        pairs = parse_qsl(
            data.decode("utf-8"), keep_blank_values=True, max_num_fields=MOST_FIELDS,
            errors="strict",
        )  # fmt: skip
    except ValueError:
        raise Refusal(NOT_VALID, "the form cannot be read") from None
    return MultiDict(pairs)


async def acted(call: Call) -> str:
    """Do what a form asks for; return a sentence that says what was done."""
    if call.request.query_params.get("do") == "import":
        data = await body_of(call.request, call.settings.max_import, call.settings.patience)
        return await _imported(call, File(data), call.request.query_params)
    form = await form_of(call)
    action = _ACTIONS.get(form.pop("do", ""))
    if action is None:
        raise Refusal(NOT_VALID, "the form asks for nothing that this page does")
    said: str = await action(call, form)
    return said


async def _answer(call: Call, form: Mapping[str, str]) -> str:
    served, label = call.served, _usable(call, form.get("answer"))
    item = served.items.get(served.name, rows_in.named(form.get("id"), "id"))
    if item is None:
        raise Refusal(NOT_VALID, "the item does not wait any more: somebody has answered it")
    row = Taught(item.row, label, item.id, item.subject)
    (outcome,) = await done(served.learn([row], call.who.name))
    if isinstance(outcome, Refusal):
        raise outcome
    return f"Filed as {shown_name(label)}."


async def _undo(call: Call, form: Mapping[str, str]) -> str:
    served, id = call.served, rows_in.named(form.get("id"), "id")
    found = await done(served.change(lambda: served.undo(id, call.who.name)))
    if not found["changed"]:
        return "It had been taken back already."
    waits = ["The item waits again."] if found["kind"] == "learn" else []
    return " ".join(["Taken back.", *waits, *_kinds_in([found])])


async def _undo_several(call: Call, form: MultiDict) -> str:
    served, ids = call.served, [rows_in.named(each, "id") for each in form.getlist("ids")]
    if not ids:
        raise Refusal(NOT_VALID, "nothing is selected: select what is to be taken back")
    by = call.who.name
    found = await done(served.change(partial(served.undo_several, ids, by)))
    refused = [each for each in found if isinstance(each, Refusal)]
    changed = [each["kind"] for each in found if isinstance(each, dict) and each["changed"]]
    n_learnt, n_known = changed.count("learn"), len(found) - len(refused) - len(changed)
    said = _sentence([
        f"{len(changed)} taken back",
        f"{views.counted(n_learnt, 'item')} to be filed again" if n_learnt else "",
        f"{n_known} had been taken back already" if n_known else "",
        f"{len(refused)} refused ({refused[0]})" if refused else "",
    ])  # fmt: skip
    return " ".join([said, *_kinds_in(found)])


def _kinds_in(outcomes: Iterable[dict[str, Any] | Refusal]) -> list[str]:
    """Return the sentences about columns that are of another kind after some changes."""
    changed = [each for each in outcomes if isinstance(each, dict)]
    said = dict.fromkeys(kind for each in changed for kind in each.get("kinds", ()))
    return [f"{sentence[:1].upper()}{sentence[1:]}." for sentence in said]


def _sentence(said: Iterable[str]) -> str:
    sentence = ", ".join(filter(None, said))
    return f"{sentence[:1].upper()}{sentence[1:]}."


async def _relabel(call: Call, form: Mapping[str, str]) -> str:
    served, id = call.served, rows_in.named(form.get("id"), "id")
    label = _usable(call, form.get("answer"))
    await done(served.change(lambda: served.relabel(id, label, call.who.name)))
    return f"Corrected to {shown_name(label)}."


async def _rename(call: Call, form: Mapping[str, str]) -> str:
    served, old = call.served, _known(call, form.get("old"))
    new = rows_in.label(form.get("new"), "the new name")
    await done(served.change(lambda: served.rename(old, new, call.who.name)))
    return f"Renamed {shown_name(old)} to {shown_name(new)}."


async def _merge(call: Call, form: Mapping[str, str]) -> str:
    served = call.served
    source, target = (_known(call, form.get(name)) for name in ("source", "target"))
    await done(served.change(lambda: served.merge(source, target, call.who.name)))
    return f"Merged {shown_name(source)} into {shown_name(target)}."


def _known(call: Call, text: Any) -> Any:
    """Return the class that is shown or written like this, or that of a new name."""
    named = names_of(tuple(labels_of(call.served.estimator))).labels
    name = text.strip() if isinstance(text, str) else ""
    return named[name] if name in named else rows_in.label(text, "the class")


def _usable(call: Call, text: Any) -> Any:
    """Return the class of an answer; refuse one that the program cannot use that adds the items."""
    label, answers = _known(call, text), call.served.answers
    if answers is not None and label not in answers:
        raise Refusal(
            NOT_VALID,
            f"{shown_name(label)} cannot be chosen here: choose one of the classes that the page "
            "lists, or make it first where the items come from",
        )
    return label


async def _forget(call: Call, form: Mapping[str, str]) -> str:
    if not call.who.may("admin"):
        raise Refusal(FORBIDDEN, f"the token of {call.who.name} is to {call.who.role}, not admin")
    what, value = forgotten(form)
    value = _known(call, value) if what == "class" else value
    served = call.served
    found = await done(served.change(lambda: served.forget(what, value, call.who.name)))
    said = f"Forgotten: {views.counted(found['n_rows'], 'row')}."
    return " ".join([said, *_kinds_in([found])])


async def _discard(call: Call, form: Mapping[str, str]) -> str:
    q = rows_in.named(form.get("q"), "the text")
    n = await call.thread(call.served.items.discard, call.served.name, None, q)
    return f"Discarded: {views.counted(n, 'item')}."


async def _import(call: Call, form: Mapping[str, str]) -> str:
    lines = form.get("lines", "").encode("utf-8", "surrogatepass")
    return await _imported(call, File(lines), form)


async def _imported(call: Call, file: File, given: Mapping[str, str]) -> str:
    options = ImportOptions.of({name: given[name] for name in OPTIONS if name in given})
    report = await imported(call, file, options)
    return _sentence([
        f"{views.counted(report['added'], 'item')} added" if report["added"] else "",
        f"{views.counted(report['learnt'], 'row')} learnt" if report["learnt"] else "",
        f"{report['unchanged']} known already" if report["unchanged"] else "",
        f"{report['refused']} refused ({report['sentences'][0]})" if report["refused"] else "",
        f"not used: {', '.join(report['ignored'])}" if report["ignored"] else "",
        *report["notes"],
    ])  # fmt: skip


_ACTIONS: dict[str, Callable[[Call, MultiDict], Any]] = {
    "answer": _answer,
    "undo": _undo,
    "undo_several": _undo_several,
    "relabel": _relabel,
    "rename": _rename,
    "merge": _merge,
    "forget": _forget,
    "discard": _discard,
    "import": _import,
}


# ---- pages of a model ---------------------------------------------------------------------------


async def page_of(call: Call, page: str, message: str = "", *, failed: bool = False) -> str:
    """Return a page of a model.

    Parameters
    ----------
    call : Call
    page : str
        A key of `PAGES`.
    message : str, default ""
        A sentence to show.
    failed : bool, default False
        Whether it says that something was refused.
    """
    return str(await call.thread(_page, call, page, message, failed))


def _page(call: Call, page: str, message: str, failed: bool) -> str:
    served = call.served
    query = {key: value[:200] for key, value in call.request.query_params.items()}
    template, values = _SHOWN[page](call, query)
    return rendered(
        template,
        model=served.name,
        page=page,
        heading=dict(PAGES)[page],
        message=message,
        failed=failed,
        who=call.who,
        has_tokens=bool(len(call.settings.tokens)),
        may_teach=call.who.may("teach"),
        may_admin=call.who.may("admin"),
        **values,
    )


def _inbox(call: Call, query: Mapping[str, str]) -> Shown:
    served, q = call.served, query.get("q", "").strip()
    order = "useful" if query.get("order") == "useful" else "arrival"
    start = _number(query.get("start"))
    n_found = served.items.count(served.name, q)
    start = min(start, max(0, n_found - 1)) // views.PAGE * views.PAGE
    items = views.items_of(served, q, order, start)

    def link(at: int) -> str:
        given = {"q": q, "order": order, "start": str(at)}
        return f"/models/{served.name}?{urlencode(given)}"

    return "inbox", {
        "tiles": views.tiles_of(served),
        "q": q,
        "order": order,
        "items": items,
        "count": views.count_line("Items", n_found, start, len(items), q),
        **_listed(served),
        "is_closed": served.answers is not None,
        "last": views.last_answer(served, call.who.name),
        "older": link(start + views.PAGE) if start + views.PAGE < n_found else "",
        "newer": link(start - views.PAGE) if start else "",
    }


def _listed(served: Served) -> dict[str, Any]:
    """Return the classes that a page lists as suggestions, and how many others there are."""
    if (answers := served.answers) is not None:
        return {"classes": [shown_name(each) for each in answers], "n_others": 0}
    listed = frequent(served.estimator)
    n_others = len(labels_of(served.estimator)) - len(listed)
    return {"classes": [shown_name(each) for each in listed], "n_others": n_others}


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else 0


def _classes(call: Call, query: Mapping[str, str]) -> Shown:
    from kesler.service import figures

    found = figures.classes_of(call.served, query.get("q", "").strip(), _number(query.get("start")))
    is_closed = call.served.answers is not None
    return "classes", found | _listed(call.served) | {"is_closed": is_closed}


def _history(call: Call, query: Mapping[str, str]) -> Shown:
    served = call.served
    events, rest = served.history(views.EVENTS, _number(query.get("before")) or None)
    return "history", {
        "events": [views.event_of(served, each) for each in events],
        **_listed(served),
        "older": f"/models/{served.name}/history?before={rest}" if rest else "",
    }


def _error(call: Call, query: Mapping[str, str]) -> Shown:
    from kesler.service import figures

    return "error", figures.error_of(call.served)


def _files(call: Call, query: Mapping[str, str]) -> Shown:
    return "files", {}


_SHOWN: dict[str, Callable[[Call, Mapping[str, str]], Shown]] = {
    "": _inbox,
    "classes": _classes,
    "history": _history,
    "error": _error,
    "files": _files,
}


async def sent(call: Call, page: str) -> tuple[str, int]:
    """Do what a form of a page asks for; return the page after it, and its status."""
    try:
        message = await acted(call)
        return await page_of(call, page, message), 200
    except KeslerError as error:
        status = refusal_of(error).status
        return await page_of(call, page, str(error), failed=True), status


# ---- all models ---------------------------------------------------------------------------------


async def start_page(call: Call, failure: str = "") -> str:
    """Return the page of all models, with a sentence if one could not be created."""
    return str(await call.thread(_start_page, call, failure))


def _start_page(call: Call, failure: str) -> str:
    names = [name for name in call.registry.names() if call.who.may_use(name)]
    return rendered(
        "models",
        heading="Models",
        message=failure,
        failed=True,
        who=call.who,
        has_tokens=bool(len(call.settings.tokens)),
        models=[views.model_line(call.registry.find(name)) for name in names],
        may_create=call.who.may("admin"),
    )
