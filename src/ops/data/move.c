// Transpose, Concat, Split, Tile: whole blocks of elements change their place.
#include "ops/content.h"
#include "ops/data/strided.h"
#include "ops/families.h"

// ---- Transpose -------------------------------------------------------------------------------

// The permutation: the attribute, else all dims reversed.
static assay_status_t transpose_perm(const assay_node_t* node, int rank, int* perm) {
  size_t n;
  const int64_t* given = assay_attr_ints(node, "perm", &n);
  if (!given) {
    for (int i = 0; i < rank; i++) perm[i] = rank - 1 - i;
    return NULL;
  }
  if (n != (size_t)rank) {
    return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                            "attribute perm has %zu entries, input has rank %d", n, rank);
  }
  bool seen[ASSAY_MAX_RANK] = {false};
  for (int i = 0; i < rank; i++) {
    if (given[i] < 0 || given[i] >= rank || seen[given[i]]) {
      return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                              "attribute perm has %lld at %d, expected each of 0 to %d once",
                              (long long)given[i], i, rank - 1);
    }
    seen[given[i]] = true;
    perm[i] = (int)given[i];
  }
  return NULL;
}

static assay_status_t transpose_infer(assay_infer_t* c) {
  assay_shape_t in = assay_infer_shape(c, 0), out = {.known = true, .rank = in.rank};
  size_t n;
  const int64_t* given = assay_attr_ints(c->node, "perm", &n);
  if (!in.known && (!given || n > ASSAY_MAX_RANK)) {
    return assay_infer_set(c, 0, assay_infer_elem(c, 0), NULL);
  }
  if (!in.known) in = (assay_shape_t){.known = true, .rank = (int)n};
  out.rank = in.rank;
  int perm[ASSAY_MAX_RANK];
  ASSAY_TRY(transpose_perm(c->node, in.rank, perm));
  for (int i = 0; i < out.rank; i++) out.dims[i] = in.dims[perm[i]];
  ASSAY_TRY(assay_infer_set(c, 0, assay_infer_elem(c, 0), &out));
  return assay_content_same(c, 0);
}

static assay_status_t transpose_eval(assay_eval_t* c) {
  const assay_tensor_t* in = c->in[0];
  int perm[ASSAY_MAX_RANK];
  ASSAY_TRY(transpose_perm(c->node, in->rank, perm));
  int64_t dims[ASSAY_MAX_RANK], in_strides[ASSAY_MAX_RANK], from[ASSAY_MAX_RANK],
      to[ASSAY_MAX_RANK];
  assay_row_major(in->rank, in->dims, in_strides);
  for (int i = 0; i < in->rank; i++) {
    dims[i] = in->dims[perm[i]];
    from[i] = in_strides[perm[i]];
  }
  assay_tensor_t* out;
  ASSAY_TRY(assay_eval_output(c, 0, in->type, in->rank, dims, &out));
  assay_row_major(in->rank, dims, to);
  return assay_copy_strided(in->rank, dims, in, 0, from, out, 0, to);
}

// ---- Concat ----------------------------------------------------------------------------------

static assay_status_t concat_content(assay_infer_t* c) {
  assay_content_list_t all = {.rank = 1}, part;
  for (size_t i = 0; i < c->node->n_inputs; i++) {
    if (!assay_content_read(c, i, &part)) {
      // Of an input that is not known, its length may be.
      assay_shape_t s = assay_infer_shape(c, i);
      if (!s.known || s.rank != 1 || !assay_dim_value(s.dims[0], &part.n)) return NULL;
      if (part.n < 0 || part.n > ASSAY_CONTENT_MAX) return NULL;
      for (int64_t k = 0; k < part.n; k++) part.elems[k] = NULL;
    }
    if (all.n + part.n > ASSAY_CONTENT_MAX) return NULL;
    for (int64_t k = 0; k < part.n; k++) all.elems[all.n++] = part.elems[k];
  }
  return assay_content_write(c, 0, 0, &all);
}

static assay_status_t concat_mismatch(const assay_node_t* node, size_t input, int dim,
                                      const char* found, const char* expected) {
  return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                          "input %zu has size %s in dim %d, the inputs before it %s", input, found,
                          dim, expected);
}

