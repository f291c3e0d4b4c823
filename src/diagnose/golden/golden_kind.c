// Golden of a model that quantizes: of the network before, or of one that quantizes?
#include "diagnose/golden/golden_kind.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "eval/evaluator.h"
#include "ops/quant/book.h"
#include "plan/plan.h"

// How many times nearer golden has to lie to one truth to speak for it. Where the export is at
// fault as well, both are far, and the values before the fault tell. Where none tells, as of coarse
// outputs alone, of which some are a step off, a little nearer will do.
static const double MUCH = 4, LITTLE = 1.3;

// As near as rounding is beside what few bits lose: then golden is the model's own for sure.
static const double EXACT = 100;

enum { TURNS = 2 };  // MUCH, then LITTLE

typedef struct votes {
  size_t for_written[TURNS], for_plain[TURNS];
  size_t exact;  // of those for written
} votes_t;

// RMS of the difference, and how many elements differ where there is none: integers.
static bool is_nearer(const assay_difference_t* a, const assay_difference_t* b, double factor) {
  if (!a->comparable) return false;
  if (!b->comparable) return true;
  const double floor = 1e-7 * a->ref_rms;  // what golden's own arithmetic may do
  return factor * (a->rms + floor) < b->rms + floor ||
         (double)a->mismatched * factor < (double)b->mismatched;
}

// Golden of the sample that was evaluated, the first, where it holds several, one after the other.
static assay_status_t first_rows(const assay_tensor_t* truth, assay_tensor_t* golden,
                                 assay_tensor_t** out) {
  int64_t dims[ASSAY_MAX_RANK];
  assay_tensor_t* wide = NULL;
  ASSAY_TRY(assay_tensor_widen(golden, &wide));
  const bool more = truth->kind == ASSAY_KIND_TENSOR && truth->rank == wide->rank && wide->rank &&
                    truth->dims[0] < wide->dims[0];
  if (!more) return *out = wide, NULL;
  memcpy(dims, wide->dims, (size_t)wide->rank * sizeof *dims);
  dims[0] = truth->dims[0];
  assay_status_t st = assay_tensor_part(wide, 0, wide->rank, dims, out);
  assay_tensor_release(wide);
  return st;
}

static assay_status_t vote(votes_t* v, const assay_tensor_t* written, const assay_tensor_t* plain,
                           assay_tensor_t* golden) {
  assay_tensor_t* rows = NULL;
  if (!written || !plain || golden->kind != ASSAY_KIND_TENSOR) return NULL;
  ASSAY_TRY(first_rows(written, golden, &rows));
  const assay_difference_t by_written = assay_difference(written, rows);
  const assay_difference_t by_plain = assay_difference(plain, rows);
  assay_tensor_release(rows);
  assay_tensor_forget_whole(golden);
  v->exact += is_nearer(&by_written, &by_plain, EXACT);
  for (int turn = 0; turn < TURNS; turn++) {
    const double factor = turn ? LITTLE : MUCH;
    v->for_written[turn] += is_nearer(&by_written, &by_plain, factor);
    v->for_plain[turn] += is_nearer(&by_plain, &by_written, factor);
  }
  return NULL;
}

// ---- both truths, node by node -----------------------------------------------------------------

// One truth, of which no more is kept than its next nodes read.
typedef struct truth {
  assay_evaluator_t* evaluator;
  const assay_graph_t* graph;
  assay_tensor_t** made;  // by value id: of the node that has just run
  bool moves_books;       // what books gave is moved by chance
} truth_t;

static assay_status_t keep_made(void* user, const assay_node_t* n, size_t n_in,
                                assay_tensor_t* const* in, size_t n_out, assay_tensor_t** out) {
  truth_t* t = user;
  (void)n_in;
  (void)in;
  if (t->moves_books && n_out && out[0] && assay_is_book(n))
    ASSAY_TRY(assay_book_move(n, 0, &out[0]));
  for (size_t i = 0; n->graph == t->graph && i < n_out; i++)
    if (n->outputs[i]) t->made[n->outputs[i]->id] = assay_tensor_retain(out[i]);
  return NULL;
}

static void drop_made(truth_t* t, const assay_node_t* n) {
  for (size_t i = 0; t->made && i < n->n_outputs; i++) {
    if (!n->outputs[i]) continue;
    assay_tensor_release(t->made[n->outputs[i]->id]);
    t->made[n->outputs[i]->id] = NULL;
  }
}

// Outputs of integer types are given out rounded.
static const assay_tensor_t* made_of(const truth_t* t, const assay_value_t* v) {
  return v->is_output ? assay_evaluator_get(t->evaluator, v) : t->made[v->id];
}

static assay_status_t start(const assay_model_t* m, assay_tensor_t* const* inputs, bool unquantized,
                            uint64_t seed, truth_t* out) {
  const assay_evaluator_config_t config = {.mode = ASSAY_MODE_TRUTH,
                                           .unquantized = unquantized,
                                           .seed = seed,
                                           .hooks = {.after = keep_made, .user = out}};
  out->graph = m->graph;
  ASSAY_TRY(assay_new_array((size_t)m->n_values, sizeof *out->made, &out->made));
  ASSAY_TRY(assay_evaluator_create(m, &config, &out->evaluator));
  assay_evaluator_set_inputs(out->evaluator, inputs);
  return assay_evaluator_check_inputs(out->evaluator);
}

