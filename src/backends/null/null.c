// The template of a backend (docs/add-a-backend.md): it has no kernels, so that the emulated engine
// runs every layer. A backend of its own copies this folder, says in `takes` which formats its
// kernels compute in, and makes them in `choose`.
#include "base/alloc.h"
#include "exec/runner.h"

typedef struct null_state {
  assay_runner_t runner;  // first: the runner's functions take the state
  assay_weights_t* store;
} null_state_t;

// ---- what segments are prepared for ------------------------------------------------------------

// Kernels may compute in the layer's format and keep its sums: none does.
static bool takes(void* user, const assay_layer_t* l) {
  (void)user, (void)l;
  return false;
}

// The kernel of a layer of these sizes; NULL: none takes it. Never asked of a layer that `takes`
// refuses.
static assay_status_t choose(void* user, const assay_sized_layer_t* l, assay_kernel_t** out,
                             assay_candidate_t* candidates, int* n_candidates) {
  (void)user, (void)l, (void)candidates;
  *out = NULL;
  *n_candidates = 0;
  return NULL;
}

// Whether a tensor can be brought from one layout into another.
static bool can_move(void* user, const assay_reformat_t* m) {
  (void)user, (void)m;
  return false;
}

static const assay_target_t target = {.takes = takes, .choose = choose, .can_move = can_move};

// ---- memory -------------------------------------------------------------------------------------

// A segment has kernels or is never begun: these three get work with the first kernel.
static assay_status_t begin(assay_runner_t* r, assay_segment_t* s) {
  r->now = s;
  return NULL;
}

static assay_status_t run_layer(assay_runner_t* r, size_t i, bool* ok) {
  (void)ok;
  return ASSAY_ERROR(ASSAY_INTERNAL, "layer '%s' has no kernel to run", r->layers->layers[i].name);
}

static assay_status_t read_place(assay_runner_t* r, const assay_place_t* p, assay_tensor_t** out) {
  (void)r, (void)p, (void)out;
  return ASSAY_ERROR(ASSAY_INTERNAL, "no kernel has made this value");
}

static const assay_runner_memory_t memory = {
    .begin = begin, .layer = run_layer, .read = read_place};

// ---- the state ----------------------------------------------------------------------------------

static void null_close(void* state) {
  null_state_t* n = state;
  if (!n) return;
  assay_runner_deinit(&n->runner);
  assay_weights_destroy(n->store);
  assay_free(n);
}

static assay_status_t null_open(const assay_layers_t* layers, void* shared, const assay_tap_t* tap,
                                void** out_state) {
  null_state_t* n = NULL;
  (void)shared;
  ASSAY_TRY(ASSAY_NEW(&n));
  assay_status_t st = assay_weights_create(&n->store);
  if (!st) {
    const assay_setting_t setting = {.store = n->store,
                                     .target = &target,
                                     .apart = tap != NULL,
                                     .alignment = ASSAY_BLOCK_ALIGNMENT,
                                     .user = n};
    st = assay_runner_init(&n->runner, layers, tap, &memory, &setting);
  }
  if (st) return null_close(n), st;
  *out_state = n;
  return NULL;
}

const assay_backend_t assay_backend_null = {.name = "null",
                                            .open = null_open,
                                            .close = null_close,
                                            .set = assay_runner_set,
                                            .get = assay_runner_get,
                                            .bind = assay_runner_bind,
                                            .packed = assay_runner_packed,
                                            .step = assay_runner_step,
                                            .reset = assay_runner_reset,
                                            .tactic = assay_runner_tactic,
                                            .executed = assay_runner_executed,
                                            .rounding = assay_runner_rounding};
