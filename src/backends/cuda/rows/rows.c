// Softmax and normalizations, in the layout in which the input lies.
#include "backends/cuda/rows/rows.h"

#include <string.h>

#include "backends/constants.h"
#include "backends/cuda/bytes.h"
#include "backends/cuda/rows/softmax.h"
#include "backends/layers/moved_rows.h"
#include "base/alloc.h"

enum { NO_OPERAND = -1 };

typedef cuda_rows_kernel_t rows_t;

static assay_device_ptr_t at(const assay_device_ptr_t* p, int i) {
  return i == NO_OPERAND ? 0 : p[i];
}

void cuda_rows_kernel_fill(const rows_t* k, const assay_device_ptr_t* in,
                           const assay_device_ptr_t* out, rows_args_t* args) {
  *args = k->args;
  args->x = at(in, k->x);
  args->y = out[0];
  args->skip = at(in, k->skip);
  args->skip_bias = at(in, k->skip_bias);
  args->scale = at(in, k->scale);
  args->bias = at(in, k->bias);
  args->mean = at(out, k->mean);
  args->inverse = at(out, k->inverse);
  args->sum = at(out, k->sum);
}

static assay_status_t enqueue(assay_kernel_t* base, assay_queue_t* q, const assay_device_ptr_t* in,
                              const assay_device_ptr_t* out, assay_device_ptr_t scratch) {
  const rows_t* k = (const rows_t*)base;
  rows_args_t a;
  (void)scratch;
  cuda_rows_kernel_fill(k, in, out, &a);
  return cuda_queue_launch(q, k->function, &k->rows.grid, &a);
}

void cuda_rows_kernel_close(rows_t* k) { assay_str_deinit(&k->options); }

static void destroy(assay_kernel_t* base) {
  cuda_rows_kernel_close((rows_t*)base);
  assay_free(base);
}

// ---- operands -----------------------------------------------------------------------------------

// Input i of a node, read as it is; NO_OPERAND: it is left out.
static int input(const assay_sized_layer_t* l, const assay_node_t* n, size_t i) {
  return i < n->n_inputs && n->inputs[i] ? assay_sized_input_index(l, n->inputs[i]) : NO_OPERAND;
}

static int output(const assay_sized_layer_t* l, size_t i) {
  return i && i < l->n_out && l->out[i].value ? (int)i : NO_OPERAND;
}

// Whether an operand is what kernels read as a plain array of this type; those left out are.
static bool reads(const assay_sized_layer_t* l, rows_t* k, int i, assay_type_t type) {
  if (i == NO_OPERAND) return true;
  if (l->in[i].type != type || i == k->x) return false;
  k->base.in[i] = (assay_storage_t){type, ASSAY_LAYOUT_PLAIN};
  return true;
}

// ---- softmax and norms along an axis ------------------------------------------------------------

// The dimensions, with those that are marked as terms.
static bool use_dims(const assay_sized_layer_t* l, const assay_operand_t* x, const bool* is_term,
                     assay_layout_t layout, rows_t* k) {
  int order[ASSAY_KERNEL_RANK];
  cuda_row_dim_t dims[ASSAY_KERNEL_RANK];
  cuda_memory_order(x->rank, layout, order);
  for (int i = 0; i < x->rank; i++)
    dims[i] = (cuda_row_dim_t){.size = x->dims[order[i]], .is_term = is_term[order[i]]};
  k->base.in[k->x].layout = k->base.out[0].layout = layout;
  return cuda_rows_make(cuda_own_of(l), dims, x->rank, (int)assay_kernel_float_bytes(x->type), true,
                        &k->rows);
}

static assay_layout_t layout_of(const assay_operand_t* x) {
  return assay_operand_is_channels_last(x) ? ASSAY_LAYOUT_CHANNELS_LAST : ASSAY_LAYOUT_PLAIN;
}

