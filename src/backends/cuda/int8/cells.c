// What a function and a quantizer behind it make of one float, as a table.
#include "backends/cuda/int8/cells.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"

enum {
  MIN_CELLS = 256,
  MAX_CHANGES = 1024,
  MAX_BOUNDARIES = 255,  // between bytes
  MAX_TRIED = 1 << 18    // floats that may be where a byte changes
};

// ---- functions ----------------------------------------------------------------------------------

// Where a function turns from falling to rising; NaN: it rises all over. Around the point it is
// flat, so that some places of it are enough.
static const struct {
  const char* name;
  double turn;
} shapes[] = {
    {"Gelu", -0.751791524693564}, {"gelu_tanh", -0.752461423902},
    {"silu", -1.278464542761},    {"Swish", -1.278464542761},  // over alpha
    {"Mish", -1.192431213},       {"HardSwish", -1.5},
    {"Sigmoid", (double)NAN},     {"Tanh", (double)NAN},
    {"Erf", (double)NAN},         {"Softplus", (double)NAN},
};

static bool find_turn(const assay_int8_t* q, double* turn) {
  const char* name = assay_int8_function_name(q->steps[0].function);
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    if (strcmp(shapes[i].name, name) != 0) continue;
    const bool has_alpha = strcmp(name, "Swish") == 0;
    const double alpha = has_alpha ? q->steps[0].p[0] : 1;
    *turn = shapes[i].turn / alpha;
    return alpha >= 0x1p-10 && alpha <= 0x1p10;
  }
  return false;
}

// Else f may be NaN.
static bool are_finite(const float* x, int64_t n) {
  bool yes = true;
  for (int64_t i = 0; i < n; i++) yes &= isfinite(x[i]) != 0;
  return yes;
}

bool cuda_int8_may_have_cells(const assay_int8_t* q) {
  double turn;
  return q->quantizes && !q->simple && q->n_steps == 1 && q->steps[0].a == 0 && q->steps[0].b < 0 &&
         q->n_sources == 1 && q->sources[0].kind == ASSAY_INT8_RESULT && q->scale >= 0x1p-60F &&
         q->scale <= 0x1p60F && find_turn(q, &turn) && are_finite(q->factor, q->n_factor) &&
         are_finite(q->shift, q->n_factor);
}

// ---- floats in order ----------------------------------------------------------------------------

// Of its neighbours one less and one more; those of -0 and 0 are one.
static int64_t place_of(float x) {
  int32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits < 0 ? -(int64_t)(bits & INT32_MAX) : bits;
}

