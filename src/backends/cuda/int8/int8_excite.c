// The two products of a squeeze-excite block on 8-bit integers, and what the second one's results
// scale, in one launch (kernels/int8/int8_excite.cu). They are layers of their own, whose bits it
// has.
#include <math.h>
#include <string.h>

#include "backends/cuda/int8/product.h"
#include "backends/cuda/kernels/int8_excite_args.h"
#include "base/alloc.h"

enum { NONE = -1, WARP = 32, WARPS = 8, CHUNK = 64, TILE = 16, MAX_PARTS = 64 };
// Of the first product, all of whose weights each block reads: beyond these two launches are
// faster.
enum { MAX_READ_CLOCKS = 6000, BYTES_A_CLOCK = 48 };
// Of the driver, for arguments of a kernel.
_Static_assert(sizeof(int8_excite_args_t) <= 4096, "arguments of a kernel");

typedef struct int8_excite {
  assay_kernel_t base;
  int squeezed, x;  // inputs; x NONE: nothing is scaled
  cuda_int8_end_t ends[3];
  int8_excite_args_t args;
  cuda_kernel_t kernel;
  cuda_grid_t grid;
} int8_excite_t;

static assay_status_t enqueue(assay_kernel_t* base, assay_queue_t* q, const assay_device_ptr_t* in,
                              const assay_device_ptr_t* out, assay_device_ptr_t scratch) {
  const int8_excite_t* k = (const int8_excite_t*)base;
  int8_excite_args_t args = k->args;
  (void)scratch;
  args.squeezed = in[k->squeezed];
  if (k->x != NONE) args.x = in[k->x];
  args.y = out[0];
  return cuda_queue_launch(q, k->kernel, &k->grid, &args);
}

static void destroy(assay_kernel_t* base) {
  int8_excite_t* k = (int8_excite_t*)base;
  for (int i = 0; i < 3; i++) cuda_int8_end_close(&k->ends[i]);
  assay_free(k);
}

// ---- which layers -------------------------------------------------------------------------------

// What is multiplied by the results of a product, and quantized.
static bool is_scaled(const assay_layer_t* l) {
  const assay_int8_t* q = l->int8;
  return q && !q->anchor && !q->scales_x && q->simple && q->quantizes && q->n_sources == 2 &&
         q->other == 1 && q->operation == ASSAY_INT8_MUL;
}

// What becomes of a sum follows from it and from constants.
static bool is_excite_product(const assay_layer_t* l) {
  const assay_int8_t* q = l->int8;
  if (!q || !q->anchor || q->sources[0].kind != ASSAY_INT8_RESULT) return false;
  for (size_t i = 1; i < q->n_sources; i++)
    if (q->sources[i].kind != ASSAY_INT8_SCALAR) return false;
  return true;
}

static bool ends(const assay_layer_t* l) { return is_scaled(l) || is_excite_product(l); }

// The layers, by their places among those that are joined.
typedef struct found {
  int scaled, second, first;  // scaled NONE: it is not there
  int x, gate;                // of what is scaled: inputs
  cuda_int8_t products[2];    // the first one, the second one
  bool open[2];
} found_t;

// Rows of bytes, one after the other, by constant weights.
static bool has_rows(const cuda_int8_t* p) {
  const product_args_t* a = &p->p.args;
  bool rows = a->matrices == 1 && a->n <= INT32_MAX / CHUNK && a->k <= INT32_MAX / CHUNK &&
              !p->p.gather.args.rows;
  if (p->p.left == CUDA_LEFT_TRANSPOSED) return false;
  if (p->p.left == CUDA_LEFT_MATRIX) return rows && a->x_row == a->k && a->x_k == 1;
  for (int i = 0; i < PRODUCT_AXES; i++) rows = rows && cuda_axis_is_one(&a->axes[i]);
  return rows && a->channels == a->k;
}

static bool is_small(const assay_operand_t* y) {
  for (int i = 2; i < y->rank; i++)
    if (y->dims[i] != 1) return false;
  return y->rank >= 2;
}

static assay_status_t open_product(const assay_sized_layer_t* l, found_t* f, int i, bool* ok) {
  cuda_int8_t* p = &f->products[i];
  *ok = l->n_out == 1 && is_excite_product(l->layer) && is_small(&l->out[0]);
  if (!*ok) return NULL;
  ASSAY_TRY(cuda_int8_open(l, p, ok));
  f->open[i] = *ok;
  *ok = *ok && p->job.weights && p->job.zero_input < 0 && p->job.q == l->layer->int8 && has_rows(p);
  return NULL;
}

