// The functions of a recurrent layer's gates, and the numbers that these have: a gate as a line has
// the slope of its framework, and of its version; exporters leave the names or the numbers out.
//
// Numbers that are there are fitted to golden first, by the steps of Gauss and Newton with
// differences (as samples/samples.c), tied where the layer has a function with the same numbers
// several times; then other functions are tried in each place. Sources: keras-team/keras issue
// 17772 and tensorflow/tensorflow issue 65381 (hard sigmoid of 0.2 and of 1 / 6);
// onnx/tensorflow-onnx issue 2211; ONNX LSTM, GRU, RNN 14.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "diagnose/solve/settings.h"

enum { SLOTS = ASSAY_EDIT_FUNCTIONS, UNKNOWNS = 2 };

typedef struct function {
  const char* name;
  bool has_alpha, has_beta;
  double alpha, beta;  // by default
} function_t;

static const function_t FUNCTIONS[] = {
    {"Sigmoid", false, false, 0, 0},        {"Tanh", false, false, 0, 0},
    {"HardSigmoid", true, true, 0.2, 0.5},  {"Relu", false, false, 0, 0},
    {"Softsign", false, false, 0, 0},       {"Elu", true, false, 1, 0},
    {"Softplus", false, false, 0, 0},       {"LeakyRelu", true, false, 0.01, 0},
    {"Affine", true, true, 1, 0},           {"ScaledTanh", true, true, 1, 1},
    {"ThresholdedRelu", true, false, 1, 0},
};

// Functions as frameworks have them, with their numbers.
static const struct {
  int of;  // in FUNCTIONS
  double alpha, beta;
} USUAL[] = {{0, 0, 0},     {1, 0, 0},      {2, 0.2, 0.5}, {2, 1. / 6, 0.5},   {3, 0, 0},
             {4, 0, 0},     {5, 1, 0},      {6, 0, 0},     {7, 0.01, 0},       {7, 0.2, 0},
             {2, 0.5, 0.5}, {2, 0.25, 0.5}, {8, 1, 0},     {9, 1.7159, 2. / 3}};

enum { N_USUAL = sizeof USUAL / sizeof *USUAL };

// What each place of each direction has: gates, then what a cell takes in, then what it gives.
typedef struct slots {
  size_t each, directions;
  int of[SLOTS];
  double alpha[SLOTS], beta[SLOTS];
} slots_t;

static size_t count(const slots_t* k) { return k->each * k->directions; }

// ---- what the node is told ---------------------------------------------------------------------

static int find(const char* name, size_t length) {
  for (int i = 0; i < (int)(sizeof FUNCTIONS / sizeof *FUNCTIONS); i++)
    if (strlen(FUNCTIONS[i].name) == length && strncmp(FUNCTIONS[i].name, name, length) == 0)
      return i;
  return -1;
}

// False: it is told something else.
static bool read_slots(const assay_node_t* n, slots_t* k) {
  static const int DEFAULTS[3][3] = {{1}, {0, 1}, {0, 1, 1}};
  size_t names = 0, alphas = 0, betas = 0, a = 0, b = 0;
  const assay_string_t* name = assay_attr_strings(n, "activations", &names);
  const float* alpha = assay_attr_floats(n, "activation_alpha", &alphas);
  const float* beta = assay_attr_floats(n, "activation_beta", &betas);
  *k = (slots_t){.each = strcmp(n->op_type, "LSTM") == 0  ? 3
                         : strcmp(n->op_type, "GRU") == 0 ? 2
                                                          : 1,
                 .directions = assay_attr_is(n, "direction", "bidirectional") ? 2 : 1};
  if (names && names < count(k)) return false;
  for (size_t i = 0; i < count(k); i++) {
    k->of[i] = names ? find(name[i].text, name[i].len) : DEFAULTS[k->each - 1][i % k->each];
    if (k->of[i] < 0) return false;
    const function_t* f = &FUNCTIONS[k->of[i]];
    k->alpha[i] = f->has_alpha && a < alphas ? (double)alpha[a++] : f->alpha;
    k->beta[i] = f->has_beta && b < betas ? (double)beta[b++] : f->beta;
  }
  return true;
}

