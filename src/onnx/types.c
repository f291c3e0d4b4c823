// TypeProto to value types. Source: onnx-ml.proto, TypeProto (IR version 14).
#include <string.h>

#include "formats/format.h"
#include "onnx/read.h"

static assay_status_t read_shape(onnx_reader_t* r, const Onnx__TensorShapeProto* p,
                                 assay_type_t elem, const assay_valtype_t** out) {
  const assay_dim_t* dims[ASSAY_MAX_RANK];
  int64_t known[ASSAY_MAX_RANK], size;
  size_t n_known = 0;
  bool denoted = false;
  if (p->n_dim > ASSAY_MAX_RANK)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "a shape has %zu dimensions; at most %d can be handled",
                       p->n_dim, (int)ASSAY_MAX_RANK);
  for (size_t i = 0; i < p->n_dim; i++) {
    const Onnx__TensorShapeProto__Dimension* d = p->dim[i];
    dims[i] = NULL;
    if (d->denotation && *d->denotation) denoted = true;
    if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE) {
      if (d->dim_value < -1)
        return ASSAY_ERROR(ASSAY_CORRUPT,
                           "dimension %zu is %lld; expected 0 or more, a name, or nothing if it is "
                           "not known",
                           i, (long long)d->dim_value);
      if (d->dim_value < 0) {  // what frameworks write for a size that is not known
        ASSAY_TRY(assay_model_warn(r->model, "value '%s': dimension %zu is %lld, taken as open",
                                   r->value ? r->value : "", i, (long long)d->dim_value));
        continue;
      }
      dims[i] = assay_dim_const(r->model->dims, d->dim_value);
      if (d->dim_value) known[n_known++] = d->dim_value;
    } else if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM &&
               *d->dim_param && strcmp(d->dim_param, "?") != 0) {
      // "?" is no name: paddle2onnx calls every size so that it does not know.
      dims[i] = assay_dim_symbol(r->model->dims, d->dim_param);
    }
  }
  ASSAY_TRY(assay_dims_status(r->model->dims));
  ASSAY_TRY(onnx_check_dims(elem ? elem : ASSAY_TYPE_FLOAT, n_known, known, &size));
  ASSAY_TRY(assay_valtype_tensor(r->model, elem, (int)p->n_dim, dims, out));
  if (!denoted) return NULL;
  // The type is ours until it is handed on.
  assay_valtype_t* t = (assay_valtype_t*)*out;
  ASSAY_TRY(assay_arena_new(r->arena, p->n_dim, sizeof *t->denotations, &t->denotations));
  for (size_t i = 0; i < p->n_dim; i++)
    ASSAY_TRY(onnx_text(r, p->dim[i]->denotation, &t->denotations[i]));
  return NULL;
}

static assay_status_t read_tensor_type(onnx_reader_t* r, int32_t elem,
                                       const Onnx__TensorShapeProto* shape,
                                       const assay_valtype_t** out) {
  // Shape inference tools leave the element type at 0 where they do not know it.
  if (elem) ASSAY_TRY(onnx_check_elem_type(elem));
  if (shape) return read_shape(r, shape, (assay_type_t)elem, out);
  return assay_valtype_unranked(r->model, (assay_type_t)elem, out);
}

static assay_status_t read_of(onnx_reader_t* r, assay_kind_t kind, assay_type_t key,
                              const Onnx__TypeProto* p, bool* out_opaque,
                              const assay_valtype_t** out) {
  static const char* const names[] = {"tensor", "sequence", "optional", "map"};
  const assay_valtype_t* of = NULL;
  if (p) ASSAY_TRY(onnx_read_type(r, p, out_opaque, &of));
  if (*out_opaque) return NULL;
  if (!of) return ASSAY_ERROR(ASSAY_CORRUPT, "a %s type has no type of what it holds", names[kind]);
  return assay_valtype_of(r->model, kind, key, of, out);
}

static bool is_key_type(int32_t type) {
  return type == ASSAY_TYPE_STRING || (type >= ASSAY_TYPE_UINT8 && type <= ASSAY_TYPE_INT64) ||
         type == ASSAY_TYPE_UINT32 || type == ASSAY_TYPE_UINT64;
}

assay_status_t onnx_read_type(onnx_reader_t* r, const Onnx__TypeProto* p, bool* out_opaque,
                              const assay_valtype_t** out) {
  const assay_valtype_t* t = NULL;
  *out_opaque = false;
  switch (p->value_case) {
    case ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE:
      ASSAY_TRY(read_tensor_type(r, p->tensor_type->elem_type, p->tensor_type->shape, &t));
      break;
    case ONNX__TYPE_PROTO__VALUE_SPARSE_TENSOR_TYPE:
      ASSAY_TRY(
          read_tensor_type(r, p->sparse_tensor_type->elem_type, p->sparse_tensor_type->shape, &t));
      ((assay_valtype_t*)t)->is_sparse = true;
      break;
    case ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE:
      ASSAY_TRY(read_of(r, ASSAY_KIND_SEQUENCE, ASSAY_TYPE_UNDEFINED, p->sequence_type->elem_type,
                        out_opaque, &t));
      break;
    case ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE:
      ASSAY_TRY(read_of(r, ASSAY_KIND_OPTIONAL, ASSAY_TYPE_UNDEFINED, p->optional_type->elem_type,
                        out_opaque, &t));
      break;
    case ONNX__TYPE_PROTO__VALUE_MAP_TYPE:
      if (!is_key_type(p->map_type->key_type))
        return ASSAY_ERROR(ASSAY_CORRUPT,
                           "a map has keys of element type %d; expected integers or "
                           "strings",
                           (int)p->map_type->key_type);
      ASSAY_TRY(read_of(r, ASSAY_KIND_MAP, (assay_type_t)p->map_type->key_type,
                        p->map_type->value_type, out_opaque, &t));
      break;
    case ONNX__TYPE_PROTO__VALUE_OPAQUE_TYPE:
      *out_opaque = true;
      break;
    default:
      break;
  }
  if (t && p->denotation && *p->denotation)
    ASSAY_TRY(onnx_text(r, p->denotation, &((assay_valtype_t*)t)->denotation));
  *out = t;
  return NULL;
}

assay_status_t onnx_check_dims(assay_type_t type, size_t n, const int64_t* dims,
                               int64_t* out_size) {
  if (n > ASSAY_MAX_RANK)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "a shape has %zu dimensions; at most %d can be handled",
                       n, (int)ASSAY_MAX_RANK);
  for (size_t i = 0; i < n; i++)
    if (dims[i] < 0)
      return ASSAY_ERROR(ASSAY_CORRUPT, "dims[%zu] is %lld; expected 0 or more", i,
                         (long long)dims[i]);
  char text[512];
  int64_t bytes;
  if (!assay_dims_size((int)n, dims, out_size) ||
      (type != ASSAY_TYPE_STRING && !assay_type_packed_bytes(type, *out_size, &bytes)))
    return ASSAY_ERROR(ASSAY_CORRUPT, "shape %s has more elements than any machine holds",
                       assay_dims_text((int)n, dims, text, sizeof text));
  return NULL;
}

assay_status_t onnx_check_elem_type(int32_t type) {
  if (type > ASSAY_TYPE_UNDEFINED && type < ASSAY_TYPE_COUNT) return NULL;
  return ASSAY_ERROR(ASSAY_CORRUPT, "element type %d is none that ONNX has (1 to %d)", (int)type,
                     ASSAY_TYPE_COUNT - 1);
}
