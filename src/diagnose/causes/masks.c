// Masks: constants of two numbers, one for what is seen and one for what is not, that begin one
// place too early or too late, or have the two in each other's place.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/causes/programs.h"
#include "diagnose/proposals.h"

enum { MANY = 1 << 20 };  // elements; larger masks are left alone

static size_t elem_bytes(const assay_tensor_t* x) { return assay_store_elem_bytes(x->store); }

static const char* at(const assay_tensor_t* x, int64_t i) {
  return (const char*)x->data + (size_t)i * elem_bytes(x);
}

// The first element that is not the first one's equal, if all are one of the two; -1: they are not.
static int64_t find_other(const assay_tensor_t* x) {
  const size_t bytes = elem_bytes(x);
  int64_t other = -1;
  for (int64_t i = 1; i < x->size; i++) {
    if (memcmp(at(x, i), at(x, 0), bytes) == 0) continue;
    if (other < 0)
      other = i;
    else if (memcmp(at(x, i), at(x, other), bytes) != 0)
      return -1;
  }
  return other;
}

static assay_status_t offer(const assay_suspect_t* s, const char* cause, size_t input,
                            assay_tensor_t* take, const char* text, const assay_trial_t* t,
                            bool* stop) {
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_CONSTANT);
  r.edits[0].input = input;
  r.edits[0].tensor = take;
  snprintf(r.text, sizeof r.text, "the mask '%.100s' %s", s->node->inputs[input]->name, text);
  return assay_offer(t, &r, stop);
}

// Element i along the axis is what stood at i - step; at the edge the last one is repeated, as in a
// band that moves.
static assay_status_t offer_band(const assay_suspect_t* s, const char* cause, size_t input,
                                 const assay_tensor_t* x, int axis, int64_t step,
                                 const assay_trial_t* t, bool* stop) {
  assay_tensor_t* y = NULL;
  char text[80];
  const int64_t inner = assay_dims_product(x->dims, axis + 1, x->rank), d = x->dims[axis];
  const size_t bytes = (size_t)inner * elem_bytes(x);
  ASSAY_TRY(assay_tensor_create(x->type, x->rank, x->dims, &y));
  for (int64_t k = 0; k < x->size / inner; k++) {
    int64_t from = k % d - step;
    from = from < 0 ? 0 : from >= d ? d - 1 : from;
    memcpy((char*)y->data + (size_t)k * bytes, at(x, ((k / d) * d + from) * inner), bytes);
  }
  snprintf(text, sizeof text, "moved by %+lld along axis %d", (long long)step, axis);
  return offer(s, cause, input, y, text, t, stop);
}

// Element (i, j) of the last two axes, of those that stand side by side in matrix m.
static const char* element(const assay_tensor_t* x, int64_t m, int64_t i, int64_t j) {
  const int64_t rows = x->dims[x->rank - 2], columns = x->dims[x->rank - 1];
  return at(x, (m * rows + i) * columns + j);
}

// Whether all diagonals are of one number each, as those of causal masks and bands are.
static bool has_diagonals(const assay_tensor_t* x) {
  const int64_t rows = x->dims[x->rank - 2], columns = x->dims[x->rank - 1];
  for (int64_t m = 0; m < x->size / (rows * columns); m++)
    for (int64_t i = 1; i < rows; i++)
      for (int64_t j = 1; j < columns; j++)
        if (memcmp(element(x, m, i, j), element(x, m, i - 1, j - 1), elem_bytes(x)) != 0)
          return false;
  return true;
}

// Each diagonal is what the one `step` to the right of it was; the last one is repeated.
static assay_status_t offer_diagonal(const assay_suspect_t* s, const char* cause, size_t input,
                                     const assay_tensor_t* x, int64_t step, const assay_trial_t* t,
                                     bool* stop) {
  const int64_t rows = x->dims[x->rank - 2], columns = x->dims[x->rank - 1];
  assay_tensor_t* y = NULL;
  char text[80];
  ASSAY_TRY(assay_tensor_create(x->type, x->rank, x->dims, &y));
  for (int64_t e = 0; e < x->size; e++) {
    const int64_t i = e / columns % rows, j = e % columns;
    int64_t k = j - i + step;
    k = k < 1 - rows ? 1 - rows : k >= columns ? columns - 1 : k;
    memcpy((char*)y->data + (size_t)e * elem_bytes(x),
           element(x, e / (rows * columns), k < 0 ? -k : 0, k < 0 ? 0 : k), elem_bytes(x));
  }
  snprintf(text, sizeof text, "with its diagonal moved by %+lld", (long long)-step);
  return offer(s, cause, input, y, text, t, stop);
}

