// Weights of convolutions that are values of the run.
#include "backends/cuda/product/packing.h"

#include <string.h>

enum { THREADS = 256, RANK = 4 };

// One of the four dimensions that weights have: how many, and their step in what is given.
typedef struct part {
  int64_t n, step;
} part_t;

copy_box_t cuda_packing_box(const cuda_taps_t* t) {
  const int64_t groups = t->m / t->mg;
  const part_t group = {groups, t->mg * t->cg * t->taps}, tap = {t->taps, 1};
  const part_t made = {t->mg, t->transposed ? t->taps : t->cg * t->taps};
  const part_t read = {t->cg, t->transposed ? t->mg * t->taps : t->taps};
  const part_t terms[] = {tap, read, group, made}, columns[] = {group, made, tap, read};
  const part_t* order = t->terms_first ? terms : columns;
  copy_box_t box = {.size = 1};
  for (int d = RANK - 1; d >= 0; d--) {
    box.dims[d] = order[d].n;
    box.from_strides[d] = order[d].step;
    box.to_strides[d] = box.size;
    box.size *= order[d].n;
  }
  for (int d = 0; box.size <= INT32_MAX && d < RANK; d++)
    box.divisors[d] = divisor_of((uint32_t)box.dims[d]);
  return box;
}

assay_status_t cuda_packing_get(const cuda_own_t* own, assay_type_t type, const copy_box_t* box,
                                cuda_kernel_t* out) {
  assay_str_t options = {0};
  assay_str_printf(&options, "-DBITS=%d -DRANK=%d -DLONG=%d",
                   (int)assay_kernel_float_bytes(type) * 8, RANK, box->size > INT32_MAX);
  const cuda_source_t source = {
      .file = "copy.cu", .kernel = "copy_boxes", .options = assay_str_get(&options)};
  assay_status_t st = assay_str_status(&options);
  if (!st) st = cuda_function_get(own->functions, &source, out);
  assay_str_deinit(&options);
  return st;
}

assay_status_t cuda_packing_enqueue(const cuda_own_t* own, cuda_kernel_t kernel,
                                    const copy_box_t* box, assay_queue_t* q,
                                    assay_device_ptr_t from, assay_device_ptr_t to) {
  copy_args_t a = {.n = 1, .boxes = {*box}};
  const cuda_grid_t grid = {
      .blocks = cuda_blocks_for(own, box->size, THREADS), .threads = THREADS, .dependent = true};
  a.boxes[0].from = from;
  a.boxes[0].to = to;
  return cuda_queue_launch(q, kernel, &grid, &a);
}
