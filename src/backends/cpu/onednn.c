// What the oneDNN tactics share: the engine, descriptions of memory, and a kernel that runs one
// primitive and then a pointwise program over its result.
#ifdef ASSAY_ONEDNN
#include "backends/cpu/onednn.h"

#include <pthread.h>

#include "backends/cpu/pointwise/convert.h"
#include "backends/cpu/scratch.h"
#include "base/alloc.h"

enum { ALIGNMENT = 64 };  // of scratch memory: a cache line

static dnnl_engine_t engine;
static dnnl_stream_t stream;
static dnnl_status_t engine_status;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void start(void) {
  engine_status = dnnl_engine_create(&engine, dnnl_cpu, 0);
  if (engine_status == dnnl_success)
    engine_status = dnnl_stream_create(&stream, engine, dnnl_stream_default_flags);
}

assay_status_t dnn_check(dnnl_status_t status, const char* what) {
  if (status == dnnl_success) return NULL;
  if (status == dnnl_out_of_memory) return assay_status_no_memory();
  return ASSAY_ERROR(ASSAY_DEVICE, "oneDNN: %s failed with status %d", what, (int)status);
}

assay_status_t dnn_engine(dnnl_engine_t* out) {
  pthread_once(&once, start);
  *out = engine;
  return dnn_check(engine_status, "starting the engine");
}

assay_status_t dnn_execute(dnnl_primitive_t primitive, int n, const dnnl_exec_arg_t* args,
                           const char* what) {
  ASSAY_TRY(dnn_check(dnnl_primitive_execute(primitive, stream, n, args), what));
  return dnn_check(dnnl_stream_wait(stream), what);
}

dnnl_data_type_t dnn_type(assay_type_t type) {
  switch (type) {
    case ASSAY_TYPE_FLOAT:
      return dnnl_f32;
    case ASSAY_TYPE_BFLOAT16:
      return dnnl_bf16;
    case ASSAY_TYPE_FLOAT16:
      return dnnl_f16;
    case ASSAY_TYPE_INT8:
      return dnnl_s8;
    case ASSAY_TYPE_UINT8:
      return dnnl_u8;
    default:
      return dnnl_data_type_undef;
  }
}

assay_status_t dnn_md(int rank, const int64_t* dims, assay_type_t type, assay_layout_t layout,
                      dnnl_memory_desc_t* out) {
  dnnl_dims_t sizes = {0}, strides = {0};
  int64_t step = 1;
  for (int i = 0; i < rank; i++) sizes[i] = dims[i];
  const bool last = layout == ASSAY_LAYOUT_CHANNELS_LAST && rank >= 3;
  if (last) {
    strides[1] = 1;
    step = dims[1];
  }
  for (int i = rank - 1; i >= 0; i--) {
    if (last && i == 1) continue;
    strides[i] = step;
    step *= dims[i];
  }
  return dnn_check(dnnl_memory_desc_create_with_strides(out, rank, sizes, dnn_type(type), strides),
                   "describing memory");
}

assay_status_t dnn_md_any(int rank, const int64_t* dims, assay_type_t type,
                          dnnl_memory_desc_t* out) {
  dnnl_dims_t sizes = {0};
  for (int i = 0; i < rank; i++) sizes[i] = dims[i];
  return dnn_check(
      dnnl_memory_desc_create_with_tag(out, rank, sizes, dnn_type(type), dnnl_format_tag_any),
      "describing memory");
}

assay_status_t dnn_attr(dnnl_primitive_attr_t* out) {
  ASSAY_TRY(dnn_check(dnnl_primitive_attr_create(out), "making attributes"));
  return dnn_check(dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user),
                   "setting attributes");
}

static assay_status_t memory(const_dnnl_primitive_desc_t d, dnnl_query_t what, int index,
                             dnnl_memory_t* out) {
  const_dnnl_memory_desc_t md = dnnl_primitive_desc_query_md(d, what, index);
  return dnn_check(dnnl_memory_create(out, md, engine, DNNL_MEMORY_NONE), "making memory");
}

