#!/usr/bin/env python3
"""Writes the table of operator schemas, from the installed onnx package, as a C initialiser.

    gen_schemas.py OUT.inc

Each row is ROW(domain, name, since, deprecated, min_in, max_in, min_out, max_out, inputs, n, outputs, n, attrs, n);
type sets, parameters and attributes stand before the rows and are shared where they are equal.
"""
import os
import re
import sys

import onnx
from onnx import AttributeProto, TensorProto, defs

TYPES = {f"tensor({name.lower()})": number for name, number in TensorProto.DataType.items()}
TYPES |= {"tensor(float)": TensorProto.FLOAT, "tensor(double)": TensorProto.DOUBLE}


def typeset(strings):
    """The masks (tensor, seq, optional, optional_seq, map, seq_map) of a set of ONNX type strings."""
    masks = [0, 0, 0, 0, 0, 0]
    for s in strings:
        if s in TYPES:
            masks[0] |= 1 << TYPES[s]
        elif s.startswith("seq(map("):
            masks[5] = 1
        elif s.startswith("map("):
            masks[4] = 1
        elif m := re.fullmatch(r"seq\((tensor\(\w+\))\)", s):
            masks[1] |= 1 << TYPES[m[1]]
        elif m := re.fullmatch(r"optional\((tensor\(\w+\))\)", s):
            masks[2] |= 1 << TYPES[m[1]]
        elif m := re.fullmatch(r"optional\(seq\((tensor\(\w+\))\)\)", s):
            masks[3] |= 1 << TYPES[m[1]]
        elif m := re.fullmatch(r"sparse_tensor\((\w+)\)", s):
            masks[0] |= 1 << TYPES[f"tensor({m[1]})"]
        else:
            raise SystemExit(f"gen_schemas.py: unknown type string {s!r}")
    return tuple(masks)


def c_string(s):
    return '"' + s.replace("\\", "\\\\").replace('"', '\\"') + '"'


class Table:
    """Rows of one C array, equal groups of rows stored once."""

    def __init__(self, name, c_type):
        self.name, self.c_type, self.rows, self.seen = name, c_type, [], {}

    def add(self, rows):
        if not rows:
            return "NULL"
        key = tuple(rows)
        if key not in self.seen:
            self.seen[key] = len(self.rows)
            self.rows += rows
        return f"{self.name} + {self.seen[key]}"

    def text(self):
        return f"static const {self.c_type} {self.name}[] = {{\n" + "".join(f"  {r},\n" for r in self.rows) + "};\n"


def param_row(schema, p):
    constraints = {t.type_param_str: t.allowed_type_strs for t in schema.type_constraints}
    variable = p.type_str if p.type_str in constraints else ""
    t = typeset(constraints.get(p.type_str, [p.type_str]))
    option = defs.OpSchema.FormalParameterOption
    return "{%s, %s, {0x%xu, 0x%xu, 0x%xu, 0x%xu, %d, %d}, %d, %d, %d, %d}" % (
        c_string(p.name), c_string(variable), *t, p.option == option.Optional, p.option == option.Variadic,
        p.is_homogeneous, p.min_arity)


def attr_row(a):
    d, f, i, s = a.default_value, 0.0, 0, "NULL"
    kind = int(a.type.value)
    has = d.type != AttributeProto.UNDEFINED
    if d.type == AttributeProto.FLOAT:
        f = d.f
    elif d.type == AttributeProto.INT:
        i = d.i
    elif d.type == AttributeProto.STRING:
        s = c_string(d.s.decode())
    elif has:
        has = False  # list defaults: the operators' code knows them
    return "{%s, (assay_attr_type_t)%d, %d, %d, %r, INT64_C(%d), %s}" % (c_string(a.name), kind, a.required, has, float(f), i, s)


def main(path):
    params, attrs, rows = Table("schema_params", "assay_param_t"), Table("attr_specs", "assay_attr_spec_t"), []
    schemas = sorted(defs.get_all_schemas_with_history(), key=lambda s: (s.domain, s.name, s.since_version))
    top = 2**31 - 1
    for s in schemas:
        ins = [param_row(s, p) for p in s.inputs]
        outs = [param_row(s, p) for p in s.outputs]
        attr = [attr_row(s.attributes[k]) for k in sorted(s.attributes)]
        rows.append("{%s, %s, %d, %d, %d, %d, %d, %d, %s, %d, %s, %d, %s, %d}" % (
            c_string(s.domain), c_string(s.name), s.since_version, s.deprecated, s.min_input, min(s.max_input, top),
            s.min_output, min(s.max_output, top), params.add(ins), len(ins), params.add(outs), len(outs),
            attrs.add(attr), len(attr)))
    text = "// Made by scripts/gen_schemas.py from onnx %s.\n" % onnx.__version__
    text += params.text() + attrs.text()
    text += "static const assay_schema_t schemas[] = {\n" + "".join(f"  {r},\n" for r in rows) + "};\n"
    newest = {}
    for s in schemas:
        newest[s.domain] = max(newest.get(s.domain, 0), s.since_version)
    newest[""] = max(newest[""], defs.onnx_opset_version())
    text += "static const assay_opset_t newest_opsets[] = {\n" + "".join(
        f"  {{{c_string(d)}, {v}}},\n" for d, v in sorted(newest.items())) + "};\n"
    temporary = path + ".tmp"
    with open(temporary, "w") as f:
        f.write(text)
    os.replace(temporary, path)


if __name__ == "__main__":
    main(sys.argv[1])
