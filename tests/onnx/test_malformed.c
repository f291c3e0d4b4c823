// Files that are not valid models: each gives one line that says what is wrong, soon and without
// much memory.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

// cmocka needs these before it
#include <cmocka.h>

#include "base/alloc.h"
#include "onnx/models.h"
#include "onnx/onnx.h"

static char folder[] = "/tmp/assay_onnx_XXXXXX";

typedef struct row {
  const char* name;
  void (*make)(onnx_builder_t* b);
  const char* message;  // a part of it
} row_t;

// ---- wire format ------------------------------------------------------------------------------

static void empty(onnx_builder_t* b) { (void)b; }
static void text(onnx_builder_t* b) { onnx_put_bytes(b, "this is not a model", 19); }
static void bad_wire_type(onnx_builder_t* b) { onnx_put_bytes(b, "\x0f\x01", 2); }
static void group(onnx_builder_t* b) { onnx_put_bytes(b, "\xf3\x07\xf4\x07", 4); }
static void wrong_wire_type(onnx_builder_t* b) { onnx_put_int(b, 7, 3); }
static void field_zero(onnx_builder_t* b) { onnx_put_bytes(b, "\x02\x00", 2); }
static void long_varint(onnx_builder_t* b) {
  onnx_put_bytes(b, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12);
}
static void length_past_end(onnx_builder_t* b) { onnx_put_bytes(b, "\x3a\xff\xff\xff\xff\x07", 6); }
static void nul_in_name(onnx_builder_t* b) { onnx_put_blob(b, 2, "a\0b", 3); }
static void no_graph(onnx_builder_t* b) { put_head(b, 8, 13); }

// ---- graphs -----------------------------------------------------------------------------------

static void one_node(onnx_builder_t* b, const char* values) {
  put_head(b, 8, 13);
  onnx_mark_t g = onnx_begin(b, 7);
  put_node(b, 1, "Relu", "r", values);
  put_x_and_y(b);
  onnx_end(b, g);
}

static void missing_input(onnx_builder_t* b) { one_node(b, "nothing -> y"); }
static void missing_output(onnx_builder_t* b) { one_node(b, "x -> z"); }
static void writes_input(onnx_builder_t* b) { one_node(b, "x -> x"); }
static void cycle_of_one(onnx_builder_t* b) { one_node(b, "y -> y"); }

static void cycle(onnx_builder_t* b) {
  put_head(b, 8, 13);
  onnx_mark_t g = onnx_begin(b, 7);
  put_node(b, 1, "Add", "first", "x c -> a");
  put_node(b, 1, "Relu", "second", "a -> b");
  put_node(b, 1, "Relu", "third", "b -> c");
  put_node(b, 1, "Relu", "fourth", "c -> y");
  put_x_and_y(b);
  onnx_end(b, g);
}

// A node that a subgraph of its own reads from.
static void cycle_by_capture(onnx_builder_t* b) {
  put_head(b, 8, 13);
  onnx_mark_t g = onnx_begin(b, 7);
  onnx_mark_t n = begin_node(b, 1, "If", "cond", "x -> a");
  graph_attr_t s = begin_graph_attr(b, "then_branch");
  put_node(b, 1, "Relu", "inside", "y -> t");
  put_info(b, 12, "t", 1, -1, NULL);
  end_graph_attr(b, s);
  onnx_end(b, n);
  put_node(b, 1, "Relu", "behind", "a -> y");
  put_x_and_y(b);
  onnx_end(b, g);
}

static void made_twice(onnx_builder_t* b) {
  put_head(b, 8, 13);
  onnx_mark_t g = onnx_begin(b, 7);
  put_node(b, 1, "Relu", "one", "x -> y");
  put_node(b, 1, "Relu", "two", "x -> y");
  put_x_and_y(b);
  onnx_end(b, g);
}

static void inputs_twice(onnx_builder_t* b) {
  put_head(b, 8, 13);
  onnx_mark_t g = onnx_begin(b, 7);
  put_x_and_y(b);
  put_info(b, 11, "x", 1, 0, NULL);
  onnx_end(b, g);
}

static void no_op_type(onnx_builder_t* b) {
  put_head(b, 8, 13);
  onnx_mark_t g = onnx_begin(b, 7);
  put_node(b, 1, "", "n", "x -> y");
  put_x_and_y(b);
  onnx_end(b, g);
}

// The same graph within itself 10,000 times, from the inside out.
static void deep(onnx_builder_t* b) {
  enum { DEPTH = 10000 };
  onnx_mark_t marks[3 * DEPTH];
  put_head(b, 8, 13);
  int n = 0;
  marks[n++] = onnx_begin(b, 7);
  for (int i = 1; i < DEPTH; i++) {
    marks[n++] = onnx_begin(b, 1);
    onnx_put_name(b, 4, "If");
    marks[n++] = onnx_begin(b, 5);
    onnx_put_name(b, 1, "then_branch");
    marks[n++] = onnx_begin(b, 6);
  }
  while (n) onnx_end(b, marks[--n]);
}

