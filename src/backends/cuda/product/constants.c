// Constants of products in a device's memory.
#include "backends/cuda/product/constants.h"

#include <string.h>

#include "backends/cuda/kernels/product_args.h"
#include "base/alloc.h"
#include "base/shown.h"
#include "exec/device/resident.h"
#include "ops/matmul/tf32_products.h"

// Floats of the host that become elements of a type on the device.
typedef struct floats {
  const cuda_own_t* own;
  const float* at;
  int64_t n;
  assay_type_t type;
} floats_t;

static assay_status_t upload(const floats_t* f, assay_queue_t* q, assay_device_ptr_t to) {
  const assay_device_driver_t* driver = f->own->device->driver;
  const size_t bytes = (size_t)f->n * sizeof(float);
  const assay_reformat_t m = {.rank = 1,
                              .dims = {f->n},
                              .size = f->n,
                              .from = {ASSAY_TYPE_FLOAT, ASSAY_LAYOUT_PLAIN},
                              .to = {f->type, ASSAY_LAYOUT_PLAIN},
                              .through = f->type};
  assay_device_ptr_t wide = 0;
  if (f->type == ASSAY_TYPE_FLOAT) return driver->upload(q, f->at, to, bytes);
  ASSAY_TRY(driver->alloc(q, bytes, &wide));
  assay_status_t st = driver->upload(q, f->at, wide, bytes);
  if (!st) st = cuda_move(f->own, &m, q, wide, to);
  driver->free(q, wide);
  return st;
}

static assay_status_t fill_floats(void* user, assay_queue_t* q, assay_device_ptr_t to) {
  return upload(user, q, to);
}

// Takes the key.
static assay_status_t bring(const assay_sized_layer_t* l, assay_str_t* take_key, int64_t n,
                            assay_type_t type, assay_resident_fill_t* fill, void* user,
                            assay_device_ptr_t* out) {
  const size_t bytes = (size_t)n * assay_kernel_float_bytes(type);
  assay_status_t st = assay_str_status(take_key);
  if (!st) st = assay_resident_get(l->resident, assay_str_get(take_key), bytes, fill, user, out);
  assay_str_deinit(take_key);
  return st;
}

assay_status_t cuda_typed_bias_get(const assay_sized_layer_t* l, const assay_operand_t* bias,
                                   int64_t n, assay_type_t type, assay_device_ptr_t* out) {
  float *given = NULL, *all = NULL;
  assay_str_t key = {0};
  ASSAY_TRY(assay_operand_floats(bias, &given));
  assay_status_t st = assay_new_array((size_t)n, sizeof *all, &all);
  for (int64_t i = 0; !st && i < n; i++) all[i] = given[bias->size == 1 ? 0 : i];
  assay_free(given);
  if (st) return st;
  assay_str_printf_raw(&key, "%s as %lld of %s, of %s", bias->value->name, (long long)n,
                       assay_type_name(type), assay_type_name(bias->type));
  floats_t f = {cuda_own_of(l), all, n, type};
  st = bring(l, &key, n, type, fill_floats, &f, out);
  assay_free(all);
  return st;
}

assay_status_t cuda_bias_get(const assay_sized_layer_t* l, const assay_operand_t* bias, int64_t n,
                             assay_device_ptr_t* out) {
  return cuda_typed_bias_get(l, bias, n, ASSAY_TYPE_FLOAT, out);
}

// Weights in the order in which kernels read them. A layer is read once for each tactic that may
// take it, so that the order is made only where the device has it not.
typedef void arrange_t(const void* how, size_t elem, const void* from, void* to);
typedef struct arranged {
  const cuda_own_t* own;
  const assay_operand_t* weights;
  assay_type_t type;
  int64_t size;        // with zeros where nothing is put
  arrange_t* arrange;  // elements of `elem` bytes: float32, or 16 bits as they are
  const void* how;
  void* made;
} arranged_t;

// Elements of 16 bits are put in order and uploaded as they are.
static assay_status_t fill_narrow(arranged_t* o, const assay_tensor_t* given, assay_queue_t* q,
                                  assay_device_ptr_t to) {
  uint16_t* made = NULL;
  ASSAY_TRY(assay_new_array((size_t)o->size, sizeof *made, &made));
  o->made = made;
  o->arrange(o->how, sizeof *made, given->data, made);
  return o->own->device->driver->upload(q, made, to, (size_t)o->size * sizeof *made);
}

