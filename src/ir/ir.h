// The graph of a model: what an ONNX file says, in a form that can be asked and changed.
//
// Everything lives in the model's arena and dies with the model; tensors are counted, and the model
// releases its own. Text is NUL-terminated and never NULL ("" if absent). What Assay does not
// interpret is kept as protobuf wire bytes in `extra`, so that a model written again is the same.
#ifndef ASSAY_IR_IR_H_
#define ASSAY_IR_IR_H_

#include <assay/model.h>
#include <assay/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file.h"
#include "base/nearest.h"
#include "base/str.h"
#include "ir/dim.h"
#include "tensor/tensor.h"

typedef struct assay_graph assay_graph_t;
typedef struct assay_node assay_node_t;
typedef struct assay_value assay_value_t;
typedef struct assay_attr assay_attr_t;
typedef struct assay_function assay_function_t;
typedef struct assay_valtype assay_valtype_t;
struct assay_op;      // ops/op.h
struct assay_schema;  // ops/schema.h

// Bytes that are carried along unread.
typedef struct assay_bytes {
  const uint8_t* data;
  size_t len;
} assay_bytes_t;

// A key and a value of metadata_props.
typedef struct assay_prop {
  const char *key, *value;
} assay_prop_t;

// The type of a value, immutable once made. TENSOR: elem, and the shape if has_shape.
// SEQUENCE and OPTIONAL: `of`. MAP: elem is the key's type and `of` the values'.
struct assay_valtype {
  assay_kind_t kind;
  bool is_sparse;  // declared sparse_tensor; evaluated dense
  assay_type_t elem;
  bool has_shape;
  int rank;
  const assay_dim_t** dims;  // rank of them; NULL: unknown
  const char** denotations;  // rank of them, or NULL
  const assay_valtype_t* of;
  const char* denotation;
};

// What is known before running about the elements of an integer (or bool) tensor of rank 0 or 1:
// n expressions. Shape, Gather, Concat, ... hand these on, so that Reshape knows its target.
typedef struct assay_content {
  int rank;  // 0 or 1
  int64_t n;
  const assay_dim_t** elems;  // NULL entries: unknown
} assay_content_t;

struct assay_value {
  const char* name;
  assay_graph_t* graph;             // where it is defined
  assay_node_t* producer;           // NULL: graph input, initializer or outer value
  int output_index;                 // of the producer
  const assay_valtype_t* type;      // inferred; NULL: not known
  const assay_valtype_t* declared;  // as the file says; NULL: nothing said
  // Of an input to which sizes were given, which `declared` has: as the file says; NULL: as
  // declared.
  const assay_valtype_t* open;
  const assay_content_t* content;  // NULL: nothing known
  assay_tensor_t* constant;        // initializer; owned by the model; NULL: none
  bool is_input, is_output;        // of its graph
  bool in_value_info;              // the file lists it there (for export)
  int id;                          // dense number within the model, for tables beside the graph
  const char* doc;
  assay_prop_t* props;
  size_t n_props;
  // Of the initializer's TensorProto.
  const char* tensor_doc;
  assay_bytes_t tensor_extra;
  const char* external_location;  // file of external data as written in the model; NULL: none
  bool is_sparse_initializer;
  // The initializer's data were stripped from the file: `constant` has zeros in their place, and
  // none are written.
  bool is_stripped;
  assay_bytes_t extra;
};

typedef enum assay_attr_type {  // numbers as in AttributeProto.AttributeType
  ASSAY_ATTR_UNDEFINED = 0,
  ASSAY_ATTR_FLOAT = 1,
  ASSAY_ATTR_INT = 2,
  ASSAY_ATTR_STRING = 3,
  ASSAY_ATTR_TENSOR = 4,
  ASSAY_ATTR_GRAPH = 5,
  ASSAY_ATTR_FLOATS = 6,
  ASSAY_ATTR_INTS = 7,
  ASSAY_ATTR_STRINGS = 8,
  ASSAY_ATTR_TENSORS = 9,
  ASSAY_ATTR_GRAPHS = 10,
  ASSAY_ATTR_SPARSE_TENSOR = 11,
  ASSAY_ATTR_SPARSE_TENSORS = 12,
  ASSAY_ATTR_TYPE_PROTO = 13,
  ASSAY_ATTR_TYPE_PROTOS = 14,
} assay_attr_type_t;