// ---- a repair ----------------------------------------------------------------------------------

static void add_list(assay_repair_t* r, const char* name, assay_attr_type_t type) {
  r->edits[r->n_edits++] = (assay_repair_edit_t){
      .kind = ASSAY_EDIT_ATTR, .attr = {.name = name, .type = type, .doc = "", .ref = ""}};
}

static void add_float(assay_repair_edit_t* e, double x) { e->floats[e->attr.n++] = (float)x; }

static void say(const slots_t* k, char* out, size_t size) {
  size_t at = (size_t)snprintf(out, size, "activations of each direction:");
  for (size_t i = 0; i < k->each && at < size; i++) {
    const function_t* f = &FUNCTIONS[k->of[i]];
    at += (size_t)snprintf(out + at, size - at, "%s %s", i ? "," : "", f->name);
    if (f->has_alpha && at < size)
      at += (size_t)snprintf(out + at, size - at, " of %.6g", k->alpha[i]);
    if (f->has_beta && at < size)
      at += (size_t)snprintf(out + at, size - at, " and %.6g", k->beta[i]);
  }
}

// Lists that are empty are left out, or what is there already would be read for other functions.
static assay_repair_t repair_of(const assay_missing_search_t* s, const slots_t* k) {
  assay_repair_t r = {.node = s->node, .cause = "activations"};
  add_list(&r, "activations", ASSAY_ATTR_STRINGS);
  add_list(&r, "activation_alpha", ASSAY_ATTR_FLOATS);
  add_list(&r, "activation_beta", ASSAY_ATTR_FLOATS);
  r.edits[0].attr.n = count(k);
  for (size_t i = 0; i < count(k); i++) {
    const function_t* f = &FUNCTIONS[k->of[i]];
    r.edits[0].functions[i] = (assay_string_t){f->name, strlen(f->name)};
    if (f->has_alpha) add_float(&r.edits[1], k->alpha[i]);
    if (f->has_beta) add_float(&r.edits[2], k->beta[i]);
  }
  for (size_t i = 1; i < 3; i++)
    if (!r.edits[i].attr.n) r.edits[i].kind = ASSAY_EDIT_DROP;
  say(k, r.text, sizeof r.text);
  return r;
}

static assay_status_t offer(assay_missing_search_t* s, const slots_t* k) {
  const assay_repair_t r = repair_of(s, k);
  return assay_missing_offer(s, &r);
}

// ---- numbers -----------------------------------------------------------------------------------

// What is fitted: numbers of one function, each wherever the layer has it.
typedef struct fit {
  assay_missing_search_t* s;
  const assay_tensor_t* want;
  slots_t slots;
  bool has[SLOTS];  // places that have the function with these numbers
  int n;            // how many numbers
  bool is_beta[UNKNOWNS];
  double x[UNKNOWNS];
  double *now, *moved[UNKNOWNS];  // [want->size]
} fit_t;

static void put(fit_t* f, const double* x) {
  for (size_t i = 0; i < count(&f->slots); i++)
    for (int j = 0; j < f->n; j++)
      if (f->has[i]) (f->is_beta[j] ? f->slots.beta : f->slots.alpha)[i] = x[j];
}

// What is left with these numbers. *out_sum: its squares, INFINITY where it cannot be evaluated.
static assay_status_t leave(fit_t* f, const double* x, double* left, double* out_sum) {
  assay_missing_search_t* s = f->s;
  assay_tensor_t** made = NULL;
  put(f, x);
  const assay_repair_t r = repair_of(s, &f->slots);
  *out_sum = INFINITY;
  ASSAY_TRY(assay_new_array(s->node->n_outputs, sizeof *made, &made));
  assay_status_t st = assay_repair_evaluate(s->m, &r, s->n_in, s->in, s->node->n_outputs, made);
  const assay_tensor_t* is = made[s->output];
  if (!st && is && assay_tensor_alike(is, f->want)) {
    *out_sum = 0;
    for (int64_t i = 0; i < is->size; i++) {
      left[i] = assay_f64(is)[i] - assay_f64(f->want)[i];
      *out_sum += left[i] * left[i];
    }
  }
  for (size_t i = 0; i < s->node->n_outputs; i++) assay_tensor_release(made[i]);
  assay_free(made);
  if (st && assay_status_code(st) != ASSAY_NO_MEMORY) assay_status_free(st), st = NULL;
  return st;
}

