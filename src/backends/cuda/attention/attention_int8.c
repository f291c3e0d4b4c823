// Quantized attention in one launch (kernels/attention/attention_int8.cu): the product of queries
// and keys of 8 bits, a mask that is added, Softmax, what quantizes its weights, and their product
// with values, with the Transposes of heads around them. They are layers of their own, whose bits
// it has: nothing about them changes for taps, bounds or other backends.
#include <string.h>

#include "backends/constants.h"
#include "backends/cuda/int8/product.h"
#include "backends/cuda/int8/quantizer.h"
#include "backends/cuda/kernels/attention_int8_args.h"
#include "backends/cuda/rows/softmax.h"
#include "base/alloc.h"

enum { NONE = -1, WARPS = 4, MAX_SIZE = 256, MAX_KEYS = 1024, GAP = 16, PIECE = 16 };
enum { ANYHOW = 0, PIECES, TURNED };  // as the kernel's forms

typedef struct attention_int8 {
  assay_kernel_t base;
  int q, k, v, mask;  // inputs; mask NONE: there is none
  attention_int8_args_t args;
  cuda_kernel_t kernel;
  cuda_grid_t grid;
} attention_int8_t;

static assay_status_t enqueue(assay_kernel_t* base, assay_queue_t* q, const assay_device_ptr_t* in,
                              const assay_device_ptr_t* out, assay_device_ptr_t scratch) {
  const attention_int8_t* k = (const attention_int8_t*)base;
  attention_int8_args_t args = k->args;
  (void)scratch;
  args.q.at = in[k->q];
  args.k.at = in[k->k];
  args.v.at = in[k->v];
  if (k->mask != NONE) args.mask.at = in[k->mask];
  args.y.at = out[0];
  return cuda_queue_launch(q, k->kernel, &k->grid, &args);
}

static void destroy(assay_kernel_t* k) { assay_free(k); }

// ---- which layers -------------------------------------------------------------------------------

static bool is_turn(const assay_layer_t* l) {
  return l->n_nodes == 1 && int8_is(l->nodes[0], "Transpose");
}

// Whether all columns' sums become floats by the same numbers.
static bool is_even(const assay_int8_t* q) {
  for (int64_t i = 1; i < q->n_factor; i++)
    if (q->factor[i] != q->factor[0] || q->shift[i] != q->shift[0]) return false;
  return q->n_factor > 0;
}

static bool is_product(const assay_layer_t* l) {
  const assay_int8_t* q = l->int8;
  return q && q->anchor && (int8_is(q->anchor, "MatMul") || int8_is(q->anchor, "QLinearMatMul")) &&
         !q->w.constant && q->w.value && !q->bias && q->simple && is_even(q);
}

static bool ends(const assay_layer_t* l) {
  const assay_value_t* x = is_turn(l) ? l->nodes[0]->inputs[0] : NULL;
  if (x) return x->producer && assay_int8_is_quantizer(x->producer);
  return is_product(l) && l->int8->quantizes;
}

// The layers, by their places among those that are joined.
typedef struct found {
  int sums, quantizer, softmax, scores;
  int masked, mask;                    // the Add, NONE: it is not there; its input
  int turn_q, turn_k, turn_v, turn_y;  // NONE: it is not there
} found_t;

// A product of two quantized activations.
static assay_status_t open(const assay_sized_layer_t* l, cuda_int8_t* p, bool* ok) {
  *ok = is_product(l->layer);
  if (*ok) ASSAY_TRY(cuda_int8_open(l, p, ok));
  if (!*ok) return NULL;
  *ok = !p->job.weights && !p->job.zeros_w && p->job.zero_input < 0 && p->job.q == l->layer->int8;
  if (!*ok) cuda_int8_close(p);
  return NULL;
}

static assay_status_t add(assay_joint_layers_t* j, int reader, const assay_value_t* v, int* at,
                          bool* ok) {
  *at = j->n;
  return j->add(j, reader, v, ok);
}

