// Rows that test operators: one node, its inputs as text, the outputs or the error that must come.
//
// Each row runs in several ways: all shapes known; all sizes symbolic; inputs behind the first as
// constants, where inference may know the elements; and, if it must succeed, without ranks, and
// with nothing known of the inputs. Every time the outputs must be the expected ones, and what
// inference said of them (type, rank, dims, content; symbolic ones with their sizes put in) must
// hold. A tensor's text is "int64[2,3] 1 2 3 4 5 6", "float[4] iota", "string[2] a b"
// ('' is empty), "float[0,3]"; a missing optional input or output is "-". An output is compared to
// the element of its type that is nearest to the text, zeros with their signs; "float[1] 0.1 ~2"
// may be two steps of the type off.
#ifndef ASSAY_TESTS_OPS_OP_CASE_H_
#define ASSAY_TESTS_OPS_OP_CASE_H_

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// cmocka needs the four above before it
#include <math.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "eval/evaluator.h"
#include "onnx/onnx.h"
#include "ops/infer.h"

enum { OP_CASE_VALUES = 20 };

typedef struct op_case {
  const char* op;     // "Slice", "com.microsoft.Pad"
  int opset;          // of the operator's domain
  const char* attrs;  // "axis=1 mode=reflect perm=0,2,1"; types by the schema; NULL: none
  const char* in[OP_CASE_VALUES];
  const char* out[OP_CASE_VALUES];
  const char* error;  // part of the message; NULL: must succeed
} op_case_t;

typedef enum op_case_way {
  OP_CASE_STATIC,
  OP_CASE_SYMBOLIC,
  OP_CASE_CONSTANT,
  OP_CASE_WAYS,  // so far: rows that must fail, too
  OP_CASE_UNRANKED = OP_CASE_WAYS,
  OP_CASE_UNKNOWN,
  OP_CASE_ALL_WAYS
} op_case_way_t;

// ---- tensors from text ------------------------------------------------------------------------

static inline void op_case_ok(assay_status_t st) {
  if (!st) return;
  print_error("%s\n", assay_status_message(st));
  assay_status_free(st);
  fail();
}

static inline void op_case_element(assay_tensor_t* t, int64_t i, const char* word) {
  char* end = NULL;
  switch (t->store) {
    case ASSAY_STORE_F64:
      assay_f64(t)[i] = strtod(word, &end);
      break;
    case ASSAY_STORE_I64:
      assay_i64(t)[i] = *word == '-' ? strtoll(word, &end, 10) : (int64_t)strtoull(word, &end, 10);
      break;
    case ASSAY_STORE_C128:  // "1+2i"
      assay_c128(t)[2 * i] = strtod(word, &end);
      assay_c128(t)[2 * i + 1] = strtod(end, &end);
      break;
    default:
      if (strcmp(word, "''") == 0) word = "";
      op_case_ok(assay_tensor_set_string(t, i, word, strlen(word)));
  }
}

static inline assay_tensor_t* op_case_tensor(const char* text) {
  char type[32] = "", *rest;
  const char* p = strchr(text, '[');
  assert_non_null(p);
  assert_true((size_t)(p - text) < sizeof type);
  memcpy(type, text, (size_t)(p - text));
  assert_int_not_equal(assay_type_parse(type), ASSAY_TYPE_UNDEFINED);
  int64_t dims[ASSAY_MAX_RANK];
  int rank = 0;
  for (p++; *p != ']'; p += *p == ',') {
    dims[rank++] = strtoll(p, &rest, 10);
    assert_ptr_not_equal(p, rest);
    p = rest;
  }
  assay_tensor_t* t = NULL;
  op_case_ok(assay_tensor_create_zero(assay_type_parse(type), rank, dims, &t));
  bool iota = strcmp(p + 1, " iota") == 0;
  p++;
  for (int64_t i = 0; i < t->size; i++) {
    char word[64];
    int used = 0;
    if (iota) {
      snprintf(word, sizeof word, "%lld", (long long)i);
    } else if (sscanf(p, " %63s%n", word, &used) != 1) {
      fail_msg("too few elements in '%s'", text);
    }
    op_case_element(t, i, word);
    if (iota && t->store == ASSAY_STORE_I64) assay_i64(t)[i] = assay_type_wrap(t->type, i);
    p += used;
  }
  return t;
}