static void deep_type(onnx_builder_t* b) {
  enum { DEPTH = 1000 };
  onnx_mark_t marks[2 * DEPTH];
  put_head(b, 8, 13);
  onnx_mark_t g = onnx_begin(b, 7), v = onnx_begin(b, 11);
  onnx_put_name(b, 1, "x");
  onnx_mark_t t = onnx_begin(b, 2);
  int n = 0;
  for (int i = 0; i < DEPTH; i++) {
    marks[n++] = onnx_begin(b, 4);
    marks[n++] = onnx_begin(b, 1);
  }
  while (n) onnx_end(b, marks[--n]);
  onnx_end(b, t);
  onnx_end(b, v);
  onnx_end(b, g);
}

// ---- types and shapes -------------------------------------------------------------------------

static void with_input(onnx_builder_t* b, int elem, int rank, const int64_t* dims) {
  put_head(b, 8, 13);
  onnx_mark_t g = onnx_begin(b, 7);
  put_node(b, 1, "Relu", "r", "x -> y");
  put_info(b, 11, "x", elem, rank, dims);
  put_info(b, 12, "y", 1, -1, NULL);
  onnx_end(b, g);
}

static void input_negative(onnx_builder_t* b) { with_input(b, 1, 2, (int64_t[]){2, -3}); }
static void input_huge(onnx_builder_t* b) { with_input(b, 1, 2, (int64_t[]){INT64_C(1) << 62, 4}); }
static void input_type(onnx_builder_t* b) { with_input(b, 99, 0, NULL); }
static void input_rank(onnx_builder_t* b) { with_input(b, 1, 33, (int64_t[33]){0}); }
static void input_untyped(onnx_builder_t* b) { with_input(b, 1, -2, NULL); }

// ---- tensors ----------------------------------------------------------------------------------

static void with_tensor(onnx_builder_t* b, int64_t elem, int rank, const int64_t* dims,
                        void (*data)(onnx_builder_t* b)) {
  put_head(b, 8, 13);
  onnx_mark_t g = onnx_begin(b, 7);
  put_node(b, 1, "Relu", "r", "x -> y");
  put_x_and_y(b);
  onnx_mark_t t = begin_tensor(b, 5, "w", elem, rank, dims);
  data(b);
  onnx_end(b, t);
  onnx_end(b, g);
}

static void raw8(onnx_builder_t* b) { onnx_put_blob(b, 9, "12345678", 8); }
static void float1(onnx_builder_t* b) { onnx_put_blob(b, 4, "1234", 4); }
static void float_odd(onnx_builder_t* b) { onnx_put_blob(b, 4, "12345", 5); }
static void ints3(onnx_builder_t* b) { onnx_put_blob(b, 5, "\x01\x02\x03", 3); }
static void ints_cut(onnx_builder_t* b) { onnx_put_blob(b, 5, "\x01\x82", 2); }
static void ints_large(onnx_builder_t* b) { onnx_put_blob(b, 5, "\x01\xff\x7f", 3); }
static void strings3(onnx_builder_t* b) {
  for (int i = 0; i < 3; i++) onnx_put_name(b, 6, "s");
}
static void both(onnx_builder_t* b) {
  raw8(b);
  onnx_put_blob(b, 4, "12345678", 8);
}
static void segment(onnx_builder_t* b) {
  onnx_mark_t m = onnx_begin(b, 3);
  onnx_put_int(b, 1, 0);
  onnx_end(b, m);
  raw8(b);
}
static void location7(onnx_builder_t* b) { onnx_put_int(b, 14, 7); }

static void raw_short(onnx_builder_t* b) { with_tensor(b, 1, 1, (int64_t[]){3}, raw8); }
static void raw_long(onnx_builder_t* b) { with_tensor(b, 1, 0, NULL, raw8); }
static void no_data(onnx_builder_t* b) { with_tensor(b, 1, 1, (int64_t[]){3}, empty); }
static void dims_negative(onnx_builder_t* b) { with_tensor(b, 1, 2, (int64_t[]){-1, -2}, raw8); }
static void dims_huge(onnx_builder_t* b) {
  with_tensor(b, 1, 1, (int64_t[]){INT64_C(1) << 62}, raw8);
}
static void dims_product(onnx_builder_t* b) {
  with_tensor(b, 2, 3, (int64_t[]){INT64_C(1) << 31, INT64_C(1) << 31, 4}, raw8);
}
static void dims_large(onnx_builder_t* b) {
  with_tensor(b, 8, 1, (int64_t[]){INT64_C(1) << 40}, strings3);
}
static void type_none(onnx_builder_t* b) { with_tensor(b, 0, 1, (int64_t[]){2}, raw8); }
static void type_new(onnx_builder_t* b) { with_tensor(b, 77, 1, (int64_t[]){2}, raw8); }
static void count_wrong(onnx_builder_t* b) { with_tensor(b, 1, 1, (int64_t[]){2}, float1); }
static void field_cut(onnx_builder_t* b) { with_tensor(b, 1, 1, (int64_t[]){1}, float_odd); }
static void field_wrong(onnx_builder_t* b) { with_tensor(b, 7, 1, (int64_t[]){3}, ints3); }
static void varint_cut(onnx_builder_t* b) { with_tensor(b, 6, 1, (int64_t[]){2}, ints_cut); }
static void out_of_range(onnx_builder_t* b) { with_tensor(b, 3, 1, (int64_t[]){2}, ints_large); }
static void string_count(onnx_builder_t* b) { with_tensor(b, 8, 1, (int64_t[]){4}, strings3); }
static void string_raw(onnx_builder_t* b) { with_tensor(b, 8, 1, (int64_t[]){8}, raw8); }
static void string_float(onnx_builder_t* b) { with_tensor(b, 8, 1, (int64_t[]){1}, float1); }
static void two_fields(onnx_builder_t* b) { with_tensor(b, 1, 1, (int64_t[]){2}, both); }
static void segments(onnx_builder_t* b) { with_tensor(b, 1, 1, (int64_t[]){2}, segment); }
static void location(onnx_builder_t* b) { with_tensor(b, 1, 1, (int64_t[]){2}, location7); }

