// Reductions of floats over any axes, in the layout in which the input lies; pooling over all
// places.
#include "backends/cuda/rows/reduce.h"

#include <string.h>

#include "backends/cuda/rows/reduced.h"
#include "base/alloc.h"

typedef struct kind {
  const char *op, *of, *join, *end;
} kind_t;

static const kind_t kinds[] = {
    {"ReduceMean", "itself", "sum", "mean"},
    {"ReduceSum", "itself", "sum", "itself"},
    {"ReduceProd", "itself", "product", "itself"},
    {"ReduceMax", "itself", "larger", "itself"},
    {"ReduceMin", "itself", "smaller", "itself"},
    {"ReduceL1", "magnitude", "sum", "itself"},
    {"ReduceL2", "square", "sum", "root"},
    {"ReduceSumSquare", "square", "sum", "itself"},
    {"ReduceLogSum", "itself", "sum", "logarithm"},
    {"ReduceLogSumExp", NULL, NULL, NULL},
    {"GlobalAveragePool", "itself", "sum", "mean"},
    {"GlobalMaxPool", "itself", "larger", "itself"},
    {"GlobalLpPool", NULL, NULL, NULL},
};
static const kind_t sum_of_magnitudes = {"", "magnitude", "sum", "itself"};
static const kind_t root_of_squares = {"", "square", "sum", "root"};

// Rows of more than two parts of terms are cut into these, so that more than one block has a row.
// Where neighbours in memory are of different rows, a part is shorter, as its terms are read one by
// one.
enum { PART = 1 << 14, PART_ACROSS = 1 << 9, MAX_PARTS = 256, LAUNCHES = 2, WARP = 32 };

typedef struct launch {
  cuda_kernel_t function;
  cuda_grid_t grid;
  reduce_args_t args;
} launch_t;

typedef struct reduce {
  assay_kernel_t base;
  int x, n;  // launches
  launch_t launches[LAUNCHES];
  bool quantizes, hides;  // the floats are not stored
} reduce_t;

static assay_status_t enqueue(assay_kernel_t* base, assay_queue_t* q, const assay_device_ptr_t* in,
                              const assay_device_ptr_t* out, assay_device_ptr_t scratch) {
  const reduce_t* k = (const reduce_t*)base;
  for (int i = 0; i < k->n; i++) {
    reduce_args_t a = k->launches[i].args;
    a.x = i ? scratch : in[k->x];
    a.y = i + 1 < k->n ? scratch : k->hides ? 0 : out[0];
    if (k->quantizes) a.quantizer.y = out[1];
    ASSAY_TRY(cuda_queue_launch(q, k->launches[i].function, &k->launches[i].grid, &a));
  }
  return NULL;
}

static void destroy(assay_kernel_t* base) { assay_free(base); }

// ---- rows side by side --------------------------------------------------------------------------

// How a block of reduce_across.cu has rows: BESIDE threads side by side, COLUMNS rows in each.
typedef struct across {
  int beside, columns;
} across_t;

// Blocks that read so many bytes a thread, and at least so many side by side. Rows are a multiple
// of what a thread has, as are steps between terms: all hold whole innermost dimensions.
static across_t across_of(const cuda_rows_t* r, int bytes, int vector, int line, int threads) {
  const rows_geometry_t* g = &r->geometry;
  const int64_t inner = g->n_row ? g->row[g->n_row - 1] : 1;
  across_t a = {.beside = 1, .columns = vector / bytes};
  while (inner % a.columns) a.columns /= 2;
  while (a.beside < WARP && (a.beside * a.columns * bytes < line || a.beside * r->across < threads))
    a.beside *= 2;
  return a;
}

// Whole lines where that makes enough blocks, else more blocks, which read less: sectors.
static across_t share_across(const cuda_own_t* own, const cuda_rows_t* r, int bytes, int parts) {
  const across_t large = across_of(r, bytes, 16, 128, 128);
  const int64_t blocks = r->geometry.rows / (large.columns * large.beside) * parts;
  return blocks >= 2 * own->properties.multiprocessors ? large : across_of(r, bytes, 8, 32, 64);
}

