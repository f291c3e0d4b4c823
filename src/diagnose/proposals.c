// The table of causes, and proposals that change attributes.
#include "diagnose/proposals.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

#define ASSAY_PROPOSAL(stage, cause, function) {cause, stage, function},
static const assay_proposal_t proposals[] = {
#include "diagnose/proposals.inc"
};
#undef ASSAY_PROPOSAL

size_t assay_proposal_count(void) { return sizeof proposals / sizeof *proposals; }
const assay_proposal_t* assay_proposal_get(size_t i) { return &proposals[i]; }

// ---- shared ------------------------------------------------------------------------------------

// Rank of what the node works on.
static int data_rank(const assay_suspect_t* s) {
  for (size_t i = 0; i < s->n_in; i++)
    if (s->in[i] && s->in[i]->kind == ASSAY_KIND_TENSOR) return s->in[i]->rank;
  return 0;
}

static assay_repair_t attr_repair(const assay_suspect_t* s, const char* cause,
                                  const assay_attr_spec_t* a) {
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_ATTR);
  r.edits[0].attr = (assay_attr_t){.name = a->name, .type = a->type, .n = 1, .doc = "", .ref = ""};
  return r;
}

// ---- floats ------------------------------------------------------------------------------------

static double float_now(const assay_suspect_t* s, const assay_attr_spec_t* a) {
  return assay_attr_f64(s->node, a->name, a->has_default ? a->f : 0);
}

static assay_status_t offer_float(const assay_suspect_t* s, const char* cause,
                                  const assay_attr_spec_t* a, double value, const assay_trial_t* t,
                                  bool* stop) {
  assay_repair_t r = attr_repair(s, cause, a);
  r.start = float_now(s, a);
  if ((float)value == (float)r.start) return NULL;
  ASSAY_TRY(assay_repair_set_value(&r, value));
  return assay_offer(t, &r, stop);
}

assay_status_t assay_propose_epsilon(const assay_suspect_t* s, const char* cause,
                                     const assay_trial_t* t, bool* stop) {
  static const double usual[] = {1e-5, 1e-6, 1e-3, 1e-12, 1e-8, 1e-7, 2e-5, 1e-4, 1e-2, 0};
  const assay_schema_t* schema = s->node->schema;
  for (int i = 0; schema && i < schema->n_attrs && !*stop; i++) {
    const assay_attr_spec_t* a = &schema->attrs[i];
    if (a->type != ASSAY_ATTR_FLOAT || !strstr(a->name, "epsilon")) continue;
    for (size_t k = 0; k < sizeof usual / sizeof *usual && !*stop; k++)
      ASSAY_TRY(offer_float(s, cause, a, usual[k], t, stop));
  }
  return NULL;
}

assay_status_t assay_propose_float_default(const assay_suspect_t* s, const char* cause,
                                           const assay_trial_t* t, bool* stop) {
  const assay_schema_t* schema = s->node->schema;
  for (int i = 0; schema && i < schema->n_attrs && !*stop; i++) {
    const assay_attr_spec_t* a = &schema->attrs[i];
    if (a->type != ASSAY_ATTR_FLOAT || strstr(a->name, "epsilon")) continue;
    const double usual[] = {a->has_default ? a->f : 1, 1, 0, 0.01, 0.2, 0.5, -1};
    for (size_t k = 0; k < sizeof usual / sizeof *usual && !*stop; k++)
      if (k == 0 || usual[k] != usual[0]) ASSAY_TRY(offer_float(s, cause, a, usual[k], t, stop));
  }
  return NULL;
}

assay_status_t assay_propose_float_fit(const assay_suspect_t* s, const char* cause,
                                       const assay_trial_t* t, bool* stop) {
  const assay_schema_t* schema = s->node->schema;
  for (int i = 0; schema && i < schema->n_attrs && !*stop; i++) {
    const assay_attr_spec_t* a = &schema->attrs[i];
    if (a->type != ASSAY_ATTR_FLOAT) continue;
    const bool epsilon = strstr(a->name, "epsilon");
    assay_repair_t r = attr_repair(s, epsilon ? "epsilon" : cause, a);
    r.fits = true;
    r.start = r.value = float_now(s, a);
    r.edits[0].attr.u.f = (float)r.start;
    ASSAY_TRY(assay_offer(t, &r, stop));
  }
  return NULL;
}

