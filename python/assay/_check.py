"""Checks: a model in a precision beside its float64 reference, who is to blame, and a fix that was verified."""
from __future__ import annotations

import os
from ctypes import byref, c_void_p
from dataclasses import dataclass
from typing import Any, List, Optional, Tuple

from . import _library as L
from ._calls import Progress, Reports, long_call
from ._check_parts import (Culprit, CulpritStruct, Fault, FaultStruct, Fix, LayerAccount, LayerStruct, Mended, MendedStruct,
                           NamesStruct, OptionsStruct, OutputAccount, OutputStruct, fix_of, layer_account, maybe,
                           output_account, structs_of)
from ._library import check as ok, lib
from ._plans import Rules, Texts, plan_fields, require_fields
from ._results import Path, Result
from ._samples import golden_of, samples_of
from ._sizes import Dims, Shapes
from .model import Model, sized

FIXES = ("any", "fewest", "best")


@dataclass
class CheckResult(Result):
    """What a check found.

    faithful  whether all requirements hold, no layer is defective, and truth agrees with golden
    blame     "none", "precision", "engine", "export", "model" or "input"
    unmet     requirements that do not hold, in words; "": none
    outputs   an OutputAccount each; layers: a LayerAccount each, in the plan's order
    culprits  the worst first; faults: of the export
    fix       nodes to keep in a higher format; None: none was found, or none was looked for
    mended    constants to replace, as an alternative to the fix
    notes     lines for the user
    """

    faithful: bool
    blame: str
    unmet: str
    outputs: List[OutputAccount]
    layers: List[LayerAccount]
    culprits: List[Culprit]
    faults: List[Fault]
    fix: Optional[Fix]
    mended: List[Mended]
    notes: List[str]

    def write_model(self, path: Path) -> None:
        """Writes the model in mixed precision, with explicit Casts."""
        with self._lock:
            ok(lib.assay_check_write_model(self._handle.value, os.fsencode(path)))

    def write_options(self, path: Path) -> None:
        """Writes the fix as options of `assay` (--fix-file) and of trtexec."""
        with self._lock:
            ok(lib.assay_check_write_options(self._handle.value, os.fsencode(path)))

    def __repr__(self) -> str:
        return "<assay.CheckResult: %s, blame %s, %d layers, fix %s>" % (
            "faithful" if self.faithful else "not faithful", self.blame, len(self.layers),
            "of %d nodes" % len(self.fix.nodes) if self.fix else "none")


def check_result(handle: L.Handle, names: Any, keep: Any) -> CheckResult:
    """What a check that has run found. keep: what has to live as long."""
    c = handle.value
    layers = [layer_account(c, i, o) for i, o in enumerate(structs_of(lib.assay_check_layer_count(c), lib.assay_check_layer, c, LayerStruct))]
    culprits = structs_of(lib.assay_check_culprit_count(c), lib.assay_check_culprit, c, CulpritStruct)
    faults = structs_of(lib.assay_check_fault_count(c), lib.assay_check_fault, c, FaultStruct)
    result = CheckResult(
        faithful=bool(lib.assay_check_faithful(c)), blame=L.text(lib.assay_blame_name(lib.assay_check_blame(c))),
        unmet=L.text(lib.assay_check_unmet(c)),
        outputs=[output_account(o) for o in structs_of(lib.assay_check_output_count(c), lib.assay_check_output, c, OutputStruct)],
        layers=layers,
        culprits=[Culprit(layers[o.layer].name, L.text(lib.assay_verdict_name(o.verdict)), o.seen, o.share, L.text(o.why),
                          maybe(o.constant)) for o in culprits],
        faults=[Fault(L.text(o.node), L.text(o.op), L.text(o.value), maybe(o.cause), maybe(o.repair), o.restored)
                for o in faults],
        fix=fix_of(c),
        mended=[Mended(L.text(o.node), L.text(o.name), o.before, o.to)
                for o in structs_of(lib.assay_check_mended_count(c), lib.assay_check_mended, c, MendedStruct)],
        notes=L.text(lib.assay_check_notes(c)).splitlines())
    result._open(handle, lambda kind, write, user: lib.assay_check_report(c, kind, byref(names), write, user), "layers")
    result._keep = keep  # type: ignore[attr-defined]
    return result