assay_status_t dnn_finish(dnn_kernel_t* k, const assay_sized_layer_t* l,
                          dnnl_primitive_desc_t descriptor, assay_type_t dst_type, bool weights,
                          const assay_operand_t* bias) {
  assay_status_t st = dnn_check(dnnl_primitive_create(&k->primitive, descriptor), "a primitive");
  if (!st) st = memory(descriptor, dnnl_query_src_md, 0, &k->src);
  if (!st) st = memory(descriptor, dnnl_query_dst_md, 0, &k->dst);
  if (!st && weights && !k->weights) st = memory(descriptor, dnnl_query_weights_md, 0, &k->weights);
  if (!st && bias) st = memory(descriptor, dnnl_query_weights_md, 1, &k->bias);
  if (!st && bias) st = assay_operand_floats(bias, &k->bias_data);
  if (!st) st = memory(descriptor, dnnl_query_scratchpad_md, 0, &k->scratchpad);
  if (st) return st;
  const size_t own = dnnl_memory_desc_get_size(
      dnnl_primitive_desc_query_md(descriptor, dnnl_query_scratchpad_md, 0));
  k->dst_offset = (own + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  k->dst_apart = dst_type != l->out[0].type;
  k->base.scratch =
      ALIGNMENT + k->dst_offset + (k->dst_apart ? (size_t)k->size * sizeof(float) : 0);
  return NULL;
}

assay_type_t dnn_dst_type(const dnn_kernel_t* k, const assay_sized_layer_t* l, assay_type_t type) {
  return k->program || type == ASSAY_TYPE_FLOAT ? ASSAY_TYPE_FLOAT : l->out[0].type;
}

void dnn_window(const assay_window_t* w, dnn_window_t* out) {
  for (int i = 0; i < w->rank; i++) {
    const assay_window_axis_t* a = &w->axis[i];
    out->strides[i] = a->stride;
    out->kernel[i] = a->kernel;
    out->dilations[i] = a->dilation - 1;
    out->before[i] = a->pads[0];
    out->behind[i] =
        (a->out - 1) * a->stride + (a->kernel - 1) * a->dilation + 1 - a->in - a->pads[0];
  }
}

void dnn_free(size_t n, const dnnl_memory_desc_t* descriptions, dnnl_primitive_attr_t attr) {
  for (size_t i = 0; i < n; i++)
    if (descriptions[i]) dnnl_memory_desc_destroy(descriptions[i]);
  if (attr) dnnl_primitive_attr_destroy(attr);
}

assay_status_t dnn_described(dnnl_status_t status, const char* what,
                             dnnl_primitive_desc_t* descriptor) {
  if (status != dnnl_unimplemented && status != dnnl_invalid_arguments)
    return dnn_check(status, what);
  *descriptor = NULL;
  return NULL;
}

assay_status_t dnn_epilogue(dnn_kernel_t* k, const assay_sized_layer_t* l, assay_layout_t layout,
                            bool* out_ok) {
  *out_ok = true;
  return cpu_program_behind(l, layout, &k->base, &k->program, out_ok);
}

static void destroy(assay_kernel_t* base) {
  dnn_kernel_t* k = (dnn_kernel_t*)base;
  dnnl_memory_t all[] = {k->src, k->weights, k->bias, k->dst, k->scratchpad};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (all[i]) dnnl_memory_destroy(all[i]);
  if (k->primitive) dnnl_primitive_destroy(k->primitive);
  cpu_program_destroy(k->program);
  assay_free(k->bias_data);
  assay_free(k);
}

static void narrow_all(const float* from, int64_t size, assay_type_t type, void* to) {
  enum { CHUNK = 16384 };
  const int64_t chunks = (size + CHUNK - 1) / CHUNK;
#pragma omp parallel for schedule(static) if (chunks > 2)
  for (int64_t i = 0; i < chunks; i++)
    cpu_narrow(from + i * CHUNK, size - i * CHUNK < CHUNK ? size - i * CHUNK : CHUNK, type,
               i * CHUNK, to);
}

static assay_status_t run(assay_kernel_t* base, const void* const* in, void* const* out,
                          void* scratch) {
  dnn_kernel_t* k = (dnn_kernel_t*)base;
  char* aligned = cpu_scratch(scratch);
  void* to = k->dst_apart ? aligned + k->dst_offset : out[0];
  dnnl_exec_arg_t args[5];
  int n = 0;
  args[n++] = (dnnl_exec_arg_t){DNNL_ARG_SRC, k->src};
  args[n++] = (dnnl_exec_arg_t){DNNL_ARG_DST, k->dst};
  args[n++] = (dnnl_exec_arg_t){DNNL_ARG_SCRATCHPAD, k->scratchpad};
  dnnl_memory_set_data_handle(k->src, (void*)(uintptr_t)in[k->src_input]);
  dnnl_memory_set_data_handle(k->dst, to);
  dnnl_memory_set_data_handle(k->scratchpad, aligned);
  if (k->weights) {
    args[n++] = (dnnl_exec_arg_t){DNNL_ARG_WEIGHTS, k->weights};
    if (k->weights_input >= 0)
      dnnl_memory_set_data_handle(k->weights, (void*)(uintptr_t)in[k->weights_input]);
  }
  if (k->bias) {
    args[n++] = (dnnl_exec_arg_t){DNNL_ARG_BIAS, k->bias};
    dnnl_memory_set_data_handle(k->bias, k->bias_data);
  }
  ASSAY_TRY(dnn_execute(k->primitive, n, args, "running a layer"));
  if (k->behind) k->behind(k, in[k->src_input], to);
  if (k->program)
    cpu_program_run(k->program, in, to, k->base.out[0].type, out[0]);
  else if (k->dst_apart)
    narrow_all(to, k->size, k->base.out[0].type, out[0]);
  return NULL;
}

assay_status_t dnn_make(const assay_sized_layer_t* l, int src_input, dnn_build_t* build,
                        const void* what, assay_kernel_t** out) {
  const assay_type_t types[] = {l->in[src_input].type, ASSAY_TYPE_FLOAT};
  for (int i = types[0] == types[1]; i < 2; i++) {
    dnn_kernel_t* k = NULL;
    bool ok = false;
    ASSAY_TRY(ASSAY_NEW(&k));
    k->base = (assay_kernel_t){.in_place = -1, .run = run, .destroy = destroy};
    k->src_input = src_input;
    k->weights_input = -1;
    k->size = l->out[0].size;
    assay_status_t st = build(k, l, what, types[i], &ok);
    if (!st && ok) return *out = &k->base, NULL;
    destroy(&k->base);
    if (st) return st;
  }
  return NULL;
}
#endif
