// The weights of recurrent layers as another framework lays them out: gates in another order, each
// gate's matrix transposed, or read as if it lay the other way round, units and gates in turn,
// directions exchanged, halves of the biases. Input, recurrent weights and biases may each be laid
// out otherwise, and all three at once.
// Sources: Keras (kernels are [input, gates]; reset_after), PyTorch (gates i, f, g, o and r, z, n),
// cuDNN (units within gates), Kaldi and CNTK (gates within units); ONNX LSTM, GRU, RNN 14.
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "diagnose/solve/settings.h"

enum { GATES = 4, WEIGHTS = 1, STATE = 2, BIASES = 3, ORDERS = 24 };

typedef enum layout {
  AS_IT_IS,
  GATE_TURNED,       // each gate's matrix, which is square
  GATE_READ_ACROSS,  // each gate's numbers are those of its transposed matrix
  ALL_READ_ACROSS,   // the same of all gates together
  UNITS_FIRST,       // rows lie unit by unit, and within a unit gate by gate
  GATES_FIRST,       // they should lie so
  LAYOUTS
} layout_t;

static const char* const LAYOUT_TEXT[] = {"as it is",
                                          "each gate's matrix transposed",
                                          "each gate's matrix read the other way",
                                          "the matrix read the other way",
                                          "its rows sorted by gates",
                                          "its rows sorted by units"};

// How one constant is laid out instead.
typedef struct map {
  layout_t layout;
  int order;        // of its gates, in `orders`; 0: as it is
  bool directions;  // exchanged
  int only;         // 1 + the direction that is laid out so; 0: all are
  bool halves;      // of the biases, exchanged
} map_t;

typedef struct gates {
  assay_missing_search_t* s;
  double until;  // of assay_clock_seconds
  int n;         // gates
  int64_t h;     // units
  int64_t dirs;  // directions
  int orders[ORDERS][GATES], n_orders;
} gates_t;

static void list_orders(gates_t* k, int* order, int at) {
  if (at == k->n) {
    memcpy(k->orders[k->n_orders++], order, sizeof k->orders[0]);
    return;
  }
  for (int g = 0; g < k->n; g++) {
    bool used = false;
    for (int i = 0; i < at; i++) used |= order[i] == g;
    order[at] = g;
    if (!used) list_orders(k, order, at + 1);
  }
}

static bool is_solved_for(const assay_missing_search_t* s, size_t input, int rank) {
  return s->n_in > input && s->in[input] && s->node->inputs[input]->constant &&
         s->in[input]->store == ASSAY_STORE_F64 && s->in[input]->rank == rank;
}

static bool read_gates(assay_missing_search_t* s, gates_t* k) {
  int order[GATES] = {0};
  const char* op = s->node->op_type;
  *k = (gates_t){.s = s};
  k->n = strcmp(op, "LSTM") == 0 ? 4 : strcmp(op, "GRU") == 0 ? 3 : 1;
  if (!is_solved_for(s, WEIGHTS, 3) || !is_solved_for(s, STATE, 3)) return false;
  k->dirs = s->in[STATE]->dims[0];
  k->h = s->in[STATE]->dims[2];
  list_orders(k, order, 0);
  return k->h > 0 && s->in[STATE]->dims[1] == k->n * k->h &&
         s->in[WEIGHTS]->dims[1] == k->n * k->h && s->in[WEIGHTS]->dims[0] == k->dirs &&
         (s->n_in <= BIASES || !s->in[BIASES] ||
          (is_solved_for(s, BIASES, 2) && s->in[BIASES]->dims[1] == 2 * k->n * k->h));
}

// Where row `u` of gate `g`, column `c`, is read from within a direction's matrix of `columns`.
static int64_t place_of(const gates_t* k, layout_t layout, int64_t columns, int64_t g, int64_t u,
                        int64_t c) {
  const int64_t rows = k->n * k->h;
  switch (layout) {
    case GATE_TURNED:
      return (g * k->h + c) * columns + u;
    case GATE_READ_ACROSS:
      return g * k->h * columns + c * k->h + u;
    case ALL_READ_ACROSS:
      return c * rows + g * k->h + u;
    case UNITS_FIRST:
      return (u * k->n + g) * columns + c;
    case GATES_FIRST: {
      const int64_t row = g * k->h + u;
      return (row % k->n * k->h + row / k->n) * columns + c;
    }
    default:
      return (g * k->h + u) * columns + c;
  }
}

static bool applies(const gates_t* k, layout_t layout, int64_t columns) {
  if (layout == GATE_TURNED) return columns == k->h && columns > 1;
  if (layout == GATE_READ_ACROSS) return columns != k->h && columns > 1 && k->h > 1;
  if (layout == ALL_READ_ACROSS) return k->n > 1 && columns > 1;
  return layout == AS_IT_IS || (k->n > 1 && k->h > 1);
}

// A constant as the map has it; biases are two matrices of one column.
static assay_status_t mapped(const gates_t* k, size_t input, const map_t* m, assay_tensor_t** out) {
  const assay_tensor_t* was = k->s->in[input];
  const int64_t parts = input == BIASES ? 2 : 1;
  const int64_t columns = input == BIASES ? 1 : was->dims[2], block = k->n * k->h * columns;
  ASSAY_TRY(assay_tensor_copy(was, out));
  for (int64_t d = 0; d < k->dirs; d++)
    for (int64_t part = 0; part < parts; part++) {
      if (m->only && m->only != d + 1) continue;
      const int64_t from_d = m->directions ? k->dirs - 1 - d : d;
      const int64_t from_part = m->halves ? parts - 1 - part : part;
      const double* from = assay_f64(was) + (from_d * parts + from_part) * block;
      double* to = assay_f64(*out) + (d * parts + part) * block;
      for (int64_t g = 0; g < k->n; g++)
        for (int64_t u = 0; u < k->h; u++)
          for (int64_t c = 0; c < columns; c++)
            to[(g * k->h + u) * columns + c] =
                from[place_of(k, m->layout, columns, k->orders[m->order][g], u, c)];
    }
  return NULL;
}

