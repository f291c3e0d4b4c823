// Attention of a query or two, as in a step of a decoder: keys and values are read once, where they
// lie. To pack them first, as for more queries (attention_run.c), takes longer than the products.
#include "backends/cpu/attention/attention.h"
#include "backends/cpu/gemm/gemm.h"
#include "base/target.h"

#define CLONES ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")

enum { LANES = 16 };

// Lane j sums terms j, j + LANES, ...; then halves are added. The same bits on any CPU.
CLONES
static float dot(const float* a, const float* b, int64_t n) {
  float lanes[LANES] = {0};
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES)
    for (int j = 0; j < LANES; j++) lanes[j] += a[i + j] * b[i + j];
  for (int j = 0; i + j < n; j++) lanes[j] += a[i + j] * b[i + j];
  for (int half = LANES / 2; half; half /= 2)
    for (int j = 0; j < half; j++) lanes[j] += lanes[j + half];
  return lanes[0];
}

CLONES
static void add_weighted(float* o, int64_t n, float weight, const float* v) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) o[i] += weight * v[i];
}

// A row of n elements as floats: where it lies, or a copy in `room`.
static const float* read_row(const attention_t* k, const attention_view_t* v, const void* const* in,
                             int64_t at, int64_t n, float* room) {
  if (v->type == ASSAY_TYPE_FLOAT && v->column == 1) return (const float*)in[v->index] + at;
  attention_copy_row(k, v, in, at, n, room);
  return room;
}

void attention_few_scores(const attention_t* k, const attention_tile_t* t, int64_t key, int64_t n) {
  const attention_view_t* v = &k->layer.k;
  const float* q = (const float*)(const void*)t->q;
  const int64_t start = attention_head_start(k, v, t->head) + key * v->row;
  for (int64_t j = 0; j < n; j++) {
    const float* row = read_row(k, v, t->in, start + j * v->row, k->layer.size, t->room);
    for (int64_t i = 0; i < t->rows; i++)
      t->s[i * ATTENTION_KEYS + j] = dot(q + i * t->q_step, row, k->layer.size);
  }
}

void attention_few_values(const attention_t* k, const attention_tile_t* t, int64_t key, int64_t n) {
  const attention_view_t* v = &k->layer.v;
  const int64_t width = attention_padded(k->layer.v_size, CPU_PANEL);
  const int64_t start = attention_head_start(k, v, t->head) + key * v->row;
  for (int64_t i = 0; i < t->rows && key == t->begin; i++)
    for (int64_t c = 0; c < width; c++) t->o[i * width + c] = 0;
  for (int64_t j = 0; j < n; j++) {
    const float* row = read_row(k, v, t->in, start + j * v->row, k->layer.v_size, t->room);
    for (int64_t i = 0; i < t->rows; i++)
      add_weighted(t->o + i * width, k->layer.v_size, t->s[i * ATTENTION_KEYS + j], row);
  }
}