struct assay_attr {
  const char* name;
  const char* doc;
  const char* ref;  // in a function: the name of the function's attribute; "" otherwise
  assay_attr_type_t type;
  size_t n;  // elements of the list forms; 1 for single ones
  union {
    float f;
    int64_t i;
    assay_string_t s;
    assay_tensor_t* t;  // TENSOR; SPARSE_TENSOR (densified); owned by the model
    assay_graph_t* g;
    const assay_valtype_t* type;
    const float* floats;
    const int64_t* ints;
    const assay_string_t* strings;
    assay_tensor_t** tensors;
    assay_graph_t** graphs;
    const assay_valtype_t** types;
  } u;
  assay_bytes_t wire;  // sparse tensors and tensors with names or documentation: as they were read
  assay_bytes_t extra;
};

struct assay_node {
  const char* name;   // as in the file, maybe ""
  const char* label;  // the name, or OpType_INDEX where there is none; unique in its graph's text
  const char* op_type;
  const char* domain;  // "" for ai.onnx
  const char* overload;
  const char* doc;
  assay_graph_t* graph;
  size_t n_inputs, n_outputs, n_attrs;
  assay_value_t** inputs;   // NULL: an optional input left out
  assay_value_t** outputs;  // NULL: an optional output left out
  assay_attr_t* attrs;
  const struct assay_op* op;          // NULL until resolved, or unknown
  const struct assay_schema* schema;  // the version in force; NULL as above
  const assay_function_t* function;   // the model-local function it calls; NULL: none
  int id;                             // dense number within the model, for tables beside the graph
  int index;                          // position in its graph when read; labels and messages use it
  assay_prop_t* props;
  size_t n_props;
  assay_bytes_t extra;
};

struct assay_graph {
  assay_model_t* model;
  assay_graph_t* outer;  // the graph whose node holds this one as an attribute; NULL: top
  assay_node_t* owner;   // that node
  const char* name;
  const char* doc;
  assay_value_t** inputs;
  size_t n_inputs;
  assay_value_t** outputs;
  size_t n_outputs;
  assay_value_t** initializers;  // in the file's order
  size_t n_initializers, cap_initializers;
  assay_node_t** nodes;  // every node after those whose outputs it reads
  size_t n_nodes, cap_nodes;
  assay_map_t values;          // name -> assay_value_t*; freed by the model
  assay_map_t labels;          // of nodes, taken so far -> how often asked for; freed by the model
  int n_created;               // nodes made so far: the next one's index
  assay_value_t** value_info;  // in the file's order
  size_t n_value_info;
  assay_prop_t* props;
  size_t n_props;
  assay_bytes_t extra;  // quantization annotations and what else there may be
};

typedef struct assay_opset {
  const char* domain;
  int64_t version;
} assay_opset_t;

struct assay_function {
  const char *name, *domain, *overload, *doc;
  const char** inputs;
  size_t n_inputs;
  const char** outputs;
  size_t n_outputs;
  const char** attr_names;  // without a default
  size_t n_attr_names;
  assay_attr_t* attr_defaults;
  size_t n_attr_defaults;
  assay_opset_t* opsets;
  size_t n_opsets;
  assay_graph_t* body;  // its inputs and outputs have no types
  assay_prop_t* props;
  size_t n_props;
  assay_bytes_t extra;
};

struct assay_model {
  _Atomic int refs;
  assay_arena_t* arena;
  assay_dims_t* dims;
  const char* path;    // "" if it did not come from a file
  const char* folder;  // of the path, for external data; "." if none
  int64_t ir_version, model_version;
  const char *producer_name, *producer_version, *domain, *doc;
  assay_opset_t* opsets;
  size_t n_opsets;
  assay_graph_t* graph;
  assay_function_t** functions;
  size_t n_functions;
  assay_prop_t* props;
  size_t n_props;
  assay_bytes_t extra;       // training_info, configuration, unknown fields
  int n_values, n_node_ids;  // ids handed out
  const char* shapes;        // that were given for its inputs, "a=1x?x3;b=2"; "": none
  bool batch_used;           // a batch was given, and is the size of a leading dimension
  // What is wrong with it and keeps nobody from running it (assay_model_warn).
  const char** warnings;
  size_t n_warnings, cap_warnings;
  // What is not in the arena.
  assay_model_t* source;  // as it was read, of models that were handed over; NULL
  assay_mapping_t** mappings;
  size_t n_mappings, cap_mappings;
  assay_tensor_t** tensors;
  size_t n_tensors, cap_tensors;
  assay_graph_t** graphs;  // all, for their maps
  size_t n_graphs, cap_graphs;
};

// ---- making ----------------------------------------------------------------------------------

assay_status_t assay_model_create(assay_model_t** out) ASSAY_MUST_USE;
// Notes what is wrong with the model though it can be run, as a line without its end, once. There
// are at most ASSAY_MAX_WARNINGS: the last says that there are more.
enum { ASSAY_MAX_WARNINGS = 32 };
assay_status_t assay_model_warn(assay_model_t* model, const char* format, ...) ASSAY_MUST_USE
    ASSAY_PRINTF(2, 3);
