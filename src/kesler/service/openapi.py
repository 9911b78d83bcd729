"""The OpenAPI document of the endpoints."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

import kesler
from kesler.service.bodies import Failure

if TYPE_CHECKING:
    from kesler.service.api import Endpoint

JSON, LINES = "application/json", "application/x-ndjson"
FILE, FORM = "application/octet-stream", "multipart/form-data"
PLACE = "#/components/schemas/{name}"


def document(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """Return the OpenAPI document, as JSON can hold it.

    Parameters
    ----------
    endpoints : iterable of Endpoint

    Examples
    --------
    >>> document([])["openapi"]
    '3.1.0'
    """
    known = list(endpoints)
    kinds = {Failure: None} | {kind: None for each in known for kind in _types_of(each)}
    schemas, components = msgspec.json.schema_components(kinds, ref_template=PLACE)
    schema_of = dict(zip(kinds, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for each in known:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each, schema_of)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Kesler", "version": kesler.__version__},
        "paths": paths,
        "security": [{"token": []}],
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": components,
        },
    }


def _types_of(each: Endpoint) -> list[type[Any]]:
    """Return the types of the bodies of an endpoint; files have none."""
    sent = [] if each.body is None else [each.body]
    return sent if isinstance(each.returns, str) else [*sent, *each.returns]


def _content(each: Endpoint, schema_of: dict[Any, Any]) -> dict[str, Any]:
    """Return what the answers of an endpoint are, by their media type."""
    if isinstance(each.returns, str):
        return {each.returns: {}}
    schemas = [schema_of[kind] for kind in each.returns]
    return {JSON: {"schema": {"oneOf": schemas} if len(schemas) > 1 else schemas[0]}}


def _operation(each: Endpoint, schema_of: dict[Any, Any]) -> dict[str, Any]:
    """Return an endpoint as an operation."""
    found: dict[str, Any] = {
        "operationId": each.name,
        "summary": each.summary,
        "description": f"Needs a token to {each.role}.",
        "parameters": [*_in_path(each), *_in_query(each)],
        "responses": {
            "201" if each.name == "create" else "200": {
                "description": each.returned,
                "content": _content(each, schema_of),
            },
            "default": {
                "description": "A sentence that says what was wrong.",
                "content": {JSON: {"schema": schema_of[Failure]}},
            },
        },
    }
    if each.body is not None:
        formats = (JSON, LINES) if each.takes_lines else (JSON,)
        content = {name: {"schema": schema_of[each.body]} for name in formats}
        found["requestBody"] = {"required": True, "content": content}
    if each.files:
        found["requestBody"] = {"required": True, "content": _content_of_files(each)}
    return found


def _content_of_files(each: Endpoint) -> dict[str, Any]:
    """Return a file as the body, or files in a form, whose other fields are the options."""
    options = {
        name: msgspec.json.schema(kind) | {"description": words}
        for name, (kind, words) in each.query.items()
    }
    files = {
        name: {"type": "string", "format": "binary", "description": words}
        for name, words in each.files.items()
    }
    required = [next(iter(files))]
    form = {"type": "object", "properties": files | options, "required": required}
    return {FILE: {}, FORM: {"schema": form}}


def _in_path(each: Endpoint) -> list[dict[str, Any]]:
    names = re.findall(r"{(\w+)}", each.path)
    schema = {"type": "string"}
    return [{"name": name, "in": "path", "required": True, "schema": schema} for name in names]


def _in_query(each: Endpoint) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "query", "description": words, "schema": msgspec.json.schema(kind)}
        for name, (kind, words) in each.query.items()
    ]
