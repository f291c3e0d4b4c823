// Whether kernels make the same bits of the same numbers. Kernels of a library are compared so,
// whose order of sums nobody promises.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "exec/device/bench.h"

// Numbers that tell orders of sums apart where the result is rounded to 16 bits: of all magnitudes;
// and eights of both signs among small numbers, so that large parts cancel, and what is left shows
// how each of the small ones was rounded on its way. Few infinities, NaN and zeros of both signs go
// through the end of a kernel.
typedef enum numbers { SPECIAL = 0, WIDE, CANCELLING, KINDS } numbers_t;

// So many draws at least, and more where a draw has few elements, up to so many. Large operands
// stay in these as they are then: drawing them takes longer than the runs.
enum { MIN_DRAWS = KINDS, MAX_DRAWS = 15, ELEMENTS = 1 << 18, LARGE_BYTES = 4 << 20, RARE = 4096 };

typedef struct form {
  int bits, mantissa, bias;
} form_t;

// How a type is laid out; false: it is not a float that kernels compute with, and is left zero.
static bool find_form(assay_type_t type, form_t* f) {
  switch (type) {
    case ASSAY_TYPE_FLOAT:
      *f = (form_t){32, 23, 127};
      return true;
    case ASSAY_TYPE_FLOAT16:
      *f = (form_t){16, 10, 15};
      return true;
    case ASSAY_TYPE_BFLOAT16:
      *f = (form_t){16, 7, 127};
      return true;
    default:
      return false;
  }
}

// +-1.m * 2^exponent
static uint32_t encode(const form_t* f, int exponent, uint32_t random) {
  const uint32_t mantissa = random & ((1U << f->mantissa) - 1), sign = random >> 31;
  return sign << (f->bits - 1) | (uint32_t)(exponent + f->bias) << f->mantissa | mantissa;
}

static uint32_t draw(const form_t* f, numbers_t kind, const uint32_t r[2]) {
  const uint32_t eight = (uint32_t)(f->bias + 3) << f->mantissa;
  const uint32_t sign = r[0] >> 31 << (f->bits - 1);
  const int least = f->bias < 127 ? 1 - f->bias : -19;
  const uint32_t infinity = (2U * (uint32_t)f->bias + 1) << f->mantissa;
  if (kind == CANCELLING)
    return r[1] & 1 ? sign | eight : encode(f, least + (int)(r[1] >> 1 & 3), r[0]);
  if (kind == SPECIAL && r[1] % RARE == 0) {
    const uint32_t which = r[1] / RARE % 4;
    return which == 0 ? infinity | 1U << (f->mantissa - 1) : which == 1 ? sign | infinity : sign;
  }
  return encode(f, -10 + (int)(r[1] % RARE % 13), r[0]);
}

// Elements of operand i in a draw; the same for all who ask.
static void fill(const form_t* f, int number, uint32_t operand, size_t bytes, void* to) {
  const size_t n = bytes * 8 / (size_t)f->bits;
  const uint32_t key[2] = {(uint32_t)number, operand};
  for (size_t i = 0; i < n; i += 2) {
    const uint32_t at[4] = {(uint32_t)i, (uint32_t)((uint64_t)i >> 32), 0, 0};
    uint32_t r[4];
    assay_philox4x32(at, key, r);
    for (size_t k = 0; k < 2 && i + k < n; k++) {
      const uint32_t x = draw(f, (numbers_t)(number % KINDS), r + 2 * k);
      const uint16_t half = (uint16_t)x;
      if (f->bits == 16)
        memcpy((char*)to + 2 * (i + k), &half, sizeof half);
      else
        memcpy((char*)to + 4 * (i + k), &x, sizeof x);
    }
  }
}

// NaN are alike, whatever their bits.
static bool is_nan(const form_t* f, const char* at) {
  uint32_t x = 0;
  uint16_t half;
  if (f->bits == 16) {
    memcpy(&half, at, sizeof half);
    x = half;
  } else {
    memcpy(&x, at, sizeof x);
  }
  const uint32_t infinity = (2U * (uint32_t)f->bias + 1) << f->mantissa;
  return (x & ((1U << (f->bits - 1)) - 1)) > infinity;
}

static bool are_same(assay_type_t type, const char* a, const char* b, size_t bytes) {
  form_t f;
  if (memcmp(a, b, bytes) == 0) return true;
  if (!find_form(type, &f)) return false;
  const size_t each = (size_t)f.bits / 8;
  for (size_t i = 0; i + each <= bytes; i += each)
    if (memcmp(a + i, b + i, each) != 0 && !(is_nan(&f, a + i) && is_nan(&f, b + i))) return false;
  return true;
}

// ---- runs ---------------------------------------------------------------------------------------

// Outputs of the first kernel and of another one, one after the other.
typedef struct outputs {
  char *want, *got;
  size_t bytes;
} outputs_t;

