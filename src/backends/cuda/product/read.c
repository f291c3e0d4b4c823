// What a layer that is MatMul or Gemm multiplies; Conv and ConvTranspose: read_conv.c.
#include <string.h>

#include "backends/cuda/product/constants.h"
#include "backends/cuda/product/halves.h"
#include "backends/cuda/product/read_conv.h"

// An operand as matrices.
typedef struct side {
  int rank;
  int64_t dims[ASSAY_KERNEL_RANK];
} side_t;

// A vector is a row on the left, a column on the right. Source: ONNX MatMul-13, as numpy.matmul.
static side_t side_of(const assay_operand_t* o, bool right) {
  side_t s = {.rank = o->rank};
  memcpy(s.dims, o->dims, sizeof s.dims);
  if (o->rank != 1) return s;
  s.rank = 2;
  s.dims[right] = 1;
  s.dims[!right] = o->dims[0];
  return s;
}

// Dimension i of a side, with ones in front.
static int64_t dim_of(const side_t* o, int rank, int i) {
  return i < rank - o->rank ? 1 : o->dims[i - (rank - o->rank)];
}

// The dimensions of the batch; false: they do not fit together, or are too many.
static bool read_batch(const side_t* x, const side_t* w, int rank, product_args_t* a) {
  int64_t x_step = a->m * a->k, w_step = a->k * a->n, y_step = a->m * a->n;
  if (rank - 2 > PRODUCT_DIMS) return false;
  a->n_dims = rank - 2;
  a->matrices = 1;
  for (int i = rank - 3; i >= 0; i--) {
    const int64_t of_x = dim_of(x, rank, i), of_w = dim_of(w, rank, i);
    if (of_x != of_w && of_x != 1 && of_w != 1) return false;
    a->dims[i] = of_x > of_w ? of_x : of_w;
    a->x_step[i] = of_x == 1 ? 0 : x_step;
    a->w_step[i] = of_w == 1 ? 0 : w_step;
    a->y_step[i] = y_step;
    x_step *= of_x;
    w_step *= of_w;
    y_step *= a->dims[i];
    if (!assay_mul_i64(a->matrices, a->dims[i], &a->matrices)) return false;
  }
  return true;
}

// One right side for all: rows of the batch are rows of one product.
static void join_batch(product_args_t* a) {
  for (int i = 0; i < a->n_dims; i++)
    if (a->dims[i] > 1 && (a->w_step[i] || !a->x_step[i])) return;
  a->m *= a->matrices;
  a->matrices = 1;
  a->n_dims = 0;
}

static bool read_sides(const assay_sized_layer_t* l, cuda_product_t* p, bool x_turned,
                       bool w_turned) {
  const side_t x = side_of(&l->in[p->x], false), w = side_of(&l->in[p->w], true);
  product_args_t* a = &p->args;
  const int rank = x.rank > w.rank ? x.rank : w.rank;
  if (x.rank < 2 || w.rank < 2) return false;
  a->m = dim_of(&x, rank, x_turned ? rank - 1 : rank - 2);
  a->k = dim_of(&x, rank, x_turned ? rank - 2 : rank - 1);
  a->n = dim_of(&w, rank, w_turned ? rank - 2 : rank - 1);
  if (a->k != dim_of(&w, rank, w_turned ? rank - 1 : rank - 2) || !read_batch(&x, &w, rank, a))
    return false;
  a->x_row = x_turned ? 1 : a->k;
  a->x_k = x_turned ? a->m : 1;
  a->w_k = w_turned ? 1 : a->n;
  a->w_column = w_turned ? a->k : 1;
  a->y_row = a->n;
  int64_t size;
  if (!assay_mul_i64(a->m * a->n, a->matrices, &size) || size != cuda_product_result(l)->size)
    return false;
  if (!x_turned) join_batch(a);
  return true;
}

static assay_status_t take_bias(const assay_sized_layer_t* l, const assay_operand_t* bias,
                                cuda_product_t* p) {
  p->bias = bias;
  return cuda_bias_get(l, bias, p->args.n, &p->args.bias);
}

// A constant with an element a column, or one for all.
static bool is_row(const assay_operand_t* c, int64_t n) {
  return c && c->constant && (c->size == 1 || (c->size == n && c->dims[c->rank - 1] == n));
}

// An Add of such a constant behind a MatMul is its bias.
static assay_status_t read_addend(const assay_sized_layer_t* l, cuda_product_t* p) {
  const assay_node_t* n = l->layer->n_nodes > 1 ? l->layer->nodes[1] : NULL;
  const assay_value_t* before = l->layer->nodes[0]->outputs[0];
  if (!n || *n->domain || strcmp(n->op_type, "Add") != 0 || n->n_inputs != 2 ||
      (n->inputs[0] == before) == (n->inputs[1] == before))
    return NULL;
  const assay_operand_t* c = assay_sized_input(l, n->inputs[n->inputs[0] == before]);
  if (!is_row(c, p->args.n)) return NULL;
  p->done = 2;
  return take_bias(l, c, p);
}

