// What valid models mean once they are read, written again, and inlined.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// cmocka needs these before it
#include <cmocka.h>

#include "base/alloc.h"
#include "formats/format.h"
#include "onnx/models.h"
#include "onnx/onnx.h"
#include "ops/schema.h"

static void ok(assay_status_t st) {
  if (st) fprintf(stderr, "%s\n", assay_status_message(st));
  assert_null(st);
}

static assay_model_t* read_built(onnx_builder_t* b) {
  assay_model_t* m = NULL;
  assert_null(b->status);
  ok(assay_onnx_read_bytes(b->bytes, b->len, NULL, &m));
  ok(assay_model_verify(m));
  onnx_builder_deinit(b);
  return m;
}

static void assert_all_freed(void) { assert_int_equal(assay_alloc_live(), 0); }

static const assay_tensor_t* constant(const assay_model_t* m, const char* name) {
  const assay_value_t* v = assay_graph_find(m->graph, name);
  assert_non_null(v);
  assert_non_null(v->constant);
  return v->constant;
}

// ---- elements ---------------------------------------------------------------------------------

enum { N = 5 };

// The bits of element i: a pattern that no two neighbours share, and valid in every type.
static uint64_t bits_of(assay_type_t type, int i) {
  uint64_t v = UINT64_C(0x3c5a00ff81c3e700) >> (7 * i) ^ (uint64_t)i * 0x9e37;
  int bits = assay_type_bits(type);
  if (type == ASSAY_TYPE_BOOL) return (uint64_t)i & 1;
  return bits >= 64 ? v : v & ((UINT64_C(1) << bits) - 1);
}

static void put_varint(assay_str_t* s, uint64_t v) {
  for (; v >= 0x80; v >>= 7) assay_str_append_n(s, (char[]){(char)(v | 0x80)}, 1);
  assay_str_append_n(s, (char[]){(char)v}, 1);
}

// The elements in the field that the standard names for the type; packed, or one field each.
static void put_typed(onnx_builder_t* b, assay_type_t type, const uint8_t* raw, bool packed) {
  assay_str_t s = {0};
  int bits = assay_type_bits(type);
  bool is_signed = assay_type_is_signed(type);
  uint32_t field = type == ASSAY_TYPE_INT64                                 ? 7
                   : type == ASSAY_TYPE_UINT32 || type == ASSAY_TYPE_UINT64 ? 11
                                                                            : 5;
  int64_t bytes = 0;
  assert_true(assay_type_packed_bytes(type, N, &bytes));
  if (type == ASSAY_TYPE_FLOAT || type == ASSAY_TYPE_DOUBLE || assay_type_is_complex(type)) {
    bool wide = type == ASSAY_TYPE_DOUBLE || type == ASSAY_TYPE_COMPLEX128;
    if (packed) onnx_put_blob(b, wide ? 10 : 4, raw, (size_t)bytes);
    for (int64_t i = 0; !packed && i < bytes; i += wide ? 8 : 4) {
      onnx_put_bytes(b, wide ? "\x51" : "\x25", 1);
      onnx_put_bytes(b, raw + i, wide ? 8 : 4);
    }
    return;
  }
  int entries = bits == 4 || bits == 2 ? (int)bytes : N;
  for (int i = 0; i < entries; i++) {
    uint64_t v = bits == 4 || bits == 2 ? raw[i] : bits_of(type, i);
    // Signed types are sign-extended, as ONNX writes them.
    if (is_signed && bits >= 8 && bits < 64 && v >> (bits - 1)) v |= ~UINT64_C(0) << bits;
    if (packed)
      put_varint(&s, v);
    else
      onnx_put_int(b, field, (int64_t)v);
  }
  if (packed) onnx_put_blob(b, field, s.text, s.len);
  assay_str_deinit(&s);
}

