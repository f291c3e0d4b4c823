// Every tactic, whether it would be chosen or not, on inputs with NaN, infinities, the largest and
// the smallest numbers, subnormals and zeros of both signs: each class of result stands where the
// emulated engine has it, and what is finite lies within its bound, element by element. CTest runs
// this once for each instruction set that oneDNN can be held to (ONEDNN_MAX_CPU_ISA).
#include <float.h>
#include <math.h>

#include "account/local.h"
#include "backends/cpu/gemm/bf16_split_kernel.h"
#include "backends/cpu/tactic.h"
#include "backends/cpu_level.h"
#include "backends/every_tactic_rows.h"
#include "onnx/load.h"
#include "plan/plan.h"
#include "runtime/executor.h"

enum { FORMATS = 3 };
static const struct {
  const char* name;
  assay_format_t format;
  double max, min_subnormal;
} formats[FORMATS] = {{"fp32", ASSAY_FORMAT_FP32, FLT_MAX, 0x1p-149},
                      {"bf16", ASSAY_FORMAT_BF16, 0x1.fep127, 0x1p-133},
                      {"fp16", ASSAY_FORMAT_FP16, 65504, 0x1p-24}};

typedef struct job {
  const char* row;  // what is being run, for messages
  const char* special;
  int format;
  const assay_layers_t* layers;
  assay_locals_t* locals;
  bool unfinite;  // the special is NaN or infinite
  int wrong;
} job_t;

static bool seen[128];  // by tactic: it has run
static bool all_places;

// ---- one result ---------------------------------------------------------------------------------

static int class_of(double x) { return isnan(x) ? 1 : isinf(x) ? (x > 0 ? 2 : 3) : 0; }

static int misplaced(const assay_tensor_t* want, const assay_tensor_t* got) {
  int n = 0;
  assert_int_equal(want->size, got->size);
  if (want->store != ASSAY_STORE_F64) return 0;
  for (int64_t i = 0; i < want->size; i++)
    n += class_of(assay_f64(want)[i]) != class_of(assay_f64(got)[i]);
  return n;
}

static void complain(job_t* j, const char* tactic, const char* what, long long n) {
  print_error("%s, %s, %s, %s: %lld %s\n", j->row, formats[j->format].name, tactic, j->special, n,
              what);
  j->wrong++;
}

static assay_status_t judge(job_t* j, const assay_layer_t* layer, const assay_node_t* node,
                            size_t n_in, assay_tensor_t* const* in, const assay_tactic_run_t* run) {
  assay_local_t local = {0};
  assay_judgement_t got = {0};
  ASSAY_TRY(assay_locals_run(j->locals, layer, node, n_in, in, &run->rounding, NULL, &local));
  assay_status_t st =
      assay_local_judge(&local, local.converted, run->out, layer, &run->rounding, NULL, &got);
  if (!st && got.beyond) complain(j, run->name, "elements past their bound", (long long)got.beyond);
  assay_local_deinit(&local);
  return st;
}

static void note(const char* name) {
  for (size_t t = 0; t < cpu_n_tactics; t++)
    if (strcmp(cpu_tactics[t]->name, name) == 0) seen[t] = true;
}

// The emulated engine's tap: runs each tactic on what the layer was given.
static assay_status_t on_layer(void* user, const assay_layer_t* layer, const assay_node_t* node,
                               uint64_t iteration, size_t n_in, assay_tensor_t* const* in,
                               size_t n_out, assay_tensor_t* const* out) {
  job_t* j = user;
  const assay_sizes_t sizes = {0};
  assay_tactic_runs_t runs = {0};
  (void)iteration;
  ASSAY_TRY(
      cpu_each_tactic(j->layers, (size_t)(layer - j->layers->layers), &sizes, in, false, &runs));
  assay_status_t st = NULL;
  for (size_t t = 0; !st && t < runs.n; t++) {
    note(runs.at[t].name);
    for (size_t i = 0; j->unfinite && i < n_out && i < runs.at[t].n_out; i++) {
      const int n = out[i] && runs.at[t].out[i] ? misplaced(out[i], runs.at[t].out[i]) : 0;
      if (n) complain(j, runs.at[t].name, "elements of another class", n);
    }
    if (!j->unfinite) st = judge(j, layer, node, n_in, in, &runs.at[t]);
  }
  assay_tactic_runs_deinit(&runs);
  return st;
}

