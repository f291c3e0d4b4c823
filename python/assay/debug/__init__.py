"""Experiments: what is to blame for a result, found by running a model in many ways.

    import assay
    found = assay.debug.precision("model.onnx", precision="fp16", inputs={"image": image})
    print(found.enough, found.nodes, found.format)      # the layers that need more

precision()    the layers that need more precision than was asked for
reduce()       the smallest part of a model that still fails
batch()        the node that makes a sample's result depend on its batch
passes()       the graph pass that changes the result
tactics()      each layer by all kernels that take it, and which of them are wrong
environment()  what numbers depend on besides the model; compare_environments() of two machines
"""
from ._batch import BatchNode, BatchResult, batch
from ._environment import Environment, EnvironmentComparison, Entry, EntryDifference, compare_environments, environment
from ._passes import PassesResult, PassStep, passes
from ._precision import PrecisionResult, precision
from ._reduce import ReduceResult, reduce
from ._tactics import TacticsResult, Trial, tactics

__all__ = ["BatchNode", "BatchResult", "Entry", "EntryDifference", "Environment", "EnvironmentComparison", "PassStep",
           "PassesResult", "PrecisionResult", "ReduceResult", "TacticsResult", "Trial", "batch", "compare_environments",
           "environment", "passes", "precision", "reduce", "tactics"]