// Adds input i's shape to the sum in *out.
static assay_status_t concat_join(assay_infer_t* c, size_t i, int axis, const assay_shape_t* in,
                                  assay_shape_t* out) {
  if (in->rank != out->rank) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "input %zu has rank %d, the inputs before it %d", i, in->rank,
                            out->rank);
  }
  for (int d = 0; d < out->rank; d++) {
    int64_t value;
    if (d == axis) {
      out->dims[d] = assay_dim_add(c->dims, out->dims[d], in->dims[d]);
    } else if (assay_dim_differ(out->dims[d], in->dims[d])) {
      return concat_mismatch(c->node, i, d, assay_dim_text(in->dims[d], (char[64]){0}, 64),
                             assay_dim_text(out->dims[d], (char[64]){0}, 64));
    } else if (!out->dims[d] || assay_dim_value(in->dims[d], &value)) {
      out->dims[d] = in->dims[d];  // the one that says more
    }
  }
  return NULL;
}

// Source: ONNX Concat-1 (axis 1 if not said), -4. Negative axes (since 11) are taken in all.
static assay_status_t concat_infer(assay_infer_t* c) {
  assay_shape_t out = {0};
  int axis = 0;
  for (size_t i = 0; i < c->node->n_inputs; i++) {
    assay_shape_t in = assay_infer_shape(c, i);
    if (!in.known) {
      // The sum is unknown; what is seen of the other dims holds.
      if (out.known) out.dims[axis] = NULL;
      continue;
    }
    ASSAY_TRY(
        assay_infer_axis(c, "attribute axis", assay_attr_i64(c->node, "axis", 1), in.rank, &axis));
    if (out.known) {
      ASSAY_TRY(concat_join(c, i, axis, &in, &out));
      continue;
    }
    out = in;
    if (i > 0) out.dims[axis] = NULL;
  }
  ASSAY_TRY(assay_infer_set(c, 0, assay_infer_elem(c, 0), &out));
  return out.known && out.rank == 1 ? concat_content(c) : NULL;
}

static assay_status_t concat_eval(assay_eval_t* c) {
  const assay_tensor_t* first = c->in[0];
  int rank = first->rank, axis;
  ASSAY_TRY(assay_eval_axis(c, "attribute axis", assay_attr_i64(c->node, "axis", 1), rank, &axis));
  int64_t dims[ASSAY_MAX_RANK];
  for (int d = 0; d < rank; d++) dims[d] = first->dims[d];
  for (size_t i = 1; i < c->n_in; i++) {
    const assay_tensor_t* in = c->in[i];
    if (in->rank != rank || in->store != first->store) {
      return ASSAY_NODE_ERROR(
          c->node, ASSAY_INVALID_ARGUMENT, "input %zu is %s of rank %d, input 0 is %s of rank %d",
          i, assay_type_name(in->type), in->rank, assay_type_name(first->type), rank);
    }
    for (int d = 0; d < rank; d++) {
      if (d != axis && in->dims[d] != dims[d]) {
        return concat_mismatch(c->node, i, d, ASSAY_DIMS_TEXT(in), ASSAY_DIMS_TEXT(first));
      }
    }
    if (!assay_add_i64(dims[axis], in->dims[axis], &dims[axis])) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "the sum of sizes overflows");
    }
  }
  assay_tensor_t* out;
  ASSAY_TRY(assay_eval_output(c, 0, first->type, rank, dims, &out));
  int64_t to[ASSAY_MAX_RANK], from[ASSAY_MAX_RANK], offset = 0;
  assay_row_major(rank, dims, to);
  for (size_t i = 0; i < c->n_in; i++) {
    const assay_tensor_t* in = c->in[i];
    assay_row_major(rank, in->dims, from);
    ASSAY_TRY(assay_copy_strided(rank, in->dims, in, 0, from, out, offset, to));
    offset += in->dims[axis] * to[axis];
  }
  return NULL;
}

// ---- Split -----------------------------------------------------------------------------------

// Versions differ in where the lengths come from and in what happens without them:
//   1    attribute or input `split`      2, 11  attribute `split`      13  input `split`
//   18   input `split` or attribute num_outputs, one of them; the last part may be smaller
static assay_status_t split_uneven(const assay_node_t* node, int64_t size, int64_t parts) {
  return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                          "size %lld along the axis cannot be split into %lld equal parts",
                          (long long)size, (long long)parts);
}

