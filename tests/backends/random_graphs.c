// Random graphs as plans on the CPU backend, or on another target.
//
//   random_graphs MODE SEED COUNT [--first K] [--format F] [--scale 1|2] [--report FILE] [--print]
//                 [--target TARGET]
//
//   check   fused in fp32, bf16 and fp16: the account finds no defect; outputs are of the class
//           (finite, NaN, infinite) that the emulated engine gives, are the same without taps, and
//           truth of the rewritten graph is that of the graph
//   bits    the same bits with 1, 2 and 7 threads and from run to run; of a sample alone and in
//           batches of 3 and 8; of a plan for open sizes and one for fixed ones
//   cuts    the models of cut_cases.h, and graphs of two batches, in fp32, bf16 and fp16: a plan
//   for open sizes gives the bits of
//           one that is built for the sizes at hand, of batches of 1, 3 and 8, with 1, 2 and 7
//           threads; of the latter, a sample in a batch of 8 has the bits that it has alone
//   sizes   the same of layers of the sizes that networks have (bit_cases.h); COUNT of them
//   memory  one process, sizes drawn anew each run: what is allocated does not grow
//
// Exit code 1: something does not hold. A failure names seed and number, and prints the graph.
#include <omp.h>
#include <time.h>
#include <unistd.h>

#include "account/account.h"
#include "backends/bit_cases.h"
#include "backends/cut_cases.h"
#include "backends/random_graph_steps.h"
#include "exec/kernel.h"
#include "exec/targets.h"
#include "onnx/load.h"
#include "runtime/executor.h"
#include "seed_case.h"

enum { MAX_OUTPUTS = RANDOM_GRAPH_VALUES, MAX_TACTICS = 64, SHOWN = 4000 };

static const assay_format_t formats[] = {ASSAY_FORMAT_FP32, ASSAY_FORMAT_BF16, ASSAY_FORMAT_FP16};
static const char* const format_names[] = {"fp32", "bf16", "fp16"};

static const assay_backend_t* tested = &assay_backend_cpu;

typedef struct tally {
  char key[2 * ASSAY_VARIANT_BYTES];  // a name of a tactic may end with its engine
  int64_t n;
} tally_t;

typedef struct runner {
  uint64_t seed;
  int64_t first, count;
  int scale;
  int only_format;  // -1: all, or by number
  bool print;
  const char* report;
  int64_t failures, graphs, plans, layers, skipped;
  int64_t nodes[26 + 1];
  int64_t verdicts[ASSAY_VERDICT_DEFECT + 1];
  tally_t tactics[MAX_TACTICS];
  size_t n_tactics;
  int64_t failed_graph;
} runner_t;

static void failure(runner_t* r, const random_graph_t* g, const char* format, ...)
    ASSAY_PRINTF(3, 4);
static void failure(runner_t* r, const random_graph_t* g, const char* format, ...) {
  va_list args;
  va_start(args, format);
  printf("FAIL graph %llu of seed %llu: ", (unsigned long long)g->number,
         (unsigned long long)g->seed);
  vprintf(format, args);
  printf("\n");
  va_end(args);
  if (r->failed_graph != (int64_t)g->number && r->print) random_graph_print(g, stdout);
  r->failed_graph = (int64_t)g->number;
  r->failures++;
  fflush(stdout);
}

static void tally(runner_t* r, const char* key) {
  size_t i = 0;
  while (i < r->n_tactics && strcmp(r->tactics[i].key, key) != 0) i++;
  if (i == MAX_TACTICS) return;
  if (i == r->n_tactics)
    snprintf(r->tactics[r->n_tactics++].key, sizeof r->tactics->key, "%s", key);
  r->tactics[i].n++;
}

// ---- running --------------------------------------------------------------------------------

// What a run takes.
typedef struct inputs {
  assay_tensor_t* at[4];
  size_t n;
} inputs_t;

static inputs_t make_inputs(const random_graph_t* g, int64_t first, int64_t n, int64_t l) {
  inputs_t in = {.n = (size_t)g->n_inputs};
  for (int i = 0; i < g->n_inputs; i++) in.at[i] = random_graph_input(g, i, first, n, l);
  return in;
}

static void free_inputs(inputs_t* in) {
  for (size_t i = 0; i < in->n; i++) assay_tensor_release(in->at[i]);
  *in = (inputs_t){0};
}

// Outputs of a run, retained.
typedef struct outputs {
  assay_tensor_t* at[MAX_OUTPUTS];
  size_t n;
} outputs_t;

