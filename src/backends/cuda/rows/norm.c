// Normalizations of rows that lie one after the other, for kernels that make them by the way.
#include "backends/cuda/rows/norm.h"

#include <string.h>

#include "backends/cuda/rows/rows.h"

enum { WARP = 32, MAX_KEPT = 64 };  // elements of a row that a lane keeps

static int lanes_of(const cuda_rows_t* r) { return r->span < WARP ? r->span : WARP; }

// Whether the lanes of a warp can do what the threads of its rows do, and keep what those keep.
static bool warps_do(const cuda_rows_t* r) {
  return r->dims == 1 && !r->across && r->keep &&
         r->span / lanes_of(r) * r->keep * r->vector <= MAX_KEPT;
}

static bool is_plain(const cuda_rows_kernel_t* k) {
  return k->along_last && k->skip < 0 && k->mean < 0 && k->inverse < 0 && warps_do(&k->rows);
}

assay_status_t cuda_norm_read(const assay_sized_layer_t* l, cuda_norm_t* out, bool* ok) {
  cuda_rows_kernel_t k;
  assay_status_t st = cuda_rows_kernel_open(l, &k, ok);
  *ok = !st && *ok && is_plain(&k);
  if (*ok) {
    *out = (cuda_norm_t){
        .x = k.x,
        .scale = k.scale,
        .bias = k.bias,
        .rows = k.rows.geometry.rows,
        .terms = k.rows.geometry.terms,
        .over = k.base.in_place >= 0,
        .out = k.base.out[0],
        .args = {.places = k.args.places, .period = k.args.period, .epsilon = k.args.epsilon},
        .centered = k.centered,
        .span = k.rows.span,
        .keep = k.rows.keep,
        .vector = k.rows.vector};
    memcpy(out->in, k.base.in, sizeof out->in);
  }
  cuda_rows_kernel_close(&k);
  return st;
}

// 0: there is none, 1: it has a number for each element, 2: one for all.
static int parameter_kind(const assay_sized_layer_t* l, int i) {
  return i < 0 ? 0 : l->in[i].size == 1 ? 2 : 1;
}

void cuda_norm_print(const assay_sized_layer_t* l, const cuda_norm_t* n, assay_str_t* out) {
  assay_str_printf(out,
                   "-DNORM_TYPE=%s -DNORM_SPAN=%d -DNORM_KEEP=%d -DNORM_VEC=%d -DNORM_CENTERED=%d "
                   "-DNORM_SCALE=%d -DNORM_BIAS=%d -DNORM_OF=%s -DNORM_MOVED=%d",
                   cuda_type_name(l->in[n->x].type), n->span, n->keep, n->vector, n->centered,
                   parameter_kind(l, n->scale), parameter_kind(l, n->bias),
                   cuda_type_name(l->in[n->scale].type), n->args.places != 0);
}