static bool read_softmax(const assay_sized_layer_t* l, const assay_node_t* n,
                         const assay_operand_t* x, rows_t* k) {
  const bool log = strcmp(n->op_type, "LogSoftmax") == 0;
  bool is_term[ASSAY_KERNEL_RANK] = {false};
  if (!n->schema) return false;
  // Before opset 13 a row is everything from the axis on.
  const bool flat = n->schema->since < 13;
  const int axis = assay_known_axis(assay_attr_i64(n, "axis", flat ? 1 : -1), x->rank);
  if (axis < 0) return false;
  for (int i = axis; i < (flat ? x->rank : axis + 1); i++) is_term[i] = true;
  k->kernel = "rows_softmax";
  assay_str_printf(&k->options, "-DSOFTMAX %s", log ? "-DLOGARITHM " : "");
  return use_dims(l, x, is_term, layout_of(x), k);
}

static bool read_lp(const assay_sized_layer_t* l, const assay_node_t* n, const assay_operand_t* x,
                    rows_t* k) {
  const int64_t p = assay_attr_i64(n, "p", 2);
  const int axis = assay_known_axis(assay_attr_i64(n, "axis", -1), x->rank);
  bool is_term[ASSAY_KERNEL_RANK] = {false};
  if (axis < 0 || (p != 1 && p != 2)) return false;
  is_term[axis] = true;
  k->kernel = "rows_divide_by_norm";
  if (p == 2) assay_str_printf(&k->options, "-DSQUARES ");
  return use_dims(l, x, is_term, layout_of(x), k);
}

// (x - mean) / (deviation + 1e-9): the number is in the operator's body.
static bool read_mean_variance(const assay_sized_layer_t* l, const assay_node_t* n,
                               const assay_operand_t* x, rows_t* k) {
  static const int64_t standard[] = {0, 2, 3};
  size_t count = 0;
  const int64_t* axes = assay_attr_ints(n, "axes", &count);
  bool is_term[ASSAY_KERNEL_RANK] = {false};
  if (!assay_attr_has(n, "axes")) axes = standard, count = 3;
  for (size_t i = 0; i < count; i++) {
    const int d = assay_known_axis(axes[i], x->rank);
    if (d < 0) return false;
    is_term[d] = true;
  }
  k->args.epsilon = 1e-9F;
  k->kernel = "rows_normalize";
  assay_str_printf(&k->options, "-DNORMALIZE -DCENTERED -DDEVIATION ");
  return use_dims(l, x, is_term, layout_of(x), k);
}

// ---- normalizations with parameters -------------------------------------------------------------

typedef enum over { OVER_LAST, OVER_CHANNELS, OVER_GROUPS, OVER_SKIP } over_t;

enum { NONE = 0 };  // no such input or output

typedef struct norm {
  const char *domain, *op;
  over_t over;
  bool centered;
  double epsilon;             // where the node has none
  size_t scale, bias;         // inputs
  size_t skip_bias;           // OVER_SKIP: skip is input 1
  size_t mean, inverse, sum;  // outputs
} norm_t;

static const norm_t norms[] = {
    {"", "LayerNormalization", OVER_LAST, true, 1e-5, 1, 2, NONE, 1, 2, NONE},
    {"", "RMSNormalization", OVER_LAST, false, 1e-5, 1, NONE, NONE, NONE, NONE, NONE},
    {"", "SimplifiedLayerNormalization", OVER_LAST, false, 1e-5, 1, NONE, NONE, NONE, 1, NONE},
    {"", "InstanceNormalization", OVER_CHANNELS, true, 1e-5, 1, 2, NONE, NONE, NONE, NONE},
    {"", "GroupNormalization", OVER_GROUPS, true, 1e-5, 1, 2, NONE, NONE, NONE, NONE},
    {"com.microsoft", "SkipLayerNormalization", OVER_SKIP, true, 1e-12, 2, 3, 4, 1, 2, 3},
    {"com.microsoft", "SkipSimplifiedLayerNormalization", OVER_SKIP, false, 1e-12, 2, NONE, 3, 1, 2,
     3},
};

static const norm_t* find_norm(const assay_node_t* n) {
  for (size_t i = 0; i < sizeof norms / sizeof *norms; i++)
    if (strcmp(norms[i].op, n->op_type) == 0 && strcmp(norms[i].domain, n->domain) == 0)
      return &norms[i];
  return NULL;
}

