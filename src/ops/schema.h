// What the ONNX standard says of each operator version: inputs, outputs, attributes, types.
//
// The rows of ai.onnx and its sister domains are made at build time from the pinned onnx
// package (scripts/gen_schemas.py), so that they are the standard's, opset by opset. Rows of other
// domains stand as text in the operator's row (assay_op_t.schema) and are parsed on first use.
#ifndef ASSAY_OPS_SCHEMA_H_
#define ASSAY_OPS_SCHEMA_H_

#include "ir/ir.h"

// A set of value types. Bit n of a mask is element type n.
typedef struct assay_typeset {
  uint32_t tensor, seq, optional, optional_seq;
  bool map, seq_map;  // any map, any sequence of maps
} assay_typeset_t;

typedef struct assay_param {
  const char* name;
  const char* type;       // "T": the name of a type variable, or "" if types.. is all there is
  assay_typeset_t types;  // what may stand here
  bool is_optional, is_variadic;
  bool is_homogeneous;  // of a variadic one: all of one type
  int min_arity;        // of a variadic one
} assay_param_t;

typedef struct assay_attr_spec {
  const char* name;
  assay_attr_type_t type;
  bool required, has_default;
  double f;       // default of FLOAT
  int64_t i;      // default of INT
  const char* s;  // default of STRING
} assay_attr_spec_t;

typedef struct assay_schema {
  const char* domain;  // "" for ai.onnx
  const char* name;
  int since;
  bool deprecated;
  int min_inputs, max_inputs, min_outputs, max_outputs;  // max: INT32_MAX if variadic
  const assay_param_t* inputs;
  int n_inputs;
  const assay_param_t* outputs;
  int n_outputs;
  const assay_attr_spec_t* attrs;
  int n_attrs;
} assay_schema_t;

// The schema of an operator as of a version of its domain: the newest not newer; NULL if none.
// *out_known (may be NULL): whether the operator exists in any version.
const assay_schema_t* assay_schema_find(const char* domain, const char* name, int64_t version,
                                        bool* out_known);
// The newest version of a domain that the table knows; 0 if it does not know the domain.
int assay_schema_newest(const char* domain);
// All rows, by domain, name, since.
size_t assay_schema_count(void);
const assay_schema_t* assay_schema_at(size_t i);

// The input i, or output i, of a schema (the last one if variadic); NULL if past the end.
const assay_param_t* assay_schema_input(const assay_schema_t* s, size_t i);
const assay_param_t* assay_schema_output(const assay_schema_t* s, size_t i);
const assay_attr_spec_t* assay_schema_attr(const assay_schema_t* s, const char* name);

bool assay_typeset_has(const assay_typeset_t* set, const assay_valtype_t* type);
// "float16, float, double" into buffer, for messages; returns buffer.
const char* assay_typeset_text(const assay_typeset_t* set, char* buffer, size_t capacity);

#endif  // ASSAY_OPS_SCHEMA_H_
