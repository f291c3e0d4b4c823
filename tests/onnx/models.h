// Small models for tests, made field by field.
#ifndef ASSAY_TESTS_ONNX_MODELS_H_
#define ASSAY_TESTS_ONNX_MODELS_H_

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "onnx/build.h"

// A node with inputs and outputs given as "a b -> c"; `_` is one left out. Attributes may follow,
// then onnx_end.
static inline onnx_mark_t begin_node(onnx_builder_t* b, uint32_t field, const char* op,
                                     const char* name, const char* values) {
  onnx_mark_t mark = onnx_begin(b, field);
  uint32_t number = 1;
  while (*values) {
    char word[64];
    size_t n = strcspn(values, " ");
    memcpy(word, values, n);
    word[n] = 0;
    values += n + strspn(values + n, " ");
    if (strcmp(word, "->") == 0)
      number = 2;
    else
      onnx_put_name(b, number, strcmp(word, "_") == 0 ? "" : word);
  }
  onnx_put_text(b, 3, name);
  onnx_put_text(b, 4, op);
  return mark;
}

static inline void put_node(onnx_builder_t* b, uint32_t field, const char* op, const char* name,
                            const char* values) {
  onnx_end(b, begin_node(b, field, op, name, values));
}

// A ValueInfoProto; rank -1: no shape; -2: no type.
static inline void put_info(onnx_builder_t* b, uint32_t field, const char* name, int elem, int rank,
                            const int64_t* dims) {
  onnx_mark_t mark = onnx_begin(b, field);
  onnx_put_name(b, 1, name);
  if (rank > -2) {
    onnx_mark_t type = onnx_begin(b, 2), tensor = onnx_begin(b, 1);
    onnx_put_int(b, 1, elem);
    if (rank >= 0) {
      onnx_mark_t shape = onnx_begin(b, 2);
      for (int i = 0; i < rank; i++) {
        onnx_mark_t dim = onnx_begin(b, 1);
        onnx_put_int(b, 1, dims[i]);
        onnx_end(b, dim);
      }
      onnx_end(b, shape);
    }
    onnx_end(b, tensor);
    onnx_end(b, type);
  }
  onnx_end(b, mark);
}

// The head of a TensorProto: name, type and dims; data may follow, then onnx_end.
static inline onnx_mark_t begin_tensor(onnx_builder_t* b, uint32_t field, const char* name,
                                       int64_t elem, int rank, const int64_t* dims) {
  onnx_mark_t mark = onnx_begin(b, field);
  for (int i = 0; i < rank; i++) onnx_put_int(b, 1, dims[i]);
  onnx_put_int(b, 2, elem);
  onnx_put_text(b, 8, name);
  return mark;
}

static inline void put_prop(onnx_builder_t* b, uint32_t field, const char* key, const char* value) {
  onnx_mark_t mark = onnx_begin(b, field);
  onnx_put_name(b, 1, key);
  onnx_put_name(b, 2, value);
  onnx_end(b, mark);
}

static inline void put_opset(onnx_builder_t* b, uint32_t field, const char* domain,
                             int64_t version) {
  onnx_mark_t mark = onnx_begin(b, field);
  onnx_put_text(b, 1, domain);
  onnx_put_int(b, 2, version);
  onnx_end(b, mark);
}

// The head of a model: IR version and operator set.
static inline void put_head(onnx_builder_t* b, int64_t ir, int64_t opset) {
  onnx_put_int(b, 1, ir);
  if (opset) put_opset(b, 8, "", opset);
}

// What most models have: input x, output y, floats of shape [2].
static inline void put_x_and_y(onnx_builder_t* b) {
  put_info(b, 11, "x", 1, 1, (int64_t[]){2});
  put_info(b, 12, "y", 1, 1, (int64_t[]){2});
}

// A subgraph attribute, up to its content.
typedef struct graph_attr {
  onnx_mark_t attr, graph;
} graph_attr_t;
static inline graph_attr_t begin_graph_attr(onnx_builder_t* b, const char* name) {
  graph_attr_t m;
  m.attr = onnx_begin(b, 5);
  onnx_put_name(b, 1, name);
  onnx_put_int(b, 20, 5);
  m.graph = onnx_begin(b, 6);
  return m;
}
static inline void end_graph_attr(onnx_builder_t* b, graph_attr_t m) {
  onnx_end(b, m.graph);
  onnx_end(b, m.attr);
}

static inline void put_int_attr(onnx_builder_t* b, const char* name, int64_t value) {
  onnx_mark_t m = onnx_begin(b, 5);
  onnx_put_name(b, 1, name);
  onnx_put_int(b, 3, value);
  onnx_put_int(b, 20, 2);
  onnx_end(b, m);
}

#endif  // ASSAY_TESTS_ONNX_MODELS_H_
