// Non-maximum suppression: NonMaxSuppression, and TensorRT's EfficientNMS_TRT.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/functions.h"
#include "ops/bound_number.h"
#include "ops/content.h"
#include "ops/data/strided.h"
#include "ops/families.h"

// ---- boxes -----------------------------------------------------------------------------------

// Corners in any order of the two axes; overlaps do not depend on it.
typedef struct box {
  double y1, x1, y2, x2;
} box_t;

static void swap_if(double* low, double* high) {
  if (!(*low > *high)) return;
  double t = *low;
  *low = *high;
  *high = t;
}

static box_t box_sorted(box_t b) {
  swap_if(&b.y1, &b.y2);
  swap_if(&b.x1, &b.x2);
  return b;
}

// Four numbers as corners, or as center and size.
static box_t box_read(const double* v, bool centered) {
  if (!centered) return (box_t){v[0], v[1], v[2], v[3]};
  return (box_t){v[0] - v[2] / 2, v[1] - v[3] / 2, v[0] + v[2] / 2, v[1] + v[3] / 2};
}

static double box_area(const box_t* b) {
  double h = b->y2 - b->y1, w = b->x2 - b->x1;
  return h > 0 && w > 0 ? h * w : 0;
}

// Intersection over union of boxes with sorted corners; 0 where either is empty.
static double box_iou(const box_t* a, const box_t* b) {
  box_t both = {fmax(a->y1, b->y1), fmax(a->x1, b->x1), fmin(a->y2, b->y2), fmin(a->x2, b->x2)};
  double common = box_area(&both), area_a = box_area(a), area_b = box_area(b);
  if (!(common > 0 && area_a > 0 && area_b > 0)) return 0;
  return common / (area_a + area_b - common);
}

typedef struct candidate {
  double score;
  int64_t index;
} candidate_t;

// By falling score; equal ones by rising index, so that the order is a total one.
static int candidate_order(const void* pa, const void* pb) {
  const candidate_t *a = pa, *b = pb;
  if (a->score != b->score) return a->score > b->score ? -1 : 1;
  return (a->index > b->index) - (a->index < b->index);
}

// ---- NonMaxSuppression -----------------------------------------------------------------------

typedef struct nms {
  int64_t batches, classes, boxes, limit;
  bool centered, has_score_threshold;
  double iou_threshold, score_threshold;
  const box_t* corners;  // batches x boxes
  const double* scores;
} nms_t;

typedef struct picks {
  int64_t* index;
  int64_t n;
  bool failed;
} picks_t;

// The boxes of one class of one image, best first. Scores below the threshold are removed, as the
// text of ONNX says (onnx.reference and ONNX Runtime also remove equal ones); NaN is never picked.
static void nms_class(const nms_t* p, int64_t batch, int64_t class, picks_t* out) {
  const double* scores = p->scores + (batch * p->classes + class) * p->boxes;
  const box_t* corners = p->corners + batch * p->boxes;
  candidate_t* list = NULL;
  int64_t* kept = NULL;
  int64_t n = 0, n_kept = 0, max = p->limit < p->boxes ? p->limit : p->boxes;
  assay_status_t st = assay_new_array((size_t)p->boxes, sizeof *list, &list);
  if (!st) st = assay_new_array((size_t)max, sizeof *kept, &kept);
  if (st) {
    assay_status_free(st);
    assay_free(list);
    out->failed = true;
    return;
  }
  for (int64_t i = 0; i < p->boxes; i++) {
    if (isnan(scores[i])) continue;
    if (p->has_score_threshold && scores[i] < p->score_threshold) continue;
    list[n++] = (candidate_t){scores[i], i};
  }
  qsort(list, (size_t)n, sizeof *list, candidate_order);
  for (int64_t i = 0; i < n && n_kept < max; i++) {
    bool keep = true;
    for (int64_t k = 0; keep && k < n_kept; k++) {
      keep = !(box_iou(&corners[list[i].index], &corners[kept[k]]) > p->iou_threshold);
    }
    if (keep) kept[n_kept++] = list[i].index;
  }
  assay_free(list);
  out->index = kept;
  out->n = n_kept;
}

