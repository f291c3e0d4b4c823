// Which arithmetic golden was computed in: each is emulated beside truth.
#include "diagnose/kinds/arithmetic_find.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "plan/plan.h"

// The part of the search's time that this may take, and the search's default.
static const double PART = 0.25, DEFAULT_SECONDS = 40;

static unsigned products_in(const assay_model_t* m) {
  unsigned found = 0;
  for (size_t g = 0; g < m->n_graphs; g++)
    for (size_t i = 0; i < m->graphs[g]->n_nodes; i++)
      found |= assay_golden_arithmetic_products(m->graphs[g]->nodes[i]);
  return found;
}

static bool has_outputs_only(const assay_golden_t* golden) {
  for (size_t i = 0; i < golden->n; i++)
    if (golden->at[i].value && !golden->at[i].value->is_output) return false;
  return true;
}

enum { MAX_TRIED = 24 };

typedef struct tried_arithmetic {
  assay_golden_arithmetic_t arithmetic;
  double like;  // assay_golden_arithmetic_likeness
} tried_arithmetic_t;

typedef struct finder {
  const assay_model_t* model;
  const assay_samples_t* inputs;
  const assay_golden_t* golden;
  assay_export_options_t options;
  assay_golden_arithmetic_probe_t probe;
  double best;
  double size;  // of that: assay_golden_arithmetic_size
  bool whole;   // it explains all inner values
  double half;  // the largest correlation of a value's errors with those of fp16
  tried_arithmetic_t tried[MAX_TRIED];
  size_t n_tried;
} finder_t;

static assay_status_t measure(finder_t* f, const assay_golden_arithmetic_t* a, double* out) {
  assay_export_t nothing = {0};
  memset(f->probe.at, 0, f->probe.n * sizeof *f->probe.at);
  f->options.arithmetic = *a;
  f->probe.faint = a->parts > 1;
  assay_status_t st = assay_chain_run(f->model, f->inputs, f->golden, &f->options, &nothing);
  assay_export_deinit(&nothing);
  // A model that does not run in it is judged by the check, not here.
  if (st && assay_status_code(st) != ASSAY_NO_MEMORY) return assay_status_free(st), NULL;
  if (st) return st;
  *out = assay_golden_arithmetic_judge(&f->probe, has_outputs_only(f->golden));
  if (a->format == ASSAY_FORMAT_FP16)
    f->half = fmax(f->half, assay_golden_arithmetic_trace(&f->probe));
  return NULL;
}

static assay_status_t try_one(finder_t* f, const assay_golden_arithmetic_t* a,
                              assay_golden_arithmetic_t* best) {
  double score = 0;
  ASSAY_TRY(measure(f, a, &score));
  if (score > f->best) {
    f->best = score;
    f->whole = !has_outputs_only(f->golden) && assay_golden_arithmetic_is_whole(&f->probe);
    f->size = assay_golden_arithmetic_size(&f->probe);
    *best = *a;
  }
  return NULL;
}

// Whether outputs are as emulated to the bit, or inner values each by itself: then nothing is left
// to try.
static bool is_settled(const finder_t* f) {
  static const double EXACT = 0.99999;
  return has_outputs_only(f->golden) ? f->best > EXACT : f->whole;
}

// Takes a row up among those that were tried: the likeliest first, those that are about as likely
// as in the table.
static void take_up(finder_t* f, const assay_golden_arithmetic_t* a) {
  static const double CLEARLY = 1e-3;
  const double like = assay_golden_arithmetic_likeness(&f->probe, has_outputs_only(f->golden));
  if (f->n_tried == MAX_TRIED) return;
  size_t i = f->n_tried++;
  for (; i && like > f->tried[i - 1].like + CLEARLY; i--) f->tried[i] = f->tried[i - 1];
  f->tried[i].arithmetic = *a;
  f->tried[i].like = like;
}

