// Bytes out of cells (cuda/int8/cells.h) beside the definition of int8 layers: around each float at
// which a byte changes, and for random floats; with ASSAY_FULL for all floats there are.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka wants those before it.
#include <math.h>

#include <cmocka.h>

#include "backends/cuda/int8/cells.h"
#include "base/alloc.h"
#include "base/random.h"
#include "seed_case.h"
#include "status_case.h"

typedef struct row {
  const char* function;
  double alpha;
  float scale, zero;
  assay_type_t type;
  bool has;  // cells
} row_t;

static const row_t rows[] = {
    {"Gelu", 0, 0.0234F, 0, ASSAY_TYPE_INT8, true},
    {"Gelu", 0, 0.0234F, -113, ASSAY_TYPE_INT8, true},
    {"Gelu", 0, 0.011F, 17, ASSAY_TYPE_UINT8, true},
    {"Gelu", 0, 3, 0, ASSAY_TYPE_INT8, true},
    {"Gelu", 0, 1e9F, 0, ASSAY_TYPE_UINT8, true},
    {"Gelu", 0, 0.004F, 0, ASSAY_TYPE_UINT8, true},
    {"Gelu", 0, 0x1p-12F, 0, ASSAY_TYPE_INT8, false},  // a step is steeper than a cell is wide
    {"gelu_tanh", 0, 0.05F, -120, ASSAY_TYPE_INT8, true},
    {"gelu_tanh", 0, 0.0071F, 128, ASSAY_TYPE_UINT8, true},
    {"silu", 0, 0.0313F, 9, ASSAY_TYPE_UINT8, true},
    {"silu", 0, 0.0313F, -119, ASSAY_TYPE_INT8, true},
    {"Swish", 1.702, 0.02F, -100, ASSAY_TYPE_INT8, true},
    {"Swish", 0.25, 0.1F, 3, ASSAY_TYPE_UINT8, true},
    {"Swish", -1, 0.1F, 3, ASSAY_TYPE_UINT8, false},  // it falls where others rise
    {"Mish", 0, 0.04F, -100, ASSAY_TYPE_INT8, true},
    {"HardSwish", 0, 0.0235294F, 16, ASSAY_TYPE_UINT8, true},
    {"HardSwish", 0, 0.052F, -120, ASSAY_TYPE_INT8, true},
    {"HardSwish", 0, 0.05F, -120, ASSAY_TYPE_INT8, false},  // where it turns is a boundary
    {"Sigmoid", 0, 0.0038F, 0, ASSAY_TYPE_UINT8, true},
    {"Sigmoid", 0, 0.0076F, 0, ASSAY_TYPE_INT8, true},
    {"Sigmoid", 0, 1.0F / 255, 0, ASSAY_TYPE_UINT8, false},  // what is next to 0 lies at a boundary
    {"Tanh", 0, 1.0F / 127, 0, ASSAY_TYPE_INT8, true},
    {"Tanh", 0, 1.0F / 128, 128, ASSAY_TYPE_UINT8, true},
    {"Erf", 0, 1.0F / 100, 0, ASSAY_TYPE_INT8, true},
    {"Softplus", 0, 0.05F, -128, ASSAY_TYPE_INT8, true},
    {"Exp", 0, 0.1F, 0, ASSAY_TYPE_INT8, false},  // not known
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static const float one = 1, none = 0;

static assay_int8_t layer_of(const row_t* r) {
  return (assay_int8_t){
      .factor = &one,
      .shift = &none,
      .n_factor = 1,
      .sources = {{.kind = ASSAY_INT8_RESULT}},
      .n_sources = 1,
      .steps = {{.function = assay_int8_function_named(r->function), .b = -1, .p = {r->alpha}}},
      .n_steps = 1,
      .other = -1,
      .quantizes = true,
      .type = r->type,
      .scale = r->scale,
      .zero = r->zero};
}

static float of_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

// As kernels do (kernels/int8/int8_finish.h).
static uint8_t look_up(const cuda_int8_cells_t* c, float f) {
  const float within = fminf(fmaxf(f, c->from), c->to);
  const uint32_t at = bits_of(fmaf(within, c->step, c->shift)) - bits_of(0x1p23F);
  if (at >= (uint32_t)c->n) fail_msg("%a is in cell %u of %d", (double)f, at, c->n);
  return (uint8_t)(f >= c->cells[at].from ? c->cells[at].bytes >> 8 : c->cells[at].bytes);
}

static void compare(const row_t* r, const assay_int8_t* q, const cuda_int8_cells_t* c,
                    const float* f, int64_t n) {
  float ones[ASSAY_INT8_TILE], zeros[ASSAY_INT8_TILE];
  uint8_t want[ASSAY_INT8_TILE];
  for (int64_t i = 0; i < n; i++) ones[i] = 1, zeros[i] = -0.0F;
  const assay_int8_tile_t t = {.sums = f, .factor = ones, .shift = zeros};
  assay_int8_epilogue(q, &t, n, want);
  for (int64_t i = 0; i < n; i++)
    if (f[i] == f[i] && look_up(c, f[i]) != want[i])
      fail_msg("%s by steps of %g: of %a %d, not %d", r->function, (double)r->scale, (double)f[i],
               look_up(c, f[i]), want[i]);
}

// From these bits on, n floats.
static void compare_bits(const row_t* r, const assay_int8_t* q, const cuda_int8_cells_t* c,
                         uint32_t from, int64_t n) {
  float f[ASSAY_INT8_TILE];
  for (int64_t i = 0; i < n; i += ASSAY_INT8_TILE) {
    for (int64_t k = 0; k < ASSAY_INT8_TILE; k++) f[k] = of_bits(from + (uint32_t)(i + k));
    compare(r, q, c, f, ASSAY_INT8_TILE);
  }
}

static void compare_random(const row_t* r, const assay_int8_t* q, const cuda_int8_cells_t* c,
                           uint64_t seed) {
  enum { TILES = 256 };
  const assay_random_t random = assay_random_make(seed, r->function, 0);
  float f[ASSAY_INT8_TILE];
  for (int i = 0; i < TILES; i++) {
    for (int64_t k = 0; k < ASSAY_INT8_TILE; k++) {
      const double u = assay_random_uniform(&random, (uint64_t)(i * ASSAY_INT8_TILE + k));
      f[k] = i % 2 ? of_bits((uint32_t)(u * 0x1p32)) : (float)(u * 16 - 8);
    }
    f[0] = (float)INFINITY, f[1] = -(float)INFINITY;
    compare(r, q, c, f, ASSAY_INT8_TILE);
  }
}

static void bytes_are_those_of_the_definition(void** state) {
  cuda_int8_cells_t* c = NULL;
  const uint64_t seed = test_seed();
  (void)state;
  ok(ASSAY_NEW(&c));
  for (size_t i = 0; i < N_ROWS; i++) {
    const row_t* r = &rows[i];
    const assay_int8_t q = layer_of(r);
    ok(cuda_int8_cells_find(&q, c));
    if ((c->n > 0) != r->has)
      fail_msg("%s by steps of %g has %d cells", r->function, (double)r->scale, c->n);
    if (!c->n) continue;
    for (int k = 0; k < c->n; k++)
      if ((c->cells[k].bytes & 255) != c->cells[k].bytes >> 8)
        compare_bits(r, &q, c, bits_of(c->cells[k].from) - ASSAY_INT8_TILE, 2 * ASSAY_INT8_TILE);
    compare_random(r, &q, c, seed + i);
    if (getenv("ASSAY_FULL")) compare_bits(r, &q, c, 0, INT64_C(1) << 32);
  }
  assay_free(c);
}

// Sums that may become NaN, and ends that read more than the sum, have none.
static void others_have_none(void** state) {
  (void)state;
  const float open = (float)INFINITY;
  cuda_int8_cells_t* c = NULL;
  ok(ASSAY_NEW(&c));
  for (int i = 0; i < 4; i++) {
    assay_int8_t q = layer_of(&rows[0]);
    if (i == 0) q.factor = &open;
    if (i == 1) q.n_sources = 2;
    if (i == 2) q.quantizes = false, q.type = ASSAY_TYPE_FLOAT;
    if (i == 3) q.n_steps = 2;
    ok(cuda_int8_cells_find(&q, c));
    assert_int_equal(c->n, 0);
  }
  assay_free(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(bytes_are_those_of_the_definition),
                                     cmocka_unit_test(others_have_none)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
