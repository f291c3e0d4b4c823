// Layers that are MatMul or Gemm; Conv and ConvTranspose: conv.c.
#include "backends/emu/like/product.h"

#include <string.h>

#include "base/alloc.h"

// ---- what is multiplied -------------------------------------------------------------------------

// Where a matrix begins in an operand.
static int64_t start_of(const emu_product_t* p, int64_t matrix, const int64_t* steps) {
  int64_t at = 0;
  for (int d = p->n_dims - 1; d >= 0; d--) {
    at += matrix % p->dims[d] * steps[d];
    matrix /= p->dims[d];
  }
  return at;
}

static void matrix_row(const emu_product_t* p, int64_t matrix, int64_t i, float* to) {
  const float* x = p->x + start_of(p, matrix, p->x_step) + i * p->x_row;
  for (int64_t k = 0; k < p->k; k++) to[k] = x[k * p->x_k];
}

static void matrix_column(const emu_product_t* p, int64_t matrix, int64_t j, float* to) {
  const float* w = p->w + start_of(p, matrix, p->w_step) + j * p->w_column;
  for (int64_t k = 0; k < p->k; k++) to[k] = w[k * p->w_k];
}

// An operand as matrices: a vector is a row on the left, a column on the right.
typedef struct side {
  int rank;
  int64_t dims[ASSAY_KERNEL_RANK];
} side_t;

static side_t side_of(const assay_operand_t* o, bool right) {
  side_t s = {.rank = o->rank};
  memcpy(s.dims, o->dims, sizeof s.dims);
  if (o->rank != 1) return s;
  s.rank = 2;
  s.dims[right] = 1;
  s.dims[!right] = o->dims[0];
  return s;
}

static int64_t dim_of(const side_t* o, int rank, int i) {
  return i < rank - o->rank ? 1 : o->dims[i - (rank - o->rank)];
}

static bool read_batch(const side_t* x, const side_t* w, int rank, emu_product_t* p) {
  int64_t x_step = p->m * p->k, w_step = p->k * p->n;
  p->matrices = 1;
  p->n_dims = rank - 2;
  for (int i = rank - 3; i >= 0; i--) {
    const int64_t of_x = dim_of(x, rank, i), of_w = dim_of(w, rank, i);
    if (of_x != of_w && of_x != 1 && of_w != 1) return false;
    p->dims[i] = of_x > of_w ? of_x : of_w;
    p->x_step[i] = of_x == 1 ? 0 : x_step;
    p->w_step[i] = of_w == 1 ? 0 : w_step;
    x_step *= of_x;
    w_step *= of_w;
    if (!assay_mul_i64(p->matrices, p->dims[i], &p->matrices)) return false;
  }
  return true;
}

// One right side for all: rows of the batch are rows of one product.
static void join_batch(emu_product_t* p) {
  for (int i = 0; i < p->n_dims; i++)
    if (p->w_step[i] || !p->x_step[i]) return;
  p->m *= p->matrices;
  p->matrices = 1;
  p->n_dims = 0;
}

static bool read_sides(const assay_operand_t* of_x, const assay_operand_t* of_w,
                       const assay_operand_t* y, bool x_turned, bool w_turned, emu_product_t* p) {
  const side_t x = side_of(of_x, false), w = side_of(of_w, true);
  const int rank = x.rank > w.rank ? x.rank : w.rank;
  int64_t size;
  if (x.rank < 2 || w.rank < 2) return false;
  p->m = dim_of(&x, rank, x_turned ? rank - 1 : rank - 2);
  p->k = dim_of(&x, rank, x_turned ? rank - 2 : rank - 1);
  p->n = dim_of(&w, rank, w_turned ? rank - 2 : rank - 1);
  if (p->k != dim_of(&w, rank, w_turned ? rank - 1 : rank - 2) || !read_batch(&x, &w, rank, p))
    return false;
  p->x_row = x_turned ? 1 : p->k;
  p->x_k = x_turned ? p->m : 1;
  p->w_k = w_turned ? 1 : p->n;
  p->w_column = w_turned ? p->k : 1;
  p->y_row = p->n;
  if (!assay_mul_i64(p->m * p->n, p->matrices, &size) || size != y->size) return false;
  if (!x_turned) join_batch(p);
  return true;
}

// Gemm's third input: a constant element a column, or one for all, is added to the sum as a bias;
// that, and factors, else follow in the program.
static assay_status_t read_end(emu_operands_t* o, const assay_node_t* n, emu_product_t* p) {
  const bool adds = n->n_inputs > 2 && n->inputs[2];
  const int i = adds ? assay_sized_input_index(o->l, n->inputs[2]) : -1;
  const assay_operand_t* c = i < 0 ? NULL : &o->l->in[i];
  const bool row = c && c->constant && (c->size == 1 || c->size == p->n) &&
                   (c->size == 1 || c->dims[c->rank - 1] == c->size);
  p->ends =
      assay_attr_f64(n, "alpha", 1) != 1 || (adds && (assay_attr_f64(n, "beta", 1) != 1 || !row));
  p->one_bias = row && c->size == 1;
  return row && !p->ends ? emu_operand_get(o, i, ASSAY_LAYOUT_PLAIN, &p->bias) : NULL;
}

