// Tables of sines and cosines, and geometric sequences, as positions are encoded by: made again
// with what another framework has otherwise.
//
// Sources: base 10000 and sines beside cosines, A. Vaswani et al., Attention Is All You Need, 2017;
// halves, and exponents over n - 1, tensorflow/tensor2tensor common_attention.py; halves and pairs
// of rotary embeddings, huggingface/transformers modeling_llama.py and modeling_gptj.py; rope_theta
// of configurations: 10000, 500000 (Llama 3), 1000000 (Mixtral, Qwen 2), casper-hansen/AutoAWQ
// issue 271; scaled positions, rope_scaling.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/functions.h"
#include "diagnose/proposals.h"

enum { FEWEST_COLUMNS = 4, FEWEST_ROWS = 3, MOST = 1 << 20, TOO_HIGH = 3 };

// Which frequency, and which function, a column has.
typedef struct layout {
  const char* text;
  char kinds;  // 's', 'c': all sines, cosines; 'b': both
  bool cosine_first;
  bool in_turn;  // beside each other, not in halves
  bool twice;    // every frequency in two columns
} layout_t;

static const layout_t layouts[] = {
    {"sines, then cosines", 'b', false, false, true},
    {"cosines, then sines", 'b', true, false, true},
    {"sines and cosines in turn", 'b', false, true, true},
    {"cosines and sines in turn", 'b', true, true, true},
    {"each angle once", 's', false, false, false},
    {"each angle once", 'c', true, false, false},
    {"all angles, then all again", 's', false, false, true},
    {"all angles, then all again", 'c', true, false, true},
    {"each angle twice in turn", 's', false, true, true},
    {"each angle twice in turn", 'c', true, true, true},
};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

// Frequency i is first * ratio^i; row t is of position start + t.
typedef struct table {
  const layout_t* layout;
  double first, ratio, start;
  struct slowing {
    double factor, length;  // factor 0: none
    bool by_places;
  } slowing;
} table_t;

static int64_t frequencies(const layout_t* l, int64_t columns) {
  return l->twice ? columns / 2 : columns;
}

static int64_t frequency_of(const layout_t* l, int64_t columns, int64_t c) {
  if (!l->twice) return c;
  return l->in_turn ? c / 2 : c % (columns / 2);
}

static bool is_cosine(const layout_t* l, int64_t columns, int64_t c) {
  if (l->kinds != 'b') return l->kinds == 'c';
  const bool second = l->in_turn ? c % 2 : c >= columns / 2;
  return second != l->cosine_first;
}

static double between(double x, double low, double high) {
  const double part = (x - low) / fmax(high - low, 1e-3);
  return part < 0 ? 0 : part > 1 ? 1 : part;
}

// Slow turns made slower, for longer texts than those of training, and fast ones as they were: by
// how often each turns in the old length (Llama 3.1), or by its place (B. Peng et al., YaRN, 2023).
static double slowed(const table_t* y, int64_t n, double i, double w) {
  static const double FULL = 6.283185307179586, SLOW = 1, FAST = 4, FASTEST = 32;
  const struct slowing* s = &y->slowing;
  if (!(s->factor > 0)) return w;
  double kept = between(s->length * w / FULL, SLOW, FAST);
  if (s->by_places) {
    const double place = -1 / assay_log(y->ratio), turns = s->length / FULL;
    const double low = floor(place * assay_log(turns / FASTEST)),
                 high = ceil(place * assay_log(turns));
    kept = 1 - between(i, fmax(low, 0), fmin(high, (double)(2 * n - 1)));
  }
  return kept * w + (1 - kept) * w / s->factor;
}

// By places all of a table is larger, too.
static double size_of(const table_t* y) {
  return y->slowing.by_places ? 1 + 0.1 * assay_log(y->slowing.factor) : 1;
}

static void fill(const table_t* y, int64_t rows, int64_t columns, double* out) {
  for (int64_t c = 0; c < columns; c++) {
    const double i = (double)frequency_of(y->layout, columns, c);
    const double plain = y->first * assay_pow(y->ratio, i);
    const double w = slowed(y, frequencies(y->layout, columns), i, plain);
    const bool cosine = is_cosine(y->layout, columns, c);
    for (int64_t t = 0; t < rows; t++) {
      const double angle = w * (y->start + (double)t);
      out[t * columns + c] =
          (double)(float)(size_of(y) * (cosine ? assay_cos(angle) : assay_sin(angle)));
    }
  }
}

// ---- what a table is ---------------------------------------------------------------------------

// The angle from 0 to pi / 2 of a sine or a cosine; negative: there is none.
static double angle_of(double x, bool cosine) {
  if (!(x >= 0 && x <= 1)) return -1;
  return cosine ? assay_acos(x) : assay_asin(x);
}

