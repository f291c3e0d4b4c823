// Operators that a program registers: what is refused, what their functions are given, and how they
// run. include/assay/ops.h.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// cmocka wants those before it.
#include <cmocka.h>

#include "base/alloc.h"
#include "check/check.h"
#include "eval/evaluator.h"
#include "io/json.h"
#include "onnx/load.h"
#include "onnx/onnx.h"
#include "ops/custom.h"
#include "passes/mixed.h"
#include "plan/plan.h"

static void ok(assay_status_t st) {
  if (st) fail_msg("%s", assay_status_message(st));
}

// It must fail with this text in its message.
static void fails(assay_status_t st, const char* text) {
  if (!st) fail_msg("no failure, where '%s' was expected", text);
  if (!strstr(assay_status_message(st), text))
    fail_msg("'%s'; expected '%s'", assay_status_message(st), text);
  assay_status_free(st);
}

// ---- what is refused ----------------------------------------------------------------------------

static assay_status_t nothing(assay_op_call_t* call, const assay_ops_api_t* api, void* user) {
  (void)call, (void)api, (void)user;
  return NULL;
}

static bool takes_all(assay_op_call_t* call, const assay_ops_api_t* api, void* user) {
  (void)call, (void)api, (void)user;
  return true;
}

static const assay_op_spec_t good = {.struct_size = sizeof good,
                                     .version = ASSAY_OPS_VERSION,
                                     .domain = "org.test",
                                     .name = "Never",
                                     .since_version = 1,
                                     .schema = "X:T -> Y:T | | T=FLOAT",
                                     .evaluate = nothing};
static assay_op_spec_t tried;

static assay_status_t register_tried(const assay_ops_api_t* api, assay_ops_list_t* list) {
  return api->add(list, &tried);
}

static assay_status_t register_nothing(const assay_ops_api_t* api, assay_ops_list_t* list) {
  (void)api, (void)list;
  return NULL;
}

static assay_status_t register_twice(const assay_ops_api_t* api, assay_ops_list_t* list) {
  assay_status_t st = api->add(list, &good);
  return st ? st : api->add(list, &good);
}

static assay_status_t register_null(const assay_ops_api_t* api, assay_ops_list_t* list) {
  return api->add(list, NULL);
}

#define SPEC(field, value, text) \
  tried = good;                  \
  tried.field = value;           \
  fails(assay_ops_register(register_tried, "a test"), text)

static void wrong_specs_are_refused(void** state) {
  (void)state;
  const int64_t live = assay_alloc_live();
  SPEC(struct_size, 8, "struct_size 8");
  SPEC(version, 2, "is of version 2 of assay/ops.h, and this is version 1");
  SPEC(name, NULL, "a name of letters");
  SPEC(name, "", "a name of letters");
  SPEC(name, "two words", "a name of letters");
  SPEC(domain, NULL, "a domain is missing");
  SPEC(domain, "a b", "a domain is missing");
  SPEC(since_version, 0, "since_version is not 1 or more");
  SPEC(schema, NULL, "a schema is missing");
  SPEC(evaluate, NULL, "`evaluate` is missing");
  SPEC(takes, takes_all, "`takes` has no `kernel`");
  SPEC(flags, 64, "flags that are not known");
  tried = good;
  tried.domain = "ai.onnx";
  tried.name = "Relu";
  fails(assay_ops_register(register_tried, NULL), "'Relu' of domain 'ai.onnx' is built in");
  tried.domain = "com.microsoft";
  tried.name = "FusedConv";
  fails(assay_ops_register(register_tried, NULL), "is built in");
  fails(assay_ops_register(register_twice, "a test"), "is registered already, by a test");
  fails(assay_ops_register(register_nothing, NULL), "it registers no operator");
  fails(assay_ops_register(register_null, NULL), "struct_size 0");
  fails(assay_ops_register(NULL, NULL), "no function");
  assert_null(assay_custom_find("org.test", "Never", 1));
  assert_int_equal(assay_alloc_live(), live);
}