static assay_status_t nms_infer(assay_infer_t* c) {
  ASSAY_TRY(assay_infer_want_rank(c, 0, 3, 3));
  ASSAY_TRY(assay_infer_want_rank(c, 1, 3, 3));
  assay_shape_t out = {.known = true, .rank = 2};
  out.dims[0] = assay_dim_fresh(c->dims, "selected");
  out.dims[1] = assay_dim_const(c->dims, 3);
  return assay_infer_set(c, 0, ASSAY_TYPE_INT64, &out);
}

static assay_status_t nms_scalar(const assay_eval_t* c, size_t i, const char* name) {
  if (!assay_eval_has(c, i) || c->in[i]->size == 1) return NULL;
  return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                          "input '%s' has shape %s, expected a scalar", name,
                          ASSAY_DIMS_TEXT(c->in[i]));
}

static assay_status_t nms_read(const assay_eval_t* c, nms_t* p) {
  const assay_tensor_t *boxes = c->in[0], *scores = c->in[1];
  if (boxes->rank != 3 || scores->rank != 3 || boxes->dims[2] != 4 ||
      boxes->dims[0] != scores->dims[0] || boxes->dims[1] != scores->dims[2]) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "boxes are %s and scores %s, expected [batches, boxes, 4] and "
                            "[batches, classes, boxes]",
                            ASSAY_DIMS_TEXT(boxes), ASSAY_DIMS_TEXT(scores));
  }
  ASSAY_TRY(nms_scalar(c, 2, "max_output_boxes_per_class"));
  ASSAY_TRY(nms_scalar(c, 3, "iou_threshold"));
  ASSAY_TRY(nms_scalar(c, 4, "score_threshold"));
  int64_t centered = assay_attr_i64(c->node, "center_point_box", 0);
  if (centered != 0 && centered != 1) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "attribute center_point_box is %lld, expected 0 or 1",
                            (long long)centered);
  }
  *p = (nms_t){.batches = boxes->dims[0],
               .classes = scores->dims[1],
               .boxes = boxes->dims[1],
               .limit = assay_eval_has(c, 2) ? assay_i64(c->in[2])[0] : 0,
               .iou_threshold = assay_eval_has(c, 3) ? assay_f64(c->in[3])[0] : 0,
               .score_threshold = assay_eval_has(c, 4) ? assay_f64(c->in[4])[0] : 0,
               .has_score_threshold = assay_eval_has(c, 4),
               .centered = centered == 1,
               .scores = assay_f64(scores)};
  if (p->limit < 0) p->limit = 0;
  if (p->iou_threshold >= 0 && p->iou_threshold <= 1) return NULL;
  return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                          "input 'iou_threshold' is %g, expected 0 to 1", p->iou_threshold);
}

static assay_status_t nms_write(assay_eval_t* c, const nms_t* p, const picks_t* picks) {
  int64_t n = 0, jobs = p->batches * p->classes, k = 0;
  for (int64_t j = 0; j < jobs; j++) {
    if (picks[j].failed) return assay_status_no_memory();
    n += picks[j].n;
  }
  int64_t dims[2] = {n, 3};
  assay_tensor_t* out;
  ASSAY_TRY(assay_eval_output(c, 0, ASSAY_TYPE_INT64, 2, dims, &out));
  for (int64_t j = 0; j < jobs; j++) {
    for (int64_t i = 0; i < picks[j].n; i++) {
      assay_i64(out)[k++] = j / p->classes;
      assay_i64(out)[k++] = j % p->classes;
      assay_i64(out)[k++] = picks[j].index[i];
    }
  }
  return NULL;
}

