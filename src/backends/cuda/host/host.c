// The tactic of layers that no kernel of a GPU takes: they are run on the host, in the queue.
//
// The CPU's kernel packs its weights as it does on the CPU; they are not saved with the plan, which
// may be run beside another CPU. What the emulated engine computes is computed by one engine for
// all contexts.
#include "backends/cuda/host/host.h"

#include <pthread.h>
#include <string.h>

#include "backends/cuda/call.h"
#include "backends/cuda/host/evaluate.h"
#include "backends/cuda/tactic.h"
#include "backends/host_kernels.h"
#include "base/alloc.h"
#include "exec/segment/value_slot.h"

enum { ALIGNMENT = 64 };  // of operands, for the CPU's kernels

// ---- what such layers share ---------------------------------------------------------------------

struct cuda_host {
  pthread_mutex_t lock;
  assay_choice_t* kernels;  // NULL: not needed yet
};

assay_status_t cuda_host_create(cuda_host_t** out) {
  ASSAY_TRY(ASSAY_NEW(out));
  pthread_mutex_init(&(*out)->lock, NULL);
  return NULL;
}

void cuda_host_destroy(cuda_host_t* h) {
  if (!h) return;
  assay_choice_destroy(h->kernels);
  pthread_mutex_destroy(&h->lock);
  assay_free(h);
}

static assay_status_t kernels_of(cuda_host_t* h, assay_choice_t** out) {
  assay_status_t st = NULL;
  pthread_mutex_lock(&h->lock);
  if (!h->kernels) st = assay_host_kernels_create(&h->kernels);
  *out = h->kernels;
  pthread_mutex_unlock(&h->lock);
  return st;
}

// ---- running ------------------------------------------------------------------------------------

typedef struct host host_t;

// The layer with its operands at one place in staging memory: what a capture launches again.
typedef struct placed {
  const host_t* kernel;
  char* staging;
  cuda_call_t call;
  struct placed* next;
} placed_t;

struct host {
  assay_kernel_t base;
  assay_kernel_t* inner;  // the CPU's; NULL: the layer is evaluated
  // Of the layers of the context: those that were there when it was shared may be gone.
  cuda_evaluator_t* evaluator;
  assay_sized_layer_t layer;
  size_t in[ASSAY_KERNEL_OPERANDS], out[ASSAY_KERNEL_OPERANDS], scratch;  // offsets
  size_t in_bytes[ASSAY_KERNEL_OPERANDS], out_bytes[ASSAY_KERNEL_OPERANDS];
  size_t bytes;  // of all
  assay_value_slot_t
      known[ASSAY_KERNEL_OPERANDS];  // constants, which need not come from the device
  const void* known_at[ASSAY_KERNEL_OPERANDS];
  placed_t* placed;
};

static assay_status_t run_layer(const placed_t* p) {
  const host_t* k = p->kernel;
  const void* in[ASSAY_KERNEL_OPERANDS] = {NULL};
  void* out[ASSAY_KERNEL_OPERANDS] = {NULL};
  for (size_t i = 0; i < k->layer.n_in; i++)
    in[i] = k->base.in[i].type ? p->staging + k->in[i] : k->known_at[i];
  for (size_t i = 0; i < k->layer.n_out; i++)
    if (k->layer.out[i].value) out[i] = p->staging + k->out[i];
  if (!k->inner) return cuda_evaluate(k->evaluator, &k->layer, in, out);
  return k->inner->run(k->inner, in, out, p->staging + k->scratch);
}

// Where something has failed, kernels behind it get zeros, which are valid as indices, too.
static assay_status_t run(void* user, bool failed) {
  const placed_t* p = user;
  const host_t* k = p->kernel;
  assay_status_t st = failed ? NULL : run_layer(p);
  for (size_t i = 0; (st || failed) && i < k->layer.n_out; i++)
    memset(p->staging + k->out[i], 0, k->out_bytes[i]);
  return assay_status_note(st, "layer '%s', which the host runs", k->layer.layer->name);
}

// The place that stands for this staging memory.
static assay_status_t place(host_t* k, char* staging, placed_t** out) {
  placed_t* p = k->placed;
  while (p && p->staging != staging) p = p->next;
  if (!p) {
    ASSAY_TRY(ASSAY_NEW(&p));
    *p = (placed_t){.kernel = k, .staging = staging, .next = k->placed};
    p->call = (cuda_call_t){.function = run, .user = p};
    k->placed = p;
  }
  *out = p;
  return NULL;
}

static assay_status_t enqueue(assay_kernel_t* base, assay_queue_t* q, const assay_device_ptr_t* in,
                              const assay_device_ptr_t* out, assay_device_ptr_t scratch) {
  (void)scratch;
  host_t* k = (host_t*)base;
  placed_t* p;
  void* staging;
  ASSAY_TRY(cuda_queue_staging(q, k->bytes, &staging));
  ASSAY_TRY(place(k, staging, &p));
  for (size_t i = 0; i < k->layer.n_in; i++)
    if (base->in[i].type)
      ASSAY_TRY(cuda_queue_fetch(q, in[i], p->staging + k->in[i], k->in_bytes[i]));
  ASSAY_TRY(cuda_queue_call(q, &p->call));
  for (size_t i = 0; i < k->layer.n_out; i++)
    if (k->layer.out[i].value)
      ASSAY_TRY(cuda_queue_send(q, p->staging + k->out[i], out[i], k->out_bytes[i]));
  return NULL;
}

