// Constants whose numbers are evenly spaced, laid out by another convention: whether the ends are
// places, whether a place is a pixel's corner or its middle, and constants that are a function of
// what they should be.
//
// Sources: align_corners of grid_sample and affine_grid (their documentation); half_pixel and
// asymmetric of ONNX Resize 11; centres of anchors, open-mmlab/mmdetection; deviations that are
// kept as variances or logarithms.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/functions.h"
#include "diagnose/causes/surroundings.h"
#include "diagnose/proposals.h"

enum { FEWEST = 4, MOST = 1 << 18, COORDINATES = 4 };

static bool is_float(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64 && t->size > 0;
}

// ---- evenly spaced numbers ---------------------------------------------------------------------

// n numbers from `first` on.
typedef struct grid {
  double first, step;
  int64_t n;
} grid_t;

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

// Elements begin, begin + stride ... of which there are `count`; scratch: room for them. False:
// they are not evenly spaced.
static bool find_grid(const double* x, int64_t count, int64_t stride, double* scratch,
                      grid_t* out) {
  static const double NEAR = 1e-3;  // of a step
  for (int64_t i = 0; i < count; i++) scratch[i] = x[i * stride];
  qsort(scratch, (size_t)count, sizeof *scratch, by_size);
  const double width = scratch[count - 1] - scratch[0];
  if (!(width > 0) || !isfinite(width)) return false;
  int64_t n = 1;
  for (int64_t i = 1; i < count; i++)
    if (scratch[i] - scratch[n - 1] > 1e-6 * width) scratch[n++] = scratch[i];
  if (n < FEWEST) return false;
  *out = (grid_t){scratch[0], width / (double)(n - 1), n};
  for (int64_t i = 0; i < n; i++)
    if (fabs(scratch[i] - out->first - out->step * (double)i) > NEAR * out->step) return false;
  return true;
}

// Another convention for n places: `first` and `step` from the number of places and the step now.
typedef struct convention {
  const char* text;
  double first_0, first_n;  // first_0 + first_n / n
  double width;             // 0: the step stays
  bool ends;                // the step is width / (n - 1), not width / n
} convention_t;

static const convention_t conventions[] = {
    {"from -1 to 1, both counted", -1, 0, 2, true}, {"from -1 to before 1", -1, 0, 2, false},
    {"middles from -1 to 1", -1, 1, 2, false},      {"from 0 to 1, both counted", 0, 0, 1, true},
    {"from 0 to before 1", 0, 0, 1, false},         {"middles from 0 to 1", 0, 0.5, 1, false},
};
// Where the step stays: the first is so many steps.
static const struct {
  const char* text;
  double steps, places;  // steps * step + places
} starts[] = {
    {"from 0 on", 0, 0},
    {"from half a step on", 0.5, 0},
    {"from half of one less than a step on", 0.5, -0.5},
    {"from a step on", 1, 0},
};

// How columns are told apart: coordinates along the last axis, along the first, or one for all.
typedef struct columns {
  int64_t n, count, stride, apart;
} columns_t;

static size_t list_columns(const assay_tensor_t* x, columns_t* out) {
  const int64_t last = x->dims[x->rank - 1], first = x->dims[0];
  size_t n = 0;
  if (x->rank > 1 && last <= COORDINATES) out[n++] = (columns_t){last, x->size / last, last, 1};
  if (x->rank > 1 && first <= COORDINATES)
    out[n++] = (columns_t){first, x->size / first, 1, x->size / first};
  out[n++] = (columns_t){1, x->size, 1, 0};
  return n;
}

static grid_t laid(const grid_t* g, size_t convention) {
  const size_t n = sizeof conventions / sizeof *conventions;
  grid_t y = *g;
  if (convention >= n) {
    y.first = starts[convention - n].steps * g->step + starts[convention - n].places;
    return y;
  }
  const convention_t* c = &conventions[convention];
  y.first = c->first_0 + c->first_n / (double)g->n;
  y.step = c->width / (double)(c->ends ? g->n - 1 : g->n);
  return y;
}

