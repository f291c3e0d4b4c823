"""Hugging Face models: exported by optimum, run, and checked against what transformers itself gives."""
from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..errors import InvalidArgument
from ._common import check_export, first_reason, loaded, need
from ._huggingface_parts import export_part, parts_of, untouched
from ._result import FrameworkCheck

if TYPE_CHECKING:
    from .. import Model


@dataclasses.dataclass
class PartsCheck(Mapping[str, FrameworkCheck]):
    """Checks of the models that one of Hugging Face's is exported to, by name: "model", or "encoder_model", "decoder_model".

    task    that the model was exported for
    parts   {name: FrameworkCheck}
    drawn   names of parts whose inputs were drawn, since those that were given are not theirs
    """

    task: str
    parts: dict[str, FrameworkCheck]
    drawn: list[str]

    def __getitem__(self, name: str) -> FrameworkCheck:
        return self.parts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    @property
    def export_faithful(self) -> bool:
        return all(part.export_faithful for part in self.parts.values())

    @property
    def engine_faithful(self) -> bool:
        return all(part.engine_faithful for part in self.parts.values())

    @property
    def faithful(self) -> bool:
        return all(part.faithful for part in self.parts.values())

    @property
    def text(self) -> str:
        return "\n".join(f"{name}{' (inputs drawn)' if name in self.drawn else ''}\n{part.text}" for name, part in self.parts.items())

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return "".join(f"<h4>{name}</h4>{part._repr_html_()}" for name, part in self.parts.items())


def check_huggingface(model: Any, inputs: Any = None, *, task: str | None = None, tokenizer: Any = None, processor: Any = None,
                      precision: str | None = None, target: str = "emu", opset: int | None = None, inner: bool = True,
                      **options: Any) -> PartsCheck:
    """Exports a Hugging Face model by optimum and says whether the export is faithful, and whether the engine is.

    model      a transformers model, a folder or a name on the hub, or a configuration: then weights are random
    inputs     text or a list of texts (the tokenizer's), what the processor takes (images, sound), or a dict of arrays by
               the names of forward()'s parameters; None: drawn as optimum draws them. Parts that take something else
               than what was given (a decoder) get inputs that are drawn.
    task       such as "text-classification" or "text-generation-with-past"; None: by the model's class
    tokenizer  for text; None: the one beside the model
    processor  for images and sound; None: the one beside the model
    precision, target, options  as of assay.check
    opset      of the ONNX models; None: what optimum advises
    inner      whether values within the models are compared, too
    """
    parts, drawn = {}, []
    loaded_model, task = _model(model, task)
    values = _values(model, inputs, tokenizer, processor)
    with untouched(loaded_model):
        for name, (module, config) in parts_of(loaded_model, task).items():
            given = _given(config, values)
            if given is None and values is not None:
                drawn.append(name)
            parts[name] = check_export(lambda: export_part(name, module, config, given, opset, inner),
                                       precision=precision, target=target, **options)
    if drawn and len(drawn) == len(parts):
        names = ", ".join(next(iter(parts_of(loaded_model, task).values()))[1].inputs)
        raise InvalidArgument(f"no part of the model takes the inputs {', '.join(values or {})}; it takes {names}")
    return PartsCheck(task, parts, drawn)


def from_huggingface(model: Any, *, task: str | None = None, opset: int | None = None) -> dict[str, Model]:
    """A Hugging Face model as assay.Models, by the names of its parts; arguments as of check_huggingface."""
    loaded_model, task = _model(model, task)
    with untouched(loaded_model):
        return {name: loaded(export_part(name, module, config, None, opset, False).proto)
                for name, (module, config) in parts_of(loaded_model, task).items()}


def _model(model: Any, task: str | None) -> tuple[Any, str]:
    transformers = need("transformers", "huggingface")
    tasks = need("optimum.exporters.tasks", "huggingface").TasksManager
    need("optimum.exporters.onnx.model_configs", "huggingface")  # registers what it can export
    try:
        if isinstance(model, transformers.PretrainedConfig):
            task = task or _task_of_class(tasks, model)
            # Auto classes build a model of a configuration; the classes of single models are called with it.
            kind = tasks.get_model_class_for_task(tasks.map_from_synonym(task).replace("-with-past", ""), model_type=model.model_type)
            model = kind.from_config(model) if hasattr(kind, "from_config") else kind(model)
        elif isinstance(model, (str, os.PathLike)):
            task = task or tasks.infer_task_from_model(os.fspath(model))
            model = tasks.get_model_from_task(task.replace("-with-past", ""), os.fspath(model))
        elif not isinstance(model, transformers.PreTrainedModel):
            raise InvalidArgument(f"model is a {type(model).__name__}; pass a transformers model, a folder, a name or a configuration")
        return model, tasks.map_from_synonym(task or tasks.infer_task_from_model(model))
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        if isinstance(error, InvalidArgument):
            raise
        raise InvalidArgument(f"no model of {model!r:.200}: {first_reason(error)}") from error


def _task_of_class(tasks: Any, config: Any) -> str:
    transformers = need("transformers", "huggingface")
    names = config.architectures or []
    if not names or not hasattr(transformers, names[0]):
        raise InvalidArgument("a configuration without 'architectures' does not say what the model is for; pass task")
    return str(tasks.infer_task_from_model(getattr(transformers, names[0])))


def _values(model: Any, inputs: Any, tokenizer: Any, processor: Any) -> dict[str, Any] | None:
    """Inputs as tensors by name."""
    if inputs is None:
        return None
    transformers = need("transformers", "huggingface")
    if isinstance(inputs, Mapping):
        torch = need("torch", "torch")
        return {str(name): value if isinstance(value, torch.Tensor) else torch.as_tensor(value) for name, value in inputs.items()}
    is_text = isinstance(inputs, str) or (isinstance(inputs, list) and all(isinstance(item, str) for item in inputs))
    tool = tokenizer if is_text and processor is None else processor
    if tool is None:
        kind = transformers.AutoTokenizer if is_text else transformers.AutoProcessor
        place = model if isinstance(model, (str, os.PathLike)) else getattr(model, "name_or_path", "")
        if not place:
            raise InvalidArgument(f"inputs are {'text' if is_text else type(inputs).__name__}, and nothing turns them into arrays: "
                                  f"pass {'tokenizer' if is_text else 'processor'}, or a dict of arrays")
        tool = kind.from_pretrained(place)
    several = {"padding": True} if is_text and isinstance(inputs, list) else {}
    return dict(tool(inputs, return_tensors="pt", **several))


def _given(config: Any, values: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A part's arguments, if the values hold all of them; positions follow from the mask."""
    if values is None:
        return None
    found = dict(values)
    wanted = list(config.inputs)
    if "attention_mask" in wanted and "attention_mask" not in found and "input_ids" in found:
        found["attention_mask"] = need("torch", "torch").ones_like(found["input_ids"])
    if "position_ids" in wanted and "position_ids" not in found and "attention_mask" in found:
        found["position_ids"] = (found["attention_mask"].long().cumsum(-1) - 1).clamp(min=0)
    if "token_type_ids" in wanted and "token_type_ids" not in found and "input_ids" in found:
        found["token_type_ids"] = need("torch", "torch").zeros_like(found["input_ids"])
    return {name: found[name] for name in wanted} if all(name in found for name in wanted) else None
