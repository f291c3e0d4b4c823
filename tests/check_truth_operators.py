#!/usr/bin/env python3
"""Truth of the ONNX operator tests against onnx.reference on the same models converted to float64.

    check_truth_operators.py LIBASSAY CASES

Every case that the reference can evaluate in float64 agrees to 1e-12 of the output's largest magnitude, integers and text
exactly. The expected outputs of the cases do not matter here. Cases named in EXCLUDED do not count, with the reason.
"""
import collections
import glob
import os
import sys
import warnings

import numpy as np
import onnx
from onnx import numpy_helper

from check_truth import LIMIT
from float64_model import largest_difference, run_float64

IN_FLOAT32 = "the reference calculates in float32 whatever it is given"
# The start of a case's name, and why the reference is none for it.
EXCLUDED = {
    "test_adam_multiple": IN_FLOAT32,
    "test_affine_grid_": IN_FLOAT32,
    "test_gridsample": IN_FLOAT32,
    "test_basic_deform_conv_": "made of GridSample: " + IN_FLOAT32,
    "test_deform_conv_": "made of GridSample: " + IN_FLOAT32,
    "test_causal_conv_with_state_": IN_FLOAT32,
    "test_linear_attention_": IN_FLOAT32,
    "test_dynamicquantizelinear": IN_FLOAT32,
    "test_flexattention_": "its function casts to float32 for Softmax",
    "test_group_normalization_": "its function casts to float32, its stash type",
    "test_gelu_tanh_": "its function has 2/pi and 0.044715 in float32; truth takes the numbers of the operator's text",
    "test_bernoulli": "random",
    "test_training_dropout": "random",
    "test_image_decoder_": "needs Pillow",
    "test_bitcast_": "the bits of float32 have no counterpart in float64",
}
PROTOS = {"tensor_type": (onnx.TensorProto, numpy_helper.to_array),
          "sequence_type": (onnx.SequenceProto, numpy_helper.to_list),
          "optional_type": (onnx.OptionalProto, numpy_helper.to_optional)}


def read(path, kind):
    proto, convert = PROTOS[kind]
    with open(path, "rb") as f:
        return convert(proto.FromString(f.read()))


def inputs_of(model, folder):
    found = {}
    for i, value in enumerate(model.graph.input):
        path = f"{folder}/test_data_set_0/input_{i}.pb"
        if os.path.exists(path):
            found[value.name] = read(path, value.type.WhichOneof("value"))
    return found


def leaves(x):
    return [leaf for item in x for leaf in leaves(item)] if isinstance(x, (list, tuple)) else [x]


def text_of(x):
    return [t.decode() if isinstance(t, bytes) else str(t) for t in np.ravel(x)]


def difference(ours, theirs):
    if ours is None or theirs is None:
        return 0.0 if ours is theirs else float("inf")
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    if theirs.dtype.kind in "OSUT":
        return 0.0 if text_of(ours) == text_of(theirs) else float("inf")
    if theirs.dtype.kind not in "fciub":  # ml_dtypes: small floats
        ours, theirs = ours.astype(np.float64), theirs.astype(np.float64)
    return largest_difference(ours, theirs)


def main(library, cases):
    os.environ["ASSAY_LIBRARY"] = library
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
    from assay import Session
    warnings.simplefilter("ignore")
    counts, worst = collections.Counter(), 0.0
    for path in sorted(glob.glob(f"{cases}/*/*/model.onnx")):
        folder = os.path.dirname(path)
        name = os.path.basename(folder)
        if any(name.startswith(start) for start in EXCLUDED):
            counts["excluded"] += 1
            continue
        model = onnx.load(path)
        try:
            inputs = inputs_of(model, folder)
            theirs = run_float64(model, [inputs])
        except Exception:  # of any kind: the reference lacks the operator, or a version of it
            counts["not in the reference"] += 1
            continue
        try:
            ours = leaves(Session(path, mode="truth").run(inputs))
            theirs = leaves(list(theirs.values()))
            assert len(ours) == len(theirs), f"{len(ours)} tensors instead of {len(theirs)}"
            distance = max(map(difference, ours, theirs), default=0.0)
            assert distance <= LIMIT, f"differs by {distance:.2e} of the largest magnitude"
            worst = max(worst, distance)
            counts["agree"] += 1
        except Exception as e:
            counts["failed"] += 1
            print(f"FAIL {os.path.relpath(folder, cases)}: {e}", flush=True)
    print(", ".join(f"{n} {word}" for word, n in sorted(counts.items())) + f"; largest difference {worst:.1e}")
    return 1 if counts["failed"] or counts["agree"] < 1500 else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