// What float32 has rounded: a whole number, or one over that, as first frequency, a whole number as
// base: a usual one, if it is near.
static const double bases[] = {10000, 500000, 1000000, 100000, 1000, 100, 50000, 10000000};

static void make_round(table_t* y, int64_t n) {
  static const double NEAR = 1e-4, NEARLY = 2e-3, USUAL = 2e-2;
  const double base = assay_pow(y->ratio, -(double)n), whole = round(base);
  if (fabs(base / whole - 1) < NEAR) y->ratio = assay_pow(whole, -1 / (double)n);
  for (size_t k = 0; k < sizeof bases / sizeof *bases; k++)
    if (fabs(base / bases[k] - 1) < USUAL) y->ratio = assay_pow(bases[k], -1 / (double)n);
  const double first = round(y->first), over = round(1 / y->first);
  if (first >= 1 && fabs(y->first / first - 1) < NEARLY) y->first = first;
  if (first < 1 && fabs(y->first * over - 1) < NEARLY) y->first = 1 / over;
}

// Frequency `from` as it stands there, and the ratio by a line from it through the logarithms of
// those after it that float32 tells well, the larger ones more. Those before it are too high to be
// told from their first step: they follow from the line.
static bool fit_line(const layout_t* l, const double* row, int64_t columns, int64_t from,
                     table_t* out) {
  static const double WELL = 0.01, TOO_FAR = 1.5;
  double ii = 0, iy = 0, first = -1;
  for (int64_t c = 0; c < columns && first < 0; c++)
    if (frequency_of(l, columns, c) == from) first = angle_of(row[c], is_cosine(l, columns, c));
  if (!(first >= WELL && first <= TOO_FAR)) return false;
  for (int64_t c = 0; c < columns; c++) {
    const double w = angle_of(row[c], is_cosine(l, columns, c));
    const double i = (double)(frequency_of(l, columns, c) - from);
    if (i < 0) continue;
    if (w < 0) return false;
    if (w < WELL || w > TOO_FAR) continue;
    // A cosine's rounding moves its angle by about that over the angle.
    const double weight = w * w * w * w;
    ii += weight * i * i, iy += weight * i * assay_log(w / first);
  }
  if (!(ii > 0)) return false;
  *out = (table_t){.layout = l, .ratio = assay_exp(iy / ii)};
  out->first = first / assay_pow(out->ratio, (double)from);
  make_round(out, frequencies(l, columns));
  return out->ratio < 1 && out->ratio > 0;
}

static bool is_table(const table_t* y, const double* x, int64_t rows, int64_t columns) {
  static const double NEAR = 1e-3;
  for (int64_t c = 0; c < columns; c++) {
    const double w = y->first * assay_pow(y->ratio, (double)frequency_of(y->layout, columns, c));
    const bool cosine = is_cosine(y->layout, columns, c);
    for (int64_t t = 0; t < rows; t++) {
      const double want = cosine ? assay_cos(w * (double)t) : assay_sin(w * (double)t);
      if (!(fabs(x[t * columns + c] - want) < NEAR)) return false;
    }
  }
  return true;
}

static bool find_table(const assay_tensor_t* x, int64_t* rows, int64_t* columns, table_t* out) {
  static const double EXACT = 1e-6;
  if (!x || x->kind != ASSAY_KIND_TENSOR || x->store != ASSAY_STORE_F64 || x->rank < 2)
    return false;
  *rows = x->dims[x->rank - 2], *columns = x->dims[x->rank - 1];
  const double* data = assay_f64(x);
  if (x->size != *rows * *columns || x->size > MOST) return false;
  if (*rows < FEWEST_ROWS || *columns < FEWEST_COLUMNS) return false;
  for (size_t k = 0; k < LAYOUTS; k++) {
    const layout_t* l = &layouts[k];
    bool fits = !l->twice || *columns % 2 == 0;
    for (int64_t c = 0; fits && c < *columns; c++)
      fits = fabs(data[c] - (is_cosine(l, *columns, c) ? 1 : 0)) < EXACT;
    for (int64_t from = 0; fits && from <= TOO_HIGH; from++)
      if (fit_line(l, data + *columns, *columns, from, out) && is_table(out, data, *rows, *columns))
        return true;
  }
  return false;
}

// ---- offers ------------------------------------------------------------------------------------

typedef struct offer {
  const assay_suspect_t* s;
  const char* cause;
  const assay_trial_t* t;
  bool* stop;
  size_t input;
  const assay_tensor_t* x;
  int64_t rows, columns;
  table_t table;
} offer_t;

