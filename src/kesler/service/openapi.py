"""The OpenAPI document of the endpoints."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import kesler

if TYPE_CHECKING:
    from kesler.service.api import Endpoint


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
    paths: dict[str, dict[str, Any]] = {}
    for each in endpoints:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Kesler", "version": kesler.__version__},
        "paths": paths,
        "security": [{"token": []}],
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {
                "Error": {
                    "type": "object",
                    "properties": {"error": {"type": "string"}, "status": {"type": "integer"}},
                }
            },
        },
    }


def _operation(each: Endpoint) -> dict[str, Any]:
    """Return an endpoint as an operation."""
    found: dict[str, Any] = {
        "operationId": each.name,
        "summary": each.summary,
        "description": f"Needs a token to {each.role}.",
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in re.findall(r"{(\w+)}", each.path)
        ],
        "responses": {
            "200": {"description": each.returns},
            "default": {
                "description": "A sentence that says what was wrong.",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
            },
        },
    }
    if each.method == "GET":
        found["parameters"] += [
            {"name": name, "in": "query", "description": words, "schema": {"type": "string"}}
            for name, words in each.fields.items()
        ]
    elif each.fields:
        found["requestBody"] = {"required": True, "content": _content(each)}
    return found


def _content(each: Endpoint) -> dict[str, Any]:
    properties = {name: {"description": words} for name, words in each.fields.items()}
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    found = {"application/json": {"schema": schema}}
    if each.takes_lines:
        found["application/x-ndjson"] = {"schema": schema}
    return found