// Source: ONNX NonMaxSuppression-10, -11.
static assay_status_t nms_eval(assay_eval_t* c) {
  nms_t p;
  ASSAY_TRY(nms_read(c, &p));
  int64_t jobs, n_boxes = p.batches * p.boxes;
  if (!assay_mul_i64(p.batches, p.classes, &jobs)) return assay_status_no_memory();
  if (n_boxes == 0 || p.limit == 0) jobs = p.classes = 0;
  box_t* corners = NULL;
  picks_t* picks = NULL;
  ASSAY_TRY(assay_new_array((size_t)n_boxes, sizeof *corners, &corners));
  assay_status_t st = assay_new_array((size_t)jobs, sizeof *picks, &picks);
  if (st) return assay_free(corners), st;
  for (int64_t i = 0; i < n_boxes; i++) {
    corners[i] = box_sorted(box_read(assay_f64(c->in[0]) + 4 * i, p.centered));
  }
  p.corners = corners;
#pragma omp parallel for schedule(static) if (jobs > 1 && jobs * p.boxes > 20000)
  for (int64_t j = 0; j < jobs; j++) nms_class(&p, j / p.classes, j % p.classes, &picks[j]);
  st = nms_write(c, &p, picks);
  for (int64_t j = 0; j < jobs; j++) assay_free(picks[j].index);
  assay_free(picks);
  assay_free(corners);
  return st;
}

// ---- bounds of choices -------------------------------------------------------------------------
//
// Which boxes are kept hangs on comparing rounded overlaps with a threshold. Up to the first
// comparison that rounding could turn, all engines keep the same boxes; there, one that takes the
// threshold a little higher and one that takes it a little lower part. So if those two agree, all
// do. The documented order compares in float64: its choice is truth's.

// How far an overlap may be off: a few relative roundings of differences, products and a quotient;
// corners that are made of center and size are off by more, against the sides.
static double overlap_error(double u, bool made, const box_t* boxes, int64_t n) {
  double far = 0;
  for (int64_t i = 0; made && i < n; i++) {
    const box_t b = box_sorted(boxes[i]);
    const double max = fmax(fmax(fabs(b.y1), fabs(b.y2)), fmax(fabs(b.x1), fabs(b.x2)));
    const double side = fmin(b.y2 - b.y1, b.x2 - b.x1);
    if (side > 0) far = fmax(far, max / side);
  }
  return u * (16 + 64 * far);
}

static void choice_limits(double* g, double* p, int64_t n, bool certain) {
  for (int64_t i = 0; g && i < n; i++) g[i] = p[i] = certain ? 0 : (double)INFINITY;
}

static bool same_picks(const picks_t* a, const picks_t* b) {
  return !a->failed && !b->failed && a->n == b->n &&
         (a->n == 0 || !memcmp(a->index, b->index, (size_t)a->n * sizeof *a->index));
}

static assay_status_t nms_bound(assay_bound_t* c) {
  const assay_eval_t e = assay_bound_as_eval(c);
  ASSAY_TRY(assay_bound_want_exact(c, SIZE_MAX));
  if (c->rounding->documented || c->out[0]->size == 0) return NULL;
  nms_t p;
  box_t* corners = NULL;
  double *g, *likely;
  ASSAY_TRY(nms_read(&e, &p));
  ASSAY_TRY(assay_bound_output(c, 0, &g, &likely));
  const int64_t n = p.batches * p.boxes;
  ASSAY_TRY(assay_new_array((size_t)n, sizeof *corners, &corners));
  for (int64_t i = 0; i < n; i++)
    corners[i] = box_sorted(box_read(assay_f64(c->in[0]) + 4 * i, p.centered));
  p.corners = corners;
  const double u = assay_bound_unit(c->rounding->compute), threshold = p.iou_threshold;
  const double error = overlap_error(u, p.centered, corners, n);
  bool certain = true;
  for (int64_t j = 0; certain && j < p.batches * p.classes; j++) {
    picks_t picks[2] = {{0}};
    for (int side = 0; side < 2; side++) {
      p.iou_threshold = threshold + (side ? error : -error);
      nms_class(&p, j / p.classes, j % p.classes, &picks[side]);
    }
    certain = same_picks(&picks[0], &picks[1]);
    assay_free(picks[0].index);
    assay_free(picks[1].index);
  }
  assay_free(corners);
  choice_limits(g, likely, c->out[0]->size, certain);
  return NULL;
}

