// Windows of spectra, alone or multiplied into the waves of a convolution, made again as another
// one: symmetric for periodic, of another kind, and, where it is shorter than the transform, at
// another place in it.
//
// Sources: F. J. Harris, On the Use of Windows for Harmonic Analysis, 1978; periodic by default in
// PyTorch, symmetric in NumPy, Blaizzy/mlx-audio issue 920; tensorflow/tensorflow issue 16465; in
// the middle of the transform, torch.stft, Blaizzy/mlx-audio issue 592.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/functions.h"
#include "diagnose/proposals.h"

enum { FEWEST = 6, MOST = 1 << 22, LONGEST = 1 << 13 };  // LONGEST: of a transform
static const double TURN = 6.283185307179586, NEAR = 2e-5, ZERO = 1e-6;

// a - b cos(2 pi t / T) + c cos(4 pi t / T).
typedef struct window {
  const char* name;
  double a, b, c;
} window_t;

static const window_t windows[] = {
    {"a Hann window", 0.5, 0.5, 0},
    {"a Hamming window", 0.54, 0.46, 0},
    {"a Blackman window", 0.42, 0.5, 0.08},
    {"no window", 1, 0, 0},
};
enum { WINDOWS = sizeof windows / sizeof *windows };

// A window of `n` places from `at` on.
typedef struct placed {
  const window_t* kind;
  bool periodic;
  int64_t n, at;
} placed_t;

static double value_of(const window_t* w, bool periodic, int64_t n, int64_t t) {
  const double x = TURN * (double)t / (double)(periodic ? n : n - 1);
  const double y = w->a - w->b * assay_cos(x) + w->c * assay_cos(2 * x);
  return fabs(y) < 1e-12 ? 0 : y;
}

static double placed_at(const placed_t* p, int64_t t) {
  return t < p->at || t >= p->at + p->n ? 0 : value_of(p->kind, p->periodic, p->n, t - p->at);
}

// Whether the places of each row are waves times a window: scale * window(t) * (p cos(2 pi k t / n)
// + q sin(2 pi k t / n)). row[3 * r]: k, p and q.
typedef struct waves {
  const double* x;
  int64_t rows, n, frequencies;  // k below these
  double* row;
  const double *cosine, *sine;  // of t / n turns
} waves_t;

// p and q of a wave by least squares; what is left, over the row's largest.
static double fit_wave(const waves_t* w, const double* x, const double* window, int64_t k,
                       double* out) {
  double cc = 0, cs = 0, ss = 0, cx = 0, sx = 0, xx = 0, most = 0, left = 0;
  for (int64_t t = 0, at = 0; t < w->n; t++, at = (at + k) % w->n) {
    const double c = window[t] * w->cosine[at], s = window[t] * w->sine[at];
    cc += c * c, cs += c * s, ss += s * s, cx += c * x[t], sx += s * x[t], xx += x[t] * x[t];
  }
  const double det = cc * ss - cs * cs;
  out[0] = (double)k;
  out[1] = det > 1e-9 * cc * cc ? (cx * ss - sx * cs) / det : cc > 0 ? cx / cc : 0;
  out[2] = det > 1e-9 * cc * cc ? (sx * cc - cx * cs) / det : 0;
  // Of nearly all waves it is clear by now.
  if (xx - out[1] * cx - out[2] * sx > 1e-6 * xx) return 1;
  for (int64_t t = 0, at = 0; t < w->n; t++, at = (at + k) % w->n) {
    const double y = window[t] * (out[1] * w->cosine[at] + out[2] * w->sine[at]);
    most = fmax(most, fabs(x[t]));
    left = fmax(left, fabs(x[t] - y));
  }
  return most > ZERO ? left / most : 0;
}

static bool find_waves(waves_t* w, const double* window) {
  int64_t last = 0;
  for (int64_t r = 0; r < w->rows; r++) {
    bool found = false;
    // Rows stand in the order of their frequencies: the next one is tried first.
    for (int64_t i = 0; !found && i < w->frequencies; i++) {
      const int64_t k = (last + i) % w->frequencies;
      found = fit_wave(w, w->x + r * w->n, window, k, w->row + 3 * r) < NEAR;
      if (found) last = k + 1;
    }
    if (!found) return false;
  }
  return true;
}

typedef struct offer {
  const assay_suspect_t* s;
  const char* cause;
  const assay_trial_t* t;
  bool* stop;
  size_t input;
  const assay_tensor_t* x;
} offer_t;

static assay_status_t offer_window(const offer_t* o, const waves_t* w, const placed_t* p) {
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_tensor_create(o->x->type, o->x->rank, o->x->dims, &y));
  for (int64_t i = 0; i < y->size; i++) {
    const int64_t t = i % w->n;
    const double *row = w->row + 3 * (i / w->n), angle = TURN * row[0] * (double)t / (double)w->n;
    const double wave = row[1] * assay_cos(angle) + row[2] * assay_sin(angle);
    assay_f64(y)[i] = (double)(float)(placed_at(p, t) * wave);
  }
  assay_repair_t r = assay_repair_of(o->s, o->cause, ASSAY_EDIT_CONSTANT);
  r.edits[0].input = o->input;
  r.edits[0].tensor = y;
  const assay_value_t* v = o->s->node->inputs[o->input];
  const int used =
      snprintf(r.text, sizeof r.text, "'%.100s' with %s%s", v ? v->name : "", p->kind->name,
               p->kind->b == 0 ? ""
               : p->periodic   ? " that goes on periodically"
                               : " that ends as it begins");
  if (p->n < w->n)
    snprintf(r.text + used, sizeof r.text - (size_t)used, ", from %lld to %lld", (long long)p->at,
             (long long)(p->at + p->n));
  return assay_offer(o->t, &r, o->stop);
}