// Steps of their type that an output's elements may lie from the expected ones.
static inline int64_t op_case_ulps(const char* text) {
  const char* tilde = strrchr(text, '~');
  return tilde ? strtoll(tilde + 1, NULL, 10) : 0;
}

// Decimal texts to the nearest elements of their type.
static inline void op_case_round(assay_tensor_t* t) {
  const int64_t n = t->store == ASSAY_STORE_F64    ? t->size
                    : t->store == ASSAY_STORE_C128 ? 2 * t->size
                                                   : 0;
  if (n)
    assay_format_round_n(assay_type_format(t->type), assay_f64(t), assay_f64(t), (size_t)n,
                         ASSAY_OVERFLOW_IEEE);
}

// Equal, zeros with their signs; or so many steps of the elements' type apart.
static inline bool op_case_near(const assay_tensor_t* a, const assay_tensor_t* b, int64_t ulps) {
  if (a->type != b->type || a->rank != b->rank || a->size != b->size) return false;
  for (int i = 0; i < a->rank; i++)
    if (a->dims[i] != b->dims[i]) return false;
  int64_t n = a->store == ASSAY_STORE_C128 ? 2 * a->size : a->size;
  for (int64_t i = 0; i < n; i++) {
    if (a->store == ASSAY_STORE_STR) {
      assay_string_t s = assay_strings(a)[i], r = assay_strings(b)[i];
      if (s.len != r.len || (s.len && memcmp(s.text, r.text, s.len) != 0)) return false;
    } else if (a->store == ASSAY_STORE_I64) {
      if (assay_i64(a)[i] != assay_i64(b)[i]) return false;
    } else {
      const double x = assay_f64(a)[i], y = assay_f64(b)[i];
      if (isnan(x) && isnan(y)) continue;
      const int64_t steps = assay_format_ulp_distance(assay_type_format(a->type), x, y);
      if (steps < 0 || steps > ulps || (steps == 0 && (x != y || signbit(x) != signbit(y))))
        return false;
    }
  }
  return true;
}

static inline bool op_case_same(const assay_tensor_t* a, const assay_tensor_t* b) {
  return op_case_near(a, b, 0);
}

static inline void op_case_print(const assay_tensor_t* t) {
  print_error("  %s%s", assay_type_name(t->type), ASSAY_DIMS_TEXT(t));
  for (int64_t i = 0; i < t->size && i < 64; i++) {
    if (t->store == ASSAY_STORE_STR)
      print_error(" %.*s", (int)assay_strings(t)[i].len, assay_strings(t)[i].text);
    else if (t->store == ASSAY_STORE_I64)
      print_error(" %lld", (long long)assay_i64(t)[i]);
    else
      print_error(" %.17g", assay_f64(t)[i]);
  }
  print_error("\n");
}

// ---- a model of one node -----------------------------------------------------------------------

static inline assay_value_t** op_case_list(assay_model_t* m, size_t n) {
  assay_value_t** list = assay_arena_alloc(m->arena, n + 1, sizeof *list);
  assert_non_null(list);
  return list;
}

// Sizes as names that say them: 5 is "s5". What is inferred can be checked by reading them back.
static inline bool op_case_size(void* user, const char* name, int64_t* out) {
  (void)user;
  if (name[0] != 's' || name[1] < '0' || name[1] > '9') return false;
  *out = strtoll(name + 1, NULL, 10);
  return true;
}

static inline const assay_valtype_t* op_case_unranked(assay_model_t* m, const assay_tensor_t* t) {
  const assay_valtype_t* type = NULL;
  op_case_ok(assay_valtype_unranked(m, t->type, &type));
  return type;
}

static inline const assay_valtype_t* op_case_type(assay_model_t* m, const assay_tensor_t* t,
                                                  bool symbolic) {
  const assay_dim_t* dims[ASSAY_MAX_RANK];
  for (int i = 0; i < t->rank; i++) {
    char name[32];
    snprintf(name, sizeof name, "s%lld", (long long)t->dims[i]);
    dims[i] = symbolic ? assay_dim_symbol(m->dims, name) : assay_dim_const(m->dims, t->dims[i]);
  }
  const assay_valtype_t* type = NULL;
  op_case_ok(assay_valtype_tensor(m, t->type, t->rank, dims, &type));
  return type;
}