// [N, G, C / G, places] or, channels last, [N, places, G, C / G]: G groups, one row each.
static bool use_groups(const assay_sized_layer_t* l, const assay_node_t* n, const norm_t* norm,
                       const assay_operand_t* x, rows_t* k, int64_t* period) {
  const int64_t channels = x->rank >= 3 ? x->dims[1] : 0;
  const int64_t groups = norm->over == OVER_GROUPS ? assay_attr_i64(n, "num_groups", 0) : channels;
  const assay_layout_t layout = layout_of(x);
  if (!channels || groups < 1 || channels % groups || channels > INT32_MAX) return false;
  const cuda_row_dim_t samples = {.size = x->dims[0]}, rows = {.size = groups};
  const cuda_row_dim_t within = {.size = channels / groups, .is_term = true};
  const cuda_row_dim_t places = {.size = assay_dims_product(x->dims, 2, x->rank), .is_term = true};
  const bool last = layout == ASSAY_LAYOUT_CHANNELS_LAST;
  const cuda_row_dim_t dims[] = {samples, last ? places : rows, last ? rows : within,
                                 last ? within : places};
  k->args.groups = groups;
  k->args.channels = (int32_t)(channels / groups);
  k->args.run = (int32_t)(places.size < INT32_MAX ? places.size : INT32_MAX);
  k->base.in[k->x].layout = k->base.out[0].layout = layout;
  // Up to opset 20 GroupNormalization had parameters for groups.
  *period = norm->over == OVER_GROUPS && n->schema && n->schema->since < 21 ? groups : channels;
  assay_str_printf(&k->options, "-DAFFINE=%d ", last ? 2 : 1);
  return cuda_rows_make(cuda_own_of(l), dims, 4, (int)assay_kernel_float_bytes(x->type), true,
                        &k->rows);
}

static bool use_last_axes(const assay_sized_layer_t* l, const assay_node_t* n, const norm_t* norm,
                          const assay_operand_t* x, rows_t* k, int64_t* period) {
  const int64_t given = norm->over == OVER_SKIP ? -1 : assay_attr_i64(n, "axis", -1);
  const int axis = assay_known_axis(given, x->rank);
  bool is_term[ASSAY_KERNEL_RANK] = {false};
  if (axis < 0) return false;
  for (int i = axis; i < x->rank; i++) is_term[i] = true;
  *period = assay_dims_product(x->dims, axis, x->rank);
  k->args.groups = k->args.channels = k->args.run = 1;
  k->along_last = true;
  assay_str_printf(&k->options, "-DAFFINE=0 ");
  return use_dims(l, x, is_term, ASSAY_LAYOUT_PLAIN, k);
}

// What is added before: as large as x, or as its last dimensions.
static bool use_skip(const assay_sized_layer_t* l, const assay_node_t* n, const norm_t* norm,
                     const assay_operand_t* x, rows_t* k) {
  k->skip = input(l, n, 1);
  k->skip_bias = input(l, n, norm->skip_bias);
  if (k->skip == NO_OPERAND) return false;
  const assay_operand_t* s = &l->in[k->skip];
  const int64_t size = x->dims[x->rank - 1];
  if (k->skip == k->x || s->rank > x->rank || s->rank < 1 || !s->size || s->size % size)
    return false;
  bool whole = true;  // as far as it reaches
  int64_t left = s->size;
  for (int i = 1; i <= s->rank && left > 1; i++) {
    whole = whole && s->dims[s->rank - i] == x->dims[x->rank - i];
    left /= s->dims[s->rank - i];
  }
  k->args.skip_rows = s->size / size;
  k->sum = output(l, norm->sum);
  assay_str_printf(&k->options, "-DSKIP ");
  return whole && reads(l, k, k->skip, x->type) && reads(l, k, k->skip_bias, x->type) &&
         (k->skip_bias == NO_OPERAND || l->in[k->skip_bias].size == size);
}

