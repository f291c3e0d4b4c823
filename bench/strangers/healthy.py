"""Healthy models: what a false alarm would be about. Rows say what check gets and where golden is from."""
from variants import quantize, quantize_by_assay, to_half

# Name, how the model is made, options of check, whether inner values are given.
ROWS = [
    ("fp32, golden fp32, inner values", "float", [], True),
    ("fp32, golden fp32", "float", [], False),
    ("fp32, golden float64, inner values", "float", [], True),
    ("fp32, golden float64", "float", [], False),
    ("--precision fp16, golden fp32, inner values", "float", ["--precision", "fp16"], True),
    ("--precision fp16, golden float64", "float", ["--precision", "fp16"], False),
    ("--precision bf16, golden fp32, inner values", "float", ["--precision", "bf16"], True),
    ("--precision bf16, golden float64", "float", ["--precision", "bf16"], False),
    ("typed fp16, golden fp32, inner values", "half", [], True),
    ("typed fp16, golden fp32", "half", [], False),
    ("fp16 inside, golden fp32", "half inside", [], False),
    ("int8 per tensor, golden of itself, inner values", "int8", [], True),
    ("int8 per tensor, golden of itself", "int8", [], False),
    ("int8 per channel, golden of itself, inner values", "int8 channels", [], True),
    ("int8 per channel, golden of itself", "int8 channels", [], False),
    ("int8 per tensor, golden of the float network", "int8 of float", [], False),
    ("int8 per channel, golden of the float network, inner values", "int8 channels of float", [], True),
    ("int8 of `assay edit quantize`, golden of itself, inner values", "int8 of assay", [], True),
    ("int8 of `assay edit quantize`, golden of the float network", "int8 of assay of float", [], False),
]


def variant(model, number, rng, assay):
    """(kind, what check gets, what golden is of, options, inner values), or None: this model has no such variant."""
    kind, made, options, inner = ROWS[number % len(ROWS)]
    if made == "float":
        return kind, model, model, options, inner
    try:
        if made.startswith("half"):
            given = to_half(model, made == "half inside")
        elif "assay" in made:
            given = quantize_by_assay(model, rng, assay)
        else:
            given = quantize(model, rng, "channels" in made)
    except Exception:  # noqa: BLE001: the converter or the quantizer cannot
        return None
    if given is None:
        return None
    return kind, given, model if made.startswith("half") or made.endswith("of float") else given, options, inner


def alarm(row, report):
    """What is wrong with the report of a healthy model, or ''.

    A precision may well be at fault where one was asked for or is typed, and quantization beside the float network: not the export.
    """
    blame, verdict = report.get("blame"), report.get("verdict")
    low = any(word in row["kind"] for word in ("fp16", "bf16", "float network"))
    if verdict == "faithful" or low and blame != "export":
        return ""
    first = (report.get("culprits") or [{}])[0]
    return f"{verdict}, blame {blame}: {', '.join(first.get('nodes', []))} ({first.get('op')}): {first.get('why')}"
