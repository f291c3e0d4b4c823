"""Runners: other engines for `assay check --exec`, one module each.

    python -m runners.onnxruntime MODEL INPUTS OUTPUTS PRECISION [--all]

Each reads the arrays of INPUTS (npz, by the names of the model's inputs), runs the model once, and writes its
outputs to OUTPUTS (npz, whole or not at all). With --all it writes inner values, too, by their ONNX names.
Exit codes: 0 done, 1 the engine failed, 2 usage or a package is missing.
"""