// ---- one row ------------------------------------------------------------------------------------

// Puts C and D in; false: the row has neither.
static void put_counts(const char* const* from, int c, char texts[][160], const char** to) {
  for (size_t k = 0; k < GRAPH_CASE_ROWS && from[k]; k++) {
    int n = 0;
    for (const char* p = from[k]; *p; p++) {
      const bool begins = p > from[k] && strchr(",[=", p[-1]);
      if (begins && (*p == 'C' || *p == 'D') && (!p[1] || strchr(",] ", p[1])))
        n += snprintf(texts[k] + n, 160 - (size_t)n, "%d", *p == 'C' ? c : 2 * c);
      else
        texts[k][n++] = *p;
    }
    texts[k][n] = 0;
    to[k] = texts[k];
  }
}

typedef struct sized_row {
  graph_case_t graph;
  char texts[3][GRAPH_CASE_ROWS][160];
  char name[80];
} sized_row_t;

static void size_row(const graph_case_t* row, int c, sized_row_t* s) {
  s->graph = *row;
  put_counts(row->inputs, c, s->texts[0], s->graph.inputs);
  put_counts(row->constants, c, s->texts[1], s->graph.constants);
  put_counts(row->nodes, c, s->texts[2], s->graph.nodes);
  snprintf(s->name, sizeof s->name, "%s, C=%d", row->name, c);
  s->graph.name = s->name;
}

static void run_once(job_t* j, const assay_plan_t* plan, assay_tensor_t* const* in) {
  const assay_tap_t tap = {.layer = on_layer, .user = j};
  assay_executor_t* e = NULL;
  op_case_ok(assay_executor_run_plan(plan, assay_backend_find("emu"), &tap, &e));
  const assay_graph_t* g = assay_executor_graph(e);
  for (size_t i = 0; i < g->n_inputs; i++) op_case_ok(assay_executor_set(e, g->inputs[i], in[i]));
  op_case_ok(assay_executor_run(e));
  assay_executor_destroy(e);
}

static void run_at(job_t* j, const assay_plan_t* plan, assay_tensor_t** in, size_t input,
                   int64_t place, double value) {
  double* x = assay_f64(in[input]);
  const double was = x[place];
  x[place] = value;
  j->unfinite = !isfinite(value);
  run_once(j, plan, in);
  x[place] = was;
}

// Each special at one place of each input: among the first, in the middle, or the last element.
static void run_specials(job_t* j, const assay_plan_t* plan, assay_tensor_t** in) {
  const struct {
    const char* name;
    double value;
  } specials[] = {{"NaN", NAN},
                  {"+Inf", INFINITY},
                  {"-Inf", -INFINITY},
                  {"max", formats[j->format].max},
                  {"-max", -formats[j->format].max},
                  {"the least subnormal", formats[j->format].min_subnormal},
                  {"a subnormal", -5 * formats[j->format].min_subnormal},
                  {"-0", -0.0}};
  int at = 0;
  for (size_t k = 0; k < sizeof specials / sizeof *specials; k++)
    for (size_t i = 0; in[i]; i++, at++) {
      const int64_t size = in[i]->size, places[] = {size > 1, size / 2, size - 1};
      j->special = specials[k].name;
      if (!all_places) {
        run_at(j, plan, in, i, places[at % 3], specials[k].value);
        continue;
      }
      for (int64_t place = at % 2; place < size; place += 1 + size / 16)
        run_at(j, plan, in, i, place, specials[k].value);
    }
}