static void free_outputs(outputs_t* out) {
  for (size_t i = 0; i < out->n; i++) assay_tensor_release(out->at[i]);
  out->n = 0;
}

static assay_plan_t* make_plan(const random_graph_t* g, assay_model_t* m, int format) {
  assay_plan_t* plan = NULL;
  const assay_precision_t p = {.format = formats[format]};
  random_graph_ok(g, assay_plan_create(m, &p, &(assay_plan_options_t){.fused = true}, 1, &plan));
  return plan;
}

static assay_status_t run_once(assay_executor_t* e, const inputs_t* in, outputs_t* out) {
  const assay_graph_t* graph = assay_executor_graph(e);
  assay_executor_reset(e);
  for (size_t i = 0; i < in->n; i++) ASSAY_TRY(assay_executor_set(e, graph->inputs[i], in->at[i]));
  ASSAY_TRY(assay_executor_run(e));
  out->n = graph->n_outputs;
  for (size_t i = 0; i < out->n; i++)
    out->at[i] = assay_tensor_retain(assay_executor_get(e, graph->outputs[i]));
  return NULL;
}

static assay_status_t run_plan(const assay_plan_t* plan, const char* backend,
                               const assay_tap_t* tap, const inputs_t* in, outputs_t* out) {
  assay_executor_t* e = NULL;
  out->n = 0;
  ASSAY_TRY(assay_executor_run_plan(plan, assay_backend_find(backend), tap, &e));
  assay_status_t st = run_once(e, in, out);
  assay_executor_destroy(e);
  return st;
}

// ---- comparing ------------------------------------------------------------------------------

static bool same_element(const assay_tensor_t* a, int64_t i, const assay_tensor_t* b, int64_t k) {
  if (a->store == ASSAY_STORE_I64) return assay_i64(a)[i] == assay_i64(b)[k];
  const double x = assay_f64(a)[i], y = assay_f64(b)[k];
  return isnan(x) ? isnan(y) : x == y && signbit(x) == signbit(y);
}

static bool same_bits(const assay_tensor_t* a, const assay_tensor_t* b) {
  if (a->rank != b->rank || a->size != b->size || a->type != b->type || a->store != b->store)
    return false;
  for (int i = 0; i < a->rank; i++)
    if (a->dims[i] != b->dims[i]) return false;
  for (int64_t i = 0; i < a->size; i++)
    if (!same_element(a, i, b, i)) return false;
  return true;
}

// Whether `one`, of one sample, is sample `s` of `many`, where samples lie on `axis`.
static bool same_sample(const assay_tensor_t* one, const assay_tensor_t* many, int axis,
                        int64_t s) {
  int64_t inner = 1, outer = 1;
  const int64_t n = many->dims[axis];
  if (one->rank != many->rank || one->dims[axis] != 1) return false;
  for (int i = 0; i < many->rank; i++) {
    if (i != axis && one->dims[i] != many->dims[i]) return false;
    if (i < axis) outer *= many->dims[i];
    if (i > axis) inner *= many->dims[i];
  }
  for (int64_t o = 0; o < outer; o++)
    for (int64_t i = 0; i < inner; i++)
      if (!same_element(one, o * inner + i, many, (o * n + s) * inner + i)) return false;
  return true;
}

static int class_of(double x) { return isnan(x) ? 2 : isinf(x) ? (x > 0 ? 3 : 4) : 0; }

// ---- the first layer that differs -----------------------------------------------------------

// What layers gave in a run with taps.
typedef struct trace {
  assay_tensor_t** at;  // by value id, retained
  int n;
} trace_t;

static assay_status_t trace_layer(void* user, const assay_layer_t* layer, const assay_node_t* node,
                                  uint64_t iteration, size_t n_in, assay_tensor_t* const* in,
                                  size_t n_out, assay_tensor_t* const* out) {
  trace_t* t = user;
  (void)layer, (void)iteration, (void)n_in, (void)in;
  for (size_t i = 0; i < n_out; i++)
    if (node->outputs[i] && out[i] && node->outputs[i]->id < t->n && !t->at[node->outputs[i]->id])
      t->at[node->outputs[i]->id] = assay_tensor_retain(out[i]);
  return NULL;
}

// How a run is made: threads, plan, inputs.
typedef struct way {
  const assay_plan_t* plan;
  const inputs_t* in;
  int threads;
} way_t;

