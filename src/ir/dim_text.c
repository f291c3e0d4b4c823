// Dimensions as text, their values, and dimensions made anew out of others.
#include <stdio.h>
#include <string.h>

#include "ir/dim_internal.h"
#include "ir/internal.h"

// ---- text -------------------------------------------------------------------------------------

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

// ---- made anew --------------------------------------------------------------------------------

static bool mentions(const assay_dim_t* d, const char* name) {
  for (int i = 0; i < d->n; i++) {
    for (int k = 0; k < d->terms[i].mono->n; k++) {
      const atom_t* a = d->terms[i].mono->atoms[k];
      if (a->kind == DIM_SYMBOL && strcmp(a->name, name) == 0) return true;
      for (int j = 0; j < a->n; j++)
        if (mentions(a->args[j], name)) return true;
    }
  }
  return false;
}

static const assay_dim_t* replace_in_atom(assay_dims_t* p, const atom_t* a, const char* name,
                                          const assay_dim_t* by) {
  if (a->kind == DIM_SYMBOL) return strcmp(a->name, name) == 0 ? by : assay_dim_symbol(p, a->name);
  const assay_dim_t* r = assay_dim_replace(p, a->args[0], name, by);
  for (int i = 1; i < a->n; i++) {
    const assay_dim_t* x = assay_dim_replace(p, a->args[i], name, by);
    if (a->kind == DIM_FLOORDIV)
      r = assay_dim_floordiv(p, r, x);
    else if (a->kind == DIM_BROADCAST)
      r = assay_dim_broadcast(p, r, x);
    else
      r = a->kind == DIM_MIN ? assay_dim_min(p, r, x) : assay_dim_max(p, r, x);
  }
  return r;
}

const assay_dim_t* assay_dim_replace(assay_dims_t* p, const assay_dim_t* d, const char* name,
                                     const assay_dim_t* by) {
  if (!d || !mentions(d, name)) return d;
  const assay_dim_t* sum = assay_dim_const(p, 0);
  for (int i = 0; i < d->n && sum; i++) {
    const assay_dim_t* product = assay_dim_const(p, d->terms[i].coef);
    for (int k = 0; k < d->terms[i].mono->n; k++)
      product = assay_dim_mul(p, product, replace_in_atom(p, d->terms[i].mono->atoms[k], name, by));
    sum = assay_dim_add(p, sum, product);
  }
  return sum;
}

static const mono_t* copy_atom(assay_dims_t* to, const atom_t* a) {
  const assay_dim_t* args[DIM_MAX_ARGS];
  for (int i = 0; i < a->n; i++) args[i] = assay_dim_copy(to, a->args[i]);
  const assay_dim_t* d =
      a->kind == DIM_SYMBOL ? assay_dim_symbol(to, a->name) : dim_atom(to, a->kind, a->n, args);
  return d ? d->terms[0].mono : NULL;
}

// Term by term, as it is: what was simplified once needs no simplifying again.
const assay_dim_t* assay_dim_copy(assay_dims_t* to, const assay_dim_t* d) {
  build_t sum;
  dim_build_init(&sum);
  if (!d) return NULL;
  for (int i = 0; i < d->n; i++) {
    const mono_t* mono = dim_mono_one(to);
    for (int k = 0; k < d->terms[i].mono->n; k++)
      mono = dim_mono_mul(to, mono, copy_atom(to, d->terms[i].mono->atoms[k]));
    dim_build_add(&sum, d->terms[i].coef, mono);
  }
  return dim_build_done(to, &sum);
}
