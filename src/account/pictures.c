// What a person looks at: for every value that a layer gives, histograms of its elements and
// errors, and a small map of where in the tensor they are.
#include "account/pictures.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/functions.h"

static void picture_free(assay_picture_t* p) {
  if (!p) return;
  assay_free(p->truth_map.code);
  assay_free(p->own_map.code);
  assay_free(p->total_map.code);
  assay_free(p);
}

void assay_pictures_deinit(assay_pictures_t* p) {
  for (size_t i = 0; i < p->n; i++) picture_free(p->of_value[i]);
  assay_free(p->of_value);
  assay_status_free(p->status);
  *p = (assay_pictures_t){0};
}

assay_status_t assay_pictures_take_status(assay_pictures_t* p) {
  assay_status_t st = p->status;
  p->status = NULL;
  return st;
}

const assay_picture_t* assay_pictures_get(const assay_pictures_t* p, const assay_value_t* v) {
  return p && v && (size_t)v->id < p->n ? p->of_value[v->id] : NULL;
}

// ---- histograms ---------------------------------------------------------------------------------

// Of a finite magnitude above 0.
static int bin_of(double magnitude) {
  uint64_t bits;
  memcpy(&bits, &magnitude, sizeof bits);
  const int k = (int)(bits >> 52 & 0x7ff) - 1023 - ASSAY_PICTURE_LOW;
  return k < 0 ? 0 : k >= ASSAY_PICTURE_BINS ? ASSAY_PICTURE_BINS - 1 : k;
}

static void count_error(assay_magnitudes_t* m, double error) {
  if (error == 0)
    m->zero++;
  else if (isfinite(error))
    m->at[bin_of(fabs(error))]++;
}

static void count_value(assay_octaves_t* o, double x) {
  if (x == 0)
    o->zero++;
  else if (x > 0)
    o->positive[bin_of(x)]++;
  else
    o->negative[bin_of(-x)]++;
}

typedef struct counts {
  assay_octaves_t truth;
  assay_magnitudes_t own, total;
  int64_t engine_nan, engine_inf, truth_unfinite;
} counts_t;

static void count(counts_t* c, const double* e, const double* l, const double* t, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    const double x = e[i];
    c->engine_nan += isnan(x) != 0;
    c->engine_inf += isinf(x) != 0;
    if (isfinite(t[i]))
      count_value(&c->truth, t[i]);
    else
      c->truth_unfinite++;
    if (!isfinite(x)) continue;
    count_error(&c->own, x - l[i]);
    count_error(&c->total, x - t[i]);
  }
}

static void add_magnitudes(assay_magnitudes_t* to, const assay_magnitudes_t* more) {
  to->zero += more->zero;
  for (int k = 0; k < ASSAY_PICTURE_BINS; k++) to->at[k] += more->at[k];
}

static void add_counts(assay_picture_t* p, const counts_t* c) {
  p->truth.zero += c->truth.zero;
  for (int k = 0; k < ASSAY_PICTURE_BINS; k++) {
    p->truth.positive[k] += c->truth.positive[k];
    p->truth.negative[k] += c->truth.negative[k];
  }
  add_magnitudes(&p->own, &c->own);
  add_magnitudes(&p->total, &c->total);
  p->engine_nan += c->engine_nan;
  p->engine_inf += c->engine_inf;
  p->truth_unfinite += c->truth_unfinite;
}

// Counts are integers: the same for any number of threads.
static void count_all(assay_picture_t* p, const double* e, const double* l, const double* t,
                      int64_t n) {
#pragma omp parallel if (n > 100000)
  {
    counts_t mine = {0};
#pragma omp for schedule(static) nowait
    for (int64_t at = 0; at < n; at += 4096)
      count(&mine, e + at, l + at, t + at, n - at < 4096 ? n - at : 4096);
#pragma omp critical(assay_pictures)
    add_counts(p, &mine);
  }
}

// ---- maps ---------------------------------------------------------------------------------------