static assay_status_t fill_floats_of(arranged_t* o, assay_queue_t* q, assay_device_ptr_t to) {
  const float* given = NULL;
  float *viewed = NULL, *made = NULL;
  ASSAY_TRY(assay_operand_view(o->weights, &given, &viewed));
  assay_status_t st = assay_new_array((size_t)o->size, sizeof *made, &made);
  o->made = made;
  if (!st) o->arrange(o->how, sizeof *made, given, made);
  assay_free(viewed);
  const floats_t f = {o->own, made, o->size, o->type};
  return st ? st : upload(&f, q, to);
}

static assay_status_t fill_arranged(void* user, assay_queue_t* q, assay_device_ptr_t to) {
  arranged_t* o = user;
  assay_tensor_t* narrow = NULL;
  if (o->type == o->weights->type) ASSAY_TRY(assay_operand_narrow(o->weights, &narrow));
  assay_status_t st = narrow ? fill_narrow(o, narrow, q, to) : fill_floats_of(o, q, to);
  assay_tensor_release(narrow);
  return st;
}

// One element of 16 or 32 bits.
static inline void put_element(size_t elem, const void* from, int64_t at, void* to, int64_t there) {
  if (elem == sizeof(uint16_t))
    ((uint16_t*)to)[there] = ((const uint16_t*)from)[at];
  else
    ((float*)to)[there] = ((const float*)from)[at];
}

// Takes the key.
static assay_status_t bring_arranged(const assay_sized_layer_t* l, assay_str_t* take_key,
                                     arranged_t o, assay_device_ptr_t* out) {
  o.own = cuda_own_of(l);
  assay_status_t st = bring(l, take_key, o.size, o.type, fill_arranged, &o, out);
  assay_free(o.made);
  return st;
}

// ---- weights of convolutions --------------------------------------------------------------------

// Channels made that are put in order together: their elements fill a line of a cache.
enum { TOGETHER = 16 };

// Where the weight of a channel made (of all groups), a channel read (of its group) and a tap lies.
static int64_t given_at(const cuda_taps_t* t, int64_t made, int64_t read, int64_t tap) {
  if (!t->transposed) return (made * t->cg + read) * t->taps + tap;
  const int64_t group = made / t->mg;
  return ((group * t->cg + read) * t->mg + made % t->mg) * t->taps + tap;
}

static int64_t pitch_of(const cuda_taps_t* t) { return t->pitch ? t->pitch : t->taps * t->cg; }

static void reorder_block(const cuda_taps_t* t, int64_t first, int64_t end, size_t elem,
                          const void* from, void* to) {
  for (int64_t read = 0; read < t->cg; read++)
    for (int64_t tap = 0; tap < t->taps; tap++) {
      const int64_t term = tap * t->cg + read;
      for (int64_t made = first; made < end; made++) {
        const int64_t at = t->terms_first ? term * t->m + made : made * pitch_of(t) + term;
        put_element(elem, from, given_at(t, made, read, tap), to, at);
      }
    }
}

static void reorder(const void* how, size_t elem, const void* from, void* to) {
  const cuda_taps_t* t = how;
  for (int64_t made = 0; made < t->m; made += TOGETHER)
    reorder_block(t, made, made + TOGETHER < t->m ? made + TOGETHER : t->m, elem, from, to);
}

assay_status_t cuda_taps_get(const assay_sized_layer_t* l, const assay_operand_t* weights,
                             const cuda_taps_t* t, assay_device_ptr_t* out) {
  const arranged_t o = {.weights = weights,
                        .type = weights->type,
                        .size = t->m * pitch_of(t),
                        .arrange = reorder,
                        .how = t};
  assay_str_t key = {0};
  assay_str_printf_raw(&key, "%s as %s, %s of %lld x %lld x %lld%s", weights->value->name,
                       assay_type_name(weights->type), t->terms_first ? "terms" : "columns",
                       (long long)t->m, (long long)t->taps, (long long)t->cg,
                       t->transposed ? " transposed" : "");
  if (t->pitch) assay_str_printf_raw(&key, " by %lld", (long long)t->pitch);
  return bring_arranged(l, &key, o, out);
}

// ---- matrices -----------------------------------------------------------------------------------

static void spread(const void* how, size_t elem, const void* from, void* to) {
  const cuda_rows_t* r = how;
  for (int64_t i = 0; i < r->rows; i++)
    memcpy((char*)to + (size_t)(i * r->pitch) * elem,
           (const char*)from + (size_t)(i * r->columns) * elem, (size_t)r->columns * elem);
}