// ---- EfficientNMS_TRT ------------------------------------------------------------------------

// Source: NVIDIA TensorRT, plugin/efficientNMSPlugin (README.md and efficientNMSInference.cu):
// scores at or above the threshold, of all classes but the background, in falling order; the best
// 4096 of an image are looked at; a box goes if its IOU with a better kept one of its class (of
// any, if class agnostic) is at or above the threshold. Outputs are filled up with zeros. Equal
// scores: the plugin leaves their order open; here the lower box and class come first.
enum { EFFICIENT_CANDIDATES = 4096 };

typedef struct efficient {
  int64_t batches, boxes, classes, max, background;
  bool sigmoid, agnostic, centered, per_class_boxes, per_image_anchors;
  double iou_threshold, score_threshold;
  const double *box_data, *scores, *anchors;  // anchors NULL: boxes need no decoding
} efficient_t;

static assay_status_t efficient_infer(assay_infer_t* c) {
  ASSAY_TRY(assay_infer_want_rank(c, 0, 3, 4));
  ASSAY_TRY(assay_infer_want_rank(c, 1, 3, 4));
  if (assay_infer_has(c, 2)) ASSAY_TRY(assay_infer_want_rank(c, 2, 3, 3));
  int64_t max = assay_attr_i64(c->node, "max_output_boxes", 100);
  if (max < 0) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "attribute max_output_boxes is %lld, expected 0 or more",
                            (long long)max);
  }
  assay_shape_t boxes = assay_infer_shape(c, 0), out = {.known = true, .rank = 2};
  assay_type_t type = assay_infer_elem(c, 0);
  out.dims[0] = boxes.known ? boxes.dims[0] : NULL;
  out.dims[1] = assay_dim_const(c->dims, 1);
  ASSAY_TRY(assay_infer_set(c, 0, ASSAY_TYPE_INT32, &out));
  out.dims[1] = assay_dim_const(c->dims, max);
  ASSAY_TRY(assay_infer_set(c, 2, type, &out));
  ASSAY_TRY(assay_infer_set(c, 3, ASSAY_TYPE_INT32, &out));
  out.rank = 3;
  out.dims[2] = assay_dim_const(c->dims, 4);
  return assay_infer_set(c, 1, type, &out);
}

static assay_status_t efficient_shapes(const assay_eval_t* c) {
  const assay_tensor_t *b = c->in[0], *s = c->in[1], *a = assay_eval_has(c, 2) ? c->in[2] : NULL;
  bool fits = (s->rank == 3 || (s->rank == 4 && s->dims[3] == 1)) &&
              (b->rank == 3 || b->rank == 4) && b->dims[b->rank - 1] == 4;
  if (fits) {
    fits = b->dims[0] == s->dims[0] && b->dims[1] == s->dims[1] &&
           (b->rank == 3 || b->dims[2] == 1 || b->dims[2] == s->dims[2]);
  }
  if (fits && a) {
    fits = a->rank == 3 && (a->dims[0] == 1 || a->dims[0] == b->dims[0]) &&
           a->dims[1] == b->dims[1] && a->dims[2] == 4;
  }
  if (fits) return NULL;
  return ASSAY_NODE_ERROR(
      c->node, ASSAY_INVALID_ARGUMENT,
      "boxes are %s, scores %s, anchors %s; expected [batch, boxes, 4] or "
      "[batch, boxes, classes, 4], [batch, boxes, classes], [1 or batch, boxes, "
      "4]",
      ASSAY_DIMS_TEXT(b), ASSAY_DIMS_TEXT(s), a ? ASSAY_DIMS_TEXT(a) : "left out");
}

