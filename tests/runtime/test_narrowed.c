// Constants of plan files in 16 bits: which ones lie so, that results keep their bits on the CPU
// and on a GPU that is not there (cuda/fake), and that a file which says so of another one is
// refused.
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "passes/graph_case.h"
#include "plan/narrow.h"
#include "runtime/executor.h"

#define LIST(...) \
  { __VA_ARGS__ }
#define AND ,

typedef struct row {
  graph_case_t graph;
  const char* rules;   // of the precision; NULL: none
  const char* narrow;  // names of the constants that lie in 16 bits
  const char* source;  // and of those of the model as it was given; NULL: the same
} row_t;

#define ROW(name, opset, inputs, constants, nodes, ...) \
  { {name, opset, inputs, constants, nodes, "y"}, __VA_ARGS__ }

// Odd sizes, so that tiles have tails. Constants of fewer than 1024 bytes stay float32.
static const row_t rows[] = {
    ROW("a product, its bias, a factor", 17, LIST("x float[5,33]"),
        LIST("w float[33,300]" AND "b float[300]" AND "f float[300] positive"),
        LIST("MatMul p x w -> t" AND "Add s t b -> u" AND "Tanh h u -> v" AND "Mul m v f -> y"),
        NULL, "w", NULL),
    ROW("both orders", 17, LIST("x float[3,40]"), LIST("v float[31,40]" AND "w float[31,37]"),
        LIST("Gemm p x v -> t | transB=1" AND "Gemm q t w -> y"), NULL, "v w", NULL),
    ROW("convolutions with groups and without", 17, LIST("x float[2,6,9,7]"),
        LIST("v float[24,2,3,3]" AND "w float[7,24,3,2]" AND "c float[7]"),
        LIST("Conv p x v -> t | group=3 pads=1,1,1,1" AND "Relu r t -> u" AND
             "Conv q u w c -> y | strides=2,1"),
        NULL, "v w", NULL),
    ROW("one channel a group, and back up", 17, LIST("x float[1,40,7,5]"),
        LIST("v float[40,1,3,3]" AND "w float[40,6,2,2]"),
        LIST("Conv p x v -> t | group=40 pads=1,1,1,1" AND
             "ConvTranspose q t w -> y | strides=2,2"),
        NULL, "v w", NULL),
    ROW("a table", 17, LIST("i int64[2,3] 0 64 7 7 -1 30"), LIST("w float[65,9]"),
        LIST("Gather g w i -> t" AND "Relu r t -> y"), NULL, "w", NULL),
    ROW("a table that is multiplied, too", 17, LIST("i int64[2,3] 0 64 7 7 -1 30"),
        LIST("w float[65,9]" AND "v float[9,65]"),
        LIST("Gather g w i -> t" AND "MatMul p t v -> u" AND "MatMul q u w -> y"), NULL, "w v",
        NULL),
    ROW("a recurrence", 17, LIST("x float[4,2,11]"),
        LIST("w float[1,68,11]" AND "r float[1,68,17]" AND "b float[1,136]"),
        LIST("LSTM l x w r b -> y | hidden_size=17"), NULL, "w r", NULL),
    ROW("weights that a pass makes", 17, LIST("x float[1,5,6,6]"),
        LIST("w float[9,5,3,3]" AND "s float[9] positive" AND "o float[9]" AND "m float[9]" AND
             "v float[9] positive"),
        LIST("Conv c x w -> t" AND "BatchNormalization n t s o m v -> y"), NULL, "*", ""),
    ROW("a layer in float32 reads it", 17, LIST("x float[3,20]"),
        LIST("w float[20,20]" AND "v float[20,20]"),
        LIST("MatMul p x w -> t" AND "MatMul q t w -> u" AND "MatMul r u v -> y"), "q:fp32", "v",
        NULL),
    ROW("numbers added", 17, LIST("x float[3,300]"), LIST("w float[3,300]"), LIST("Add a x w -> y"),
        NULL, "", NULL),
    ROW("sizes and factors of a Resize", 17, LIST("x float[1,2,4,4]"),
        LIST("e float[0]" AND "s float[4] 1 1 2 2" AND "w float[16,2,3,3]"),
        LIST("Resize z x e s -> t | mode=nearest" AND "Conv c t w -> y"), NULL, "w", NULL),
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static const assay_format_t formats[] = {ASSAY_FORMAT_FP16, ASSAY_FORMAT_BF16};
static const char* const targets[] = {"cpu", "cuda"};
static char path[64], again[64];

static int make_paths(void** state) {
  (void)state;
  const char* platform = getenv("ASSAY_TEST_LIBCUDA");
  setenv("ASSAY_CUDA_PATH", platform ? platform : ".", 1);
  snprintf(path, sizeof path, "/tmp/assay-test-narrowed-%ld", (long)getpid());
  snprintf(again, sizeof again, "/tmp/assay-test-narrowed-again-%ld", (long)getpid());
  return 0;
}

static int remove_paths(void** state) {
  (void)state;
  unlink(path);
  unlink(again);
  return 0;
}

// Numbers that a format of 16 bits rounds to infinity, to subnormal numbers and to zero.
static void put_extremes(assay_model_t* m) {
  static const double extremes[] = {7e4,    -65519, 65520, 3e-6,    -2.5e-8,
                                    3.1e-8, 1e-20,  -0.0,  0x1p-126};
  enum { N = sizeof extremes / sizeof *extremes };
  for (size_t i = 0; i < m->graph->n_initializers; i++) {
    const assay_tensor_t* t = m->graph->initializers[i]->constant;
    for (int64_t k = 0; t->size >= 256 && k < N; k++)
      assay_f64(t)[k * 23] = (double)(float)extremes[k];
  }
}

static assay_engine_t* build(const row_t* row, assay_format_t format, const char* target,
                             bool extremes, assay_tensor_t** in) {
  assay_precision_t precision = {.format = format};
  const assay_plan_options_t options = {.fused = true};
  assay_plan_t* plan = NULL;
  assay_engine_t* e = NULL;
  assay_model_t* m = graph_case_model(&row->graph, in);
  if (extremes) put_extremes(m);
  if (row->rules) op_case_ok(assay_precision_parse(&precision, row->rules));
  op_case_ok(assay_plan_create(m, &precision, &options, 1, &plan));
  op_case_ok(assay_engine_create(plan, assay_backend_find(target), NULL, &e));
  assay_precision_deinit(&precision);
  assay_model_release(m);
  return e;
}

// The bits of what comes out.
static uint64_t run(assay_engine_t* engine, assay_tensor_t* const* in) {
  const assay_graph_t* g = assay_plan_layers(assay_engine_plan(engine))->model->graph;
  assay_executor_t* e = NULL;
  uint64_t hash = 0;
  op_case_ok(assay_executor_run_engine(engine, NULL, &e));
  op_case_ok(assay_executor_set_inputs(e, in));
  op_case_ok(assay_executor_run(e));
  for (size_t i = 0; i < g->n_outputs; i++) {
    const assay_tensor_t* t = assay_executor_get(e, g->outputs[i]);
    hash = assay_hash(t->data, (size_t)t->size * assay_store_elem_bytes(t->store), hash);
  }
  assay_executor_destroy(e);
  return hash;
}

static bool is_named(const char* names, const char* name) {
  const size_t n = strlen(name);
  for (const char* at = names; (at = strstr(at, name)); at += n)
    if ((at == names || at[-1] == ' ') && (at[n] == ' ' || !at[n])) return true;
  return false;
}

// names: "*": all large ones.
static void check_constants(const char* what, const assay_model_t* m, const char* names) {
  for (size_t i = 0; i < m->graph->n_initializers; i++) {
    const assay_value_t* v = m->graph->initializers[i];
    const bool want = strcmp(names, "*") == 0 ? v->constant->size >= 256 : is_named(names, v->name);
    if ((v->constant->store == ASSAY_STORE_NARROW) != want)
      fail_msg("%s: '%s' lies %s", what, v->name, want ? "as float32" : "in 16 bits");
    assert_int_equal(v->constant->type, ASSAY_TYPE_FLOAT);
  }
}

static void assert_same_files(const char* what) {
  assay_mapping_t *a = NULL, *b = NULL;
  op_case_ok(assay_mapping_open(path, &a));
  op_case_ok(assay_mapping_open(again, &b));
  if (assay_mapping_size(a) != assay_mapping_size(b) ||
      memcmp(assay_mapping_data(a), assay_mapping_data(b), assay_mapping_size(a)) != 0)
    fail_msg("%s: read and written again it is another file", what);
  assay_mapping_release(a);
  assay_mapping_release(b);
}

static void results_keep_their_bits(void** state) {
  (void)state;
  for (size_t r = 0; r < N_ROWS; r++)
    for (int f = 0; f < 2; f++)
      for (int t = 0; t < 2; t++)
        for (int extremes = 0; extremes < 2; extremes++) {
          assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
          assay_engine_t* built = build(&rows[r], formats[f], targets[t], extremes, in);
          assay_engine_t* loaded = NULL;
          assay_model_t* source = NULL;
          char what[128];
          snprintf(what, sizeof what, "%s, %s on %s", rows[r].graph.name,
                   assay_format_name(formats[f]), targets[t]);
          const uint64_t want = run(built, in);
          op_case_ok(assay_engine_save(built, path));
          op_case_ok(assay_engine_load(path, &loaded));
          if (run(loaded, in) != want) fail_msg("%s: the bits are others", what);
          check_constants(what, assay_plan_layers(assay_engine_plan(loaded))->model,
                          rows[r].narrow);
          op_case_ok(assay_engine_source(loaded, &source));
          check_constants(what, source, rows[r].source ? rows[r].source : rows[r].narrow);
          op_case_ok(assay_engine_save(loaded, again));
          assert_same_files(what);
          assay_model_release(source);
          assay_engine_release(loaded);
          assay_engine_release(built);
          graph_case_release(in);
        }
}

// Not all engines round NaN and numbers below float32's normal ones alike.
static void odd_elements_stay(void** state) {
  (void)state;
  static const double odd[] = {(double)NAN, 0x1p-127};
  for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_precision_t precision = {.format = ASSAY_FORMAT_FP16};
    assay_plan_t* plan = NULL;
    assay_engine_t *built = NULL, *loaded = NULL;
    assay_model_t* m = graph_case_model(&rows[0].graph, in);
    assay_f64(m->graph->initializers[0]->constant)[400] = odd[i];
    op_case_ok(assay_plan_create(m, &precision, NULL, 1, &plan));
    op_case_ok(assay_engine_create(plan, assay_backend_find("cpu"), NULL, &built));
    op_case_ok(assay_engine_save(built, path));
    op_case_ok(assay_engine_load(path, &loaded));
    check_constants("odd", assay_plan_layers(assay_engine_plan(loaded))->model, "");
    assay_model_release(m);
    assay_engine_release(loaded);
    assay_engine_release(built);
    graph_case_release(in);
  }
}