// Other windows in the place of this one, and this one in other places.
static assay_status_t offer_kinds(const offer_t* o, const waves_t* w, const placed_t* now) {
  for (size_t k = 0; k < WINDOWS; k++)
    for (int periodic = 0; periodic < 2 && !*o->stop; periodic++) {
      const placed_t p = {&windows[k], periodic, now->n, now->at};
      if (p.kind == now->kind && (periodic == now->periodic || p.kind->b == 0)) continue;
      if (p.kind->b == 0 && periodic) continue;
      ASSAY_TRY(offer_window(o, w, &p));
    }
  return NULL;
}

static assay_status_t offer_places(const offer_t* o, const waves_t* w, const placed_t* now) {
  const int64_t room = w->n - now->n;
  const int64_t places[] = {room / 2, 0, room - room / 2, room};
  for (size_t i = 0; room && i < sizeof places / sizeof *places && !*o->stop; i++) {
    placed_t p = *now;
    p.at = places[i];
    if (p.at == now->at) continue;
    ASSAY_TRY(offer_window(o, w, &p));
  }
  const placed_t whole = {now->kind, now->periodic, w->n, 0};
  return room && !*o->stop ? offer_window(o, w, &whole) : NULL;
}

// A wave without a window may be any weight of one row: what has none must be waves in many.
static bool may_have(const window_t* kind, int64_t rows) { return kind->b != 0 || rows >= FEWEST; }

// The places that are 0 in no row, from the first to the last.
static void find_support(const waves_t* w, int64_t* first, int64_t* last) {
  *first = w->n, *last = -1;
  for (int64_t i = 0; i < w->rows * w->n; i++) {
    if (fabs(w->x[i]) < ZERO) continue;
    if (i % w->n < *first) *first = i % w->n;
    if (i % w->n > *last) *last = i % w->n;
  }
}

// Where windows may stand: all of the places, and where there are no zeros; windows begin with one,
// and end with one.
static size_t list_places(const waves_t* w, placed_t* out) {
  int64_t first, last;
  size_t n = 0;
  find_support(w, &first, &last);
  out[n++] = (placed_t){.n = w->n};
  for (int before = 1; before >= 0; before--)
    for (int behind = 1; behind >= 0; behind--) {
      const placed_t p = {.at = first - before, .n = last + 1 + behind - (first - before)};
      if (p.at < 0 || p.at + p.n > w->n || p.n < FEWEST || p.n == w->n) continue;
      out[n++] = p;
    }
  return n;
}

static assay_status_t offer_found(const offer_t* o, waves_t* w, double* window) {
  enum { PLACES = 5 };
  placed_t places[PLACES];
  assay_status_t st = NULL;
  bool any = false;
  const size_t n = list_places(w, places);
  // A window that ends as it begins is one that goes on periodically, of one place less.
  for (size_t i = 0; !st && i < n; i++) {
    bool found = false;
    for (size_t k = 0; !st && k < WINDOWS && !found; k++)
      for (int p = 1; p >= 0 && !st && !found; p--) {
        if (!may_have(&windows[k], w->rows)) continue;
        places[i].kind = &windows[k], places[i].periodic = p;
        for (int64_t t = 0; t < w->n; t++) window[t] = placed_at(&places[i], t);
        found = find_waves(w, window);
        if (found && !any) st = offer_kinds(o, w, &places[i]);
        if (found && !st) st = offer_places(o, w, &places[i]);
      }
    any |= found;
  }
  return st;
}

// A window alone is one of a wave that stands still.
static assay_status_t offer_all(const offer_t* o) {
  const assay_tensor_t* x = o->x;
  const int64_t n = x->dims[x->rank - 1], rows = x->size / n;
  const bool alone = strcmp(o->s->node->op_type, "Conv") != 0;
  waves_t w = {.x = assay_f64(x), .n = n, .rows = rows, .frequencies = alone ? 1 : n / 2 + 1};
  double* room = NULL;  // cosine, sine and a window
  ASSAY_TRY(assay_new_array((size_t)n * 3, sizeof *room, &room));
  assay_status_t st = assay_new_array((size_t)rows * 3, sizeof *w.row, &w.row);
  for (int64_t t = 0; !st && t < n; t++) {
    room[t] = assay_cos(TURN * (double)t / (double)n);
    room[n + t] = assay_sin(TURN * (double)t / (double)n);
  }
  w.cosine = room, w.sine = room + n;
  if (!st) st = offer_found(o, &w, room + 2 * n);
  assay_free(room);
  assay_free(w.row);
  return st;
}

// A window alone, or a convolution of one channel along one dimension.
static bool is_candidate(const assay_node_t* n, const assay_tensor_t* x) {
  if (!x || x->kind != ASSAY_KIND_TENSOR || x->store != ASSAY_STORE_F64 || !x->rank) return false;
  const int64_t length = x->dims[x->rank - 1];
  if (x->size < FEWEST || x->size > MOST || length < FEWEST || length > LONGEST) return false;
  if (strcmp(n->op_type, "Conv") == 0) return x->rank == 3 && x->dims[1] == 1;
  return x->size == length;
}

assay_status_t assay_propose_window(const assay_suspect_t* s, const char* cause,
                                    const assay_trial_t* t, bool* stop) {
  for (size_t i = 0; i < s->n_in && !*stop; i++) {
    assay_tensor_t* x = NULL;
    ASSAY_TRY(assay_suspect_constant(s, i, &x));
    const offer_t o = {s, cause, t, stop, i, x};
    assay_status_t st = is_candidate(s->node, x) ? offer_all(&o) : NULL;
    assay_tensor_release(x);
    if (st) return st;
  }
  return NULL;
}
