// Where heads and masks of attention lie (backends/cuda/attention/places.c): as kernels count them,
// beside all dimensions one by one.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka wants those before it.
#include <cmocka.h>

#include "backends/cuda/attention/places.h"

static void numbers_are_divided(void** state) {
  (void)state;
  for (int64_t count = 1; count <= INT32_MAX; count += count < 3000 ? 1 : count / 97) {
    const divisor_t d = divisor_of((uint32_t)count);
    const int64_t most = INT32_MAX / count;
    for (int64_t m = 0; m <= most; m += m < 20 || m == most ? 1 : (most - m) / 7 + 1)
      for (int64_t n = m * count - 1; n <= m * count + 1; n++)
        if (n >= 0 && n <= INT32_MAX && DIVIDED((uint32_t)n, d) != n / count)
          fail_msg("%lld / %lld is %u", (long long)n, (long long)count, DIVIDED((uint32_t)n, d));
  }
}

enum { N_MASKS = 2 };

typedef struct row {
  const char* name;
  int n_batch;
  int64_t batch[4], q[4];  // distances of queries
  int64_t q_len, period;
  bool windowed;
  struct {
    int rank;  // 0: no mask
    int64_t dims[5], strides[5];
  } masks[N_MASKS];
  int digits;
  bool grouped, walked;
  unsigned along_queries, paired;
} row_t;

#define HEADS_OF(images, windows, heads) \
  { (images) * (windows), heads }
static const row_t rows[] = {
    {"one head", 2, {1, 1}, {640, 64}, 10, 10, false, {{0}}, 0, false, false, 0, 0},
    {"heads side by side", 2, {3, 4}, {2560, 640}, 10, 10, false, {{0}}, 1, false, false, 0, 0},
    {"heads in rows", 2, {3, 4}, {2560, 64}, 10, 10, false, {{0}}, 2, false, false, 0, 0},
    {"a row of keys",
     2,
     {3, 4},
     {2560, 64},
     10,
     10,
     false,
     {{3, {3, 4, 10}, {98, 0, 0}}},
     2,
     false,
     false,
     0,
     1},
    {"windows",
     2,
     HEADS_OF(2, 4, 3),
     {4704, 32},
     49,
     49,
     false,
     {{3, {8, 3, 49}, {0, 2401, 49}}, {4, {2, 4, 3, 49}, {0, 2401, 0, 49}}},
     3,
     false,
     false,
     3,
     0},
    {"windows of one image",
     2,
     HEADS_OF(1, 4, 3),
     {4704, 32},
     49,
     0,
     false,
     {{3, {4, 3, 49}, {0, 2450, 50}}, {4, {1, 4, 3, 49}, {0, 2450, 0, 50}}},
     2,
     false,
     false,
     3,
     3},
    {"a matrix for all",
     2,
     {2, 4},
     {2560, 64},
     12,
     12,
     false,
     {{3, {2, 4, 12}, {0, 0, 98}}},
     2,
     false,
     false,
     1,
     1},
    {"shared keys, rows side by side",
     2,
     {2, 4},
     {2560, 640},
     20,
     10,
     false,
     {{3, {2, 8, 10}, {7840, 980, 98}}},
     1,
     false,
     false,
     1,
     1},
    {"shared keys, rows for all",
     2,
     {2, 4},
     {2560, 640},
     20,
     10,
     false,
     {{3, {2, 8, 10}, {0, 0, 98}}},
     1,
     true,
     false,
     1,
     1},
    {"shared keys in windows",
     2,
     {2, 4},
     {2560, 640},
     20,
     10,
     true,
     {{3, {2, 8, 10}, {7840, 980, 98}}},
     1,
     true,
     false,
     1,
     1},
    {"shared keys, a row for each head",
     2,
     {2, 4},
     {2560, 640},
     20,
     10,
     false,
     {{3, {2, 8, 10}, {784, 98, 0}}},
     1,
     true,
     false,
     1,
     1},
    {"other dimensions",
     2,
     {2, 3},
     {1920, 640},
     10,
     10,
     false,
     {{3, {3, 2, 10}, {980, 490, 49}}},
     1,
     false,
     false,
     1,
     0},
    {"other dimensions, cut",
     2,
     {2, 3},
     {1920, 640},
     10,
     10,
     false,
     {{3, {3, 2, 10}, {980, 0, 98}}},
     2,
     false,
     false,
     1,
     1},
    {"dimensions that do not divide",
     2,
     {2, 3},
     {1920, 64},
     10,
     10,
     false,
     {{3, {3, 2, 10}, {980, 0, 98}}},
     2,
     false,
     true,
     1,
     1},
    {"queries in two dimensions",
     2,
     {2, 3},
     {1920, 640},
     10,
     10,
     false,
     {{4, {2, 3, 5, 2}, {0, 0, 98, 0}}},
     1,
     false,
     true,
     1,
     1},
};