// ---- making -------------------------------------------------------------------------------------

static void destroy(assay_kernel_t* base) {
  host_t* k = (host_t*)base;
  for (placed_t* p = k->placed; p;) {
    placed_t* next = p->next;
    assay_free(p);
    p = next;
  }
  if (k->inner) k->inner->destroy(k->inner);
  cuda_evaluator_destroy(k->evaluator);
  for (size_t i = 0; i < ASSAY_KERNEL_OPERANDS; i++) assay_value_slot_clear(&k->known[i]);
  assay_free(k);
}

static size_t take(host_t* k, size_t bytes) {
  const size_t at = k->bytes;
  k->bytes += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  return at;
}

static void lay_out(host_t* k) {
  const assay_sized_layer_t* l = &k->layer;
  for (size_t i = 0; i < l->n_in; i++) {
    if (!k->base.in[i].type) continue;
    k->in_bytes[i] = assay_operand_bytes(&l->in[i], k->base.in[i].type);
    k->in[i] = take(k, k->in_bytes[i]);
  }
  for (size_t i = 0; i < l->n_out; i++) {
    if (!l->out[i].value) continue;
    k->out_bytes[i] = assay_operand_bytes(&l->out[i], k->base.out[i].type);
    k->out[i] = take(k, k->out_bytes[i]);
  }
  // What is to be written over is a copy as well.
  if (k->inner && k->inner->run && k->inner->in_place >= 0) k->out[0] = k->in[k->inner->in_place];
  k->scratch = take(k, k->inner ? k->inner->scratch : 0);
}

// Constants that the CPU's kernel reads as they are; one that it writes over comes from the device.
static assay_status_t keep_known(host_t* k, size_t i) {
  const assay_operand_t* o = &k->layer.in[i];
  assay_storage_t* form = &k->base.in[i];
  assay_tensor_t* packed;
  if (!o->constant || !k->inner->run || form->type != o->type ||
      form->layout != ASSAY_LAYOUT_PLAIN || k->inner->in_place == (int)i)
    return NULL;
  assay_value_slot_put(&k->known[i], assay_tensor_retain((assay_tensor_t*)(uintptr_t)o->constant));
  ASSAY_TRY(assay_value_slot_packed(&k->known[i], o->type, &packed));
  k->known_at[i] = packed->data;
  form->type = ASSAY_TYPE_UNDEFINED;
  return NULL;
}

// As a kernel of the device: what the CPU's says of operands' forms holds; it works on copies, so
// that nothing is done in place but by one that only gives its input another shape.
static void wrap(host_t* k) {
  k->base = (assay_kernel_t){
      .in_place = k->inner->run ? -1 : k->inner->in_place,
      .rounding = k->inner->rounding ? k->inner->rounding : &k->inner->tactic->rounding,
      .enqueue = k->inner->run ? enqueue : NULL,
      .destroy = destroy};
  memcpy(k->base.in, k->inner->in, sizeof k->base.in);
  memcpy(k->base.out, k->inner->out, sizeof k->base.out);
}

static void evaluated(host_t* k) {
  const assay_sized_layer_t* l = &k->layer;
  k->base =
      (assay_kernel_t){.in_place = -1, .emulated = true, .enqueue = enqueue, .destroy = destroy};
  for (size_t i = 0; i < l->n_in; i++)
    if (!l->in[i].constant) k->base.in[i].type = l->in[i].type;
  for (size_t i = 0; i < l->n_out; i++)
    if (l->out[i].value) k->base.out[i].type = l->out[i].type;
}

static assay_status_t fill(host_t* k, cuda_host_t* h) {
  assay_choice_t* kernels;
  ASSAY_TRY(kernels_of(h, &kernels));
  ASSAY_TRY(assay_host_kernel_make(kernels, &k->layer, &k->inner));
  if (k->inner) {
    wrap(k);
    for (size_t i = 0; i < k->layer.n_in; i++) ASSAY_TRY(keep_known(k, i));
  } else {
    ASSAY_TRY(cuda_evaluator_create(k->layer.layers, &k->evaluator));
    evaluated(k);
  }
  lay_out(k);
  return NULL;
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  host_t* k = NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base.destroy = destroy;
  k->layer = *l;
  assay_status_t st = fill(k, cuda_own_of(l)->host);
  if (st) return destroy(&k->base), st;
  *out = &k->base;
  return NULL;
}

// Each kernel says how it rounds.
const assay_tactic_t cuda_tactic_host = {.name = "host",
                                         .source = "host",
                                         .numerics = "host",
                                         .make = make,
                                         .rounding = {.compute = ASSAY_FORMAT_FP32,
                                                      .accumulator = ASSAY_FORMAT_FP32,
                                                      .fma = true,
                                                      .flushes = true,
                                                      .function_ulps = 4}};
