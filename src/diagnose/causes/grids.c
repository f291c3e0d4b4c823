// Tables of places at even distances: coordinates that images are sampled at, anchors, times.
//
// Who divides by how many there are, or by one less, whether places are at the ends of cells or in
// their middles, and whether they go from -1 or from 0, is a convention of each framework. Sources:
// align_corners of PyTorch's affine_grid and grid_sample; half_pixel_centers of TensorFlow,
// tensorflow/tensorflow issue 6720; anchors at the middles of cells, open-mmlab/mmdetection issue
// 2413.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/proposals.h"

enum { LEAST = 4, PLACES = 512, SIZE = 1 << 20, COORDINATES = 4 };

// Of n places: i at first + i * step, as numbers of n.
typedef struct convention {
  const char* text;
  double first, first_over_n;        // first + first_over_n / n
  double step, step_over_n, before;  // step + step_over_n / (n - before)
} convention_t;

static const convention_t conventions[] = {
    {"from -1 to 1, with both ends", -1, 0, 0, 2, 1},
    {"from -1 to 1, in the middles of cells", -1, 1, 0, 2, 0},
    {"from -1 to before 1", -1, 0, 0, 2, 0},
    {"from 0 to 1, with both ends", 0, 0, 0, 1, 1},
    {"from 0 to 1, in the middles of cells", 0, 0.5, 0, 1, 0},
    {"from 0 to before 1", 0, 0, 0, 1, 0},
    {"whole numbers from 0", 0, 0, 1, 0, 0},
    {"whole numbers from 1", 1, 0, 1, 0, 0},
    {"whole numbers and a half", 0.5, 0, 1, 0, 0},
};

// The same by where they are now: first + first_steps * step, and step times (n - above) / (n -
// below).
typedef struct move {
  const char* text;
  double first_steps, above, below;
} move_t;

static const move_t moves[] = {
    {"half a step further", 0.5, 0, 0},
    {"half a step less far", -0.5, 0, 0},
    {"a step further", 1, 0, 0},
    {"a step less far", -1, 0, 0},
    {"divided by their number, not by one less", 0, 1, 0},
    {"divided by one less than their number", 0, 0, 1},
};

// Places along one coordinate.
typedef struct places {
  int64_t n;  // 0: it is no such coordinate, and stays
  double first, step;
} places_t;

// ---- what a constant is -------------------------------------------------------------------------

// Keeps distinct values in order; false: there are too many.
static bool insert(double* values, int64_t* n, double x) {
  int64_t low = 0, high = *n;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (values[middle] < x)
      low = middle + 1;
    else
      high = middle;
  }
  if (low < *n && values[low] == x) return true;
  if (*n == PLACES) return false;
  memmove(values + low + 1, values + low, (size_t)(*n - low) * sizeof *values);
  values[low] = x;
  ++*n;
  return true;
}

// Whether the element i belongs to coordinate k along an axis; -1: there is one coordinate.
static bool is_of(const assay_tensor_t* x, int axis, int64_t k, int64_t i) {
  return axis < 0 || i / assay_dims_product(x->dims, axis + 1, x->rank) % x->dims[axis] == k;
}

static places_t find_places(const assay_tensor_t* x, int axis, int64_t k) {
  static const double EVEN = 1e-3, SAME = 1e-5;
  double values[PLACES];
  int64_t n = 0, kept = 0;
  for (int64_t i = 0; i < x->size; i++)
    if (is_of(x, axis, k, i) &&
        (!isfinite(assay_f64(x)[i]) || !insert(values, &n, assay_f64(x)[i])))
      return (places_t){0};
  // What differs by rounding alone is one place.
  const double range = n ? values[n - 1] - values[0] : 0;
  for (int64_t i = 0; i < n; i++)
    if (!kept || values[i] - values[kept - 1] > SAME * range) values[kept++] = values[i];
  if (kept < LEAST) return (places_t){0};
  const places_t p = {
      .n = kept, .first = values[0], .step = (values[kept - 1] - values[0]) / (double)(kept - 1)};
  for (int64_t i = 0; i < kept; i++)
    if (fabs(values[i] - p.first - (double)i * p.step) > EVEN * p.step) return (places_t){0};
  return p;
}

