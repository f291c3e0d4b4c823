// Elements put into another form (exec/segment/reformat.h).
#include "backends/cuda/kernels/move_args.h"
#include "backends/cuda/own.h"
#include "backends/cuda/types.h"
#include "base/str.h"

enum { THREADS = 256, WAVES = 8 };

int64_t cuda_blocks_for(const cuda_own_t* own, int64_t n, int threads) {
  const int64_t all = (n + threads - 1) / threads;
  const int64_t most = (int64_t)own->properties.multiprocessors * WAVES * (2048 / threads);
  return all < 1 ? 1 : all < most ? all : most;
}

static bool keeps_bits(const assay_reformat_t* m) {
  return m->from.type == m->to.type &&
         (m->through == m->from.type ||
          (m->through == ASSAY_TYPE_FLOAT && assay_type_is_kernel_float(m->from.type)));
}

bool cuda_move_is_possible(const assay_reformat_t* m) {
  int64_t bits;
  if (keeps_bits(m)) return assay_reformat_is_copy(m) || cuda_type_bits(m->from.type, &bits);
  return cuda_type_name(m->from.type) && cuda_type_name(m->to.type) && cuda_type_name(m->through);
}

static move_args_t arguments(const assay_reformat_t* m, assay_device_ptr_t from,
                             assay_device_ptr_t to) {
  move_args_t a = {.from = from, .to = to, .size = m->size, .rows = 1, .columns = 1};
  int64_t spatial = 1;
  if (m->rank < 3 || m->from.layout == m->to.layout) return a;
  for (int i = 2; i < m->rank; i++) spatial *= m->dims[i];
  // Plain is [N, C, spatial], the other one [N, spatial, C].
  const bool to_last = m->to.layout == ASSAY_LAYOUT_CHANNELS_LAST;
  a.rows = to_last ? spatial : m->dims[1];
  a.columns = to_last ? m->dims[1] : spatial;
  return a;
}

assay_status_t cuda_move(const cuda_own_t* own, const assay_reformat_t* m, assay_queue_t* q,
                         assay_device_ptr_t from, assay_device_ptr_t to) {
  const move_args_t args = arguments(m, from, to);
  const bool bytes = keeps_bits(m);
  int64_t bits = 0;
  cuda_kernel_t kernel;
  assay_str_t options = {0};
  if (bytes && cuda_type_bits(m->from.type, &bits))
    assay_str_printf(&options, "-DBITS=%d", (int)bits);
  else
    assay_str_printf(&options, "-DFROM=%s -DTO=%s -DTHROUGH=%s", cuda_type_name(m->from.type),
                     cuda_type_name(m->to.type), cuda_type_name(m->through));
  const cuda_source_t source = {.file = "move.cu",
                                .kernel = bytes ? "move_bytes" : "move_floats",
                                .options = assay_str_get(&options),
                                .at_once = true};
  assay_status_t st = assay_str_status(&options);
  if (!st) st = cuda_function_get(own->functions, &source, &kernel);
  assay_str_deinit(&options);
  const cuda_grid_t grid = {.blocks = cuda_blocks_for(own, m->size, THREADS), .threads = THREADS};
  return st ? st : cuda_queue_launch(q, kernel, &grid, &args);
}
