// A model's quantizers by other scales in a run that rounds as the model declares.
//
// QuantizeLinear gets other scales and zero points in place of its inputs; of stored integers
// what DequantizeLinear makes of them is put in place of its output, since scales may lie along
// another axis, or the bytes be of the other sign.
#include <math.h>

#include "base/alloc.h"
#include "diagnose/quantizers/states.h"

// What arithmetic may leave of a number next to the middle of two steps.
static const double TIE = 1.0 / 64;

static assay_status_t replace(assay_tensor_t** in, double value, bool is_float) {
  assay_tensor_t* t = NULL;
  const assay_type_t type = (*in)->type;
  ASSAY_TRY(assay_tensor_create(type, (*in)->rank, (*in)->dims, &t));
  for (int64_t i = 0; i < t->size; i++)
    if (is_float)
      assay_f64(t)[i] = value;
    else
      assay_i64(t)[i] = (int64_t)value;
  assay_tensor_release(*in);
  *in = t;
  return NULL;
}

static assay_status_t put_scale(const assay_quantizer_scales_t* by, size_t n_in,
                                assay_tensor_t** in) {
  if (by->n != 1 || n_in < 2 || !in[1]) return NULL;
  ASSAY_TRY(replace(&in[1], by->scale[0], true));
  return n_in > 2 && in[2] ? replace(&in[2], by->zero[0], false) : NULL;
}

// Numbers that are moved by what ties may be.
static assay_status_t move_ties(const assay_quantizer_site_t* s, assay_tensor_t** t) {
  assay_tensor_t *wide = NULL, *moved = NULL;
  ASSAY_TRY(assay_tensor_widen(*t, &wide));
  assay_status_t st = wide->store == ASSAY_STORE_F64 ? assay_tensor_copy(wide, &moved) : NULL;
  for (int64_t i = 0; moved && i < moved->size; i++)
    assay_f64(moved)[i] +=
        TIE * assay_quantizer_chance(i) * s->has.scale[assay_quantizer_scale_at(&s->has, moved, i)];
  assay_tensor_release(wide);
  if (!moved) return st;
  assay_tensor_release(*t);
  *t = moved;
  return NULL;
}

assay_status_t assay_written_before(const assay_quantizer_site_t* s, assay_quantizer_state_t state,
                                    bool dequantizes, size_t n_in, assay_tensor_t** in) {
  if (s->stored) return NULL;
  switch (state) {
    case ASSAY_STATE_FITS:
      return s->fits.n ? put_scale(&s->fits, n_in, in) : NULL;
    case ASSAY_STATE_PAIRED:
      return dequantizes ? put_scale(&s->has, n_in, in) : NULL;
    case ASSAY_STATE_READ:
      return dequantizes ? NULL : put_scale(&s->reads, n_in, in);
    case ASSAY_STATE_TIES:
      return dequantizes || !n_in || !in[0] ? NULL : move_ties(s, &in[0]);
    default:
      return NULL;
  }
}

assay_status_t assay_written_after(const assay_quantizer_site_t* s, assay_quantizer_state_t state,
                                   size_t n_out, assay_tensor_t** out) {
  static const double FARTHER = 1.25;  // what was cut off was larger
  assay_tensor_t *wide = NULL, *t = NULL;
  bool* cut = NULL;
  const bool away = state == ASSAY_STATE_AWAY, fits = state == ASSAY_STATE_FITS && s->fits.n;
  const assay_quantizer_scales_t* by = away ? &s->has : &s->fits;
  if (!s->stored || (!away && !fits) || !n_out || !out[0]) return NULL;
  ASSAY_TRY(assay_quantizer_integers(s, &wide));
  assay_status_t st = assay_tensor_create(out[0]->type, wide->rank, wide->dims, &t);
  if (!st && away && s->bias) st = assay_quantizer_cut_off(s, wide, &cut);
  for (int64_t i = 0; !st && i < wide->size; i++) {
    const int64_t k = assay_quantizer_scale_at(by, wide, i);
    const double q = (double)assay_i64(wide)[i];
    double steps = (s->other_sign && fits ? assay_quantizer_other_sign(q) : q) - by->zero[k];
    if (away && cut)
      steps *= cut[i] ? FARTHER : 1;
    else if (away)
      steps += steps > 0 ? 0.5 : steps < 0 ? -0.5 : 0;
    assay_f64(t)[i] = (double)(float)(steps * by->scale[k]);
  }
  assay_tensor_release(wide);
  assay_free(cut);
  if (st) return assay_tensor_release(t), st;
  assay_tensor_release(out[0]);
  out[0] = t;
  return NULL;
}