// Part i where version 18's num_outputs says how many: each takes ceil(size / parts) of what is
// left, so that 5 in 4 parts is 2, 2, 1, 0.
static int64_t split_share(int64_t size, int64_t parts, int64_t i) {
  int64_t part = size / parts + (size % parts != 0);
  int64_t left = i > 0 && part > size / i ? 0 : size - i * part;
  return part < left ? part : left;
}

static assay_status_t split_count(const assay_node_t* node, int64_t found, const char* what) {
  if (found == (int64_t)node->n_outputs) return NULL;
  return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                          "%s asks for %lld outputs, the node has %zu", what, (long long)found,
                          node->n_outputs);
}

// Whether version 18's attribute says the number of parts; checks that exactly one source is there.
static assay_status_t split18_check(const assay_node_t* node, bool has_split, bool* out_by_count) {
  *out_by_count = assay_attr_has(node, "num_outputs");
  if (*out_by_count && has_split) {
    return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                            "input 'split' and attribute num_outputs are both given");
  }
  if (!*out_by_count && !has_split) {
    return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                            "neither input 'split' nor attribute num_outputs is given");
  }
  return *out_by_count
             ? split_count(node, assay_attr_i64(node, "num_outputs", 0), "attribute num_outputs")
             : NULL;
}

// Part i of `parts` of a size that no lengths are given for.
static assay_status_t split_even(const assay_infer_t* c, const assay_dim_t* size, int64_t parts,
                                 bool by_count, int64_t i, const assay_dim_t** out) {
  int64_t value;
  const assay_dim_t* n = assay_dim_const(c->dims, parts);
  if (assay_dim_value(size, &value)) {
    if (!by_count && value % parts != 0) return split_uneven(c->node, value, parts);
    *out = assay_dim_const(c->dims, split_share(value, parts, i));
  } else if (!by_count) {
    *out = assay_dim_floordiv(c->dims, size, n);
  } else {
    const assay_dim_t* part = assay_dim_ceildiv(c->dims, size, n);
    const assay_dim_t* left = assay_dim_sub(c->dims, size, assay_dim_mul_i(c->dims, part, i));
    left = i > 0 ? assay_dim_max(c->dims, left, assay_dim_const(c->dims, 0)) : left;
    *out = assay_dim_min(c->dims, part, left);
  }
  return NULL;
}

static assay_status_t split_content(assay_infer_t* c, const assay_dim_t* const* sizes) {
  assay_content_list_t all, part = {.rank = 1};
  if (!assay_content_read(c, 0, &all) || all.rank != 1) return NULL;
  int64_t at = 0;
  for (size_t i = 0; i < c->node->n_outputs; i++) {
    if (!assay_dim_value(sizes[i], &part.n) || part.n < 0 || part.n > all.n - at) return NULL;
    for (int64_t k = 0; k < part.n; k++) part.elems[k] = all.elems[at + k];
    ASSAY_TRY(assay_content_write(c, i, 0, &part));
    at += part.n;
  }
  return NULL;
}

// The lengths that are given, into `list`; false if none are, or they are not known.
static assay_status_t split_given(assay_infer_t* c, assay_content_list_t* list, bool* out_known,
                                  bool* out_given) {
  size_t n;
  const int64_t* lengths = assay_attr_ints(c->node, "split", &n);
  *out_given = lengths != NULL || assay_infer_has(c, 1);
  *out_known = false;
  if (lengths) {
    ASSAY_TRY(split_count(c->node, (int64_t)n, "attribute split"));
    if (n > ASSAY_CONTENT_MAX) return NULL;
    list->n = (int64_t)n;
    for (size_t i = 0; i < n; i++) list->elems[i] = assay_dim_const(c->dims, lengths[i]);
    *out_known = true;
  } else if (assay_infer_has(c, 1) && assay_content_read_any(c, 1, list)) {
    ASSAY_TRY(split_count(c->node, list->n, "input 'split'"));
    *out_known = true;
  }
  return NULL;
}

static assay_status_t split_check_sum(assay_infer_t* c, const assay_content_list_t* list,
                                      const assay_dim_t* size) {
  const assay_dim_t* sum = assay_dim_const(c->dims, 0);
  for (int64_t i = 0; i < list->n; i++) {
    sum = assay_dim_add(c->dims, sum, list->elems[i]);
    if (assay_dim_negative(list->elems[i])) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "split is negative at %lld",
                              (long long)i);
    }
  }
  int64_t a, b;
  if (!assay_dim_value(sum, &a) || !assay_dim_value(size, &b) || a == b) return NULL;
  return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                          "the lengths in split sum to %lld, the size along the axis is %lld",
                          (long long)a, (long long)b);
}