typedef struct cell {
  double sum, own2, total2;
  int64_t n;
  bool truth_unfinite, own_unfinite, total_unfinite;
} cell_t;

// An error that is not a number: one side is not finite and the other is, or is so in another way.
static bool mismatched(double a, double b) {
  if (isfinite(a) && isfinite(b)) return false;
  return !(isnan(a) && isnan(b)) && a != b;
}

static void add_element(cell_t* c, double e, double l, double t) {
  c->n++;
  if (isfinite(t))
    c->sum += t;
  else
    c->truth_unfinite = true;
  if (mismatched(e, l)) c->own_unfinite = true;
  if (mismatched(e, t)) c->total_unfinite = true;
  if (isfinite(e) && isfinite(l)) c->own2 += (e - l) * (e - l);
  if (isfinite(e) && isfinite(t)) c->total2 += (e - t) * (e - t);
}

// One row of cells, over all leading dimensions.
static void fill_row(const assay_picture_t* p, int row, const double* e, const double* l,
                     const double* t, cell_t* cells) {
  const int64_t height = p->dims[p->rank - 2], width = p->dims[p->rank - 1];
  const int64_t planes = assay_dims_product(p->dims, 0, p->rank - 2);
  const int64_t first = row * height / p->rows, end = (row + 1) * height / p->rows;
  for (int64_t plane = 0; plane < planes; plane++)
    for (int64_t y = first; y < end; y++)
      for (int k = 0; k < p->columns; k++) {
        const int64_t line = (plane * height + y) * width;
        for (int64_t x = k * width / p->columns; x < (k + 1) * width / p->columns; x++)
          add_element(&cells[k], e[line + x], l[line + x], t[line + x]);
      }
}

// The code of a cell's RMS beside the largest one.
static uint8_t error_code(double rms, double top) {
  if (!(rms > 0)) return 0;
  const double code = ASSAY_MAP_TOP + round(ASSAY_MAP_STEPS * assay_log2(rms / top));
  return (uint8_t)fmax(1, code);
}

static void encode_errors(const cell_t* cells, int n, bool own, assay_map_of_t* map) {
  double top = 0;
  for (int i = 0; i < n; i++)
    top = fmax(top, sqrt((own ? cells[i].own2 : cells[i].total2) / (double)cells[i].n));
  map->top = top;
  for (int i = 0; i < n; i++) {
    const double rms = sqrt((own ? cells[i].own2 : cells[i].total2) / (double)cells[i].n);
    const bool unfinite = own ? cells[i].own_unfinite : cells[i].total_unfinite;
    map->code[i] = unfinite ? ASSAY_MAP_UNFINITE : error_code(rms, top);
  }
}

static void encode_values(const cell_t* cells, int n, assay_map_of_t* map) {
  double bottom = (double)INFINITY, top = -(double)INFINITY;
  for (int i = 0; i < n; i++) {
    const double mean = cells[i].sum / (double)cells[i].n;
    bottom = fmin(bottom, mean);
    top = fmax(top, mean);
  }
  map->bottom = bottom;
  map->top = top;
  const double range = top - bottom;
  for (int i = 0; i < n; i++) {
    const double place = range > 0 ? (cells[i].sum / (double)cells[i].n - bottom) / range : 0;
    map->code[i] =
        cells[i].truth_unfinite ? ASSAY_MAP_UNFINITE : (uint8_t)round(ASSAY_MAP_TOP * place);
  }
}

static void note_plain(assay_map_of_t* map, int n) {
  map->plain = true;
  for (int i = 1; i < n; i++) map->plain &= map->code[i] == map->code[0];
}

static int side_of(int64_t size) {
  return size < ASSAY_PICTURE_SIDE ? (int)size : ASSAY_PICTURE_SIDE;
}