static inline void op_case_numbers(assay_model_t* m, assay_attr_t* a, const char* text) {
  size_t n = *text != 0;
  for (const char* p = text; *p; p++) n += *p == ',';
  int64_t* ints = assay_arena_alloc(m->arena, n + 1, sizeof *ints);
  float* floats = assay_arena_alloc(m->arena, n + 1, sizeof *floats);
  assert_non_null(ints);
  assert_non_null(floats);
  for (size_t i = 0; i < n; i++) {
    ints[i] = strtoll(text, NULL, 10);
    floats[i] = strtof(text, NULL);
    text += strcspn(text, ",");
    text += *text == ',';
  }
  a->n = n;
  switch (a->type) {
    case ASSAY_ATTR_INT:
      a->u.i = ints[0];
      break;
    case ASSAY_ATTR_FLOAT:
      a->u.f = floats[0];
      break;
    case ASSAY_ATTR_INTS:
      a->u.ints = ints;
      break;
    default:
      assert_int_equal(a->type, ASSAY_ATTR_FLOATS);
      a->u.floats = floats;
  }
}

// "a,b,": the texts between commas; '' is empty.
static inline void op_case_strings(assay_model_t* m, assay_attr_t* a, const char* text) {
  size_t n = *text != 0;
  for (const char* p = text; *p; p++) n += *p == ',';
  assay_string_t* strings = assay_arena_alloc(m->arena, n + 1, sizeof *strings);
  assert_non_null(strings);
  for (size_t i = 0; i < n; i++) {
    strings[i].len = strcspn(text, ",");
    if (strings[i].len == 2 && strncmp(text, "''", 2) == 0) strings[i].len = 0;
    op_case_ok(assay_arena_strndup(m->arena, text, strings[i].len, &strings[i].text));
    text += strcspn(text, ",");
    text += *text == ',';
  }
  a->n = n;
  a->u.strings = strings;
}

static inline void op_case_attr(assay_model_t* m, const assay_schema_t* schema, const char* name,
                                const char* value, assay_attr_t* a) {
  const assay_attr_spec_t* spec = assay_schema_attr(schema, name);
  if (!spec) fail_msg("%s has no attribute %s", schema->name, name);
  *a = (assay_attr_t){.doc = "", .ref = "", .type = spec->type, .n = 1};
  op_case_ok(assay_arena_strdup(m->arena, name, &a->name));
  if (spec->type == ASSAY_ATTR_TENSOR) {  // "float[1]:7": a colon for the space
    char text[128];
    snprintf(text, sizeof text, "%s", value);
    for (char* p = text; *p; p++)
      if (*p == ':') *p = ' ';
    a->u.t = op_case_tensor(text);
    op_case_ok(assay_model_take_tensor(m, a->u.t));
  } else if (spec->type == ASSAY_ATTR_STRING) {
    op_case_ok(assay_arena_strdup(m->arena, value, &a->u.s.text));
    a->u.s.len = strlen(value);
  } else if (spec->type == ASSAY_ATTR_STRINGS) {
    op_case_strings(m, a, value);
  } else {
    op_case_numbers(m, a, value);
  }
}

static inline void op_case_attrs(assay_model_t* m, assay_node_t* n, const char* text, int opset) {
  const assay_schema_t* schema = assay_schema_find(n->domain, n->op_type, opset, NULL);
  if (!schema) fail_msg("no schema for %s-%d", n->op_type, opset);
  size_t i = 0;
  while (text && *text) {
    char name[64], value[1024] = "";
    int used = 0;
    assert_true(sscanf(text, " %63[^= ]=%n", name, &used) == 1 && used > 0);
    text += used;
    used = 0;
    sscanf(text, "%1023[^ ]%n", value, &used);
    text += used;
    text += strspn(text, " ");
    assert_true(i < n->n_attrs);
    op_case_attr(m, schema, name, value, &n->attrs[i++]);
  }
  n->n_attrs = i;
}

static inline size_t op_case_count(const char* const* texts) {
  size_t n = 0;
  while (n < OP_CASE_VALUES && texts[n]) n++;
  return n;
}

