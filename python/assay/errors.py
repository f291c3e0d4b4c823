"""What goes wrong, as exceptions: one class for each code of include/assay/status.h."""
from __future__ import annotations

from typing import Dict, List, Optional, Type


class AssayError(Exception):
    """What libassay reported.

    code   "invalid_argument", "unsupported", "not_found", "corrupt", "no_memory", "device", "internal" or
           "cancelled"
    notes  what was being done, outermost first, such as "loading plan 'model.plan'"; str(error) has it, too
    """

    code = "internal"

    def __init__(self, message: str, notes: Optional[List[str]] = None) -> None:
        super().__init__(message)
        self.notes: List[str] = list(notes or [])


class InvalidArgument(AssayError, ValueError):
    """What was asked for makes no sense: a shape, a type, an option."""

    code = "invalid_argument"


class Unsupported(AssayError):
    """Legal, but Assay cannot do it."""

    code = "unsupported"


class NotFound(AssayError):
    """A file, a node, a value or an option that is not there."""

    code = "not_found"


class Corrupt(AssayError):
    """A file that is not what it should be."""

    code = "corrupt"


class NoMemory(AssayError, MemoryError):
    """There is not enough memory, or the library's limit was reached."""

    code = "no_memory"


class DeviceError(AssayError):
    """A device, a library or a command failed."""

    code = "device"


class InternalError(AssayError):
    """A mistake of Assay's."""

    code = "internal"


class Cancelled(AssayError):
    """The call was cancelled from elsewhere. Ctrl-C gives KeyboardInterrupt, not this."""

    code = "cancelled"


BY_CODE: Dict[int, Type[AssayError]] = {
    1: InvalidArgument, 2: Unsupported, 3: NotFound, 4: Corrupt, 5: NoMemory, 6: DeviceError, 7: InternalError,
    8: Cancelled}