static assay_executor_t* traced(const random_graph_t* g, const way_t* w, trace_t* t) {
  assay_executor_t* e = NULL;
  outputs_t out = {.n = 0};
  const assay_tap_t tap = {.layer = trace_layer, .user = t};
  omp_set_num_threads(w->threads);
  t->n = assay_plan_layers(w->plan)->model->n_values;
  op_case_ok(assay_new_array((size_t)t->n, sizeof *t->at, &t->at));
  random_graph_ok(g, assay_executor_run_plan(w->plan, tested, &tap, &e));
  random_graph_ok(g, run_once(e, w->in, &out));
  free_outputs(&out);
  return e;
}

static void trace_deinit(trace_t* t) {
  for (int i = 0; i < t->n; i++) assay_tensor_release(t->at[i]);
  assay_free(t->at);
}

// Names the first layer whose outputs differ between two runs; sample negative: compared as a
// whole.
static void first_difference(const random_graph_t* g, const way_t* a, const way_t* b,
                             int64_t sample, char* text, size_t capacity) {
  trace_t ta = {0}, tb = {0};
  assay_executor_t *ea = traced(g, a, &ta), *eb = traced(g, b, &tb);
  const assay_layers_t *la = assay_plan_layers(a->plan), *lb = assay_plan_layers(b->plan);
  snprintf(text, capacity, "no layer differs with taps");
  for (size_t i = 0; i < la->n_layers && i < lb->n_layers; i++) {
    const assay_node_t* na = la->layers[i].nodes[la->layers[i].n_nodes - 1];
    const assay_node_t* nb = lb->layers[i].nodes[lb->layers[i].n_nodes - 1];
    const assay_value_t *va = na->outputs[0], *vb = nb->outputs[0];
    if (!va || !vb || !ta.at[va->id] || !tb.at[vb->id]) continue;
    const assay_tensor_t *x = ta.at[va->id], *y = tb.at[vb->id];
    bool same = sample < 0 && same_bits(x, y);
    for (int axis = 0; sample >= 0 && !same && axis < x->rank && x->rank == y->rank; axis++)
      same = x->dims[axis] == 1 && y->dims[axis] > sample && same_sample(x, y, axis, sample);
    if (same || (sample >= 0 && same_bits(x, y))) continue;
    size_t used = (size_t)snprintf(
        text, capacity, "first in layer '%s' by %s and %s: %s to %s:", la->layers[i].name,
        assay_executor_tactic(ea, i), assay_executor_tactic(eb, i), ASSAY_DIMS_TEXT(x),
        ASSAY_DIMS_TEXT(y));
    for (size_t k = 0; k < la->layers[i].n_nodes && used < capacity; k++)
      used +=
          (size_t)snprintf(text + used, capacity - used, " %s", la->layers[i].nodes[k]->op_type);
    break;
  }
  assay_executor_destroy(ea);
  assay_executor_destroy(eb);
  trace_deinit(&ta);
  trace_deinit(&tb);
}

// ---- check ----------------------------------------------------------------------------------

static void note_account(runner_t* r, const random_graph_t* g, const assay_account_t* a,
                         const assay_executor_t* e, const char* format) {
  for (size_t i = 0; i < assay_account_layer_count(a); i++) {
    const assay_layer_account_t* l = assay_account_layer(a, i);
    const char* tactic = assay_executor_tactic(e, i);
    r->layers++;
    r->verdicts[l->verdict]++;
    tally(r, tactic ? tactic : "emu");
    if (l->verdict != ASSAY_VERDICT_DEFECT) continue;
    char text[SHOWN];
    int used = snprintf(text, sizeof text,
                        "%s: layer '%s' by %s is a defect: beyond %lld, outlying "
                        "%lld (by %.3g), of another shape %lld, largest error %.4g:",
                        format, l->layer->name, tactic, (long long)l->judged.beyond,
                        (long long)l->outlying, l->outlying_by, (long long)l->shape_mismatches,
                        l->own.max_abs);
    for (size_t k = 0; k < l->layer->n_nodes; k++)
      used += snprintf(text + used, sizeof text - (size_t)used, " %s", l->layer->nodes[k]->op_type);
    failure(r, g, "%s", text);
  }
}

// Whether layers hide values that float16 cannot hold. Kernels keep them in float32 until the layer
// stores what it makes; the emulated engine rounds each to float16, to infinity, which the layer's
// end need not show. The account names those values, so elsewhere classes are the same.
static bool hides_overflow(const random_graph_t* g, const assay_account_t* a) {
  if (g->type != ASSAY_TYPE_FLOAT16 || !g->is_special) return false;
  for (size_t i = 0; i < assay_account_layer_count(a); i++)
    if (assay_account_layer(a, i)->at_risk.count > 0) return true;
  return false;
}