static assay_status_t efficient_read(const assay_eval_t* c, efficient_t* p) {
  ASSAY_TRY(efficient_shapes(c));
  const assay_tensor_t *b = c->in[0], *s = c->in[1];
  const assay_node_t* n = c->node;
  *p = (efficient_t){.batches = s->dims[0],
                     .boxes = s->dims[1],
                     .classes = s->dims[2],
                     .max = assay_attr_i64(n, "max_output_boxes", 100),
                     .background = assay_attr_i64(n, "background_class", -1),
                     .sigmoid = assay_attr_i64(n, "score_activation", 0) != 0,
                     .agnostic = assay_attr_i64(n, "class_agnostic", 0) != 0,
                     .centered = assay_attr_i64(n, "box_coding", 0) == 1,
                     .per_class_boxes = b->rank == 4 && b->dims[2] != 1,
                     .iou_threshold = assay_attr_f64(n, "iou_threshold", 0.5),
                     .score_threshold = assay_attr_f64(n, "score_threshold", 0.5),
                     .box_data = assay_f64(b),
                     .scores = assay_f64(s)};
  if (assay_eval_has(c, 2)) {
    p->anchors = assay_f64(c->in[2]);
    p->per_image_anchors = c->in[2]->dims[0] != 1;
  }
  // Raw scores are compared with the threshold's logit, and activated only when they are kept.
  if (p->sigmoid) {
    double t = p->score_threshold;
    p->score_threshold = t <= 0 ? -INFINITY : t >= 1 ? INFINITY : assay_log(t / (1 - t));
  }
  int64_t coding = assay_attr_i64(n, "box_coding", 0);
  if (coding == 0 || coding == 1) return NULL;
  return ASSAY_NODE_ERROR(n, ASSAY_INVALID_ARGUMENT,
                          "attribute box_coding is %lld, expected 0 or 1", (long long)coding);
}

// The box of a score: decoded against its anchor, as corners in the order that is written out.
static box_t efficient_box(const efficient_t* p, int64_t batch, int64_t index) {
  int64_t anchor = index / p->classes;
  int64_t at = batch * p->boxes + anchor;
  if (p->per_class_boxes) at = at * p->classes + index % p->classes;
  const double* v = p->box_data + 4 * at;
  if (!p->anchors) return box_read(v, p->centered);
  const double* a = p->anchors + 4 * ((p->per_image_anchors ? batch * p->boxes : 0) + anchor);
  if (p->centered) {
    double decoded[4] = {v[0] * a[2] + a[0], v[1] * a[3] + a[1], a[2] * assay_exp(v[2]),
                         a[3] * assay_exp(v[3])};
    return box_read(decoded, true);
  }
  box_t x = box_sorted(box_read(v, false)), y = box_sorted(box_read(a, false));
  return (box_t){x.y1 + y.y1, x.x1 + y.x1, x.y2 + y.y2, x.x2 + y.x2};
}

// Where one image's results go; NULL: not wanted.
typedef struct efficient_out {
  double *boxes, *scores;
  int64_t *n, *classes;
  int64_t* index;  // for bounds: of the scores
} efficient_out_t;

static void efficient_emit(const efficient_t* p, const efficient_out_t* out, int64_t k,
                           const box_t* box, const candidate_t* from) {
  if (out->boxes) {
    double* v = out->boxes + 4 * k;
    v[0] = box->y1, v[1] = box->x1, v[2] = box->y2, v[3] = box->x2;
  }
  if (out->scores) out->scores[k] = p->sigmoid ? 1 / (1 + assay_exp(-from->score)) : from->score;
  if (out->classes) out->classes[k] = from->index % p->classes;
  if (out->index) out->index[k] = from->index;
}

