"""Connections: how long one may wait for its client, and how many there are."""

from __future__ import annotations

import asyncio
from typing import Any


def protocol_of(patience: float, most: int) -> Any:
    """Return the protocol of the connections of a server.

    Parameters
    ----------
    patience : float
        The seconds in which a client has to send the headers of a request that it has begun, and
        to take the answer up once so much of it waits that the server stops sending.
    most : int
        The most connections. For a new one, that is closed which has sent nothing for longest, but
        for those whose request has come whole and is being answered.
    """
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    recent: dict[Patient, None] = {}  # those that have sent something last are at the end

    class Patient(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
        """A connection that ends if its client does not go on with what it has begun."""

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            self._headers: asyncio.TimerHandle | None = None
            self._answer: asyncio.TimerHandle | None = None
            recent[self] = None
            self._await_headers()
            if len(recent) > most:
                oldest = next(each for each in recent if not each.is_answered)
                del recent[oldest]
                oldest.transport.abort()

        def connection_lost(self, error: Exception | None) -> None:
            recent.pop(self, None)
            _stop(self._headers)
            _stop(self._answer)
            super().connection_lost(error)

        def data_received(self, data: bytes) -> None:
            if self in recent:
                recent[self] = recent.pop(self)
            super().data_received(data)
            self._await_headers()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._answer = self.loop.call_later(patience, self.transport.abort)

        def resume_writing(self) -> None:
            super().resume_writing()
            _stop(self._answer)

        def timeout_keep_alive_handler(self) -> None:
            self.transport.abort()  # to close it would wait until the client has read all

        @property
        def is_answered(self) -> bool:
            """Whether a request has come whole, and its answer has not been sent."""
            return self._is_asked and not self.cycle.more_body

        @property
        def _is_asked(self) -> bool:
            """Whether the headers of a request have come, and its answer has not been sent."""
            return self.cycle is not None and not self.cycle.response_complete

        def _await_headers(self) -> None:
            """Let the time for headers run from their first byte, however slowly they come."""
            if self._is_asked:
                _stop(self._headers)
                self._headers = None
            elif self._headers is None:
                self._headers = self.loop.call_later(patience, self._end_unless_asked)

        def _end_unless_asked(self) -> None:
            self._headers = None
            if not self._is_asked:
                self.transport.abort()

    return Patient


def _stop(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