// wider: finite where emu's is not is no difference.
static void compare_class(runner_t* r, const random_graph_t* g, const char* format, size_t at,
                          bool wider, const assay_tensor_t* got, const assay_tensor_t* want) {
  if (got->size != want->size || got->store != want->store) {
    failure(r, g, "%s: output %zu is %s, emu's %s", format, at, ASSAY_DIMS_TEXT(got),
            ASSAY_DIMS_TEXT(want));
    return;
  }
  int64_t n = 0, where = 0;
  for (int64_t i = 0; got->store == ASSAY_STORE_F64 && i < got->size; i++) {
    const double a = assay_f64(got)[i], b = assay_f64(want)[i];
    if (class_of(a) != class_of(b) && !(wider && isfinite(a) && !isfinite(b)) && !n++) where = i;
  }
  if (n)
    failure(r, g, "%s: %lld elements of output %zu (%s) are of another class than emu's: %g, %g",
            format, (long long)n, at, g->values[g->outputs[at]].name, assay_f64(got)[where],
            assay_f64(want)[where]);
}

// Truth of the graph as it was drawn, against that of the graph that the passes made of it.
static void compare_truth(runner_t* r, const random_graph_t* g, assay_model_t* m,
                          const assay_account_t* a, const inputs_t* in) {
  const assay_evaluator_config_t config = {.mode = ASSAY_MODE_TRUTH, .seed = 1};
  assay_evaluator_t* evaluator = NULL;
  random_graph_ok(g, assay_evaluator_create_run(m, &config, in->at, &evaluator));
  for (size_t i = 0; i < m->graph->n_outputs; i++) {
    const assay_tensor_t* want = assay_evaluator_get(evaluator, m->graph->outputs[i]);
    const assay_tensor_t* got = assay_account_truth_output(a, i);
    if (!want || !got || want->store != ASSAY_STORE_F64) continue;
    double difference = 0, total = 0;
    if (got->size != want->size) {
      failure(r, g, "the passes changed the size of output %zu", i);
      continue;
    }
    for (int64_t k = 0; k < want->size; k++) {
      const double x = assay_f64(want)[k], y = assay_f64(got)[k];
      // Of infinities x * Sigmoid(x) is NaN where the function that it is taken for has a limit.
      if (class_of(x) != class_of(y) && !(g->is_special && isnan(x))) difference = INFINITY;
      if (!isfinite(x) || !isfinite(y)) continue;
      difference += (x - y) * (x - y);
      total += x * x;
    }
    // Constants are folded to fp32; what a quantization makes of the last bit is a whole step.
    const double max = g->is_quantized ? 0.05 : 1e-4;
    if (difference > max * max * total + 1e-20)
      failure(r, g, "the passes changed output %zu (%s) by %.3g of %.3g", i,
              g->values[g->outputs[i]].name, sqrt(difference), sqrt(total));
  }
  assay_evaluator_destroy(evaluator);
}

static void check_format(runner_t* r, const random_graph_t* g, assay_model_t* m, int format,
                         const inputs_t* in) {
  assay_plan_t* plan = make_plan(g, m, format);
  assay_account_t* a = NULL;
  assay_executor_t* e = NULL;
  outputs_t emu = {.n = 0}, cpu = {.n = 0};
  const assay_account_options_t options = {0};
  const char* name = format_names[format];
  assay_status_t st = run_plan(plan, "emu", NULL, in, &emu);
  random_graph_ok(g, assay_executor_run_plan(plan, tested, NULL, &e));
  assay_status_t same = run_once(e, in, &cpu);
  if (st || same) {
    if (!st != !same)
      failure(r, g, "%s: emu says '%s', cpu '%s'", name, st ? assay_status_message(st) : "",
              same ? assay_status_message(same) : "");
    r->skipped += st && same;
  } else {
    random_graph_ok(g, assay_account_create(plan, tested, &options, &a));
    random_graph_ok(g, assay_account_run(a, in->at));
    note_account(r, g, a, e, name);
    for (size_t i = 0; i < cpu.n; i++) {
      compare_class(r, g, name, i, hides_overflow(g, a), cpu.at[i], emu.at[i]);
      if (!same_bits(cpu.at[i], assay_account_engine_output(a, i)))
        failure(r, g, "%s: output %zu (%s) has other bits with taps", name, i,
                g->values[g->outputs[i]].name);
    }
    // What quantization makes of NaN is a number.
    if (format == 0 && !(g->is_special && g->is_quantized)) compare_truth(r, g, m, a, in);
  }
  assay_status_free(st);
  assay_status_free(same);
  r->plans++;
  free_outputs(&emu);
  free_outputs(&cpu);
  assay_account_destroy(a);
  assay_executor_destroy(e);
  assay_plan_destroy(plan);
}

