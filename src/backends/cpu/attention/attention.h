// Attention as one kernel (backends/layers/attention.h): operands read where they lie, scores in
// tiles that stay in the cache.
//
// For each batch and head the keys are packed, and a tile of queries after the other takes them in
// blocks; from one block to the next the rows' maxima may grow, and what has been summed is scaled
// down to the new ones (online softmax: M. Milakov and N. Gimelshein, Online normalizer calculation
// for softmax, 2018; T. Dao et al., FlashAttention, 2022). Blocks follow from sizes only, each row
// of queries stands by itself: the same bits for any number of threads and any batch.
#ifndef ASSAY_BACKENDS_CPU_ATTENTION_ATTENTION_H_
#define ASSAY_BACKENDS_CPU_ATTENTION_ATTENTION_H_

#include "backends/cpu/tactic.h"
#include "backends/layers/attention.h"

// The least x whose exp(x) is not subnormal. Of those below 0 is taken: beside a row's largest
// weight, 1, the others are nothing, and multiply-adds of subnormal numbers take some CPUs a
// hundred times as long.
#define ATTENTION_MIN_EXPONENT (-0x1.5d589ep6F)

enum {
  ATTENTION_TILE = 64,   // the most queries of a tile
  ATTENTION_KEYS = 512,  // keys of a block
  ATTENTION_PARTS = 64,  // the most pieces of work at a time
  ATTENTION_FEW = 2,     // queries for which keys and values are not packed
};

typedef struct attention attention_t;

// The keys [low, high) of a block that a row of queries sees.
typedef struct attention_span {
  int64_t low, high;
} attention_span_t;

// Where a tile is computed. Packed rows are counted in units of 4 bytes: a float, or two neighbours
// of bf16.
typedef struct attention_tile {
  const void* const* in;
  int64_t head, first, rows;      // queries
  const uint32_t *keys, *values;  // packed
  const uint32_t* q;              // rows of the queries
  int64_t q_step;                 // from one to the next, in units
  int64_t begin;                  // the first key that is looked at
  float *s, *o;                   // [rows, ATTENTION_KEYS], [rows, padded v_size]
  float* room;                    // with few queries: for a row of keys or values
  float m[ATTENTION_TILE], sum[ATTENTION_TILE];
} attention_tile_t;

// What keys, values and weights are multiplied in.
typedef struct attention_kind {
  assay_type_t type;
  int per_unit;  // elements
  // One block more of keys for a tile: scores, masks, exponentials, weighted sums.
  void (*block)(const attention_t* k, attention_tile_t* t, int64_t key, int64_t n);
  // `per_unit` rows of values, NULL after the last one, of v_size elements each: into row `unit`
  // of the panels.
  void (*pack_values)(const attention_t* k, const void* const* rows, int64_t unit, uint32_t* to);
} attention_kind_t;

struct attention {
  assay_kernel_t base;
  const attention_kind_t* kind;
  attention_layer_t layer;
  bool odd_masks;  // a cap, or masks that do not just add numbers that lie side by side
  bool few;        // queries: keys and values are read where they lie
  int64_t tile, tiles;
  // In units: a row of queries, keys and values of a head, what a part works with.
  int64_t q_units, k_packed, v_packed, part;
};

// The best for the CPU (attention_avx512.c); bf16: NULL where it has no such products.
const attention_kind_t* attention_fp32(void);
const attention_kind_t* attention_bf16(void);
extern const attention_kind_t attention_plain;  // float32, for any CPU

// Parts of kinds in float32: products of a block, and values as they are packed.
void attention_first_product(const attention_t* k, const attention_tile_t* t, int64_t key,
                             int64_t n);
void attention_second_product(const attention_t* k, const attention_tile_t* t, int64_t key,
                              int64_t n);
void attention_pack_row(const attention_t* k, const void* const* rows, int64_t unit, uint32_t* to);

// The same with few queries (attention_few.c).
void attention_few_scores(const attention_t* k, const attention_tile_t* t, int64_t key, int64_t n);
void attention_few_values(const attention_t* k, const attention_tile_t* t, int64_t key, int64_t n);
// Element `at` of an operand.
static inline const char* attention_element(const attention_view_t* v, const void* const* in,
                                            int64_t at) {
  return (const char*)in[v->index] + at * (assay_type_bits(v->type) / 8);
}
// A row of n elements from `at` on, in the kind's type, where it does not lie so.
void attention_copy_row(const attention_t* k, const attention_view_t* v, const void* const* in,
                        int64_t at, int64_t n, void* to);
// Where a head's matrix begins.
static inline int64_t attention_head_start(const attention_t* k, const attention_view_t* v,
                                           int64_t head) {
  int64_t at = v->at;
  for (int d = k->layer.n_batch - 1; d >= 0; d--) {
    at += head % k->layer.batch[d] * v->batch[d];
    head /= k->layer.batch[d];
  }
  return at;
}

// Scales a row of scores, caps it and puts the masks on.
void attention_masks(const attention_t* k, const attention_tile_t* t, int64_t row, int64_t key,
                     int64_t n, float* s);
// Where mask i begins for a row of the tile and a key.
int64_t attention_mask_at(const attention_t* k, const attention_tile_t* t, int i, int64_t row,
                          int64_t key);
attention_span_t attention_span(const attention_t* k, const attention_tile_t* t, int64_t row,
                                int64_t key, int64_t n);
static inline int64_t attention_padded(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

assay_status_t attention_run(assay_kernel_t* k, const void* const* in, void* const* out,
                             void* scratch);
// Sizes of scratch memory; false: too large.
bool attention_sizes(attention_t* k);

#endif  // ASSAY_BACKENDS_CPU_ATTENTION_ATTENTION_H_