// list has room for all scores of an image, kept for the candidates that are looked at.
static void efficient_image(const efficient_t* p, int64_t batch, candidate_t* list, box_t* sorted,
                            int64_t* kept, const efficient_out_t* out) {
  int64_t total = p->boxes * p->classes, n = 0, n_kept = 0;
  for (int64_t i = 0; i < total; i++) {
    double score = p->scores[batch * total + i];
    if (!(score >= p->score_threshold) || i % p->classes == p->background) continue;
    list[n++] = (candidate_t){score, i};
  }
  qsort(list, (size_t)n, sizeof *list, candidate_order);
  if (n > EFFICIENT_CANDIDATES) n = EFFICIENT_CANDIDATES;
  for (int64_t i = 0; i < n && n_kept < p->max; i++) {
    box_t box = efficient_box(p, batch, list[i].index);
    sorted[i] = box_sorted(box);
    bool keep = true;
    for (int64_t k = 0; keep && k < n_kept; k++) {
      bool same = list[i].index % p->classes == list[kept[k]].index % p->classes;
      if (!p->agnostic && !same) continue;
      keep = !(box_iou(&sorted[i], &sorted[kept[k]]) >= p->iou_threshold);
    }
    if (!keep) continue;
    efficient_emit(p, out, n_kept, &box, &list[i]);
    kept[n_kept++] = i;
  }
  if (out->n) *out->n = n_kept;
}

static assay_status_t efficient_outputs(assay_eval_t* c, const efficient_t* p,
                                        efficient_out_t* out) {
  int64_t dims[3] = {p->batches, 1, 4};
  assay_type_t type = c->in[0]->type;
  assay_tensor_t* t[4] = {NULL};
  for (size_t i = 0; i < 4; i++) {
    if (!assay_eval_wants(c, i)) continue;
    dims[1] = i == 0 ? 1 : p->max;
    bool real = i == 1 || i == 2;
    ASSAY_TRY(assay_eval_output(c, i, real ? type : ASSAY_TYPE_INT32, i == 1 ? 3 : 2, dims, &t[i]));
    ASSAY_TRY(assay_fill_zero(t[i]));
  }
  *out = (efficient_out_t){.n = t[0] ? assay_i64(t[0]) : NULL,
                           .boxes = t[1] ? assay_f64(t[1]) : NULL,
                           .scores = t[2] ? assay_f64(t[2]) : NULL,
                           .classes = t[3] ? assay_i64(t[3]) : NULL};
  return NULL;
}

static assay_status_t efficient_eval(assay_eval_t* c) {
  efficient_t p;
  efficient_out_t all;
  ASSAY_TRY(efficient_read(c, &p));
  ASSAY_TRY(efficient_outputs(c, &p, &all));
  candidate_t* list = NULL;
  box_t* sorted = NULL;
  int64_t* kept = NULL;
  int64_t total = p.boxes * p.classes;
  assay_status_t st = assay_new_array((size_t)total, sizeof *list, &list);
  if (!st) st = assay_new_array(EFFICIENT_CANDIDATES, sizeof *sorted, &sorted);
  if (!st) st = assay_new_array(EFFICIENT_CANDIDATES, sizeof *kept, &kept);
  for (int64_t b = 0; !st && b < p.batches; b++) {
    efficient_out_t out = {.n = all.n ? all.n + b : NULL,
                           .boxes = all.boxes ? all.boxes + b * p.max * 4 : NULL,
                           .scores = all.scores ? all.scores + b * p.max : NULL,
                           .classes = all.classes ? all.classes + b * p.max : NULL};
    efficient_image(&p, b, list, sorted, kept, &out);
  }
  assay_free(list);
  assay_free(sorted);
  assay_free(kept);
  return st;
}

// ---- EfficientNMS_TRT: bounds

typedef assay_number_t num_t;