static assay_status_t offer_inverted(const assay_suspect_t* s, const char* cause, size_t input,
                                     const assay_tensor_t* x, int64_t other, const assay_trial_t* t,
                                     bool* stop) {
  const size_t bytes = elem_bytes(x);
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_tensor_create(x->type, x->rank, x->dims, &y));
  for (int64_t i = 0; i < x->size; i++) {
    const bool is_first = memcmp(at(x, i), at(x, 0), bytes) == 0;
    memcpy((char*)y->data + (size_t)i * bytes, at(x, is_first ? other : 0), bytes);
  }
  return offer(s, cause, input, y, "inverted", t, stop);
}

// The last two axes exchanged: what was to see what comes before sees what comes after.
static assay_status_t offer_turned(const assay_suspect_t* s, const char* cause, size_t input,
                                   const assay_tensor_t* x, const assay_trial_t* t, bool* stop) {
  const int64_t n = x->dims[x->rank - 1];
  const size_t bytes = elem_bytes(x);
  assay_tensor_t* y = NULL;
  if (x->dims[x->rank - 2] != n) return NULL;
  ASSAY_TRY(assay_tensor_create(x->type, x->rank, x->dims, &y));
  for (int64_t i = 0; i < x->size; i++) {
    const int64_t from = i / (n * n) * (n * n) + (i % n) * n + i / n % n;
    memcpy((char*)y->data + (size_t)i * bytes, at(x, from), bytes);
  }
  return offer(s, cause, input, y, "with its last two axes exchanged", t, stop);
}

// Which places a window leaves: those up to `width` - 1 before, those at both sides, or those of
// the same block.
typedef enum reach { BEFORE, AROUND, BLOCKS, REACHES } reach_t;

static bool is_in_reach(reach_t reach, int64_t width, int64_t i, int64_t j) {
  if (reach == BLOCKS) return i / width == j / width;
  return i - j < width && (reach == BEFORE || j - i < width);
}

// What is seen, but for what a window leaves out; hidden: the number of what is not.
static assay_status_t offer_window(const assay_suspect_t* s, const char* cause, size_t input,
                                   const assay_tensor_t* x, int64_t hidden, reach_t reach,
                                   int64_t width, const assay_trial_t* t, bool* stop) {
  static const char* const names[] = {"before each", "around each", "in each block"};
  const int64_t rows = x->dims[x->rank - 2], columns = x->dims[x->rank - 1];
  assay_tensor_t* y = NULL;
  char text[80];
  bool changes = false;
  ASSAY_TRY(assay_tensor_create(x->type, x->rank, x->dims, &y));
  for (int64_t e = 0; e < x->size; e++) {
    const bool kept = is_in_reach(reach, width, e / columns % rows, e % columns);
    const char* now = at(x, e);
    const char* next = kept ? now : at(x, hidden);
    // Around each it is another one than before each only where something behind is hidden.
    const bool counts = reach != AROUND || e % columns > e / columns % rows;
    changes |= counts && memcmp(now, next, elem_bytes(x)) != 0;
    memcpy((char*)y->data + (size_t)e * elem_bytes(x), next, elem_bytes(x));
  }
  if (!changes) return assay_tensor_release(y), NULL;
  snprintf(text, sizeof text, "by a window of %lld places %s", (long long)width, names[reach]);
  return offer(s, cause, input, y, text, t, stop);
}