// ---- making -------------------------------------------------------------------------------------

static bool is_by_columns(const kind_t* kind, const cuda_rows_t* rows) {
  return kind->of && rows->across;
}

// The options, and the grid in x.
static void print_across(const cuda_own_t* own, assay_type_t from, const cuda_rows_t* rows,
                         cuda_grid_t* grid, assay_str_t* options) {
  const across_t a = share_across(own, rows, (int)assay_kernel_float_bytes(from), grid->blocks_y);
  assay_str_printf(options, " -DBESIDE=%d -DCOLUMNS=%d", a.beside, a.columns);
  grid->threads = a.beside * rows->across;
  grid->blocks = (rows->geometry.rows - 1) / (a.beside * a.columns) + 1;
}

// of: what is done to terms in this launch; quantizer: behind its results, NULL: none.
static assay_status_t add_launch(const assay_sized_layer_t* l, const kind_t* kind, const char* of,
                                 assay_type_t from, const cuda_rows_t* rows,
                                 const cuda_reduce_quantizer_t* quantizer, reduce_t* k) {
  launch_t* a = &k->launches[k->n++];
  assay_str_t options = {0};
  assay_str_printf(&options, "-DT=%s -DTO=%s ", cuda_type_name(from),
                   cuda_type_name(l->out[0].type));
  if (!kind->of)
    assay_str_printf(&options, "-DLOG_SUM_EXP ");
  else
    assay_str_printf(&options, "-DOF=%s -DJOIN=%s -DEND=%s %s", of, kind->join, kind->end,
                     strcmp(kind->end, "logarithm") == 0 ? "-DLOGARITHM " : "");
  cuda_rows_print(rows, &options);
  if (quantizer) {
    assay_str_append(&options, quantizer->options);
    a->args.quantizer = quantizer->args;
  }
  a->grid = rows->grid;
  const bool by_columns = is_by_columns(kind, rows);
  if (by_columns) print_across(cuda_own_of(l), from, rows, &a->grid, &options);
  const cuda_source_t source = {.file = by_columns ? "reduce_across.cu" : "reduce.cu",
                                .kernel = by_columns ? "reduce_across"
                                          : kind->of ? "reduce_floats"
                                                     : "reduce_log_sum_exp",
                                .options = assay_str_get(&options)};
  assay_status_t st = assay_str_status(&options);
  if (!st) st = cuda_function_get(cuda_own_of(l)->functions, &source, &a->function);
  assay_str_deinit(&options);
  a->args.g = rows->geometry;
  return st;
}

// The sums of parts, one row after the other.
static void lay_out_parts(const rows_geometry_t* from, int parts, cuda_row_dim_t* dims, int* n) {
  *n = 0;
  for (int i = 0; i < from->n_row; i++)
    dims[(*n)++] = (cuda_row_dim_t){.size = from->row[i], .to = from->row_to[i]};
  dims[(*n)++] = (cuda_row_dim_t){.size = parts, .is_term = true};
}

// The order of sums follows from it, so it is of the terms alone.
static int part_of(const cuda_rows_t* r) {
  const int terms = r->geometry.terms;
  int part = r->across ? PART_ACROSS : PART;
  if (terms <= 2 * part) return terms;
  while (terms / MAX_PARTS >= part) part *= 2;
  return part;
}

