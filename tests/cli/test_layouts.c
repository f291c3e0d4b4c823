// Layouts of buffers, against the index formulas of TensorRT's TensorFormat.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "frontends/trtexec/layouts.h"
#include "frontends/trtexec/specs.h"
#include "seed_case.h"

enum { MAX_RANK = 5, ROUNDS = 12 };

// The status has this text in its message; it is freed. NULL: it is good.
static void expect(assay_status_t st, const char* text, const char* given) {
  const char* message = st ? assay_status_message(st) : "(good)";
  if (!st != !text || (text && !strstr(message, text)))
    fail_msg("'%s': %s; '%s' was expected", given, message, text ? text : "(good)");
  assay_status_free(st);
}

static const trt_layout_t* find(const char* word) { return trt_layout_find(word, strlen(word)); }

// ---- where elements lie -------------------------------------------------------------------------

static int64_t up(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// Element n, c, d, h, w of N C D H W (D = 1 where a layout has none), as documented.
typedef struct place {
  int64_t n, c, d, h, w;
} place_t;

static int64_t chw_n(const place_t* s, const place_t* i, int64_t x) {
  return (((i->n * (up(s->c, x) / x) + i->c / x) * s->h + i->h) * s->w + i->w) * x + i->c % x;
}
static int64_t cdhw_n(const place_t* s, const place_t* i, int64_t x) {
  return ((((i->n * (up(s->c, x) / x) + i->c / x) * s->d + i->d) * s->h + i->h) * s->w + i->w) * x +
         i->c % x;
}
static int64_t hwc_n(const place_t* s, const place_t* i, int64_t x) {
  return ((i->n * s->h + i->h) * s->w + i->w) * up(s->c, x) + i->c;
}
static int64_t dhwc_n(const place_t* s, const place_t* i, int64_t x) {
  return (((i->n * s->d + i->d) * s->h + i->h) * s->w + i->w) * up(s->c, x) + i->c;
}

static const struct {
  const char* word;
  int spatial;
  int64_t x;
  int64_t (*index)(const place_t* sizes, const place_t* at, int64_t x);
} rows[] = {{"chw2", 2, 2, chw_n},    {"chw4", 2, 4, chw_n},  {"chw16", 2, 16, chw_n},
            {"chw32", 2, 32, chw_n},  {"hwc", 2, 1, hwc_n},   {"hwc8", 2, 8, hwc_n},
            {"hwc16", 2, 16, hwc_n},  {"dhwc", 3, 1, dhwc_n}, {"dhwc8", 3, 8, dhwc_n},
            {"cdhw32", 3, 32, cdhw_n}};
enum { N_ROWS = sizeof rows / sizeof *rows };

// The dimensions as N C D H W: what lies before the channels is N.
static place_t sizes_of(int rank, const int64_t* dims, int spatial) {
  place_t s = {1, dims[rank - spatial - 1], 1, dims[rank - 2], dims[rank - 1]};
  if (spatial == 3) s.d = dims[rank - 3];
  for (int d = 0; d < rank - spatial - 1; d++) s.n *= dims[d];
  return s;
}

typedef struct buffers {
  uint8_t *plain, *buffer, *back;
  size_t n, n_padded, width;
} buffers_t;

static uint8_t byte_of(size_t i) { return (uint8_t)(1 + i % 251); }  // never 0

// Each element lies where the formula says, and there is nothing but zeros elsewhere.
static void check_put(size_t row, const buffers_t* b, const place_t* s) {
  size_t k = 0;
  uint8_t* left = malloc(b->n_padded * b->width + 1);
  assert_non_null(left);
  memcpy(left, b->buffer, b->n_padded * b->width);
  for (place_t i = {0}; i.n < s->n; i.n++)
    for (i.c = 0; i.c < s->c; i.c++)
      for (i.d = 0; i.d < s->d; i.d++)
        for (i.h = 0; i.h < s->h; i.h++)
          for (i.w = 0; i.w < s->w; i.w++, k++) {
            const int64_t at = rows[row].index(s, &i, rows[row].x);
            assert_in_range(at, 0, b->n_padded - 1);
            assert_memory_equal(&left[(size_t)at * b->width], &b->plain[k * b->width], b->width);
            memset(&left[(size_t)at * b->width], 0, b->width);
          }
  assert_int_equal(k, b->n);
  for (size_t i = 0; i < b->n_padded * b->width; i++) assert_int_equal(left[i], 0);
  free(left);
}

// Reading brings the rows back, whatever the padding holds.
static void check_take(size_t row, buffers_t* b, int rank, const int64_t* dims) {
  const trt_layout_t* l = find(rows[row].word);
  for (size_t i = 0; i < b->n_padded * b->width; i++)
    if (!b->buffer[i]) b->buffer[i] = 0xee;
  memset(b->back, 0xdd, b->n * b->width + 1);
  trt_layout_take(l, rank, dims, b->width, b->buffer, b->back);
  assert_memory_equal(b->back, b->plain, b->n * b->width);
  assert_int_equal(b->back[b->n * b->width], 0xdd);
}

static void check_one(size_t row, int rank, const int64_t* dims, size_t width) {
  const trt_layout_t* l = find(rows[row].word);
  const place_t s = sizes_of(rank, dims, rows[row].spatial);
  int64_t n_padded = -1;
  assert_true(trt_layout_elems(l, rank, dims, &n_padded));
  assert_int_equal(n_padded, s.n * up(s.c, rows[row].x) * s.d * s.h * s.w);
  buffers_t b = {
      .n = (size_t)(s.n * s.c * s.d * s.h * s.w), .n_padded = (size_t)n_padded, .width = width};
  b.plain = malloc(b.n * width + 1);
  b.back = malloc(b.n * width + 1);
  b.buffer = malloc(b.n_padded * width + 1);
  assert_true(b.plain && b.back && b.buffer);
  for (size_t i = 0; i < b.n * width; i++) b.plain[i] = byte_of(i);
  memset(b.buffer, 0xcc, b.n_padded * width + 1);
  trt_layout_put(l, rank, dims, width, b.plain, b.buffer);
  assert_int_equal(b.buffer[b.n_padded * width], 0xcc);
  check_put(row, &b, &s);
  check_take(row, &b, rank, dims);
  free(b.plain);
  free(b.back);
  free(b.buffer);
}

static void elements(void** state) {
  const uint64_t seed = test_seed();
  const assay_random_t r = assay_random_make(seed, "layouts", 0);
  uint64_t drawn = 0;
  (void)state;
  for (size_t row = 0; row < N_ROWS; row++)
    for (int rank = rows[row].spatial + 1; rank <= MAX_RANK; rank++)
      for (int round = 0; round < ROUNDS; round++) {
        int64_t dims[MAX_RANK];
        for (int d = 0; d < rank; d++) {
          const bool channels = d == rank - rows[row].spatial - 1;
          dims[d] = (int64_t)((channels ? 70 : 5) * assay_random_uniform(&r, drawn++));
          if (round) dims[d]++;  // the first ones may be empty
        }
        check_one(row, rank, dims, (size_t)1 << (round % 4));
      }
}

// Rows of any rank are what they were.
static void plain(void** state) {
  static const int64_t dims[] = {2, 3, 1, 2, 3};
  const trt_layout_t* l = find("chw");
  (void)state;
  assert_ptr_equal(l, trt_layouts);
  for (int rank = 0; rank <= MAX_RANK; rank++) {
    uint8_t from[36], to[36] = {0}, back[36] = {0};
    int64_t n = 0, want = 1;
    for (int d = 0; d < rank; d++) want *= dims[d];
    assert_true(trt_layout_elems(l, rank, dims, &n));
    assert_int_equal(n, want);
    for (size_t i = 0; i < sizeof from; i++) from[i] = byte_of(i);
    trt_layout_put(l, rank, dims, 1, from, to);
    trt_layout_take(l, rank, dims, 1, to, back);
    assert_memory_equal(from, to, (size_t)n);
    assert_memory_equal(from, back, (size_t)n);
  }
}

static void too_large(void** state) {
  static const int64_t wide[] = {1, INT64_MAX - 3, 1, 1}, many[] = {1, 1, INT64_MAX / 4, 1},
                       negative[] = {1, -1, 1, 1};
  int64_t n;
  (void)state;
  assert_false(trt_layout_elems(find("chw4"), 4, wide, &n));
  assert_false(trt_layout_elems(find("hwc8"), 4, many, &n));
  assert_false(trt_layout_elems(find("hwc8"), 4, negative, &n));
  assert_false(trt_layout_elems(find("hwc"), 2, many, &n));
  assert_false(trt_layout_elems(find("dhwc"), 3, many, &n));
}

// ---- words --------------------------------------------------------------------------------------

static void choices(void** state) {
  static const struct {
    const char* text;
    int rank;
    assay_type_t type;
    bool rows_first;
    const char *word, *error;
  } cases[] = {
      {"chw", 0, ASSAY_TYPE_FLOAT, false, "chw", NULL},
      {"chw", -1, ASSAY_TYPE_STRING, false, "chw", NULL},
      {"chw4+chw", 4, ASSAY_TYPE_FLOAT, false, "chw4", NULL},
      {"chw4+chw", 4, ASSAY_TYPE_FLOAT, true, "chw", NULL},
      {"chw4+hwc", 4, ASSAY_TYPE_FLOAT, true, "chw4", NULL},
      {"chw4+chw", 2, ASSAY_TYPE_FLOAT, false, "chw", NULL},
      {"dhwc8+hwc8", 3, ASSAY_TYPE_FLOAT16, false, "hwc8", NULL},
      {"chw2+chw", 4, ASSAY_TYPE_INT4, false, "chw", NULL},
      {"hwc", 2, ASSAY_TYPE_FLOAT, false, NULL,
       "--x: 'v' cannot be in layout hwc: it has fewer than 3 dim"},
      {"dhwc+cdhw32", 3, ASSAY_TYPE_FLOAT, false, NULL,
       "layout dhwc+cdhw32: it has fewer than 4 dim"},
      {"chw2", 4, ASSAY_TYPE_INT4, false, NULL, "no whole bytes"},
      {"chw2", 4, ASSAY_TYPE_STRING, false, NULL, "no whole bytes"},
      {"chw2", -1, ASSAY_TYPE_FLOAT, false, NULL, "is not known"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const trt_layout_t* l = NULL;
    expect(trt_layouts_check("--x", cases[i].text), NULL, cases[i].text);
    expect(trt_layout_choose("--x", cases[i].text, "v", cases[i].rank, cases[i].type,
                             cases[i].rows_first, &l),
           cases[i].error, cases[i].text);
    if (cases[i].word) assert_string_equal(l->word, cases[i].word);
  }
  expect(trt_layouts_check("--x", "chw+dla_hwc4"), "'dla_hwc4': there is no DLA", "dla_hwc4");
  expect(trt_layouts_check("--x", "chw+"), "'' is not a layout: chw, chw2", "chw+");
  expect(trt_layouts_check("--x", "chw3"), "'chw3' is not a layout", "chw3");
}

// As tools that read layer information look for them.
static void reported(void** state) {
  static const char* const texts[][2] = {
      {"chw", "Row major linear FP16"},
      {"chw2", "Two wide channel vectorized row major FP16 format"},
      {"chw4", "Four wide channel vectorized row major FP16 format"},
      {"chw16", "Sixteen wide channel vectorized row major FP16 format"},
      {"chw32", "Thirty-two wide channel vectorized row major FP16 format"},
      {"hwc", "Channel major FP16 format"},
      {"hwc8", "Channel major FP16 format where channel % 8 == 0"},
      {"hwc16", "Channel major FP16 format where channel % 16 == 0"},
      {"dhwc", "Channel major FP16 format with 3 spatial dimensions"},
      {"dhwc8", "Channel major FP16 format where channel % 8 == 0 with 3 spatial dimensions"},
      {"cdhw32",
       "Thirty-two wide channel vectorized row major FP16 format with 3 spatial dimensions"},
  };
  size_t n = 0;
  (void)state;
  while (trt_layouts[n].word) n++;
  assert_int_equal(n, sizeof texts / sizeof *texts);
  for (size_t i = 0; i < n; i++) {
    assay_str_t text = {0};
    trt_layout_report(&text, find(texts[i][0]), "FP16");
    assert_string_equal(assay_str_get(&text), texts[i][1]);
    assay_str_deinit(&text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(elements), cmocka_unit_test(plain),
                                     cmocka_unit_test(too_large), cmocka_unit_test(choices),
                                     cmocka_unit_test(reported)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