static assay_status_t split_infer_as(assay_infer_t* c, bool since18) {
  size_t n = c->node->n_outputs;
  assay_content_list_t list = {0};
  bool known, given, by_count = false;
  ASSAY_TRY(split_given(c, &list, &known, &given));
  if (since18) ASSAY_TRY(split18_check(c->node, given, &by_count));
  assay_shape_t in = assay_infer_shape(c, 0);
  assay_type_t type = assay_infer_elem(c, 0);
  if (!in.known || n > ASSAY_CONTENT_MAX) {
    for (size_t i = 0; i < n; i++) ASSAY_TRY(assay_infer_set(c, i, type, NULL));
    return NULL;
  }
  int axis;
  ASSAY_TRY(
      assay_infer_axis(c, "attribute axis", assay_attr_i64(c->node, "axis", 0), in.rank, &axis));
  const assay_dim_t* size = in.dims[axis];
  if (known) ASSAY_TRY(split_check_sum(c, &list, size));
  for (size_t i = 0; i < n; i++) {
    if (!given) {
      ASSAY_TRY(split_even(c, size, (int64_t)n, by_count, (int64_t)i, &list.elems[i]));
    } else if (!known) {
      list.elems[i] = n == 1 ? size : NULL;
    }
    in.dims[axis] = list.elems[i];
    ASSAY_TRY(assay_infer_set(c, i, type, &in));
  }
  return in.rank == 1 ? split_content(c, list.elems) : NULL;
}

static assay_status_t split_infer(assay_infer_t* c) { return split_infer_as(c, false); }
static assay_status_t split18_infer(assay_infer_t* c) { return split_infer_as(c, true); }

// Length of part i when running. Version 1's input has them in the data's type.
static assay_status_t split_length(const assay_eval_t* c, const int64_t* attr, int64_t i,
                                   int64_t* out) {
  if (attr) {
    *out = attr[i];
  } else if (c->in[1]->store == ASSAY_STORE_I64) {
    *out = assay_i64(c->in[1])[i];
  } else {
    double x = c->in[1]->store == ASSAY_STORE_F64 ? assay_f64(c->in[1])[i] : -1;
    *out = x >= 0 && x < 9e15 ? (int64_t)x : -1;
  }
  if (*out >= 0) return NULL;
  return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                          "split has %lld at %lld, expected 0 or more", (long long)*out,
                          (long long)i);
}

static assay_status_t split_part(assay_eval_t* c, size_t i, int axis, int64_t start,
                                 int64_t length) {
  const assay_tensor_t* in = c->in[0];
  int64_t dims[ASSAY_MAX_RANK], from[ASSAY_MAX_RANK], to[ASSAY_MAX_RANK];
  for (int d = 0; d < in->rank; d++) dims[d] = d == axis ? length : in->dims[d];
  assay_tensor_t* out;
  ASSAY_TRY(assay_eval_output(c, i, in->type, in->rank, dims, &out));
  assay_row_major(in->rank, in->dims, from);
  assay_row_major(in->rank, dims, to);
  return assay_copy_strided(in->rank, dims, in, start * from[axis], from, out, 0, to);
}

static assay_status_t split_eval_as(assay_eval_t* c, bool since18) {
  const assay_tensor_t* in = c->in[0];
  size_t n;
  const int64_t* attr = assay_attr_ints(c->node, "split", &n);
  bool given = attr != NULL || assay_eval_has(c, 1), by_count = false;
  if (since18) ASSAY_TRY(split18_check(c->node, given, &by_count));
  if (attr) ASSAY_TRY(split_count(c->node, (int64_t)n, "attribute split"));
  if (given && !attr) ASSAY_TRY(split_count(c->node, c->in[1]->size, "input 'split'"));
  int axis;
  ASSAY_TRY(
      assay_eval_axis(c, "attribute axis", assay_attr_i64(c->node, "axis", 0), in->rank, &axis));
  int64_t size = in->dims[axis], parts = (int64_t)c->node->n_outputs, sum = 0;
  if (!given && !by_count && size % parts != 0) return split_uneven(c->node, size, parts);
  for (int64_t i = 0; i < parts; i++) {
    int64_t length = split_share(size, parts, i);
    if (given) ASSAY_TRY(split_length(c, attr, i, &length));
    if (length > size - sum || (i == parts - 1 && length != size - sum)) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "the lengths in split do not sum to %lld, the size along axis %d",
                              (long long)size, axis);
    }
    if (assay_eval_wants(c, (size_t)i)) ASSAY_TRY(split_part(c, (size_t)i, axis, sum, length));
    sum += length;
  }
  return NULL;
}

