// Kernels of products.
#include "backends/cuda/product/product.h"

#include "base/alloc.h"

typedef struct product_kernel {
  assay_kernel_t base;
  cuda_product_t p;
  cuda_kernel_t kernel;
  cuda_grid_t grid;
} product_kernel_t;

static assay_status_t enqueue(assay_kernel_t* base, assay_queue_t* q, const assay_device_ptr_t* in,
                              const assay_device_ptr_t* out, assay_device_ptr_t scratch) {
  const product_kernel_t* k = (const product_kernel_t*)base;
  product_args_t args = k->p.args;
  (void)scratch;
  args.x = in[k->p.x];
  if (k->p.w >= 0) args.w = in[k->p.w];
  args.y = out[0];
  return cuda_queue_launch(q, k->kernel, &k->grid, &args);
}

static void destroy(assay_kernel_t* k) { assay_free(k); }

assay_status_t cuda_product_kernel(const assay_sized_layer_t* l, const cuda_product_t* p,
                                   const cuda_source_t* source, const cuda_grid_t* grid,
                                   assay_kernel_t** out) {
  product_kernel_t* k = NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .enqueue = enqueue, .destroy = destroy};
  k->base.in[p->x] = (assay_storage_t){p->in, p->layout};
  if (p->w >= 0) k->base.in[p->w] = (assay_storage_t){p->in, ASSAY_LAYOUT_PLAIN};
  k->base.out[0] = (assay_storage_t){p->out, p->layout};
  k->p = *p;
  k->grid = *grid;
  assay_status_t st = cuda_function_get(cuda_own_of(l)->functions, source, &k->kernel);
  if (st) return destroy(&k->base), st;
  *out = &k->base;
  return NULL;
}

void cuda_product_options(const cuda_product_t* p, assay_str_t* out) {
  assay_str_printf(out, "-DIN=%s -DOUT=%s -DCONV=%d", cuda_type_name(p->in), cuda_type_name(p->out),
                   (int)p->left);
}
