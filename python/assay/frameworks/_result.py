"""What a check of a framework's model gives: whether its export is faithful, and whether the engine is."""
from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING, Any, Dict

import numpy as np

if TYPE_CHECKING:
    from .. import CheckResult, Model

Arrays = Dict[str, np.ndarray[Any, Any]]


@dataclasses.dataclass
class Export:
    """A framework's model as ONNX, with what it was given and what the framework made of that.

    source    framework and version: "PyTorch 2.15.0"
    exporter  what made the ONNX model: "torch.onnx (dynamo)"
    proto     the model: onnx.ModelProto
    inputs    for each sample the model's inputs by name
    outputs   for each sample what the framework gave for the model's outputs, by name
    inner     for each sample what layers gave, by the name of the model's value
    """

    source: str
    exporter: str
    proto: Any
    inputs: list[Arrays]
    outputs: list[Arrays]
    inner: list[Arrays]

    @property
    def onnx_bytes(self) -> bytes:
        """The model as a file would hold it. Models of 2 GiB and more have no such bytes: use `proto`."""
        return bytes(self.proto.SerializeToString())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the ONNX model; weights that do not fit into the file go beside it, to PATH.data."""
        if self.proto.ByteSize() < 1 << 31:
            _replace(path, self.onnx_bytes)
        else:
            from ._common import need

            need("onnx", "torch").save(self.proto, os.fspath(path), save_as_external_data=True, location=os.path.basename(path) + ".data")

    def golden(self) -> list[Arrays]:
        """For each sample all that the framework gave: outputs and inner values."""
        return [{**inner, **outputs} for inner, outputs in zip(self.inner, self.outputs)]


def _replace(path: str | os.PathLike[str], data: bytes) -> None:
    """Writes a file under a temporary name and puts it in place when it is complete."""
    part = f"{os.fspath(path)}.part{os.getpid()}"
    try:
        with open(part, "wb") as file:
            file.write(data)
        os.replace(part, path)
    except BaseException:
        if os.path.exists(part):
            os.remove(part)
        raise


@dataclasses.dataclass
class FrameworkCheck:
    """A model's way from its framework to an engine: export against framework, engine against truth.

    export   what the framework gave, and the ONNX model
    model    the ONNX model, loaded
    check    the whole account: verdicts of layers, culprits, the fix (assay.check)
    seconds  how long "export" (with the framework's run) and "check" took
    """

    export: Export
    model: Model
    check: CheckResult
    seconds: dict[str, float]

    @property
    def export_faithful(self) -> bool:
        """Whether truth of the ONNX model is what the framework gave, as far as rounding explains."""
        return self.check.blame != "export" and not self.check.faults

    @property
    def engine_faithful(self) -> bool:
        """Whether the engine gives what the ONNX model says: outputs meet what is required of them, no layer is defect."""
        return (all(output.faithful for output in self.check.outputs) and not self.check.unmet
                and all(layer.verdict != "defect" for layer in self.check.layers))

    @property
    def faithful(self) -> bool:
        """Both."""
        return bool(self.check.faithful)

    @property
    def onnx_bytes(self) -> bytes:
        return self.export.onnx_bytes

    @property
    def text(self) -> str:
        export = self.export
        said = "faithful" if self.export_faithful else "UNFAITHFUL"
        engine = "faithful" if self.engine_faithful else "UNFAITHFUL"
        inner = len(export.inner[0]) if export.inner else 0
        return (f"export  {said}: {export.exporter} of {export.source}, {len(export.proto.graph.node)} nodes, "
                f"{inner} inner {'value' if inner == 1 else 'values'} compared by name\n"
                f"engine  {engine}\n{self.check.text}")

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        import html

        head = html.escape(self.text.split(self.check.text)[0])
        return f"<pre>{head}</pre>{self.check._repr_html_()}"