static void check_graph(runner_t* r, random_graph_t* g) {
  assay_model_t* m = random_graph_model(g, -1, -1);
  const int64_t n = one_in(g, 40) ? 0 : draw(g, 1, 3);
  inputs_t in = make_inputs(g, 0, n, draw(g, 1, 7));
  for (int f = 0; f < 3; f++)
    if (r->only_format < 0 || r->only_format == f) check_format(r, g, m, f, &in);
  free_inputs(&in);
  assay_model_release(m);
}

// ---- bits -----------------------------------------------------------------------------------

static void compare_runs(runner_t* r, const random_graph_t* g, const char* what, const char* format,
                         const way_t* a, const outputs_t* oa, const way_t* b, const outputs_t* ob) {
  char text[SHOWN];
  for (size_t i = 0; i < oa->n; i++) {
    if (same_bits(oa->at[i], ob->at[i])) continue;
    first_difference(g, a, b, -1, text, sizeof text);
    failure(r, g, "%s: other bits %s, output %s; %s", format, what, g->values[g->outputs[i]].name,
            text);
    return;
  }
}

static void compare_batch(runner_t* r, const random_graph_t* g, const char* format,
                          const way_t* one, const outputs_t* alone, const way_t* many,
                          const outputs_t* batch, int64_t sample) {
  char text[SHOWN];
  for (size_t i = 0; i < alone->n; i++) {
    const int axis = g->values[g->outputs[i]].rows;
    if (axis < 0 || same_sample(alone->at[i], batch->at[i], axis, sample)) continue;
    first_difference(g, one, many, sample, text, sizeof text);
    failure(r, g, "%s: sample %lld has other bits in a batch of %lld, output %s; %s", format,
            (long long)sample, (long long)batch->at[i]->dims[axis], g->values[g->outputs[i]].name,
            text);
    return;
  }
}

// A model with the sizes that its inputs have.
static assay_model_t* with_sizes_of(const random_graph_t* g, const assay_model_t* m,
                                    const inputs_t* in) {
  assay_input_shape_t shapes[4];
  assay_model_t* fixed = NULL;
  for (size_t i = 0; i < in->n; i++)
    shapes[i] = (assay_input_shape_t){m->graph->inputs[i]->name, in->at[i]->rank, in->at[i]->dims};
  random_graph_ok(g, assay_onnx_reshape(m, in->n, shapes, &fixed));
  return fixed;
}

static void bits_graph(runner_t* r, random_graph_t* g) {
  enum { THREADS = 3, L = 5 };
  static const int threads[THREADS] = {1, 2, 7};
  static const int64_t batches[2] = {3, 8};
  const int format = r->only_format >= 0 ? r->only_format : (int)(g->number % 3);
  const char* name = format_names[format];
  inputs_t in = make_inputs(g, 0, 3, L), in8 = make_inputs(g, 0, 8, L);
  assay_model_t *m = random_graph_model(g, -1, -1), *fixed = with_sizes_of(g, m, &in);
  assay_plan_t *plan = make_plan(g, m, format), *other = make_plan(g, fixed, format);
  outputs_t first = {.n = 0}, out = {.n = 0}, eight = {.n = 0};
  const way_t base = {plan, &in, 1};
  for (int t = 0; t < THREADS; t++) {
    const way_t w = {plan, &in, threads[t]};
    assay_executor_t* e = NULL;
    omp_set_num_threads(w.threads);
    random_graph_ok(g, assay_executor_run_plan(plan, tested, NULL, &e));
    random_graph_ok(g, run_once(e, &in, t ? &out : &first));
    if (t) compare_runs(r, g, "with more threads", name, &base, &first, &w, &out);
    free_outputs(&out);
    random_graph_ok(g, run_once(e, &in, &out));
    compare_runs(r, g, "in another run", name, &base, &first, &w, &out);
    free_outputs(&out);
    assay_executor_destroy(e);
  }
  omp_set_num_threads(2);
  const way_t of_fixed = {other, &in, 2}, base2 = {plan, &in, 2}, of_eight = {plan, &in8, 2};
  random_graph_ok(g, run_plan(other, tested->name, NULL, &in, &out));
  compare_runs(r, g, "with fixed sizes", name, &base2, &first, &of_fixed, &out);
  free_outputs(&out);
  random_graph_ok(g, run_plan(plan, tested->name, NULL, &in8, &eight));
  for (int b = 0; b < 2; b++)
    for (int64_t s = 0; s < batches[b]; s += b ? 5 : 1) {
      inputs_t one = make_inputs(g, s, 1, L);
      const way_t alone = {plan, &one, 2};
      random_graph_ok(g, run_plan(plan, tested->name, NULL, &one, &out));
      compare_batch(r, g, name, &alone, &out, b ? &of_eight : &base2, b ? &eight : &first, s);
      free_outputs(&out);
      free_inputs(&one);
    }
  r->plans += 2;
  free_outputs(&first);
  free_outputs(&eight);
  free_inputs(&in);
  free_inputs(&in8);
  assay_plan_destroy(plan);
  assay_plan_destroy(other);
  assay_model_release(m);
  assay_model_release(fixed);
}

