// Attention of fp16 or bf16 by wgmma (sm_90a): a group of four warps takes 64 queries of a head, and
// the groups of a block share blocks of keys. The bits of attention_mma.cu: steps of 16 terms, sums
// and weights are the same.
//
// Products of weights with values and those of queries with the next block of keys are asked for one
// after the other, and while they are under way, copies of the values of that block and of the keys
// of the one behind it: these have time until the next scores are weights. Other blocks of a
// multiprocessor have theirs meanwhile.
//
// Options besides those of attention_scores.h and attention_16.h: SIZE: a head's terms up to a
// multiple of 16, at most 128; V_SIZE is a multiple of 32; WHOLE 1: heads are as wide; GROUPS;
// BLOCKS_OF: how many blocks of a multiprocessor find registers; TOGETHER 1: both products are
// under way at once, which takes registers for weights beside those of scores. KEYS is 64, and rows
// of all operands but the result lie in pieces of 16 bytes.
#define DYNAMIC_ALIGNED 1024  // where patterns of eight lines begin
#define EARLY_MASKS MASKS

#include "attention_16.h"
#include "attention_scores.h"
#include "wgmma.h"

#define N_THREADS (128 * GROUPS)
#define QUERIES (64 * GROUPS)
#define PIECE 8
#define LINE 64  // terms of queries and keys
#define LINES (((SIZE) + LINE - 1) / LINE)
#define V_LINE ((V_SIZE) % 64 ? 32 : 64)  // columns of values
#define V_LINES (V_LINE == 64 ? WGMMA_LINE_128 : WGMMA_LINE_64)

#define Q_ELEMENTS (QUERIES * LINES * LINE)
#define K_ELEMENTS (KEYS * LINES * LINE)
#define V_ELEMENTS (KEYS * V_SIZE)

#if KEYS != 64 || V_SIZE % 32
#error "no such block"
#endif

WGMMA_FIRST(multiply_first, T, 64, 0)
WGMMA(multiply_next, T, 64, 0)
WGMMA_LEFT(multiply_weights, T, V_SIZE, 1)

// Where pieces of rows lie, n rows of them: each line's in a block of their own, turned (wgmma.h).
DEVICE int place(int n, int row, int piece) {
  return (piece / 8 * n + row) * LINE + (piece % 8 ^ row % 8) * PIECE;
}
DEVICE int value_place(int row, int piece) {
  const int in_line = piece % (V_LINE / PIECE), turn = V_LINE == 64 ? row & 7 : row >> 1 & 3;
  return (piece / (V_LINE / PIECE) * KEYS + row) * V_LINE + (in_line ^ turn) * PIECE;
}

// Rows [first, first + n) of one side, of `size` elements, as rows of `width`, zeros around them;
// of_values: as wgmma wants values. Of pieces that are not there nothing is read.
DEVICE void load_lines(const attention_side_t* s, const element_t* from, INDEX start, int32_t first,
                       int n, int32_t length, int32_t size, int width, bool of_values,
                       element_t* to) {
  const INDEX step = (INDEX)s->row;
  const int pieces = width / PIECE, rows = N_THREADS / pieces;  // that all threads take at once
  (void)size;
  if (N_THREADS % pieces == 0 && rows % 8 == 0 && n % rows == 0) {
    const int32_t r = THREAD / pieces, piece = THREAD % pieces;
    const element_t* at = from + (start + (first + r) * step + piece * PIECE);
    // Where columns end, no row has any.
    const int32_t left = WHOLE || piece * PIECE < size ? length - first - r : 0;
    to += of_values ? value_place(r, piece) : place(n, r, piece);
    UNROLL
    for (int i = 0; i < n / rows; i++) {
      copy_16(to + i * rows * (of_values ? V_LINE : LINE), at, i * rows < left ? 16 : 0);
      at += rows * step;
    }
    return;
  }
  for (int i = THREAD; i < n * pieces; i += N_THREADS) {
    const int32_t r = i / pieces, piece = i % pieces;
    const bool inside = first + r < length && (WHOLE || piece * PIECE < size);
    copy_16(to + (of_values ? value_place(r, piece) : place(n, r, piece)),
            from + (start + (first + r) * step + piece * PIECE), inside ? 16 : 0);
  }
}

// ---- masks --------------------------------------------------------------------------------------

// Floats of keys that all queries have in common come as keys do.
#define IS_COPIED(i) (KIND(i) == 0 && IS_ALONG_KEYS(i) && !IS_ALONG_QUERIES(i) && IS_PAIRED(i))

