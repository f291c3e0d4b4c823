// Means over all places of inputs whose channels lie last (GlobalAveragePool, ReduceMean), read in
// their own type, where the CPU has AVX-512.
//
// Places are cut into chunks, as many as their number says. Each sum is one chain of additions
// in float32 over a chunk's places in order, and then one over the chunks; then comes a
// division. Threads share out the chunks, so that each reads what lies in its own cache, and
// leaves it there, where layers that take places before and after do so, too.
#include <string.h>

#include "backends/constants.h"
#include "backends/cpu/data/copies.h"
#include "backends/cpu/pointwise/convert.h"
#include "backends/cpu/tactic.h"
#include "backends/cpu/threads.h"
#include "base/alloc.h"

enum {
  LANES = 16,
  VECTORS = 4,
  BLOCK = VECTORS * LANES,
  CHUNKS = 16,  // at most,
  PLACES = 16   // of so many places at least
};

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))
#define UNROLL _Pragma("GCC unroll 4")

static bool has_vectors(void) {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

// type is a constant where this is inlined.
TARGET __attribute__((always_inline)) static inline void sums(assay_type_t type, const char* x,
                                                              int64_t places, int64_t step,
                                                              int64_t columns, float* to) {
  __m512 sum[VECTORS];
  __mmask16 mask[VECTORS];
  const int elem = type == ASSAY_TYPE_FLOAT ? 4 : 2;
  UNROLL for (int v = 0; v < VECTORS; v++) {
    const int64_t n = columns - v * LANES;
    mask[v] = n >= LANES ? 0xffff : n <= 0 ? 0 : (__mmask16)((1u << n) - 1);
    sum[v] = _mm512_setzero_ps();
  }
  for (int64_t i = 0; i < places; i++, x += step * elem) UNROLL for (int v = 0; v < VECTORS; v++) {
      const void* at = x + v * LANES * elem;
      __m512 y;
      if (type == ASSAY_TYPE_FLOAT) {
        y = _mm512_maskz_loadu_ps(mask[v], at);
      } else {
        const __m256i h = _mm256_maskz_loadu_epi16(mask[v], at);
        y = type == ASSAY_TYPE_FLOAT16
                ? _mm512_cvtph_ps(h)
                : _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
      }
      sum[v] = _mm512_add_ps(sum[v], y);
    }
  UNROLL for (int v = 0; v < VECTORS; v++) _mm512_storeu_ps(to + v * LANES, sum[v]);
}

// Sums of up to BLOCK columns of rows that lie `step` elements apart.
TARGET static void sum_block(assay_type_t type, const char* x, int64_t places, int64_t step,
                             int64_t columns, float* to) {
  if (type == ASSAY_TYPE_FLOAT)
    sums(ASSAY_TYPE_FLOAT, x, places, step, columns, to);
  else if (type == ASSAY_TYPE_FLOAT16)
    sums(ASSAY_TYPE_FLOAT16, x, places, step, columns, to);
  else
    sums(ASSAY_TYPE_BFLOAT16, x, places, step, columns, to);
}
#else
static bool has_vectors(void) { return false; }
static void sum_block(assay_type_t type, const char* x, int64_t places, int64_t step,
                      int64_t columns, float* to) {
  (void)type, (void)x, (void)places, (void)step, (void)columns, (void)to;
}
#endif

typedef struct means {
  assay_kernel_t base;
  int input;
  assay_type_t type;
  int64_t samples, places, channels, chunks;
} means_t;

// Sums of a chunk; room for whole blocks is after them.
static void sum_chunk(const means_t* k, const char* x, int64_t i, float* to) {
  const int64_t sample = i / k->chunks, s = i % k->chunks;
  const int64_t first = k->places * s / k->chunks, end = k->places * (s + 1) / k->chunks;
  const int64_t elem = k->type == ASSAY_TYPE_FLOAT ? 4 : 2;
  x += (sample * k->places + first) * k->channels * elem;
  for (int64_t c = 0; c < k->channels; c += BLOCK)
    sum_block(k->type, x + c * elem, end - first, k->channels,
              k->channels - c < BLOCK ? k->channels - c : BLOCK, to + c);
}

static int64_t padded(int64_t n) { return (n + BLOCK - 1) / BLOCK * BLOCK; }

static void add_up(const means_t* k, float* sums, int64_t sample, void* y) {
  const int64_t step = padded(k->channels);
  float* to = sums + sample * k->chunks * step;
  for (int64_t s = 1; s < k->chunks; s++)
    for (int64_t c = 0; c < k->channels; c++) to[c] += to[s * step + c];
  for (int64_t c = 0; c < k->channels; c++) to[c] /= (float)k->places;
  cpu_narrow(to, k->channels, k->base.out[0].type, sample * k->channels, y);
}

static assay_status_t run(assay_kernel_t* base, const void* const* in, void* const* out,
                          void* scratch) {
  const means_t* k = (const means_t*)base;
  const int64_t all = k->samples * k->chunks, step = padded(k->channels);
  // As much work for each element as in the product with these means that often follows: layers
  // that are run by as many threads find their elements near.
  const int parts = cpu_threads(3 * k->samples * k->places * step);
  float* sums = scratch;
#pragma omp parallel for schedule(static) num_threads(parts) if (parts > 1)
  for (int64_t i = 0; i < all; i++) sum_chunk(k, in[k->input], i, sums + i * step);
  for (int64_t i = 0; i < k->samples; i++) add_up(k, sums, i, out[0]);
  return NULL;
}

static void destroy(assay_kernel_t* k) { assay_free(k); }

// Whether the axes are all but the first two; they are an attribute or, in later versions, an
// input.
static bool reads_places(const assay_sized_layer_t* l, const assay_node_t* n, int rank) {
  int64_t axes[ASSAY_KERNEL_RANK];
  int count;
  uint64_t seen = 0;
  if (strcmp(n->op_type, "GlobalAveragePool") == 0) return true;
  if (strcmp(n->op_type, "ReduceMean") != 0 ||
      !assay_known_list(l, n, "axes", 1, ASSAY_KERNEL_RANK, axes, &count) || count < 1)
    return false;
  for (int i = 0; i < count; i++) {
    const int d = assay_known_axis(axes[i], rank);
    if (d < 0) return false;
    seen |= UINT64_C(1) << d;
  }
  return seen == (UINT64_C(1) << rank) - 4;
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  const assay_node_t* n = l->layer->nodes[0];
  const assay_operand_t* x = n->n_inputs ? assay_sized_input(l, n->inputs[0]) : NULL;
  if (l->layer->n_nodes != 1 || *n->domain || l->n_out != 1 || !l->out[0].value || !x || !x->size ||
      x->rank < 3 || !assay_type_is_kernel_float(x->type) || x->type != l->out[0].type ||
      !has_vectors() || !reads_places(l, n, x->rank) || x->dims[0] * x->dims[1] != l->out[0].size)
    return NULL;
  means_t* k = NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .run = run, .destroy = destroy};
  k->input = (int)(x - l->in);
  k->type = x->type;
  k->base.in[k->input] = (assay_storage_t){x->type, ASSAY_LAYOUT_CHANNELS_LAST};
  k->base.out[0] = (assay_storage_t){l->out[0].type, ASSAY_LAYOUT_CHANNELS_LAST};
  k->samples = x->dims[0];
  k->channels = x->dims[1];
  k->places = x->size / (k->samples * k->channels);
  k->chunks = k->places / PLACES < CHUNKS ? k->places / PLACES : CHUNKS;
  if (k->chunks < 1) k->chunks = 1;
  k->base.scratch = (size_t)(k->samples * k->chunks * padded(k->channels)) * sizeof(float);
  *out = &k->base;
  return NULL;
}

const assay_tactic_t cpu_tactic_mean_pool = {
    .name = "mean_pool",
    .source = "assay",
    .make = make,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .by_definition = true,
                 .function_ulps = 2},
};
