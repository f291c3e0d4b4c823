// Weights of four bits, two in a byte: what a half means, and which of the halves is whose.
//
// Whoever packs and whoever reads have to agree on how a half says its sign, whether a negative
// lower half has taken one from the upper one, and in which order numbers follow each other. None
// of that shows in shapes or types. Sources: orders of AWQ (0,2,4,6,1,3,5,7), GPTQ and of blocks of
// 32 (casper-hansen/AutoAWQ, ggerganov/ggml, their sources); GPTQ's zero points, which are stored
// one lower (AutoGPTQ/AutoGPTQ issue 182).
#include <stdio.h>
#include <string.h>

#include "diagnose/causes/surroundings.h"
#include "diagnose/proposals.h"

enum { FEW = 16, MANY = 1 << 21, HALF = 16 };  // bytes of a constant; values of a half

// What reads bytes to take them apart.
static bool takes_apart(const assay_node_t* n, size_t input) {
  static const char* const names[] = {"Cast",       "BitShift", "BitwiseAnd", "Mod",
                                      "BitwiseXor", "Div",      "Gather"};
  if (*n->domain || input) return false;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(n->op_type, names[i]) == 0) return true;
  return false;
}

typedef struct place {
  const assay_suspect_t* s;
  const char* cause;
  const assay_trial_t* t;
  bool* stop;
  size_t input;
  const assay_tensor_t* x;
} place_t;

static int64_t as_stored(const assay_tensor_t* x, unsigned byte) {
  return x->type == ASSAY_TYPE_INT8 && byte > INT8_MAX ? (int64_t)byte - 256 : (int64_t)byte;
}

static assay_status_t offer(const place_t* p, assay_tensor_t* take, const char* what) {
  char text[200];
  snprintf(text, sizeof text, "'%.100s' with %s", p->s->node->inputs[p->input]->name, what);
  return assay_offer_constant(p->s, p->cause, p->input, take, text, p->t, p->stop);
}

// ---- what a half means -------------------------------------------------------------------------

typedef enum change {
  BOTH_SIGNS,
  LOWER_SIGN,
  UPPER_SIGN,
  EXCHANGED,
  LEND_NEGATIVE,  // the lower half, with an offset of 8, took one from the upper half
  TAKE_NEGATIVE,  // it should take one, and has not
  LEND_SIGNED,    // the same of two's complement
  TAKE_SIGNED,
  NEGATED,
  COMPLEMENT,
  ONE_MORE,
  ONE_LESS,
  CHANGES,
} change_t;

static const char* const whats[CHANGES] = {
    "the sign of each half turned: an offset of 8 for two's complement, or the other way",
    "the sign of each lower half turned",
    "the sign of each upper half turned",
    "the halves of each byte exchanged",
    "one more in each upper half whose lower one is below 8",
    "one less in each upper half whose lower one is below 8",
    "one more in each upper half whose lower one is not below 8",
    "one less in each upper half whose lower one is not below 8",
    "each half subtracted from 16",
    "each half subtracted from 15",
    "one more in each half",
    "one less in each half",
};

static unsigned changed(change_t c, unsigned lower, unsigned upper) {
  const unsigned sign = HALF / 2, all = HALF - 1;
  switch (c) {
    case BOTH_SIGNS:
      return (lower ^ sign) | (upper ^ sign) << 4;
    case LOWER_SIGN:
      return (lower ^ sign) | upper << 4;
    case UPPER_SIGN:
      return lower | (upper ^ sign) << 4;
    case EXCHANGED:
      return upper | lower << 4;
    case LEND_NEGATIVE:
      return lower | ((upper + (lower < sign)) & all) << 4;
    case TAKE_NEGATIVE:
      return lower | ((upper - (lower < sign)) & all) << 4;
    case LEND_SIGNED:
      return lower | ((upper + (lower >= sign)) & all) << 4;
    case TAKE_SIGNED:
      return lower | ((upper - (lower >= sign)) & all) << 4;
    case NEGATED:
      return ((HALF - lower) & all) | ((HALF - upper) & all) << 4;
    case COMPLEMENT:
      return (all - lower) | (all - upper) << 4;
    case ONE_MORE:
      return ((lower + 1) & all) | ((upper + 1) & all) << 4;
    default:
      return ((lower - 1) & all) | ((upper - 1) & all) << 4;
  }
}