static void put_sparse(onnx_builder_t* b, const int64_t* indices, int n, int64_t dim) {
  put_head(b, 8, 13);
  onnx_mark_t g = onnx_begin(b, 7);
  put_node(b, 1, "Relu", "r", "x -> y");
  put_x_and_y(b);
  onnx_mark_t s = onnx_begin(b, 15);
  onnx_mark_t t = begin_tensor(b, 1, "w", 1, 1, (int64_t[]){2});
  raw8(b);
  onnx_end(b, t);
  t = begin_tensor(b, 2, "", 7, 1, (int64_t[]){n});
  onnx_put_blob(b, 9, indices, 8 * (size_t)n);
  onnx_end(b, t);
  onnx_put_int(b, 3, dim);
  onnx_end(b, s);
  onnx_end(b, g);
}
static void sparse_range(onnx_builder_t* b) { put_sparse(b, (int64_t[]){0, 9}, 2, 4); }
static void sparse_negative(onnx_builder_t* b) { put_sparse(b, (int64_t[]){-1, 2}, 2, 4); }
static void sparse_order(onnx_builder_t* b) { put_sparse(b, (int64_t[]){2, 1}, 2, 4); }
static void sparse_count(onnx_builder_t* b) { put_sparse(b, (int64_t[]){0, 1, 2}, 3, 4); }
static void sparse_huge(onnx_builder_t* b) {
  put_sparse(b, (int64_t[]){0, 1}, 2, INT64_C(1) << 45);
}

// ---- external data ----------------------------------------------------------------------------

static const char *ext_location, *ext_offset, *ext_length;
static void external(onnx_builder_t* b) {
  if (ext_location) put_prop(b, 13, "location", ext_location);
  if (ext_offset) put_prop(b, 13, "offset", ext_offset);
  if (ext_length) put_prop(b, 13, "length", ext_length);
  onnx_put_int(b, 14, 1);
}
static void outside(onnx_builder_t* b, const char* where, const char* offset, const char* length) {
  ext_location = where;
  ext_offset = offset;
  ext_length = length;
  with_tensor(b, 1, 1, (int64_t[]){4}, external);
}
static void ext_none(onnx_builder_t* b) { outside(b, NULL, NULL, NULL); }
static void ext_absolute(onnx_builder_t* b) { outside(b, "/etc/passwd", NULL, NULL); }
static void ext_up(onnx_builder_t* b) { outside(b, "a/../../weights", NULL, NULL); }
static void ext_empty(onnx_builder_t* b) { outside(b, "", NULL, NULL); }
static void ext_missing(onnx_builder_t* b) { outside(b, "not_there.bin", NULL, NULL); }
static void ext_link(onnx_builder_t* b) { outside(b, "link.bin", NULL, NULL); }
static void ext_hard(onnx_builder_t* b) { outside(b, "hard.bin", NULL, NULL); }
static void ext_folder(onnx_builder_t* b) { outside(b, "sub", NULL, NULL); }
static void ext_end(onnx_builder_t* b) { outside(b, "data.bin", "8", NULL); }
static void ext_far(onnx_builder_t* b) { outside(b, "data.bin", "9223372036854775800", "16"); }
static void ext_negative(onnx_builder_t* b) { outside(b, "data.bin", "-4", NULL); }
static void ext_overflow(onnx_builder_t* b) {
  outside(b, "data.bin", "99999999999999999999999", NULL);
}
static void ext_size(onnx_builder_t* b) { outside(b, "data.bin", "0", "12"); }
static void ext_text(onnx_builder_t* b) { outside(b, "data.bin", "0x10", NULL); }

// ---- attributes -------------------------------------------------------------------------------

static void with_attr(onnx_builder_t* b, const char* op, void (*put)(onnx_builder_t* b)) {
  put_head(b, 8, 13);
  onnx_mark_t g = onnx_begin(b, 7);
  onnx_mark_t n = begin_node(b, 1, op, "n", "x -> y");
  put(b);
  onnx_end(b, n);
  put_x_and_y(b);
  onnx_end(b, g);
}