// ---- cuts -----------------------------------------------------------------------------------

enum { CUT_BATCHES = 3 };

static const assay_layer_t* layer_named(const assay_plan_t* plan, const char* name,
                                        size_t* out_at) {
  const assay_layers_t* layers = assay_plan_layers(plan);
  for (*out_at = 0; *out_at < layers->n_layers; ++*out_at)
    if (strcmp(layers->layers[*out_at].name, name) == 0) return &layers->layers[*out_at];
  return NULL;
}

// What has a kernel where sizes are given has one where they are open.
static void compare_emulated(runner_t* r, const random_graph_t* g, const char* format,
                             const assay_plan_t* fixed, const assay_plan_t* open,
                             const inputs_t* in) {
  const assay_layers_t* layers = assay_plan_layers(open);
  const assay_plan_t* plans[2] = {fixed, open};
  assay_executor_t* e[2] = {NULL, NULL};
  size_t at;
  for (int k = 0; k < 2; k++) {
    outputs_t out = {.n = 0};
    random_graph_ok(g, assay_executor_run_plan(plans[k], tested, NULL, &e[k]));
    random_graph_ok(g, run_once(e[k], in, &out));
    free_outputs(&out);
  }
  for (size_t i = 0; i < layers->n_layers; i++)
    if (strcmp(assay_executor_tactic(e[1], i), "emu") == 0 &&
        layer_named(fixed, layers->layers[i].name, &at) &&
        strcmp(assay_executor_tactic(e[0], at), "emu") != 0)
      failure(r, g, "%s: with open sizes, layer '%s' is emulated, which '%s' runs with given ones",
              format, layers->layers[i].name, assay_executor_tactic(e[0], at));
  for (int k = 0; k < 2; k++) assay_executor_destroy(e[k]);
}

// One graph in one format; outs: of each batch, as the plan for its sizes gives them.
static bool cuts_format(runner_t* r, const random_graph_t* g, assay_model_t* m, int format) {
  static const int64_t batches[CUT_BATCHES] = {1, 3, 8};
  static const int threads[CUT_BATCHES] = {7, 1, 2};
  const char* name = format_names[format];
  assay_plan_t *open = make_plan(g, m, format), *plans[CUT_BATCHES] = {NULL};
  inputs_t in[CUT_BATCHES] = {0};
  outputs_t out[CUT_BATCHES] = {0}, other = {.n = 0};
  bool legal = true;
  for (int b = 0; legal && b < CUT_BATCHES; b++) {
    in[b] = make_inputs(g, 0, batches[b], RANDOM_GRAPH_L);
    // Values of batches N and M may only fit where these are the same.
    assay_status_t st = run_plan(open, "emu", NULL, &in[b], &other);
    free_outputs(&other);
    legal = !st;
    assay_status_free(st);
    if (!legal) break;
    assay_model_t* fixed = with_sizes_of(g, m, &in[b]);
    plans[b] = make_plan(g, fixed, format);
    assay_model_release(fixed);
    const way_t a = {plans[b], &in[b], threads[b]}, w = {open, &in[b], 2};
    omp_set_num_threads(a.threads);
    random_graph_ok(g, run_plan(plans[b], tested->name, NULL, &in[b], &out[b]));
    omp_set_num_threads(w.threads);
    random_graph_ok(g, run_plan(open, tested->name, NULL, &in[b], &other));
    compare_runs(r, g, "with open sizes", name, &a, &out[b], &w, &other);
    if (!b) compare_emulated(r, g, name, plans[b], open, &in[b]);
    free_outputs(&other);
    r->plans += 2;
  }
  const way_t alone = {plans[0], &in[0], 2}, many = {plans[2], &in[2], 2};
  if (legal && !g->one_m) compare_batch(r, g, name, &alone, &out[0], &many, &out[2], 0);
  for (int b = 0; b < CUT_BATCHES; b++) {
    free_outputs(&out[b]);
    free_inputs(&in[b]);
    assay_plan_destroy(plans[b]);
  }
  assay_plan_destroy(open);
  return legal;
}