// What is known under one value, as both truths have it.
static assay_status_t vote_on(votes_t* votes, const assay_golden_t* golden, const assay_graph_t* g,
                              assay_tensor_t* const* outputs, const assay_value_t* v,
                              const truth_t* written, const truth_t* plain) {
  const assay_tensor_t *w = made_of(written, v), *p = made_of(plain, v);
  for (size_t i = 0; golden && i < golden->n; i++)
    if (golden->at[i].value == v) ASSAY_TRY(vote(votes, w, p, golden->at[i].tensor));
  for (size_t i = 0; outputs && i < g->n_outputs; i++)
    if (g->outputs[i] == v && outputs[i]) ASSAY_TRY(vote(votes, w, p, outputs[i]));
  return NULL;
}

static assay_status_t run_both(votes_t* votes, const assay_golden_t* golden, const assay_graph_t* g,
                               assay_tensor_t* const* outputs, truth_t* written, truth_t* plain) {
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < g->n_nodes; i++) {
    const assay_node_t* n = g->nodes[i];
    st = assay_evaluator_step(written->evaluator, n);
    if (!st) st = assay_evaluator_step(plain->evaluator, n);
    for (size_t k = 0; !st && k < n->n_outputs; k++)
      if (n->outputs[k]) st = vote_on(votes, golden, g, outputs, n->outputs[k], written, plain);
    drop_made(written, n);
    drop_made(plain, n);
  }
  return st;
}

static void truth_deinit(truth_t* t) {
  assay_evaluator_destroy(t->evaluator);
  assay_free(t->made);
}

// Adds the votes of one sample. A model that one of the truths cannot run has none: it is judged by
// the check, not here.
//   golden   inner values and outputs; NULL: none
//   outputs  golden of the graph's outputs; NULL: none
static assay_status_t ask_sample(const assay_model_t* m, assay_tensor_t* const* inputs,
                                 const assay_golden_t* golden, assay_tensor_t* const* outputs,
                                 uint64_t seed, votes_t* votes) {
  truth_t written = {0}, plain = {0};
  votes_t those = *votes;
  plain.moves_books = !assay_model_quantizes(m);
  assay_status_t st = start(m, inputs, false, seed, &written);
  if (!st) st = start(m, inputs, true, seed, &plain);
  if (!st) st = run_both(&those, golden, m->graph, outputs, &written, &plain);
  truth_deinit(&written);
  truth_deinit(&plain);
  if (!st) *votes = those;
  return st;
}

// Where nothing is much nearer to one of them, what is a little nearer. Not of books: what their
// numbers were before is not known, and the truth of moved ones is a little farther from any
// golden.
static int turn_of(const assay_model_t* m, const votes_t* v) {
  return assay_model_quantizes(m) && v->for_written[0] == v->for_plain[0];
}

// Whether golden has a quantizer's steps themselves, as integers.
static bool has_steps(const assay_golden_t* golden) {
  for (size_t i = 0; i < golden->n; i++) {
    const assay_value_t* v = golden->at[i].value;
    const assay_tensor_t* t = golden->at[i].tensor;
    if (v && v->producer && strcmp(v->producer->op_type, "QuantizeLinear") == 0 &&
        t->kind == ASSAY_KIND_TENSOR && assay_type_is_integer(t->type) && t->size > 1)
      return true;
  }
  return false;
}

assay_status_t assay_golden_is_quantized(const assay_golden_t* golden, const assay_model_t* model,
                                         assay_tensor_t* const* inputs,
                                         assay_tensor_t* const* outputs, uint64_t seed, bool* out,
                                         bool* out_sure) {
  votes_t votes = {0};
  *out = false;
  *out_sure = true;
  if (!assay_model_has_few_bits(model)) return NULL;
  *out = has_steps(golden);
  if (*out) return NULL;
  assay_status_t st = ask_sample(model, inputs, golden, outputs, seed, &votes);
  if (assay_status_code(st) == ASSAY_NO_MEMORY) return st;
  if (st) return assay_status_free(st), NULL;
  const int turn = turn_of(model, &votes);
  *out = votes.for_written[turn] > votes.for_plain[turn];
  // A draw of what a book's numbers were may by chance lie farther from golden than they do.
  *out_sure = !turn && (votes.exact || assay_model_quantizes(model));
  // Choices may be the same in both: other samples may tell.
  if (!*out) *out_sure = votes.for_written[1] || votes.for_plain[1];
  return NULL;
}

assay_status_t assay_golden_outputs_are_quantized(const assay_model_t* model,
                                                  const assay_samples_t* inputs,
                                                  const assay_samples_t* golden, uint64_t seed,
                                                  bool* out) {
  enum { SAMPLES = 16 };
  votes_t votes = {0};
  *out = false;
  if (!golden || !golden->n || !inputs->n || !assay_model_has_few_bits(model)) return NULL;
  const size_t n = inputs->n < SAMPLES ? inputs->n : SAMPLES;
  assay_status_t st = NULL;
  for (size_t k = 0; !st && k < n; k++)
    st = ask_sample(model, assay_samples_get(inputs, k), NULL,
                    assay_samples_get(golden, golden->n == 1 ? 0 : k), seed, &votes);
  const int turn = turn_of(model, &votes);
  *out = votes.for_written[turn] > votes.for_plain[turn];
  if (assay_status_code(st) != ASSAY_NO_MEMORY) assay_status_free(st), st = NULL;
  return st;
}
