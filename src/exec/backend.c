// What a backend is: something that runs the layers of a plan.
#include "exec/backend.h"

#include <string.h>

#include "exec/drivers.h"

bool assay_tactic_is_emulated(const char* tactic) {
  return strcmp(tactic, assay_backend_emu.name) == 0;
}

assay_status_t assay_backend_share(const assay_backend_t* b, const assay_layers_t* layers,
                                   const assay_backend_options_t* options, void** out_shared) {
  assay_backend_options_t o = options ? *options : (assay_backend_options_t){0};
  o.device = b->device;
  return b->share(layers, &o, out_shared);
}

assay_status_t assay_backend_open(const assay_backend_t* b, const assay_layers_t* layers,
                                  void* shared, const assay_tap_t* tap, void** out_state) {
  return shared || !b->open_on ? b->open(layers, shared, tap, out_state)
                               : b->open_on(layers, b->device, tap, out_state);
}

void assay_backend_describe(const assay_backend_t* b, assay_str_t* out) {
  if (b->driver)
    assay_driver_describe(b->driver, b->device, out);
  else if (b->describe)
    b->describe(out);
}

assay_status_t assay_backend_describe_need(const assay_backend_t* b, assay_str_t* out) {
  if (b->driver) return assay_driver_describe_need(b->driver, b->device, out);
  if (b->describe) b->describe(out);
  return assay_str_status(out);
}

assay_status_t assay_backend_set_inputs(const assay_backend_t* backend, void* state,
                                        const assay_graph_t* graph, assay_tensor_t* const* inputs) {
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < graph->n_inputs; i++) {
    assay_tensor_t* wide = NULL;
    if (!inputs[i]) continue;
    st = assay_tensor_widen(inputs[i], &wide);
    if (!st) st = backend->set(state, graph->inputs[i], wide);
    assay_tensor_release(wide);
  }
  return st;
}

assay_status_t assay_backend_output(const assay_backend_t* backend, void* state,
                                    const assay_value_t* value, assay_tensor_t** out) {
  assay_tensor_t* stored = NULL;
  *out = backend->get(state, value);
  if (*out || !backend->packed) return NULL;
  ASSAY_TRY(backend->packed(state, value, &stored));
  return stored ? assay_status_no_memory() : NULL;
}