static assay_status_t add_launches(const assay_sized_layer_t* l, const cuda_reduced_t* r,
                                   const kind_t* kind, const cuda_reduce_quantizer_t* quantizer,
                                   reduce_t* k, bool* ok) {
  const assay_operand_t* x = &l->in[k->x];
  const cuda_own_t* own = cuda_own_of(l);
  cuda_rows_t rows, rest;
  cuda_row_dim_t dims[ROWS_RANK + 1];
  int n;
  *ok = cuda_rows_make(own, r->dims, r->rank, (int)assay_kernel_float_bytes(x->type), false, &rows);
  if (!*ok) return NULL;
  const int terms = rows.geometry.terms;
  const int part = kind->of ? part_of(&rows) : terms, parts = (terms - 1) / part + 1;
  const float count = (float)r->terms;
  rows.grid.blocks_y = parts;
  ASSAY_TRY(add_launch(l, kind, kind->of, x->type, &rows, parts == 1 ? quantizer : NULL, k));
  k->launches[0].args.part = part;
  k->launches[0].args.parts = parts;
  k->launches[0].args.count = count;
  if (parts == 1) return NULL;
  lay_out_parts(&rows.geometry, parts, dims, &n);
  *ok = cuda_rows_make(own, dims, n, sizeof(float), false, &rest) &&
        !__builtin_mul_overflow((size_t)rows.geometry.rows * (size_t)parts, sizeof(float),
                                &k->base.scratch);
  if (!*ok) return NULL;
  ASSAY_TRY(add_launch(l, kind, "itself", ASSAY_TYPE_FLOAT, &rest, quantizer, k));
  k->launches[1].args.part = parts;
  k->launches[1].args.parts = 1;
  k->launches[1].args.count = count;
  return NULL;
}

// ---- which layers -------------------------------------------------------------------------------

static const kind_t* find_kind(const assay_node_t* n) {
  for (size_t i = 0; !*n->domain && i < sizeof kinds / sizeof *kinds; i++) {
    if (strcmp(kinds[i].op, n->op_type) != 0) continue;
    if (strcmp(n->op_type, "GlobalLpPool") != 0) return &kinds[i];
    // An integer since version 2, a float before.
    const bool is_float = n->schema && n->schema->since < 2;
    const double p = is_float ? assay_attr_f64(n, "p", 2) : (double)assay_attr_i64(n, "p", 2);
    const bool one = p > 0 && p <= 1 && p >= 1, two = p <= 2 && p >= 2;
    return one ? &sum_of_magnitudes : two ? &root_of_squares : NULL;
  }
  return NULL;
}

assay_status_t cuda_reduce_make(const assay_sized_layer_t* l,
                                const cuda_reduce_quantizer_t* quantizer, assay_kernel_t** out) {
  const assay_node_t* n = l->layer->nodes[0];
  const assay_operand_t* x = n->n_inputs ? assay_sized_input(l, n->inputs[0]) : NULL;
  const kind_t* kind = find_kind(n);
  bool reduced[ASSAY_KERNEL_RANK], ok = false;
  cuda_reduced_t r;
  if (!kind || l->layer->n_nodes != 1 || l->n_out != 1 || !l->out[0].value || !x || !x->size ||
      x->rank > ASSAY_KERNEL_RANK || !assay_type_is_kernel_float(x->type) ||
      !assay_type_is_kernel_float(l->out[0].type) || !cuda_reduced_axes(l, n, x->rank, reduced) ||
      !cuda_reduced_dims(l, x, reduced, &r))
    return NULL;
  reduce_t* k = NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .enqueue = enqueue, .destroy = destroy};
  k->x = r.x;
  k->base.in[k->x] = (assay_storage_t){x->type, r.from};
  k->base.out[0] = (assay_storage_t){l->out[0].type, r.to};
  k->quantizes = quantizer != NULL;
  k->hides = quantizer && quantizer->hides;
  assay_status_t st = add_launches(l, &r, kind, quantizer, k, &ok);
  if (st || !ok) return destroy(&k->base), st;
  *out = &k->base;
  return NULL;
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  return cuda_reduce_make(l, NULL, out);
}

const assay_tactic_t cuda_tactic_reduce = {
    .name = "reduce",
    .source = "assay",
    .make = make,
    .layouts = ASSAY_LAYOUT_FOLLOWS_BITS,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .by_definition = true,
                 .function_ulps = 2},
};