// A Transpose that makes a side.
static assay_status_t add_turn(assay_joint_layers_t* j, int reader, const assay_value_t* v, int* at,
                               bool* ok) {
  bool added;
  *at = NONE;
  *ok = true;
  if (!v->producer || !int8_is(v->producer, "Transpose")) return NULL;
  const int place = j->n;
  ASSAY_TRY(j->add(j, reader, v, &added));
  if (!added) return NULL;
  *at = place;
  *ok = is_turn(j->layers[place]->layer);
  return NULL;
}

static bool is_softmax(const assay_sized_layer_t* l) {
  const assay_node_t* n = l->layer->nodes[0];
  const int rank = l->out[0].rank;
  if (l->layer->n_nodes != 1 || !int8_is(n, "Softmax") || !n->schema || n->schema->since < 13)
    return false;
  const int64_t axis = assay_attr_i64(n, "axis", -1);
  return axis == -1 || axis == rank - 1;
}

// The product that makes v, for layer `reader`; else *ok is false, and nothing is added.
static assay_status_t find_scores(assay_joint_layers_t* j, int reader, const assay_value_t* v,
                                  found_t* f, cuda_int8_t* scores, bool* ok) {
  const int n = j->n;
  ASSAY_TRY(add(j, reader, v, &f->scores, ok));
  if (*ok) ASSAY_TRY(open(j->layers[f->scores], scores, ok));
  if (!*ok) j->n = n;
  return NULL;
}

static bool is_sum(const assay_sized_layer_t* l) {
  const assay_node_t* n = l->layer->nodes[0];
  return l->layer->n_nodes == 1 && l->n_in == 2 && n->n_inputs == 2 && int8_is(n, "Add") &&
         n->schema && n->schema->since >= 7 && l->layer->format == ASSAY_FORMAT_FP32 &&
         l->out[0].type == ASSAY_TYPE_FLOAT && l->in[0].type == ASSAY_TYPE_FLOAT &&
         l->in[1].type == ASSAY_TYPE_FLOAT;
}

// The product whose scores Softmax reads, or a sum of them and of something else.
static assay_status_t find_masked(assay_joint_layers_t* j, found_t* f, cuda_int8_t* scores,
                                  bool* ok) {
  const assay_value_t* v = j->layers[f->softmax]->layer->nodes[0]->inputs[0];
  f->masked = NONE;
  ASSAY_TRY(find_scores(j, f->softmax, v, f, scores, ok));
  if (*ok) return NULL;
  ASSAY_TRY(add(j, f->softmax, v, &f->masked, ok));
  *ok = *ok && is_sum(j->layers[f->masked]);
  if (!*ok) return NULL;
  for (int i = 0; i < 2; i++) {
    f->mask = 1 - i;
    ASSAY_TRY(find_scores(j, f->masked, j->layers[f->masked]->in[i].value, f, scores, ok));
    if (*ok) return NULL;
  }
  return NULL;
}

static assay_status_t find(assay_joint_layers_t* j, found_t* f, cuda_int8_t* sums, bool* has_sums,
                           cuda_int8_t* scores, bool* ok) {
  assay_int8_t ignored;
  int x;
  *ok = true;
  *f = (found_t){.turn_y = NONE};
  if (is_turn(j->layers[0]->layer)) {
    f->turn_y = 0;
    ASSAY_TRY(add(j, 0, j->layers[0]->layer->nodes[0]->inputs[0], &f->sums, ok));
  }
  if (*ok) ASSAY_TRY(open(j->layers[f->sums], sums, has_sums));
  *ok = *ok && *has_sums && sums->job.q->quantizes;
  if (*ok) ASSAY_TRY(add(j, f->sums, j->layers[f->sums]->in[sums->p.x].value, &f->quantizer, ok));
  *ok = *ok && cuda_quantizer_read(j->layers[f->quantizer], &ignored, &x);
  if (*ok) ASSAY_TRY(add(j, f->quantizer, j->layers[f->quantizer]->in[x].value, &f->softmax, ok));
  *ok = *ok && is_softmax(j->layers[f->softmax]);
  return *ok ? find_masked(j, f, scores, ok) : NULL;
}