static void cuts_graph(runner_t* r, random_graph_t* g, bool one_m) {
  g->one_m = one_m;
  assay_model_t* m = random_graph_model(g, -1, -1);
  for (int format = 0; format < 3; format++)
    if ((r->only_format < 0 || r->only_format == format) && !cuts_format(r, g, m, format))
      r->skipped++;
  assay_model_release(m);
}

// ---- memory ---------------------------------------------------------------------------------

static double resident_mb(void) {
  long pages = 0;
  FILE* f = fopen("/proc/self/statm", "r");
  if (!f) return 0;
  if (fscanf(f, "%*s %ld", &pages) != 1) pages = 0;
  fclose(f);
  return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1e6;
}

// `count` runs of ten plans that stay open, with sizes drawn anew each time.
static void memory(runner_t* r) {
  enum { PLANS = 10 };
  static random_graph_t graphs[PLANS];
  assay_model_t* models[PLANS];
  assay_plan_t* plans[PLANS];
  assay_executor_t* open[PLANS];
  double before = 0;
  int64_t live_before = 0;
  const int64_t at_start = assay_alloc_live();
  for (int i = 0; i < PLANS; i++) {
    random_graph_make(&graphs[i], r->seed, (uint64_t)(r->first + i), r->scale, false);
    models[i] = random_graph_model(&graphs[i], -1, -1);
    plans[i] = make_plan(&graphs[i], models[i], i % 3);
    op_case_ok(assay_executor_run_plan(plans[i], tested, NULL, &open[i]));
  }
  for (int64_t k = 0; k < r->count; k++) {
    random_graph_t* g = &graphs[k % PLANS];
    outputs_t out = {.n = 0};
    const int64_t n = draw(g, 1, 6), l = draw(g, 1, 12);
    inputs_t in = make_inputs(g, 0, n, l);
    random_graph_ok(g, run_once(open[k % PLANS], &in, &out));
    free_outputs(&out);
    free_inputs(&in);
    assay_executor_reset(open[k % PLANS]);
    // Every size has been seen by then, nearly, and what is kept of them is full.
    if (k == r->count / 2) before = resident_mb(), live_before = assay_alloc_live();
  }
  const double after = resident_mb();
  const int64_t live = assay_alloc_live();
  for (int i = 0; i < PLANS; i++) {
    assay_executor_destroy(open[i]);
    assay_plan_destroy(plans[i]);
    assay_model_release(models[i]);
  }
  printf(
      "%lld runs: %.1f MB resident at half of them, %.1f MB at the end; %lld allocations, %lld; "
      "%lld after closing\n",
      (long long)r->count, before, after, (long long)live_before, (long long)live,
      (long long)(assay_alloc_live() - at_start));
#ifdef __SANITIZE_ADDRESS__
  const double max = INFINITY;  // it keeps what is freed for a while
#else
  const double max = before * 1.1 + 8;
#endif
  if (after > max || live > live_before + live_before / 4 + 100 || assay_alloc_live() != at_start)
    r->failures++;
}

// ---- the report -----------------------------------------------------------------------------

static void report(const runner_t* r, const char* mode, double seconds) {
  FILE* f = fopen(r->report, "w");
  char date[32] = "";
  const time_t now = time(NULL);
  if (!f) return;
  strftime(date, sizeof date, "%Y-%m-%d", gmtime(&now));
  fprintf(
      f,
      "# Random graphs on the CPU backend\n\n`tests/backends/random_graphs.c` %s, %s: graphs "
      "%lld to %lld of seed %llu, %.0f s.\n\n| graphs | plans | layers | refused by both engines "
      "| failures |\n| --- | --- | --- | --- | --- |\n| %lld | %lld | %lld | %lld | %lld |\n\n",
      mode, date, (long long)r->first, (long long)(r->first + r->count - 1),
      (unsigned long long)r->seed, seconds, (long long)r->graphs, (long long)r->plans,
      (long long)r->layers, (long long)r->skipped, (long long)r->failures);
  fprintf(f, "| verdict | layers |\n| --- | --- |\n");
  for (int v = 0; v <= ASSAY_VERDICT_DEFECT; v++)
    fprintf(f, "| %s | %lld |\n", assay_verdict_name((assay_verdict_t)v),
            (long long)r->verdicts[v]);
  fprintf(f, "\n| run by | layers |\n| --- | --- |\n");
  for (size_t i = 0; i < r->n_tactics; i++)
    fprintf(f, "| %s | %lld |\n", r->tactics[i].key, (long long)r->tactics[i].n);
  fclose(f);
}

