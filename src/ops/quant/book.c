// Weights that are looked up in a book.
#include "ops/quant/book.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  MAX_NUMBERS = 256,  // 8 bits
  DEPTH = 8,          // nodes between a book and the product
};

static bool is_op(const assay_node_t* n, const char* op_type) {
  return n && !*n->domain && strcmp(n->op_type, op_type) == 0;
}

static assay_tensor_t* constant_of(const assay_value_t* v) {
  if (!v) return NULL;
  if (v->constant || !is_op(v->producer, "Constant")) return v->constant;
  const assay_attr_t* a = assay_node_attr(v->producer, "value");
  return a && a->type == ASSAY_ATTR_TENSOR ? a->u.t : NULL;
}

// Codes may be made of others: two to a byte, taken apart by constants.
static bool is_of_constants(const assay_value_t* v, int depth) {
  if (!v || constant_of(v)) return true;
  if (!v->producer || !v->producer->n_inputs || depth == 0) return false;
  for (size_t i = 0; i < v->producer->n_inputs; i++)
    if (!is_of_constants(v->producer->inputs[i], depth - 1)) return false;
  return true;
}

static int64_t size_of(const assay_value_t* v) {
  const assay_tensor_t* t = constant_of(v);
  if (t) return t->size;
  int64_t dims[ASSAY_MAX_RANK];
  if (!v->type || v->type->kind != ASSAY_KIND_TENSOR || !v->type->has_shape) return 0;
  for (int i = 0; i < v->type->rank; i++)
    if (!assay_dim_value(v->type->dims[i], &dims[i])) return 0;
  return assay_dims_product(dims, 0, v->type->rank);
}

// ---- what reads it -----------------------------------------------------------------------------

static bool multiplies_by(const assay_node_t* n, size_t input) {
  static const struct {
    const char* op_type;
    unsigned inputs;
  } rows[] = {{"MatMul", 3}, {"Gemm", 3}, {"Conv", 2}, {"ConvTranspose", 2},
              {"LSTM", 6},   {"GRU", 6},  {"RNN", 6},  {"Einsum", 3}};
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
    if (is_op(n, rows[k].op_type)) return input < 3 && rows[k].inputs >> input & 1;
  return false;
}

// Whether a node scales or moves weights: all else that it reads is constant.
static bool passes_on(const assay_node_t* n, size_t input) {
  static const char* const names[] = {"Mul",     "Div",       "Add",     "Sub",
                                      "Cast",    "Reshape",   "Flatten", "Transpose",
                                      "Squeeze", "Unsqueeze", "Slice",   "Identity"};
  bool is = false;
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) is |= is_op(n, names[k]);
  for (size_t i = 0; is && i < n->n_inputs; i++)
    is = i == input || is_of_constants(n->inputs[i], DEPTH);
  return is;
}

static bool reaches_product(const assay_value_t* v, int depth) {
  const assay_graph_t* g = v->producer->graph;
  for (size_t i = 0; i < g->n_nodes; i++)
    for (size_t k = 0; k < g->nodes[i]->n_inputs; k++) {
      const assay_node_t* n = g->nodes[i];
      if (n->inputs[k] != v) continue;
      if (multiplies_by(n, k)) return true;
      if (depth && passes_on(n, k) && n->outputs[0] && reaches_product(n->outputs[0], depth - 1))
        return true;
    }
  return false;
}

// ---- which -------------------------------------------------------------------------------------

bool assay_is_book(const assay_node_t* n) {
  if (!is_op(n, "Gather") || n->n_inputs < 2 || !n->inputs[1] || !n->outputs[0]) return false;
  const assay_tensor_t* table = constant_of(n->inputs[0]);
  if (!table || table->kind != ASSAY_KIND_TENSOR || !assay_type_is_float(table->type) ||
      table->rank != 1 || table->size < 2 || table->size > MAX_NUMBERS)
    return false;
  return is_of_constants(n->inputs[1], DEPTH) && size_of(n->inputs[1]) > table->size &&
         reaches_product(n->outputs[0], DEPTH);
}

int64_t assay_book_size(const assay_node_t* n, double* out_step) {
  assay_tensor_t* table = constant_of(n->inputs[0]);
  double low = (double)INFINITY, high = -(double)INFINITY;
  for (int64_t i = 0; i < table->size; i++) {
    const double x = assay_tensor_element(table, i);
    low = fmin(low, x);
    high = fmax(high, x);
  }
  *out_step = (high - low) / (double)(table->size - 1);
  return table->size;
}

bool assay_model_has_books(const assay_model_t* m) {
  for (size_t g = 0; g < m->n_graphs; g++)
    for (size_t i = 0; i < m->graphs[g]->n_nodes; i++)
      if (assay_is_book(m->graphs[g]->nodes[i])) return true;
  return false;
}

// ---- what they may have been -------------------------------------------------------------------

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

// x moved by part of the way to the number of the book next to it: -0.5 to 0.5. Beyond its ends no
// number lies, but weights do: as far as within it.
static double moved(const double* book, int64_t n, double x, double part) {
  int64_t low = 0, high = n - 1;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (book[middle] < x)
      low = middle + 1;
    else
      high = middle;
  }
  const int64_t up = low + 1 < n ? low + 1 : low, down = low ? low - 1 : 0;
  const bool rises = part > 0 ? up > low : down == low;
  return x + part * (rises ? book[up] - book[low] : book[low] - book[down]);
}

assay_status_t assay_book_move(const assay_node_t* n, uint64_t draw, assay_tensor_t** t) {
  double book[MAX_NUMBERS];
  assay_tensor_t *table = NULL, *wide = NULL, *y = NULL;
  ASSAY_TRY(assay_tensor_widen(constant_of(n->inputs[0]), &table));
  const int64_t size = table->size;
  memcpy(book, assay_f64(table), (size_t)size * sizeof *book);
  assay_tensor_release(table);
  qsort(book, (size_t)size, sizeof *book, by_size);
  ASSAY_TRY(assay_tensor_widen(*t, &wide));
  assay_status_t st = assay_tensor_copy(wide, &y);
  assay_tensor_release(wide);
  if (st) return st;
  for (int64_t i = 0; i < y->size; i++) {
    const uint64_t hash = ((uint64_t)i + 1 + draw * 0xd1342543de82ef95U) * 0x9e3779b97f4a7c15U;
    const double part = (double)(hash >> 11) * 0x1p-53 - 0.5;
    assay_f64(y)[i] = moved(book, size, assay_f64(y)[i], part);
  }
  assay_tensor_release(*t);
  *t = y;
  return NULL;
}