// ---- integers ----------------------------------------------------------------------------------

static assay_status_t offer_int(const assay_suspect_t* s, const char* cause,
                                const assay_attr_spec_t* a, int64_t now, int64_t value,
                                const assay_trial_t* t, bool* stop) {
  assay_repair_t r = attr_repair(s, cause, a);
  r.edits[0].attr.u.i = value;
  snprintf(r.text, sizeof r.text, "%s = %lld instead of %lld", a->name, (long long)value,
           (long long)now);
  return assay_offer(t, &r, stop);
}

static bool is_axis_name(const char* name) {
  return strstr(name, "axis") || strcmp(name, "batch_dims") == 0 || strcmp(name, "blocksize") == 0;
}

assay_status_t assay_propose_axis(const assay_suspect_t* s, const char* cause,
                                  const assay_trial_t* t, bool* stop) {
  const assay_schema_t* schema = s->node->schema;
  const int rank = data_rank(s);
  for (int i = 0; schema && i < schema->n_attrs; i++) {
    const assay_attr_spec_t* a = &schema->attrs[i];
    if (a->type != ASSAY_ATTR_INT || !is_axis_name(a->name)) continue;
    const int64_t now = assay_attr_i64(s->node, a->name, a->has_default ? a->i : 0);
    const int64_t place = now < 0 ? now + rank : now;
    for (int64_t axis = 0; axis < rank && !*stop; axis++)
      if (axis != place) ASSAY_TRY(offer_int(s, cause, a, now, axis, t, stop));
  }
  return NULL;
}

// Attributes that are 0 or 1, and are not a type, a size or an axis.
assay_status_t assay_propose_flag(const assay_suspect_t* s, const char* cause,
                                  const assay_trial_t* t, bool* stop) {
  static const char* const others[] = {"to", "dtype", "group", "num_outputs", "output_dtype"};
  const assay_schema_t* schema = s->node->schema;
  for (int i = 0; schema && i < schema->n_attrs && !*stop; i++) {
    const assay_attr_spec_t* a = &schema->attrs[i];
    if (a->type != ASSAY_ATTR_INT || is_axis_name(a->name)) continue;
    bool skip = false;
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
      skip |= strcmp(a->name, others[k]) == 0;
    const int64_t now = assay_attr_i64(s->node, a->name, a->has_default ? a->i : 0);
    if (skip || (now != 0 && now != 1)) continue;
    ASSAY_TRY(offer_int(s, cause, a, now, 1 - now, t, stop));
  }
  return NULL;
}

// ---- texts -------------------------------------------------------------------------------------

// Every text that an attribute of a name takes in some operator; those that this one does not take
// fail when they are tried.
typedef struct choice {
  const char* name;
  const char* texts[10];
} choice_t;