// All products; where they give few bits, with their biases and without.
static assay_status_t try_rows(finder_t* f, double deadline, assay_golden_arithmetic_t* best) {
  for (const assay_golden_arithmetic_t* row = assay_golden_arithmetics;
       row->format != ASSAY_FORMAT_NONE; row++) {
    assay_golden_arithmetic_t a = *row;
    const bool twice = row->scope == ASSAY_ARITHMETIC_PRODUCTS;
    for (int spared = 0; spared <= twice; spared++) {
      if (is_settled(f) || assay_clock_seconds() > deadline) return NULL;
      a.spares_biases = spared;
      ASSAY_TRY(try_one(f, &a, best));
      take_up(f, &a);
    }
  }
  return NULL;
}

// Single places that the model has.
static assay_status_t try_places(finder_t* f, double deadline, assay_golden_arithmetic_t* best) {
  for (const assay_golden_arithmetic_t* row = assay_golden_arithmetic_places;
       row->format != ASSAY_FORMAT_NONE; row++) {
    if (is_settled(f) || assay_clock_seconds() > deadline) return NULL;
    if (assay_golden_arithmetic_has_place(row, f->model)) ASSAY_TRY(try_one(f, row, best));
  }
  return NULL;
}

static const unsigned MATRICES = ASSAY_PRODUCTS_MATRIX | ASSAY_PRODUCTS_COMPUTED;

// Some products, the whole set first where it was not tried.
static assay_status_t try_parts_of(finder_t* f, const assay_golden_arithmetic_t* row, bool whole,
                                   unsigned found, double deadline,
                                   assay_golden_arithmetic_t* best) {
  assay_golden_arithmetic_t a = *row;
  for (unsigned some = whole ? found : (found - 1) & found; some; some = (some - 1) & found) {
    if ((a.spares_vectors || a.addends) && !(some & MATRICES)) continue;
    if (is_settled(f) || assay_clock_seconds() > deadline) return NULL;
    a.products = some == found ? some | ASSAY_PRODUCTS_ANY : some;
    ASSAY_TRY(try_one(f, &a, best));
  }
  return NULL;
}

// Convolutions alone, matrix products alone, all but recurrent layers, for libraries have a switch
// for each; of TF32 all that have no vector, too.
static assay_status_t try_parts(finder_t* f, unsigned found, double deadline,
                                assay_golden_arithmetic_t* best) {
  for (size_t i = 0; i < f->n_tried; i++) {
    assay_golden_arithmetic_t a = f->tried[i].arithmetic;
    if (a.scope == ASSAY_ARITHMETIC_ALL || a.scope == ASSAY_ARITHMETIC_CONSTANTS) continue;
    const bool written = found & ASSAY_PRODUCTS_WRITTEN;
    ASSAY_TRY(try_parts_of(f, &a, written, found, deadline, best));
    a.spares_vectors = true;
    if (a.format == ASSAY_FORMAT_TF32 && !a.truncates && a.scope == ASSAY_ARITHMETIC_OPERANDS)
      ASSAY_TRY(try_parts_of(f, &a, true, found, deadline, best));
  }
  return NULL;
}

