"""Cases: a faulty or healthy model with what its user has, drawn by seed and number, and written to a folder."""
import json
import pathlib
from dataclasses import dataclass, field

import numpy as np
import onnx

import golden8
import healthy
import healthy7
import healthy8
from architectures import (EIGHTH as EIGHTH_ARCHITECTURES, FIFTH as FIFTH_ARCHITECTURES, FIRST, FOURTH as FOURTH_ARCHITECTURES, SECOND, SEVENTH as SEVENTH_ARCHITECTURES,
                           SIXTH as SIXTH_ARCHITECTURES, THIRD as THIRD_ARCHITECTURES, build, generation, held_out, seed_of)
from data import draw
from faults import KINDS, LEAST, difference, inject, same_shapes
from golden import Runner, double_values, reference_values
from variants import quantize, quantize_any, quantize_further

SAMPLES = 4   # that check gets
COLUMNS = ("own", "new kind", "new architecture", "both new")  # the last three are held out
LATER = "second generation"  # kinds and architectures alike, all of it held out
THIRD = "third generation"   # the same
FOURTH = "fourth generation"  # the same
FIFTH = "fifth generation"   # the same
SIXTH = "sixth generation"   # the same
SEVENTH = "seventh generation"  # the same
EIGHTH = "eighth generation"  # of healthy models alone
GROUPS = {2: (LATER, SECOND), 3: (THIRD, THIRD_ARCHITECTURES), 4: (FOURTH, FOURTH_ARCHITECTURES),
          5: (FIFTH, FIFTH_ARCHITECTURES), 6: (SIXTH, SIXTH_ARCHITECTURES), 7: (SEVENTH, SEVENTH_ARCHITECTURES),
          8: (EIGHTH, EIGHTH_ARCHITECTURES)}  # of a generation that is one column: its name, its architectures
FAULTY = tuple(sorted({k.generation for k in KINDS.values()}))  # generations that have faults, too


@dataclass
class Case:
    id: str
    column: str
    architecture: str
    kind: str            # of fault, or of health
    model: object        # what check gets
    intact: object       # what golden is of
    style: str
    opset: int
    batch: object
    blamed: list = field(default_factory=list)
    effect: float = 0.0
    options: list = field(default_factory=list)
    intermediates: bool = True
    source: str = ""
    recipe: object = None  # the Model that inputs are drawn for


def column_of(kind, architecture):
    if KINDS[kind].generation == generation(architecture) > 1:
        return GROUPS[generation(architecture)][0]
    return COLUMNS[KINDS[kind].held_out + 2 * held_out(architecture)]