static bool has_forms(const assay_sized_layer_t* l, const assay_kernel_t* a,
                      const assay_kernel_t* b) {
  for (size_t i = 0; i < l->n_in; i++)
    if (a->in[i].type != b->in[i].type || a->in[i].layout != b->in[i].layout) return false;
  for (size_t i = 0; i < l->n_out; i++)
    if (l->out[i].value &&
        (a->out[i].type != b->out[i].type || a->out[i].layout != b->out[i].layout))
      return false;
  return a->in_place < 0 && b->in_place < 0 && b->enqueue;
}

static assay_status_t fill_inputs(const assay_sized_layer_t* l, const assay_kernel_t* k, int number,
                                  const assay_bench_t* b) {
  for (size_t i = 0; i < l->n_in; i++) {
    form_t f;
    char* data = NULL;
    const size_t bytes = k->in[i].type ? assay_operand_bytes(&l->in[i], k->in[i].type) : 0;
    if (!bytes || !find_form(k->in[i].type, &f) || (number >= MIN_DRAWS && bytes > LARGE_BYTES))
      continue;
    ASSAY_TRY(assay_new_array(bytes, 1, &data));
    fill(&f, number, (uint32_t)i, bytes, data);
    assay_status_t st = b->driver->upload(b->q, data, b->in[i], bytes);
    st = assay_status_join(st, b->driver->queue_wait(b->q, NULL));
    assay_free(data);
    if (st) return st;
  }
  return NULL;
}

static assay_status_t run(const assay_sized_layer_t* l, assay_kernel_t* k, const assay_bench_t* b,
                          char* to) {
  const assay_device_driver_t* driver = b->driver;
  for (size_t i = 0; i < l->n_out; i++)
    if (l->out[i].value)
      ASSAY_TRY(
          driver->fill(b->q, b->out[i], 0xff, assay_operand_bytes(&l->out[i], k->out[i].type)));
  assay_status_t st = k->enqueue(k, b->q, b->in, b->out, b->scratch);
  for (size_t i = 0; !st && i < l->n_out; i++) {
    const size_t bytes = l->out[i].value ? assay_operand_bytes(&l->out[i], k->out[i].type) : 0;
    if (bytes) st = driver->download(b->q, b->out[i], to, bytes);
    to += bytes;
  }
  st = assay_status_join(st, driver->queue_wait(b->q, NULL));
  return assay_status_note(st, "a run of '%s', to compare its bits", k->name);
}

static bool compare(const assay_sized_layer_t* l, const assay_kernel_t* k, const outputs_t* o) {
  size_t at = 0;
  for (size_t i = 0; i < l->n_out; i++) {
    const size_t bytes = l->out[i].value ? assay_operand_bytes(&l->out[i], k->out[i].type) : 0;
    if (bytes && !are_same(k->out[i].type, o->want + at, o->got + at, bytes)) return false;
    at += bytes;
  }
  return true;
}

static int draws_of(const assay_sized_layer_t* l) {
  int64_t n = 1;
  for (size_t i = 0; i < l->n_out; i++)
    if (l->out[i].value) n += l->out[i].size;
  const int64_t wanted = ELEMENTS / n;
  return wanted < MIN_DRAWS ? MIN_DRAWS : wanted > MAX_DRAWS ? MAX_DRAWS : (int)wanted;
}

static assay_status_t compare_all(const assay_sized_layer_t* l, assay_kernel_t* const* k, int n,
                                  const assay_bench_t* b, const outputs_t* o, bool* same) {
  for (int number = 0; number < draws_of(l); number++) {
    ASSAY_TRY(fill_inputs(l, k[0], number, b));
    ASSAY_TRY(run(l, k[0], b, o->want));
    for (int i = 1; i < n; i++) {
      if (!same[i]) continue;
      ASSAY_TRY(run(l, k[i], b, o->got));
      same[i] = compare(l, k[i], o);
    }
  }
  return NULL;
}

assay_status_t assay_bench_same_bits(void* user, const assay_sized_layer_t* l,
                                     assay_kernel_t* const* k, int n, bool* out_same) {
  assay_bench_t b = {0};
  outputs_t o = {0};
  size_t scratch = 0;
  for (int i = 0; i < n; i++) {
    out_same[i] = has_forms(l, k[0], k[i]);
    if (out_same[i] && k[i]->scratch > scratch) scratch = k[i]->scratch;
  }
  for (size_t i = 0; i < l->n_out; i++)
    if (l->out[i].value) o.bytes += assay_operand_bytes(&l->out[i], k[0]->out[i].type);
  assay_status_t st = assay_bench_init(user, l, k[0], scratch, &b);
  if (!st) st = assay_new_array(o.bytes, 1, &o.want);
  if (!st) st = assay_new_array(o.bytes, 1, &o.got);
  if (!st && out_same[0]) st = compare_all(l, k, n, &b, &o, out_same);
  assay_free(o.want);
  assay_free(o.got);
  assay_bench_deinit(&b);
  return st;
}
