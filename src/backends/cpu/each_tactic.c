// A layer by each of the tactics that take it, on inputs of the caller's.
#include <math.h>
#include <string.h>

#include "backends/cpu/data/move.h"
#include "backends/cpu/tactic.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "exec/choice/describe.h"
#include "exec/segment/memory_plan.h"
#include "exec/segment/value_slot.h"

enum { MIN_RUNS = 3, MAX_RUNS = 20 };
static const double SECONDS = 2e-3;

typedef struct job {
  const assay_layer_t* layer;
  assay_tensor_t* const* in;  // of all nodes, one after the other
  assay_weights_t* store;
  assay_accuracy_gates_t gates;
  assay_sized_layer_t sized;
} job_t;

// The tensor of a value that the layer reads.
static assay_tensor_t* tensor_of(const job_t* j, const assay_value_t* v) {
  size_t at = 0;
  for (size_t k = 0; k < j->layer->n_nodes; k++)
    for (size_t i = 0; i < j->layer->nodes[k]->n_inputs; i++, at++)
      if (j->layer->nodes[k]->inputs[i] == v && j->in[at]) return j->in[at];
  return NULL;
}

static bool describe_value(void* user, const assay_value_t* v, assay_operand_t* o) {
  const job_t* j = user;
  const assay_tensor_t* t = tensor_of(j, v);
  if (!t || t->kind != ASSAY_KIND_TENSOR || t->rank > ASSAY_KERNEL_RANK) return false;
  o->rank = t->rank;
  o->size = t->size;
  memcpy(o->dims, t->dims, (size_t)t->rank * sizeof *o->dims);
  o->constant = assay_value_slot_constant(v);
  o->store = j->store;
  o->layout = ASSAY_LAYOUT_PLAIN;
  return true;
}

static size_t aligned(size_t bytes) {
  return (bytes + ASSAY_BLOCK_ALIGNMENT - 1) / ASSAY_BLOCK_ALIGNMENT * ASSAY_BLOCK_ALIGNMENT;
}

// ---- memory of one kernel -----------------------------------------------------------------------

typedef struct buffers {
  const void* in[ASSAY_KERNEL_OPERANDS];
  void* out[ASSAY_KERNEL_OPERANDS];
  void* scratch;
  char* memory;
  size_t bytes, in_bytes;
} buffers_t;

static assay_reformat_t move_of(const assay_operand_t* o, assay_storage_t from,
                                assay_storage_t to) {
  assay_reformat_t m = {
      .rank = o->rank, .size = o->size, .from = from, .to = to, .through = o->type};
  memcpy(m.dims, o->dims, sizeof m.dims);
  return m;
}

static assay_status_t reserve(const job_t* j, const assay_kernel_t* k, buffers_t* r) {
  const assay_sized_layer_t* l = &j->sized;
  size_t bytes = ASSAY_BLOCK_ALIGNMENT + aligned(k->scratch);
  for (size_t i = 0; i < l->n_in; i++)
    if (k->in[i].type) bytes += aligned(assay_operand_bytes(&l->in[i], k->in[i].type));
  for (size_t i = 0; i < l->n_out; i++)
    if (l->out[i].value) bytes += aligned(assay_operand_bytes(&l->out[i], k->out[i].type));
  ASSAY_TRY(assay_new_array(bytes, 1, &r->memory));
  char* at = r->memory + (aligned((uintptr_t)r->memory) - (uintptr_t)r->memory);
  r->scratch = at;
  at += aligned(k->scratch);
  for (size_t i = 0; i < l->n_in; i++) {
    if (!k->in[i].type) continue;
    r->in[i] = at;
    at += aligned(assay_operand_bytes(&l->in[i], k->in[i].type));
  }
  for (size_t i = 0; i < l->n_out; i++) {
    if (!l->out[i].value) continue;
    r->out[i] = at;
    at += aligned(assay_operand_bytes(&l->out[i], k->out[i].type));
  }
  // What is in place takes the memory of its input.
  if (k->in_place >= 0 && l->n_out) r->out[0] = (void*)(uintptr_t)r->in[k->in_place];
  return NULL;
}

static assay_status_t run_move(const assay_reformat_t* m, const void* from, void* to) {
  char* scratch = NULL;
  const size_t bytes = cpu_move_scratch(m);
  ASSAY_TRY(assay_new_array(bytes + ASSAY_BLOCK_ALIGNMENT, 1, &scratch));
  cpu_move_run(m, from, to, scratch + (aligned((uintptr_t)scratch) - (uintptr_t)scratch));
  assay_free(scratch);
  return NULL;
}

// Puts an input where the kernel reads it; *ok false: it cannot be put there.
static assay_status_t fill(const job_t* j, const assay_kernel_t* k, size_t i, const buffers_t* r,
                           bool* ok) {
  const assay_operand_t* o = &j->sized.in[i];
  assay_tensor_t* t = tensor_of(j, o->value);
  assay_tensor_t* packed = NULL;
  ASSAY_TRY(assay_tensor_pack(t, &packed));
  const assay_storage_t lies = {packed->type, ASSAY_LAYOUT_PLAIN};
  const assay_reformat_t m = move_of(o, lies, k->in[i]);
  assay_status_t st = NULL;
  *ok = cpu_move_is_possible(&m);
  if (*ok) st = run_move(&m, packed->data, (void*)(uintptr_t)r->in[i]);
  assay_tensor_release(packed);
  return st;
}