// Which input scales the other one: a number for each channel of a sample.
static bool find_gate(const assay_joint_layers_t* j, found_t* f) {
  const assay_sized_layer_t* l = j->layers[0];
  const assay_int8_t* q = l->layer->int8;
  int8_stream_t streams[2];
  for (int i = 0; i < 2; i++) {
    const assay_operand_t* o = assay_sized_input(l, q->sources[i].value);
    if (!assay_int8_reads_value(&q->sources[i]) || !o ||
        !int8_stream_find(o, &l->out[0], ASSAY_LAYOUT_CHANNELS_LAST, &streams[i]))
      return false;
    streams[i].input = (int)(o - l->in);
  }
  const int gate = streams[0].whole;
  if (!streams[!gate].whole || streams[gate].whole || q->sources[gate].kind != ASSAY_INT8_REAL)
    return false;
  f->gate = streams[gate].input;
  f->x = streams[!gate].input;
  const assay_operand_t *x = &l->in[f->x], *g = &l->in[f->gate];
  return x->rank >= 3 && g->rank == x->rank && g->dims[0] == x->dims[0] &&
         g->dims[1] == x->dims[1] && is_small(g) &&
         j->kernels[0]->in[f->x].layout == ASSAY_LAYOUT_CHANNELS_LAST &&
         j->kernels[0]->out[0].layout == ASSAY_LAYOUT_CHANNELS_LAST;
}

static assay_status_t add(assay_joint_layers_t* j, int reader, const assay_value_t* v, int* at,
                          bool* ok) {
  *at = j->n;
  return j->add(j, reader, v, ok);
}

static assay_status_t find(assay_joint_layers_t* j, found_t* f, bool* ok) {
  *f = (found_t){.scaled = NONE};
  *ok = true;
  if (is_scaled(j->layers[0]->layer)) {
    f->scaled = 0;
    *ok = find_gate(j, f);
    if (*ok) ASSAY_TRY(add(j, 0, j->layers[0]->in[f->gate].value, &f->second, ok));
  }
  if (*ok) ASSAY_TRY(open_product(j->layers[f->second], f, 1, ok));
  if (!*ok) return NULL;
  ASSAY_TRY(add(j, f->second, f->products[1].job.x->value, &f->first, ok));
  if (*ok) ASSAY_TRY(open_product(j->layers[f->first], f, 0, ok));
  const product_args_t *a = &f->products[0].p.args, *b = &f->products[1].p.args;
  *ok = *ok && f->products[0].job.q->quantizes && a->m == b->m && a->n == b->k &&
        (f->scaled == NONE || !f->products[1].job.q->quantizes);
  return NULL;
}

// ---- numbers ------------------------------------------------------------------------------------

static assay_status_t set_product(const assay_joint_layers_t* j, found_t* f, int i,
                                  int8_excite_t* k, bool* ok) {
  const assay_sized_layer_t* l = j->layers[i ? f->second : f->first];
  const cuda_int8_t* p = &f->products[i];
  int8_excite_product_t* to = i ? &k->args.second : &k->args.first;
  int8_product_args_t args = {.product = p->p.args};
  ASSAY_TRY(cuda_int8_bring_bytes(p, &args));
  *ok = !args.zeros;
  if (*ok)
    ASSAY_TRY(cuda_int8_end_open(l, p->job.q, false, p->p.args.n, p->p.layout, &k->ends[i], ok));
  to->w = args.product.w;
  to->start = args.start;
  to->terms = (int32_t)p->p.args.k;
  to->columns = (int32_t)p->p.args.n;
  to->column_bytes = (int32_t)args.product.w_column;
  to->min = p->job.q->type == ASSAY_TYPE_INT8 ? -128 : 0;
  to->max = to->min + 255;
  to->end = k->ends[i].args;
  return NULL;
}

