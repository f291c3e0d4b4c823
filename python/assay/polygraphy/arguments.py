"""What the plugin adds to the command line of `polygraphy run`, and to the scripts that it generates."""
from __future__ import annotations

from typing import Any, Optional

from polygraphy.tools.args import ModelArgs, OnnxLoadArgs  # type: ignore[import-not-found, import-untyped, unused-ignore]
from polygraphy.tools.args import util as args_util
from polygraphy.tools.args.base import BaseArgs, BaseRunnerArgs  # type: ignore[import-not-found, import-untyped, unused-ignore]
from polygraphy.tools.script import make_invocable  # type: ignore[import-not-found, import-untyped, unused-ignore]

# Option, what its value is, help; the name is that of assay.build()'s argument. Value None: a switch.
OPTIONS: tuple[tuple[str, Optional[str], str], ...] = (
    ("target", "TARGET", "What to build for: cpu (default), cuda, cuda:N, emu, auto"),
    ("precision", "FORMAT", "Of float32 values: fp32, tf32, bf16, fp16, fp8e4m3, int8 (of a model with quantizers) ..."),
    ("accumulator", "FORMAT", "What sums are kept in; default: the precision's own"),
    ("layer_precision", "RULES", "'PATTERN:FORMAT,...' on names of nodes and outputs"),
    ("fp32", "KIND", "Which kernels fp32 layers may use: tight (default), plain, bound"),
    ("tactic_sources", "SOURCES", "Kernels of these sources only, such as 'assay,onednn'"),
    ("timing_cache", "FILE", "A file of measured times, read and added to"),
    ("batch_variant", None, "The fastest of all kernels, though bits then depend on the batch"),
    ("strict", None, "Fail where a layer would not run in the format asked for"),
)


class AssayEngineArgs(BaseArgs):  # type: ignore[misc, unused-ignore]
    """
    Assay Engine: building engines with Assay.

    Depends on:

        - ModelArgs
        - OnnxLoadArgs
    """

    def add_parser_args_impl(self) -> None:
        """Adds the options."""
        for name, value, text in OPTIONS:
            option, dest = "--assay-" + name.replace("_", "-"), "assay_" + name
            if value is None:
                self.group.add_argument(option, dest=dest, action="store_true", default=None, help=text)
            else:
                self.group.add_argument(option, dest=dest, metavar=value, default=None, help=text)
        self.group.add_argument("--assay-unfused", dest="assay_unfused", action="store_true", default=None,
                                help="One node in a layer")
        self.group.add_argument("--assay-save-plan", dest="assay_save_plan", metavar="FILE", default=None,
                                help="Where to write the plan file")
        self.group.add_argument("--assay-outputs", dest="assay_outputs", nargs="+", default=None,
                                help="Outputs for Assay, instead of the model's: names, or 'mark all' (or '*') for what every "
                                "node makes. For all runners: --onnx-outputs")

    def parse_impl(self, args: Any) -> None:
        """
        Parses command-line arguments and populates the following attributes:

        Attributes:
            options (Dict[str, Any]): Arguments of assay.build().
            outputs (List[str]): Names of outputs, or constants.MARK_ALL, or None for the model's.
            save_plan (str): Where to write the plan file.
        """
        given = {name: args_util.get(args, "assay_" + name) for name, _, _ in OPTIONS}
        self.options = {name: value for name, value in given.items() if value is not None}
        if args_util.get(args, "assay_unfused"):
            self.options["fusion"] = False
        self.outputs = args_util.get_outputs(args, "assay_outputs")
        self.save_plan = args_util.get(args, "assay_save_plan")

    def add_to_script_impl(self, script: Any) -> Any:
        """Adds a loader of an engine; returns its name in the script."""
        onnx = self.arg_groups[OnnxLoadArgs]
        model = self.arg_groups[ModelArgs].path
        if self.outputs is not None:
            script.add_import(imports=["ModifyOutputs"], frm="polygraphy.backend.onnx", imp_as="AssayModifyOutputs")
            outputs = args_util.get_outputs_for_script(script, self.outputs)
            loaded = onnx.add_to_script(script)
            model = script.add_loader(make_invocable("AssayModifyOutputs", loaded, outputs=outputs, copy=True), "mark_outputs")
        elif self.arg_groups[ModelArgs].model_type != "engine" and onnx.must_use_onnx_loader():
            model = onnx.add_to_script(script, serialize_model=True)
        script.add_import(imports=["EngineFromModel"], frm="assay.polygraphy")
        options = dict(self.options, **({"save_plan": self.save_plan} if self.save_plan else {}))
        return script.add_loader(make_invocable("EngineFromModel", model, **options), "build_assay_engine")


class AssayRunnerArgs(BaseRunnerArgs):  # type: ignore[misc, unused-ignore]
    """
    Assay Inference: running inference with Assay.

    Depends on:

        - AssayEngineArgs
    """

    def get_name_opt_impl(self) -> tuple[str, str]:
        """The runner's name, and its option."""
        return "Assay", "assay"

    def add_to_script_impl(self, script: Any) -> None:
        """Adds the runner."""
        script.add_import(imports=["AssayRunner"], frm="assay.polygraphy")
        script.add_runner(make_invocable("AssayRunner", self.arg_groups[AssayEngineArgs].add_to_script(script)))
