// What the copy engine knows of a tensor. Limits: CUDA Driver API, "Tensor Map Object Management".
#include "backends/cuda/maps.h"

#include "backends/cuda/driver_internal.h"
#include "exec/kernel.h"

enum { ALIGNED = 16, MAX_BOX = 256, LINE_BYTES = 128, MAX_STRIDE = 8, MAX_PLACES = 1024 };
static const int64_t max_dim = (int64_t)1 << 31, max_step = (int64_t)1 << 39;  // the engine: 2^40

static bool dim_fits(int64_t dim) { return dim > 0 && dim <= max_dim; }
static int bytes_of(assay_type_t t) {
  return t == ASSAY_TYPE_INT8 || t == ASSAY_TYPE_UINT8 ? 1 : (int)assay_kernel_float_bytes(t);
}
static bool step_fits(assay_type_t t, int64_t elements) {
  return elements > 0 && elements < max_step / bytes_of(t) && elements * bytes_of(t) % ALIGNED == 0;
}
// Whole lines of 128 bytes, or of 64.
static bool width_fits(assay_type_t t, int width) {
  const int bytes = width * bytes_of(t);
  return bytes == LINE_BYTES || bytes == LINE_BYTES / 2;
}
static int swizzle_of(assay_type_t t, int width) {
  return width * bytes_of(t) == LINE_BYTES ? CUDA_MAP_SWIZZLE_128 : CUDA_MAP_SWIZZLE_64;
}
static int type_of(assay_type_t t, bool to_tf32) {
  if (bytes_of(t) == 1) return CUDA_MAP_UINT8;  // a sign does not matter to it
  if (t == ASSAY_TYPE_FLOAT) return to_tf32 ? CUDA_MAP_TFLOAT32 : CUDA_MAP_FLOAT32;
  return t == ASSAY_TYPE_BFLOAT16 ? CUDA_MAP_BFLOAT16 : CUDA_MAP_FLOAT16;
}

bool cuda_tiles_fit(const cuda_tiles_t* t) {
  return dim_fits(t->columns) && dim_fits(t->rows) && step_fits(t->type, t->row_step) &&
         t->height <= MAX_BOX && width_fits(t->type, t->width);
}

assay_status_t cuda_map_tiles(assay_queue_t* base, const cuda_tiles_t* t, assay_device_ptr_t at,
                              tensor_map_t* out) {
  const cuda_queue_t* q = (const cuda_queue_t*)base;
  const uint64_t dims[] = {(uint64_t)t->columns, (uint64_t)t->rows};
  const uint64_t steps[] = {(uint64_t)(t->row_step * bytes_of(t->type))};
  const uint32_t box[] = {(uint32_t)t->width, (uint32_t)t->height}, strides[] = {1, 1};
  CUDA_CALL(q->gpu, cuTensorMapEncodeTiled, out, type_of(t->type, t->to_tf32), 2,
            (void*)(uintptr_t)at, dims, steps, box, strides, 0, swizzle_of(t->type, t->width),
            CUDA_MAP_PROMOTION_256, 0);
  return NULL;
}

// Corners are numbers of 8 bits, with a sign.
static bool corner_fits(int corner) { return corner >= -128 && corner <= 127; }

bool cuda_windows_fit(const cuda_windows_t* w) {
  for (int i = 0; i < 2; i++)
    if (!corner_fits(w->first[i]) || !corner_fits(w->last[i]) || w->strides[i] > MAX_STRIDE)
      return false;
  return dim_fits(w->channels) && dim_fits(w->width) && dim_fits(w->height) &&
         dim_fits(w->samples) && step_fits(w->type, w->place_step) &&
         step_fits(w->type, w->sample_step) && step_fits(w->type, w->place_step * w->width) &&
         w->places <= MAX_PLACES && width_fits(w->type, w->line);
}

assay_status_t cuda_map_windows(assay_queue_t* base, const cuda_windows_t* w, assay_device_ptr_t at,
                                tensor_map_t* out) {
  const cuda_queue_t* q = (const cuda_queue_t*)base;
  const uint64_t dims[] = {(uint64_t)w->channels, (uint64_t)w->width, (uint64_t)w->height,
                           (uint64_t)w->samples};
  const int bytes = bytes_of(w->type);
  const uint64_t place = (uint64_t)(w->place_step * bytes);
  const uint64_t steps[] = {place, place * (uint64_t)w->width, (uint64_t)(w->sample_step * bytes)};
  const uint32_t strides[] = {1, (uint32_t)w->strides[0], (uint32_t)w->strides[1], 1};
  CUDA_CALL(q->gpu, cuTensorMapEncodeIm2col, out, type_of(w->type, w->to_tf32), 4,
            (void*)(uintptr_t)at, dims, steps, w->first, w->last, (uint32_t)w->line,
            (uint32_t)w->places, strides, 0, swizzle_of(w->type, w->line), CUDA_MAP_PROMOTION_256,
            0);
  return NULL;
}