def draw_fault(seed, number, of=1):
    """Columns take turns; a column draws a kind, then an architecture that has a place for it; the next kind if none has.

    of: the generation. Those after the first are one column each: their kinds take turns, in an order that the seed gives.
    """
    if of not in FAULTY:
        raise LookupError(f"generation {of} has healthy models alone: ask for no faults of it (--faults 0)")
    if of > 1:
        column, names = GROUPS[of][0], list(GROUPS[of][1])
        kinds = [k for k in KINDS if KINDS[k].generation == of]
        order = np.random.default_rng(seed_of("case", seed, number // len(kinds), of)).permutation(kinds)
        order, salt = np.roll(order, -(number % len(kinds))), (seed, number, of)
    else:
        column = COLUMNS[number % 4]
        kinds = [k for k in KINDS if KINDS[k].generation == 1 and KINDS[k].held_out == (column in ("new kind", "both new"))]
        names = [a for a in FIRST if held_out(a) == (column in ("new architecture", "both new"))]
        order, salt = np.random.default_rng(seed_of("case", seed, number)).permutation(kinds), (seed, number)
    for kind in order:
        rng = np.random.default_rng(seed_of("case", *salt, kind))
        # Rounds: a kind that needs a certain variant of an architecture is as likely as others.
        for name in [str(n) for _ in range(8 if of > 1 else 3) for n in rng.permutation(names)]:
            model = build(name, int(rng.integers(1 << 30)))
            if KINDS[kind].quantized:
                model = quantize_further(model, rng) if of > 3 else quantize_any(model, rng) if of > 1 else quantize(model, rng, bool(rng.integers(2)))
            fault = model and inject(model, str(kind), int(rng.integers(1 << 30)))
            if fault:
                case = Case(id_of("F", seed, number, of), column, name, str(kind), fault.proto, model.proto, model.style, model.opset, model.batch,
                            sorted(fault.blamed), fault.effect, source=KINDS[kind].source, recipe=model)
                if visible(case):
                    return case
    raise LookupError(f"no kind of fault has a place in the column '{column}'")


def id_of(letter, seed, number, of):
    return f"{letter}{seed}-{number}" + (f"-{of}" if of > 1 else "")


def visible(case):
    """Whether the inputs that check gets show the fault: the first sample does, and all can be run."""
    try:
        faulty, intact = Runner(case.model), Runner(case.intact)
        pairs = [(faulty(feed), intact(feed)) for feed in feeds(case, "given")]
    except Exception:  # noqa: BLE001: an index beyond a table, on these inputs
        return False
    wrong, want = pairs[0]
    return all(same_shapes(case.intact, *p) for p in pairs) and max(difference(wrong[k], want[k]) for k in want) > LEAST


def draw_healthy(seed, number, assay, of=1):
    """of: the generation; of the later ones, architectures take turns with the rows, so that no two models are alike."""
    rng, tries = np.random.default_rng(seed_of("healthy", seed, number, *([of] if of > 1 else []))), 0
    while True:
        tries += 1
        if of > 7 and tries > 400:
            raise LookupError(f"no network of generation {of} has the variant of number {number}")
        if of > 4 and tries > 5:  # the network whose turn it is has no such variant
            name = str(rng.choice(list(GROUPS[of][1])))
        elif of > 1:
            names = list(GROUPS[of][1])
            round_, place = divmod(number, len(names))
            name = str(np.random.default_rng(seed_of("order", seed, round_, *([of] if of > 2 else []))).permutation(names)[place])
            name = name if rng.random() < 0.9 else str(rng.choice(names))  # some have no such variant
        else:
            name = str(rng.choice(list(FIRST)))
        model = build(name, int(rng.integers(1 << 30)))
        found = healthy.variant(model, number, rng, assay, of)
        if found:
            kind, given, intact, options, intermediates = found
            column = GROUPS[of][0] if of > 1 else "held out" if held_out(name) else "own"
            case = Case(id_of("H", seed, number, of), column, name, kind, given.proto, intact.proto,
                        model.style, model.opset, model.batch, options=options, intermediates=intermediates, recipe=given)
            if of > 7:
                if runs(case) and healthy8.fair(case, feeds(case, "given"), [outputs for *_, outputs in golden_samples(case)]):
                    return case
            elif runs(case) and (of < 5 or not few_bits(kind, of) or near(case, count=1 if of < 6 else SAMPLES)):
                return case


def few_bits(kind, of):
    """Whether model and golden differ by what few bits lose."""
    return "float network" in kind or of > 5 and "autocast" in kind or of > 6 and any(word in kind for word in healthy7.LOW)


def near(case, most=0.3, count=1):
    """Whether few bits leave the outputs what they were, more or less: who loses more is not a healthy model."""
    given, want = Runner(case.model), Runner(case.intact)
    pairs = [(given(feed), want(feed)) for feed in feeds(case, "given", count)]
    return max(difference(a[k], b[k]) for a, b in pairs for k in b) < most


def runs(case):
    """Whether ONNX Runtime runs both models on the inputs that check gets, and no value is NaN.

    A converter may have made a model that does not run, and a quantizer an epsilon that is 0: who divides 0 by it is not healthy.
    """
    try:
        models = [Runner(m, every=True) for m in (case.model, case.intact)]
        values = [v for feed in feeds(case, "given") for run in models for v in run(feed).values() if not isinstance(v, list)]  # but for sequences
    except Exception:  # noqa: BLE001
        return False
    return not any(np.isnan(v).any() for v in values if v.dtype.kind == "f")


def draw_case(id, assay):
    """assay: the program, whose quantizer makes some healthy models."""
    seed, number, of = map(int, [*id[1:].split("-"), "1"][:3])
    return draw_fault(seed, number, of) if id[0] == "F" else draw_healthy(seed, number, assay, of)


def feeds(case, stream, count=SAMPLES):
    """Inputs that the golden run takes; where the batch is open, of one size."""
    rng = np.random.default_rng(seed_of(case.id, stream))
    drawn = [draw(case.recipe, rng, 3) for _ in range(count)]
    if case.column == EIGHTH:
        drawn = golden8.changed_inputs(case.kind, drawn, case.recipe, rng)
    if any(i.type.tensor_type.elem_type == onnx.TensorProto.FLOAT16 for i in case.model.graph.input):
        # The framework sees what the model sees.
        drawn = [{k: v.astype(np.float16).astype(np.float32) if v.dtype == np.float32 else v for k, v in feed.items()} for feed in drawn]
    return drawn


def write(case, folder):
    """model.onnx, inputs/N.npz, golden/N.npz, intermediates.npz (of the first sample), case.json."""
    folder = pathlib.Path(folder)
    for part in ("inputs", "golden"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    beside = {"save_as_external_data": True, "location": "weights.bin", "size_threshold": 64} if "beside in a file" in case.kind else {}
    onnx.save(onnx.ModelProto.FromString(case.model.SerializeToString()) if beside else case.model, folder / "model.onnx", **beside)
    for i, (given, values, golden) in enumerate(golden_samples(case)):
        golden8.saved(case.kind if "inputs and" in case.kind else "", folder / f"inputs/{i}.npz", golden8.input_types(case.kind, given))
        golden8.saved(case.kind, folder / f"golden/{i}.npz", golden)
        if i == 0:
            inner = {k: v for k, v in values.items() if k not in golden and np.asarray(v).dtype.kind in "fiub"}
            if "a few inner values" in case.kind:
                chosen = np.random.default_rng(seed_of(case.id, "few")).permutation(list(inner))[:max(2, len(inner) // 8)]
                inner = {k: inner[k] for k in map(str, chosen)}
            np.savez(folder / "intermediates.npz", **inner)
    names = ("id", "column", "architecture", "kind", "style", "opset", "batch", "blamed", "effect", "options", "source")
    about = {k: getattr(case, k) for k in names}
    (folder / "case.json").write_text(json.dumps(about, indent=1) + "\n")


def golden_samples(case):
    """What check gets of each sample: inputs, all values of the run that golden is of, and golden outputs as they are saved."""
    run, outputs = Runner(case.intact, every=True), [o.name for o in case.intact.graph.output]
    optimized = Runner(case.intact, optimized=True) if "all optimizations" in case.kind else None
    for feed in feeds(case, "given"):
        values = run(feed)
        if "float64" in case.kind:
            values = double_values(case.intact, feed, values) or values
        if "onnx's reference" in case.kind:
            values = reference_values(case.intact, feed, values) or values
        if "all optimizations" in case.kind:
            values = {**values, **optimized(feed)}
        types = {t.name: t.type.tensor_type.elem_type for t in case.model.graph.input}
        given = {k: v.astype(np.float16) if types[k] == onnx.TensorProto.FLOAT16 else v for k, v in feed.items()}
        if "printed" in case.kind:
            values = {k: printed(v) for k, v in values.items()}
        if "row by row" in case.kind:
            values = {**values, **row_by_row(case.intact, feed, {k: values[k] for k in outputs})}
        saved = next((f for word, f in SAVED.items() if word in case.kind), None)
        if saved:
            kept = outputs if "inner values saved" in case.kind else ()
            values = {k: saved(np.asarray(v)) if np.asarray(v).dtype == np.float32 and k not in kept else v for k, v in values.items()}
        yield given, values, golden8.kept(case.kind, {k: values[k] for k in outputs})


def row_by_row(proto, feed, whole):
    """Outputs of a run for each row of the batch, one after the other; {} where a row alone does not give what it gives in the batch."""
    run, batch = Runner(proto), len(next(iter(feed.values())))
    rows = [run({k: v[i:i + 1] for k, v in feed.items()}) for i in range(batch)]
    joined = {k: np.concatenate([np.atleast_1d(r[k]) for r in rows]) for k in whole}
    return joined if all(difference(joined[k], v) < 1e-4 for k, v in whole.items()) else {}


def printed(value):
    """Numbers as they come out of a text with six digits."""
    value = np.asarray(value)
    if value.dtype != np.float32:
        return value
    return np.array([float(f"{v:.6g}") for v in value.reshape(-1)], np.float32).reshape(value.shape)


def brain(value):
    """The nearest numbers that a brain float holds."""
    bits = np.ascontiguousarray(value).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


def summed_otherwise(value):
    """Numbers as off as those that are added up in another order: a few of the last bits."""
    value = np.ascontiguousarray(value)
    return (value * (1 + 2e-7 * np.random.default_rng(value.size).standard_normal(value.shape))).astype(np.float32)


def flushed(value):
    """Numbers that only fewer bits can hold are nothing."""
    return np.where(np.abs(value) < np.finfo(np.float32).tiny, np.float32(0), value)


# What golden became when it was saved, by words of the kind.
SAVED = {"saved as doubles": lambda v: v.astype(np.float64), "saved as fp16": lambda v: v.astype(np.float16), "saved as bf16": brain, "four decimals": lambda v: np.round(v, 4),
         "GPU's order of sums": summed_otherwise, "flushed to zero": flushed}


def repaired(case, path):
    """Whether the repaired model gives golden on inputs that check has not seen, in ONNX Runtime; else why not."""
    try:
        fixed = Runner(onnx.load(path))
    except Exception as error:  # noqa: BLE001
        return f"ONNX Runtime does not open it: {str(error)[:200]}"
    run = Runner(case.intact)
    for feed in feeds(case, "fresh", 3):
        try:
            given, want = fixed(feed), run(feed)
        except Exception as error:  # noqa: BLE001
            return f"ONNX Runtime does not run it: {str(error)[:200]}"
        worst = max(difference(given[k], want[k]) for k in want)
        if worst > LEAST:
            return f"an output is {worst:.2g} off on fresh inputs"
    return ""