static assay_status_t offer_grid(const assay_suspect_t* s, const char* cause, size_t input,
                                 const assay_tensor_t* x, const columns_t* c, const grid_t* grids,
                                 const bool* is_grid, size_t convention, const assay_trial_t* t,
                                 bool* stop) {
  const size_t n = sizeof conventions / sizeof *conventions;
  assay_tensor_t* y = NULL;
  bool changed = false;
  char text[200];
  ASSAY_TRY(assay_tensor_copy(x, &y));
  for (int64_t k = 0; k < c->n; k++) {
    if (!is_grid[k]) continue;
    const grid_t now = grids[k], next = laid(&now, convention);
    changed |= fabs(next.first - now.first) > 1e-3 * now.step ||
               fabs(next.step - now.step) > 1e-4 * now.step;
    for (int64_t i = 0; i < c->count; i++) {
      double* at = &assay_f64(y)[k * c->apart + i * c->stride];
      const double place = round((*at - now.first) / now.step);
      *at = (double)(float)(next.first + next.step * place);
    }
  }
  if (!changed) return assay_tensor_release(y), NULL;
  snprintf(text, sizeof text, "'%.100s' %s", s->node->inputs[input]->name,
           convention < n ? conventions[convention].text : starts[convention - n].text);
  return assay_offer_constant(s, cause, input, y, text, t, stop);
}

static assay_status_t offer_columns(const assay_suspect_t* s, const char* cause, size_t input,
                                    const assay_tensor_t* x, const columns_t* c, double* scratch,
                                    bool* out_any, const assay_trial_t* t, bool* stop) {
  const size_t all = sizeof conventions / sizeof *conventions + sizeof starts / sizeof *starts;
  grid_t grids[COORDINATES] = {{0}};
  bool is_grid[COORDINATES] = {false};
  *out_any = false;
  for (int64_t k = 0; k < c->n; k++) {
    is_grid[k] = find_grid(assay_f64(x) + k * c->apart, c->count, c->stride, scratch, &grids[k]);
    *out_any |= is_grid[k];
  }
  for (size_t i = 0; *out_any && i < all && !*stop; i++)
    ASSAY_TRY(offer_grid(s, cause, input, x, c, grids, is_grid, i, t, stop));
  return NULL;
}

static assay_status_t propose_input(const assay_suspect_t* s, const char* cause, size_t input,
                                    const assay_tensor_t* x, const assay_trial_t* t, bool* stop) {
  columns_t columns[3];
  double* scratch = NULL;
  bool any = false;
  if (!is_float(x) || !x->rank || x->size < FEWEST || x->size > MOST) return NULL;
  const size_t n = list_columns(x, columns);
  ASSAY_TRY(assay_new_array((size_t)x->size, sizeof *scratch, &scratch));
  assay_status_t st = NULL;
  for (size_t i = 0; i < n && !any && !st && !*stop; i++)
    st = offer_columns(s, cause, input, x, &columns[i], scratch, &any, t, stop);
  assay_free(scratch);
  return st;
}

assay_status_t assay_propose_grid(const assay_suspect_t* s, const char* cause,
                                  const assay_trial_t* t, bool* stop) {
  assay_status_t st = NULL;
  for (size_t i = 0; i < s->n_in && !st && !*stop; i++) {
    assay_tensor_t* x = NULL;
    ASSAY_TRY(assay_suspect_constant(s, i, &x));
    st = propose_input(s, cause, i, x, t, stop);
    assay_tensor_release(x);
  }
  return st;
}

// ---- functions of constants --------------------------------------------------------------------

static double squared(double x) { return x * x; }
static double inverse(double x) { return 1 / x; }
static double inverse_root(double x) { return 1 / sqrt(x); }

static const struct {
  const char* text;
  double (*f)(double);
  bool positive;
} forms[] = {
    {"its root", sqrt, true},
    {"its square", squared, false},
    {"its reciprocal", inverse, true},
    {"the reciprocal of its root", inverse_root, true},
    {"its exponential", assay_exp, false},
    {"its logarithm", assay_log, true},
};

static assay_status_t offer_forms(const assay_suspect_t* s, const char* cause, size_t input,
                                  const assay_tensor_t* x, const assay_trial_t* t, bool* stop) {
  static const double LARGEST = 60;  // of which the exponential is asked
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (int64_t i = 0; i < x->size; i++) {
    low = fmin(low, assay_f64(x)[i]);
    high = fmax(high, assay_f64(x)[i]);
  }
  for (size_t k = 0; k < sizeof forms / sizeof *forms && !*stop; k++) {
    assay_tensor_t* y = NULL;
    char text[200];
    if ((forms[k].positive && !(low > 0)) || fabs(low) > 1e6 || fabs(high) > 1e6) continue;
    if (forms[k].f == assay_exp && (high > LARGEST || low < -LARGEST)) continue;
    ASSAY_TRY(assay_tensor_copy(x, &y));
    for (int64_t i = 0; i < x->size; i++)
      assay_f64(y)[i] = (double)(float)forms[k].f(assay_f64(x)[i]);
    snprintf(text, sizeof text, "%s in place of '%.120s'", forms[k].text,
             s->node->inputs[input]->name);
    ASSAY_TRY(assay_offer_constant(s, cause, input, y, text, t, stop));
  }
  return NULL;
}