static void typed_fields_are_raw_data(void** state) {
  (void)state;
  for (int type = 1; type < ASSAY_TYPE_COUNT; type++) {
    if (type == ASSAY_TYPE_STRING) continue;
    assay_type_t t = (assay_type_t)type;
    int bits = assay_type_bits(t);
    uint8_t raw[16 * N + 1] = {0};
    for (int i = 0; i < N; i++) {
      uint64_t v = bits_of(t, i);
      for (int k = 0; k < (bits > 64 ? 64 : bits); k++)
        raw[(i * bits + k) / 8] |= (uint8_t)((v >> k & 1) << (i * bits + k) % 8);
    }
    int64_t bytes = 0;
    assert_true(assay_type_packed_bytes(t, N, &bytes));
    for (int form = 0; form < 3; form++) {
      onnx_builder_t b = {0};
      put_head(&b, 14, 20);
      onnx_mark_t g = onnx_begin(&b, 7);
      onnx_mark_t m = begin_tensor(&b, 5, "w", type, 1, (int64_t[]){N});
      if (form == 0)
        onnx_put_blob(&b, 9, raw, (size_t)bytes);
      else
        put_typed(&b, t, raw, form == 1);
      onnx_end(&b, m);
      onnx_end(&b, g);
      assay_model_t* model = read_built(&b);
      const assay_tensor_t* w = constant(model, "w");
      assert_int_equal(w->type, type);
      assert_int_equal(w->store, ASSAY_STORE_PACKED);
      assert_memory_equal(w->data, raw, (size_t)bytes);
      assay_model_release(model);
    }
  }
  assert_all_freed();
}

static void sparse_tensors(void** state) {
  (void)state;
  static const float values[] = {1.5f, -2};
  static const int64_t linear[] = {1, 5}, table[] = {0, 1, 1, 2};
  for (int form = 0; form < 2; form++) {
    onnx_builder_t b = {0};
    put_head(&b, 13, 20);
    onnx_mark_t g = onnx_begin(&b, 7), s = onnx_begin(&b, 15);
    onnx_mark_t t = begin_tensor(&b, 1, "w", 1, 1, (int64_t[]){2});
    onnx_put_blob(&b, 9, values, sizeof values);
    onnx_end(&b, t);
    t = begin_tensor(&b, 2, "", 7, form ? 2 : 1, (int64_t[]){2, 2});
    onnx_put_blob(&b, 9, form ? table : linear, form ? sizeof table : sizeof linear);
    onnx_end(&b, t);
    onnx_put_int(&b, 3, 2);
    onnx_put_int(&b, 3, 3);
    onnx_end(&b, s);
    onnx_end(&b, g);
    assay_model_t* m = read_built(&b);
    static const double want[] = {0, 1.5, 0, 0, 0, -2};
    assay_tensor_t* w = NULL;
    ok(assay_tensor_widen((assay_tensor_t*)(uintptr_t)constant(m, "w"), &w));
    assert_memory_equal(w->data, want, sizeof want);
    assay_tensor_release(w);
    assay_model_release(m);
  }
  assert_all_freed();
}

static void put_constant(onnx_builder_t* b, const char* name, const char* attr, int type,
                         uint32_t field) {
  char values[32];
  snprintf(values, sizeof values, "-> %s", name);
  onnx_mark_t n = begin_node(b, 1, "Constant", "", values), a = onnx_begin(b, 5);
  onnx_put_name(b, 1, attr);
  onnx_put_int(b, 20, type);
  for (int i = 0; i < (field > 4 ? 3 : 1); i++) {
    if (field == 2 || field == 7) onnx_put_float(b, field, 1.5f + (float)i);
    if (field == 3 || field == 8) onnx_put_int(b, field, 7 - i);
    if (field == 4 || field == 9) onnx_put_name(b, field, "text");
  }
  onnx_end(b, a);
  onnx_end(b, n);
}