assay_status_t emu_product_read(emu_operands_t* o, const emu_gpu_t* gpu, emu_product_t* p,
                                bool* ok) {
  const assay_sized_layer_t* l = o->l;
  const assay_node_t* n = l->layer->nodes[0];
  const bool gemm = strcmp(n->op_type, "Gemm") == 0;
  *p = (emu_product_t){.layout = ASSAY_LAYOUT_PLAIN, .row = matrix_row, .column = matrix_column};
  *ok = false;
  if (*n->domain || n->n_inputs < 2 || (!gemm && strcmp(n->op_type, "MatMul") != 0)) return NULL;
  const int x = assay_sized_input_index(l, n->inputs[0]);
  const int w = assay_sized_input_index(l, n->inputs[1]);
  *ok = x >= 0 && w >= 0 && l->in[x].type == l->in[w].type &&
        assay_type_is_kernel_float(l->in[x].type) && assay_type_is_kernel_float(l->out[0].type) &&
        (!gemm || (l->in[x].rank == 2 && l->in[w].rank == 2)) &&
        read_sides(&l->in[x], &l->in[w], &l->out[0], gemm && assay_attr_i64(n, "transA", 0),
                   gemm && assay_attr_i64(n, "transB", 0), p);
  if (!*ok) return NULL;
  const bool tf32 = l->layer->format == ASSAY_FORMAT_TF32 && l->in[x].type == ASSAY_TYPE_FLOAT;
  p->arithmetic = emu_arithmetic(gpu, tf32 ? ASSAY_FORMAT_TF32 : assay_type_format(l->in[x].type));
  p->arithmetic.split = p->arithmetic.fma;
  ASSAY_TRY(emu_operand_get(o, x, ASSAY_LAYOUT_PLAIN, &p->x));
  ASSAY_TRY(emu_operand_get(o, w, ASSAY_LAYOUT_PLAIN, &p->w));
  return gemm ? read_end(o, n, p) : NULL;
}

// ---- sums ---------------------------------------------------------------------------------------

enum { TILE = 256 };  // rows that are taken apart at once

typedef struct tile {
  const emu_product_t* p;
  emu_rows_t x, w;
  float* terms;  // room for a row, for each row of a tile and each column
  int64_t matrix;
} tile_t;

static void multiply_row(tile_t* t, int64_t first, int64_t i, float* y) {
  const emu_product_t* p = t->p;
  float* terms = t->terms + i * p->k;
  p->row(p, t->matrix, first + i, terms);
  emu_rows_set(&p->arithmetic, &t->x, i, terms);
  for (int64_t j = 0; j < p->n; j++) y[j] = 0;
  emu_rows_multiply(&p->arithmetic, &t->x, i, &t->w, y);
  for (int64_t j = 0; j < p->n && p->bias; j++)
    y[j] += p->bias[p->one_bias ? 0 : t->matrix * p->bias_step + j];
}

// Matrices of the output lie one after the other, or, where each makes some columns of every row,
// side by side.
static float* place_of(const emu_product_t* p, int64_t matrix, float* y) {
  return y + matrix * (p->y_row == p->n ? p->m * p->n : p->n);
}

static void multiply(tile_t* t, float* y) {
  const emu_product_t* p = t->p;
  for (int64_t j = 0; j < p->n; j++) {
    p->column(p, t->matrix, j, t->terms);
    emu_rows_set(&p->arithmetic, &t->w, j, t->terms);
  }
  float* to = place_of(p, t->matrix, y);
  for (int64_t first = 0; first < p->m; first += TILE) {
    const int64_t n = p->m - first < TILE ? p->m - first : TILE;
#pragma omp parallel for schedule(dynamic, 1) if (n * p->n * p->k > 100000)
    for (int64_t i = 0; i < n; i++) multiply_row(t, first, i, to + (first + i) * p->y_row);
  }
}

assay_status_t emu_product_run(const emu_product_t* p, float* y) {
  tile_t t = {.p = p};
  const int64_t rows = p->m < TILE ? p->m : TILE;
  int64_t room;
  if (!p->m || !p->n || !p->matrices) return NULL;
  if (!assay_mul_i64(rows, p->k ? p->k : 1, &room)) return assay_status_no_memory();
  assay_status_t st = emu_rows_create(&p->arithmetic, rows, p->k, &t.x);
  if (!st) st = emu_rows_create(&p->arithmetic, p->n, p->k, &t.w);
  if (!st) st = assay_new_array((size_t)room, sizeof *t.terms, &t.terms);
  for (t.matrix = 0; !st && t.matrix < p->matrices; t.matrix++) multiply(&t, y);
  emu_rows_deinit(&t.x);
  emu_rows_deinit(&t.w);
  assay_free(t.terms);
  return st;
}