// Gemm's factors and its third input: a constant element a column, or one for all, is added as a
// bias; what is more is a part of the program.
static assay_status_t read_end(const assay_sized_layer_t* l, const assay_node_t* n,
                               cuda_product_t* p) {
  const bool adds = n->n_inputs > 2 && n->inputs[2];
  const assay_operand_t* c = adds ? assay_sized_input(l, n->inputs[2]) : NULL;
  const bool row = is_row(c, p->args.n);
  p->ends =
      assay_attr_f64(n, "alpha", 1) != 1 || (adds && (assay_attr_f64(n, "beta", 1) != 1 || !row));
  return row && !p->ends ? take_bias(l, c, p) : NULL;
}

static assay_status_t read_product(const assay_sized_layer_t* l, cuda_product_t* p, bool* ok) {
  const assay_node_t* n = l->layer->nodes[0];
  const bool gemm = strcmp(n->op_type, "Gemm") == 0;
  p->w = assay_sized_input_index(l, n->inputs[1]);
  *ok = p->w >= 0 && l->in[p->w].type == p->in &&
        (!gemm || (l->in[p->x].rank == 2 && l->in[p->w].rank == 2)) &&
        read_sides(l, p, gemm && assay_attr_i64(n, "transA", 0) != 0,
                   gemm && assay_attr_i64(n, "transB", 0) != 0);
  if (!*ok) return NULL;
  return gemm ? read_end(l, n, p) : read_addend(l, p);
}

static assay_status_t read(const assay_sized_layer_t* l, bool direct, cuda_product_t* p, bool* ok) {
  const assay_node_t* n = l->layer->nodes[0];
  const bool product = strcmp(n->op_type, "MatMul") == 0 || strcmp(n->op_type, "Gemm") == 0;
  const bool conv = strcmp(n->op_type, "Conv") == 0 || strcmp(n->op_type, "ConvTranspose") == 0;
  *p = (cuda_product_t){.x = -1, .w = -1, .done = 1, .halves = cuda_halves_input(l)};
  *ok = false;
  if (*n->domain || !(product || conv) || (direct && product) || l->layer->int8 || l->n_out != 1 ||
      !l->out[0].value || !l->out[0].size || n->n_inputs < 2)
    return NULL;
  p->x = assay_sized_input_index(l, n->inputs[0]);
  if (p->x < 0 || !l->in[p->x].size) return NULL;
  p->in = l->in[p->x].type;
  p->out = l->out[0].type;
  p->tf32 = l->layer->format == ASSAY_FORMAT_TF32;
  if (!cuda_type_name(p->in) || !cuda_type_name(p->out)) return NULL;
  *ok = true;
  ASSAY_TRY(product ? read_product(l, p, ok) : cuda_conv_read(l, direct, p, ok));
  return *ok && p->halves >= 0 ? cuda_halves_take(l, direct, p, ok) : NULL;
}

// Whether a program does what comes after the product.
static assay_status_t check_program(const assay_sized_layer_t* l, const cuda_product_t* p,
                                    bool* ok) {
  cuda_program_t* program = NULL;
  ASSAY_TRY(cuda_product_program(l, p, &program, ok));
  cuda_program_destroy(program);
  return NULL;
}

// A result that a caller gets as float32 is stored so at once, rounded as the layer's are: it would
// be read and written again for that.
static void store_for_caller(const assay_sized_layer_t* l, cuda_product_t* p) {
  const assay_value_t* y = l->out[0].value;
  if (p->ends || (size_t)p->done != l->layer->n_nodes || p->layout != ASSAY_LAYOUT_PLAIN ||
      p->out == ASSAY_TYPE_FLOAT || !y->is_output || !y->type || y->type->elem != ASSAY_TYPE_FLOAT)
    return;
  p->through = p->out;
  p->out = ASSAY_TYPE_FLOAT;
}

assay_status_t cuda_product_read(const assay_sized_layer_t* l, cuda_product_t* p, bool* ok) {
  ASSAY_TRY(read(l, false, p, ok));
  if (!*ok) return NULL;
  ASSAY_TRY(check_program(l, p, ok));
  if (*ok) store_for_caller(l, p);
  return NULL;
}

assay_status_t cuda_product_read_direct(const assay_sized_layer_t* l, cuda_product_t* p, bool* ok) {
  return read(l, true, p, ok);
}