// Scales and deviations of channels: of single numbers the usual ones are asked. Source:
// hanlu-nju/channel_independent_MTSF issue 3.
assay_status_t assay_propose_form(const assay_suspect_t* s, const char* cause,
                                  const assay_trial_t* t, bool* stop) {
  static const char* const ops[] = {"Mul", "Div", "Add", "Sub", "BatchNormalization"};
  enum { CHANNELS = 4096 };
  bool is_one = false;
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    is_one |= !*s->node->domain && strcmp(s->node->op_type, ops[i]) == 0;
  assay_status_t st = NULL;
  for (size_t i = 0; is_one && i < s->n_in && !st && !*stop; i++) {
    assay_tensor_t* x = NULL;
    ASSAY_TRY(assay_suspect_constant(s, i, &x));
    if (is_float(x) && x->size > 1 && x->size <= CHANNELS)
      st = offer_forms(s, cause, i, x, t, stop);
    assay_tensor_release(x);
  }
  return st;
}

// ---- series ------------------------------------------------------------------------------------

// As what each step adds or keeps, and as what has come together until there: noise of diffusion,
// discounts, places, edges of bins.
// y[i] of y[i - 1], x[i - 1] and x[i]; the first stays.
typedef enum form { PRODUCT, RATIO, SUM, DIFFERENCE } series_form_t;

static const struct {
  const char* text;
  series_form_t form;
  bool turned;    // from the end
  bool positive;  // where all are above 0
} series[] = {
    {"the product until there of", PRODUCT, false, true},
    {"what each keeps of the one before, of", RATIO, false, true},
    {"the sum until there of", SUM, false, false},
    {"what each is more than the one before, of", DIFFERENCE, false, false},
    {"the product from there on of", PRODUCT, true, true},
    {"the sum from there on of", SUM, true, false},
};

static double next_of(series_form_t form, double made, double before, double now) {
  return form == PRODUCT ? made * now
         : form == RATIO ? now / before
         : form == SUM   ? made + now
                         : now - before;
}

static assay_status_t offer_series(const assay_suspect_t* s, const char* cause, size_t input,
                                   size_t k, const assay_tensor_t* x, const assay_trial_t* t,
                                   bool* stop) {
  static const double LARGEST = 1e6;
  assay_tensor_t* y = NULL;
  char text[200];
  ASSAY_TRY(assay_tensor_copy(x, &y));
  double made = 0, before = 0;
  bool sane = true;
  for (int64_t i = 0; i < x->size; i++) {
    const int64_t at = series[k].turned ? x->size - 1 - i : i;
    const double now = assay_f64(x)[at];
    made = i ? next_of(series[k].form, made, before, now) : now;
    before = now;
    assay_f64(y)[at] = (double)(float)made;
    sane &= isfinite(made) && fabs(made) < LARGEST;
  }
  if (!sane) return assay_tensor_release(y), NULL;
  snprintf(text, sizeof text, "%s '%.100s' in place of it", series[k].text,
           s->node->inputs[input]->name);
  return assay_offer_constant(s, cause, input, y, text, t, stop);
}

static assay_status_t propose_series(const assay_suspect_t* s, const char* cause, size_t input,
                                     const assay_tensor_t* x, const assay_trial_t* t, bool* stop) {
  double low = HUGE_VAL;
  for (int64_t i = 0; i < x->size; i++) low = fmin(low, assay_f64(x)[i]);
  for (size_t k = 0; k < sizeof series / sizeof *series && !*stop; k++)
    if (low > 0 || !series[k].positive) ASSAY_TRY(offer_series(s, cause, input, k, x, t, stop));
  return NULL;
}