def create_check(loaded: Model, reports: Optional[Reports], golden: Any = None, *, precision: Optional[str] = None,
                 target: str = "emu", accumulator: Optional[str] = None, layer_precision: Rules = None,
                 fusion: Optional[bool] = None, passes_off: Texts = None, fp32: str = "tight", require: Texts = None,
                 unquantized: bool = False, fix: Optional[str] = "any", shares: bool = False, pictures: bool = True,
                 search_seconds: float = 0, seed: int = 0) -> Tuple[L.Handle, NamesStruct]:
    """The library's check, not run, and what its reports call things. Options as of check()."""
    options = OptionsStruct(
        precision=L.format_of(precision), accumulator=L.format_of(accumulator), unquantized=unquantized, no_fix=fix is None,
        shares=shares, pictures=pictures, search_seconds=search_seconds, seed=seed,
        progress=reports.address if reports else None, fix=0 if fix is None else L.choice("fix", fix, FIXES),
        **plan_fields(target, layer_precision, fusion, passes_off, fp32), **require_fields(require))
    names = NamesStruct(model=os.fsencode(loaded.path) if loaded.path else None, precision=L.encode(precision),
                        golden=L.encode(str(golden)) if isinstance(golden, (str, os.PathLike)) else None)
    out = c_void_p()
    ok(lib.assay_check_create(loaded._handle.value, byref(options), byref(out)))
    return L.Handle(out.value, lib.assay_check_destroy), names


def check(model: Any, *, precision: Optional[str] = None, target: str = "emu", inputs: Any = None, golden: Any = None,
          accumulator: Optional[str] = None, layer_precision: Rules = None, fusion: Optional[bool] = None,
          passes_off: Texts = None, fp32: str = "tight", require: Texts = None, unquantized: bool = False,
          fix: Optional[str] = "any", shares: bool = False, pictures: bool = True, search_seconds: float = 0,
          seed: int = 0, batch: Optional[int] = None, dims: Dims = None, shapes: Shapes = None,
          intermediates: Optional[Path] = None, name_map: Optional[Path] = None, command: Optional[str] = None,
          engine_outputs: Optional[Path] = None, seconds: float = 0, progress: Progress = None) -> CheckResult:
    """Compares a model in a precision with its float64 reference (truth); explains and fixes.

    model            a Model, or what load() takes
    precision        of float32 values, such as "fp16"; None: as declared
    target           "emu" judges the format whatever the engine; others the plan that build() makes
    inputs           paths of files, {name: array}, a list of such (a sample each); None: drawn from the seed
    golden           outputs of the original framework: paths, arrays; or the path of a reference model (.onnx)
    accumulator, layer_precision, fp32  as in build()
    fusion           several nodes in a layer; None: but for "emu"
    passes_off       graph passes that do not run
    require          "[OUTPUT:] STATISTIC OP VALUE", one or several; None: cosine at least 0.999
    unquantized      quantizers are the identity in truth: quantization counts as error
    fix              which fix is looked for: "any", "fewest", "best"; None: none
    shares           split outputs' errors over the layers, also where they are faithful
    pictures         keep what the HTML page shows of values
    search_seconds   for what an exporter did wrong; 0: 40
    batch, dims, shapes  sizes that the model leaves open, as of Model.resize(): of inputs that are drawn, which are 1
                     without, and of a sample where inputs are given
    intermediates    a file of inner values of the original framework
    name_map         a JSON file {"name in the files": "name in the model"}
    command          check another engine, which this shell command runs ({model} {inputs} {outputs} {precision});
                     needs a model that came from a file. seconds: that one run may take
    engine_outputs   check another engine by what it gave: a file
    progress         a function of what is done and which part of it (0 to 1); None: a bar on a terminal

    Ctrl-C ends it.
    """
    loaded = sized(model, batch, dims, shapes)
    reports = Reports(progress)

    def work() -> CheckResult:
        handle, names = create_check(
            loaded, reports, golden, precision=precision, target=target, accumulator=accumulator,
            layer_precision=layer_precision, fusion=fusion, passes_off=passes_off, fp32=fp32, require=require,
            unquantized=unquantized, fix=fix, shares=shares, pictures=pictures, search_seconds=search_seconds, seed=seed)
        samples = samples_of(loaded, inputs, seed)
        told = golden_of(loaded, golden, samples, seed, intermediates, name_map)
        map_path = os.fsencode(name_map) if name_map else None
        if command:
            ok(lib.assay_check_use_command(handle.value, L.encode(command), os.fsencode(loaded.path), seconds,
                                           samples.value, map_path))
        if engine_outputs:
            ok(lib.assay_check_use_outputs(handle.value, os.fsencode(engine_outputs), None, samples.value, map_path))
        ok(lib.assay_check_run(handle.value, samples.value, told.value if told else None))
        return check_result(handle, names, (samples, told, reports))

    return long_call(work, reports)