static assay_status_t find_turns(assay_joint_layers_t* j, found_t* f, const cuda_int8_t* sums,
                                 const cuda_int8_t* scores, bool* ok) {
  const assay_sized_layer_t *of_sums = j->layers[f->sums], *of_scores = j->layers[f->scores];
  ASSAY_TRY(add_turn(j, f->scores, of_scores->in[scores->p.x].value, &f->turn_q, ok));
  if (*ok) ASSAY_TRY(add_turn(j, f->scores, of_scores->in[scores->p.w].value, &f->turn_k, ok));
  if (*ok) ASSAY_TRY(add_turn(j, f->sums, of_sums->in[sums->p.w].value, &f->turn_v, ok));
  return NULL;
}

// ---- where sides lie ----------------------------------------------------------------------------

typedef struct view {
  int rank;
  int64_t dims[ASSAY_KERNEL_RANK], strides[ASSAY_KERNEL_RANK];
} view_t;

static void lie_plain(const assay_operand_t* o, view_t* v) {
  int64_t step = 1;
  v->rank = o->rank;
  for (int i = o->rank - 1; i >= 0; i--) {
    v->dims[i] = o->dims[i];
    v->strides[i] = step;
    step *= o->dims[i];
  }
}

static bool read_perm(const assay_node_t* n, int rank, int* perm) {
  size_t count = 0;
  const int64_t* given = assay_attr_ints(n, "perm", &count);
  if (given && count != (size_t)rank) return false;
  for (int i = 0; i < rank; i++) {
    perm[i] = given ? assay_known_axis(given[i], rank) : rank - 1 - i;
    if (perm[i] < 0) return false;
  }
  return true;
}

// Where the inputs of a layer begin among all.
static int first_input(const assay_joint_layers_t* j, int of) {
  int in = 0;
  for (int a = 0; a < of; a++) in += (int)j->layers[a]->n_in;
  return in;
}

// Input i of layer `of`, or what a Transpose makes it of; *in: its place among all inputs.
static bool view_input(const assay_joint_layers_t* j, int of, int i, int turn, int* in,
                       view_t* out) {
  const assay_sized_layer_t* l = j->layers[turn == NONE ? of : turn];
  const int own = turn == NONE ? i : 0;
  view_t from;
  int perm[ASSAY_KERNEL_RANK];
  *in = own + first_input(j, turn == NONE ? of : turn);
  lie_plain(&l->in[own], &from);
  *out = from;
  if (turn == NONE) return true;
  if (!read_perm(l->layer->nodes[0], from.rank, perm)) return false;
  for (int d = 0; d < from.rank; d++) {
    out->dims[d] = from.dims[perm[d]];
    out->strides[d] = from.strides[perm[d]];
  }
  return true;
}

// The result of layer `of`, where a Transpose puts it.
static bool view_output(const assay_joint_layers_t* j, int of, int turn, view_t* out) {
  view_t to;
  int perm[ASSAY_KERNEL_RANK];
  lie_plain(&j->layers[of]->out[0], out);
  if (turn == NONE) return true;
  lie_plain(&j->layers[turn]->out[0], &to);
  if (!read_perm(j->layers[turn]->layer->nodes[0], to.rank, perm)) return false;
  for (int d = 0; d < to.rank; d++) out->strides[perm[d]] = to.strides[d];
  return true;
}

typedef struct views {
  view_t q, k, v, y;
} views_t;

// The mask, broadcast to scores of these sizes; false: it would make them larger.
static bool view_mask(const assay_joint_layers_t* j, const found_t* f, const views_t* v,
                      attention_int8_t* k) {
  const int rank = v->q.rank, rows = rank - 2, columns = rank - 1;
  view_t m;
  k->mask = NONE;
  if (f->masked == NONE) return true;
  lie_plain(&j->layers[f->masked]->in[f->mask], &m);
  for (int d = 0; d < m.rank; d++) {
    const int at = rank - m.rank + d;
    int64_t* step = at == columns ? &k->args.mask.column
                    : at == rows  ? &k->args.mask.row
                                  : &k->args.mask.batch[at < 0 ? 0 : at];
    if (at < 0 || (m.dims[d] != 1 && m.dims[d] != (at == columns ? v->k : v->q).dims[at]))
      return false;
    *step = m.dims[d] == 1 ? 0 : m.strides[d];
  }
  k->mask = first_input(j, f->masked) + f->mask;
  return true;
}