static void constants(void** state) {
  (void)state;
  onnx_builder_t b = {0};
  put_head(&b, 8, 13);
  onnx_mark_t g = onnx_begin(&b, 7);
  put_constant(&b, "f", "value_float", 1, 2);
  put_constant(&b, "i", "value_int", 2, 3);
  put_constant(&b, "s", "value_string", 3, 4);
  put_constant(&b, "fs", "value_floats", 6, 7);
  put_constant(&b, "is", "value_ints", 7, 8);
  put_constant(&b, "ss", "value_strings", 8, 9);
  put_constant(&b, "none", "value_ints", 7, 0);
  onnx_end(&b, g);
  assay_model_t* m = read_built(&b);
  assert_true(assay_f64(constant(m, "f"))[0] == 1.5 && constant(m, "f")->rank == 0);
  assert_int_equal(assay_i64(constant(m, "i"))[0], 7);
  assert_int_equal(assay_strings(constant(m, "s"))[0].len, 4);
  assert_true(assay_f64(constant(m, "fs"))[2] == 3.5);
  assert_int_equal(constant(m, "is")->dims[0], 3);
  assert_int_equal(assay_i64(constant(m, "is"))[2], 5);
  assert_memory_equal(assay_strings(constant(m, "ss"))[2].text, "text", 4);
  assert_int_equal(constant(m, "none")->size, 0);
  assay_model_release(m);
  assert_all_freed();
}

// ---- graphs -----------------------------------------------------------------------------------

static void assert_order(const assay_graph_t* g, const char* names) {
  char text[256] = "";
  for (size_t i = 0; i < g->n_nodes; i++) {
    strcat(text, i ? " " : "");
    strcat(text, g->nodes[i]->label);
  }
  assert_string_equal(text, names);
}

static void nodes_are_sorted(void** state) {
  (void)state;
  onnx_builder_t b = {0};
  put_head(&b, 8, 13);
  onnx_mark_t g = onnx_begin(&b, 7);
  put_node(&b, 1, "Relu", "last", "c -> y");
  put_node(&b, 1, "Relu", "free", "x -> f");
  // Captures c, which stands behind it.
  onnx_mark_t n = begin_node(&b, 1, "If", "choice", "f -> d");
  graph_attr_t s = begin_graph_attr(&b, "then_branch");
  put_node(&b, 1, "Relu", "inner2", "u -> t");
  put_node(&b, 1, "Add", "inner1", "c x -> u");
  put_info(&b, 12, "t", 1, -1, NULL);
  end_graph_attr(&b, s);
  onnx_end(&b, n);
  put_node(&b, 1, "Add", "middle", "a f -> c");
  put_node(&b, 1, "Relu", "first", "x -> a");
  put_x_and_y(&b);
  onnx_end(&b, g);
  assay_model_t* m = read_built(&b);
  assert_order(m->graph, "first free middle last choice");
  assert_order(m->graph->nodes[4]->attrs[0].u.g, "inner1 inner2");
  assay_model_release(m);
  assert_all_freed();
}

static void first_versions(void** state) {
  (void)state;
  // IR version 1: attributes without a type, no operator set.
  onnx_builder_t b = {0};
  onnx_put_int(&b, 1, 1);
  onnx_mark_t g = onnx_begin(&b, 7);
  onnx_mark_t n = begin_node(&b, 1, "LeakyRelu", "", "x -> y"), a = onnx_begin(&b, 5);
  onnx_put_name(&b, 1, "alpha");
  onnx_put_float(&b, 2, 0.5f);
  onnx_end(&b, a);
  onnx_end(&b, n);
  put_x_and_y(&b);
  onnx_end(&b, g);
  assay_model_t* m = read_built(&b);
  ok(assay_onnx_check(m));
  assert_int_equal(assay_model_opset(m, ""), 1);
  assert_int_equal(m->graph->nodes[0]->schema->since, 1);
  assert_int_equal(m->graph->nodes[0]->attrs[0].type, ASSAY_ATTR_FLOAT);
  assay_model_release(m);
  assert_all_freed();
}

static bool contains(const uint8_t* bytes, size_t n, const char* text) {
  return memmem(bytes, n, text, strlen(text)) != NULL;
}

