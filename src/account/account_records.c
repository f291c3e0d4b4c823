// Runs of layers, kept until truth comes to them, and what is asked of a layer's tensors.

#include "account/account_internal.h"
#include "base/alloc.h"
#include "formats/extremes.h"
#include "ops/cost.h"

// ---- records ------------------------------------------------------------------------------------

void assay_record_free(assay_record_t* r) {
  for (size_t i = 0; i < r->n_out; i++) {
    assay_tensor_release(r->engine[i]);
    assay_tensor_release(r->local[i]);
  }
  for (size_t i = 0; i < r->n_in; i++) assay_tensor_release(r->in[i]);
  assay_free(r->in);
  assay_free(r->engine);
  assay_free(r->local);
  assay_free(r);
}

assay_status_t assay_record_create(size_t n_out, assay_tensor_t* const* engine,
                                   assay_record_t** out) {
  assay_record_t* r = NULL;
  ASSAY_TRY(ASSAY_NEW(&r));
  assay_status_t st = assay_new_array(n_out, sizeof *r->engine, &r->engine);
  if (!st) st = assay_new_array(n_out, sizeof *r->local, &r->local);
  if (st) return assay_record_free(r), st;
  r->n_out = n_out;
  for (size_t i = 0; i < n_out; i++) r->engine[i] = assay_tensor_retain(engine[i]);
  *out = r;
  return NULL;
}

assay_status_t assay_record_inputs(assay_record_t* r, uint64_t iteration, size_t n_in,
                                   assay_tensor_t* const* in) {
  ASSAY_TRY(assay_new_array(n_in, sizeof *r->in, &r->in));
  r->iteration = iteration;
  r->n_in = n_in;
  for (size_t i = 0; i < n_in; i++) r->in[i] = assay_tensor_retain(in[i]);
  return NULL;
}

void assay_record_push(assay_record_queue_t* q, assay_record_t* r) {
  if (!q->first) q->last = &q->first;
  *q->last = r;
  q->last = &r->next;
}

assay_record_t* assay_record_pop(assay_record_queue_t* q) {
  assay_record_t* r = q->first;
  if (r) q->first = r->next;
  return r;
}

void assay_entering_deinit(assay_entering_t* e) {
  for (size_t i = 0; i < e->n; i++) assay_tensor_release(e->in[i]);
  assay_free(e->in);
  *e = (assay_entering_t){0};
}

// ---- layers and their outputs -------------------------------------------------------------------

bool assay_account_holds_floats(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64;
}

// Of floats, as canonical ones or as packed.
static assay_extremes_t extremes_of(const assay_tensor_t* t) {
  bool packed = t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_PACKED &&
                assay_type_is_float(t->type);
  if (!packed && !assay_account_holds_floats(t)) return (assay_extremes_t){0};
  return assay_extremes(packed ? t->type : ASSAY_TYPE_DOUBLE, t->data, t->size);
}

double assay_account_largest(const assay_tensor_t* t) { return extremes_of(t).largest; }

bool assay_account_is_control(const assay_node_t* node) {
  return node->op && node->op->flags & ASSAY_OP_CONTROL;
}

static double bytes_of(size_t n, assay_tensor_t* const* t) {
  double bytes = 0;
  for (size_t i = 0; i < n; i++)
    if (t[i] && t[i]->kind == ASSAY_KIND_TENSOR) bytes += 4 * (double)t[i]->size;
  return bytes;
}

assay_status_t assay_account_note_cost(const assay_layer_t* layer, const assay_node_t* node,
                                       size_t n_in, assay_tensor_t* const* in, size_t n_out,
                                       assay_tensor_t* const* out, assay_cost_t* cost) {
  const bool single = !layer || layer->n_nodes == 1;
  *cost = (assay_cost_t){0};
  if (single) ASSAY_TRY(assay_cost_of_tensors(node, n_in, in, n_out, out, cost));
  if (cost->bytes <= 0) cost->bytes = bytes_of(n_in, in) + bytes_of(n_out, out);
  return NULL;
}

assay_status_t assay_account_note_first(assay_account_t* a, assay_layer_account_t* acc,
                                        const assay_layer_t* layer, const assay_node_t* node) {
  if (acc->node) return NULL;
  ASSAY_TRY(assay_grow(&a->order, &a->cap_order, a->n_order + 1, sizeof *a->order));
  a->order[a->n_order++] = node;
  acc->node = node;
  acc->layer = layer;
  acc->own = acc->inherited = acc->total = ASSAY_ERROR_SUM_INIT;
  return NULL;
}

// ---- sums ---------------------------------------------------------------------------------------

void assay_account_settle_judgement(const assay_layer_sums_t* s, assay_judgement_t* j) {
  j->sum_ratio2 = assay_exact_get(&s->ratio2);
  j->sum_error2 = assay_exact_get(&s->error2);
  j->sum_limit2 = assay_exact_get(&s->limit2);
  j->sum_truth2 = assay_exact_get(&s->truth2);
  j->sum_error_truth = assay_exact_get(&s->error_truth);
  j->sum_whole2 = assay_exact_get(&s->whole2);
}

void assay_account_add_judgement(assay_layer_sums_t* sums, assay_judgement_t* to,
                                 const assay_judgement_t* run) {
  assay_judgement_join(to, run);
  assay_exact_add(&sums->ratio2, run->sum_ratio2);
  assay_exact_add(&sums->error2, run->sum_error2);
  assay_exact_add(&sums->limit2, run->sum_limit2);
  assay_exact_add(&sums->truth2, run->sum_truth2);
  assay_exact_add(&sums->error_truth, run->sum_error_truth);
  assay_exact_add(&sums->whole2, run->sum_whole2);
  assay_account_settle_judgement(sums, to);
}
