"""What is wrong with a model or a run, as ONNX Runtime's exceptions with its essential words."""
from __future__ import annotations

import re
from typing import Callable, Optional

from ..errors import AssayError, Cancelled, DeviceError, InvalidArgument as InvalidCall, NoMemory, Unsupported
from .errors import EPFail, Fail, InvalidArgument, InvalidGraph, NotImplemented, OrtException
from .modelfile import ModelFile

TERMINATED = "Exiting due to terminate flag being set to true."
# Operators whose complaints about elements of their inputs ONNX Runtime calls invalid arguments.
_BY_ELEMENTS = ("Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND", "SequenceAt", "OneHot")
_NODE = re.compile(r"node '(.*?)' \((?:([\w.]*)\.)?(\w+)\)")


def _unknown(found: re.Match[str], file: ModelFile) -> str:
    domain, op = found.group(1) or "", found.group(2)
    node = next((n for n in file.nodes if n.op == op and n.domain == domain), None)
    where = 'In Node, ("%s", %s, "%s", -1)' % (node.name if node else "", op, domain)
    version = file.opsets.get(domain)
    if version is None and not (domain == "" and "ai.onnx" in file.opsets):
        return "%s, Error No opset import for domain '%s'" % (where, domain)
    return "%s, Error No Op registered for %s with domain_version of %d" % (
        where, op, version if version is not None else file.opsets["ai.onnx"])


# What the library says of a model, the exception, and its words: a text or a function of what was found.
_Words = Callable[["re.Match[str]", ModelFile], str]
_MODELS: tuple[tuple[str, type[OrtException], _Words], ...] = (
    (r"\((?:([\w.]+)\.)?(\w+)\): unknown operator", InvalidGraph,
     lambda found, file: "This is an invalid model. " + _unknown(found, file)),
    (r"reads value '(.*?)' that nothing defines", InvalidArgument,
     lambda found, file: "Invalid model. Node input '%s' is not a graph input, initializer, or output of a previous node."
     % found.group(1)),
    (r"value '(.*?)' is declared as (.*?), but node '(.*?)' makes it (.*)", Fail,
     lambda found, file: "Type Error: Type (%s) of output arg (%s) of node (%s) does not match expected type (%s)."
     % (found.group(2), found.group(1), found.group(3), found.group(4))),
    (r"imports version \d+ of|ir_version is", Fail, lambda found, file: "Unsupported model version."),
)


def refused(e: AssayError, file: ModelFile, prefix: str) -> OrtException:
    """Why a session of a model cannot be made. prefix: what the message begins with."""
    text = str(e)
    for pattern, kind, words in _MODELS:
        found = re.search(pattern, text)
        if found:
            return kind.of("%s%s (%s)" % (prefix, words(found, file), text))
    if isinstance(e, DeviceError):
        return EPFail.of(prefix + text)
    if isinstance(e, Unsupported):
        return NotImplemented.of(prefix + text)
    if isinstance(e, (NoMemory, InvalidCall)):
        return Fail.of(prefix + text)
    return InvalidGraph.of("%sThis is an invalid model. %s" % (prefix, text))


def failure(e: AssayError, names: Optional[set[str]] = None) -> OrtException:
    """Why a run failed. names: of the model's nodes; others are the library's own."""
    text = str(e)
    if isinstance(e, Cancelled):
        return Fail.of(TERMINATED)
    if isinstance(e, DeviceError):
        return EPFail.of(text)
    found = _NODE.search(text)
    if not found:
        return Fail.of(text)
    kind = InvalidArgument if found.group(3) in _BY_ELEMENTS else Fail
    name = found.group(1) if names is None or found.group(1) in names else ""
    return kind.of("Non-zero status code returned while running %s node. Name:'%s' Status Message: %s"
                   % (found.group(3), name, text))
