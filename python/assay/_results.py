"""What results of all kinds have: the library's reports, files, and how notebooks show them."""
from __future__ import annotations

import html as html_text
import importlib
import os
import threading
from dataclasses import fields, is_dataclass
from typing import Any, Callable, Dict, List, Optional, Union

from . import _library as L
from .errors import InvalidArgument, Unsupported

Path = Union[str, "os.PathLike[str]"]


class Result:
    """A result: its fields say what was found; json, text and html are the library's reports of it."""

    def _open(self, handle: L.Handle, report: Callable[[int, Any, Any], Optional[int]], rows: Optional[str] = None) -> None:
        """handle is kept; report(kind, write, user) makes a report; rows: the field that to_pandas() shows."""
        self._handle = handle
        self._report = report
        self._rows = rows
        self._lock = threading.Lock()

    def _make(self, kind: int) -> str:
        with self._lock:
            return L.collect(lambda write, user: self._report(kind, write, user))

    @property
    def json(self) -> str:
        """The whole result as JSON text; "schema" in it says what it is."""
        return self._make(L.JSON)

    @property
    def text(self) -> str:
        """The result in some lines, verdict first: what the command line prints."""
        return self._make(L.TEXT)

    @property
    def html(self) -> str:
        """The result as one HTML page that needs no network. Results without a page of their own have their text."""
        try:
            return self._make(L.PAGE)
        except (Unsupported, InvalidArgument):
            return "<!DOCTYPE html><meta charset=\"utf-8\"><pre>%s</pre>" % html_text.escape(self.text)

    def save(self, path: Path) -> None:
        """Writes the result; the path's end says as what: .json, .html, or .txt."""
        kinds = {".json": "json", ".html": "html", ".htm": "html", ".txt": "text"}
        name = os.fsdecode(path)
        end = os.path.splitext(name)[1].lower()
        if end not in kinds:
            raise InvalidArgument("'%s': a result is written to .json, .html or .txt" % name)
        write_file(name, getattr(self, kinds[end]))

    def _table(self) -> List[Dict[str, Any]]:
        """The rows of to_pandas(): columns by name."""
        return [plain(row) for row in (getattr(self, self._rows) if self._rows else [self])]

    def to_pandas(self) -> Any:
        """The result's rows as a pandas.DataFrame, a column for each field."""
        try:
            pandas: Any = importlib.import_module("pandas")
        except ImportError:
            raise ImportError("to_pandas() needs pandas: pip install assay-engine[pandas]") from None
        return pandas.DataFrame(self._table())

    def _repr_html_(self) -> str:
        """What a notebook shows: the page in a frame, which its styles and scripts stay in."""
        return ('<iframe srcdoc="%s" sandbox="allow-scripts" style="width:100%%;height:640px;border:1px solid #ccc">'
                "</iframe>" % html_text.escape(self.html, quote=True))

    def __str__(self) -> str:
        return self.text


def plain(row: Any) -> Dict[str, Any]:
    """The fields of a dataclass."""
    assert is_dataclass(row)
    return {f.name: getattr(row, f.name) for f in fields(row)}


def write_file(path: str, text: str) -> None:
    """Writes a text; readers of the path see the old file or the new one."""
    partial = "%s.%d.partial" % (path, os.getpid())
    try:
        with open(partial, "w", encoding="utf-8", errors="surrogateescape") as f:
            f.write(text)
        os.replace(partial, path)
    except BaseException:
        if os.path.exists(partial):
            os.unlink(partial)
        raise


def listed(value: Union[None, str, List[str]]) -> List[str]:
    """Several texts, of which one may stand for itself."""
    return [] if value is None else [value] if isinstance(value, str) else list(value)
