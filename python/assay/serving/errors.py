"""Why a request is not answered: one class a reason, with the status that HTTP has for it."""
from __future__ import annotations

from typing import Dict, Type


class RequestError(Exception):
    """A request that gets no answer.

    status   of HTTP
    reason   one word, the label of assay_request_failures_total
    """

    status = 500
    reason = "internal"


class Malformed(RequestError):
    """What came is no request for this model: a name, a type, a shape, a number of bytes."""

    status, reason = 400, "malformed"


class NotFound(RequestError):
    """There is no such model or version."""

    status, reason = 404, "not_found"


class TooSlow(RequestError):
    """The request did not arrive in time."""

    status, reason = 408, "slow"


class TooLarge(RequestError):
    """The request has more bytes than are allowed."""

    status, reason = 413, "too_large"


class Overloaded(RequestError):
    """The queue is full."""

    status, reason = 429, "overloaded"


class Failed(RequestError):
    """The run failed, and not for what the request says."""

    status, reason = 500, "failed"


class Unavailable(RequestError):
    """The model is not loaded yet, or ends."""

    status, reason = 503, "unavailable"


class TimedOut(RequestError):
    """The answer would come after the request's deadline."""

    status, reason = 504, "timeout"


# By the names that gRPC has for them.
GRPC: Dict[Type[RequestError], str] = {
    Malformed: "INVALID_ARGUMENT", NotFound: "NOT_FOUND", TooSlow: "DEADLINE_EXCEEDED", TooLarge: "RESOURCE_EXHAUSTED",
    Overloaded: "RESOURCE_EXHAUSTED", Failed: "INTERNAL", Unavailable: "UNAVAILABLE", TimedOut: "DEADLINE_EXCEEDED"}