static void attr(onnx_builder_t* b, const char* name, int type, int field) {
  onnx_mark_t m = onnx_begin(b, 5);
  onnx_put_text(b, 1, name);
  if (type) onnx_put_int(b, 20, type);
  if (field == 2) onnx_put_float(b, 2, 1);
  if (field == 3) onnx_put_int(b, 3, 1);
  onnx_end(b, m);
}
static void unknown_attr(onnx_builder_t* b) { attr(b, "color", 2, 3); }
static void float_alpha(onnx_builder_t* b) { attr(b, "alpha", 2, 3); }
static void liar(onnx_builder_t* b) { attr(b, "alpha", 1, 3); }
static void nothing(onnx_builder_t* b) { attr(b, "alpha", 0, 0); }
static void nameless(onnx_builder_t* b) { attr(b, "", 1, 2); }
static void no_tensor(onnx_builder_t* b) { attr(b, "value", 4, 0); }
static void type50(onnx_builder_t* b) { attr(b, "alpha", 50, 2); }
static void twice(onnx_builder_t* b) {
  attr(b, "alpha", 1, 2);
  attr(b, "alpha", 1, 2);
}
static void reference(onnx_builder_t* b) {
  onnx_mark_t m = onnx_begin(b, 5);
  onnx_put_text(b, 1, "alpha");
  onnx_put_int(b, 20, 1);
  onnx_put_text(b, 21, "outer");
  onnx_end(b, m);
}
static void attr_unknown(onnx_builder_t* b) { with_attr(b, "Relu", unknown_attr); }
static void attr_type(onnx_builder_t* b) { with_attr(b, "LeakyRelu", float_alpha); }
static void attr_liar(onnx_builder_t* b) { with_attr(b, "LeakyRelu", liar); }
static void attr_nothing(onnx_builder_t* b) { with_attr(b, "LeakyRelu", nothing); }
static void attr_nameless(onnx_builder_t* b) { with_attr(b, "LeakyRelu", nameless); }
static void attr_no_tensor(onnx_builder_t* b) { with_attr(b, "Constant", no_tensor); }
static void attr_type50(onnx_builder_t* b) { with_attr(b, "LeakyRelu", type50); }
static void attr_twice(onnx_builder_t* b) { with_attr(b, "LeakyRelu", twice); }
static void attr_reference(onnx_builder_t* b) { with_attr(b, "LeakyRelu", reference); }
static void attr_missing(onnx_builder_t* b) { with_attr(b, "Cast", empty); }

// ---- operators --------------------------------------------------------------------------------

static void with_op(onnx_builder_t* b, int64_t ir, int64_t opset, const char* domain,
                    const char* op, const char* values) {
  put_head(b, ir, opset);
  onnx_mark_t g = onnx_begin(b, 7);
  onnx_mark_t n = begin_node(b, 1, op, "n", values);
  onnx_put_text(b, 7, domain);
  onnx_end(b, n);
  put_x_and_y(b);
  onnx_end(b, g);
}

// A graph of an attribute with inputs i0, i1, ... and so many outputs.
static void put_body(onnx_builder_t* b, const char* attr, size_t inputs, size_t outputs) {
  char name[32], values[32];
  graph_attr_t s = begin_graph_attr(b, attr);
  for (size_t i = 0; i < outputs; i++) {
    snprintf(values, sizeof values, "x -> %c%zu", *attr, i);
    put_node(b, 1, "Identity", "", values);
  }
  onnx_put_name(b, 2, attr);
  for (size_t i = 0; i < inputs; i++) {
    snprintf(name, sizeof name, "i%zu", i);
    put_info(b, 11, name, 1, -1, NULL);
  }
  for (size_t i = 0; i < outputs; i++) {
    snprintf(name, sizeof name, "%c%zu", *attr, i);
    put_info(b, 12, name, 1, -1, NULL);
  }
  end_graph_attr(b, s);
}

// A node with bodies of these numbers of inputs and outputs; names[1] may be NULL.
static void with_bodies(onnx_builder_t* b, const char* op, const char* values,
                        const char* const names[2], const size_t inputs[2],
                        const size_t outputs[2]) {
  put_head(b, 8, 17);
  onnx_mark_t g = onnx_begin(b, 7);
  onnx_mark_t n = begin_node(b, 1, op, "n", values);
  for (size_t i = 0; i < 2 && names[i]; i++) put_body(b, names[i], inputs[i], outputs[i]);
  if (strcmp(op, "Scan") == 0) put_int_attr(b, "num_scan_inputs", 1);
  onnx_end(b, n);
  put_x_and_y(b);
  onnx_end(b, g);
}

static const char* const branches[2] = {"then_branch", "else_branch"};
static const char* const body[2] = {"body", NULL};
#define COUNTS(a, b) ((const size_t[2]){(a), (b)})
static void if_more(onnx_builder_t* b) {
  with_bodies(b, "If", "x -> y", branches, COUNTS(0, 0), COUNTS(1, 2));
}
static void if_fewer(onnx_builder_t* b) {
  with_bodies(b, "If", "x -> y", branches, COUNTS(0, 0), COUNTS(1, 0));
}
static void if_both(onnx_builder_t* b) {
  with_bodies(b, "If", "x -> y z", branches, COUNTS(0, 0), COUNTS(1, 1));
}
static void if_inputs(onnx_builder_t* b) {
  with_bodies(b, "If", "x -> y", branches, COUNTS(0, 1), COUNTS(1, 1));
}
static void if_branch_gone(onnx_builder_t* b) {
  with_bodies(b, "If", "x -> y", (const char* const[2]){"then_branch", NULL}, COUNTS(0, 0),
              COUNTS(1, 1));
}
static void loop_inputs(onnx_builder_t* b) {
  with_bodies(b, "Loop", "_ x x -> y", body, COUNTS(2, 0), COUNTS(2, 0));
}
static void loop_outputs(onnx_builder_t* b) {
  with_bodies(b, "Loop", "_ x x -> y", body, COUNTS(3, 0), COUNTS(1, 0));
}
static void loop_wants(onnx_builder_t* b) {
  with_bodies(b, "Loop", "_ x x -> y z", body, COUNTS(3, 0), COUNTS(2, 0));
}
static void scan_inputs(onnx_builder_t* b) {
  with_bodies(b, "Scan", "x x -> y", body, COUNTS(1, 0), COUNTS(2, 0));
}
static void scan_outputs(onnx_builder_t* b) {
  with_bodies(b, "Scan", "x x -> y", body, COUNTS(2, 0), COUNTS(0, 0));
}
static void map_inputs(onnx_builder_t* b) {
  with_bodies(b, "SequenceMap", "x -> y", body, COUNTS(2, 0), COUNTS(1, 0));
}

