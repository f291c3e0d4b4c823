// Places of a node, and functions of one value at each: of its numbers, and along its axes.
#include "base/functions.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "diagnose/anywhere/anywhere.h"
#include "diagnose/proposals.h"

static bool is_float(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64 && t->size > 0;
}

static bool is_constant_node(const assay_node_t* n) {
  return !*n->domain && strcmp(n->op_type, "Constant") == 0;
}

// ---- places ------------------------------------------------------------------------------------

// Whether what stands before an input is no other place than what stands after another node.
static bool is_own(const assay_suspect_t* s, const assay_value_t* v) {
  const assay_node_t* const* readers = NULL;
  return !v->producer || is_constant_node(v->producer) ||
         assay_around_readers(s->around, v, &readers) > 1;
}

size_t assay_places_of(const assay_suspect_t* s, assay_anywhere_place_t* out) {
  size_t n = 0;
  if (!s->around || *s->node->domain || is_constant_node(s->node)) return 0;
  for (size_t k = 0; k < s->n_out && n < ASSAY_PLACES - 1; k++)
    if (s->node->outputs[k] && is_float(s->out[k]))
      out[n++] =
          (assay_anywhere_place_t){.input = s->n_in + k, .v = s->node->outputs[k], .x = s->out[k]};
  for (size_t i = 0; i < s->n_in && n < ASSAY_PLACES; i++) {
    const assay_value_t* v = s->node->inputs[i];
    if (v && is_float(s->in[i]) && is_own(s, v))
      out[n++] = (assay_anywhere_place_t){.input = i, .v = v, .x = s->in[i]};
  }
  return n;
}

assay_status_t assay_offer_at(const assay_suspect_t* s, const char* cause,
                              const assay_anywhere_place_t* p, const assay_formula_terms_t* terms,
                              const char* what, const assay_trial_t* t, bool* stop) {
  assay_formula_terms_t full = *terms;
  char text[200];
  full.source = p->source;
  if (p->source)
    snprintf(text, sizeof text, "%s of '%.90s' in place of it", what, p->source->name);
  else
    snprintf(text, sizeof text, "%s %s '%.100s'", what,
             p->input < s->n_in ? "before it of" : "after it of", p->v->name);
  return assay_offer_program(s, cause, p->input, &full, text, t, stop);
}

// ---- of single numbers -------------------------------------------------------------------------

typedef struct function {
  const char *name, *program;
} function_t;