// to: KEYS floats for each mask.
DEVICE void copy_masks(const attention_args_t* a, const query_t* row, int32_t key, float* to) {
  (void)a, (void)row, (void)key, (void)to;
  UNROLL
  for (int i = 0; i < MASKS; i++) {
    const int32_t at = THREAD * 2;
    if (!IS_COPIED(i) || at >= KEYS) continue;
    const float* from = GLOBAL(const float, row->masks[i]);
    copy_8(to + i * KEYS + at, from + (key + at), key + at < a->kv_len ? 8 : 0);
  }
}

// Those that are not copied, while products are under way.
DEVICE void read_other_masks(const attention_args_t* a, queries_t* t, int32_t key) {
  const int32_t own = key + LANE % 4 * 2;
  (void)a, (void)t, (void)own;
  UNROLL
  for (int i = 0; i < MASKS; i++)
    if (!IS_COPIED(i)) read_mask(t->rows, i, own, a->kv_len - own, &t->said[i]);
}

DEVICE void read_copied_masks(queries_t* t, const float* from) {
  (void)t, (void)from;
  UNROLL
  for (int i = 0; i < MASKS; i++) {
    if (!IS_COPIED(i)) continue;
    UNROLL
    for (int j = 0; j < KEYS / 8; j++) {
      uint32_t* to = t->said[i].at[0][j];
      READ_8(from + i * KEYS + j * 8 + LANE % 4 * 2, to);
      t->said[i].at[1][j][0] = to[0], t->said[i].at[1][j][1] = to[1];
    }
  }
}

// ---- products -----------------------------------------------------------------------------------

// s: of a thread's two queries, as find_scores has it.
DEVICE void multiply_keys(uint64_t queries, uint64_t keys, float* s) {
  UNROLL
  for (int i = 0; i < SIZE / 16; i++) {
    const uint32_t line = i / 4, in_line = i % 4 * 32;
    const uint64_t x = further(queries, line * QUERIES * LINE * 2 + in_line);
    const uint64_t w = further(keys, line * KEYS * LINE * 2 + in_line);
    if (i)
      multiply_next(s, x, w);
    else
      multiply_first(s, x, w);
  }
}

DEVICE void multiply_values(const uint32_t (*weights)[4], uint64_t values, float* sums) {
  UNROLL
  for (int j = 0; j < KEYS / 16; j++)
    multiply_weights(sums, weights[j], further(values, j * 16 * V_LINE * 2));
}

// Weights as the left side of products: of two matrices of scores each.
DEVICE void round_weights(float (*s)[4], uint32_t (*to)[4]) {
  UNROLL
  for (int j = 0; j < KEYS / 16; j++) UNROLL
  for (int i = 0; i < 4; i++)
    to[j][i] = PAIR(s[2 * j + i / 2][i % 2 * 2], s[2 * j + i / 2][i % 2 * 2 + 1]);
}

// What a block has in shared memory; of keys, values and masks two blocks each.
typedef struct stages {
  element_t *q, *k, *v;
  float* masks;
} stages_t;
DEVICE stages_t find_stages(char* bytes) {
  stages_t s;
  s.q = (element_t*)(void*)(bytes + (DYNAMIC_ALIGNED - shared_address(bytes) % DYNAMIC_ALIGNED) %
                                        DYNAMIC_ALIGNED);
  s.k = s.q + Q_ELEMENTS;
  s.v = s.k + (ONE_BLOCK ? 1 : 2) * K_ELEMENTS;
  s.masks = (float*)(void*)(s.v + (ONE_BLOCK ? 1 : 2) * V_ELEMENTS);
  return s;
}