// The model of a row; in[i] are its inputs, and values[i] where they go (NULL: constant or left
// out).
static inline assay_model_t* op_case_model(const op_case_t* row, op_case_way_t way,
                                           assay_tensor_t** in, assay_value_t** values) {
  assay_model_t* m = NULL;
  assay_node_t* n = NULL;
  op_case_ok(assay_model_create(&m));
  m->ir_version = 10;
  const char* dot = strrchr(row->op, '.');
  char domain[64] = "";
  if (dot) snprintf(domain, sizeof domain, "%.*s", (int)(dot - row->op), row->op);
  m->opsets = assay_arena_alloc(m->arena, 2, sizeof *m->opsets);
  assert_non_null(m->opsets);
  op_case_ok(assay_arena_strdup(m->arena, domain, &m->opsets[0].domain));
  m->opsets[0].version = row->opset;
  m->opsets[1] = (assay_opset_t){"", 17};
  m->n_opsets = dot ? 2 : 1;
  op_case_ok(assay_graph_create(m, NULL, &m->graph));
  m->graph->name = "case";
  size_t n_in = op_case_count(row->in), n_out = op_case_count(row->out);
  if (n_out == 0) n_out = 1;
  op_case_ok(assay_node_create(m->graph, m->opsets[0].domain, dot ? dot + 1 : row->op, "node", n_in,
                               n_out, 16, &n));
  op_case_attrs(m, n, row->attrs, row->opset);
  m->graph->inputs = op_case_list(m, n_in);
  m->graph->outputs = op_case_list(m, n_out);
  for (size_t i = 0; i < n_in; i++) {
    char name[16];
    snprintf(name, sizeof name, "x%zu", i);
    values[i] = NULL;
    if (!in[i]) continue;
    op_case_ok(assay_graph_add_value(m->graph, name, &n->inputs[i]));
    if (way == OP_CASE_CONSTANT && i > 0) {
      op_case_ok(assay_graph_set_initializer(n->inputs[i], assay_tensor_retain(in[i])));
      continue;
    }
    values[i] = n->inputs[i];
    values[i]->is_input = true;
    values[i]->declared = way >= OP_CASE_UNRANKED ? op_case_unranked(m, in[i])
                                                  : op_case_type(m, in[i], way == OP_CASE_SYMBOLIC);
    m->graph->inputs[m->graph->n_inputs++] = values[i];
  }
  for (size_t i = 0; i < n_out; i++) {
    char name[16];
    assay_value_t* v = NULL;
    snprintf(name, sizeof name, "y%zu", i);
    if (row->out[i] && strcmp(row->out[i], "-") == 0) continue;
    op_case_ok(assay_graph_add_value(m->graph, name, &v));
    assay_node_set_output(n, i, v);
    v->is_output = true;
    m->graph->outputs[m->graph->n_outputs++] = v;
  }
  op_case_ok(assay_graph_insert(m->graph, n, 0));
  op_case_ok(assay_onnx_check(m));
  for (size_t i = 0; way == OP_CASE_UNKNOWN && i < n_in; i++)  // the checker wants a type
    if (values[i]) values[i]->declared = NULL;
  return m;
}

// ---- running ------------------------------------------------------------------------------------

// What inference said, with sizes put in for their names, must be so.
static inline bool op_case_inferred(const assay_value_t* v, const assay_tensor_t* t) {
  int64_t x;
  const assay_valtype_t* type = v->type;
  if (!type || type->kind != t->kind) return !type;
  if ((type->elem && type->elem != t->type) || (type->has_shape && type->rank != t->rank))
    return false;
  for (int i = 0; type->has_shape && i < t->rank; i++)
    if (type->dims[i] && assay_dim_eval(type->dims[i], op_case_size, NULL, &x) && x != t->dims[i])
      return false;
  const assay_content_t* c = v->content;
  if (!c) return true;
  if (c->rank != t->rank || c->n != t->size || t->store > ASSAY_STORE_I64) return false;
  for (int64_t i = 0; i < c->n; i++) {
    if (!c->elems[i] || !assay_dim_eval(c->elems[i], op_case_size, NULL, &x)) continue;
    if (t->store == ASSAY_STORE_I64 ? x != assay_i64(t)[i] : (double)x != assay_f64(t)[i])
      return false;
  }
  return true;
}