static double dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

// One step from x, halved until it leads nearer. *sum: what is left; *out_moved false: none does.
static assay_status_t take_step(fit_t* f, double* sum, bool* out_moved) {
  static const double STEP = 1e-6;
  enum { HALVINGS = 6 };
  const int64_t n = f->want->size;
  double part = 1, to[UNKNOWNS] = {0}, d[UNKNOWNS] = {0}, left = 0;
  *out_moved = false;
  for (int j = 0; j < f->n; j++) {
    for (int i = 0; i < f->n; i++) to[i] = f->x[i] + (i == j ? STEP : 0);
    ASSAY_TRY(leave(f, to, f->moved[j], &left));
    if (!isfinite(left)) return NULL;
    for (int64_t i = 0; i < n; i++) f->moved[j][i] = (f->moved[j][i] - f->now[i]) / STEP;
  }
  const bool two = f->n > 1;
  const double aa = dot(f->moved[0], f->moved[0], n), ga = dot(f->moved[0], f->now, n);
  const double bb = two ? dot(f->moved[1], f->moved[1], n) : 1;
  const double ab = two ? dot(f->moved[0], f->moved[1], n) : 0;
  const double gb = two ? dot(f->moved[1], f->now, n) : 0;
  const double det = aa * bb - ab * ab;
  if (!(det > 1e-12 * aa * bb)) return NULL;
  d[0] = -(ga * bb - gb * ab) / det;
  d[1] = two ? -(gb * aa - ga * ab) / det : 0;
  for (int k = 0; k < HALVINGS && !*out_moved; k++, part /= 2) {
    for (int j = 0; j < f->n; j++) to[j] = f->x[j] + part * d[j];
    ASSAY_TRY(leave(f, to, f->moved[0], &left));
    if (!(left < *sum)) continue;
    for (int j = 0; j < f->n; j++) f->x[j] = to[j];
    memcpy(f->now, f->moved[0], (size_t)n * sizeof(double));
    *sum = left;
    *out_moved = true;
  }
  return NULL;
}

// As people write them: in few digits, or as one over a whole number.
static double as_written(double x, int digits) {
  char text[32];
  const double over = floor(1 / x + 0.5);
  if (digits <= 3 && fabs(over) > 2 && fabs(over) < 20 && fabs(1 / over - x) <= 1e-4 * fabs(x))
    return 1 / over;
  snprintf(text, sizeof text, "%.*g", digits, x);
  return strtod(text, NULL);
}

static assay_status_t offer_written(fit_t* f) {
  static const int DIGITS[] = {2, 3, 4, 9};
  for (size_t k = 0; k < sizeof DIGITS / sizeof *DIGITS && !assay_missing_is_over(f->s); k++) {
    double x[UNKNOWNS] = {0};
    for (int j = 0; j < f->n; j++) x[j] = as_written(f->x[j], DIGITS[k]);
    put(f, x);
    ASSAY_TRY(offer(f->s, &f->slots));
  }
  return NULL;
}

static assay_status_t run_fit(fit_t* f) {
  enum { STEPS = 12 };
  static const double FAR = 0.05;  // of what there was: no number does it
  double sum = 0;
  ASSAY_TRY(leave(f, f->x, f->now, &sum));
  const double before = sum;
  bool moved = isfinite(sum) && sum > 0;
  for (int k = 0; k < STEPS && moved && !assay_missing_is_over(f->s); k++) {
    const double was = sum;
    ASSAY_TRY(take_step(f, &sum, &moved));
    if (sum > 0.9 * was) break;
  }
  return sum < FAR * before ? offer_written(f) : NULL;
}