// Attention to what is near, and that by blocks. other: an element unlike the first one, which each
// place sees of itself.
static assay_status_t offer_windows(const assay_suspect_t* s, const char* cause, size_t input,
                                    const assay_tensor_t* x, int64_t other, const assay_trial_t* t,
                                    bool* stop) {
  enum { WIDEST = 128 };
  const int64_t n = x->dims[x->rank - 1];
  if (x->dims[x->rank - 2] != n || n < 3) return NULL;
  for (reach_t reach = 0; reach < REACHES; reach++)
    for (int64_t width = 1; width < n && width <= WIDEST && !*stop; width++)
      ASSAY_TRY(offer_window(s, cause, input, x, other, reach, width, t, stop));
  return NULL;
}

static assay_status_t offer_all(const assay_suspect_t* s, const char* cause, size_t input,
                                const assay_tensor_t* x, const assay_trial_t* t, bool* stop) {
  const int64_t other = find_other(x);
  if (other < 0) return NULL;
  ASSAY_TRY(offer_inverted(s, cause, input, x, other, t, stop));
  const bool diagonals = x->rank >= 2 && has_diagonals(x);
  for (int64_t step = -1; diagonals && step <= 1 && !*stop; step += 2)
    ASSAY_TRY(offer_diagonal(s, cause, input, x, step, t, stop));
  for (int axis = x->rank - 2; x->rank >= 2 && !diagonals && axis < x->rank; axis++)
    for (int64_t step = -1; step <= 1 && !*stop; step += 2)
      if (x->dims[axis] > 2) ASSAY_TRY(offer_band(s, cause, input, x, axis, step, t, stop));
  if (x->rank >= 2 && !*stop) ASSAY_TRY(offer_turned(s, cause, input, x, t, stop));
  return diagonals && !*stop ? offer_windows(s, cause, input, x, other, t, stop) : NULL;
}

// Sources: the diagonal of Trilu, onnx/onnx issue 8068; windows of attention, I. Beltagy et al.,
// 2020 (Longformer), sonos/tract pull request 2323, and blocks, R. Child et al., 2019; masks of
// True for what is seen and for what is not, pytorch/pytorch pull request 165780.
assay_status_t assay_propose_mask(const assay_suspect_t* s, const char* cause,
                                  const assay_trial_t* t, bool* stop) {
  for (size_t i = 0; i < s->n_in && !*stop; i++) {
    assay_tensor_t* x = NULL;
    ASSAY_TRY(assay_suspect_constant(s, i, &x));
    assay_status_t st = NULL;
    if (x && x->store <= ASSAY_STORE_I64 && x->size >= 4 && x->size <= MANY)
      st = offer_all(s, cause, i, x, t, stop);
    assay_tensor_release(x);
    if (st) return st;
  }
  return NULL;
}

// ---- masks that were lost ----------------------------------------------------------------------

static bool is_unread(const assay_suspect_t* s, const assay_value_t* v) {
  const assay_node_t* const* readers = NULL;
  return v && !v->is_output && !assay_around_readers(s->around, v, &readers);
}

// Whether a value says of each element, or of rows and columns, one of two things.
static bool may_hide(const assay_tensor_t* v, const assay_tensor_t* y) {
  bool zero = false, one = false;
  if (!v || v->kind != ASSAY_KIND_TENSOR || v->store > ASSAY_STORE_I64 || v->rank > y->rank ||
      v->size < 2)
    return false;
  for (int i = 1; i <= v->rank; i++)
    if (v->dims[v->rank - i] != 1 && v->dims[v->rank - i] != y->dims[y->rank - i]) return false;
  if (v->type == ASSAY_TYPE_BOOL) return true;
  if (v->store != ASSAY_STORE_F64 && v->store != ASSAY_STORE_I64) return false;
  for (int64_t i = 0; i < v->size; i++) {
    const double x =
        v->store == ASSAY_STORE_F64 ? assay_f64(v)[i] : (double)assay_i64((assay_tensor_t*)v)[i];
    zero |= x == 0;
    one |= x == 1;
    if (x != 0 && x != 1) return false;
  }
  return zero && one;
}

// What is chosen among, and what is given: where a number that is hidden counts.
static bool is_chosen_among(const assay_suspect_t* s, bool* out_given) {
  static const char* const choices[] = {"Softmax", "LogSoftmax", "ReduceMax", "ArgMax",
                                        "Hardmax", "TopK",       "ReduceSum", "ReduceLogSumExp"};
  const assay_node_t* const* readers = NULL;
  const assay_value_t* y = s->node->outputs[0];
  const size_t n = assay_around_readers(s->around, y, &readers);
  bool any = false;
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < sizeof choices / sizeof *choices; k++)
      any |= strcmp(readers[i]->op_type, choices[k]) == 0;
  *out_given = y->is_output;
  return any || *out_given;
}