static assay_status_t split_eval(assay_eval_t* c) { return split_eval_as(c, false); }
static assay_status_t split18_eval(assay_eval_t* c) { return split_eval_as(c, true); }

// ---- Tile ------------------------------------------------------------------------------------

static assay_status_t tile_infer_by(assay_infer_t* c, const assay_shape_t* in,
                                    const assay_dim_t* const* repeats) {
  assay_shape_t out = {.known = true, .rank = in->rank};
  for (int i = 0; i < in->rank; i++) {
    int64_t value;
    if (assay_dim_negative(repeats[i])) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "dim %d is to be repeated a negative number of times", i);
    }
    bool once = assay_dim_value(repeats[i], &value) && value == 1;
    out.dims[i] = once ? in->dims[i] : assay_dim_mul(c->dims, in->dims[i], repeats[i]);
  }
  ASSAY_TRY(assay_infer_set(c, 0, assay_infer_elem(c, 0), &out));
  assay_content_list_t list;
  int64_t n;
  if (out.rank != 1 || !assay_content_read(c, 0, &list)) return NULL;
  if (!assay_dim_value(out.dims[0], &n) || n > ASSAY_CONTENT_MAX || list.n == 0) return NULL;
  for (int64_t i = list.n; i < n; i++) list.elems[i] = list.elems[i - list.n];
  list.n = n;
  return assay_content_write(c, 0, 0, &list);
}

static assay_status_t tile_repeats_count(const assay_node_t* node, int64_t n, int rank) {
  if (n == rank) return NULL;
  return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                          "input 'repeats' has %lld entries, input has rank %d", (long long)n,
                          rank);
}

// Source: ONNX Tile-6.
static assay_status_t tile_infer(assay_infer_t* c) {
  ASSAY_TRY(assay_infer_want_rank(c, 1, 1, 1));
  assay_shape_t in = assay_infer_shape(c, 0), length = assay_infer_shape(c, 1);
  assay_content_list_t list;
  int64_t n;
  if (in.known && assay_content_read(c, 1, &list)) {
    ASSAY_TRY(tile_repeats_count(c->node, list.n, in.rank));
    return tile_infer_by(c, &in, list.elems);
  }
  assay_shape_t out = {.known = in.known, .rank = in.rank};
  if (length.known && length.rank == 1 && assay_dim_value(length.dims[0], &n)) {
    if (in.known) ASSAY_TRY(tile_repeats_count(c->node, n, in.rank));
    if (n <= ASSAY_MAX_RANK) out.known = true, out.rank = (int)n;
  }
  return assay_infer_set(c, 0, assay_infer_elem(c, 0), &out);
}

// Source: ONNX Tile-1: `tiles` copies along one `axis`, both of the data's type.
static assay_status_t tile1_infer(assay_infer_t* c) {
  assay_shape_t in = assay_infer_shape(c, 0);
  assay_content_list_t tiles, axis;
  int64_t at;
  if (!in.known) return assay_infer_set(c, 0, assay_infer_elem(c, 0), NULL);
  const assay_dim_t* repeats[ASSAY_MAX_RANK] = {NULL};
  if (assay_content_read_any(c, 2, &axis) && axis.n == 1 && assay_dim_value(axis.elems[0], &at)) {
    int k;
    ASSAY_TRY(assay_infer_axis(c, "input 'axis'", at, in.rank, &k));
    for (int i = 0; i < in.rank; i++) repeats[i] = assay_dim_const(c->dims, 1);
    bool known = assay_content_read_any(c, 1, &tiles) && tiles.n == 1;
    repeats[k] = known ? tiles.elems[0] : NULL;
  }
  return tile_infer_by(c, &in, repeats);
}