// The axis whose elements are coordinates, each of even places or all alike; -2: there is none.
static int find_axis(const assay_tensor_t* x, places_t* out) {
  out[0] = find_places(x, -1, 0);
  if (out[0].n) return -1;
  for (int axis = x->rank - 1; axis >= 0; axis--) {
    bool any = false, all = x->dims[axis] > 1 && x->dims[axis] <= COORDINATES;
    for (int64_t k = 0; all && k < x->dims[axis]; k++) {
      out[k] = find_places(x, axis, k);
      any |= out[k].n > 0;
    }
    if (all && any) return axis;
  }
  return -2;
}

// ---- offers -------------------------------------------------------------------------------------

typedef struct grid {
  const assay_suspect_t* s;
  const char* cause;
  const assay_trial_t* t;
  bool* stop;
  size_t input;
  const assay_tensor_t* x;
  int axis;
  places_t places[COORDINATES];
} grid_t;

// The places of each coordinate anew.
static assay_status_t offer(const grid_t* g, const char* what, const places_t* now) {
  static const double SEEN = 1e-6;
  assay_tensor_t* y = NULL;
  char text[200];
  double far = 0;
  ASSAY_TRY(assay_tensor_copy(g->x, &y));
  for (int64_t i = 0; i < y->size; i++) {
    const int64_t k =
        g->axis < 0 ? 0 : i / assay_dims_product(y->dims, g->axis + 1, y->rank) % y->dims[g->axis];
    const places_t* was = &g->places[k];
    double* v = &assay_f64(y)[i];
    if (!was->n) continue;
    const double next = now[k].first + round((*v - was->first) / was->step) * now[k].step;
    far = fmax(far, fabs(next - *v) / was->step);
    *v = (double)(float)next;
  }
  if (far < SEEN) return assay_tensor_release(y), NULL;
  snprintf(text, sizeof text, "places '%.90s' %s", g->s->node->inputs[g->input]->name, what);
  return assay_offer_constant(g->s, g->cause, g->input, y, text, g->t, g->stop);
}

static assay_status_t offer_all(const grid_t* g) {
  for (size_t c = 0; c < sizeof conventions / sizeof *conventions && !*g->stop; c++) {
    const convention_t* x = &conventions[c];
    places_t now[COORDINATES] = {{0}};
    for (int k = 0; k < COORDINATES; k++) {
      const double n = (double)g->places[k].n;
      if (g->places[k].n)
        now[k] = (places_t){.first = x->first + x->first_over_n / n,
                            .step = x->step + x->step_over_n / (n - x->before)};
    }
    ASSAY_TRY(offer(g, x->text, now));
  }
  for (size_t c = 0; c < sizeof moves / sizeof *moves && !*g->stop; c++) {
    const move_t* x = &moves[c];
    places_t now[COORDINATES] = {{0}};
    for (int k = 0; k < COORDINATES; k++) {
      const places_t* was = &g->places[k];
      const double n = (double)was->n;
      if (was->n)
        now[k] = (places_t){.first = was->first + x->first_steps * was->step,
                            .step = was->step * (n - x->above) / (n - x->below)};
    }
    ASSAY_TRY(offer(g, x->text, now));
  }
  return NULL;
}

assay_status_t assay_propose_grid(const assay_suspect_t* s, const char* cause,
                                  const assay_trial_t* t, bool* stop) {
  for (size_t i = 0; i < s->n_in && !*stop; i++) {
    assay_tensor_t* x = NULL;
    ASSAY_TRY(assay_suspect_constant(s, i, &x));
    grid_t g = {.s = s, .cause = cause, .t = t, .stop = stop, .input = i, .x = x};
    const bool fits = x && x->kind == ASSAY_KIND_TENSOR && x->store == ASSAY_STORE_F64 &&
                      x->size >= LEAST && x->size <= SIZE;
    g.axis = fits ? find_axis(x, g.places) : -2;
    assay_status_t st = g.axis > -2 ? offer_all(&g) : NULL;
    assay_tensor_release(x);
    if (st) return st;
  }
  return NULL;
}