static void put_unknown(onnx_builder_t* b, const char* text) { onnx_put_name(b, 999, text); }

static void unknown_fields_come_back(void** state) {
  (void)state;
  onnx_builder_t b = {0};
  put_head(&b, 8, 13);
  put_unknown(&b, "in the model");
  onnx_mark_t t = onnx_begin(&b, 20);  // training_info
  put_prop(&b, 3, "binding", "kept");
  onnx_end(&b, t);
  onnx_mark_t g = onnx_begin(&b, 7);
  put_unknown(&b, "in the graph");
  onnx_mark_t n = begin_node(&b, 1, "Custom", "", "x -> y");
  put_unknown(&b, "in the node");
  onnx_put_name(&b, 7, "some.where");
  onnx_mark_t a = onnx_begin(&b, 5);
  onnx_put_name(&b, 1, "t");
  put_unknown(&b, "in the attribute");
  onnx_put_int(&b, 20, 4);
  onnx_mark_t v = begin_tensor(&b, 5, "with a name", 1, 0, NULL);
  onnx_put_blob(&b, 9, "1234", 4);
  put_unknown(&b, "in its tensor");
  onnx_end(&b, v);
  onnx_end(&b, a);
  onnx_end(&b, n);
  put_unknown(&b, "in the graph again");
  put_x_and_y(&b);
  t = begin_tensor(&b, 5, "w", 1, 0, NULL);
  onnx_put_blob(&b, 9, "1234", 4);
  put_unknown(&b, "in the tensor");
  onnx_end(&b, t);
  put_info(&b, 13, "stale", 1, -1, NULL);
  onnx_mark_t o = onnx_begin(&b, 11);
  onnx_put_name(&b, 1, "opaque");
  onnx_mark_t type = onnx_begin(&b, 2), opaque = onnx_begin(&b, 7);
  onnx_put_name(&b, 2, "kind of opaque");
  onnx_end(&b, opaque);
  onnx_end(&b, type);
  onnx_end(&b, o);
  onnx_end(&b, g);
  assay_model_t* m = read_built(&b);
  uint8_t* bytes = NULL;
  size_t size;
  static const char* const texts[] = {"in the model",       "binding",     "in the graph",
                                      "in the graph again", "in the node", "some.where",
                                      "in the attribute",   "with a name", "in its tensor",
                                      "in the tensor",      "stale",       "kind of opaque"};
  // Twice: what was written is read and written again.
  for (int k = 0; k < 2; k++) {
    ok(assay_onnx_write_bytes(m, &bytes, &size));
    assay_model_release(m);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
      if (!contains(bytes, size, texts[i])) fail_msg("'%s' is lost", texts[i]);
    ok(assay_onnx_read_bytes(bytes, size, NULL, &m));
    assay_free(bytes);
  }
  assay_model_release(m);
  assert_all_freed();
}

// ---- functions --------------------------------------------------------------------------------

static onnx_mark_t begin_function(onnx_builder_t* b, const char* name, const char* inputs,
                                  const char* outputs, int64_t opset) {
  onnx_mark_t f = onnx_begin(b, 25);
  onnx_put_name(b, 1, name);
  for (const char* p = inputs; *p; p++) onnx_put_blob(b, 4, p, 1);
  for (const char* p = outputs; *p; p++) onnx_put_blob(b, 5, p, 1);
  onnx_put_name(b, 10, "local");
  put_opset(b, 9, "", opset);
  return f;
}

static void put_float_attr(onnx_builder_t* b, uint32_t field, const char* name, float v,
                           const char* ref) {
  onnx_mark_t a = onnx_begin(b, field);
  onnx_put_name(b, 1, name);
  onnx_put_int(b, 20, 1);
  if (ref)
    onnx_put_name(b, 21, ref);
  else
    onnx_put_float(b, 2, v);
  onnx_end(b, a);
}