static float float_at(int64_t place) {
  const uint32_t bits = place < 0 ? (uint32_t)-place | 0x80000000u : (uint32_t)place;
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

// What the layer's definition makes of n floats: bytes, or floats that are not quantized.
typedef struct made {
  const assay_int8_t* q;  // what quantizes
  assay_int8_t real;      // the same without
} made_t;

static void evaluate(const assay_int8_t* q, const float* f, int64_t n, void* out) {
  float ones[ASSAY_INT8_TILE], zeros[ASSAY_INT8_TILE];
  for (int64_t i = 0; i < n; i++) ones[i] = 1, zeros[i] = -0.0F;
  const assay_int8_tile_t t = {.sums = f, .factor = ones, .shift = zeros};
  assay_int8_epilogue(q, &t, n, out);
}

// ---- where bytes may change ---------------------------------------------------------------------

// Floats from `low` to `high` over which the function rises, or falls.
typedef struct piece {
  int64_t low, high;  // places
  bool falls;
} piece_t;

// From a place to another one, both of which belong to it.
typedef struct span {
  int64_t first, last;
} span_t;

// By bisection, for all boundaries at once: the place where the piece's function has come to
// `least`, or has left `most` behind it, counted in the direction in which it rises.
static void bisect(const made_t* m, const piece_t* p, const double* limits, bool above, int n,
                   int64_t* places) {
  int64_t low[MAX_BOUNDARIES], high[MAX_BOUNDARIES];  // reached at high, not at low
  float f[MAX_BOUNDARIES], y[MAX_BOUNDARIES];
  for (int i = 0; i < n; i++) low[i] = -1, high[i] = p->high - p->low + 1;
  for (int turn = 0; turn < 34; turn++) {
    for (int i = 0; i < n; i++) {
      const int64_t middle = high[i] - low[i] > 1 ? (low[i] + high[i]) / 2
                             : low[i] < 0         ? 0
                                                  : low[i];
      f[i] = float_at(p->falls ? p->high - middle : p->low + middle);
    }
    evaluate(&m->real, f, n, y);
    for (int i = 0; i < n; i++) {
      if (high[i] - low[i] <= 1) continue;
      const int64_t middle = (low[i] + high[i]) / 2;
      const bool reached = above ? (double)y[i] > limits[i] : (double)y[i] >= limits[i];
      if (reached)
        high[i] = middle;
      else
        low[i] = middle;
    }
  }
  for (int i = 0; i < n; i++) places[i] = high[i];
}

// Adds the spans of a piece; where the function does not come near to a boundary, it has none.
static int find_spans(const made_t* m, const piece_t* p, span_t* out) {
  const assay_int8_t* q = m->q;
  const int low = q->type == ASSAY_TYPE_INT8 ? -128 : 0;
  double least[MAX_BOUNDARIES], most[MAX_BOUNDARIES];
  int64_t first[MAX_BOUNDARIES], behind[MAX_BOUNDARIES];
  int n = 0;
  for (int i = 0; i < MAX_BOUNDARIES; i++) {
    const double boundary = (low + i + 0.5 - (double)q->zero) * (double)q->scale;
    const double near = fabs(boundary) * 0x1p-21 + 0x1p-140;
    least[i] = boundary - near;
    most[i] = boundary + near;
  }
  bisect(m, p, least, false, MAX_BOUNDARIES, first);
  bisect(m, p, most, true, MAX_BOUNDARIES, behind);
  for (int i = 0; i < MAX_BOUNDARIES; i++) {
    if (first[i] == behind[i] && (first[i] == 0 || first[i] == p->high - p->low + 1)) continue;
    // One more to each side: what it changes from, and to.
    const int64_t from = first[i] - 1, to = behind[i];
    out[n++] =
        p->falls ? (span_t){p->high - to, p->high - from} : (span_t){p->low + from, p->low + to};
  }
  return n;
}

// ---- changes ------------------------------------------------------------------------------------

typedef struct change {
  float from;
  uint8_t below, above;
} change_t;

typedef struct changes {
  change_t at[MAX_CHANGES];
  int n;
} changes_t;

// Tries the floats of a span, of which all before `from` are known. False: they are too many.
static bool try_span(const made_t* m, const span_t* s, int64_t from, int64_t* tried, changes_t* c) {
  float f[ASSAY_INT8_TILE];
  uint8_t bytes[ASSAY_INT8_TILE];
  int64_t at = s->first > from ? s->first : from;
  if (at >= s->last) return true;
  *tried += s->last - at;
  if (*tried > MAX_TRIED) return false;
  // Tiles have a float in common.
  for (; at < s->last; at += ASSAY_INT8_TILE - 1) {
    const int64_t left = s->last - at + 1, n = left < ASSAY_INT8_TILE ? left : ASSAY_INT8_TILE;
    for (int64_t i = 0; i < n; i++) f[i] = float_at(at + i);
    evaluate(m->q, f, n, bytes);
    for (int64_t i = 1; i < n; i++) {
      if (bytes[i] == bytes[i - 1]) continue;
      if (c->n == MAX_CHANGES) return false;
      c->at[c->n++] = (change_t){f[i], bytes[i - 1], bytes[i]};
    }
  }
  return true;
}

// By insertion: those of a piece that rises are in order, those of one that falls the other way.
static void sort_spans(span_t* s, int n) {
  for (int i = 1; i < n; i++) {
    const span_t x = s[i];
    int k = i;
    for (; k && s[k - 1].first > x.first; k--) s[k] = s[k - 1];
    s[k] = x;
  }
}

// Bytes go over into each other from the first float to the last.
static bool are_chained(const made_t* m, const changes_t* c) {
  const float ends[] = {-(float)INFINITY, -FLT_MAX, FLT_MAX, (float)INFINITY};
  uint8_t bytes[4];
  evaluate(m->q, ends, 4, bytes);
  bool yes = c->n > 0 && bytes[0] == bytes[1] && bytes[1] == c->at[0].below &&
             bytes[2] == c->at[c->n - 1].above && bytes[3] == bytes[2];
  for (int i = 1; yes && i < c->n; i++)
    yes = c->at[i - 1].above == c->at[i].below && c->at[i - 1].from < c->at[i].from;
  return yes;
}

static bool find_changes(const made_t* m, double turn, changes_t* c) {
  const int64_t first = place_of(-FLT_MAX), last = place_of(FLT_MAX);
  span_t spans[2 * MAX_BOUNDARIES];
  int64_t tried = 0, from = first;
  int n = 0;
  c->n = 0;
  if (isnan(turn)) {
    n = find_spans(m, &(piece_t){first, last, false}, spans);
  } else {
    const int64_t at = place_of((float)turn);
    n = find_spans(m, &(piece_t){first, at, true}, spans);
    n += find_spans(m, &(piece_t){at, last, false}, spans + n);
  }
  sort_spans(spans, n);
  for (int i = 0; i < n; i++) {
    const span_t s = {spans[i].first < first ? first : spans[i].first,
                      spans[i].last > last ? last : spans[i].last};
    if (!try_span(m, &s, from, &tried, c)) return false;
    if (from < s.last) from = s.last;
  }
  return are_chained(m, c);
}

// ---- cells --------------------------------------------------------------------------------------

static int cell_of(const cuda_int8_cells_t* c, float f) {
  const float at = fmaf(f, c->step, c->shift), zero = 0x1p23F;
  int32_t bits, none;
  memcpy(&bits, &at, sizeof bits);
  memcpy(&none, &zero, sizeof none);
  return bits - none;
}

// False: two changes are in one cell.
static bool lay_out(const changes_t* changes, int n, cuda_int8_cells_t* c) {
  const int last = changes->n - 1;
  c->n = n;
  c->from = changes->at[0].from;
  c->to = changes->at[last].from;
  const double width = (double)c->to - (double)c->from;
  c->step = width > 0 ? (float)((n - 2) / width) : 0;
  if (!isfinite(c->step) || !isfinite(width)) return false;
  c->shift = (float)(0x1p23 + ceil((double)-c->from * (double)c->step));
  int cell = 0;
  for (int i = 0; i <= last; i++) {
    const change_t* x = &changes->at[i];
    const int at = cell_of(c, x->from);
    const uint32_t below = x->below, above = x->above;
    if (at < cell || at >= n) return false;
    for (; cell < at; cell++) c->cells[cell] = (int8_cell_t){0, below * 0x0101u};
    c->cells[cell++] = (int8_cell_t){x->from, below | above << 8};
    if (i == last)
      for (; cell < n; cell++) c->cells[cell] = (int8_cell_t){0, above * 0x0101u};
  }
  return true;
}

assay_status_t cuda_int8_cells_find(const assay_int8_t* q, cuda_int8_cells_t* out) {
  made_t m = {.q = q};
  changes_t* changes = NULL;
  double turn;
  out->n = 0;
  if (!cuda_int8_may_have_cells(q) || !find_turn(q, &turn)) return NULL;
  m.real = *q;
  m.real.quantizes = false;
  m.real.type = ASSAY_TYPE_FLOAT;
  ASSAY_TRY(ASSAY_NEW(&changes));
  bool is = find_changes(&m, turn, changes);
  int n = MIN_CELLS;
  while (is && n <= CUDA_INT8_MAX_CELLS && !lay_out(changes, n, out)) n *= 2;
  if (!is || n > CUDA_INT8_MAX_CELLS) out->n = 0;
  assay_free(changes);
  return NULL;
}
