"""The client of delivery: a message on standard input, its folder on standard output.

It imports nothing of Kesler, so that it starts in the time of Python alone, and is also a script:
``python3 -I -S .../kesler/mail/deliver.py``.
"""

import argparse
import os
import sys

__all__ = ["add_arguments", "main"]

MOST_BYTES = 1 << 18
"""Bytes of a message that are sent; the server reads no more."""
MOST_OF_ANSWER = 1 << 20
FAILED = 75
"""EX_TEMPFAIL of sysexits.h: mail servers keep the message, and try again."""
LONGEST_FOLDER = 200
WIDTH = 80  # of the help


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    add = parser.add_argument
    add("--url", default="http://127.0.0.1:8000", help="address of kesler serve (%(default)s)")
    add("--model", default="mail", help="name of the model (%(default)s)")
    add("--default", default="INBOX", metavar="FOLDER", help="folder where not sure (%(default)s)")
    add("--min-confidence", type=_share, default=0.9, metavar="P", help="%(default)s")
    add("--timeout", type=float, default=5.0, metavar="S", help="seconds to wait (%(default)s)")
    add(
        "--tempfail",
        action="store_true",
        help="where the server does not answer, print nothing and return 75, after which the "
        "mail server tries again, in place of printing the default folder",
    )


def _share(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise ValueError
    return value


def main(arguments: list[str] | None = None) -> int:
    """Print the folder of the message on standard input, and return the exit status.

    Parameters
    ----------
    arguments : list of str or None
        The options; None means those of the process. The environment variable KESLER_TOKEN holds
        a token of the server, if it needs one.

    Returns
    -------
    0 if a folder is printed. 75 if none is: after a wrong option, or, with ``--tempfail``, where
    the server does not answer. There is no other status, as mail servers return a message to its
    sender after most others.
    """
    parser = argparse.ArgumentParser(
        "kesler mail deliver", description=__doc__, formatter_class=_formatter
    )
    add_arguments(parser)
    try:
        options = parser.parse_args(arguments)
    except SystemExit as stop:
        return FAILED if stop.code else 0
    return run(options)


def _formatter(prog: str) -> argparse.HelpFormatter:
    """Return a formatter of a width of its own: the modules that ask the terminal load slowly."""
    return argparse.HelpFormatter(prog, width=WIDTH)


def run(options: argparse.Namespace) -> int:
    """Print the folder of the message on standard input, and return the exit status."""
    try:
        folder = _folder(options, _message(sys.stdin.buffer))
    except Exception as error:  # whatever goes wrong, no mail may be lost
        sys.stderr.write(f"kesler: {error or type(error).__name__}\n")
        if options.tempfail:
            return FAILED
        folder = options.default
    try:
        # Python would return 120 if it could not write at its end what it has buffered.
        os.write(1, os.fsencode(folder) + b"\n")
    except OSError:
        return FAILED
    return 0


def _message(file) -> bytes:  # type: ignore[no-untyped-def]
    """Read a whole message, since its writer may fail otherwise, and return its beginning."""
    message = file.read(MOST_BYTES)
    while file.read(MOST_BYTES):
        pass
    return bytes(message)


def _folder(options: argparse.Namespace, message: bytes) -> str:
    """Return the folder that the server predicts, or the default if it is not sure."""
    import json

    answer = json.loads(_answer(options, message))
    folder, confidence = answer["label"], answer["confidence"] or 0.0
    if not isinstance(folder, str) or confidence < options.min_confidence:
        return str(options.default)
    if not _is_safe(folder):
        raise ValueError(f"the folder {folder[:LONGEST_FOLDER]!a} cannot be a path: it is not used")
    return folder


def _is_safe(folder: str) -> bool:
    """Return whether a folder can be used in a rule of delivery, which makes a path of it."""
    parts = folder.split("/")
    return len(folder) <= LONGEST_FOLDER and folder.isprintable() and not {"", ".", ".."} & {*parts}


def _answer(options: argparse.Namespace, message: bytes) -> bytes:
    """Return the body of the answer of the server; raise OSError if it is none."""
    import socket
    import time

    scheme, _, place = options.url.rstrip("/").partition("://")
    host, _, port = place.rpartition(":")
    if scheme != "http" or not port.isdigit():
        raise OSError(f"{options.url} is no address of kesler serve: give http://HOST:PORT")
    end = time.monotonic() + options.timeout
    # As bytes, so that the names of hosts in other scripts, a slow import, are not looked at.
    address = host.strip("[]").encode(), int(port)
    with socket.create_connection(address, options.timeout) as server:
        server.sendall(_request(options.model, place, message))
        found = b""
        while len(found) < MOST_OF_ANSWER and (left := end - time.monotonic()) > 0:
            server.settimeout(left)
            piece = server.recv(1 << 16)
            if not piece:
                break
            found += piece
    head, _, body = found.partition(b"\r\n\r\n")
    if head[9:12] != b"200":
        raise OSError(f"the server says {head[9:40]!a} {body[:200]!a}")
    return body


def _request(model: str, host: str, message: bytes) -> bytes:
    if not (model.isascii() and model.replace("-", "").replace("_", "").isalnum()):
        raise OSError(f"{model!a} is no name of a model")
    token = os.environ.get("KESLER_TOKEN")
    lines = [
        f"POST /api/models/{model}/predict HTTP/1.1",
        f"Host: {host}",
        "Content-Type: message/rfc822",
        f"Content-Length: {len(message)}",
        "Connection: close",
        *([f"Authorization: Bearer {token}"] if token else []),
    ]
    return "\r\n".join([*lines, "", ""]).encode() + message


if __name__ == "__main__":
    sys.exit(main())
