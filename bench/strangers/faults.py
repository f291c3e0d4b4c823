"""All kinds of faults, and how one is injected: see `inject`."""
import sys
from dataclasses import dataclass

import numpy as np
import onnx

import faults2_attention
import faults2_norms
import faults2_recurrent
import faults2_vision
import faults2_weights
import faults3_attention
import faults3_norms
import faults3_quantizers
import faults3_structure
import faults3_vision
import faults3_waves
import faults4_activations
import faults4_attention
import faults4_boxes
import faults4_folding
import faults4_norms
import faults4_quantizers
import faults4_structure
import faults4_tables
import faults4_weights
import faults5_activations
import faults5_attention
import faults5_boxes
import faults5_quantizers
import faults5_recurrent
import faults5_structure
import faults5_tables
import faults5_waves
import faults5_weights
import faults6_activations
import faults6_attention
import faults6_places
import faults6_structure
import faults6_tables
import faults6_waves
import faults6_weights
import faults7_activations
import faults7_attention
import faults7_graphs
import faults7_places
import faults7_recurrent
import faults7_tables
import faults7_vision
import faults_attention
import faults_attributes
import faults_constants
import faults_recurrent
import faults_structure
from architectures import held_out, seed_of
from data import draw
from golden import Runner, difference
from surgery import Surgery

LEAST = 1e-4  # a fault that moves every output by less is not a fault


@dataclass(frozen=True)
class Kind:
    name: str
    exporter: str
    source: str    # repository and thread on GitHub
    apply: object  # Surgery -> nodes at fault, or None: nothing to do here
    generation: int = 1

    @property
    def held_out(self):
        return held_out("kind/" + self.name)

    @property
    def quantized(self):
        return self.name.startswith("quantizer_")


MODULES = (faults_attention, faults_attributes, faults_constants, faults_recurrent, faults_structure)
LATER = (faults2_attention, faults2_norms, faults2_recurrent, faults2_vision, faults2_weights)
THIRD = (faults3_attention, faults3_norms, faults3_quantizers, faults3_structure, faults3_vision, faults3_waves)
FOURTH = (faults4_activations, faults4_attention, faults4_boxes, faults4_folding, faults4_norms, faults4_quantizers, faults4_structure,
          faults4_tables, faults4_weights)
FIFTH = (faults5_activations, faults5_attention, faults5_boxes, faults5_quantizers, faults5_recurrent, faults5_structure, faults5_tables, faults5_waves,
         faults5_weights)
SIXTH = (faults6_activations, faults6_attention, faults6_places, faults6_structure, faults6_tables, faults6_waves, faults6_weights)
SEVENTH = (faults7_activations, faults7_attention, faults7_graphs, faults7_places, faults7_recurrent, faults7_tables, faults7_vision)
KINDS = {row[0]: Kind(*row, generation) for generation, modules in ((1, MODULES), (2, LATER), (3, THIRD), (4, FOURTH), (5, FIFTH), (6, SIXTH), (7, SEVENTH))
         for module in modules for row in module.ROWS}


@dataclass
class Fault:
    kind: str
    proto: onnx.ModelProto
    blamed: set    # names by which the nodes at fault may be called
    effect: float  # difference of the outputs


def names_of(graph, nodes):
    """What the nodes may be called: by name, by output, and by operator and place where they have no name."""
    outputs = {x for n in nodes for x in n.output if x}
    names = set(outputs)
    for i, n in enumerate(graph.node):
        if outputs & set(n.output):
            names.add(n.name or f"{n.op_type}_{i}")
    return names


def same_shapes(proto, wrong, right):
    """Another shape is seen at once. What suppression leaves has no fixed number."""
    free = {x for n in proto.graph.node if n.op_type == "NonMaxSuppression" for x in n.output}
    return all(wrong[o.name].shape == right[o.name].shape for o in proto.graph.output if o.name not in free)


def inject(model, kind, seed, tries=4):
    """The model with a fault of this kind, or None if it has no place for it, does not run, or changes nothing."""
    rng = np.random.default_rng(seed_of("fault", kind, seed))
    run = Runner(model.proto, every=True)
    feeds = [draw(model, rng) for _ in range(2)]
    try:
        values, traced = (run(f) for f in feeds)
    except Exception:  # noqa: BLE001: an index beyond a table
        return None
    for _ in range(tries):
        s = Surgery(onnx.ModelProto.FromString(model.proto.SerializeToString()), {**values, **feeds[0]}, rng)
        s.traced = traced
        nodes = KINDS[kind].apply(s)
        if not nodes:
            return None
        nodes = [n for n in nodes if n is not None]
        del s.proto.graph.value_info[:]
        try:
            onnx.checker.check_model(s.proto)
            wrong = Runner(s.proto)(feeds[0])
        except Exception:  # noqa: BLE001: a place where this fault is an error, which everyone sees
            continue
        pairs = [(wrong[o.name], values[o.name]) for o in model.proto.graph.output]
        effect = max(difference(*p) for p in pairs)
        if same_shapes(model.proto, wrong, values) and effect > LEAST:
            return Fault(kind, s.proto, names_of(s.proto.graph, nodes), effect)
    return None


if __name__ == "__main__":
    out = sys.stdout
    for k in KINDS.values():
        repository, number = k.source.split("#")
        group = {2: "second", 3: "third", 4: "fourth", 5: "fifth", 6: "sixth", 7: "seventh"}.get(k.generation, "held out" if k.held_out else "")
        out.write(f"{k.name:32} {group:9} {k.exporter:22} https://github.com/{repository}/issues/{number}\n")