static assay_status_t draw_maps(assay_picture_t* p, const double* e, const double* l,
                                const double* t) {
  if (p->rank < 2 || p->dims[p->rank - 2] < 4 || p->dims[p->rank - 1] < 4) return NULL;
  if (!assay_dims_product(p->dims, 0, p->rank)) return NULL;
  p->rows = side_of(p->dims[p->rank - 2]);
  p->columns = side_of(p->dims[p->rank - 1]);
  const int n = p->rows * p->columns;
  cell_t* cells = NULL;
  assay_status_t st = assay_new_array((size_t)n, sizeof *cells, &cells);
  if (!st) st = assay_new_array((size_t)n, 1, &p->truth_map.code);
  if (!st) st = assay_new_array((size_t)n, 1, &p->own_map.code);
  if (!st) st = assay_new_array((size_t)n, 1, &p->total_map.code);
  if (!st) {
    // A cell is summed by one thread, in order: the same bits for any number of them.
#pragma omp parallel for schedule(static)
    for (int row = 0; row < p->rows; row++) fill_row(p, row, e, l, t, cells + row * p->columns);
    encode_values(cells, n, &p->truth_map);
    encode_errors(cells, n, true, &p->own_map);
    encode_errors(cells, n, false, &p->total_map);
    note_plain(&p->truth_map, n);
    note_plain(&p->own_map, n);
    note_plain(&p->total_map, n);
  }
  assay_free(cells);
  return st;
}

// ---- watching -----------------------------------------------------------------------------------

static assay_status_t picture_of(assay_pictures_t* p, const assay_value_t* v,
                                 assay_picture_t** out) {
  const size_t id = (size_t)v->id;
  if (id >= p->n) {
    ASSAY_TRY(assay_grow(&p->of_value, &p->capacity, id + 1, sizeof(assay_picture_t*)));
    memset(p->of_value + p->n, 0, (id + 1 - p->n) * sizeof(assay_picture_t*));
    p->n = id + 1;
  }
  if (!p->of_value[id]) {
    ASSAY_TRY(ASSAY_NEW(&p->of_value[id]));
    p->of_value[id]->low = INFINITY;
    p->of_value[id]->high = -INFINITY;
    p->of_value[id]->error = ASSAY_ERROR_SUM_INIT;
  }
  p->of_value[id]->value = v;
  *out = p->of_value[id];
  return NULL;
}

static void note_range(assay_picture_t* p, const double* t, int64_t n) {
  double low = p->low, high = p->high;
#pragma omp parallel for schedule(static) reduction(min : low) reduction(max : high) if (n > 100000)
  for (int64_t i = 0; i < n; i++) {
    if (!isfinite(t[i])) continue;
    low = t[i] < low ? t[i] : low;
    high = t[i] > high ? t[i] : high;
  }
  p->low = low;
  p->high = high;
}

static assay_status_t add(assay_pictures_t* all, const assay_value_t* v,
                          const assay_tensor_t* engine, const assay_tensor_t* local,
                          const assay_tensor_t* truth) {
  assay_picture_t* p = NULL;
  ASSAY_TRY(picture_of(all, v, &p));
  const double *e = assay_f64(engine), *l = assay_f64(local), *t = assay_f64(truth);
  count_all(p, e, l, t, truth->size);
  note_range(p, t, truth->size);
  assay_error_sum_t error = ASSAY_ERROR_SUM_INIT;
  assay_error_sum_add(&error, e, t, (size_t)truth->size);
  assay_error_sum_join(&p->error, &error);
  if (p->runs++) return NULL;
  p->rank = truth->rank;
  memcpy(p->dims, truth->dims, (size_t)truth->rank * sizeof *p->dims);
  return draw_maps(p, e, l, t);
}

static void watch(void* user, const assay_layer_account_t* layer, const assay_value_t* value,
                  const assay_tensor_t* engine, const assay_tensor_t* local,
                  const assay_tensor_t* truth) {
  assay_pictures_t* p = user;
  (void)layer;
  if (!p->status) p->status = add(p, value, engine, local, truth);
}

assay_account_watch_t assay_pictures_watch(assay_pictures_t* p) {
  return (assay_account_watch_t){.value = p ? watch : NULL, .user = p};
}