static assay_status_t set_scaled(const assay_joint_layers_t* j, const found_t* f, int8_excite_t* k,
                                 bool* ok) {
  const assay_sized_layer_t* l = j->layers[0];
  const assay_int8_t* q = l->layer->int8;
  const int64_t columns = k->args.second.columns;
  k->x = NONE;
  k->args.places = 1;
  *ok = true;
  if (f->scaled == NONE) return NULL;
  ASSAY_TRY(cuda_int8_end_open(l, q, false, columns, ASSAY_LAYOUT_CHANNELS_LAST, &k->ends[2], ok));
  k->x = f->x;
  k->args.end = k->ends[2].args;
  const int source = q->sources[0].value == l->in[f->x].value ? 0 : 1;
  k->args.end.sources[0] = k->ends[2].args.sources[source];
  const int64_t places = l->out[0].size / (f->products[1].p.args.m * columns);
  *ok = *ok && l->out[0].dims[1] == columns && l->out[0].size <= INT32_MAX / 2;
  k->args.places = *ok ? (int32_t)places : 1;
  return NULL;
}

// ---- blocks -------------------------------------------------------------------------------------

static int64_t up_to(int64_t n, int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

// Of int32, as the kernel counts them.
static int64_t sums_of(int64_t columns) {
  const int64_t tiles = up_to(columns, TILE) / TILE, shares = tiles < WARPS ? WARPS / tiles : 1;
  return shares * tiles * TILE;
}

static int64_t shared_bytes(const int8_excite_args_t* a) {
  return up_to(a->first.terms, CHUNK) + up_to(a->second.terms, CHUNK) +
         4 * ((int64_t)a->sums + a->slice);
}

// Clocks that blocks take, of which a multiprocessor has so many: what all read of weights, and
// what is scaled. *read: of the former.
static double predict(const int8_excite_args_t* a, int64_t blocks_of_one, double* read) {
  const double weights =
      (double)a->first.columns * a->first.column_bytes + (double)a->slice * a->second.column_bytes;
  *read = (double)blocks_of_one * weights / BYTES_A_CLOCK;
  return *read + 0.35 * (double)blocks_of_one * a->slice * a->part;
}

// The columns and places of a block that are predicted to be fastest; false: launches apart are.
static bool share_out(const cuda_own_t* own, int64_t rows, bool scales, int8_excite_args_t* a) {
  const int sms = own->properties.multiprocessors;
  double best = INFINITY;
  int8_excite_args_t found = *a;
  for (int64_t slice = TILE; slice < 2 * up_to(a->second.columns, TILE); slice *= 2)
    for (int parts = 1; parts <= (scales ? MAX_PARTS : 1) && parts <= a->places; parts *= 2) {
      int8_excite_args_t t = *a;
      double read;
      t.slice = (int32_t)(slice < up_to(a->second.columns, TILE) ? slice
                                                                 : up_to(a->second.columns, TILE));
      t.slices = (t.second.columns - 1) / t.slice + 1;
      t.part = (t.places - 1) / parts + 1;
      t.parts = (t.places - 1) / t.part + 1;
      const int64_t blocks = rows * t.slices * t.parts;
      const double clocks = predict(&t, (blocks + sms - 1) / sms, &read);
      if (clocks >= best || read > MAX_READ_CLOCKS) continue;
      best = clocks;
      found = t;
    }
  if (!found.slice) return false;
  const int64_t first = sums_of(found.first.columns), second = sums_of(found.slice);
  found.sums = (int32_t)(first > second ? first : second);
  *a = found;
  return shared_bytes(a) <= own->properties.shared_bytes &&
         rows <= INT32_MAX / ((int64_t)a->slices * a->parts);
}

// ---- kernels ------------------------------------------------------------------------------------

static void print_program(const int8_excite_t* k, assay_str_t* text) {
  const assay_int8_t *first = k->ends[0].q, *second = k->ends[1].q;
  const assay_int8_t* last = k->x == NONE ? second : k->ends[2].q;
  const bool inverse =
      cuda_int8_has_inverse(first) && (!last->quantizes || cuda_int8_has_inverse(last));
  assay_str_printf(text,
                   "#include \"types.h\"\ntypedef uint32_t index_t;\n#define INT8_QUANTIZES %d\n"
                   "#define INT8_BOTH 0\n#define INT8_OUT %s\n#define INT8_SIGNED %d\n"
                   "#define INT8_INVERSE %d\n",
                   last->quantizes, last->quantizes ? cuda_whole_name(last->type) : "float",
                   last->type == ASSAY_TYPE_INT8, inverse);
  if (!first->simple || !second->simple) assay_str_append(text, "#define INT8_HAS_STEPS\n");
  assay_str_append(text, "#include \"int8_end.h\"\n");
  cuda_int8_made_print(first, "int8_hidden", text);
  cuda_int8_made_print(second, "int8_gate", text);
}

static const char* mma_of(assay_type_t x) { return x == ASSAY_TYPE_INT8 ? "mma_s8" : "mma_s8u8"; }

static assay_status_t load(const assay_sized_layer_t* l, const found_t* f, int8_excite_t* k) {
  assay_str_t options = {0}, program = {0};
  const assay_type_t x = k->x == NONE ? ASSAY_TYPE_FLOAT : l->in[k->x].type;
  const bool floats = x == ASSAY_TYPE_FLOAT;
  assay_str_printf(&options, "-DFIRST=%s -DSECOND=%s -DSCALES=%d -DX=%s -DFLOATS=%d -DVEC=%d",
                   mma_of(f->products[0].job.x_type), mma_of(f->products[1].job.x_type),
                   k->x != NONE, floats ? "float" : cuda_whole_name(x), floats,
                   k->args.second.columns % INT8_TOGETHER ? 1 : INT8_TOGETHER);
  print_program(k, &program);
  const cuda_source_t source = {.file = "int8_excite.cu",
                                .kernel = "int8_excite",
                                .options = assay_str_get(&options),
                                .program = assay_str_get(&program),
                                .shared_bytes = k->grid.shared_bytes};
  assay_status_t st = assay_str_status(&options);
  if (!st) st = assay_str_status(&program);
  if (!st) st = cuda_function_get(cuda_own_of(l)->functions, &source, &k->kernel);
  assay_str_deinit(&options);
  assay_str_deinit(&program);
  return st;
}

static void set_forms(const assay_joint_layers_t* j, const found_t* f, int8_excite_t* k) {
  const assay_sized_layer_t* first = j->layers[f->first];
  k->squeezed = f->products[0].p.x;
  for (int a = 0; a < f->first; a++) k->squeezed += (int)j->layers[a]->n_in;
  k->base.in[k->squeezed] = j->kernels[f->first]->in[f->products[0].p.x];
  k->base.in[k->squeezed].type = first->in[f->products[0].p.x].type;
  if (k->x != NONE)
    k->base.in[k->x] = (assay_storage_t){j->layers[0]->in[k->x].type, ASSAY_LAYOUT_CHANNELS_LAST};
  k->base.out[0] = j->kernels[0]->out[0];
}

static assay_status_t build(const assay_joint_layers_t* j, found_t* f, int8_excite_t* k, bool* ok) {
  const cuda_own_t* own = cuda_own_of(j->layers[0]);
  const int64_t rows = f->products[0].p.args.m;
  ASSAY_TRY(set_product(j, f, 0, k, ok));
  if (*ok) ASSAY_TRY(set_product(j, f, 1, k, ok));
  if (*ok) ASSAY_TRY(set_scaled(j, f, k, ok));
  *ok = *ok && share_out(own, rows, k->x != NONE, &k->args);
  if (!*ok) return NULL;
  k->grid = (cuda_grid_t){.blocks = rows * k->args.slices * k->args.parts,
                          .threads = WARPS * WARP,
                          .dependent = true,
                          .shared_bytes = (int)shared_bytes(&k->args)};
  set_forms(j, f, k);
  return load(j->layers[0], f, k);
}

static assay_status_t make(const assay_joint_layers_t* j, found_t* f, assay_kernel_t** out) {
  int8_excite_t* k = NULL;
  bool ok;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .enqueue = enqueue, .destroy = destroy};
  assay_status_t st = build(j, f, k, &ok);
  if (st || !ok) return destroy(&k->base), st;
  *out = &k->base;
  return NULL;
}

static assay_status_t make_joint(assay_joint_layers_t* j, assay_kernel_t** out) {
  found_t f;
  bool ok;
  assay_status_t st = find(j, &f, &ok);
  if (!ok) j->n = 1;
  if (!st && ok && !j->finds) st = make(j, &f, out);
  for (int i = 0; i < 2; i++)
    if (f.open[i]) cuda_int8_close(&f.products[i]);
  return st;
}

const assay_tactic_t cuda_tactic_int8_excite = {
    .name = "int8_excite",
    .source = "assay",
    .ends = ends,
    .make_joint = make_joint,
    .rounding = CUDA_INT8_ROUNDING,
};