DEVICE void attend(const attention_args_t* a, const stages_t* s) {
  const element_t* q = GLOBAL(const element_t, a->q.at);
  const element_t* k = GLOBAL(const element_t, a->k.at);
  const element_t* v = GLOBAL(const element_t, a->v.at);
  element_t* y = GLOBAL(element_t, a->y.at);
  uint32_t head, tile;
  find_tile(a, &head, &tile);
  const int32_t first = (int32_t)tile * QUERIES;
  const int32_t end = first + QUERIES < a->q_len ? first + QUERIES : a->q_len;
  const int32_t own = first + THREAD / WARP * 16;
  const uint32_t group = shuffle_u32((uint32_t)THREAD / 128, 0);  // the same for all, visibly
  const uint64_t queries = describe_matrix(
      shared_address(s->q) + group * 64 * LINE * 2, 16, 8 * LINE * 2, WGMMA_LINE_128);
  const uint64_t keys = describe_matrix(shared_address(s->k), 16, 8 * LINE * 2, WGMMA_LINE_128);
  const uint64_t values =
      describe_matrix(shared_address(s->v), KEYS * V_LINE * 2, 8 * V_LINE * 2, V_LINES);
  queries_t t;
  float scores[KEYS / 2];
  float (*const rows)[4] = (float (*)[4])scores;
  uint32_t weights[KEYS / 16][4];
  int32_t low, high;
  seen_keys(a, first, end, &low, &high);
  const starts_t at = find_starts(a, head);
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  int32_t key = ONE_BLOCK ? 0 : low / KEYS * KEYS;
  load_lines(&a->q, q, at.q, first, QUERIES, a->q_len, a->size, SIZE, false, s->q);
  load_lines(&a->k, k, at.k, key, KEYS, a->kv_len, a->size, SIZE, false, s->k);
  begin_queries(a, &at, head, own, &t);
  copy_masks(a, &t.rows[0], key, s->masks);
  COMMIT_COPIES();
  load_lines(&a->v, v, at.v, key, KEYS, a->kv_len, a->v_size, V_SIZE, true, s->v);
  if (!ONE_BLOCK && key + KEYS < high) {
    load_lines(&a->k, k, at.k, key + KEYS, KEYS, a->kv_len, a->size, SIZE, false,
               s->k + K_ELEMENTS);
    copy_masks(a, &t.rows[0], key + KEYS, s->masks + MASKS * KEYS);
  }
  COMMIT_COPIES();
  WAIT_COPIES(1);
  FENCE_ASYNC();
  SYNC();
  begin_sums(&t);
  hold_sums(t.sums[0], V_SIZE / 2);
  WGMMA_FENCE();
  multiply_keys(queries, keys, scores);
  WGMMA_COMMIT();
  ROLLED
  for (uint32_t now = 0; key < high; key += KEYS, now = 1 - now) {
    read_other_masks(a, &t, key);
    WGMMA_WAIT(0);
    hold_sums(scores, KEYS / 2);
    hold_sums(t.sums[0], V_SIZE / 2);
    if (own >= a->q_len) {
      UNROLL
      for (int j = 0; j < KEYS / 16; j++) UNROLL
      for (int i = 0; i < 4; i++) weights[j][i] = 0;
    } else {  // a warp with queries
      read_copied_masks(&t, s->masks + now * (MASKS * KEYS));
      find_scores(a, &t, KEYS, key, own_key(key), false, rows);
      weigh(a, &t, KEYS, rows);
      round_weights(rows, weights);
    }
    // Values of this block and keys of the next one are there; all products before are done, and
    // their memory is free.
    WAIT_COPIES(0);
    FENCE_ASYNC();
    SYNC();
    const bool next = !ONE_BLOCK && key + KEYS < high;
    const uint64_t next_keys = further(keys, (1 - now) * (K_ELEMENTS * 2));
    hold_sums(t.sums[0], V_SIZE / 2);
    WGMMA_FENCE();
    multiply_values(weights, further(values, now * (V_ELEMENTS * 2)), t.sums[0]);
    if (next && TOGETHER) multiply_keys(queries, next_keys, scores);
    WGMMA_COMMIT();
    if (!next) break;
    load_lines(&a->v, v, at.v, key + KEYS, KEYS, a->kv_len, a->v_size, V_SIZE, true,
               s->v + (1 - now) * V_ELEMENTS);
    if (key + 2 * KEYS < high) {
      load_lines(&a->k, k, at.k, key + 2 * KEYS, KEYS, a->kv_len, a->size, SIZE, false,
                 s->k + now * K_ELEMENTS);
      copy_masks(a, &t.rows[0], key + 2 * KEYS, s->masks + now * (MASKS * KEYS));
    }
    COMMIT_COPIES();
    if (TOGETHER) continue;
    WGMMA_WAIT(0);
    hold_sums(t.sums[0], V_SIZE / 2);
    WGMMA_FENCE();
    multiply_keys(queries, next_keys, scores);
    WGMMA_COMMIT();
  }
  WGMMA_WAIT(0);
  hold_sums(t.sums[0], V_SIZE / 2);
  UNROLL
  for (int h = 0; h < 2; h++) {
    const int32_t query = own + LANE / 4 + h * 8;
    const float by = find_factor(a, &t, h);
    if (query < a->q_len) put_row(a, &t, h, by, y, at.y + query * (INDEX)a->y.row);
  }
}

KERNEL_OF_BLOCKS(attention_wgmma, attention_args_t, N_THREADS, BLOCKS_OF) {
#if HAS_WGMMA
  DYNAMIC(char, bytes);
  const stages_t s = find_stages(bytes);
  attend(&a, &s);
#else  // it compiles, and must not run
  (void)a;
#endif
}
