// What a fault that was injected in the engine (backends/emu/inject.h) did to the layer it is in:
// for the mutation bench, which has to know the faults that rounding could hide.
#include "account/injected.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/format.h"

static bool is_named(const char* inject, const char* label) {
  const char* colon = strrchr(inject, ':');
  const size_t n = colon ? (size_t)(colon - inject) : 0;
  return strncmp(inject, label, n) == 0 && !label[n];
}

bool assay_injected_is_in(const assay_layers_t* layers, const assay_layer_t* layer,
                          const assay_node_t* node) {
  if (!layers->inject) return false;
  for (size_t i = 0; layer && i < layer->n_nodes; i++)
    if (is_named(layers->inject, layer->nodes[i]->label)) return true;
  return is_named(layers->inject, node->label);
}

// limit NULL: 0.
static void add(const assay_tensor_t* got, const assay_tensor_t* right, const double* limit,
                assay_format_t storage, bool rounds, assay_injected_t* out) {
  for (int64_t i = 0; i < got->size; i++) {
    if (got->store == ASSAY_STORE_I64) {
      const int64_t moved = assay_i64(got)[i] - assay_i64(right)[i];
      out->changed += moved != 0;
      out->past += fabs((double)moved) > (limit ? limit[i] : 0);
      continue;
    }
    const double x = assay_f64(got)[i], y = assay_f64(right)[i];
    if (x == y || (x != x && y != y)) continue;
    out->changed++;
    const double margin = (limit ? limit[i] : 0) + (rounds ? assay_format_ulp(storage, y) / 2 : 0);
    out->past += !(fabs(x - y) <= margin);
  }
}

static void measure(const assay_layer_t* layer, const assay_local_t* local, assay_format_t compute,
                    size_t n_out, assay_tensor_t* const* engine, assay_tensor_t* const* right,
                    assay_injected_t* out) {
  for (size_t i = 0; i < n_out; i++) {
    const assay_tensor_t *e = engine[i], *r = right[i];
    if (!e || !r || r->kind != ASSAY_KIND_TENSOR || r->store > ASSAY_STORE_I64) continue;
    if (!assay_tensor_alike(e, r)) {
      out->changed += r->size;
      out->past += r->size;
      continue;
    }
    const assay_tensor_t* g = local->bounded ? local->limits[i].guaranteed : NULL;
    const assay_format_t storage = assay_layer_storage(layer, e->type);
    const bool rounds =
        e->store == ASSAY_STORE_F64 && assay_bound_unit(storage) > assay_bound_unit(compute);
    add(e, r, g && g->size == e->size ? assay_f64(g) : NULL, storage, rounds, out);
  }
}

assay_status_t assay_injected_measure(assay_locals_t* locals, const assay_layer_t* layer,
                                      const assay_node_t* node, size_t n_in,
                                      assay_tensor_t* const* in, const assay_local_t* local,
                                      assay_format_t compute, assay_tensor_t* const* engine,
                                      assay_injected_t* out) {
  assay_tensor_t** right = NULL;
  ASSAY_TRY(assay_new_array(local->n_out, sizeof *right, &right));
  assay_status_t st = assay_locals_rerun(locals, layer, node, n_in, in, 0, local->n_out, right);
  if (!st) measure(layer, local, compute, local->n_out, engine, right, out);
  for (size_t i = 0; i < local->n_out; i++) assay_tensor_release(right[i]);
  assay_free(right);
  return st;
}