// The coordinates of a box as efficient_box makes them: y1 x1 y2 x2.
static void efficient_box_numbers(const assay_arithmetic_t* r, const efficient_t* p, int64_t batch,
                                  int64_t index, num_t* out) {
  const int64_t anchor = index / p->classes;
  int64_t at = batch * p->boxes + anchor;
  if (p->per_class_boxes) at = at * p->classes + index % p->classes;
  const double* v = p->box_data + 4 * at;
  num_t x[4], a[4];
  for (int k = 0; k < 4; k++) x[k] = out[k] = assay_number_exact(v[k]);
  if (p->anchors) {
    const double* from = p->anchors + 4 * ((p->per_image_anchors ? batch * p->boxes : 0) + anchor);
    for (int k = 0; k < 4; k++) a[k] = assay_number_exact(from[k]);
    if (!p->centered) {  // corners sorted, then added: which goes with which is exact
      const box_t s = box_sorted(box_read(v, false)), t = box_sorted(box_read(from, false));
      const double first[4] = {s.y1, s.x1, s.y2, s.x2}, second[4] = {t.y1, t.x1, t.y2, t.x2};
      for (int k = 0; k < 4; k++)
        out[k] = assay_number_add(r, assay_number_exact(first[k]), assay_number_exact(second[k]));
      return;
    }
    for (int k = 0; k < 2; k++) {
      const num_t grown = assay_number_function(r, assay_exp, (double)INFINITY, x[2 + k]);
      x[k] = assay_number_add(r, assay_number_mul(r, x[k], a[2 + k]), a[k]);
      x[2 + k] = assay_number_mul(r, a[2 + k], grown);
    }
  }
  if (!p->centered) return;
  for (int k = 0; k < 2; k++) {
    const num_t half = assay_number_mul(r, x[2 + k], assay_number_exact(0.5));
    out[k] = assay_number_sub(r, x[k], half);
    out[2 + k] = assay_number_add(r, x[k], half);
  }
}

static double efficient_sigmoid(double x) { return 1 / (1 + assay_exp(-x)); }

// Room for one image.
typedef struct efficient_scratch {
  candidate_t* list;
  box_t* sorted;
  int64_t *kept, *index[2];
} efficient_scratch_t;

// What is kept, into m->index[0]; false if thresholds a little off keep something else.
static assay_status_t efficient_choose(const assay_bound_t* c, const efficient_t* p, int64_t batch,
                                       efficient_scratch_t* m, int64_t* n, bool* certain) {
  const double u = assay_bound_unit(c->rounding->compute);
  efficient_out_t out = {.n = n, .index = m->index[0]};
  efficient_image(p, batch, m->list, m->sorted, m->kept, &out);
  *certain = true;
  if (c->rounding->documented) return NULL;
  box_t* boxes = NULL;
  ASSAY_TRY(assay_new_array((size_t)(p->boxes * p->classes), sizeof *boxes, &boxes));
  for (int64_t i = 0; i < p->boxes * p->classes; i++) boxes[i] = efficient_box(p, batch, i);
  const double error = overlap_error(u, p->centered || p->anchors, boxes, p->boxes * p->classes);
  assay_free(boxes);
  for (int side = 0; side < 4; side++) {
    efficient_t q = *p;
    int64_t others = 0;
    q.iou_threshold += side & 1 ? error : -error;
    if (p->sigmoid) q.score_threshold += (side & 2 ? 8 : -8) * u * (1 + fabs(p->score_threshold));
    out = (efficient_out_t){.n = &others, .index = m->index[1]};
    efficient_image(&q, batch, m->list, m->sorted, m->kept, &out);
    *certain = *certain && others == *n &&
               !memcmp(m->index[0], m->index[1], (size_t)*n * sizeof *m->index[0]);
  }
  return NULL;
}