// The same heads, as few dimensions as they have.
static bool set_batch(const views_t* v, attention_int8_args_t* a, int* n) {
  const int rank = v->q.rank;
  if (v->k.rank != rank || v->v.rank != rank || v->y.rank != rank || rank < 2 ||
      rank - 2 > ATTENTION_INT8_RANK)
    return false;
  *n = rank - 2;
  for (int d = 0; d < *n; d++) {
    const int64_t size = v->q.dims[d];
    if (v->k.dims[d] != size || v->v.dims[d] != size || v->y.dims[d] != size || size > INT32_MAX)
      return false;
    a->batch[d] = divisor_of((uint32_t)size);
    a->q.batch[d] = v->q.strides[d];
    a->k.batch[d] = v->k.strides[d];
    a->v.batch[d] = v->v.strides[d];
    a->y.batch[d] = v->y.strides[d];
  }
  return true;
}

static bool set_sizes(const views_t* v, attention_int8_args_t* a) {
  const int row = v->q.rank - 2, column = row + 1;
  const int64_t q_len = v->q.dims[row], size = v->q.dims[column], kv_len = v->k.dims[column],
                v_size = v->v.dims[column];
  if (v->k.dims[row] != size || v->v.dims[row] != kv_len || v->y.dims[row] != q_len ||
      v->y.dims[column] != v_size || q_len > INT32_MAX / 2 || size > MAX_SIZE ||
      v_size > MAX_SIZE || kv_len > MAX_KEYS)
    return false;
  a->q_len = (int32_t)q_len, a->size = (int32_t)size;
  a->kv_len = (int32_t)kv_len, a->v_size = (int32_t)v_size;
  a->q.row = v->q.strides[row], a->q.column = v->q.strides[column];
  // The first product reads keys the other way round.
  a->k.row = v->k.strides[column], a->k.column = v->k.strides[row];
  a->v.row = v->v.strides[row], a->v.column = v->v.strides[column];
  a->y.row = v->y.strides[row], a->y.column = v->y.strides[column];
  return true;
}

// How a side comes whose rows, so many, and terms lie so far apart.
static int form_of(const attention_int8_side_t* s, int64_t row, int64_t term, int64_t rows) {
  int64_t all = 0;
  for (int d = 0; d < ATTENTION_INT8_RANK; d++) all |= s->batch[d];
  if (term == 1 && (all | row) % PIECE == 0) return PIECES;
  return row == 1 && (all | term | rows) % 4 == 0 ? TURNED : ANYHOW;
}

// ---- numbers ------------------------------------------------------------------------------------

// Scores: a sum that is scaled, and maybe scaled again.
static bool set_scores(const assay_int8_t* q, attention_int8_args_t* a, bool* scaled) {
  const assay_int8_source_t* other = q->other < 0 ? NULL : &q->sources[q->other];
  if (q->quantizes || q->sources[0].kind != ASSAY_INT8_RESULT ||
      (other && (other->kind != ASSAY_INT8_SCALAR || q->operation != ASSAY_INT8_MUL)))
    return false;
  *scaled = other;
  a->factor = q->factor[0], a->shift = q->shift[0];
  a->scalar = other ? (float)other->scalar : 1;
  a->low = q->low, a->high = q->high;
  return true;
}

static void set_quantizer(const assay_int8_t* q, attention_int8_quantizer_t* out) {
  cuda_quantizer_numbers(q, &out->numbers);
  out->min = q->type == ASSAY_TYPE_INT8 ? -128 : 0;
  out->max = out->min + 255;
}

static bool set_sums(const assay_int8_t* q, attention_int8_args_t* a) {
  if (q->other >= 0 || q->sources[0].kind != ASSAY_INT8_RESULT) return false;
  a->y_factor = q->factor[0], a->y_shift = q->shift[0];
  set_quantizer(q, &a->of_y);
  return true;
}