static void op_unknown(onnx_builder_t* b) { with_op(b, 8, 13, "", "Frobnicate", "x -> y"); }
static void op_newer(onnx_builder_t* b) { with_op(b, 8, 13, "", "Gelu", "x -> y"); }
static void op_deprecated(onnx_builder_t* b) { with_op(b, 8, 13, "", "Upsample", "x x -> y"); }
static void op_domain(onnx_builder_t* b) { with_op(b, 8, 13, "my.ops", "Relu", "x -> y"); }
static void op_other(onnx_builder_t* b) { with_op(b, 8, 13, "", "Scaler", "x -> y"); }
static void op_import(onnx_builder_t* b) { with_op(b, 8, 13, "ai.onnx.ml", "Scaler", "x -> y"); }
static void op_inputs(onnx_builder_t* b) { with_op(b, 8, 13, "", "Relu", "x x -> y"); }
static void op_few(onnx_builder_t* b) { with_op(b, 8, 13, "", "Add", "x -> y"); }
static void op_outputs(onnx_builder_t* b) { with_op(b, 8, 13, "", "Relu", "x -> y z"); }
static void op_left_out(onnx_builder_t* b) { with_op(b, 8, 13, "", "Add", "_ x -> y"); }
static void opset_new(onnx_builder_t* b) { with_op(b, 8, 999, "", "Relu", "x -> y"); }
static void opset_none(onnx_builder_t* b) { with_op(b, 8, 0, "", "Relu", "x -> y"); }
static void ir_new(onnx_builder_t* b) { with_op(b, 99, 13, "", "Relu", "x -> y"); }
static void ir_none(onnx_builder_t* b) { with_op(b, 0, 13, "", "Relu", "x -> y"); }

// ---- functions --------------------------------------------------------------------------------

static void put_function(onnx_builder_t* b, const char* name, const char* calls) {
  onnx_mark_t f = onnx_begin(b, 25);
  onnx_put_name(b, 1, name);
  onnx_put_name(b, 4, "a");
  onnx_put_name(b, 5, "b");
  onnx_mark_t n = begin_node(b, 7, calls, "", "a -> b");
  onnx_put_text(b, 7, strcmp(calls, "Relu") == 0 ? "" : "local");
  onnx_end(b, n);
  onnx_put_name(b, 10, "local");
  put_opset(b, 9, "", 13);
  onnx_end(b, f);
}

static void recursion(onnx_builder_t* b) {
  with_op(b, 8, 13, "local", "F", "x -> y");
  put_function(b, "F", "G");
  put_function(b, "G", "H");
  put_function(b, "H", "F");
}
static void self_call(onnx_builder_t* b) {
  with_op(b, 8, 13, "local", "F", "x -> y");
  put_function(b, "F", "F");
}
static void function_twice(onnx_builder_t* b) {
  with_op(b, 8, 13, "local", "F", "x -> y");
  put_function(b, "F", "Relu");
  put_function(b, "F", "Relu");
}
static void function_inputs(onnx_builder_t* b) {
  with_op(b, 8, 13, "local", "F", "x x -> y");
  put_function(b, "F", "Relu");
}
// Each function calls the next one twice: 2^40 nodes.
static void function_bomb(onnx_builder_t* b) {
  with_op(b, 8, 13, "local", "F0", "x -> y");
  for (int i = 0; i < 40; i++) {
    char name[8], next[8];
    snprintf(name, sizeof name, "F%d", i);
    snprintf(next, sizeof next, "F%d", i + 1);
    onnx_mark_t f = onnx_begin(b, 25);
    onnx_put_name(b, 1, name);
    onnx_put_name(b, 4, "a");
    onnx_put_name(b, 5, "c");
    for (int k = 0; k < 2; k++) {
      onnx_mark_t n = begin_node(b, 7, i < 39 ? next : "Relu", "", k ? "b -> c" : "a -> b");
      onnx_put_text(b, 7, i < 39 ? "local" : "");
      onnx_end(b, n);
    }
    onnx_put_name(b, 10, "local");
    put_opset(b, 9, "", 13);
    onnx_end(b, f);
  }
}
static void function_chain(onnx_builder_t* b) {
  with_op(b, 8, 13, "local", "F0", "x -> y");
  for (int i = 0; i < 5000; i++) {
    char name[16], next[16];
    snprintf(name, sizeof name, "F%d", i);
    snprintf(next, sizeof next, "F%d", i + 1);
    put_function(b, name, i < 4999 ? next : "Relu");
  }
}