// Sums in fp16, of so many products at a time as units for them add up at once: ARM's vectors one,
// NVIDIA's tensor cores four (Volta), eight (Ampere) or sixteen. Only the emulation in the same
// steps is alike; that operands were rounded shows in the others, too, and without it none of these
// is tried. Source: M. Fasi and others, Numerical behavior of NVIDIA tensor cores, PeerJ Computer
// Science 7 (2021).
static assay_status_t try_sums(finder_t* f, unsigned found, double deadline,
                               assay_golden_arithmetic_t* best) {
  static const double LEAST = 0.1;
  static const int ADDENDS[] = {4, 8, 16, 1};
  static const assay_golden_arithmetic_scope_t SCOPES[] = {
      ASSAY_ARITHMETIC_OPERANDS, ASSAY_ARITHMETIC_PRODUCTS, ASSAY_ARITHMETIC_AUTOCAST,
      ASSAY_ARITHMETIC_ALL};
  if (f->half < LEAST || !(found & MATRICES)) return NULL;
  for (size_t k = 0; k < sizeof SCOPES / sizeof *SCOPES; k++)
    for (size_t i = 0; i < sizeof ADDENDS / sizeof *ADDENDS; i++)
      for (int apart = 0; apart < (ADDENDS[i] > 1 ? 2 : 1); apart++) {
        const assay_golden_arithmetic_t a = {
            .format = ASSAY_FORMAT_FP16,
            .scope = SCOPES[k],
            .products = ASSAY_PRODUCTS_ANY,
            .spares_biases = SCOPES[k] == ASSAY_ARITHMETIC_PRODUCTS,
            .addends = ADDENDS[i],
            .sums_apart = apart};
        ASSAY_TRY(try_parts_of(f, &a, true, found, deadline, best));
      }
  return NULL;
}

// Adds the squares of the correlations of golden's errors with those of other draws.
static assay_status_t draw(finder_t* f, const assay_golden_arithmetic_t* a, uint64_t from,
                           uint64_t to, double* squares) {
  for (uint64_t k = from; k < to; k++) {
    assay_golden_arithmetic_t by_chance = *a;
    double score = 0;
    by_chance.truncates = false;
    by_chance.draw = k + 1;
    ASSAY_TRY(measure(f, &by_chance, &score));
    const double c = assay_golden_arithmetic_correlation(&f->probe);
    *squares += c * c;
  }
  return NULL;
}

// Whether outputs are more alike than any errors of this size are among them: those of other draws
// tell, more of them where they are nearly the same and few.
static assay_status_t is_no_chance(finder_t* f, const assay_golden_arithmetic_t* a, bool* out) {
  static const double NEARLY = 0.98;
  enum { DRAWS = 8, MORE = 40 };
  double squares = 0;
  ASSAY_TRY(draw(f, a, 0, DRAWS, &squares));
  *out = assay_golden_arithmetic_is_sure(f->best, f->size, squares / DRAWS);
  if (*out || f->best < NEARLY) return NULL;
  ASSAY_TRY(draw(f, a, DRAWS, MORE, &squares));
  *out = assay_golden_arithmetic_is_sure(f->best, f->size, squares / MORE);
  return NULL;
}

assay_status_t assay_golden_arithmetic_find(const assay_model_t* model,
                                            const assay_samples_t* inputs,
                                            const assay_golden_t* golden,
                                            const assay_export_options_t* options,
                                            assay_golden_arithmetic_t* out) {
  const unsigned found = products_in(model);
  const double seconds = options->seconds > 0 ? options->seconds : DEFAULT_SECONDS;
  const double deadline = assay_clock_seconds() + PART * seconds;
  *out = (assay_golden_arithmetic_t){.format = ASSAY_FORMAT_NONE};
  if (assay_model_quantizes(model)) return NULL;
  finder_t f = {.model = model,
                .inputs = inputs,
                .golden = golden,
                .options = *options,
                .probe = {.n = (size_t)model->n_values}};
  f.options.no_search = true;
  f.options.probe = &f.probe;
  assay_status_t st = assay_new_array(f.probe.n, sizeof *f.probe.at, &f.probe.at);
  if (!st && found) st = try_rows(&f, deadline, out);
  if (!st) st = try_places(&f, deadline, out);
  if (!st && found) st = try_parts(&f, found, deadline, out);
  if (!st && found) st = try_sums(&f, found, deadline, out);
  bool sure = true;
  if (!st && out->format != ASSAY_FORMAT_NONE && has_outputs_only(golden))
    st = is_no_chance(&f, out, &sure);
  if (!sure) *out = (assay_golden_arithmetic_t){.format = ASSAY_FORMAT_NONE};
  assay_free(f.probe.at);
  return st;
}
