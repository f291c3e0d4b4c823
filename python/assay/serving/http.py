"""HTTP by ASGI: bodies of limited size and patience, answers, and requests whose clients go away."""
from __future__ import annotations

import asyncio
import zlib
from typing import Any, Awaitable, Callable, Dict, List, Mapping, MutableMapping, Optional, Sequence, Tuple, TypeVar

from .errors import Malformed, RequestError, TooLarge, TooSlow
from .wire import dumps

T = TypeVar("T")
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

# A body that is too large is read to its end, not kept, so that the client gets to read why it is refused: as long as
# it is not larger than so many times the limit, and there so soon.
DISCARD_TIMES, DISCARD_S = 16, 10.0
JOINED = 1 << 20  # bytes of an answer up to which its parts are sent as one


class Disconnected(Exception):
    """The client has gone."""


def headers_of(scope: Scope) -> Dict[str, str]:
    """Names in lower case."""
    return {k.decode("latin-1").lower(): v.decode("latin-1") for k, v in scope["headers"]}


async def read_body(receive: Receive, headers: Mapping[str, str], limit: int, patience_s: float) -> Any:
    """The body, unpacked if it is compressed. Errors: TooLarge, TooSlow, Malformed, Disconnected."""
    declared = headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit:
        await _discard(receive, int(declared), limit)
        raise TooLarge("the body has %s bytes; %d are allowed" % (declared, limit))
    try:  # one patience for all: a body comes in dozens of messages
        body = await asyncio.wait_for(_whole(receive, limit), patience_s)
    except asyncio.TimeoutError:
        raise TooSlow("the body was not there after %g s" % patience_s) from None
    return _unpacked(body, headers.get("content-encoding", ""), limit)


async def _whole(receive: Receive, limit: int) -> bytes:
    chunks: List[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected()
        chunk, more = message.get("body", b""), message.get("more_body", False)
        size += len(chunk)
        if size > limit:
            if more:
                await _discard(receive, size, limit)
            raise TooLarge("the body has more than %d bytes" % limit)
        chunks.append(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


async def _discard(receive: Receive, size: int, limit: int) -> None:
    async def to_the_end() -> None:
        read = 0
        while read <= DISCARD_TIMES * limit:
            message = await receive()
            read += len(message.get("body", b""))
            if message["type"] == "http.disconnect" or not message.get("more_body", False):
                return

    if size <= DISCARD_TIMES * limit:
        try:
            await asyncio.wait_for(to_the_end(), DISCARD_S)
        except asyncio.TimeoutError:
            pass


def _unpacked(body: Any, encoding: str, limit: int) -> Any:
    if encoding in ("", "identity"):
        return body
    if encoding not in ("gzip", "deflate"):
        raise Malformed("content-encoding '%s' is not supported" % encoding)
    unpacker = zlib.decompressobj(31 if encoding == "gzip" else 15)
    try:
        plain = unpacker.decompress(body, limit + 1)
    except zlib.error as e:
        raise Malformed("the body is not %s: %s" % (encoding, e)) from None
    if len(plain) > limit:
        raise TooLarge("the body has more than %d bytes when it is unpacked" % limit)
    if not unpacker.eof:
        raise Malformed("the compressed body is not whole")
    return plain


async def while_connected(receive: Receive, work: Awaitable[T]) -> T:
    """The result of work, which is cancelled when the client goes. Errors: Disconnected; those of work."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_disconnect(receive))
    try:
        await asyncio.wait([task, gone], return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise Disconnected()
        return task.result()
    finally:
        for one in (task, gone):
            if not one.done():
                one.cancel()


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def send_parts(send: Send, status: int, headers: Sequence[Tuple[str, str]], parts: Sequence[Any]) -> None:
    await send({"type": "http.response.start", "status": status,
                "headers": [(k.encode("latin-1"), v.encode("latin-1")) for k, v in headers]})
    if sum(len(p) for p in parts) <= JOINED:
        parts = [b"".join(parts)]  # a system call, and not one for each
    for n, part in enumerate(parts):
        await send({"type": "http.response.body", "body": bytes(part), "more_body": n + 1 < len(parts)})


async def send_json(send: Send, status: int, value: Any, extra: Optional[Sequence[Tuple[str, str]]] = None) -> None:
    body = dumps(value)
    await send_parts(send, status, [("content-type", "application/json"), ("content-length", str(len(body)))]
                     + list(extra or []), [body])


async def send_error(send: Send, error: RequestError) -> None:
    """Bodies that were not read to their end close the connection."""
    extra = [("connection", "close")] if isinstance(error, (TooLarge, TooSlow)) else []
    if error.status in (429, 503):
        extra.append(("retry-after", "1"))
    await send_json(send, error.status, {"error": str(error)}, extra)
