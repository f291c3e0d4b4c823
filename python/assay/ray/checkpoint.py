"""Finished shards as files: what a call that is made again does not do again."""
from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from typing import Any, List, Optional

from ..errors import InvalidArgument

_PIECE = 1 << 20


def digest(*parts: Any) -> str:
    """What tells things apart: of bytes as they are, of everything else by its JSON text."""
    h = hashlib.blake2b(digest_size=20)
    for part in parts:
        data = part if isinstance(part, bytes) else json.dumps(part, sort_keys=True, default=repr).encode()
        h.update(b"%d:" % len(data))
        h.update(data)
    return h.hexdigest()


def digest_files(paths: List[str]) -> str:
    """By the contents of files."""
    h = hashlib.blake2b(digest_size=20)
    for path in paths:
        h.update(b"%d:" % os.path.getsize(path))
        with open(path, "rb") as f:
            while True:
                piece = f.read(_PIECE)
                if not piece:
                    break
                h.update(piece)
    return h.hexdigest()


def write_atomically(path: str, data: bytes) -> None:
    """Writes a file; readers of the path see the old file or the new one, also after a kill or a power cut."""
    partial = "%s.%d.partial" % (path, os.getpid())
    try:
        with open(partial, "wb") as f:
            f.write(data)
            f.flush()
            os.fsync(f.fileno())
        os.replace(partial, path)
    except BaseException:
        if os.path.exists(partial):
            os.unlink(partial)
        raise


class Checkpoint:
    """A folder of finished parts, and of the arrays that shards are made of.

    folder  where it is, seen by all machines of the cluster; None: a temporary one of this machine, which close()
            removes
    """

    def __init__(self, folder: Optional[str]) -> None:
        self._temporary = folder is None
        self.folder = tempfile.mkdtemp(prefix="assay-ray-") if folder is None else os.path.abspath(os.fspath(folder))
        if os.path.exists(self.folder) and not os.path.isdir(self.folder):
            raise InvalidArgument("folder '%s' is a file" % self.folder)
        for name in ("parts", "data"):
            os.makedirs(os.path.join(self.folder, name), exist_ok=True)

    def part(self, key: str) -> str:
        """The file of a part."""
        return os.path.join(self.folder, "parts", key)

    def has(self, key: str) -> bool:
        return os.path.exists(self.part(key))

    def put(self, key: str, data: bytes) -> None:
        write_atomically(self.part(key), data)

    def get(self, key: str) -> bytes:
        with open(self.part(key), "rb") as f:
            return f.read()

    def put_data(self, data: bytes) -> str:
        """Keeps arrays under their digest; the path of the file."""
        path = os.path.join(self.folder, "data", digest(data) + ".npz")
        if not os.path.exists(path):
            write_atomically(path, data)
        return path

    def close(self) -> None:
        if self._temporary:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> "Checkpoint":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
