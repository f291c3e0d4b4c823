// Dimensions as text, and their values.
#include <stdio.h>
#include <string.h>

#include "ir/dim_internal.h"
#include "ir/internal.h"

// ---- text -------------------------------------------------------------------------------------

void ir_put(ir_cut_t* c, const char* s) {
  size_t n = strlen(s), space = c->capacity - 1 - c->len;
  if (n > space) n = space;
  memcpy(c->text + c->len, s, n);
  c->len += n;
  c->text[c->len] = 0;
}

static void put_dim(ir_cut_t* c, const assay_dim_t* d);

static void put_u64(ir_cut_t* c, uint64_t x) {
  char digits[24];
  snprintf(digits, sizeof digits, "%llu", (unsigned long long)x);
  ir_put(c, digits);
}

// As an operand of a division: in brackets if it is a sum, or a divisor that is a product.
static void put_operand(ir_cut_t* c, const assay_dim_t* d, bool is_divisor) {
  int64_t value;
  bool bare = d->n < 2 && (!is_divisor || assay_dim_value(d, &value) || dim_as_atom(d));
  if (!bare) ir_put(c, "(");
  put_dim(c, d);
  if (!bare) ir_put(c, ")");
}

static void put_atom(ir_cut_t* c, const atom_t* a) {
  if (a->kind == DIM_SYMBOL) {
    ir_put(c, a->name);
    return;
  }
  if (a->kind == DIM_FLOORDIV) {
    ir_put(c, "floor(");
    put_operand(c, a->args[0], false);
    ir_put(c, "/");
    put_operand(c, a->args[1], true);
  } else {
    ir_put(c, a->kind == DIM_MIN ? "min(" : a->kind == DIM_MAX ? "max(" : "broadcast(");
    for (int i = 0; i < a->n; i++) {
      if (i) ir_put(c, ", ");
      put_dim(c, a->args[i]);
    }
  }
  ir_put(c, ")");
}

static void put_dim(ir_cut_t* c, const assay_dim_t* d) {
  if (!d->n) ir_put(c, "0");
  for (int i = 0; i < d->n; i++) {
    const term_t* t = &d->terms[i];
    // The magnitude as unsigned: INT64_MIN has no negative.
    uint64_t size = t->coef < 0 ? 0 - (uint64_t)t->coef : (uint64_t)t->coef;
    if (i)
      ir_put(c, t->coef < 0 ? " - " : " + ");
    else if (t->coef < 0)
      ir_put(c, "-");
    if (size != 1 || !t->mono->n) put_u64(c, size);
    for (int k = 0; k < t->mono->n; k++) {
      if (k || size != 1) ir_put(c, "*");
      put_atom(c, t->mono->atoms[k]);
    }
  }
}

const char* assay_dim_text(const assay_dim_t* d, char* buffer, size_t capacity) {
  if (!capacity) return buffer;
  ir_cut_t c = {buffer, capacity, 0};
  buffer[0] = 0;
  if (d)
    put_dim(&c, d);
  else
    ir_put(&c, "?");
  return buffer;
}

// ---- values -----------------------------------------------------------------------------------

typedef bool (*lookup_t)(void* user, const char* name, int64_t* out);

static bool eval_atom(const atom_t* a, lookup_t lookup, void* user, int64_t* out) {
  int64_t x, y;
  if (a->kind == DIM_SYMBOL) return lookup(user, a->name, out);
  if (!assay_dim_eval(a->args[0], lookup, user, &x)) return false;
  for (int i = 1; i < a->n; i++) {
    if (!assay_dim_eval(a->args[i], lookup, user, &y)) return false;
    if (a->kind == DIM_FLOORDIV) {
      if (!y || (x == INT64_MIN && y == -1)) return false;
      x = x / y - (x % y != 0 && (x < 0) != (y < 0));
    } else if (a->kind == DIM_BROADCAST) {
      if (x != y && x != 1 && y != 1) return false;
      if (x == 1) x = y;
    } else if (a->kind == DIM_MIN ? y < x : y > x) {
      x = y;
    }
  }
  *out = x;
  return true;
}

bool assay_dim_eval(const assay_dim_t* d, lookup_t lookup, void* user, int64_t* out) {
  int64_t sum = 0;
  if (!d) return false;
  for (int i = 0; i < d->n; i++) {
    int64_t product = d->terms[i].coef;
    for (int k = 0; k < d->terms[i].mono->n; k++) {
      int64_t x;
      if (!eval_atom(d->terms[i].mono->atoms[k], lookup, user, &x) ||
          __builtin_mul_overflow(product, x, &product))
        return false;
    }
    if (__builtin_add_overflow(sum, product, &sum)) return false;
  }
  *out = sum;
  return true;
}