// A row of numbers that is looked up, or laid along an axis. Source: alphas that were not
// multiplied up, huggingface/diffusers issue 26 (J. Ho et al., 2020, 2).
assay_status_t assay_propose_series(const assay_suspect_t* s, const char* cause,
                                    const assay_trial_t* t, bool* stop) {
  static const char* const ops[] = {
      "Gather",         "Mul",        "Div", "Add",   "Sub",  "Pow",
      "Sqrt",           "Exp",        "Log", "Where", "Less", "Greater",
      "GreaterOrEqual", "LessOrEqual"};
  enum { LONGEST = 1 << 16 };
  bool is_one = false;
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    is_one |= !*s->node->domain && strcmp(s->node->op_type, ops[i]) == 0;
  for (size_t i = 0; is_one && i < s->n_in && !*stop; i++) {
    assay_tensor_t* x = NULL;
    ASSAY_TRY(assay_suspect_constant(s, i, &x));
    assay_status_t st = NULL;
    if (is_float(x) && x->size >= FEWEST && x->size <= LONGEST && x->size == x->dims[x->rank - 1])
      st = propose_series(s, cause, i, x, t, stop);
    assay_tensor_release(x);
    ASSAY_TRY(st);
  }
  return NULL;
}

// ---- tables of a plane -------------------------------------------------------------------------

// Whether columns [from, from + n) of a table are those beside them.
static bool repeats(const assay_tensor_t* x, int64_t from, int64_t n) {
  const int64_t columns = x->dims[x->rank - 1];
  for (int64_t r = 0; r < x->size / columns; r++)
    for (int64_t c = from; c < from + n; c++)
      if (assay_f64(x)[r * columns + c] != assay_f64(x)[r * columns + c + n]) return false;
  return true;
}

// Whether rows of a table are of a square of `side` places, and columns [0, n) of its first axis
// (down) alone, or of its second.
static bool is_of_axis(const assay_tensor_t* x, int64_t side, int64_t n, bool down) {
  const int64_t columns = x->dims[x->rank - 1];
  bool moves = false;
  for (int64_t i = 0; i < side; i++)
    for (int64_t j = 0; j < side; j++)
      for (int64_t c = 0; c < n; c++) {
        const int64_t same = down ? i * side : j, other = down ? j * side : i;
        const double now = assay_f64(x)[(i * side + j) * columns + c];
        if (now != assay_f64(x)[same * columns + c]) return false;
        moves |= now != assay_f64(x)[other * columns + c];
      }
  return moves;
}

// Every second part of so many columns, or every first, as it would be of the other axis.
static assay_status_t offer_other_axis(const assay_suspect_t* s, const char* cause, size_t input,
                                       const assay_tensor_t* x, int64_t side, int64_t n, int first,
                                       const assay_trial_t* t, bool* stop) {
  const int64_t columns = x->dims[x->rank - 1];
  assay_tensor_t* y = NULL;
  char text[200];
  ASSAY_TRY(assay_tensor_copy(x, &y));
  for (int64_t r = 0; r < side * side; r++)
    for (int64_t c = 0; c < columns; c++)
      if (c / n % 2 != first)
        assay_f64(y)[r * columns + c] = assay_f64(x)[(r % side * side + r / side) * columns + c];
  snprintf(text, sizeof text, "every %s %lld columns of '%.100s' of the other axis of its plane",
           first ? "first" : "second", (long long)n, s->node->inputs[input]->name);
  return assay_offer_constant(s, cause, input, y, text, t, stop);
}

// Positions on a plane, of which one axis was taken for both. Sources: Tencent/ncnn issue 6833;
// sines and cosines of both axes, K. He et al., 2022 (masked autoencoders).
assay_status_t assay_propose_plane(const assay_suspect_t* s, const char* cause,
                                   const assay_trial_t* t, bool* stop) {
  for (size_t i = 0; i < s->n_in && !*stop; i++) {
    assay_tensor_t* x = NULL;
    ASSAY_TRY(assay_suspect_constant(s, i, &x));
    const int64_t columns = is_float(x) && x->rank >= 2 ? x->dims[x->rank - 1] : 0;
    const int64_t side = columns ? (int64_t)(sqrt((double)(x->size / columns)) + 0.5) : 0;
    const bool square = side > 1 && x->size <= MOST && side * side * columns == x->size &&
                        x->dims[x->rank - 2] == side * side;
    assay_status_t st = NULL;
    for (int64_t n = columns / 2; square && !st && n >= 2 && n >= columns / 4; n /= 2) {
      if (columns % (2 * n) != 0 || !repeats(x, 0, n)) continue;
      if (!is_of_axis(x, side, n, true) && !is_of_axis(x, side, n, false)) continue;
      for (int first = 0; first < 2 && !st && !*stop; first++)
        st = offer_other_axis(s, cause, i, x, side, n, first, t, stop);
    }
    assay_tensor_release(x);
    ASSAY_TRY(st);
  }
  return NULL;
}