static assay_status_t fill_all(const job_t* j, const assay_kernel_t* k, const buffers_t* r,
                               bool* ok) {
  *ok = true;
  for (size_t i = 0; *ok && i < j->sized.n_in; i++)
    if (k->in[i].type) ASSAY_TRY(fill(j, k, i, r, ok));
  return NULL;
}

// An output as the layer stores it, canonical.
static assay_status_t read_output(const job_t* j, const assay_kernel_t* k, size_t i,
                                  const buffers_t* r, assay_tensor_t** out) {
  const assay_operand_t* o = &j->sized.out[i];
  assay_tensor_t *packed = NULL, *wide = NULL;
  const assay_storage_t to = {o->type, ASSAY_LAYOUT_PLAIN};
  const assay_reformat_t m = move_of(o, k->out[i], to);
  if (!cpu_move_is_possible(&m)) return NULL;
  ASSAY_TRY(assay_tensor_create_packed(o->type, o->rank, o->dims, &packed));
  assay_status_t st = run_move(&m, r->out[i], packed->data);
  if (!st) st = assay_tensor_widen(packed, &wide);
  assay_tensor_release(packed);
  if (st) return st;
  // Elements that are stored in fewer bits are still of the value's declared type.
  if (wide->store == ASSAY_STORE_F64 && o->value->type) wide->type = o->value->type->elem;
  *out = wide;
  return NULL;
}

// ---- one tactic ---------------------------------------------------------------------------------

static assay_status_t time_kernel(const job_t* j, assay_kernel_t* k, const buffers_t* r,
                                  double* out_microseconds) {
  double fastest = (double)INFINITY;
  const double start = assay_clock_seconds();
  bool ok = true;
  for (int i = 0; i < MAX_RUNS && (i < MIN_RUNS || assay_clock_seconds() - start < SECONDS); i++) {
    if (k->in_place >= 0) ASSAY_TRY(fill_all(j, k, r, &ok));
    const double t = assay_clock_seconds();
    ASSAY_TRY(k->run(k, r->in, r->out, r->scratch));
    fastest = fmin(fastest, assay_clock_seconds() - t);
  }
  *out_microseconds = 1e6 * fastest;
  return NULL;
}

static assay_status_t run_kernel(const job_t* j, assay_kernel_t* k, const buffers_t* r, bool timed,
                                 assay_tactic_run_t* out, bool* ok) {
  ASSAY_TRY(fill_all(j, k, r, ok));
  if (!*ok) return NULL;
  if (k->run) ASSAY_TRY(k->run(k, r->in, r->out, r->scratch));
  ASSAY_TRY(assay_new_array(j->sized.n_out, sizeof *out->out, &out->out));
  out->n_out = j->sized.n_out;
  for (size_t i = 0; i < out->n_out; i++)
    if (j->sized.out[i].value) ASSAY_TRY(read_output(j, k, i, r, &out->out[i]));
  return timed && k->run ? time_kernel(j, k, r, &out->microseconds) : NULL;
}

static assay_status_t try_tactic(job_t* j, const assay_tactic_t* tactic, bool timed,
                                 assay_tactic_runs_t* out) {
  assay_kernel_t* k = NULL;
  buffers_t r = {0};
  bool ok = false;
  ASSAY_TRY(assay_grow(&out->at, &out->capacity, out->n + 1, sizeof *out->at));
  j->gates.n = 0;
  ASSAY_TRY(tactic->make(&j->sized, &k));
  if (!k) return NULL;
  assay_tactic_run_t* run = &out->at[out->n];
  *run = (assay_tactic_run_t){.name = tactic->name,
                              .source = tactic->source,
                              .numerics = tactic->numerics,
                              .rounding = tactic->rounding,
                              .microseconds = (double)NAN};
  k->tactic = tactic;
  assay_status_t st = reserve(j, k, &r);
  if (!st) st = run_kernel(j, k, &r, timed, run, &ok);
  if (ok)
    out->n++;
  else
    assay_tactic_run_deinit(run);
  assay_free(r.memory);
  k->destroy(k);
  return st;
}

assay_status_t cpu_each_tactic(const assay_layers_t* layers, size_t i, const assay_sizes_t* sizes,
                               assay_tensor_t* const* in, bool timed, assay_tactic_runs_t* out) {
  const assay_layer_t* layer = &layers->layers[i];
  job_t j = {.layer = layer, .in = in};
  *out = (assay_tactic_runs_t){0};
  if (layer->format == ASSAY_FORMAT_TF32 || layer->accumulator != ASSAY_FORMAT_FP32) return NULL;
  ASSAY_TRY(assay_weights_create(&j.store));
  assay_status_t st = NULL;
  if (assay_describe_layer(layers, i, sizes, describe_value, &j, &j.sized)) {
    j.sized.gates = &j.gates;
    for (size_t t = 0; !st && t < cpu_n_tactics; t++)
      st = try_tactic(&j, cpu_tactics[t], timed, out);
  }
  assay_weights_destroy(j.store);
  if (st) assay_tactic_runs_deinit(out);
  return st;
}