static const row_t rows[] = {
    {"empty file", empty, "empty"},
    {"text", text, "byte 0: 'metadata_props' of ModelProto has wire type 4"},
    {"bad wire type", bad_wire_type, "wire type 7"},
    {"group", group, "wire type 3"},
    {"wrong wire type", wrong_wire_type, "'graph' of ModelProto has wire type 0; expected 2"},
    {"field 0", field_zero, "number 0"},
    {"long varint", long_varint, "ends within a number"},
    {"length past the end", length_past_end, "says that it has 2147483647 bytes; 0 are left"},
    {"NUL in text", nul_in_name, "NUL"},
    {"no graph", no_graph, "no graph"},
    {"missing input", missing_input, "node 'r' (Relu) reads value 'nothing' that nothing defines"},
    {"missing output", missing_output, "output 'y' of graph '' is a value that nothing defines"},
    {"a node writes an input", writes_input, "value 'x' is defined twice"},
    {"cycle of one", cycle_of_one, "cyclic: node 'r' reads from 'r'"},
    {"cycle", cycle,
     "cyclic: node 'first' reads from 'third' reads from 'second' reads from 'first'"},
    {"cycle by capture", cycle_by_capture, "cyclic"},
    {"value made twice", made_twice, "by node 'one' (Relu) and by node 'two' (Relu)"},
    {"input twice", inputs_twice, "value 'x' is defined twice"},
    {"no op_type", no_op_type, "has no op_type"},
    {"10,000 graphs deep", deep, "nested more than 64 deep"},
    {"1,000 types deep", deep_type, "nested more than 64 deep"},
    {"negative dimension", input_negative, "dimension 1 is -3"},
    {"huge input", input_huge, "more elements than any machine holds"},
    {"unknown element type", input_type, "element type 99"},
    {"33 dimensions", input_rank, "at most 32"},
    {"input without type", input_untyped, "'x' has no type"},
    {"raw_data too short", raw_short, "initializer 'w': raw_data has 8 bytes; float[3] needs 12"},
    {"raw_data too long", raw_long, "raw_data has 8 bytes; float[] needs 4"},
    {"no data", no_data, "its data has 0 bytes; float[3] needs 12"},
    {"negative dims", dims_negative, "dims[0] is -1"},
    {"dims of 2^62", dims_huge, "more elements"},
    {"product of dims", dims_product, "more elements"},
    {"2^40 strings", dims_large, "string_data has 3 elements"},
    {"no element type", type_none, "element type 0"},
    {"new element type", type_new, "element type 77"},
    {"wrong count", count_wrong, "float_data has 1 elements; float[2] needs 2"},
    {"cut float_data", field_cut, "no multiple of 4"},
    {"wrong field", field_wrong, "elements of int64 stand in int32_data; expected int64_data"},
    {"cut varint", varint_cut, "ends within a number"},
    {"element out of range", out_of_range, "is 16383; an element of int8 has 8 bits"},
    {"string count", string_count, "string_data has 3 elements; string[4] needs 4"},
    {"strings in raw_data", string_raw, "strings in raw_data"},
    {"strings in float_data", string_float, "expected string_data"},
    {"two data fields", two_fields, "holds both raw_data and float_data"},
    {"segments", segments, "segments"},
    {"data location", location, "data_location is 7"},
    {"sparse index", sparse_range, "sparse index 1 lies outside"},
    {"negative sparse index", sparse_negative, "sparse index 0 lies outside"},
    {"sparse order", sparse_order, "ascending"},
    {"sparse count", sparse_count, "sparse indices are int64[3]"},
    {"huge sparse tensor", sparse_huge, "memory"},
    {"external: no location", ext_none, "without a location"},
    {"external: absolute", ext_absolute, "'/etc/passwd' is outside of the model's folder"},
    {"external: ..", ext_up, "outside of the model's folder"},
    {"external: empty", ext_empty, "outside of the model's folder"},
    {"external: missing", ext_missing, "not_there.bin"},
    {"external: hard link", ext_hard, "has 2 names (hard links)"},
    {"external: link", ext_link, "is a symbolic link"},
    {"external: folder", ext_folder, "folder"},
    {"external: end", ext_end, "are past its end at 16"},
    {"external: far", ext_far, "are past its end at 16"},
    {"external: negative", ext_negative, "offset is '-4'"},
    {"external: overflow", ext_overflow, "offset is '99999999999999999999999'"},
    {"external: size", ext_size, "length is 12; float[4] needs 16"},
    {"external: text", ext_text, "offset is '0x10'"},
    {"unknown attribute", attr_unknown, "node 'n' (Relu): has an attribute 'color'"},
    {"attribute type", attr_type, "attribute 'alpha' is of type int; expected float"},
    {"attribute of two types", attr_liar, "says that it is of type 1"},
    {"attribute of no type", attr_nothing, "holds no such value"},
    {"attribute without name", attr_nameless, "has no name"},
    {"attribute without tensor", attr_no_tensor, "holds no such value"},
    {"attribute type 50", attr_type50, "type 50"},
    {"attribute twice", attr_twice, "attribute 'alpha': is set twice"},
    {"reference outside a function", attr_reference, "refers to 'outer'"},
    {"attribute missing", attr_missing, "attribute 'to' is missing"},
    {"unknown operator", op_unknown, "unknown operator"},
    {"newer operator", op_newer,
     "came with version 20 of 'ai.onnx', and the model imports version 13"},
    {"If: a branch with more outputs", if_more,
     "node 'n' (If): then_branch 'then_branch' has 1 outputs, else_branch 'else_branch' has 2"},
    {"If: a branch with fewer outputs", if_fewer, "has 0 outputs, the node has 1"},
    {"If: more outputs than branches", if_both, "has 1 outputs, the node has 2"},
    {"If: a branch with inputs", if_inputs, "has 1 inputs; branches take theirs"},
    {"If: one branch", if_branch_gone, "attribute 'else_branch' is missing"},
    {"Loop: body's inputs", loop_inputs, "body 'body' has 2 inputs; the node's inputs ask for 3"},
    {"Loop: body's outputs", loop_outputs, "has 1 outputs; 1 state variables need 2"},
    {"Loop: outputs", loop_wants, "makes 1 states and 0 scan outputs"},
    {"Scan: body's inputs", scan_inputs, "body 'body' has 1 inputs; the node's inputs ask for 2"},
    {"Scan: body's outputs", scan_outputs, "has 0 outputs; 1 state variables need 1"},
    {"SequenceMap: body's inputs", map_inputs, "has 2 inputs and 1 outputs, the node has 1 and 1"},
    {"deprecated operator", op_deprecated, "deprecated since version 10"},
    {"unknown domain", op_domain, "domain 'my.ops'"},
    {"operator of another domain", op_other, "domain 'ai.onnx.ml' has"},
    {"domain not imported", op_import, "'ai.onnx.ml' is not imported"},
    {"too many inputs", op_inputs, "has 2 inputs; version 13 of the operator takes 1"},
    {"too few inputs", op_few, "has 1 inputs; version 13 of the operator takes 2"},
    {"too many outputs", op_outputs, "has 2 outputs"},
    {"input left out", op_left_out, "input 0 (A) is left out"},
    {"too new an opset", opset_new, "imports version 999 of ai.onnx"},
    {"no opset", opset_none, "imports no operator set"},
    {"too new an IR", ir_new, "ir_version is 99"},
    {"no IR version", ir_none, "ir_version is 0"},
    {"recursion", recursion, "calls itself"},
    {"function calls itself", self_call, "function 'F' of domain 'local' calls itself"},
    {"function twice", function_twice, "defined twice"},
    {"function's inputs", function_inputs, "has 2 inputs and 1 outputs"},
    {"2^40 nodes of functions", function_bomb, "expand to more than"},
    {"5,000 functions deep", function_chain, "nested more than 256 deep"},
};