static onnx_mark_t begin_call(onnx_builder_t* b, uint32_t field, const char* op, const char* name,
                              const char* values) {
  onnx_mark_t n = begin_node(b, field, op, name, values);
  onnx_put_name(b, 7, "local");
  return n;
}

static double alpha_of(const assay_model_t* m, size_t i) {
  const assay_attr_t* a = assay_node_attr(m->graph->nodes[i], "alpha");
  return a ? (double)a->u.f : -1;
}

static void functions_are_inlined(void** state) {
  (void)state;
  onnx_builder_t b = {0};
  put_head(&b, 10, 20);
  // F(a) -> b, c: b = leaky(leaky(a)) by attributes s (no default) and d (0.25); c = a.
  onnx_mark_t f = begin_function(&b, "F", "a", "bc", 18);
  onnx_put_name(&b, 6, "s");
  put_float_attr(&b, 11, "d", 0.25f, NULL);
  onnx_mark_t n = begin_node(&b, 7, "LeakyRelu", "one", "a -> t");
  put_float_attr(&b, 5, "alpha", 0, "s");
  onnx_end(&b, n);
  n = begin_node(&b, 7, "LeakyRelu", "two", "t -> b");
  put_float_attr(&b, 5, "alpha", 0, "d");
  onnx_end(&b, n);
  put_node(&b, 7, "Identity", "three", "a -> c");
  onnx_end(&b, f);
  // G(a) -> b, a: calls F within a branch and outside, and hands its input on.
  f = begin_function(&b, "G", "a", "ba", 13);
  n = begin_call(&b, 7, "F", "call", "a -> t");
  put_float_attr(&b, 5, "s", 0.5f, NULL);
  onnx_end(&b, n);
  n = begin_node(&b, 7, "If", "if", "t -> b");
  for (int k = 0; k < 2; k++) {
    graph_attr_t s = begin_graph_attr(&b, k ? "else_branch" : "then_branch");
    onnx_end(&b, begin_call(&b, 1, "F", "deep", "t -> r q"));
    put_info(&b, 12, k ? "q" : "r", 1, -1, NULL);
    end_graph_attr(&b, s);
  }
  onnx_end(&b, n);
  onnx_end(&b, f);
  onnx_mark_t g = onnx_begin(&b, 7);
  onnx_end(&b, begin_call(&b, 1, "G", "g1", "x -> u v"));
  onnx_end(&b, begin_call(&b, 1, "G", "g2", "u -> y _"));
  put_x_and_y(&b);
  put_info(&b, 12, "v", 1, -1, NULL);
  onnx_end(&b, g);

  assay_model_t *m = read_built(&b), *flat = NULL;
  ok(assay_onnx_check(m));
  ok(assay_onnx_inline_functions(m, &flat));
  ok(assay_model_verify(flat));
  assert_int_equal(flat->n_functions, 0);
  assert_order(flat->graph,
               "g1/call/one g1/call/two g1/call/three g1/if v g2/call/one g2/call/two "
               "g2/call/three g2/if");
  assert_true(alpha_of(flat, 0) == 0.5);   // the call's
  assert_true(alpha_of(flat, 1) == 0.25);  // the default
  assert_string_equal(flat->graph->nodes[0]->inputs[0]->name, "x");
  assert_string_equal(flat->graph->nodes[3]->outputs[0]->name, "u");
  // Schemas are those of the bodies' own imports: 16 is LeakyRelu's in 18, 11 is If's in 13.
  assert_int_equal(flat->graph->nodes[0]->schema->since, 16);
  assert_int_equal(flat->graph->nodes[3]->schema->since, 13);
  assert_string_equal(flat->graph->nodes[4]->op_type, "Identity");
  assert_ptr_equal(flat->graph->nodes[4]->inputs[0], flat->graph->inputs[0]);
  const assay_graph_t* branch = flat->graph->nodes[3]->attrs[0].u.g;
  assert_order(branch, "g1/deep/one g1/deep/two g1/deep/three");
  assert_int_equal(branch->nodes[0]->n_attrs, 0);  // neither given nor a default
  assert_ptr_equal(branch->nodes[0]->inputs[0], flat->graph->nodes[1]->outputs[0]);
  assert_ptr_equal(branch->outputs[0], branch->nodes[1]->outputs[0]);
  // And it is a model that can be written and read.
  uint8_t* bytes = NULL;
  size_t size;
  assay_model_t* again = NULL;
  ok(assay_onnx_write_bytes(flat, &bytes, &size));
  assay_model_release(m);
  assay_model_release(flat);
  ok(assay_onnx_read_bytes(bytes, size, NULL, &again));
  ok(assay_onnx_check(again));
  assay_free(bytes);
  assay_model_release(again);
  assert_all_freed();
}