// The model takes over one reference to the tensor (also on failure).
assay_status_t assay_model_take_tensor(assay_model_t* model,
                                       assay_tensor_t* take_tensor) ASSAY_MUST_USE;
assay_status_t assay_model_take_mapping(assay_model_t* model, assay_mapping_t* take) ASSAY_MUST_USE;

assay_status_t assay_graph_create(assay_model_t* model, assay_graph_t* outer,
                                  assay_graph_t** out) ASSAY_MUST_USE;
// A new value of this name; CORRUPT if the graph has one already.
assay_status_t assay_graph_add_value(assay_graph_t* g, const char* name,
                                     assay_value_t** out) ASSAY_MUST_USE;
// A new value with a name that the graph does not use, starting with `hint`.
assay_status_t assay_graph_new_value(assay_graph_t* g, const char* hint,
                                     assay_value_t** out) ASSAY_MUST_USE;
// The value of a name in this graph only, or here and in the graphs around it; NULL if none.
assay_value_t* assay_graph_find(const assay_graph_t* g, const char* name);
assay_value_t* assay_graph_find_visible(const assay_graph_t* g, const char* name);
// Those of some values (inputs, outputs) whose names are near to one that none of them has.
assay_nearest_t assay_values_near(assay_value_t* const* values, size_t n, const char* name);
// For messages: "; did you mean 'image'?", or "".
#define ASSAY_VALUES_NEAR_TEXT(values, n, name) \
  ASSAY_NEAREST_TEXT((assay_nearest_t[]){assay_values_near(values, n, name)})
// Makes a value an initializer of its graph with this content (one reference is taken over).
assay_status_t assay_graph_set_initializer(assay_value_t* value,
                                           assay_tensor_t* take_tensor) ASSAY_MUST_USE;
// A node with room for its inputs, outputs and attributes, not yet in the graph's list.
assay_status_t assay_node_create(assay_graph_t* g, const char* domain, const char* op_type,
                                 const char* name, size_t n_inputs, size_t n_outputs,
                                 size_t n_attrs, assay_node_t** out) ASSAY_MUST_USE;
// Sets output i of a node; the value gets the node as producer.
void assay_node_set_output(assay_node_t* node, size_t i, assay_value_t* value);
// Puts a node into the graph before position `at` (n_nodes: at the end).
assay_status_t assay_graph_insert(assay_graph_t* g, assay_node_t* node, size_t at) ASSAY_MUST_USE;
void assay_graph_remove(assay_graph_t* g, size_t at);
// A deep copy of a model (shares tensors and mappings); values keep their ids.
assay_status_t assay_model_clone(const assay_model_t* model, assay_model_t** out) ASSAY_MUST_USE;
// How many elements the initializers of all its graphs have, and the bytes that these take.
void assay_model_parameters(const assay_model_t* model, double* out_elements, double* out_bytes);

// Types.
assay_status_t assay_valtype_tensor(assay_model_t* m, assay_type_t elem, int rank,
                                    const assay_dim_t* const* dims,
                                    const assay_valtype_t** out) ASSAY_MUST_USE;
assay_status_t assay_valtype_unranked(assay_model_t* m, assay_type_t elem,
                                      const assay_valtype_t** out) ASSAY_MUST_USE;
assay_status_t assay_valtype_of(assay_model_t* m, assay_kind_t kind, assay_type_t key,
                                const assay_valtype_t* of,
                                const assay_valtype_t** out) ASSAY_MUST_USE;
// "float[N, 3, 224, 224]", "seq(int64[])"; for messages. Returns buffer.
const char* assay_valtype_text(const assay_valtype_t* t, char* buffer, size_t capacity);
#define ASSAY_VALTYPE_TEXT(t) assay_valtype_text((t), (char[512]){0}, 512)

// ---- asking ----------------------------------------------------------------------------------

// The version of a domain that the model imports; 0 if it does not. "" and "ai.onnx" are the same.
int64_t assay_model_opset(const assay_model_t* model, const char* domain);
const assay_attr_t* assay_node_attr(const assay_node_t* node, const char* name);  // NULL: not set
// The value's content if it is constant before running (initializer or Constant node folded).
static inline assay_tensor_t* assay_value_constant(const assay_value_t* v) {
  return v ? v->constant : NULL;
}
// The text form of a model, for people and golden tests.
assay_status_t assay_model_print(const assay_model_t* model, assay_str_t* out) ASSAY_MUST_USE;
// Checks the invariants that all other code relies on: order of nodes, producers, no dangling
// pointers. Never fails on a model that import accepted; INTERNAL otherwise.
assay_status_t assay_model_verify(const assay_model_t* model) ASSAY_MUST_USE;

#endif  // ASSAY_IR_IR_H_