// ---- running ----------------------------------------------------------------------------------

// Reads, checks, inlines.
static assay_status_t take(const uint8_t* bytes, size_t n) {
  assay_model_t *m = NULL, *flat = NULL;
  assay_status_t st = assay_onnx_read_bytes(bytes, n, folder, &m);
  if (!st) st = assay_onnx_check(m);
  if (!st) st = assay_onnx_inline_functions(m, &flat);
  assay_model_release(flat);
  assay_model_release(m);
  return st;
}

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool is_sanitized(void) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  return true;
#endif
#endif
  return false;
}

// The most memory resident since the last call, in KiB; -1 if the system does not tell. Not what
// getrusage says: that counts the memory of the process which started this one, too.
static long peak_kb(void) {
  long kb = -1;
  char line[256];
  FILE* f = fopen("/proc/self/status", "r");
  while (f && fgets(line, sizeof line, f) && sscanf(line, "VmHWM: %ld", &kb) != 1) continue;
  if (f) fclose(f);
  if ((f = fopen("/proc/self/clear_refs", "w"))) {
    fputs("5", f);
    fclose(f);
  }
  return kb;
}

// A load takes processor time, too (caches, a virtual machine that waits): too long is what is too
// long every time.
static double seconds_of(const onnx_builder_t* b, double limit, assay_status_t* out) {
  double took = 0;
  for (int attempt = 0; attempt < 5; attempt++) {
    assay_status_free(*out);
    double start = seconds();
    *out = take(b->bytes, b->len);
    took = seconds() - start;
    if (took < limit) break;
  }
  return took;
}

static void malformed(void** state) {
  (void)state;
  const double limit = is_sanitized() ? 10 : 2;
  int failed = 0;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    onnx_builder_t b = {0};
    rows[i].make(&b);
    assert_null(b.status);
    assay_status_t st = NULL;
    (void)peak_kb();
    double took = seconds_of(&b, limit, &st);
    long kb = is_sanitized() ? 0 : peak_kb();
    onnx_builder_deinit(&b);
    const char* message = assay_status_message(st);
    bool good = st && strstr(message, rows[i].message) && !strchr(message, '\n') && took < limit &&
                kb < 200 << 10 && assay_alloc_live() == (st ? 1 : 0);
    if (assay_status_code(st) == ASSAY_INTERNAL) good = false;
    if (!good) {
      fprintf(stderr, "%s: '%s', expected '%s'; %.2f s; %ld KiB; %lld allocations left\n",
              rows[i].name, st ? message : "(read)", rows[i].message, took, kb,
              (long long)assay_alloc_live());
      failed++;
    }
    assay_status_free(st);
    assert_int_equal(assay_alloc_live(), 0);
  }
  assert_int_equal(failed, 0);
}