static bool changes(const map_t* m) {
  return m->layout != AS_IT_IS || m->order || m->directions || m->halves;
}

static void describe(const gates_t* k, size_t input, const map_t* m, char* out, size_t size) {
  const size_t at = strlen(out);
  int used = snprintf(out + at, size - at, "%s'%.40s': %s", at ? "; " : "",
                      k->s->node->inputs[input]->name, m->layout ? LAYOUT_TEXT[m->layout] : "");
  if (used < 0 || at + (size_t)used >= size) return;
  size_t end = at + (size_t)used;
  if (m->order) {
    snprintf(out + end, size - end, "%sgates", m->layout ? ", " : "");
    for (int g = 0; g < k->n; g++) {
      end = strlen(out);
      snprintf(out + end, size - end, "%s %d", g ? "," : "", k->orders[m->order][g]);
    }
  }
  end = strlen(out);
  snprintf(out + end, size - end, "%s%s%s", m->directions ? " directions exchanged" : "",
           m->halves ? " halves exchanged" : "",
           m->only == 1  ? " in the first direction"
           : m->only > 1 ? " in the second direction"
                         : "");
}

// maps: of the weights, the state's and the biases; those that change nothing are left out.
static assay_status_t offer(const gates_t* k, const map_t* maps) {
  assay_repair_t r = {.node = k->s->node, .cause = "layout of gates"};
  assay_status_t st = NULL;
  if (assay_missing_is_over(k->s) || assay_clock_seconds() >= k->until) return NULL;
  for (size_t i = 0; !st && i < BIASES; i++) {
    const size_t input = WEIGHTS + i;
    if (!changes(&maps[i]) || input >= k->s->n_in || !k->s->in[input]) continue;
    r.edits[r.n_edits] = (assay_repair_edit_t){.kind = ASSAY_EDIT_CONSTANT, .input = input};
    st = mapped(k, input, &maps[i], &r.edits[r.n_edits].tensor);
    if (!st) r.n_edits++;
    describe(k, input, &maps[i], r.text, sizeof r.text);
  }
  if (!st && r.n_edits) st = assay_missing_offer(k->s, &r);
  assay_repair_deinit(&r);
  return st;
}

// One constant alone in every layout and order. only: a direction (map_t).
static assay_status_t alone(const gates_t* k, size_t i, int only) {
  const size_t input = WEIGHTS + i;
  const bool has = input < k->s->n_in && k->s->in[input];
  const int64_t columns = !has ? 0 : input == BIASES ? 1 : k->s->in[input]->dims[2];
  for (int flags = 0; has && flags < 4; flags++) {
    if ((flags & 1 && (k->dirs < 2 || only)) || (flags & 2 && input != BIASES)) continue;
    for (int layout = 0; layout < LAYOUTS; layout++)
      for (int order = 0; order < k->n_orders && !assay_missing_is_over(k->s); order++) {
        map_t maps[BIASES] = {{0}};
        maps[i] = (map_t){.layout = (layout_t)layout,
                          .order = order,
                          .directions = flags & 1,
                          .only = only,
                          .halves = flags & 2};
        if (applies(k, (layout_t)layout, columns)) ASSAY_TRY(offer(k, maps));
      }
  }
  return NULL;
}

// All of them in one order of gates, input and recurrent weights each in a layout, the biases with
// them or as they are.
static assay_status_t together(const gates_t* k, int only) {
  for (int order = 0; order < k->n_orders; order++)
    for (int w = 0; w < LAYOUTS; w++)
      for (int r = 0; r < LAYOUTS; r++)
        for (int b = 0; b < 2 && !assay_missing_is_over(k->s); b++) {
          const layout_t rows = w == UNITS_FIRST || w == GATES_FIRST ? (layout_t)w : AS_IT_IS;
          const map_t maps[BIASES] = {
              {.layout = (layout_t)w, .order = order, .only = only},
              {.layout = (layout_t)r, .order = order, .only = only},
              {.layout = b ? AS_IT_IS : rows, .order = b ? 0 : order, .only = only}};
          if ((b && !order && !rows) || !applies(k, (layout_t)w, k->s->in[WEIGHTS]->dims[2]) ||
              !applies(k, (layout_t)r, k->h))
            continue;
          ASSAY_TRY(offer(k, maps));
        }
  return NULL;
}

assay_status_t assay_settings_gates(assay_missing_search_t* s, const assay_tensor_t* want) {
  static const double PART = 0.4;  // of the time that is left
  const double now = assay_clock_seconds();
  gates_t k;
  (void)want;
  if (!read_gates(s, &k)) return NULL;
  k.until = now + PART * (s->deadline - now);
  for (int only = 0; only <= (k.dirs > 1 ? (int)k.dirs : 0); only++) {
    for (size_t i = 0; i < BIASES; i++) ASSAY_TRY(alone(&k, i, only));
    if (!assay_missing_is_over(s)) ASSAY_TRY(together(&k, only));
  }
  return NULL;
}