static const function_t functions[] = {
#define ASSAY_ACTIVATION(name, program) {name, program},
#include "diagnose/solve/formulas/activations.inc"
#undef ASSAY_ACTIVATION
    {"LeakyRelu of 0.01", "x dup 0.01 * max"},
    {"LeakyRelu of 0.1", "x dup 0.1 * max"},
    {"LeakyRelu of 0.2", "x dup 0.2 * max"},
    {"exp(x) - 1", "x Exp 1 -"},
    {"log(1 + x)", "x 1 + Log"},
    {"the inverse of the root", "x Sqrt Reciprocal"},
    {"the half of the logarithm as Exp", "x 0.5 * Exp"},
    {"2x - 1", "x 2 * 1 -"},
    {"(x + 1) / 2", "x 1 + 0.5 *"},
    // Centres within a cell, and what they were made from: C.-Y. Wang et al., 2021 (Scaled-YOLOv4).
    {"2x - 0.5", "x 2 * 0.5 -"},
    {"(x + 0.5) / 2", "x 0.5 + 0.5 *"},
    {"1.05x - 0.025", "x 1.05 * 0.025 -"},
    {"1.1x - 0.05", "x 1.1 * 0.05 -"},
    {"1.2x - 0.1", "x 1.2 * 0.1 -"},
    {"the square of 2x", "x 2 * dup *"},
    {"x + 1", "x 1 +"},
    {"x - 1", "x 1 -"},
    {"x + 0.5", "x 0.5 +"},
    {"x - 0.5", "x 0.5 -"},
    {"1 + log(x)", "x Log 1 +"},
    {"1 / (1 + x)", "x 1 + Reciprocal"},
    {"x / (1 - x)", "x 1 x - /"},
    {"2 to its power", "2 x ^"},
    {"10 to its power", "10 x ^"},
    {"the cube", "x dup dup * *"},
    {"the cube root", "x 0.33333333333333333 ^"},
    // Light as screens have it, and back: IEC 61966-2-1; M. Stokes et al., 1996.
    {"the power of 2.2", "x 2.2 ^"},
    {"the root of 2.2", "x 0.45454545454545455 ^"},
    {"light as sRGB", "x 0.0031308 <= x 12.92 * x 0.41666666666666667 ^ 1.055 * 0.055 - where"},
    {"sRGB as light", "x 0.04045 <= x 12.92 / x 0.055 + 1.055 / 2.4 ^ where"},
    // Sound in even steps of loudness, and back: ITU-T G.711.
    {"sound from mu-law", "256 x Abs ^ 1 - 255 / x Sign *"},
    {"sound as mu-law", "x Abs 255 * 1 + Log 5.5451774444795625 / x Sign *"},
    // Targets of all sizes, with their sign: D. Hafner et al., 2023 (DreamerV3).
    {"sign(x) log(1 + |x|)", "x Abs 1 + Log x Sign *"},
    {"sign(x) (exp(|x|) - 1)", "x Abs Exp 1 - x Sign *"},
    // Values of games, and what is learned: T. Pohlen et al., 2018.
    {"the value of its scaled root", "x Abs 1.001 + 0.004 * 1 + Sqrt 1 - 500 * dup * 1 - x Sign *"},
    {"the value of its scaled root, of 0.01",
     "x Abs 1.01 + 0.04 * 1 + Sqrt 1 - 50 * dup * 1 - x Sign *"},
    {"the value of its scaled root, of 0.02",
     "x Abs 1.02 + 0.08 * 1 + Sqrt 1 - 25 * dup * 1 - x Sign *"},
    {"the scaled root", "x Abs 1 + Sqrt 1 - x Sign * x 0.001 * +"},
    {"the scaled root, of 0.01", "x Abs 1 + Sqrt 1 - x Sign * x 0.01 * +"},
    {"the root with its sign", "x Abs Sqrt x Sign *"},
    {"the bound at 0 and 1", "x 0 max 1 min"},
    {"the bound at -1 and 1", "x -1 max 1 min"},
};

// Not where it would make infinities or NaN.
static bool is_defined(const char* program, const assay_tensor_t* x) {
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (int64_t i = 0; i < x->size; i++) {
    low = fmin(low, assay_f64(x)[i]);
    high = fmax(high, assay_f64(x)[i]);
  }
  if (strncmp(program, "x Log", 5) == 0 || strstr(program, "Reciprocal")) return low > 0;
  if (strncmp(program, "x 1 + Log", 9) == 0) return low > -1;
  if (strncmp(program, "x 1 x - /", 9) == 0) return low >= 0 && high < 1;
  if (strncmp(program, "10 x ^", 6) == 0 || strncmp(program, "2 x ^", 5) == 0) return high < 30;
  if (strncmp(program, "256 x", 5) == 0) return low > -1.5 && high < 1.5;
  if (strchr(program, '^') && !strstr(program, "Abs")) return low >= 0;
  if (strncmp(program, "x Sqrt", 6) == 0) return low >= 0;
  return !strstr(program, "Exp") || (high < 80 && (low > -80 || !strstr(program, "Abs")));
}

static bool is_sound(const assay_tensor_t* x) {
  double low = 0, high = 0;
  for (int64_t i = 0; i < x->size; i++) {
    low = fmin(low, assay_f64(x)[i]);
    high = fmax(high, assay_f64(x)[i]);
  }
  return low < 0 && high > 0 && low > -1.01 && high < 1.01;
}

static assay_status_t offer_functions(const assay_suspect_t* s, const char* cause,
                                      const assay_anywhere_place_t* p, const assay_trial_t* t,
                                      bool* stop) {
  for (size_t i = 0; i < sizeof functions / sizeof *functions && !*stop; i++) {
    const assay_formula_terms_t terms = {.program = functions[i].program};
    if (is_defined(functions[i].program, p->x))
      ASSAY_TRY(assay_offer_at(s, cause, p, &terms, functions[i].name, t, stop));
  }
  return NULL;
}

