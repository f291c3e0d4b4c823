// Dimensions made anew out of others: with a symbol replaced, or in another pool.
#include <string.h>

#include "ir/dim_internal.h"

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