static inline void op_case_compare(const op_case_t* row, const assay_node_t* n,
                                   const assay_evaluator_t* evaluator, const char* where) {
  for (size_t i = 0; i < n->n_outputs; i++) {
    if (!n->outputs[i]) continue;
    const assay_tensor_t* found = assay_evaluator_get(evaluator, n->outputs[i]);
    assert_non_null(found);
    assay_tensor_t* expected = op_case_tensor(row->out[i]);
    op_case_round(expected);
    if (!op_case_near(found, expected, op_case_ulps(row->out[i]))) {
      print_error("%s: output %zu is\n", where, i);
      op_case_print(found);
      print_error("expected\n");
      op_case_print(expected);
      fail();
    }
    if (!op_case_inferred(n->outputs[i], found)) {
      print_error("%s: output %zu was inferred as %s\n", where, i,
                  ASSAY_VALTYPE_TEXT(n->outputs[i]->type));
      op_case_print(found);
      fail();
    }
    assay_tensor_release(expected);
  }
}

static inline void op_case_error(const op_case_t* row, assay_status_t st, const char* where) {
  if (!row->error) {
    if (st) print_error("%s: %s\n", where, assay_status_message(st));
    assert_null(st);
    return;
  }
  if (!st) fail_msg("%s: succeeded; expected '%s'", where, row->error);
  if (!strstr(assay_status_message(st), row->error))
    fail_msg("%s: '%s', expected '%s'", where, assay_status_message(st), row->error);
  assay_status_free(st);
}

// An evaluator that has run the model on the tensors of these values (NULL: not set), for those who
// look into it; *out is the caller's also on failure.
static inline assay_status_t op_case_evaluate(const assay_model_t* m,
                                              const assay_evaluator_config_t* config, size_t n,
                                              assay_value_t* const* values,
                                              assay_tensor_t* const* in, assay_evaluator_t** out) {
  op_case_ok(assay_evaluator_create(m, config, out));
  for (size_t i = 0; i < n; i++)
    if (values[i]) assay_evaluator_set(*out, values[i], in[i]);
  return assay_evaluator_run(*out);
}

static inline void op_case_run_way(const op_case_t* row, op_case_way_t way) {
  static const char* const ways[] = {"static", "symbolic", "constant", "unranked", "unknown"};
  char where[256];
  snprintf(where, sizeof where, "%s-%d (%s; %s)", row->op, row->opset, row->attrs ? row->attrs : "",
           ways[way]);
  assay_tensor_t* in[OP_CASE_VALUES] = {NULL};
  assay_value_t* values[OP_CASE_VALUES] = {NULL};
  size_t n_in = op_case_count(row->in);
  for (size_t i = 0; i < n_in; i++)
    if (strcmp(row->in[i], "-") != 0) in[i] = op_case_tensor(row->in[i]);
  assay_model_t* m = op_case_model(row, way, in, values);
  assay_evaluator_t* evaluator = NULL;
  assay_status_t st = assay_infer_model(m);
  if (!st) {
    const assay_evaluator_config_t config = {
        .mode = ASSAY_MODE_NATIVE, .verify = true, .keep_all = true};
    st = op_case_evaluate(m, &config, n_in, values, in, &evaluator);
  }
  bool ran = !st;
  op_case_error(row, st, where);
  if (ran && !row->error) op_case_compare(row, m->graph->nodes[0], evaluator, where);
  assay_evaluator_destroy(evaluator);
  assay_model_release(m);
  for (size_t i = 0; i < n_in; i++) assay_tensor_release(in[i]);
}

static inline void op_case_run(size_t n, const op_case_t* rows) {
  for (size_t i = 0; i < n; i++)
    for (int way = 0; way < (rows[i].error ? OP_CASE_WAYS : OP_CASE_ALL_WAYS); way++)
      op_case_run_way(&rows[i], (op_case_way_t)way);
}
#define OP_CASE_RUN(rows) op_case_run(sizeof(rows) / sizeof *(rows), rows)

#endif  // ASSAY_TESTS_OPS_OP_CASE_H_