// Of each function with its numbers that the layer has: the first alone, then both.
static assay_status_t fit_numbers(assay_missing_search_t* s, const assay_tensor_t* want,
                                  const slots_t* now) {
  fit_t f = {.s = s, .want = want};
  const size_t n = (size_t)want->size;
  assay_status_t st = assay_new_array(n, sizeof *f.now, &f.now);
  for (int j = 0; !st && j < UNKNOWNS; j++)
    st = assay_new_array(n, sizeof *f.moved[j], &f.moved[j]);
  for (size_t i = 0; !st && i < count(now); i++) {
    const function_t* of = &FUNCTIONS[now->of[i]];
    bool seen = !of->has_alpha;
    for (size_t k = 0; k < count(now); k++) {
      f.has[k] = now->of[k] == now->of[i] && now->alpha[k] == now->alpha[i] &&
                 now->beta[k] == now->beta[i];
      seen |= k < i && f.has[k];
    }
    for (int k = 1; k <= 1 + of->has_beta && !seen && !st && !assay_missing_is_over(s); k++) {
      f.slots = *now;
      f.n = k;
      f.is_beta[0] = false;
      f.is_beta[1] = true;
      f.x[0] = now->alpha[i];
      f.x[1] = now->beta[i];
      st = run_fit(&f);
    }
  }
  for (int j = 0; j < UNKNOWNS; j++) assay_free(f.moved[j]);
  assay_free(f.now);
  return st;
}

// ---- other functions ---------------------------------------------------------------------------

// only: 1 + the direction; 0: both.
static void set(slots_t* k, size_t place, size_t usual, size_t only) {
  for (size_t d = 0; d < k->directions; d++) {
    if (only && d + 1 != only) continue;
    const size_t i = d * k->each + place;
    k->of[i] = USUAL[usual].of;
    k->alpha[i] = USUAL[usual].alpha;
    k->beta[i] = USUAL[usual].beta;
  }
}

// Numbers that are listed place by place, where ONNX counts those places only that use one.
static assay_status_t try_by_place(assay_missing_search_t* s, const slots_t* now) {
  size_t alphas = 0, betas = 0;
  const float* alpha = assay_attr_floats(s->node, "activation_alpha", &alphas);
  const float* beta = assay_attr_floats(s->node, "activation_beta", &betas);
  slots_t k = *now;
  for (size_t i = 0; i < count(now); i++) {
    if (i < alphas) k.alpha[i] = (double)alpha[i];
    if (i < betas) k.beta[i] = (double)beta[i];
  }
  return alphas < count(now) && betas < count(now) ? NULL : offer(s, &k);
}

// In one place, in both directions or one.
static assay_status_t try_one(assay_missing_search_t* s, const slots_t* now) {
  for (size_t only = 0; only <= (now->directions > 1 ? 2 : 0); only++)
    for (size_t place = 0; place < now->each; place++)
      for (size_t i = 0; i < N_USUAL && !assay_missing_is_over(s); i++) {
        slots_t k = *now;
        set(&k, place, i, only);
        ASSAY_TRY(offer(s, &k));
      }
  return NULL;
}

// In the places that are no gates together, then with the gates.
static assay_status_t try_several(assay_missing_search_t* s, const slots_t* now) {
  for (size_t gate = now->each<3; now->each> 1 && gate <= N_USUAL; gate++)
    for (size_t i = 0; i < N_USUAL && !assay_missing_is_over(s); i++) {
      slots_t k = *now;
      if (gate) set(&k, 0, gate - 1, 0);
      for (size_t place = 1; place < now->each; place++) set(&k, place, i, 0);
      ASSAY_TRY(offer(s, &k));
    }
  return NULL;
}

assay_status_t assay_settings_activations(assay_missing_search_t* s, const assay_tensor_t* want) {
  static const double PART = 0.3;  // of the time that is left
  const double deadline = s->deadline, now = assay_clock_seconds();
  const double until = now + PART * (deadline - now);
  slots_t k;
  if (!read_slots(s->node, &k) || want->store != ASSAY_STORE_F64) return NULL;
  s->deadline = until;
  assay_status_t st = fit_numbers(s, want, &k);
  if (!st && !assay_missing_is_over(s)) st = try_by_place(s, &k);
  if (!st && !assay_missing_is_over(s)) st = try_one(s, &k);
  if (!st && !assay_missing_is_over(s)) st = try_several(s, &k);
  // What was taken over meanwhile may have set an earlier end.
  s->deadline = s->deadline < until ? s->deadline : deadline;
  return st;
}