// ---- what is refused ----------------------------------------------------------------------------

static void sign(uint8_t* bytes, size_t n) {
  uint64_t hash = 0;
  const size_t end = n - sizeof hash;
  for (size_t at = 0; at < end; at += 1 << 20)
    hash = assay_hash(bytes + at, end - at < 1 << 20 ? end - at : 1 << 20, hash);
  memcpy(bytes + end, &hash, sizeof hash);
}

// The plan's file with every `text` made another of the same length.
static void write_changed(const char* text, const char* other) {
  assay_mapping_t* m = NULL;
  op_case_ok(assay_mapping_open(path, &m));
  const size_t n = assay_mapping_size(m), len = strlen(text);
  uint8_t* bytes = malloc(n);
  size_t changed = 0;
  assert_non_null(bytes);
  assert_int_equal(strlen(other), len);
  memcpy(bytes, assay_mapping_data(m), n);
  assay_mapping_release(m);
  for (size_t i = 0; i + len <= n; i++)
    if (memcmp(bytes + i, text, len) == 0) {
      memcpy(bytes + i, other, len);
      changed++;
    }
  if (!changed) fail_msg("there is no '%s'", text);
  sign(bytes, n);
  op_case_ok(assay_file_write(again, bytes, n));
  free(bytes);
}