// ---- files ------------------------------------------------------------------------------------

static char folder[] = "/tmp/assay_reader_XXXXXX";

static const char* path_of(const char* name) {
  static char paths[4][256];
  static int next;
  char* path = paths[next++ % 4];
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

static int make_folder(void** state) {
  (void)state;
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void** state) {
  (void)state;
  static const char* const names[] = {"m.onnx", "m.onnx.data", "n.onnx", "n.onnx.data", "v.pb"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) unlink(path_of(names[i]));
  return rmdir(folder);
}

static void external_data(void** state) {
  (void)state;
  enum { SMALL = 10, LARGE = 3000 };
  onnx_builder_t b = {0};
  static float values[LARGE];
  for (int i = 0; i < LARGE; i++) values[i] = (float)i;
  put_head(&b, 8, 13);
  onnx_mark_t g = onnx_begin(&b, 7);
  onnx_mark_t t = begin_tensor(&b, 5, "small", 1, 1, (int64_t[]){SMALL});
  onnx_put_blob(&b, 9, values, SMALL * sizeof *values);
  onnx_end(&b, t);
  for (int k = 0; k < 2; k++) {
    t = begin_tensor(&b, 5, k ? "b" : "a", 1, 1, (int64_t[]){LARGE});
    onnx_put_blob(&b, 9, values, sizeof values);
    onnx_end(&b, t);
  }
  onnx_end(&b, g);
  assay_model_t *m = read_built(&b), *again = NULL;
  ok(assay_onnx_write(m, path_of("m.onnx"),
                      &(assay_onnx_write_options_t){.external = ASSAY_ONNX_EXTERNAL_ALL}));
  assay_model_release(m);
  ok(assay_onnx_read(path_of("m.onnx"), &m));
  assert_null(assay_graph_find(m->graph, "small")->external_location);
  assert_string_equal(assay_graph_find(m->graph, "b")->external_location, "m.onnx.data");
  assert_memory_equal(constant(m, "a")->data, values, sizeof values);
  assert_memory_equal(constant(m, "b")->data, values, sizeof values);
  assert_int_equal((uintptr_t)constant(m, "b")->data % 4096, 0);
  // Over itself, while its weights lie in the file that is replaced.
  ok(assay_onnx_write(m, path_of("m.onnx"), NULL));
  ok(assay_onnx_read(path_of("m.onnx"), &again));
  assert_memory_equal(constant(again, "b")->data, values, sizeof values);
  assert_memory_equal(constant(m, "b")->data, values, sizeof values);
  assay_model_release(m);
  ok(assay_onnx_write(again, path_of("n.onnx"),
                      &(assay_onnx_write_options_t){.external = ASSAY_ONNX_EXTERNAL_NONE}));
  assay_model_release(again);
  ok(assay_onnx_read(path_of("n.onnx"), &m));
  assert_null(assay_graph_find(m->graph, "b")->external_location);
  assert_memory_equal(constant(m, "b")->data, values, sizeof values);
  assay_model_release(m);
  assert_all_freed();
}

static assay_tensor_t* copy_by_file(assay_tensor_t* t, const assay_valtype_t* type) {
  assay_tensor_t* back = NULL;
  ok(assay_onnx_write_value(path_of("v.pb"), t, "name"));
  ok(assay_onnx_read_value(path_of("v.pb"), type, &back));
  return back;
}

static void containers(void** state) {
  (void)state;
  assay_valtype_t tensor = {.kind = ASSAY_KIND_TENSOR, .elem = ASSAY_TYPE_FLOAT};
  assay_valtype_t sequence = {.kind = ASSAY_KIND_SEQUENCE, .of = &tensor};
  assay_valtype_t optional = {.kind = ASSAY_KIND_OPTIONAL, .of = &sequence};
  assay_valtype_t map = {.kind = ASSAY_KIND_MAP, .elem = ASSAY_TYPE_STRING, .of = &tensor};
  assay_valtype_t maps = {.kind = ASSAY_KIND_SEQUENCE, .of = &map};
  assay_tensor_t *one = NULL, *keys = NULL, *values = NULL, *t = NULL, *u = NULL, *back;
  ok(assay_tensor_scalar_f64(ASSAY_TYPE_FLOAT, 2.5, &one));
  back = copy_by_file(one, NULL);
  assert_int_equal(back->rank, 0);
  assay_tensor_release(back);

  ok(assay_sequence_create(ASSAY_TYPE_FLOAT, 2, (assay_tensor_t*[]){one, one}, &t));
  back = copy_by_file(t, &sequence);
  assert_int_equal(back->n_items, 2);
  assay_tensor_release(back);
  ok(assay_optional_create(ASSAY_TYPE_FLOAT, t, &u));
  back = copy_by_file(u, &optional);
  assert_int_equal(back->n_items, 1);
  assert_int_equal(back->items[0]->kind, ASSAY_KIND_SEQUENCE);
  assay_tensor_release(back);
  assay_tensor_release(u);
  assay_tensor_release(t);
  ok(assay_sequence_create(ASSAY_TYPE_FLOAT, 0, NULL, &t));
  back = copy_by_file(t, &sequence);
  assert_int_equal(back->n_items, 0);
  assert_int_equal(back->type, ASSAY_TYPE_FLOAT);
  assay_tensor_release(back);
  assay_tensor_release(t);
  ok(assay_optional_create(ASSAY_TYPE_FLOAT, NULL, &t));
  back = copy_by_file(t, &optional);
  assert_int_equal(back->n_items, 0);
  assay_tensor_release(back);
  assay_tensor_release(t);

  ok(assay_tensor_create(ASSAY_TYPE_STRING, 1, (int64_t[]){2}, &keys));
  ok(assay_tensor_set_string(keys, 0, "a", 1));
  ok(assay_tensor_set_string(keys, 1, "bc", 2));
  ok(assay_tensor_create(ASSAY_TYPE_FLOAT, 1, (int64_t[]){2}, &values));
  assay_f64(values)[0] = 1;
  assay_f64(values)[1] = 2;
  ok(assay_map_create(keys, values, &t));
  ok(assay_sequence_create(ASSAY_TYPE_UNDEFINED, 1, &t, &u));
  back = copy_by_file(u, &maps);
  assert_int_equal(back->items[0]->kind, ASSAY_KIND_MAP);
  assert_memory_equal(assay_strings(back->items[0]->items[0])[1].text, "bc", 2);
  assert_true(assay_f64(back->items[0]->items[1])[1] == 2);
  assay_tensor_release(back);
  assay_tensor_release(u);
  assay_tensor_release(t);
  assay_tensor_release(keys);
  assay_tensor_release(values);
  assay_tensor_release(one);
  assert_all_freed();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(typed_fields_are_raw_data),
      cmocka_unit_test(sparse_tensors),
      cmocka_unit_test(constants),
      cmocka_unit_test(nodes_are_sorted),
      cmocka_unit_test(first_versions),
      cmocka_unit_test(unknown_fields_come_back),
      cmocka_unit_test(functions_are_inlined),
      cmocka_unit_test(external_data),
      cmocka_unit_test(containers),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