// Scale and bias: one a channel, or one for all, or one for several channels.
static bool use_parameters(const assay_sized_layer_t* l, const assay_node_t* n, const norm_t* norm,
                           int64_t period, bool by_channel, rows_t* k) {
  const int64_t all = by_channel ? k->args.groups * k->args.channels : period;
  k->scale = input(l, n, norm->scale);
  k->bias = norm->bias ? input(l, n, norm->bias) : NO_OPERAND;
  if (k->scale == NO_OPERAND) return false;
  const assay_operand_t *s = &l->in[k->scale], *b = k->bias < 0 ? NULL : &l->in[k->bias];
  const bool one = !by_channel;
  if (!assay_type_is_kernel_float(s->type) || !reads(l, k, k->scale, s->type) ||
      !reads(l, k, k->bias, s->type) || (s->size != period && !(one && s->size == 1)) ||
      (b && b->size != period && !(one && b->size == 1)))
    return false;
  k->args.shared = (int32_t)(all / period);
  assay_str_printf(&k->options, "-DS=%s -DSCALE=%d -DBIAS=%d -DFIXED=%d ", cuda_type_name(s->type),
                   s->size == 1 ? 2 : 1,
                   !b             ? 0
                   : b->size == 1 ? 2
                                  : 1,
                   s->constant && (!b || b->constant));
  return true;
}

// Mean and 1 / deviation of rows, where they are outputs.
static bool use_moments(const assay_sized_layer_t* l, const norm_t* norm, rows_t* k) {
  k->mean = output(l, norm->mean);
  k->inverse = output(l, norm->inverse);
  const int one = k->mean == NO_OPERAND ? k->inverse : k->mean;
  if (one == NO_OPERAND) return true;
  const assay_type_t type = l->out[one].type;
  assay_str_printf(&k->options, "-DM=%s ", cuda_type_name(type) ? cuda_type_name(type) : "");
  if (k->mean != NO_OPERAND) k->base.out[k->mean].type = type;
  if (k->inverse != NO_OPERAND) k->base.out[k->inverse].type = type;
  return cuda_type_name(type) && (k->inverse == NO_OPERAND || l->out[k->inverse].type == type);
}

static bool read_norm(const assay_sized_layer_t* l, const assay_node_t* n, const assay_operand_t* x,
                      const norm_t* norm, rows_t* k) {
  const bool by_channel = norm->over == OVER_CHANNELS || norm->over == OVER_GROUPS;
  int64_t period = 1;
  if (assay_attr_i64(n, "stash_type", ASSAY_TYPE_FLOAT) != ASSAY_TYPE_FLOAT) return false;
  k->args.epsilon = (float)assay_attr_f64(n, "epsilon", norm->epsilon);
  k->kernel = "rows_normalize";
  k->centered = norm->centered;
  assay_str_printf(&k->options, "-DNORMALIZE %s", norm->centered ? "-DCENTERED " : "");
  return (by_channel ? use_groups(l, n, norm, x, k, &period)
                     : use_last_axes(l, n, norm, x, k, &period)) &&
         (norm->over != OVER_SKIP || use_skip(l, n, norm, x, k)) &&
         use_parameters(l, n, norm, period, by_channel, k) && use_moments(l, norm, k);
}

// ---- which layers -------------------------------------------------------------------------------

static bool read_node(const assay_sized_layer_t* l, const assay_node_t* n, const assay_operand_t* x,
                      rows_t* k) {
  const norm_t* norm = find_norm(n);
  if (norm) return read_norm(l, n, x, norm, k);
  if (*n->domain) return false;
  if (strcmp(n->op_type, "Softmax") == 0 || strcmp(n->op_type, "LogSoftmax") == 0)
    return read_softmax(l, n, x, k);
  if (strcmp(n->op_type, "LpNormalization") == 0) return read_lp(l, n, x, k);
  return strcmp(n->op_type, "MeanVarianceNormalization") == 0 && read_mean_variance(l, n, x, k);
}