// The output is a box of repeats x dims whose repeats do not step in the input.
static assay_status_t tile(assay_eval_t* c, const int64_t* repeats) {
  const assay_tensor_t* in = c->in[0];
  int rank = in->rank;
  int64_t dims[ASSAY_MAX_RANK], in_strides[ASSAY_MAX_RANK], out_strides[ASSAY_MAX_RANK];
  for (int i = 0; i < rank; i++) {
    if (repeats[i] < 0 || !assay_mul_i64(in->dims[i], repeats[i], &dims[i])) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "dim %d of size %lld cannot be repeated %lld times", i,
                              (long long)in->dims[i], (long long)repeats[i]);
    }
  }
  assay_tensor_t* out;
  ASSAY_TRY(assay_eval_output(c, 0, in->type, rank, dims, &out));
  if (out->size == 0) return NULL;
  assay_row_major(rank, in->dims, in_strides);
  assay_row_major(rank, dims, out_strides);
  int64_t box[ASSAY_STRIDED_MAX], from[ASSAY_STRIDED_MAX], to[ASSAY_STRIDED_MAX];
  for (int i = 0; i < rank; i++) {
    box[2 * i] = repeats[i];
    from[2 * i] = 0;
    to[2 * i] = in->dims[i] * out_strides[i];
    box[2 * i + 1] = in->dims[i];
    from[2 * i + 1] = in_strides[i];
    to[2 * i + 1] = out_strides[i];
  }
  return assay_copy_strided(2 * rank, box, in, 0, from, out, 0, to);
}

static assay_status_t tile_eval(assay_eval_t* c) {
  ASSAY_TRY(assay_eval_want_rank(c, 1, 1, 1));
  ASSAY_TRY(tile_repeats_count(c->node, c->in[1]->size, c->in[0]->rank));
  return tile(c, assay_i64(c->in[1]));
}

// A tensor of one element, a whole number of either store.
static bool whole_number(const assay_tensor_t* t, int64_t* out) {
  if (t->size != 1 || t->store > ASSAY_STORE_I64) return false;
  if (t->store == ASSAY_STORE_I64) return *out = assay_i64(t)[0], true;
  double x = assay_f64(t)[0];
  if (!(x > -9e15 && x < 9e15) || (double)(int64_t)x != x) return false;
  return *out = (int64_t)x, true;
}

static assay_status_t tile1_eval(assay_eval_t* c) {
  int64_t tiles, axis, repeats[ASSAY_MAX_RANK];
  if (!whole_number(c->in[1], &tiles) || tiles < 0) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "input 'tiles' is not one whole number of 0 or more");
  }
  if (!whole_number(c->in[2], &axis)) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "input 'axis' is not one whole number");
  }
  int k;
  ASSAY_TRY(assay_eval_axis(c, "input 'axis'", axis, c->in[0]->rank, &k));
  for (int i = 0; i < c->in[0]->rank; i++) repeats[i] = i == k ? tiles : 1;
  return tile(c, repeats);
}

const assay_op_t assay_ops_move[] = {{.domain = "",
                                      .name = "Transpose",
                                      .since = 1,
                                      .flags = ASSAY_OP_MOVES,
                                      .infer = transpose_infer,
                                      .eval = transpose_eval},
                                     {.domain = "",
                                      .name = "Concat",
                                      .since = 1,
                                      .flags = ASSAY_OP_MOVES,
                                      .infer = concat_infer,
                                      .eval = concat_eval},
                                     {.domain = "",
                                      .name = "Split",
                                      .since = 1,
                                      .flags = ASSAY_OP_MOVES,
                                      .infer = split_infer,
                                      .eval = split_eval},
                                     {.domain = "",
                                      .name = "Split",
                                      .since = 18,
                                      .flags = ASSAY_OP_MOVES,
                                      .infer = split18_infer,
                                      .eval = split18_eval},
                                     {.domain = "",
                                      .name = "Tile",
                                      .since = 1,
                                      .flags = ASSAY_OP_MOVES,
                                      .infer = tile1_infer,
                                      .eval = tile1_eval},
                                     {.domain = "",
                                      .name = "Tile",
                                      .since = 6,
                                      .flags = ASSAY_OP_MOVES,
                                      .infer = tile_infer,
                                      .eval = tile_eval},
                                     {0}};
