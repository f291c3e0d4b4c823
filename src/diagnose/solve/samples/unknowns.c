// What the unknowns of a constant are that several samples tell: its elements, what they share,
// some of them, or what one sample leaves open.
//
// Where the elements are too many for the equations, those of a weight may be off by a factor that
// many of them share: each row's, each column's, or that of a block of rows in each column, as
// weights of few bits have their scales. Those of a bias may be off by a number that the elements
// of a gate share.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "diagnose/solve/by_samples.h"

static double rms_of(const assay_tensor_t* t) {
  double sum = 0;
  for (int64_t i = 0; i < t->size; i++) sum += assay_f64(t)[i] * assay_f64(t)[i];
  return t->size ? sqrt(sum / (double)t->size) : 0;
}

// ---- factors that elements share ---------------------------------------------------------------

// A weight as a matrix; blocks of its rows, each with a factor for each column or for all of them.
typedef struct sharing {
  int64_t blocks;
  bool by_column, turned;  // turned: what is said of rows holds for columns
  bool adds;               // a number, not a factor
} sharing_t;

// How many unknowns a sharing has; 0: it is none of this weight.
static int64_t share(const assay_tensor_t* w, const sharing_t* k, int64_t* shared) {
  const int64_t rows = w->rank > 1 ? w->dims[0] : 1, columns = rows ? w->size / rows : 0;
  if (k->adds ? rows > 2 : w->rank < 2) return 0;
  const int64_t along = k->turned ? columns : rows, across = k->turned ? rows : columns;
  const int64_t blocks = k->blocks ? k->blocks : along;
  if (!along || !across || along % blocks != 0 || blocks > along) return 0;
  for (int64_t i = 0; i < w->size; i++) {
    const int64_t a = k->turned ? i % columns : i / columns;
    const int64_t b = k->turned ? i / columns : i % columns;
    const int64_t block = a / (along / blocks);
    shared[i] = k->by_column ? block * across + b : block;
  }
  return k->by_column ? blocks * across : blocks;
}

static assay_status_t solve_shared(const assay_by_samples_t* like, double deadline,
                                   assay_tensor_t** out) {
  // Gates: of RNN, GRU, LSTM with its two biases, of both directions.
  static const sharing_t SHARINGS[] = {
      {1, false, true, true},   {3, false, true, true},   {4, false, true, true},
      {6, false, true, true},   {8, false, true, true},   {8, true, true, true},
      {0, false, false, false}, {0, false, true, false},  {2, true, false, false},
      {2, true, true, false},   {4, true, false, false},  {4, true, true, false},
      {8, true, false, false},  {8, true, true, false},   {3, true, false, false},
      {3, true, true, false},   {16, true, false, false}, {16, true, true, false}};
  assay_tensor_t *w = like->s->in[like->s->input], *part = NULL;
  int64_t* shared = NULL;
  if (!w->rank) return NULL;
  ASSAY_TRY(assay_tensor_copy(w, &part));
  assay_status_t st = assay_new_array((size_t)w->size, sizeof *shared, &shared);
  for (size_t i = 0; !st && !*out && i < sizeof SHARINGS / sizeof *SHARINGS; i++) {
    assay_by_samples_t y = *like;
    y.n = share(w, &SHARINGS[i], shared);
    y.shared = shared;
    y.part = assay_f64(part);
    for (int64_t k = 0; k < w->size; k++)
      assay_f64(part)[k] = SHARINGS[i].adds ? 1 : assay_f64(w)[k];
    // As many unknowns as elements are those that were tried before.
    if (y.n < w->size && assay_clock_seconds() < deadline)
      st = assay_by_samples_solve(&y, deadline, out);
  }
  assay_free(shared);
  assay_tensor_release(part);
  return st;
}

assay_status_t assay_solve_samples(const assay_solve_t* s, bool shares, double deadline,
                                   assay_tensor_t** out) {
  assay_by_samples_t y = assay_by_samples_of(s);
  *out = NULL;
  return shares ? solve_shared(&y, deadline, out) : assay_by_samples_solve(&y, deadline, out);
}

// Whether a weight gives what the sample at hand has.
static assay_status_t fits_sample(const assay_solve_t* s, assay_tensor_t* w, bool* out) {
  assay_tensor_t* made = NULL;
  ASSAY_TRY(assay_solve_evaluate(s, w, &made));
  *out = made && assay_difference(made, s->want).rms <= 1e-4 * rms_of(s->want);
  assay_tensor_release(made);
  return NULL;
}

assay_status_t assay_solve_open(const assay_solve_t* s, double deadline, assay_tensor_t** out) {
  const size_t others = assay_holdout_count(s->holdout);
  assay_null_space_t open = {0};
  assay_tensor_t* start = NULL;
  bool fits = false;
  *out = NULL;
  if (others < 2) return NULL;
  ASSAY_TRY(assay_null_space_create(s, &open));
  assay_status_t st =
      open.n > 0 && open.n <= ASSAY_BY_SAMPLES_UNKNOWNS ? assay_solve_rows(s, NULL, &start) : NULL;
  if (!st && start) st = fits_sample(s, start, &fits);
  if (!st && fits) {
    assay_by_samples_t y = assay_by_samples_of(s);
    y.n = open.n;
    y.start = start;
    y.open = &open;
    st = assay_by_samples_solve(&y, deadline, out);
    y.samples = others;
    y.refines = true;
    y.start = *out;
    if (!st && *out) {
      *out = NULL;
      st = assay_by_samples_solve(&y, deadline, out);
      assay_tensor_release(y.start);
    }
  }
  assay_tensor_release(start);
  assay_null_space_deinit(&open);
  return st;
}

assay_status_t assay_solve_unknown(const assay_solve_t* s, assay_tensor_t* start,
                                   const bool* unknown, double deadline, assay_tensor_t** out) {
  assay_by_samples_t y = assay_by_samples_of(s);
  y.start = start;
  y.n = 0;
  int64_t* shared = NULL;
  double* part = NULL;
  *out = NULL;
  assay_status_t st = assay_new_array((size_t)start->size, sizeof *shared, &shared);
  if (!st) st = assay_new_array((size_t)start->size, sizeof *part, &part);
  for (int64_t i = 0; !st && i < start->size; i++) {
    shared[i] = unknown[i] ? y.n++ : -1;
    part[i] = fmax(rms_of(start), 1e-6);
  }
  y.shared = shared;
  y.part = part;
  if (!st) st = assay_by_samples_solve(&y, deadline, out);
  assay_free(shared);
  assay_free(part);
  return st;
}
