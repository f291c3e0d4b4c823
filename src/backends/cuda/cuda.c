// The target "cuda": plans on a GPU (exec/device/device_run.h).
#include "backends/cuda/cublaslt.h"
#include "backends/cuda/driver.h"
#include "backends/cuda/host/host.h"
#include "backends/cuda/tactic.h"
#include "base/alloc.h"
#include "exec/device/device_run.h"

static void unshare_own(void* own) {
  cuda_host_destroy(((cuda_own_t*)own)->host);
  cublaslt_destroy(((cuda_own_t*)own)->cublaslt);
  cuda_functions_destroy(((cuda_own_t*)own)->functions);
  assay_free(own);
}

static assay_status_t share_own(assay_device_t* d, const assay_layers_t* layers,
                                const assay_backend_options_t* options, assay_weights_t* store,
                                void** out) {
  (void)layers, (void)options;
  cuda_own_t* own = NULL;
  ASSAY_TRY(ASSAY_NEW(&own));
  own->device = d;
  own->properties = cuda_device_properties(d);
  assay_status_t st = cuda_functions_create(d, store, &own->functions);
  if (!st) st = cublaslt_create(d, &own->cublaslt);
  if (!st) st = cuda_host_create(&own->host);
  if (st) return unshare_own(own), st;
  *out = own;
  return NULL;
}

static void rehearse(void* own) { cuda_functions_rehearse(((cuda_own_t*)own)->functions); }

static assay_status_t rehearsed(void* own) {
  return cuda_functions_rehearsed(((cuda_own_t*)own)->functions);
}

// Sums are kept in fp32, or are those of whole numbers.
static bool takes(void* own, const assay_layer_t* l) {
  (void)own;
  return l->accumulator == ASSAY_FORMAT_FP32;
}

static bool can_move(void* own, const assay_reformat_t* m) {
  (void)own;
  return cuda_move_is_possible(m);
}

static size_t move_scratch(void* own, const assay_reformat_t* m) {
  (void)own, (void)m;
  return 0;
}

static assay_status_t move(void* own, const assay_reformat_t* m, assay_queue_t* q,
                           assay_device_ptr_t from, assay_device_ptr_t to,
                           assay_device_ptr_t scratch) {
  (void)scratch;
  return cuda_move(own, m, q, from, to);
}

static const assay_device_kind_t kind = {.driver = &assay_device_driver_cuda,
                                         .tactics = cuda_tactics,
                                         .n_tactics = CUDA_N_TACTICS,
                                         .share = share_own,
                                         .unshare = unshare_own,
                                         .rehearse = rehearse,
                                         .rehearsed = rehearsed,
                                         .takes = takes,
                                         .can_move = can_move,
                                         .move_scratch = move_scratch,
                                         .move = move};

static assay_status_t share(const assay_layers_t* layers, const assay_backend_options_t* options,
                            void** out_shared) {
  return assay_device_share(&kind, layers, options, out_shared);
}

static assay_status_t open_state(const assay_layers_t* layers, void* shared, const assay_tap_t* tap,
                                 void** out_state) {
  return assay_device_open(&kind, layers, shared, tap, out_state);
}

static assay_status_t open_on(const assay_layers_t* layers, int device, const assay_tap_t* tap,
                              void** out_state) {
  return assay_device_open_on(&kind, layers, device, tap, out_state);
}

const assay_backend_t assay_backend_cuda = {.name = "cuda",
                                            .narrow_constants = true,
                                            .driver = &assay_device_driver_cuda,
                                            .share = share,
                                            .open = open_state,
                                            .open_on = open_on,
                                            ASSAY_DEVICE_ROWS};