static int run(int argc, char** argv) {
  runner_t r = {.scale = 1, .only_format = -1, .failed_graph = -1, .print = true};
  if (argc < 4)
    return fprintf(stderr, "random_graphs check|bits|cuts|sizes|memory SEED COUNT [options]\n"), 2;
  const char* mode = argv[1];
  r.seed = strtoull(argv[2], NULL, 10);
  r.count = strtoll(argv[3], NULL, 10);
  if (strcmp(mode, "sizes") != 0) r.count = test_draws(r.count);  // those are not drawn
  bool only_print = false;
  for (int i = 4; i < argc; i++) {
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (strcmp(argv[i], "--print") == 0)
      only_print = true;
    else if (strcmp(argv[i], "--quiet") == 0)
      r.print = false;
    else if (strcmp(argv[i], "--first") == 0)
      r.first = strtoll(value, NULL, 10), i++;
    else if (strcmp(argv[i], "--scale") == 0)
      r.scale = atoi(value), i++;
    else if (strcmp(argv[i], "--report") == 0)
      r.report = value, i++;
    else if (strcmp(argv[i], "--target") == 0 && assay_backend_find(value))
      i++;  // main() has taken it
    else if (strcmp(argv[i], "--format") == 0)
      for (i++, r.only_format = 2;
           r.only_format && strcmp(format_names[r.only_format], value) != 0;)
        r.only_format--;
    else
      return fprintf(stderr, "unknown word '%s'\n", argv[i]), 2;
  }
  printf("%s: %lld graphs of seed %llu from %lld on\n", mode, (long long)r.count,
         (unsigned long long)r.seed, (long long)r.first);
  fflush(stdout);
  const double start = omp_get_wtime();
  static random_graph_t g;
  if (strcmp(mode, "memory") == 0) {
    memory(&r);
    return r.failures ? 1 : 0;
  }
  for (int i = 0; strcmp(mode, "cuts") == 0 && i < CUT_CASES; i++) {
    cut_case_make(&g, i);
    cuts_graph(&r, &g, false);
    cuts_graph(&r, &g, true);
  }
  for (int64_t i = r.first; i < r.first + r.count; i++) {
    if (strcmp(mode, "sizes") == 0) {
      if (i == BIT_CASES) break;
      bit_case_make(&g, (int)i);
    } else {
      random_graph_make(&g, r.seed, (uint64_t)i, r.scale, strcmp(mode, "cuts") == 0);
    }
    if (only_print) random_graph_print(&g, stdout);
    if (strcmp(mode, "check") == 0)
      check_graph(&r, &g);
    else if (strcmp(mode, "cuts") == 0)
      cuts_graph(&r, &g, i % 3 == 0);
    else
      bits_graph(&r, &g);
    r.graphs++;
  }
  const double seconds = omp_get_wtime() - start;
  printf(
      "%lld graphs, %lld plans, %lld layers, %lld plans refused by both engines, %lld failures "
      "(%.0f s)\n",
      (long long)r.graphs, (long long)r.plans, (long long)r.layers, (long long)r.skipped,
      (long long)r.failures, seconds);
  if (r.report) report(&r, mode, seconds);
  return r.failures ? 1 : 0;
}

// The device stays open from plan to plan: opening one takes longer than most of these run.
int main(int argc, char** argv) {
  for (int i = 4; i + 1 < argc; i++)
    if (strcmp(argv[i], "--target") == 0 && assay_backend_find(argv[i + 1]))
      tested = assay_backend_find(argv[i + 1]);
  assay_device_t* held = NULL;
  assay_status_t st = assay_target_hold(tested, &held);
  if (st) fprintf(stderr, "%s\n", assay_status_message(st));
  const int code = st ? 2 : run(argc, argv);
  assay_status_free(st);
  assay_target_let_go(held);
  return code;
}