static void wrong_schemas_are_refused(void** state) {
  (void)state;
  static const struct {
    const char *schema, *text;
  } rows[] = {
      {"", "'->' is missing"},
      {"X:T", "'->' is missing"},
      {"X:T -> Y:T", "unknown type"},
      {"X:T -> | | T=FLOAT", "no output"},
      {"X:T -> Y:T | | T=number", "unknown type"},
      {"X:T -> Y:T | | T", "'=' is missing"},
      {"X -> Y:T | | T=FLOAT", "':' is missing"},
      {":T -> Y:T | | T=FLOAT", "a word is missing"},
      {"X:T -> Y:T | | T=FLOAT more", "unknown type"},
      {"X:T -> Y:T | a:q | T=FLOAT", "unknown kind of attribute"},
      {"X:T -> Y:T | a | T=FLOAT", "':' is missing"},
      {"X:T -> Y:T | a:i=half | T=FLOAT", "default is not a number"},
      {"X:T -> Y:T | a:f=1.2.3 | T=FLOAT", "default is not a number"},
      {"X:T -> Y:T | a:is=1 | T=FLOAT", "have defaults"},
      {"X:T -> Y:T | a:i!=1 | T=FLOAT", "required, and has a default"},
      {"X:T -> Y:T | a:g | T=FLOAT", "is a graph"},
      {"X:T -> Y:T | a:i, a:f | T=FLOAT", "two attributes have one name"},
      {"X:T, X:T -> Y:T | | T=FLOAT", "have one name"},
      {"X:T -> Y:T, Y:T | | T=FLOAT", "have one name"},
      {"X*:T, Z:T -> Y:T | | T=FLOAT", "only the last input"},
      {"X:seq(float) -> Y:float", "is not a tensor"},
      {"X:T -> Y:T | | T=FLOAT seq(float)", "is not a tensor"},
      {"X:T -> Y:T | | T=FLOAT | more", "unknown type"},
      {"\xff:T -> Y:T | | T=FLOAT", "a word is missing"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    tried = good;
    tried.schema = rows[i].schema;
    fails(assay_ops_register(register_tried, NULL), rows[i].text);
  }
}

// Registering either works or leaves nothing behind, whatever allocation fails.
static void allocations_may_fail(void** state) {
  (void)state;
  static const char* const names[] = {"Late", "Later"};  // one allocation, and all from there on
  for (int sticky = 0; sticky < 2; sticky++) {
    tried = good;
    tried.name = names[sticky];
    for (uint64_t n = 1;; n++) {
      const int64_t live = assay_alloc_live();
      assay_alloc_fail_after(n, sticky);
      assay_status_t st = assay_ops_register(register_tried, NULL);
      const bool reached = assay_alloc_fail_after(0, false) >= n;
      assert_int_equal(reached, st != NULL);  // it can do without none
      if (!st) break;
      assert_int_equal(assay_status_code(st), ASSAY_NO_MEMORY);
      assay_status_free(st);
      assert_null(assay_custom_find("org.test", tried.name, 1));
      assert_int_equal(assay_alloc_live(), live);
    }
    assert_non_null(assay_custom_find("org.test", tried.name, 7));
  }
}

// ---- libraries ----------------------------------------------------------------------------------

static void libraries_are_loaded_once(void** state) {
  (void)state;
  char path[512];
  fails(assay_ops_load(NULL), "no name");
  fails(assay_ops_load("nothing.so"), "no library 'nothing.so' that can be read");
  fails(assay_ops_load("/dev/null"), "cannot be opened as a library");
  snprintf(path, sizeof path, "%s/no_symbol.so", getenv("ASSAY_TEST_OPS"));
  fails(assay_ops_load(path), "no function 'assay_register_ops'");
  snprintf(path, sizeof path, "%s/built_in.so", getenv("ASSAY_TEST_OPS"));
  fails(assay_ops_load(path), "'Relu' of domain 'ai.onnx' is built in");
  assert_null(assay_custom_find("com.example", "SoftClip", 1));  // all or none
  snprintf(path, sizeof path, "%s/operators.so", getenv("ASSAY_TEST_OPS"));
  ok(assay_ops_load(path));
  ok(assay_ops_load(path));
  assert_non_null(assay_custom_find("com.example", "SoftClip", 1));
  snprintf(path, sizeof path, "%s/other_revision.so", getenv("ASSAY_TEST_OPS"));
  fails(assay_ops_load(path), "is registered already, by '");
}

// ---- running ------------------------------------------------------------------------------------

// Calls everything that an operator may call, and says what was not as it should be.
//   Probe: X:T, opt?:T, strings:string -> Y:T, S:string, N:uint8, unused?:float
static const char* what;  // the function that is to go wrong; NULL: none
#define WANT(condition) \
  if (!(condition)) return api->error(ASSAY_INTERNAL, "line %d: %s", __LINE__, #condition)

static assay_status_t check_attributes(assay_op_call_t* c, const assay_ops_api_t* api) {
  size_t n = 0;
  assay_op_array_t t;
  WANT(strcmp(api->node(c), "probe") == 0 && api->since_version(c) == 2);
  WANT(api->input_count(c) == 3 && api->output_count(c) == 3);
  WANT(api->has_input(c, 0) && !api->has_input(c, 1) && api->has_input(c, 2) &&
       !api->has_input(c, 9));
  WANT(api->wants_output(c, 0) && api->wants_output(c, 2) && !api->wants_output(c, 3));
  WANT(api->attr_int(c, "i", 7) == -3 && api->attr_int(c, "left", 7) == 4);
  WANT(api->attr_int(c, "none", 7) == 7 && api->attr_int(c, "f", 7) == 7);
  WANT(api->attr_float(c, "f", 7) == (double)0.1f);
  WANT(api->attr_float(c, "tenth", 7) == (double)0.1f);
  WANT(strcmp(api->attr_string(c, "s", ""), "text") == 0);
  WANT(strcmp(api->attr_string(c, "mode", ""), "linear") == 0);
  WANT(api->attr_ints(c, "is", &n)[1] == 2 && n == 2 && !api->attr_ints(c, "fs", &n) && n == 0);
  WANT(api->attr_floats(c, "fs", &n)[0] == 0.5f && n == 1);
  WANT(memcmp(api->attr_string_at(c, "ss", 1, &n), "bc", 2) == 0 && n == 2);
  WANT(!api->attr_string_at(c, "ss", 2, &n));
  assay_status_t st = api->attr_tensor(c, "t", &t);
  if (st) return st;
  WANT(t.type == ASSAY_TYPE_FLOAT16 && t.rank == 1 && t.size == 2 && t.f64[1] == 2.5);
  st = api->attr_tensor(c, "none", &t);
  WANT(st && assay_status_code(st) == ASSAY_NOT_FOUND);
  assay_status_free(st);
  return NULL;
}

static assay_status_t refuses(const assay_ops_api_t* api, assay_status_t st, const char* text) {
  WANT(st && strstr(assay_status_message(st), text));
  assay_status_free(st);
  return NULL;
}

static assay_status_t probe_infer(assay_op_call_t* c, const assay_ops_api_t* api, void* user) {
  double* y;
  int64_t value;
  assay_op_array_t a;
  WANT(user == &tried);
  assay_status_t st = check_attributes(c, api);
  if (st) return st;
  WANT(api->input_type(c, 0) == ASSAY_TYPE_FLOAT && api->input_rank(c, 0) == 2);
  WANT(api->input_rank(c, 1) == -1 && !api->input_dim(c, 1, 0) && api->input_type(c, 9) == 0);
  const assay_op_size_t *n = api->input_dim(c, 0, 0), *d = api->input_dim(c, 0, 1);
  WANT(n && !api->size_value(n, &value) && api->size_value(d, &value) && value == 3);
  WANT(!api->input_dim(c, 0, 2) && !api->input_dim(c, 0, -1));
  const assay_op_size_t* twice = api->multiply_sizes(c, n, api->size(c, 2));
  WANT(api->subtract_sizes(c, twice, n) == n && api->add_sizes(c, n, n) == twice);
  WANT(api->divide_sizes(c, twice, api->size(c, 2)) == n && !api->add_sizes(c, n, NULL));
  WANT(api->sizes_differ(n, api->add_sizes(c, n, api->size(c, 1))) && !api->sizes_differ(n, twice));
  WANT(api->new_size(c, "found") != api->new_size(c, "found"));
  WANT(!api->constant(c, 0, &a) && api->constant(c, 2, &a) && a.size == 2);
  st = refuses(api, api->output(c, 0, ASSAY_TYPE_FLOAT, 0, NULL, &y), "calls output()");
  if (!st) st = refuses(api, api->set_output(c, 0, ASSAY_TYPE_BOOL, 0, NULL), "made as bool");
  if (!st) st = refuses(api, api->set_output(c, 0, 0, 99, &n), "rank 99");
  const assay_op_size_t* negative = api->size(c, -1);
  if (!st) st = refuses(api, api->set_output(c, 0, 0, 1, &negative), "comes out as -1");
  if (st) return st;
  if (what && strcmp(what, "infer") == 0) return api->error(ASSAY_UNSUPPORTED, "told %d", 5);
  const assay_op_size_t* dims[] = {n, d};
  st = api->set_same(c, 0, 0);
  if (!st) st = api->set_output(c, 1, ASSAY_TYPE_STRING, -1, NULL);
  if (!st) st = api->set_output(c, 2, ASSAY_TYPE_UINT8, 2, dims);
  return st ? st : api->set_output(c, 3, ASSAY_TYPE_FLOAT, 0, NULL);
}

static assay_status_t probe_evaluate(assay_op_call_t* c, const assay_ops_api_t* api, void* user) {
  assay_op_array_t x, none;
  double *y, *unused;
  int64_t* n;
  void* s;
  size_t length;
  const int64_t two = 2, wrong[] = {1, 2};
  WANT(user == &tried);
  assay_status_t st = check_attributes(c, api);
  if (st) return st;
  WANT(api->input(c, 0, &x) && !api->input(c, 1, &none) && !api->input(c, 7, &none));
  WANT(x.f64 && !x.i64 && x.rank == 2 && x.dims[1] == 3 && x.size == x.dims[0] * 3);
  WANT(memcmp(api->string(c, 2, 1, &length), "zwei", 4) == 0 && length == 4);
  WANT(!api->string(c, 2, 2, &length) && !api->string(c, 0, 0, &length));
  WANT(!api->size(c, 1) && api->unit(c) == 0 && api->accumulate(c, 0.1) == 0.1);
  WANT(!api->accumulates(c));
  if (what && strcmp(what, "evaluate") == 0) return api->error(ASSAY_UNSUPPORTED, "told %s", "so");
  if (what && strcmp(what, "forgets") == 0) return NULL;
  if (what && strcmp(what, "shape") == 0) return api->output(c, 0, ASSAY_TYPE_FLOAT, 2, wrong, &y);
  if (what && strcmp(what, "type") == 0)
    return api->output(c, 0, ASSAY_TYPE_BOOL, x.rank, x.dims, &y);
  if (what && strcmp(what, "huge") == 0)
    return api->output(c, 0, ASSAY_TYPE_FLOAT, 2, (int64_t[]){INT64_MAX, 3}, &y);
  if (what && strcmp(what, "negative") == 0)
    return api->output(c, 0, ASSAY_TYPE_FLOAT, 1, (int64_t[]){-1}, &y);
  st = api->output(c, 0, x.type, x.rank, x.dims, &y);
  if (!st) st = api->output(c, 1, ASSAY_TYPE_STRING, 1, &two, &s);
  if (!st) st = api->output(c, 2, ASSAY_TYPE_UINT8, x.rank, x.dims, &n);
  if (!st) st = api->output(c, 3, ASSAY_TYPE_FLOAT, 0, NULL, &unused);
  if (st) return st;
  WANT(!s && y[0] == 0 && n[0] == 0);
  for (int64_t i = 0; i < x.size; i++) {
    y[i] = x.f64[i] / 3;  // rounded by whoever called
    n[i] = 250 + i;       // wrapped, too
  }
  *unused = 1;
  st = api->set_string(c, 1, 1, "b\0c", 3);
  if (!st) st = refuses(api, api->set_string(c, 1, 2, "", 0), "no string 2");
  if (!st) st = refuses(api, api->set_output(c, 0, 0, 0, NULL), "calls set_output()");
  return st;
}

static assay_status_t put_attr(assay_node_t* n, size_t i, const char* name,
                               assay_attr_type_t type) {
  n->attrs[i] = (assay_attr_t){.name = name, .doc = "", .ref = "", .type = type, .n = 1};
  return NULL;
}

// y, s, n = Probe(x, , words), with every kind of attribute.
static assay_model_t* probe_model(void) {
  static const int64_t ints[] = {1, 2};
  static const float floats[] = {0.5f};
  static const assay_string_t strings[] = {{"a", 1}, {"bc", 2}};
  assay_model_t *m = NULL, *ready = NULL;
  assay_node_t* n = NULL;
  assay_value_t *x = NULL, *words = NULL, *out[3] = {NULL};
  assay_tensor_t *text = NULL, *t = NULL;
  ok(assay_model_create(&m));
  m->ir_version = 9;
  static const assay_opset_t opsets[] = {{"", 17}, {"org.test", 3}};
  m->opsets = (assay_opset_t*)(uintptr_t)opsets;
  m->n_opsets = 2;
  if (!m->graph) ok(assay_graph_create(m, NULL, &m->graph));
  assay_graph_t* g = m->graph;
  ok(assay_graph_add_value(g, "x", &x));
  ok(assay_graph_add_value(g, "words", &words));
  const char* names[] = {"y", "s", "n"};
  for (size_t i = 0; i < 3; i++) ok(assay_graph_add_value(g, names[i], &out[i]));
  const assay_dim_t* dims[] = {assay_dim_symbol(m->dims, "N"), assay_dim_const(m->dims, 3)};
  ok(assay_valtype_tensor(m, ASSAY_TYPE_FLOAT, 2, dims, &x->declared));
  x->is_input = true;
  const int64_t two = 2;
  ok(assay_tensor_create(ASSAY_TYPE_STRING, 1, &two, &text));
  ok(assay_tensor_set_string(text, 0, "eins", 4));
  ok(assay_tensor_set_string(text, 1, "zwei", 4));
  ok(assay_graph_set_initializer(words, text));
  ok(assay_node_create(g, "org.test", "Probe", "probe", 3, 3, 8, &n));
  n->inputs[0] = x;
  n->inputs[2] = words;
  for (size_t i = 0; i < 3; i++) assay_node_set_output(n, i, out[i]);
  const char* attrs[] = {"i", "f", "s", "is", "fs", "ss", "t", "__tool"};
  const assay_attr_type_t types[] = {ASSAY_ATTR_INT,    ASSAY_ATTR_FLOAT,  ASSAY_ATTR_STRING,
                                     ASSAY_ATTR_INTS,   ASSAY_ATTR_FLOATS, ASSAY_ATTR_STRINGS,
                                     ASSAY_ATTR_TENSOR, ASSAY_ATTR_INT};
  for (size_t i = 0; i < 8; i++) ok(put_attr(n, i, attrs[i], types[i]));
  n->attrs[0].u.i = -3;
  n->attrs[1].u.f = 0.1f;
  n->attrs[2].u.s = (assay_string_t){"text", 4};
  n->attrs[3].u.ints = ints;
  n->attrs[3].n = 2;
  n->attrs[4].u.floats = floats;
  n->attrs[5].u.strings = strings;
  n->attrs[5].n = 2;
  ok(assay_tensor_create(ASSAY_TYPE_FLOAT16, 1, &two, &t));
  assay_f64(t)[0] = 1;
  assay_f64(t)[1] = 2.5;
  ok(assay_model_take_tensor(m, t));
  n->attrs[6].u.t = t;
  ok(assay_graph_insert(g, n, 0));
  assay_value_t* inputs[] = {x};
  g->inputs = inputs;
  g->n_inputs = 1;
  g->outputs = out;
  g->n_outputs = 3;
  for (size_t i = 0; i < 3; i++) out[i]->is_output = true;
  assay_status_t st = assay_onnx_prepare(m, 0, NULL, &ready);
  assay_model_release(m);
  if (st && what && strcmp(what, "infer") == 0) {
    fails(st, "node 'probe' (org.test.Probe): told 5");
    return NULL;
  }
  ok(st);
  return ready;
}

static assay_status_t register_probe(const assay_ops_api_t* api, assay_ops_list_t* list) {
  tried = good;
  tried.name = "Probe";
  tried.since_version = 2;
  tried.schema =
      "X:T, opt?:T, strings:string -> Y:T, S:string, N:uint8, unused?:float | i:i!, f:f, s:s, "
      "is:is, "
      "fs:fs, ss:ss, t:t, left:i=4, tenth:f=0.1, mode:s=linear | T=float double";
  tried.infer = probe_infer;
  tried.evaluate = probe_evaluate;
  tried.user = &tried;
  return api->add(list, &tried);
}

// Runs the model; what it fails with is given.
static assay_status_t run_probe(const assay_model_t* m, assay_mode_t mode, assay_tensor_t** out) {
  const assay_evaluator_config_t config = {.mode = mode, .verify = true};
  const int64_t dims[] = {2, 3};
  assay_evaluator_t* evaluator = NULL;
  assay_tensor_t* x = NULL;
  ok(assay_tensor_create(ASSAY_TYPE_FLOAT, 2, dims, &x));
  for (int i = 0; i < 6; i++) assay_f64(x)[i] = i;
  assay_status_t st = assay_evaluator_create_run(m, &config, &x, &evaluator);
  for (size_t i = 0; !st && out && i < 3; i++)
    out[i] = assay_tensor_retain(assay_evaluator_get(evaluator, m->graph->outputs[i]));
  assay_tensor_release(x);
  assay_evaluator_destroy(evaluator);
  return st;
}

static void functions_get_what_they_ask_for(void** state) {
  (void)state;
  assay_tensor_t* out[3] = {NULL};
  ok(assay_ops_register(register_probe, NULL));
  assay_model_t* m = probe_model();
  const assay_valtype_t* type = m->graph->outputs[0]->type;
  assert_true(type->dims[0] == m->graph->inputs[0]->type->dims[0]);
  for (int truth = 0; truth < 2; truth++) {
    ok(run_probe(m, truth ? ASSAY_MODE_TRUTH : ASSAY_MODE_NATIVE, out));
    const double third = 1.0 / 3;
    assert_true(assay_f64(out[0])[1] == (truth ? third : (double)(float)third));
    assert_int_equal(assay_i64(out[2])[5], 255);
    assert_int_equal(assay_strings(out[1])[1].len, 3);
    assert_memory_equal(assay_strings(out[1])[1].text, "b\0c", 3);
    for (int i = 0; i < 3; i++) assay_tensor_release(out[i]);
  }
  assay_model_release(m);
}

static void failures_name_node_and_operator(void** state) {
  (void)state;
  static const struct {
    const char *what, *text;
  } rows[] = {
      {"evaluate", "node 'probe' (org.test.Probe): told so"},
      {"forgets", "(org.test.Probe): its function `evaluate` has not made output 0"},
      {"shape", "has made output 0 as float[1, 2], and `infer` had said float[N, 3]"},
      {"type", "output 0 is made as bool, which its schema does not say"},
      {"huge", "output 0 'y'"},
      {"negative", "output 0 'y'"},
  };
  assay_model_t* m = probe_model();
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    what = rows[i].what;
    fails(run_probe(m, ASSAY_MODE_NATIVE, NULL), rows[i].text);
  }
  assay_model_release(m);
  what = "infer";
  assert_null(probe_model());
  what = NULL;
}

// ---- in checks ----------------------------------------------------------------------------------

// Halves with a relative error that is far more than rounding: told by its bound, if it has one.
static assay_status_t half_infer(assay_op_call_t* c, const assay_ops_api_t* api, void* user) {
  (void)user;
  return api->set_same(c, 0, 0);
}

static assay_status_t half_evaluate(assay_op_call_t* c, const assay_ops_api_t* api, void* user) {
  (void)user;
  assay_op_array_t x;
  double* y;
  api->input(c, 0, &x);
  assay_status_t st = api->output(c, 0, x.type, x.rank, x.dims, &y);
  for (int64_t i = 0; !st && i < x.size; i++) y[i] = api->accumulate(c, x.f64[i] / 2);
  return st;
}

static assay_status_t half_bound(assay_op_call_t* c, const assay_ops_api_t* api, void* user) {
  (void)user;
  return api->bound_monotone(c, 1, 0);
}

// On the CPU every result is wrong by a thousandth.
static assay_status_t half_kernel(assay_op_call_t* c, const assay_ops_api_t* api, void* user) {
  (void)user;
  assay_op_array_t x, y;
  const void* from;
  void* to;
  if (!api->kernel_input(c, 0, &x, &from) || !api->kernel_output(c, 0, &y, &to))
    return api->error(ASSAY_INTERNAL, "no operands");
  for (int64_t i = 0; i < x.size; i++) ((float*)to)[i] = ((const float*)from)[i] * 0.5005f;
  return NULL;
}

static assay_status_t register_halves(const assay_ops_api_t* api, assay_ops_list_t* list) {
  assay_op_spec_t s = good;
  s.infer = half_infer;
  s.evaluate = half_evaluate;
  s.kernel = half_kernel;
  s.name = "HalfUnbound";
  assay_status_t st = api->add(list, &s);
  s.name = "HalfBound";
  s.bound = half_bound;
  return st ? st : api->add(list, &s);
}

static assay_model_t* half_model(const char* op) {
  assay_model_t *m = NULL, *ready = NULL;
  assay_node_t* n = NULL;
  assay_value_t *x = NULL, *y = NULL;
  static const assay_opset_t opsets[] = {{"", 17}, {"org.test", 1}};
  ok(assay_model_create(&m));
  m->ir_version = 9;
  m->opsets = (assay_opset_t*)(uintptr_t)opsets;
  m->n_opsets = 2;
  if (!m->graph) ok(assay_graph_create(m, NULL, &m->graph));
  ok(assay_graph_add_value(m->graph, "x", &x));
  ok(assay_graph_add_value(m->graph, "y", &y));
  const assay_dim_t* dims[] = {assay_dim_const(m->dims, 100)};
  ok(assay_valtype_tensor(m, ASSAY_TYPE_FLOAT, 1, dims, &x->declared));
  ok(assay_node_create(m->graph, "org.test", op, "half", 1, 1, 0, &n));
  n->inputs[0] = x;
  assay_node_set_output(n, 0, y);
  ok(assay_graph_insert(m->graph, n, 0));
  x->is_input = y->is_output = true;
  m->graph->inputs = &x;
  m->graph->outputs = &y;
  m->graph->n_inputs = m->graph->n_outputs = 1;
  assay_status_t st = assay_onnx_prepare(m, 0, NULL, &ready);
  assay_model_release(m);
  ok(st);
  return ready;
}

static assay_verdict_t verdict_of(const char* op, const char* backend, assay_format_t format,
                                  bool bounded) {
  assay_model_t* m = half_model(op);
  const assay_precision_t precision = {.format = format};
  assay_plan_t* plan = NULL;
  assay_account_t* a = NULL;
  assay_samples_t s = {0};
  ok(assay_plan_create(m, &precision, NULL, 1, &plan));
  const assay_account_options_t options = {0};
  ok(assay_account_create(plan, assay_backend_find(backend), &options, &a));
  ok(assay_samples_generate(m, 3, &s));
  ok(assay_account_run(a, assay_samples_get(&s, 0)));
  const assay_verdict_t verdict = assay_account_layer(a, 0)->verdict;
  assert_int_equal(assay_account_layer(a, 0)->bounded, bounded);
  assay_account_destroy(a);
  assay_samples_deinit(&s);
  assay_plan_destroy(plan);
  assay_model_release(m);
  return verdict;
}

static void bounds_decide(void** state) {
  (void)state;
  ok(assay_ops_register(register_halves, NULL));
  assert_int_equal(verdict_of("HalfBound", "cpu", ASSAY_FORMAT_FP32, true), ASSAY_VERDICT_DEFECT);
  assert_int_equal(verdict_of("HalfBound", "emu", ASSAY_FORMAT_FP16, true), ASSAY_VERDICT_EXACT);
  // Without a bound reruns of the emulated layer decide, as of any other operator.
  assert_int_equal(verdict_of("HalfUnbound", "cpu", ASSAY_FORMAT_FP32, false),
                   ASSAY_VERDICT_DEFECT);
  assert_int_equal(verdict_of("HalfUnbound", "emu", ASSAY_FORMAT_FP32, false), ASSAY_VERDICT_EXACT);
}

// ---- operators that nobody knows ----------------------------------------------------------------

static void unknown_operators_stay_as_they_are(void** state) {
  (void)state;
  char path[512];
  assay_model_t *raw = NULL, *m = NULL, *mixed = NULL, *again = NULL;
  assay_format_t* formats = NULL;
  uint8_t* bytes = NULL;
  size_t size;
  snprintf(path, sizeof path, "%s/operators/unknown.onnx", getenv("ASSAY_TEST_MODELS"));
  ok(assay_onnx_read(path, &raw));
  fails(assay_onnx_prepare(raw, 0, NULL, &m),
        "node 'plugin' (com.vendor.Plugin): unknown operator");
  ok(assay_onnx_prepare_known(raw, 0, NULL, &m));
  ok(assay_model_verify(m));
  assert_string_equal(assay_onnx_unknown(m)->label, "plugin");
  // The rest in half precision: unknown operators are handed what they were, by Casts.
  ok(assay_new_array((size_t)m->n_node_ids, sizeof *formats, &formats));
  for (int i = 0; i < m->n_node_ids; i++) formats[i] = ASSAY_FORMAT_FP16;
  ok(assay_mixed_create(m, formats, &mixed));
  ok(assay_onnx_write_bytes(mixed, &bytes, &size));
  ok(assay_onnx_read_bytes(bytes, size, NULL, &again));
  ok(assay_onnx_check_known(again));
  const assay_node_t* plugin = assay_onnx_unknown(again);
  assert_string_equal(plugin->op_type, "Plugin");
  assert_int_equal(plugin->n_attrs, 9);
  assert_int_equal(plugin->n_inputs, 3);
  assert_null(plugin->inputs[1]);
  assert_null(plugin->outputs[1]);
  assert_string_equal(plugin->inputs[0]->producer->op_type, "Cast");
  assert_string_equal(plugin->outputs[0]->name, "left");
  assert_int_equal(assay_node_attr(plugin, "mode")->u.s.len, 7);
  // Add of the body is in fp16, and Inner is handed what it was.
  const assay_graph_t* body = assay_node_attr(plugin, "body")->u.g;
  assert_int_equal(body->n_nodes, 4);
  assert_string_equal(body->nodes[3]->op_type, "Inner");
  assert_string_equal(body->nodes[3]->inputs[0]->producer->op_type, "Cast");
  assert_int_equal(assay_model_opset(again, "com.vendor"), 3);
  assay_free(formats);
  assay_free(bytes);
  assay_model_release(again);
  assay_model_release(mixed);
  assay_model_release(m);
  assay_model_release(raw);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(wrong_specs_are_refused),
      cmocka_unit_test(wrong_schemas_are_refused),
      cmocka_unit_test(allocations_may_fail),
      cmocka_unit_test(libraries_are_loaded_once),
      cmocka_unit_test(functions_get_what_they_ask_for),
      cmocka_unit_test(failures_name_node_and_operator),
      cmocka_unit_test(bounds_decide),
      cmocka_unit_test(unknown_operators_stay_as_they_are),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
