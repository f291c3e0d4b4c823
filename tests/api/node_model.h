// Models of one node, written by hand: y = Op(x, x) of float[N, 2], or of an operator that nobody
// knows.
#ifndef TESTS_API_NODE_MODEL_H_
#define TESTS_API_NODE_MODEL_H_

#include "api_case.h"

// A protobuf message that grows. Numbers, fields and the lengths of messages within are small.
typedef struct message {
  char bytes[512];
  size_t n;
} message_t;

static inline void put_number(message_t* m, int field, int x) {
  assert_true(x < 128 && m->n + 2 <= sizeof m->bytes);
  m->bytes[m->n++] = (char)(field << 3);
  m->bytes[m->n++] = (char)x;
}

static inline void put_bytes(message_t* m, int field, const char* x, size_t n) {
  assert_true(n < 1 << 14 && m->n + n + 3 <= sizeof m->bytes);
  m->bytes[m->n++] = (char)(field << 3 | 2);
  if (n >= 128) m->bytes[m->n++] = (char)((n & 127) | 128);
  m->bytes[m->n++] = (char)(n >= 128 ? n >> 7 : n);
  memcpy(m->bytes + m->n, x, n);
  m->n += n;
}

static inline void put_text(message_t* m, int field, const char* text) {
  put_bytes(m, field, text, strlen(text));
}

static inline void put_message(message_t* m, int field, const message_t* x) {
  put_bytes(m, field, x->bytes, x->n);
}

// ValueInfoProto of float[N, 2].
static inline message_t value_info(const char* name) {
  message_t open = {{0}, 0}, two = {{0}, 0}, shape = {{0}, 0}, tensor = {{0}, 0}, type = {{0}, 0},
            info = {{0}, 0};
  put_text(&open, 2, "N");
  put_number(&two, 1, 2);
  put_message(&shape, 1, &open);
  put_message(&shape, 1, &two);
  put_number(&tensor, 1, ASSAY_TYPE_FLOAT);
  put_message(&tensor, 2, &shape);
  put_message(&type, 1, &tensor);
  put_text(&info, 1, name);
  put_message(&info, 2, &type);
  return info;
}

static inline void put_import(message_t* model, const char* domain, int version) {
  message_t import = {{0}, 0};
  put_text(&import, 1, domain);
  put_number(&import, 2, version);
  put_message(model, 8, &import);
}

// Writes the model: a node "n" of this operator.
static inline void write_node_model(const char* path, const char* domain, const char* op) {
  message_t node = {{0}, 0}, graph = {{0}, 0}, model = {{0}, 0};
  const message_t x = value_info("x"), y = value_info("y");
  put_text(&node, 1, "x");
  put_text(&node, 1, "x");
  put_text(&node, 2, "y");
  put_text(&node, 3, "n");
  put_text(&node, 4, op);
  if (*domain) put_text(&node, 7, domain);
  put_message(&graph, 1, &node);
  put_text(&graph, 2, "g");
  put_message(&graph, 11, &x);
  put_message(&graph, 12, &y);
  put_number(&model, 1, 8);
  put_message(&model, 7, &graph);
  put_import(&model, "", 17);
  if (*domain) put_import(&model, domain, 1);
  FILE* f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(model.bytes, 1, model.n, f), model.n);
  fclose(f);
}

#endif  // TESTS_API_NODE_MODEL_H_