static attention_layer_t layer_of(const row_t* r) {
  attention_layer_t a = {.n_batch = r->n_batch,
                         .heads = 1,
                         .q_len = r->q_len,
                         .kv_len = 98,
                         .size = 64,
                         .v_size = 64,
                         .windowed = r->windowed,
                         .period = r->period};
  for (int d = 0; d < r->n_batch; d++) {
    a.batch[d] = r->batch[d];
    a.q.batch[d] = r->q[d];
    a.heads *= r->batch[d];
  }
  for (int i = 0; i < N_MASKS && r->masks[i].rank; i++) {
    attention_mask_t* m = &a.masks[a.n_masks++];
    *m = (attention_mask_t){.rank = r->masks[i].rank, .key = 1};
    for (int d = 0; d < m->rank; d++) {
      m->dims[d] = r->masks[i].dims[d];
      m->strides[d] = r->masks[i].strides[d];
    }
  }
  return a;
}

static int64_t one_by_one(int64_t number, int n, const int64_t* dims, const int64_t* strides) {
  int64_t at = 0;
  for (int d = n - 1; d >= 0; d--) {
    at += number % dims[d] * strides[d];
    number /= dims[d];
  }
  return at;
}

// As find_starts and find_query do (kernels/attention/attention.h).
static int64_t counted(const attention_args_t* args, int n, uint32_t head, const int64_t* strides) {
  int64_t at = 0;
  for (int d = n - 1; d >= 0; d--) {
    const uint32_t rest = d ? DIVIDED(head, args->batch[d]) : 0;
    at += (int64_t)(head - rest * args->batch[d].size) * strides[d];
    head = rest;
  }
  return at;
}

static void check_places(const row_t* r, const attention_layer_t* a, const attention_args_t* args,
                         const attention_places_t* p) {
  for (int64_t head = 0; head < a->heads; head++) {
    const int64_t at = counted(args, p->n_batch, (uint32_t)head, args->q.batch);
    if (at != one_by_one(head, a->n_batch, a->batch, a->q.batch))
      fail_msg("%s: head %lld", r->name, (long long)head);
    for (int64_t i = 0; i < a->q_len * a->n_masks && !p->walked; i++) {
      const attention_mask_t* m = &a->masks[i / a->q_len];
      const attention_args_mask_t* to = &args->masks[i / a->q_len];
      const int64_t query = i % a->q_len, group = DIVIDED((uint32_t)query, args->period);
      const int64_t own = query - group * args->period.size;
      const int64_t got = counted(args, p->n_batch, (uint32_t)head, to->strides) +
                          group * to->group + own * to->row;
      if (got != one_by_one(head * a->q_len + query, m->rank, m->dims, m->strides))
        fail_msg("%s: query %lld of head %lld", r->name, (long long)query, (long long)head);
    }
  }
}

static void places_are_those_of_all_dimensions(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const row_t* r = &rows[i];
    const attention_layer_t a = layer_of(r);
    attention_args_t args = {0};
    const attention_places_t p = cuda_attention_places(&a, &args);
    check_places(r, &a, &args, &p);
    if (p.n_batch != r->digits || p.grouped != r->grouped || p.walked != r->walked ||
        p.along_queries != r->along_queries || p.paired != r->paired || p.wide)
      fail_msg("%s: %d dimensions, grouped %d, walked %d, along queries %u, paired %u, wide %d",
               r->name, p.n_batch, p.grouped, p.walked, p.along_queries, p.paired, p.wide);
  }
}

// As large as 32 bits count, and larger by one step.
static void large_operands_are_counted_in_64_bits(void** state) {
  (void)state;
  for (int mask = 0; mask < 2; mask++)
    for (int wide = 0; wide < 2; wide++) {
      attention_layer_t a = layer_of(&rows[3]);
      attention_args_t args = {0};
      int64_t* stride = mask ? &a.masks[0].strides[0] : &a.q.batch[0];
      *stride = INT32_MAX / (mask ? 4 : 1) / (wide ? 2 : 4);
      assert_int_equal(cuda_attention_places(&a, &args).wide, wide);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(numbers_are_divided),
                                     cmocka_unit_test(places_are_those_of_all_dimensions),
                                     cmocka_unit_test(large_operands_are_counted_in_64_bits)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
