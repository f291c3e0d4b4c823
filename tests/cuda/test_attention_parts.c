// Attention of fp32 by parts of tf32 on a GPU that is not there (fake/): its own error beside that
// of multiply-adds, which is what an accuracy gate promises, on several kinds of data; its limits,
// and those of layers of tf32, on structured data.
#include <stdlib.h>

#include "account/bound_data.h"
#include "cuda/forced_case.h"

enum { ROUNDS = 8 };
static const double max_beside_plain = 2;  // tight (exec/choice/accuracy_gate.h)

typedef struct shape {
  const char* name;
  graph_case_t graph;
  int64_t heads, queries, keys, size, v_size;
} shape_t;

#define SHAPE(h, q, k, d, e)                                                    \
  {                                                                             \
#h " heads, " #q " x " #k ", " #d " and " #e " wide",                       \
        {"Attention", 23,                                                       \
         {"q float[1," #h "," #q "," #d "]", "k float[1," #h "," #k "," #d "]", \
          "v float[1," #h "," #k "," #e "]" },                                  \
          {0 }, {"Attention a q k v -> y" }, "y" }, h, q, k, d, e               \
  }
static const shape_t shapes[] = {
    SHAPE(2, 33, 197, 64, 64), SHAPE(4, 49, 49, 32, 32),  SHAPE(2, 20, 130, 128, 128),
    SHAPE(2, 20, 40, 24, 16),  SHAPE(2, 16, 600, 64, 64), SHAPE(4, 20, 3, 64, 64),
};

// ---- data ---------------------------------------------------------------------------------------

typedef enum kind { NORMAL, ONE_SIGN, OUTLIERS, SHARP, KINDS } kind_t;
static const char* const kind_names[] = {"normal", "one sign", "outliers", "sharp"};

static double square(double x) { return x * x; }

static void fill(kind_t kind, int operand, const assay_random_t* r, uint64_t* at,
                 assay_tensor_t* t) {
  for (int64_t i = 0; i < t->size; i++) {
    double x = assay_random_normal(r, (*at)++);
    if (kind == ONE_SIGN) x = fabs(x);
    if (kind == OUTLIERS && i % 29 == 3) x *= 30;
    if (kind == SHARP && operand == 0) x *= 6;
    assay_f64(t)[i] = (double)(float)x;
  }
}

// ---- truth --------------------------------------------------------------------------------------

static void truth_of_row(const shape_t* s, const double* q, const double* k, const double* v,
                         double* w, double* y) {
  double largest = -INFINITY, sum = 0;
  for (int64_t j = 0; j < s->keys; j++) {
    w[j] = 0;
    for (int64_t c = 0; c < s->size; c++) w[j] += q[c] * k[j * s->size + c];
    w[j] *= (double)(float)(1 / sqrt((double)s->size));
    largest = fmax(largest, w[j]);
  }
  for (int64_t j = 0; j < s->keys; j++) sum += w[j] = exp(w[j] - largest);
  for (int64_t c = 0; c < s->v_size; c++) {
    y[c] = 0;
    for (int64_t j = 0; j < s->keys; j++) y[c] += w[j] / sum * v[j * s->v_size + c];
  }
}

static double* truth_of(const shape_t* s, assay_tensor_t* const* in) {
  double* y = malloc((size_t)(s->heads * s->queries * s->v_size) * sizeof *y);
  double* w = malloc((size_t)s->keys * sizeof *w);
  assert_non_null(y);
  assert_non_null(w);
  for (int64_t h = 0; h < s->heads; h++)
    for (int64_t i = 0; i < s->queries; i++)
      truth_of_row(s, assay_f64(in[0]) + (h * s->queries + i) * s->size,
                   assay_f64(in[1]) + h * s->keys * s->size,
                   assay_f64(in[2]) + h * s->keys * s->v_size, w,
                   y + (h * s->queries + i) * s->v_size);
  free(w);
  return y;
}

// The sum of squares of what a kernel is wrong by.
static double error_of(const shape_t* s, assay_model_t* m, const char* kernel,
                       assay_tensor_t* const* in, const double* truth) {
  tactic_run_t r;
  double sum = 0;
  forced_case_run_in(ASSAY_FORMAT_FP32, m, "cuda", kernel, in, &r);
  if (!tactic_case_is_by(r.tactic, kernel))
    fail_msg("%s: by %s, not %s", s->name, r.tactic, kernel);
  const assay_tensor_t* y = r.out[0];
  for (int64_t i = 0; i < y->size; i++) sum += square(assay_f64(y)[i] - truth[i]);
  tactic_case_release(&r);
  return sum;
}

// Root mean square of the two, over some draws of the data.
static void measure(const shape_t* s, unsigned kind, double* own, double* plain) {
  *own = *plain = 0;
  for (unsigned round = 0; round < ROUNDS; round++) {
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&s->graph, in);
    const assay_random_t r = assay_random_make(1, s->name, ROUNDS * kind + round);
    uint64_t at = 0;
    for (int x = 0; x < 3; x++) fill((kind_t)kind, x, &r, &at, in[x]);
    double* truth = truth_of(s, in);
    *own += error_of(s, m, "attention_3xtf32/4", in, truth);
    *plain += error_of(s, m, "attention_fma", in, truth);
    free(truth);
    graph_case_release(in);
    assay_model_release(m);
  }
  const double n = (double)(ROUNDS * s->heads * s->queries * s->v_size);
  *own = sqrt(*own / n);
  *plain = sqrt(*plain / n);
}