static assay_status_t offer_tensor(const offer_t* o, assay_tensor_t* take, const char* text) {
  assay_repair_t r = assay_repair_of(o->s, o->cause, ASSAY_EDIT_CONSTANT);
  r.edits[0].input = o->input;
  r.edits[0].tensor = take;
  const assay_value_t* v = o->s->node->inputs[o->input];
  snprintf(r.text, sizeof r.text, "'%.100s' with %s", v ? v->name : "", text);
  return assay_offer(o->t, &r, o->stop);
}

static assay_status_t offer_table(const offer_t* o, const table_t* y, const char* text) {
  assay_tensor_t* made = NULL;
  if (*o->stop) return NULL;
  ASSAY_TRY(assay_tensor_create(o->x->type, o->x->rank, o->x->dims, &made));
  fill(y, o->rows, o->columns, assay_f64(made));
  return offer_tensor(o, made, text);
}

// The column of a layout that has what column c of another one has.
static int64_t column_of(const layout_t* in, const layout_t* of, int64_t columns, int64_t c) {
  for (int64_t i = 0; i < columns; i++)
    if (frequency_of(in, columns, i) == frequency_of(of, columns, c) &&
        is_cosine(in, columns, i) == is_cosine(of, columns, c))
      return i;
  return c;
}

// The columns as they are, in another order.
static assay_status_t offer_layout(const offer_t* o, const layout_t* l) {
  assay_tensor_t* made = NULL;
  if (*o->stop) return NULL;
  ASSAY_TRY(assay_tensor_create(o->x->type, o->x->rank, o->x->dims, &made));
  for (int64_t c = 0; c < o->columns; c++) {
    const int64_t from = column_of(o->table.layout, l, o->columns, c);
    for (int64_t t = 0; t < o->rows; t++)
      assay_f64(made)[t * o->columns + c] = assay_f64(o->x)[t * o->columns + from];
  }
  return offer_tensor(o, made, l->text);
}

static assay_status_t offer_layouts(const offer_t* o) {
  const layout_t* now = o->table.layout;
  for (size_t k = 0; k < LAYOUTS; k++) {
    const layout_t* l = &layouts[k];
    if (l != now && l->kinds == now->kinds && l->twice == now->twice) ASSAY_TRY(offer_layout(o, l));
  }
  return NULL;
}

// What a sequence of n numbers first, first * ratio ... may be otherwise.
typedef struct change {
  char text[60];
  double first, ratio;  // times, and to the power of
} change_t;

enum { CHANGES = 24 };

static const double factors[] = {2, 0.5, 4, 0.25, 8, 0.125, 6.283185307179586, 0.15915494309189535};

static size_t list_changes(double ratio, int64_t n, bool positions, change_t* out) {
  const double base = assay_pow(ratio, -(double)n), length = (double)n;
  size_t count = 0;
  for (size_t k = 0; k < sizeof bases / sizeof *bases; k++) {
    change_t* c = &out[count];
    if (fabs(base / bases[k] - 1) < 1e-3) continue;
    *c = (change_t){.first = 1, .ratio = assay_log(bases[k]) / assay_log(base)};
    snprintf(c->text, sizeof c->text, "base %g", bases[k]);
    count++;
  }
  out[count] = (change_t){"exponents over one less", 1, length / (length - 1)};
  out[count + 1] = (change_t){"exponents over one more", 1, (length - 1) / length};
  count += 2;
  for (size_t k = 0; positions && k < sizeof factors / sizeof *factors; k++) {
    change_t* c = &out[count++];
    *c = (change_t){.first = factors[k], .ratio = 1};
    snprintf(c->text, sizeof c->text, "positions times %.6g", factors[k]);
  }
  return count;
}

// Of a slowing that leaves all turns as they are, or makes all slower alike, nothing is to be said.
static bool is_slowing(const table_t* y, int64_t n) {
  bool kept = false, slower = false;
  for (int64_t i = 0; i < n; i++) {
    const double w = y->first * assay_pow(y->ratio, (double)i);
    const double now = slowed(y, n, (double)i, w);
    kept |= now > w / y->slowing.factor;
    slower |= now < w;
  }
  return kept && slower;
}

// Lengths of training, and how many times they grew.
static assay_status_t offer_slowings(const offer_t* o) {
  static const double FACTORS[] = {8, 32, 4, 16, 2, 40};
  static const double LENGTHS[] = {8192, 4096, 32768, 2048, 1024, 512, 256, 128, 64, 32};
  const int64_t n = frequencies(o->table.layout, o->columns);
  for (int by_places = 0; by_places < 2; by_places++)
    for (size_t f = 0; f < sizeof FACTORS / sizeof *FACTORS; f++)
      for (size_t k = 0; k < sizeof LENGTHS / sizeof *LENGTHS && !*o->stop; k++) {
        table_t y = o->table;
        char text[80];
        y.slowing = (struct slowing){FACTORS[f], LENGTHS[k], by_places};
        snprintf(text, sizeof text, "slow turns of %g places slower by %g%s", LENGTHS[k],
                 FACTORS[f], by_places ? ", as in YaRN" : "");
        if (is_slowing(&y, n)) ASSAY_TRY(offer_table(o, &y, text));
      }
  return NULL;
}