static const char* product_of(assay_type_t x, assay_type_t w) {
  if (x == ASSAY_TYPE_INT8) return w == ASSAY_TYPE_INT8 ? "mma_s8" : "mma_s8u8";
  return w == ASSAY_TYPE_INT8 ? "mma_u8s8" : "mma_u8";
}

// ---- kernels ------------------------------------------------------------------------------------

static int up_to(int n, int multiple) { return (n + multiple - 1) / multiple * multiple; }

static int shared_bytes(const attention_int8_args_t* a, int rows) {
  const int size = up_to(a->size, 32) + GAP, keys = up_to(a->kv_len, 32);
  return (rows + keys) * size + (up_to(a->v_size, 16) + rows) * (keys + GAP) +
         rows * (keys + 4) * (int)sizeof(float);
}

// Queries of a block: few where there are few heads, or much memory is needed. 0: too much.
static int rows_of(const cuda_own_t* own, const attention_int8_args_t* a, int64_t heads) {
  const int64_t blocks = heads * ((a->q_len + 31) / 32);
  const int rows = blocks >= 2 * own->properties.multiprocessors ? 32 : 16;
  if (shared_bytes(a, rows) <= own->properties.shared_bytes) return rows;
  return shared_bytes(a, 16) <= own->properties.shared_bytes ? 16 : 0;
}

typedef struct read {
  found_t found;
  const cuda_int8_t *sums, *scores;
  assay_int8_t weights;  // what quantizes them
  cuda_softmax_rows_t softmax;
  int n_batch;
  bool scaled;
} read_t;

static assay_status_t load(const assay_joint_layers_t* j, const read_t* r, int rows,
                           attention_int8_t* k) {
  const attention_int8_args_t* a = &k->args;
  const cuda_softmax_rows_t* softmax = &r->softmax;
  const int8_job_t *of_scores = &r->scores->job, *of_sums = &r->sums->job;
  bool paired = a->y.column == 1 && a->y.row % 2 == 0 && a->v_size % 2 == 0;
  for (int d = 0; d < r->n_batch; d++) paired = paired && a->y.batch[d] % 2 == 0;
  const bool inverse = cuda_int8_has_inverse(&r->weights) && cuda_int8_has_inverse(of_sums->q);
  assay_str_t options = {0};
  assay_str_printf(
      &options,
      "-DBATCH=%d -DROWS=%d -DWARPS=%d -DSIZE=%d -DKEYS=%d -DV_SIZE=%d -DACROSS=0 -DDIMS=1 "
      "-DSPAN=%d -DKEEP=%d -DVEC=%d -DSCORES=%s -DSUMS=%s -DQ_ZERO=%d -DK_ZERO=%d -DW_ZERO=%d "
      "-DV_ZERO=%d -DSCALED=%d -DQ_FORM=%d -DK_FORM=%d -DV_FORM=%d -DY_PAIRED=%d "
      "-DINT8_INVERSE=%d -DMASKED=%d",
      r->n_batch, rows, (int)WARPS, up_to(a->size, 32), up_to(a->kv_len, 32), up_to(a->v_size, 16),
      softmax->span, softmax->keep, softmax->vector,
      product_of(of_scores->x_type, of_scores->w_type),
      product_of(of_sums->x_type, of_sums->w_type), a->zero_q != 0, a->zero_k != 0, a->zero_w != 0,
      a->zero_v != 0, r->scaled, form_of(&a->q, a->q.row, a->q.column, rows),
      form_of(&a->k, a->k.row, a->k.column, a->kv_len),
      form_of(&a->v, a->v.column, a->v.row, a->v_size), paired, inverse, k->mask != NONE);
  const cuda_source_t source = {.file = "attention_int8.cu",
                                .kernel = "attention_int8",
                                .options = assay_str_get(&options),
                                .shared_bytes = k->grid.shared_bytes};
  assay_status_t st = assay_str_status(&options);
  if (!st) st = cuda_function_get(cuda_own_of(j->layers[0])->functions, &source, &k->kernel);
  assay_str_deinit(&options);
  return st;
}

