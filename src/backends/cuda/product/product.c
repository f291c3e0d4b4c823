// Kernels of products.
#include "backends/cuda/product/product.h"

#include <stdio.h>
#include <string.h>

#include "backends/cuda/product/halves.h"
#include "backends/cuda/product/packing.h"
#include "base/alloc.h"

typedef struct product_kernel {
  assay_kernel_t base;
  cuda_product_t p;
  cuda_program_t* program;  // NULL: nothing comes after it
  const cuda_own_t* own;
  cuda_kernel_t kernel, pack;
  cuda_grid_t grid;
  cuda_product_launch_t way;  // {0}: the kernel takes the arguments as they are
} product_kernel_t;

static void fill_norm(const cuda_product_t* p, const assay_device_ptr_t* in, assay_device_ptr_t out,
                      norm_args_t* args) {
  args->y = out;
  args->scale = p->norm_scale < 0 ? 0 : in[p->norm_scale];
  args->bias = p->norm_bias < 0 ? 0 : in[p->norm_bias];
}

static assay_status_t enqueue(assay_kernel_t* base, assay_queue_t* q, const assay_device_ptr_t* in,
                              const assay_device_ptr_t* out, assay_device_ptr_t scratch) {
  const product_kernel_t* k = (const product_kernel_t*)base;
  product_args_t args = k->p.args;
  args.x = in[k->p.x];
  if (k->p.w >= 0) args.w = in[k->p.w];
  if (k->p.packing.size) {
    ASSAY_TRY(cuda_packing_enqueue(k->own, k->pack, &k->p.packing, q, args.w, scratch));
    args.w = scratch;
  }
  if (k->p.gather.args.rows) {
    ASSAY_TRY(cuda_gather_enqueue(&k->p.gather, q, args.x, scratch));
    args.x = scratch;
  }
  if (k->p.scaled) args.scale = in[k->p.scale];
  args.y = out[0];
  if (k->p.normalized) fill_norm(&k->p, in, out[1], &args.norm);
  if (k->program) cuda_program_fill(k->program, in, &args.program);
  if (k->way.enqueue) return k->way.enqueue(&k->p, k->way.tile, q, k->kernel, &k->grid, &args);
  return cuda_queue_launch(q, k->kernel, &k->grid, &args);
}

static void destroy(assay_kernel_t* k) {
  cuda_program_destroy(((product_kernel_t*)k)->program);
  assay_free(k);
}

assay_status_t cuda_product_program(const assay_sized_layer_t* l, const cuda_product_t* p,
                                    cuda_program_t** out, bool* ok) {
  const pointwise_options_t options = {.first = p->ends ? 0 : (size_t)p->done,
                                       .result = l->layer->nodes[p->done - 1]->outputs[0],
                                       .layout = p->layout,
                                       .columns = p->args.y_row};
  *out = NULL;
  if (l->layer->n_nodes == (size_t)p->done && !p->ends) return NULL;
  ASSAY_TRY(p->half_type ? cuda_halves_program(l, p, out) : cuda_program_make(l, &options, out));
  *ok = *out != NULL;
  return NULL;
}

// The forms of the operands; *ok false: the program reads one in another form than the product.
static void set_forms(const cuda_product_t* p, product_kernel_t* k, bool* ok) {
  k->base.in[p->x] = (assay_storage_t){p->in, p->layout};
  if (p->w >= 0) k->base.in[p->w] = (assay_storage_t){p->in, ASSAY_LAYOUT_PLAIN};
  k->base.out[0] = (assay_storage_t){p->out, p->layout};
  *ok = !k->program || cuda_program_forms(k->program, &k->base);
}

static assay_status_t load(const cuda_source_t* source, product_kernel_t* k) {
  assay_str_t options = {0};
  assay_str_printf(&options, "%s -DEPILOGUE=%d", source->options, k->program != NULL);
  if (k->p.half_type) assay_str_printf(&options, " -DGATE=%s", cuda_type_name(k->p.half_type));
  if (k->p.through) assay_str_printf(&options, " -DTHROUGH=%s", cuda_type_name(k->p.through));
  cuda_source_t whole = *source;
  whole.options = assay_str_get(&options);
  whole.program = k->program ? cuda_program_text(k->program) : NULL;
  assay_status_t st = assay_str_status(&options);
  if (!st) st = cuda_function_get(k->own->functions, &whole, &k->kernel);
  if (!st && k->p.packing.size) st = cuda_packing_get(k->own, k->p.in, &k->p.packing, &k->pack);
  assay_str_deinit(&options);
  return st;
}

assay_status_t cuda_product_kernel(const assay_sized_layer_t* l, const cuda_product_t* p,
                                   const cuda_source_t* source, const cuda_grid_t* grid,
                                   assay_kernel_t** out) {
  return cuda_product_kernel_by(l, p, source, grid, &(cuda_product_launch_t){0}, out);
}