static void other_readers_are_refused(void** state) {
  (void)state;
  static const struct {
    const char *text, *other, *message;
  } changes[] = {
      {"\"format\": \"fp16\"", "\"format\": \"fp32\"", "its layers read float32"},
      {"\"format\": \"fp16\"", "\"format\": \"bf16\"", "its layers read float32"},
      {"float16", "float61", "do not lie as 'float61'"},
      {"float16", "float32", "do not lie as 'float32'"},
      {"narrow", "harrow", "length is"},
  };
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_engine_t* e = build(&rows[0], ASSAY_FORMAT_FP16, "cpu", false, in);
  op_case_ok(assay_engine_save(e, path));
  assay_engine_release(e);
  graph_case_release(in);
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
    write_changed(changes[i].text, changes[i].other);
    e = NULL;
    assay_status_t st = assay_engine_load(again, &e);
    if (!st) fail_msg("'%s' is taken", changes[i].other);
    if (!strstr(assay_status_message(st), changes[i].message))
      fail_msg("%s", assay_status_message(st));
    assert_int_equal(assay_status_code(st), ASSAY_CORRUPT);
    assay_status_free(st);
    assert_null(e);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(results_keep_their_bits),
                                     cmocka_unit_test(odd_elements_stay),
                                     cmocka_unit_test(other_readers_are_refused)};
  return cmocka_run_group_tests(tests, make_paths, remove_paths);
}