static int run_row(const graph_case_t* row) {
  int wrong = 0;
  for (int f = 0; f < FORMATS; f++) {
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(row, in);
    assay_plan_t* plan = NULL;
    const assay_precision_t precision = {.format = formats[f].format};
    // What a row asks for is to be run as it stands.
    static const char* const off[] = {"view_chains", "transposes", "no_ops", "slices_to_split",
                                      "float_types"};
    const assay_plan_options_t options = {
        .fused = true,
        .fp32 = ASSAY_FP32_BOUND,
        .passes = {.off = off, .n_off = sizeof off / sizeof *off}};
    op_case_ok(assay_plan_create(m, &precision, &options, 1, &plan));
    job_t j = {.row = row->name, .format = f, .layers = assay_plan_layers(plan)};
    op_case_ok(assay_locals_create(j.layers, false, &j.locals));
    run_specials(&j, plan, in);
    assay_locals_destroy(j.locals);
    wrong += j.wrong;
    assay_plan_destroy(plan);
    graph_case_release(in);
    assay_model_release(m);
  }
  return wrong;
}

// ---- tests --------------------------------------------------------------------------------------

static void small_layers(void** state) {
  (void)state;
  int wrong = 0;
  for (size_t r = 0; r < sizeof sized_rows / sizeof *sized_rows; r++)
    for (size_t c = 0; c < sizeof channel_counts / sizeof *channel_counts; c++) {
      sized_row_t s;
      size_row(&sized_rows[r], channel_counts[c], &s);
      wrong += run_row(&s.graph);
    }
  assert_int_equal(wrong, 0);
}

static void layers_on_bytes(void** state) {
  (void)state;
  int wrong = 0;
  for (size_t r = 0; r < sizeof byte_rows / sizeof *byte_rows; r++)
    for (size_t c = 0; c < sizeof channel_counts / sizeof *channel_counts; c++) {
      sized_row_t s;
      size_row(&byte_rows[r], channel_counts[c], &s);
      wrong += run_row(&s.graph);
    }
  assert_int_equal(wrong, 0);
}

static void large_layers(void** state) {
  (void)state;
  int wrong = 0;
  for (size_t r = 0; r < sizeof large_rows / sizeof *large_rows; r++)
    wrong += run_row(&large_rows[r]);
  assert_int_equal(wrong, 0);
}

// What a tactic needs of the CPU, and of what oneDNN is held to; the others run everywhere.
static const struct {
  const char* tactic;
  cpu_level_t level;
} needs[] = {{"direct_conv", CPU_LEVEL_AVX2},         {"winograd_2_3", CPU_LEVEL_AVX2},
             {"winograd_4_3", CPU_LEVEL_AVX2},        {"gemm_weights", CPU_LEVEL_AVX512},
             {"conv_few_channels", CPU_LEVEL_AVX512}, {"onednn_matmul", CPU_LEVEL_AVX512},
             {"int8_onednn", CPU_LEVEL_VNNI},         {"int8_transposed_onednn", CPU_LEVEL_VNNI},
             {"attention_bf16", CPU_LEVEL_BF16},      {"recurrent_bf16", CPU_LEVEL_BF16}};

static void each_has_run(void** state) {
  (void)state;
  const cpu_level_t level = cpu_level_held();
  int missing = 0;
  for (size_t t = 0; t < cpu_n_tactics; t++) {
    const char* name = cpu_tactics[t]->name;
    cpu_level_t need = CPU_LEVEL_PLAIN;
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
      if (strcmp(needs[i].tactic, name) == 0) need = needs[i].level;
    // Operators of the user's own have a library and tests of their own (tests/ops).
    if (seen[t] || strcmp(name, "custom") == 0) continue;
    print_message("%s: %s\n", need > level ? "not for this CPU" : "did not run", name);
    missing += need <= level;
  }
  assert_int_equal(missing, 0);
}

// With "all": the specials at many places of each input.
int main(int argc, char** argv) {
  all_places = argc > 1 && strcmp(argv[1], "all") == 0;
  // Split products run where they would not pay, and without tiles, too.
  cpu_bf16_split_set_mode(CPU_BF16_SPLIT_ALWAYS |
                          (cpu_bf16_split_has_tiles() ? 0 : CPU_BF16_SPLIT_IMITATED));
  const struct CMUnitTest tests[] = {cmocka_unit_test(small_layers), cmocka_unit_test(large_layers),
                                     cmocka_unit_test(layers_on_bytes),
                                     cmocka_unit_test(each_has_run)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