static const choice_t choices[] = {
    {"coordinate_transformation_mode",
     {"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric",
      "tf_half_pixel_for_nn", "output_half_pixel"}},
    {"mode",
     {"nearest", "linear", "cubic", "bilinear", "bicubic", "constant", "reflect", "edge", "wrap",
      "DCR"}},
    {"mode", {"CRD", "avg", "max", "1D"}},
    {"nearest_mode", {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}},
    {"padding_mode", {"zeros", "border", "reflection"}},
    {"approximate", {"none", "tanh"}},
    {"auto_pad", {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"}},
    {"direction", {"forward", "reverse", "LEFT", "RIGHT"}},
    {"reduction", {"none", "add", "mul", "max", "min", "mean", "sum"}},
    {"keep_aspect_ratio_policy", {"stretch", "not_larger", "not_smaller"}},
};

const char* assay_attr_word(const char* name, size_t i) {
  enum { TEXTS = sizeof choices->texts / sizeof *choices->texts };
  for (size_t c = 0; c < sizeof choices / sizeof *choices; c++) {
    if (strcmp(choices[c].name, name) != 0) continue;
    for (size_t k = 0; k < TEXTS && choices[c].texts[k]; k++)
      if (i-- == 0) return choices[c].texts[k];
  }
  return NULL;
}

assay_status_t assay_propose_mode(const assay_suspect_t* s, const char* cause,
                                  const assay_trial_t* t, bool* stop) {
  const assay_schema_t* schema = s->node->schema;
  for (int i = 0; schema && i < schema->n_attrs; i++) {
    const assay_attr_spec_t* a = &schema->attrs[i];
    if (a->type != ASSAY_ATTR_STRING) continue;
    const char* now = assay_attr_str(s->node, a->name, a->has_default && a->s ? a->s : "");
    const char* text = NULL;
    for (size_t k = 0; (text = assay_attr_word(a->name, k)) && !*stop; k++) {
      if (strcmp(text, now) == 0) continue;
      assay_repair_t r = attr_repair(s, cause, a);
      r.edits[0].attr.u.s = (assay_string_t){text, strlen(text)};
      snprintf(r.text, sizeof r.text, "%s = '%s' instead of '%s'", a->name, text, now);
      ASSAY_TRY(assay_offer(t, &r, stop));
    }
  }
  return NULL;
}

// ---- lists of integers -------------------------------------------------------------------------

typedef struct list_offer {
  const assay_suspect_t* s;
  const char* cause;
  const assay_trial_t* t;
  const assay_attr_spec_t* attr;
} list_offer_t;

static void print_numbers(const assay_numbers_t* x, char* to, size_t capacity) {
  size_t used = 0;
  for (size_t i = 0; i < x->n && used + 24 < capacity; i++)
    used +=
        (size_t)snprintf(to + used, capacity - used, "%s%lld", i ? "," : "", (long long)x->at[i]);
  if (!x->n) to[0] = 0;
}

static assay_status_t emit_attr(void* user, const assay_numbers_t* x, bool* stop) {
  const list_offer_t* o = user;
  char text[160];
  assay_repair_t r = attr_repair(o->s, o->cause, o->attr);
  memcpy(r.edits[0].numbers, x->at, sizeof x->at);
  r.edits[0].attr.n = x->n;
  print_numbers(x, text, sizeof text);
  snprintf(r.text, sizeof r.text, "%s = [%s]", x->name, text);
  return assay_offer(o->t, &r, stop);
}

static bool list_now(const assay_suspect_t* s, const assay_attr_spec_t* a, assay_numbers_t* out) {
  size_t n;
  const int64_t* now = assay_attr_ints(s->node, a->name, &n);
  if (!now || n > ASSAY_EDIT_NUMBERS) return false;
  *out = (assay_numbers_t){.name = a->name, .n = n, .rank = data_rank(s)};
  memcpy(out->at, now, n * sizeof *now);
  return true;
}

assay_status_t assay_propose_numbers(const assay_suspect_t* s, const char* cause,
                                     const assay_trial_t* t, bool* stop) {
  const assay_schema_t* schema = s->node->schema;
  for (int i = 0; schema && i < schema->n_attrs && !*stop; i++) {
    const assay_attr_spec_t* a = &schema->attrs[i];
    assay_numbers_t now;
    if (a->type != ASSAY_ATTR_INTS || strcmp(a->name, "perm") == 0 || !list_now(s, a, &now))
      continue;
    list_offer_t o = {s, cause, t, a};
    ASSAY_TRY(assay_vary_numbers(&now, emit_attr, &o, stop));
  }
  return NULL;
}

// Where the padding grows that keeps the output's size: half on each side, or all on one, as causal
// convolutions have it. Source: onnx/keras-onnx pull request 272.
typedef enum growth { BOTH_SIDES, AT_BEGIN, AT_END, GROWTHS } growth_t;

// Dilations with the padding that keeps the output's size.
// Source: ONNX Conv 11: effective kernel (k - 1) d + 1.
static assay_status_t offer_dilation(const assay_suspect_t* s, const char* cause, int64_t dilation,
                                     const assay_numbers_t* kernel, growth_t side,
                                     const assay_trial_t* t, bool* stop) {
  const assay_attr_spec_t* names[] = {assay_schema_attr(s->node->schema, "dilations"),
                                      assay_schema_attr(s->node->schema, "pads")};
  assay_numbers_t dilations = {.n = kernel->n}, pads = {.n = 2 * kernel->n};
  if (!names[0] || !names[1]) return NULL;
  if (!list_now(s, names[0], &dilations))
    for (size_t i = 0; i < kernel->n; i++) dilations.at[i] = 1;
  list_now(s, names[1], &pads);
  bool same = true, fits = true;
  for (size_t i = 0; i < kernel->n; i++) {
    const int64_t grow = (dilation - dilations.at[i]) * (kernel->at[i] - 1);
    const int64_t begin = side == AT_BEGIN ? grow : side == AT_END ? 0 : grow / 2;
    same = same && grow == 0;
    pads.at[i] += begin;
    pads.at[i + kernel->n] += grow - begin;
    fits = fits && pads.at[i] >= 0 && pads.at[i + kernel->n] >= 0;
    dilations.at[i] = dilation;
  }
  if (same || !fits) return NULL;
  assay_repair_t r = attr_repair(s, cause, names[0]);
  r.n_edits = 2;
  r.edits[1] = r.edits[0];
  r.edits[1].attr.name = names[1]->name;
  r.edits[0].attr.n = dilations.n;
  r.edits[1].attr.n = pads.n;
  memcpy(r.edits[0].numbers, dilations.at, sizeof dilations.at);
  memcpy(r.edits[1].numbers, pads.at, sizeof pads.at);
  char text[100];
  print_numbers(&pads, text, sizeof text);
  snprintf(r.text, sizeof r.text, "dilations all %lld, with pads = [%s]", (long long)dilation,
           text);
  return assay_offer(t, &r, stop);
}

assay_status_t assay_propose_dilation(const assay_suspect_t* s, const char* cause,
                                      const assay_trial_t* t, bool* stop) {
  static const int64_t usual[] = {1, 2, 3, 4, 6, 8, 12, 16, 32};
  const assay_schema_t* schema = s->node->schema;
  const assay_attr_spec_t* a = schema ? assay_schema_attr(schema, "kernel_shape") : NULL;
  assay_numbers_t kernel = {0};
  if (!a || !assay_schema_attr(schema, "dilations")) return NULL;
  if (!list_now(s, a, &kernel)) {
    // Without the attribute it is the weight's.
    const assay_tensor_t* w = s->n_in > 1 ? s->in[1] : NULL;
    if (!w || w->rank < 3 || w->rank - 2 > ASSAY_EDIT_NUMBERS / 2) return NULL;
    kernel.n = (size_t)w->rank - 2;
    memcpy(kernel.at, w->dims + 2, kernel.n * sizeof *kernel.at);
  }
  if (2 * kernel.n > ASSAY_EDIT_NUMBERS) return NULL;
  for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
    for (growth_t side = BOTH_SIDES; side < GROWTHS && !*stop; side++)
      ASSAY_TRY(offer_dilation(s, cause, usual[i], &kernel, side, t, stop));
  return NULL;
}

assay_status_t assay_propose_permutation(const assay_suspect_t* s, const char* cause,
                                         const assay_trial_t* t, bool* stop) {
  enum { ALL_UP_TO = 4 };  // dims; of more only two are exchanged
  const assay_schema_t* schema = s->node->schema;
  const assay_attr_spec_t* a = schema ? assay_schema_attr(schema, "perm") : NULL;
  const int rank = data_rank(s);
  if (!a || rank < 2 || rank > ASSAY_EDIT_NUMBERS) return NULL;
  assay_numbers_t now;
  if (!list_now(s, a, &now)) {
    now = (assay_numbers_t){.name = "perm", .n = (size_t)rank, .rank = rank};
    for (int i = 0; i < rank; i++) now.at[i] = rank - 1 - i;
  }
  assay_numbers_t p = now;
  list_offer_t o = {s, cause, t, a};
  for (int i = 0; rank > ALL_UP_TO && i < rank; i++) {
    for (int k = i + 1; k < rank && !*stop; k++) {
      p = now;
      p.at[i] = now.at[k], p.at[k] = now.at[i];
      ASSAY_TRY(emit_attr(&o, &p, stop));
    }
  }
  if (rank > ALL_UP_TO) return NULL;
  for (int i = 0; i < rank; i++) p.at[i] = i;
  do {
    if (memcmp(p.at, now.at, (size_t)rank * sizeof *p.at) != 0) ASSAY_TRY(emit_attr(&o, &p, stop));
  } while (!*stop && assay_next_permutation(p.at, rank));
  return NULL;
}

// ---- how lists vary ----------------------------------------------------------------------------

typedef struct vary {
  assay_emit_numbers* emit;
  void* user;
  bool* stop;
} vary_t;

static assay_status_t emit(const vary_t* v, const assay_numbers_t* x) {
  return *v->stop ? NULL : v->emit(v->user, x, v->stop);
}

// Each single axis, and each pair of them.
static assay_status_t vary_axes(const vary_t* v, const assay_numbers_t* x) {
  assay_numbers_t y = *x;
  for (y.n = 1; y.n <= 2; y.n++) {
    for (int a = 0; a < x->rank; a++) {
      y.at[0] = a;
      for (int b = a + 1; b < (y.n == 1 ? a + 2 : x->rank); b++) {
        y.at[1] = b;
        bool same = y.n == x->n;
        for (size_t k = 0; same && k < y.n; k++) {
          const int64_t now = x->at[k] < 0 ? x->at[k] + x->rank : x->at[k];
          same = now == y.at[k];
        }
        if (!same) ASSAY_TRY(emit(v, &y));
      }
    }
  }
  return NULL;
}

// Begins and ends exchanged, all on one side, as causal convolutions have it, half on each, and
// each moved by one at the other's cost.
static assay_status_t vary_pads(const vary_t* v, const assay_numbers_t* x) {
  const size_t half = x->n / 2;
  assay_numbers_t y = *x;
  for (int side = 0; side < 3; side++) {
    bool same = true;
    for (size_t i = 0; i < half; i++) {
      const int64_t all = x->at[i] + x->at[i + half];
      y.at[i] = side == 0 ? all : side == 1 ? 0 : all / 2;
      y.at[i + half] = all - y.at[i];
      same = same && y.at[i] == x->at[i];
    }
    if (!same) ASSAY_TRY(emit(v, &y));
  }
  for (size_t i = 0; i < half; i++) y.at[i] = x->at[i + half], y.at[i + half] = x->at[i];
  if (memcmp(y.at, x->at, x->n * sizeof *x->at) != 0) ASSAY_TRY(emit(v, &y));
  for (int step = -1; step <= 1; step += 2) {
    y = *x;
    for (size_t i = 0; i < half; i++) {
      if (x->at[i] + x->at[i + half] == 0) continue;
      y.at[i] += step, y.at[i + half] -= step;
    }
    ASSAY_TRY(emit(v, &y));
    for (size_t i = 0; i < half; i++) {
      y = *x;
      y.at[i] += step, y.at[i + half] -= step;
      ASSAY_TRY(emit(v, &y));
    }
  }
  return NULL;
}

static assay_status_t vary_each(const vary_t* v, const assay_numbers_t* x) {
  for (int step = -1; step <= 1; step += 2) {
    for (size_t i = 0; i < x->n; i++) {
      assay_numbers_t y = *x;
      y.at[i] += step;
      ASSAY_TRY(emit(v, &y));
    }
  }
  for (size_t i = 0; i < x->n; i++) {
    for (size_t k = i + 1; k < x->n; k++) {
      assay_numbers_t y = *x;
      if (y.at[i] == y.at[k]) continue;
      y.at[i] = x->at[k], y.at[k] = x->at[i];
      ASSAY_TRY(emit(v, &y));
    }
  }
  return NULL;
}

// A batch that was baked in: 0 takes the input's dimension, -1 what is left.
static assay_status_t vary_shape(const vary_t* v, const assay_numbers_t* x) {
  assay_numbers_t y = *x;
  if (!x->n) return NULL;
  y.at[0] = 0;
  if (x->at[0] != 0) ASSAY_TRY(emit(v, &y));
  for (size_t k = 1; k < x->n; k++) {
    y = *x;
    y.at[0] = 0;
    for (size_t i = 1; i < y.n; i++)
      if (y.at[i] == -1) y.at[i] = 0;
    y.at[k] = -1;
    ASSAY_TRY(emit(v, &y));
  }
  y = *x;
  y.at[0] = -1;
  if (x->at[0] != -1) ASSAY_TRY(emit(v, &y));
  return vary_each(v, x);
}

assay_status_t assay_vary_numbers(const assay_numbers_t* x, assay_emit_numbers* f, void* user,
                                  bool* stop) {
  const vary_t v = {f, user, stop};
  if (strcmp(x->name, "axes") == 0) return vary_axes(&v, x);
  if (strcmp(x->name, "shape") == 0) return vary_shape(&v, x);
  if (strcmp(x->name, "pads") == 0 && x->n % 2 == 0) ASSAY_TRY(vary_pads(&v, x));
  return vary_each(&v, x);
}
