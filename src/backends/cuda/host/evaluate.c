// Single layers as the emulated engine computes them.
#include "backends/cuda/host/evaluate.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "exec/segment/value_slot.h"

struct cuda_evaluator {
  const assay_layers_t* layers;
  pthread_mutex_t lock;
  assay_tap_t tap;
  void* emu;
  assay_tensor_t* made[ASSAY_KERNEL_OPERANDS];  // the outputs of the last layer
};

// The engine itself keeps only what another layer reads; whoever checks this one wants all.
static assay_status_t keep(void* user, const assay_layer_t* layer, const assay_node_t* node,
                           uint64_t iteration, size_t n_in, assay_tensor_t* const* in, size_t n_out,
                           assay_tensor_t* const* out) {
  cuda_evaluator_t* e = user;
  (void)layer, (void)node, (void)iteration, (void)n_in, (void)in;
  for (size_t i = 0; i < n_out && i < ASSAY_KERNEL_OPERANDS; i++) {
    assay_tensor_release(e->made[i]);
    e->made[i] = assay_tensor_retain(out[i]);
  }
  return NULL;
}

static void forget(cuda_evaluator_t* e) {
  for (size_t i = 0; i < ASSAY_KERNEL_OPERANDS; i++) {
    assay_tensor_release(e->made[i]);
    e->made[i] = NULL;
  }
}

assay_status_t cuda_evaluator_create(const assay_layers_t* layers, cuda_evaluator_t** out) {
  cuda_evaluator_t* e = NULL;
  ASSAY_TRY(ASSAY_NEW(&e));
  e->layers = layers;
  pthread_mutex_init(&e->lock, NULL);
  e->tap = (assay_tap_t){.layer = keep, .user = e};
  assay_status_t st = assay_backend_emu.open(layers, NULL, &e->tap, &e->emu);
  if (st) return cuda_evaluator_destroy(e), st;
  *out = e;
  return NULL;
}

void cuda_evaluator_destroy(cuda_evaluator_t* e) {
  if (!e) return;
  forget(e);
  if (e->emu) assay_backend_emu.close(e->emu);
  pthread_mutex_destroy(&e->lock);
  assay_free(e);
}

// Of what is known before the run the engine has the model's constants itself.
static assay_status_t set_input(const cuda_evaluator_t* e, const assay_operand_t* o,
                                const void* from) {
  assay_value_slot_t held = {0};
  assay_tensor_t *t = NULL, *canonical;
  if (!from && assay_value_slot_constant(o->value)) return NULL;
  if (from) {
    ASSAY_TRY(assay_tensor_create_packed(o->type, o->rank, o->dims, &t));
    const size_t bytes = assay_operand_bytes(o, o->type);
    if (bytes) memcpy(t->data, from, bytes);
  } else {
    t = assay_tensor_retain((assay_tensor_t*)(uintptr_t)o->constant);
  }
  assay_value_slot_put(&held, t);
  assay_status_t st = assay_value_slot_canonical(&held, o->value->type->elem, &canonical);
  if (!st) st = assay_backend_emu.set(e->emu, o->value, canonical);
  assay_value_slot_clear(&held);
  return st;
}

static assay_status_t get_output(const cuda_evaluator_t* e, const assay_sized_layer_t* l, size_t i,
                                 void* to) {
  const assay_operand_t* o = &l->out[i];
  assay_tensor_t *made = e->made[i], *packed;
  assay_value_slot_t held = {0};
  if (!made) return ASSAY_ERROR(ASSAY_INTERNAL, "output '%s' was not made", o->value->name);
  if (made->rank != o->rank ||
      (o->rank && memcmp(made->dims, o->dims, (size_t)o->rank * sizeof *o->dims) != 0))
    return ASSAY_ERROR(ASSAY_INTERNAL, "output '%s' is not what it was inferred to be",
                       o->value->name);
  assay_value_slot_put(&held, assay_tensor_retain(made));
  assay_status_t st = assay_value_slot_packed(&held, o->type, &packed);
  const size_t bytes = assay_operand_bytes(o, o->type);
  if (!st && bytes) memcpy(to, packed->data, bytes);
  assay_value_slot_clear(&held);
  return st;
}

static assay_status_t evaluate(const cuda_evaluator_t* e, const assay_sized_layer_t* l,
                               const void* const* in, void* const* out) {
  for (size_t k = 0; k < l->n_in; k++) ASSAY_TRY(set_input(e, &l->in[k], in[k]));
  ASSAY_TRY(assay_backend_emu.step(e->emu, (size_t)(l->layer - e->layers->layers)));
  for (size_t k = 0; k < l->n_out; k++)
    if (l->out[k].value) ASSAY_TRY(get_output(e, l, k, out[k]));
  return NULL;
}

assay_status_t cuda_evaluate(cuda_evaluator_t* e, const assay_sized_layer_t* l,
                             const void* const* in, void* const* out) {
  pthread_mutex_lock(&e->lock);
  assay_status_t st = evaluate(e, l, in, out);
  forget(e);
  assay_backend_emu.reset(e->emu);
  pthread_mutex_unlock(&e->lock);
  return st;
}