assay_status_t cuda_rows_get(const assay_sized_layer_t* l, const assay_operand_t* weights,
                             const cuda_rows_t* rows, assay_device_ptr_t* out) {
  const arranged_t o = {.weights = weights,
                        .type = weights->type,
                        .size = rows->rows * rows->pitch,
                        .arrange = spread,
                        .how = rows};
  assay_str_t key = {0};
  assay_str_printf_raw(&key, "%s as %s, %lld rows by %lld", weights->value->name,
                       assay_type_name(weights->type), (long long)rows->rows,
                       (long long)rows->pitch);
  return bring_arranged(l, &key, o, out);
}

// ---- halves of a gate ---------------------------------------------------------------------------

int64_t cuda_halves_columns(const cuda_halves_t* h) {
  return (h->columns + PRODUCT_GATED - 1) / PRODUCT_GATED * PRODUCT_GATED * 2;
}

// The column that stands for column i of a half.
static int64_t place_of_half(int64_t i, int half) {
  return (i / PRODUCT_GATED * 2 + half) * PRODUCT_GATED + i % PRODUCT_GATED;
}

static void take_turns(const void* how, size_t elem, const void* from, void* to) {
  const cuda_halves_t* h = how;
  for (int half = 0; half < 2; half++)
    for (int64_t i = 0; i < h->columns; i++) {
      const int64_t x = (half * h->columns + i) * h->column_step;
      int64_t at = place_of_half(i, half) * h->pitch;
      for (int64_t tap = 0; tap < h->taps; tap++)
        for (int64_t channel = 0; channel < h->channels; channel++)
          put_element(elem, from, x + tap * h->tap_step + channel * h->channel_step, to, at++);
    }
}

assay_status_t cuda_halves_get(const assay_sized_layer_t* l, const assay_operand_t* weights,
                               const cuda_halves_t* halves, assay_device_ptr_t* out) {
  const arranged_t o = {.weights = weights,
                        .type = weights->type,
                        .size = cuda_halves_columns(halves) * halves->pitch,
                        .arrange = take_turns,
                        .how = halves};
  assay_str_t key = {0};
  assay_str_printf_raw(&key, "%s as %s, halves of %lld by %lld x %lld, %lld", weights->value->name,
                       assay_type_name(weights->type), (long long)halves->columns,
                       (long long)halves->taps, (long long)halves->channels,
                       (long long)halves->column_step);
  return bring_arranged(l, &key, o, out);
}

// ---- parts of tf32 ------------------------------------------------------------------------------

// Columns that are split together: what lies side by side of them fills a line of a cache.
static void split_block(const cuda_parts_t* p, int64_t first, int64_t end, const float* from,
                        float* to) {
  const int64_t further = p->columns * p->pitch;
  for (int64_t tap = 0; tap < p->taps; tap++)
    for (int64_t channel = 0; channel < p->channels; channel++) {
      const float* x = from + tap * p->tap_step + channel * p->channel_step;
      float* at = to + tap * p->channels + channel;
      for (int64_t j = first; j < end; j++) {
        const float all = x[j * p->column_step], part = assay_tf32_part(all);
        at[j * p->pitch] = part;
        if (p->parts > 1) at[j * p->pitch + further] = assay_tf32_rest(all, part);
      }
    }
}

static void split(const void* how, size_t elem, const void* from, void* to) {
  const cuda_parts_t* p = how;
  (void)elem;  // float32
#pragma omp parallel for schedule(static) if (p->columns * p->pitch > 100000)
  for (int64_t j = 0; j < p->columns; j += TOGETHER)
    split_block(p, j, j + TOGETHER < p->columns ? j + TOGETHER : p->columns, from, to);
}

assay_status_t cuda_parts_get(const assay_sized_layer_t* l, const assay_operand_t* weights,
                              const cuda_parts_t* parts, assay_device_ptr_t* out) {
  const arranged_t o = {.weights = weights,
                        .type = ASSAY_TYPE_FLOAT,
                        .size = parts->parts * parts->columns * parts->pitch,
                        .arrange = split,
                        .how = parts};
  assay_str_t key = {0};
  assay_str_printf_raw(&key, "%s in %d of tf32, %lld by %lld x %lld, %lld", weights->value->name,
                       parts->parts, (long long)parts->columns, (long long)parts->taps,
                       (long long)parts->channels, (long long)parts->column_step);
  return bring_arranged(l, &key, o, out);
}