enum { HIDDEN_NUMBERS = 16 };

// Numbers that nobody reads, as what was put there often stays behind as well; then usual ones.
static size_t list_hidden(const assay_suspect_t* s, bool given, double* out) {
  // The first is as good as any where it is chosen among.
  static const double usual[] = {-1e9, 0, -1e8, -1e4, -1e5, -1000, -100, -50, -1e30, 1e9};
  enum { OF_CHOICES = 2, LEFT_BEHIND = 4 };
  const assay_graph_t* g = s->model->graph;
  size_t n = 0;
  for (size_t i = 0; given && i < g->n_initializers + g->n_nodes && n < LEFT_BEHIND; i++) {
    const bool initializer = i < g->n_initializers;
    const assay_node_t* maker = initializer ? NULL : g->nodes[i - g->n_initializers];
    const assay_value_t* v = initializer        ? g->initializers[i]
                             : maker->n_outputs ? maker->outputs[0]
                                                : NULL;
    const assay_tensor_t* x = v && assay_around_is_constant(v) && is_unread(s, v)
                                  ? assay_around_tensor(s->around, v)
                                  : NULL;
    if (x && x->kind == ASSAY_KIND_TENSOR && x->size == 1 && assay_type_is_float(x->type))
      out[n++] = assay_tensor_element(x, 0);
  }
  const size_t all = given ? sizeof usual / sizeof *usual : OF_CHOICES;
  for (size_t k = 0; k < all; k++) out[n++] = usual[k];
  return n;
}

static assay_status_t offer_hidden(const assay_suspect_t* s, const char* cause,
                                   const assay_value_t* v, bool is_bool, bool given,
                                   const assay_trial_t* t, bool* stop) {
  double numbers[HIDDEN_NUMBERS];
  const size_t n = list_hidden(s, given, numbers);
  for (size_t k = 0; k < n; k++)
    for (int turned = 0; turned < 2 && !*stop; turned++) {
      char program[80], text[200];
      snprintf(program, sizeof program, "v%s%s x %.9g where", is_bool ? "" : " bool",
               turned ? " not" : "", numbers[k]);
      snprintf(text, sizeof text, "%.9g after it where '%.120s' is %s", numbers[k], v->name,
               turned ? "true" : "false");
      const assay_formula_terms_t terms = {.program = program, .value = v};
      ASSAY_TRY(assay_offer_program(s, cause, s->n_in, &terms, text, t, stop));
    }
  return NULL;
}

// What is not allowed, or is not there: a mask that is left behind and read by nobody. Source:
// Stable-Baselines-Team/stable-baselines3-contrib issue 212.
assay_status_t assay_propose_hidden(const assay_suspect_t* s, const char* cause,
                                    const assay_trial_t* t, bool* stop) {
  bool given = false;
  if (!s->around || *s->node->domain || !s->n_out || !s->node->outputs[0] || !s->out[0] ||
      s->out[0]->store != ASSAY_STORE_F64 || s->out[0]->rank < 1 || !is_chosen_among(s, &given))
    return NULL;
  const assay_graph_t* g = s->model->graph;
  for (size_t i = 0; i < g->n_inputs + g->n_nodes && !*stop; i++) {
    const bool input = i < g->n_inputs;
    const assay_value_t* v = input ? g->inputs[i]
                             : g->nodes[i - g->n_inputs]->n_outputs
                                 ? g->nodes[i - g->n_inputs]->outputs[0]
                                 : NULL;
    if (!is_unread(s, v) || assay_around_is_constant(v)) continue;
    const assay_tensor_t* x = assay_around_tensor(s->around, v);
    if (!may_hide(x, s->out[0]) || !assay_around_may_read(s->around, s->node, v)) continue;
    ASSAY_TRY(offer_hidden(s, cause, v, x->type == ASSAY_TYPE_BOOL, given, t, stop));
  }
  return NULL;
}