static assay_status_t offer_frequencies(const offer_t* o) {
  change_t changes[CHANGES];
  const int64_t n = frequencies(o->table.layout, o->columns);
  const size_t count = list_changes(o->table.ratio, n, true, changes);
  for (size_t k = 0; k < count; k++) {
    table_t y = o->table;
    y.first *= changes[k].first;
    y.ratio = assay_pow(y.ratio, changes[k].ratio);
    ASSAY_TRY(offer_table(o, &y, changes[k].text));
  }
  // Positions that were multiplied by what they should be divided by. Source: kekzl/imp issue 584.
  for (int power = 1; power <= 2 && fabs(o->table.first - 1) > 1e-3; power++) {
    table_t y = o->table;
    y.first = power == 1 ? 1 : 1 / y.first;
    ASSAY_TRY(offer_table(o, &y,
                          power == 1 ? "positions as they are, not scaled"
                                     : "positions divided, where they are multiplied"));
  }
  // Angles the other way round: rotations by them turn back.
  if (o->table.layout->kinds != 'c') {
    table_t y = o->table;
    y.first = -y.first;
    ASSAY_TRY(offer_table(o, &y, "its sines negative"));
  }
  for (int start = 1; start <= 2; start++) {
    table_t y = o->table;
    char text[60];
    y.start = start;
    snprintf(text, sizeof text, "positions from %d on", start);
    ASSAY_TRY(offer_table(o, &y, text));
  }
  return NULL;
}

// ---- geometric sequences -----------------------------------------------------------------------

static bool find_sequence(const assay_tensor_t* x, double* ratio) {
  static const double NEAR = 1e-5;
  if (!x || x->kind != ASSAY_KIND_TENSOR || x->store != ASSAY_STORE_F64 || x->rank < 1)
    return false;
  bool one = false;  // one dimension holds all
  for (int k = 0; k < x->rank; k++) one |= x->dims[k] == x->size;
  if (!one || x->size < FEWEST_COLUMNS || x->size > MOST) return false;
  const double* a = assay_f64(x);
  *ratio = a[1] / a[0];
  if (!(a[0] > 0) || !(*ratio > 0) || !(*ratio < 1 - 1e-3)) return false;
  for (int64_t i = 1; i < x->size; i++)
    if (!(fabs(a[i] / a[i - 1] / *ratio - 1) < NEAR)) return false;
  return true;
}

static assay_status_t offer_sequence(const offer_t* o, double ratio, const change_t* c) {
  assay_tensor_t* y = NULL;
  if (*o->stop) return NULL;
  const double first = assay_f64(o->x)[0] * c->first, step = assay_pow(ratio, c->ratio);
  ASSAY_TRY(assay_tensor_create(o->x->type, o->x->rank, o->x->dims, &y));
  for (int64_t i = 0; i < y->size; i++)
    assay_f64(y)[i] = (double)(float)(first * assay_pow(step, (double)i));
  return offer_tensor(o, y, c->text);
}

static assay_status_t offer_sequences(const offer_t* o, double ratio) {
  change_t changes[CHANGES];
  const size_t count = list_changes(ratio, o->x->size, true, changes);
  const change_t before = {"exponents one less", 1 / ratio, 1};
  const change_t after = {"exponents one more", ratio, 1};
  for (size_t k = 0; k < count; k++) ASSAY_TRY(offer_sequence(o, ratio, &changes[k]));
  ASSAY_TRY(offer_sequence(o, ratio, &before));
  return offer_sequence(o, ratio, &after);
}

assay_status_t assay_propose_table(const assay_suspect_t* s, const char* cause,
                                   const assay_trial_t* t, bool* stop) {
  for (size_t i = 0; i < s->n_in && !*stop; i++) {
    assay_tensor_t* x = NULL;
    double ratio = 0;
    ASSAY_TRY(assay_suspect_constant(s, i, &x));
    offer_t o = {.s = s, .cause = cause, .t = t, .stop = stop, .input = i, .x = x};
    assay_status_t st = NULL;
    if (find_table(x, &o.rows, &o.columns, &o.table)) {
      st = offer_layouts(&o);
      if (!st) st = offer_frequencies(&o);
      if (!st) st = offer_slowings(&o);
    } else if (find_sequence(x, &ratio)) {
      st = offer_sequences(&o, ratio);
    }
    assay_tensor_release(x);
    if (st) return st;
  }
  return NULL;
}