assay_status_t cuda_product_kernel_by(const assay_sized_layer_t* l, const cuda_product_t* p,
                                      const cuda_source_t* source, const cuda_grid_t* grid,
                                      const cuda_product_launch_t* way, assay_kernel_t** out) {
  product_kernel_t* k = NULL;
  bool ok = true;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .enqueue = enqueue, .destroy = destroy};
  k->p = *p;
  k->own = cuda_own_of(l);
  k->grid = *grid;
  k->way = *way;
  // Weights that are packed are values of the run, and windows are gathered of constant ones.
  const int64_t gathered = p->gather.args.rows * p->gather.args.pitch;
  k->base.scratch = (size_t)(p->packing.size + gathered) * assay_kernel_float_bytes(p->in);
  assay_status_t st = cuda_product_program(l, p, &k->program, &ok);
  if (!st && ok) st = cuda_product_bring(l, &k->p);
  if (!st && ok) set_forms(p, k, &ok);
  if (!st && ok) st = load(source, k);
  if (st || !ok) return destroy(&k->base), st;
  *out = &k->base;
  return NULL;
}

void cuda_product_options(const cuda_product_t* p, assay_str_t* out) {
  assay_str_printf(out, "-DIN=%s -DOUT=%s -DCONV=%d", cuda_type_name(p->in), cuda_type_name(p->out),
                   (int)p->left);
}

// ---- operands -----------------------------------------------------------------------------------

static bool steps_fit(const int64_t* steps, int n, int64_t piece) {
  bool fit = true;
  for (int i = 0; i < n; i++) fit &= steps[i] % piece == 0;
  return fit;
}

bool cuda_x_is_fast(const product_args_t* a, cuda_left_t left, int64_t piece) {
  if (!steps_fit(a->x_step, a->n_dims, piece) || a->k % piece) return false;
  if (left) return a->channels % piece == 0 && a->x_place % piece == 0;
  return a->x_k == 1 && a->x_row % piece == 0;
}

bool cuda_weights_are_constant(const assay_sized_layer_t* l, const cuda_product_t* p) {
  return p->w < 0 || l->in[p->w].constant;
}

bool cuda_axis_is_one(const product_axis_t* x) {
  return x->in == 1 && x->out == 1 && x->kernel == 1 && !x->pad;
}

bool cuda_is_one_to_one(const product_args_t* a) {
  bool yes = true;
  int64_t places = 1;
  for (int d = 0; d < PRODUCT_AXES; d++) {
    const product_axis_t* x = &a->axes[d];
    yes &= x->kernel == 1 && x->stride == 1 && !x->pad && x->in == x->out;
    places *= x->in;
  }
  return yes && (a->m == places || a->x_sample == places * a->x_place);
}

int cuda_product_piece(const product_args_t* a) {
  int64_t all = a->k | a->x_row | a->w_column;
  for (int d = 0; d < a->n_dims; d++) all |= a->x_step[d] | a->w_step[d];
  return all % 8 == 0 ? 8 : all % 2 == 0 ? 2 : 1;
}

void cuda_product_join_places(cuda_product_t* p) {
  product_args_t* a = &p->args;
  if (p->left != CUDA_LEFT_CONV || !cuda_is_one_to_one(a)) return;
  p->left = CUDA_LEFT_MATRIX;
  a->x_row = a->x_place;
  a->x_k = 1;
}

int cuda_w_way(const product_args_t* a, int64_t piece) {
  if (!steps_fit(a->w_step, a->n_dims, piece)) return 0;
  if (a->w_k == 1 && a->w_column % piece == 0 && a->k % piece == 0) return 1;
  return a->w_column == 1 && a->w_k % piece == 0 && a->n % piece == 0 ? 2 : 0;
}

// ---- tiles --------------------------------------------------------------------------------------

int64_t cuda_tile_blocks(const product_args_t* a, const cuda_tile_t* t) {
  return a->matrices * ((a->m + t->rows - 1) / t->rows) * ((a->n + t->columns - 1) / t->columns);
}

int cuda_tile_sums_bytes(const cuda_tile_t* t) { return t->rows * (t->columns + 8) * 4; }

static void name_tile(const cuda_tile_t* t, char* to) {
  snprintf(to, ASSAY_VARIANT_BYTES, "%dx%d", t->rows, t->columns);
}

static bool suits(const cuda_product_t* p, const cuda_tile_t* t) {
  return cuda_tile_blocks(&p->args, t) <= INT32_MAX;
}

void cuda_tile_variants(const assay_sized_layer_t* l, const cuda_product_t* p,
                        const cuda_tile_t* tiles, int n, const char* numerics,
                        cuda_tile_predict_t* predict, assay_variant_t* out, size_t* out_n) {
  for (int i = 0; i < n; i++) {
    if (!suits(p, &tiles[i])) continue;
    assay_variant_t* v = &out[(*out_n)++];
    *v = (assay_variant_t){.numerics = numerics, .predicted = predict(l->own, p, &tiles[i])};
    name_tile(&tiles[i], v->name);
  }
}

const cuda_tile_t* cuda_tile_find(const cuda_product_t* p, const cuda_tile_t* tiles, int n,
                                  const assay_variant_t* v) {
  char name[ASSAY_VARIANT_BYTES];
  for (int i = 0; i < n; i++) {
    name_tile(&tiles[i], name);
    if (strcmp(name, v->name) == 0) return suits(p, &tiles[i]) ? &tiles[i] : NULL;
  }
  return NULL;
}