// Sound from even steps of loudness, by so many levels: of 7 to 10 bits (A. van den Oord et al.,
// 2016; fatchord/WaveRNN), and as it is in them. 8 bits are among the functions.
static assay_status_t offer_loudness(const assay_suspect_t* s, const char* cause,
                                     const assay_anywhere_place_t* p, const assay_trial_t* t,
                                     bool* stop) {
  static const int highest[] = {127, 1023, 511, 63, 65535};
  for (size_t i = 0; i < sizeof highest / sizeof *highest && !*stop; i++) {
    const int mu = highest[i];
    char program[80], what[40];
    snprintf(program, sizeof program, "%d x Abs ^ 1 - %d / x Sign *", mu + 1, mu);
    snprintf(what, sizeof what, "sound from mu-law of %d", mu);
    const assay_formula_terms_t from = {.program = program};
    ASSAY_TRY(assay_offer_at(s, cause, p, &from, what, t, stop));
    if (*stop) return NULL;
    snprintf(program, sizeof program, "x Abs %d * 1 + Log %.17g / x Sign *", mu,
             assay_log(mu + 1.0));
    snprintf(what, sizeof what, "sound as mu-law of %d", mu);
    const assay_formula_terms_t as = {.program = program};
    ASSAY_TRY(assay_offer_at(s, cause, p, &as, what, t, stop));
  }
  return NULL;
}

// After what the node gives, before what it reads, or of what it reads in place of what it gives.
assay_status_t assay_propose_any_function(const assay_suspect_t* s, const char* cause,
                                          const assay_trial_t* t, bool* stop) {
  assay_anywhere_place_t places[ASSAY_PLACES];
  const size_t n = assay_places_of(s, places);
  for (size_t i = 0; i < n && !*stop; i++) {
    ASSAY_TRY(offer_functions(s, cause, &places[i], t, stop));
    // Of what is between -1 and 1, both signs.
    if (!*stop && is_sound(places[i].x)) ASSAY_TRY(offer_loudness(s, cause, &places[i], t, stop));
  }
  if (!n || places[0].input != s->n_in) return NULL;
  for (size_t i = 0; i < s->n_in && !*stop; i++) {
    const assay_value_t* v = s->node->inputs[i];
    if (!v || assay_around_is_constant(v) || !is_float(s->in[i]) ||
        !assay_tensor_same_shape(s->in[i], s->out[0]))
      continue;
    const assay_anywhere_place_t p = {
        .input = s->n_in, .v = places[0].v, .x = s->in[i], .source = v};
    ASSAY_TRY(offer_functions(s, cause, &p, t, stop));
  }
  return NULL;
}

// ---- factors -----------------------------------------------------------------------------------

// Units: half turns and turns, degrees, bits, decades, decibels, percents, bytes; and what is a
// matter of the width. Far from 1 a fit does not find the way to them through sines and softmaxes.
assay_status_t assay_propose_any_factor(const assay_suspect_t* s, const char* cause,
                                        const assay_trial_t* t, bool* stop) {
  static const double PI = 3.14159265358979323846;
  const double usual[] = {PI,
                          2 * PI,
                          PI / 180,
                          180 / PI,
                          PI / 2,
                          2,
                          -1,
                          4,
                          10,
                          100,
                          1000,
                          255,
                          127.5,
                          0.69314718055994531,
                          2.3025850929940457,
                          4.3429448190325183};
  assay_anywhere_place_t places[ASSAY_PLACES];
  const size_t n = assay_places_of(s, places), count = sizeof usual / sizeof *usual;
  for (size_t i = 0; i < n && !*stop; i++) {
    const assay_tensor_t* x = places[i].x;
    const double width = x->rank ? (double)x->dims[x->rank - 1] : 1;
    for (size_t k = 0; k < 2 * count + 4 && !*stop; k++) {
      const double f = k < count       ? usual[k]
                       : k < 2 * count ? 1 / usual[k - count]
                       : k % 2         ? (k - 2 * count < 2 ? width : sqrt(width))
                                       : 1 / (k - 2 * count < 2 ? width : sqrt(width));
      char program[64], what[64];
      if (f == 1 || (k > count && f == -1)) continue;
      snprintf(program, sizeof program, "x %.17g *", f);
      snprintf(what, sizeof what, "factor %.9g", f);
      const assay_formula_terms_t terms = {.program = program};
      ASSAY_TRY(assay_offer_at(s, cause, &places[i], &terms, what, t, stop));
    }
  }
  return NULL;
}

// ---- along axes --------------------------------------------------------------------------------