// Outputs are all written.
static bool writes_all(const assay_sized_layer_t* l, rows_t* k) {
  for (int i = 1; i < (int)l->n_out; i++)
    if (l->out[i].value && i != k->mean && i != k->inverse && i != k->sum) return false;
  if (k->sum == NO_OPERAND) return true;
  k->base.out[k->sum] = k->base.out[0];
  return l->out[k->sum].type == k->base.out[0].type;
}

// The layer gives its rows other places.
static assay_status_t read_moves(const assay_sized_layer_t* l, const assay_operand_t* x, rows_t* k,
                                 bool* ok) {
  moved_table_t to;
  const norm_t* norm = find_norm(l->layer->nodes[0]);
  *ok = norm && norm->over == OVER_LAST;
  if (!*ok) return NULL;
  ASSAY_TRY(layer_moved_places(l, x, k->rows.geometry.terms, &to));
  *ok = to.rows;
  if (!to.rows) return NULL;
  const size_t bytes = (size_t)to.period * sizeof *to.rows;
  assay_status_t st = cuda_bytes_share(l, "rows", to.rows, bytes, &k->args.places);
  k->args.period = (int32_t)to.period;
  assay_free(to.rows);
  assay_str_append(&k->options, "-DMOVED ");
  k->base.in_place = -1;
  return st;
}

assay_status_t cuda_rows_kernel_compile(const assay_sized_layer_t* l, rows_t* k) {
  assay_str_printf(&k->options, "-DT=%s ", cuda_type_name(l->in[k->x].type));
  cuda_rows_print(&k->rows, &k->options);
  ASSAY_TRY(assay_str_status(&k->options));
  const cuda_source_t source = {
      .file = "rows.cu", .kernel = k->kernel, .options = assay_str_get(&k->options)};
  ASSAY_TRY(cuda_function_get(cuda_own_of(l)->functions, &source, &k->function));
  k->args.g = k->rows.geometry;
  return NULL;
}

assay_status_t cuda_rows_kernel_open(const assay_sized_layer_t* l, rows_t* k, bool* ok) {
  const assay_node_t* n = l->layer->nodes[0];
  const assay_operand_t* x = n->n_inputs ? assay_sized_input(l, n->inputs[0]) : NULL;
  *k = (rows_t){0};
  *ok = x && l->n_out && l->out[0].value && x->size && assay_type_is_kernel_float(x->type) &&
        x->type == l->out[0].type && x->size == l->out[0].size && x->rank <= ASSAY_KERNEL_RANK;
  if (!*ok) return NULL;
  k->x = (int)(x - l->in);
  k->skip = k->skip_bias = k->scale = k->bias = k->mean = k->inverse = k->sum = NO_OPERAND;
  k->base = (assay_kernel_t){.in_place = k->x, .enqueue = enqueue, .destroy = destroy};
  k->base.in[k->x] = k->base.out[0] = (assay_storage_t){x->type, ASSAY_LAYOUT_PLAIN};
  *ok = read_node(l, n, x, k) && writes_all(l, k);
  return *ok && l->layer->n_nodes > 1 ? read_moves(l, x, k, ok) : NULL;
}

bool cuda_softmax_rows_of(const assay_kernel_t* base, cuda_softmax_rows_t* out) {
  if (base->enqueue != enqueue) return false;
  const rows_t* k = (const rows_t*)base;
  *out = (cuda_softmax_rows_t){k->rows.geometry.terms, k->rows.span, k->rows.keep, k->rows.vector};
  return strcmp(k->kernel, "rows_softmax") == 0 && !k->rows.across && k->rows.keep &&
         k->rows.dims == 1;
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  rows_t* k = NULL;
  bool ok;
  ASSAY_TRY(ASSAY_NEW(&k));
  assay_status_t st = cuda_rows_kernel_open(l, k, &ok);
  if (!st && ok) st = cuda_rows_kernel_compile(l, k);
  if (st || !ok) return destroy(&k->base), st;
  *out = &k->base;
  return NULL;
}

const assay_tactic_t cuda_tactic_rows = {
    .name = "rows",
    .source = "assay",
    .make = make,
    .layouts = ASSAY_LAYOUT_FOLLOWS_BITS,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .by_definition = true,
                 .function_ulps = 4},
};