static void efficient_limits(assay_bound_t* c, const efficient_t* p, int64_t batch,
                             const int64_t* index, int64_t n, bool certain) {
  const assay_arithmetic_t r = assay_arithmetic_of(c);
  double *g[4], *l[4];
  for (size_t i = 0; i < 4; i++) {
    const bool there = i < c->n_out && c->out_error[i].guaranteed;
    const int64_t each = i == 0 ? 1 : i == 1 ? 4 * p->max : p->max;
    g[i] = there ? assay_f64(c->out_error[i].guaranteed) + batch * each : NULL;
    l[i] = there ? assay_f64(c->out_error[i].probable) + batch * each : NULL;
    choice_limits(g[i], l[i], each, certain);
  }
  for (int64_t k = 0; certain && k < n; k++) {
    num_t box[4], score = assay_number_exact(p->scores[batch * p->boxes * p->classes + index[k]]);
    efficient_box_numbers(&r, p, batch, index[k], box);
    for (int i = 0; g[1] && i < 4; i++)
      assay_number_limits(&r, box[i], &g[1][4 * k + i], &l[1][4 * k + i]);
    if (!g[2] || !p->sigmoid) continue;
    score = assay_number_function(&r, efficient_sigmoid, (double)INFINITY, score);
    score = assay_number_round(&r, 2 * r.inner.u, score);
    assay_number_limits(&r, score, &g[2][k], &l[2][k]);
  }
}

static assay_status_t efficient_bound(assay_bound_t* c) {
  const assay_eval_t e = assay_bound_as_eval(c);
  efficient_t p;
  efficient_scratch_t m = {0};
  ASSAY_TRY(assay_bound_want_exact(c, SIZE_MAX));
  ASSAY_TRY(efficient_read(&e, &p));
  const size_t total = (size_t)(p.boxes * p.classes), max = EFFICIENT_CANDIDATES;
  assay_status_t st = assay_new_array(total, sizeof *m.list, &m.list);
  if (!st) st = assay_new_array(max, sizeof *m.sorted, &m.sorted);
  if (!st) st = assay_new_array(max, sizeof *m.kept, &m.kept);
  for (int k = 0; !st && k < 2; k++) st = assay_new_array(max, sizeof *m.index[k], &m.index[k]);
  for (size_t i = 0; !st && i < c->n_out; i++) {
    double *g, *l;
    st = assay_bound_output(c, i, &g, &l);
  }
  for (int64_t b = 0; !st && b < p.batches; b++) {
    int64_t n = 0;
    bool certain = true;
    st = efficient_choose(c, &p, b, &m, &n, &certain);
    if (!st) efficient_limits(c, &p, b, m.index[0], n, certain);
  }
  assay_free(m.list);
  assay_free(m.sorted);
  assay_free(m.kept);
  assay_free(m.index[0]);
  assay_free(m.index[1]);
  return st;
}

#define EFFICIENT_SCHEMA                                                                       \
  "boxes:T, scores:T, anchors?:T -> num_detections:I, detection_boxes:T, detection_scores:T, " \
  "detection_classes:I | score_threshold:f=0.5, iou_threshold:f=0.5, max_output_boxes:i=100, " \
  "background_class:i=-1, score_activation:i=0, class_agnostic:i=0, box_coding:i=0, "          \
  "plugin_version:s=1, plugin_namespace:s | T=float16 float double; I=int32"

const assay_op_t assay_ops_detect[] = {
    {.domain = "",
     .name = "NonMaxSuppression",
     .since = 10,
     .discrete = 1,
     .infer = nms_infer,
     .eval = nms_eval,
     .bound = nms_bound},
    // As NVIDIA's exporters write it: in the default domain, or in their own.
    {.domain = "",
     .name = "EfficientNMS_TRT",
     .since = 1,
     .discrete = 1 | 8,
     .schema = EFFICIENT_SCHEMA,
     .infer = efficient_infer,
     .eval = efficient_eval,
     .bound = efficient_bound},
    {.domain = "trt.plugins",
     .name = "EfficientNMS_TRT",
     .since = 1,
     .discrete = 1 | 8,
     .schema = EFFICIENT_SCHEMA,
     .infer = efficient_infer,
     .eval = efficient_eval,
     .bound = efficient_bound},
    {0}};