static assay_status_t offer_changes(const place_t* p) {
  for (int c = 0; c < CHANGES && !*p->stop; c++) {
    assay_tensor_t* y = NULL;
    ASSAY_TRY(assay_tensor_copy(p->x, &y));
    for (int64_t i = 0; i < y->size; i++) {
      const unsigned byte = (unsigned)assay_i64(p->x)[i] & 255;
      assay_i64(y)[i] = as_stored(y, changed((change_t)c, byte & 15, byte >> 4) & 255);
    }
    ASSAY_TRY(offer(p, y, whats[c]));
  }
  return NULL;
}

// ---- the order of numbers ----------------------------------------------------------------------

// Along an axis: groups of so many numbers, counted as `outer` times the rest, not the other way.
typedef struct order {
  int axis;
  int64_t group, outer;
  bool upper_first;
} order_t;

static int64_t source_of(const order_t* o, int64_t i) {
  const int64_t first = i / o->group * o->group, at = i - first, inner = o->group / o->outer;
  return first + at % o->outer * inner + at / o->outer;
}

// Number i of a line of bytes.
static unsigned number_at(const int64_t* line, int64_t step, const order_t* o, int64_t i) {
  const unsigned byte = (unsigned)line[i / 2 * step] & 255;
  return (i % 2 != 0) != o->upper_first ? byte >> 4 : byte & 15;
}

static void reorder_line(const assay_tensor_t* x, int64_t first, int64_t step, const order_t* o,
                         assay_tensor_t* y) {
  for (int64_t i = 0; i < x->dims[o->axis]; i++) {
    const unsigned a = number_at(assay_i64(x) + first, step, o, source_of(o, 2 * i));
    const unsigned b = number_at(assay_i64(x) + first, step, o, source_of(o, 2 * i + 1));
    assay_i64(y)[first + i * step] = as_stored(y, o->upper_first ? b | a << 4 : a | b << 4);
  }
}

static assay_status_t offer_order(const place_t* p, const order_t* o) {
  const assay_tensor_t* x = p->x;
  const int64_t step = assay_dims_product(x->dims, o->axis + 1, x->rank);
  const int64_t block = step * x->dims[o->axis];
  assay_tensor_t* y = NULL;
  char what[140];
  ASSAY_TRY(assay_tensor_copy(x, &y));
  for (int64_t at = 0; at < x->size; at += block)
    for (int64_t k = 0; k < step; k++) reorder_line(x, at + k, step, o, y);
  snprintf(what, sizeof what,
           "each %lld numbers along axis %d counted as %lld times %lld, %s halves first",
           (long long)o->group, o->axis, (long long)(o->group / o->outer), (long long)o->outer,
           o->upper_first ? "upper" : "lower");
  return offer(p, y, what);
}

// Groups of powers of two, and all of an axis.
static assay_status_t offer_orders(const place_t* p, int axis) {
  static const int64_t groups[] = {4, 8, 16, 32, 64, 128, 256, 0};
  enum { LEAST = 4 };
  const int64_t all = 2 * p->x->dims[axis];
  for (size_t g = 0; g < sizeof groups / sizeof *groups && !*p->stop; g++) {
    const int64_t group = groups[g] ? groups[g] : all;
    bool known = group > all || all % group || group < LEAST;
    for (size_t k = 0; k < g; k++) known |= groups[g] == 0 && groups[k] == all;
    for (int k = 0; k < 4 && !known && !*p->stop; k++) {
      const order_t o = {axis, group, k & 1 ? 2 : group / 2, k >= 2};
      if (group > LEAST || !(k & 1)) ASSAY_TRY(offer_order(p, &o));
    }
  }
  return NULL;
}

assay_status_t assay_propose_packed(const assay_suspect_t* s, const char* cause,
                                    const assay_trial_t* t, bool* stop) {
  assay_tensor_t* x = NULL;
  if (!s->n_in || !takes_apart(s->node, 0)) return NULL;
  ASSAY_TRY(assay_suspect_constant(s, 0, &x));
  const place_t p = {s, cause, t, stop, 0, x};
  assay_status_t st = NULL;
  if (x && x->rank && (x->type == ASSAY_TYPE_UINT8 || x->type == ASSAY_TYPE_INT8) &&
      x->size >= FEW && x->size <= MANY) {
    st = offer_changes(&p);
    if (!st) st = offer_orders(&p, 0);
    if (!st && x->rank > 1) st = offer_orders(&p, x->rank - 1);
  }
  assay_tensor_release(x);
  return st;
}