static void errors_are_those_of_the_gate(void** state) {
  (void)state;
  int worse = 0;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (unsigned kind = 0; kind < KINDS; kind++) {
      double own, plain;
      measure(&shapes[i], kind, &own, &plain);
      print_message("%-40s %-9s own %.3g, plain %.3g: %.2f\n", shapes[i].name, kind_names[kind],
                    own, plain, own / plain);
      worse += !(own <= max_beside_plain * plain);
    }
  assert_int_equal(worse, 0);
}

// ---- limits -------------------------------------------------------------------------------------

static const graph_case_t forms[] = {
    {"an operator",
     23,
     {"q float[1,2,20,32]", "k float[1,2,70,32]", "v float[1,2,70,16]"},
     {0},
     {"Attention a q k v -> y"},
     "y"},
    {"nodes",
     17,
     {"q float[1,2,20,32]", "k float[1,2,70,32]", "v float[1,2,70,16]"},
     {"f float[] 0.18"},
     {"Transpose t k -> kt | perm=0,1,3,2", "Mul f q f -> qf", "MatMul m qf kt -> s",
      "Softmax p s -> p", "MatMul o p v -> y"},
     "y"},
};

// Queries, keys and values each of a pattern of their own.
static void judge_patterns(const graph_case_t* g, assay_format_t format, const pattern_t* patterns,
                           data_t* d) {
  const tactic_case_t c = {*g, NULL, 1, false};
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(g, in);
  tactic_run_t r;
  for (int x = 0; x < 3; x++) {
    make_pattern(d, patterns[x], assay_format_info(ASSAY_FORMAT_FP32), assay_f64(in[x]),
                 in[x]->size);
    assay_format_round_n(ASSAY_FORMAT_FP32, assay_f64(in[x]), assay_f64(in[x]), (size_t)in[x]->size,
                         ASSAY_OVERFLOW_IEEE);
  }
  tactic_case_run(m, "cuda", format, in, &r);
  const char* by = format == ASSAY_FORMAT_TF32 ? "attention_tf32" : "attention_3xtf32";
  if (!tactic_case_is_by(r.tactic, by)) fail_msg("%s: by %s, not by %s", g->name, r.tactic, by);
  tactic_case_release(&r);
  tactic_case_judge(&c, ASSAY_FP32_TIGHT, m, format, in);
  graph_case_release(in);
  assay_model_release(m);
}

static void limits_hold(void** state) {
  (void)state;
  static const assay_format_t formats[] = {ASSAY_FORMAT_FP32, ASSAY_FORMAT_TF32};
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
    for (int f = 0; f < 2; f++) {
      data_t d = {.random = assay_random_make(1, forms[i].name, (uint64_t)f)};
      for (int k = 0; k < PATTERN_COUNT * PATTERN_COUNT; k++) {
        const pattern_t of_q = (pattern_t)(k % PATTERN_COUNT),
                        of_k = (pattern_t)(k / PATTERN_COUNT);
        const pattern_t patterns[] = {of_q, of_k,
                                      (pattern_t)((k + k / PATTERN_COUNT) % PATTERN_COUNT)};
        judge_patterns(&forms[i], formats[f], patterns, &d);
      }
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(errors_are_those_of_the_gate),
                                     cmocka_unit_test(limits_hold)};
  const char* platform = getenv("ASSAY_TEST_LIBCUDA");
  setenv("ASSAY_CUDA_PATH", platform ? platform : ".", 1);
  tactic_case_backend = "cuda";
  return cmocka_run_group_tests(tests, NULL, NULL);
}
