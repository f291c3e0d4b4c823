// Runs recurrent layers: the input's share of all gates by one product, then launch by launch a
// step.
#include "backends/cuda/recurrent/recurrent.h"

enum { ALIGN = 64, THREADS = 256, STEP_THREADS = 128 };  // floats; of recurrent.cu

static int64_t aligned(int64_t n) { return (n + ALIGN - 1) / ALIGN * ALIGN; }

static int64_t states_of(const cuda_recurrent_t* k) {
  return aligned(k->args.directions * k->args.batch * k->args.hidden);
}
static int64_t shares_of(const cuda_recurrent_t* k) {
  return aligned(k->args.length * k->args.batch * k->args.directions * k->gates * k->args.hidden);
}

// Pieces of states: before and after a step, then cells or what a GRU needs.
static int pieces_of(const cuda_recurrent_t* k) {
  return 2 + (k->cell == CUDA_CELL_LSTM) + (k->reset_first ? 2 : 0);
}

size_t cuda_recurrent_scratch(const cuda_recurrent_t* k) {
  return (size_t)(shares_of(k) + pieces_of(k) * states_of(k)) * sizeof(float);
}

static assay_device_ptr_t given(const assay_device_ptr_t* all, int i) { return i < 0 ? 0 : all[i]; }

static recurrent_args_t place(const cuda_recurrent_t* k, const assay_device_ptr_t* in,
                              const assay_device_ptr_t* out, assay_device_ptr_t scratch) {
  recurrent_args_t a = k->args;
  const assay_device_ptr_t states = scratch + (size_t)shares_of(k) * sizeof(float);
  const size_t step = (size_t)states_of(k) * sizeof(float);
  a.from_x = scratch;
  a.r = in[k->r];
  a.bias = given(in, k->bias);
  a.peepholes = given(in, k->peepholes);
  a.lengths = given(in, k->lengths);
  a.initial_h = given(in, k->initial_h);
  a.initial_c = given(in, k->initial_c);
  a.y = given(out, k->y);
  a.y_h = given(out, k->y_h);
  a.y_c = given(out, k->y_c);
  a.before = states;
  a.after = states + step;
  if (k->cell == CUDA_CELL_LSTM) a.cells = states + 2 * step;
  if (k->reset_first) a.update = states + 2 * step, a.restated = states + 3 * step;
  return a;
}

static assay_status_t launch_all(const cuda_recurrent_t* k, assay_queue_t* q, cuda_kernel_t f,
                                 const recurrent_args_t* a) {
  const int64_t n = a->directions * a->batch * a->hidden;
  const cuda_grid_t grid = {
      .blocks = cuda_blocks_for(k->own, n, THREADS), .threads = THREADS, .dependent = true};
  return cuda_queue_launch(q, f, &grid, a);
}

static assay_status_t launch_step(const cuda_recurrent_t* k, assay_queue_t* q,
                                  recurrent_args_t* a) {
  const cuda_grid_t grid = {.blocks = k->blocks, .threads = STEP_THREADS, .dependent = true};
  const address_t before = a->before;
  ASSAY_TRY(cuda_queue_launch(q, k->step, &grid, a));
  if (k->second) ASSAY_TRY(cuda_queue_launch(q, k->second, &grid, a));
  a->before = a->after;
  a->after = before;
  return NULL;
}

assay_status_t cuda_recurrent_enqueue(assay_kernel_t* base, assay_queue_t* q,
                                      const assay_device_ptr_t* in, const assay_device_ptr_t* out,
                                      assay_device_ptr_t scratch) {
  cuda_recurrent_t* k = (cuda_recurrent_t*)base;
  recurrent_args_t a = place(k, in, out, scratch);
  if (k->lengths >= 0)
    ASSAY_TRY(cuda_watch_enqueue(&k->watch, q, a.lengths, (size_t)a.batch * sizeof(int32_t)));
  ASSAY_TRY(cuda_plain_product_enqueue(&k->product, q, in[k->x], in[k->w], a.from_x));
  ASSAY_TRY(launch_all(k, q, k->begin, &a));
  for (; a.step < a.length; a.step++) ASSAY_TRY(launch_step(k, q, &a));
  return a.y_h || a.y_c ? launch_all(k, q, k->end, &a) : NULL;
}