static const function_t along[] = {
    {"less its mean", "x x mean -"},
    {"over its length", "x x dup * sum Sqrt /"},
    {"over its length, bounded", "x x dup * sum Sqrt 1e-12 max /"},
    {"over its sum", "x x sum /"},
    {"over the sum of its absolutes", "x x Abs sum /"},
    {"over its largest", "x x highest /"},
    {"over its largest absolute", "x x Abs highest /"},
    {"less its largest", "x x highest -"},
    {"less its smallest", "x x lowest -"},
    {"over its mean", "x x mean /"},
    {"standardized", "x x mean - dup dup * mean Sqrt /"},
    // As filters that are learned without their mean and length: S. Qiao et al., 2019.
    {"less its mean, over its length", "x x mean - dup dup * sum Sqrt /"},
    {"standardized, with 1e-5", "x x mean - dup dup * mean 1e-05 + Sqrt /"},
    {"over the root of its mean square, with 1e-5", "x x dup * mean 1e-05 + Sqrt /"},
    {"over the root of its mean square, with 1e-6", "x x dup * mean 1e-06 + Sqrt /"},
    {"from 0 to 1", "x x lowest - x highest x lowest - /"},
    // Decades, and decibels, below the loudest: A. Radford et al., 2022 (Whisper); librosa.
    {"no less than 8 below its largest", "x x highest 8 - max"},
    {"no less than 80 below its largest", "x x highest 80 - max"},
    {"plus its mean", "x x mean +"},
};

// Sets of axes: each alone, the last two, all but the first, all but the first two.
static size_t list_axes(const assay_tensor_t* x, unsigned* out) {
  enum { MOST = 5 };
  size_t n = 0;
  if (x->rank < 1 || x->rank > MOST) return 0;
  const unsigned all = (1U << x->rank) - 1;
  for (int i = x->rank; i-- > 0;)
    if (x->dims[i] > 1) out[n++] = 1U << i;
  const unsigned sets[] = {all, x->rank > 1 ? all & ~1U : 0, x->rank > 2 ? all & ~3U : 0,
                           x->rank > 2 ? 3U << (x->rank - 2) : 0};
  for (size_t k = 0; k < sizeof sets / sizeof *sets; k++) {
    bool known = !(sets[k] & (sets[k] - 1));
    for (size_t i = 0; i < n; i++) known |= out[i] == sets[k];
    if (!known) out[n++] = sets[k];
  }
  return n;
}

static assay_formula_terms_t over(unsigned set) {
  assay_formula_terms_t terms = {0};
  for (int i = 0; i < ASSAY_MAX_RANK && set >> i; i++)
    if (set >> i & 1) terms.axes[terms.n_axes++] = i;
  return terms;
}

static void print_axes(const assay_formula_terms_t* terms, const char* name, char* to,
                       size_t capacity) {
  int used = snprintf(to, capacity, "%s over dimension%s", name, terms->n_axes > 1 ? "s" : "");
  for (int i = 0; i < terms->n_axes && used > 0 && (size_t)used < capacity; i++)
    used += snprintf(to + used, capacity - (size_t)used, "%s%lld", i ? "," : " ",
                     (long long)terms->axes[i]);
}

// Of constants those alone that layers multiply with: what else is a constant has no axes that
// anything is taken over.
static bool has_axes(const assay_suspect_t* s, const assay_anywhere_place_t* p) {
  static const char* const layers[] = {"Conv", "ConvTranspose", "Gemm", "MatMul", NULL};
  if (!assay_around_is_constant(p->v)) return true;
  for (const char* const* name = layers; *name; name++)
    if (strcmp(s->node->op_type, *name) == 0) return p->x->rank > 1;
  return false;
}

// Means, lengths and extremes of what is there.
assay_status_t assay_propose_any_norm(const assay_suspect_t* s, const char* cause,
                                      const assay_trial_t* t, bool* stop) {
  assay_anywhere_place_t places[ASSAY_PLACES];
  unsigned sets[ASSAY_MAX_RANK + 3];
  const size_t n = assay_places_of(s, places);
  for (size_t i = 0; i < n && !*stop; i++) {
    const size_t n_sets = has_axes(s, &places[i]) ? list_axes(places[i].x, sets) : 0;
    for (size_t k = 0; k < n_sets; k++)
      for (size_t f = 0; f < sizeof along / sizeof *along && !*stop; f++) {
        assay_formula_terms_t terms = over(sets[k]);
        char what[100];
        print_axes(&terms, along[f].name, what, sizeof what);
        terms.program = along[f].program;
        ASSAY_TRY(assay_offer_at(s, cause, &places[i], &terms, what, t, stop));
      }
  }
  return NULL;
}