// A model with something of everything, whose graph comes last.
static void put_whole(onnx_builder_t* b) {
  put_head(b, 8, 13);
  put_prop(b, 14, "key", "value");
  put_function(b, "F", "Relu");
  onnx_mark_t g = onnx_begin(b, 7);
  onnx_mark_t n = begin_node(b, 1, "LeakyRelu", "leaky", "x -> a");
  attr(b, "alpha", 1, 2);
  onnx_end(b, n);
  n = begin_node(b, 1, "F", "call", "a -> c");
  onnx_put_text(b, 7, "local");
  onnx_end(b, n);
  n = begin_node(b, 1, "If", "choice", "yes -> d");
  for (int k = 0; k < 2; k++) {
    graph_attr_t s = begin_graph_attr(b, k ? "else_branch" : "then_branch");
    put_node(b, 1, "Add", "", k ? "c w -> e" : "c c -> t");
    put_info(b, 12, k ? "e" : "t", 1, -1, NULL);
    end_graph_attr(b, s);
  }
  onnx_end(b, n);
  put_node(b, 1, "Relu", "", "d -> y");
  put_x_and_y(b);
  onnx_mark_t t = begin_tensor(b, 5, "w", 1, 1, (int64_t[]){2});
  raw8(b);
  onnx_end(b, t);
  t = begin_tensor(b, 5, "yes", 9, 0, NULL);
  onnx_put_blob(b, 5, "\x01", 1);
  onnx_end(b, t);
  put_info(b, 13, "a", 1, 1, (int64_t[]){2});
  onnx_end(b, g);
}

static void cut_anywhere(void** state) {
  (void)state;
  onnx_builder_t b = {0};
  put_whole(&b);
  assert_null(b.status);
  assay_status_t st = take(b.bytes, b.len);
  if (st) fprintf(stderr, "%s\n", assay_status_message(st));
  assert_null(st);
  for (size_t n = 0; n < b.len; n++) {
    st = take(b.bytes, n);
    assert_non_null(st);
    assay_status_free(st);
    assert_int_equal(assay_alloc_live(), 1);  // the builder's own
  }
  onnx_builder_deinit(&b);
}

// One byte changed, everywhere, to every value: an error or a model, nothing else.
static void changed_anywhere(void** state) {
  (void)state;
  onnx_builder_t b = {0};
  put_whole(&b);
  for (size_t n = 0; n < b.len; n++) {
    uint8_t was = b.bytes[n];
    for (int v = 0; v < 256; v += 5) {
      b.bytes[n] = (uint8_t)v;
      assay_status_free(take(b.bytes, b.len));
    }
    b.bytes[n] = was;
  }
  onnx_builder_deinit(&b);
  assert_int_equal(assay_alloc_live(), 0);
}

static void without_memory(void** state) {
  (void)state;
  onnx_builder_t b = {0};
  put_whole(&b);
  int64_t before = assay_alloc_live();
  for (int sticky = 0; sticky < 2; sticky++) {
    for (uint64_t n = 1;; n++) {
      assay_model_t *m = NULL, *flat = NULL;
      uint8_t* out = NULL;
      size_t size;
      assay_alloc_fail_after(n, sticky);
      assay_status_t st = assay_onnx_read_bytes(b.bytes, b.len, folder, &m);
      if (!st) st = assay_onnx_check(m);
      if (!st) st = assay_onnx_inline_functions(m, &flat);
      if (!st) st = assay_onnx_write_bytes(flat, &out, &size);
      assay_model_release(flat);
      assay_model_release(m);
      uint64_t made = assay_alloc_fail_after(0, false);
      if (st) assert_int_equal(assay_status_code(st), ASSAY_NO_MEMORY);
      assay_status_free(st);
      assay_free(out);
      assert_int_equal(assay_alloc_live(), before);
      if (made < n) break;
    }
  }
  onnx_builder_deinit(&b);
}

static int make_folder(void** state) {
  (void)state;
  static char path[256];
  if (!mkdtemp(folder)) return -1;
  snprintf(path, sizeof path, "%s/data.bin", folder);
  FILE* f = fopen(path, "wb");
  if (!f || fwrite("0123456789abcdef", 1, 16, f) != 16 || fclose(f)) return -1;
  snprintf(path, sizeof path, "%s/link.bin", folder);
  if (symlink("/etc/passwd", path)) return -1;
  char hard[2][64];
  for (int i = 0; i < 2; i++)
    snprintf(hard[i], sizeof hard[i], "%s/%s.bin", folder, i ? "hard" : "first");
  FILE* first = fopen(hard[0], "wb");
  if (!first || fwrite("0123456789abcdef", 1, 16, first) != 16) return -1;
  if (fclose(first) || link(hard[0], hard[1])) return -1;
  snprintf(path, sizeof path, "%s/sub", folder);
  return mkdir(path, 0777);
}

static int remove_folder(void** state) {
  (void)state;
  static const char* const names[] = {"data.bin", "link.bin", "first.bin", "hard.bin", "sub"};
  char path[256];
  for (size_t i = 0; i < 3; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, names[i]);
    if (remove(path)) return -1;
  }
  return rmdir(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(malformed),
      cmocka_unit_test(cut_anywhere),
      cmocka_unit_test(changed_anywhere),
      cmocka_unit_test(without_memory),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