static void set_forms(const assay_joint_layers_t* j, const read_t* r, attention_int8_t* k) {
  k->base.in[k->q] = (assay_storage_t){r->scores->job.x_type, ASSAY_LAYOUT_PLAIN};
  k->base.in[k->k] = (assay_storage_t){r->scores->job.w_type, ASSAY_LAYOUT_PLAIN};
  k->base.in[k->v] = (assay_storage_t){r->sums->job.w_type, ASSAY_LAYOUT_PLAIN};
  if (k->mask != NONE)
    k->base.in[k->mask] = (assay_storage_t){ASSAY_TYPE_FLOAT, ASSAY_LAYOUT_PLAIN};
  k->base.out[0] = (assay_storage_t){j->layers[0]->out[0].type, ASSAY_LAYOUT_PLAIN};
}

static assay_status_t build(const assay_joint_layers_t* j, read_t* r, attention_int8_t* k,
                            bool* ok) {
  const found_t* f = &r->found;
  attention_int8_args_t* a = &k->args;
  views_t v;
  int x;
  *ok = view_input(j, f->scores, r->scores->p.x, f->turn_q, &k->q, &v.q) &&
        view_input(j, f->scores, r->scores->p.w, f->turn_k, &k->k, &v.k) &&
        view_input(j, f->sums, r->sums->p.w, f->turn_v, &k->v, &v.v) &&
        view_output(j, f->sums, f->turn_y, &v.y) && set_batch(&v, a, &r->n_batch) &&
        set_sizes(&v, a) && view_mask(j, f, &v, k) &&
        cuda_softmax_rows_of(j->kernels[f->softmax], &r->softmax) &&
        r->softmax.terms == a->kv_len && set_scores(r->scores->job.q, a, &r->scaled) &&
        set_sums(r->sums->job.q, a) &&
        cuda_quantizer_read(j->layers[f->quantizer], &r->weights, &x);
  if (!*ok) return NULL;
  set_quantizer(&r->weights, &a->of_w);
  a->zero_q = r->scores->job.zero_x, a->zero_k = r->scores->job.zero_w;
  a->zero_w = r->sums->job.zero_x, a->zero_v = r->sums->job.zero_w;
  int64_t heads = 1;
  for (int d = 0; d < r->n_batch; d++) heads *= v.q.dims[d];
  const int rows = rows_of(cuda_own_of(j->layers[0]), a, heads);
  const int64_t tiles = rows ? (a->q_len + rows - 1) / rows : 1;
  *ok = rows && heads <= INT32_MAX / tiles;
  if (!*ok) return NULL;
  a->tiles = divisor_of((uint32_t)tiles);
  k->grid = (cuda_grid_t){.blocks = heads * tiles,
                          .threads = 32 * WARPS,
                          .dependent = true,
                          .shared_bytes = shared_bytes(a, rows)};
  set_forms(j, r, k);
  return load(j, r, rows, k);
}

static assay_status_t make(assay_joint_layers_t* j, read_t* r, assay_kernel_t** out) {
  attention_int8_t* k = NULL;
  bool ok;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .enqueue = enqueue, .destroy = destroy};
  assay_status_t st = build(j, r, k, &ok);
  if (st || !ok) return destroy(&k->base), st;
  *out = &k->base;
  return NULL;
}

static assay_status_t make_joint(assay_joint_layers_t* j, assay_kernel_t** out) {
  cuda_int8_t sums, scores;
  read_t r = {.sums = &sums, .scores = &scores};
  bool has_sums = false, ok;
  assay_status_t st = find(j, &r.found, &sums, &has_sums, &scores, &ok);
  const bool has_scores = !st && ok;
  if (has_scores) st = find_turns(j, &r.found, &sums, &scores, &ok);
  if (!ok) j->n = 1;
  if (!st && ok && !j->finds) st = make(j, &r, out);
  if (has_scores) cuda_int8_close(&scores);
  if (has_sums) cuda_int8_close(&sums);
  return st;
}

const assay_tactic_t cuda_tactic_attention_int8 = {
    .name = "attention_int8",
    .source = "assay",
    .ends = ends,
    .make_joint = make_joint,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .by_definition = true,
                 .function_ulps = 4},
};
