// What a repair does to its own node and to the cheap ones after it, without following it to the
// targets.
//
// A repair may change its node beyond all measure and still be the right one: a variance that was
// taken over the wrong axis is divided by. So a look goes on through pointwise nodes,
// normalizations and the like as far as the next sums of products, and forecasts from there.
//
// Looks read the machine's slots and write none: several may run at once.
#ifndef ASSAY_DIAGNOSE_SEARCH_SCREENING_H_
#define ASSAY_DIAGNOSE_SEARCH_SCREENING_H_

#include "diagnose/search.h"
#include "diagnose/search_predict.h"

typedef struct assay_screening {
  const assay_search_t* s;
  const assay_predict_t* predict;  // NULL: nothing is predicted
  bool shapes_fit;                 // truth has golden's shapes
  double* work;  // by position: of the nodes up to there, in elements and products
  // By value id.
  size_t* last_reader;  // the position of the last node that reads it
  bool* through;        // all nodes that read it are cheap, and it is not a target
} assay_screening_t;

assay_status_t assay_screening_init(const assay_search_t* s, assay_screening_t* l) ASSAY_MUST_USE;
void assay_screening_deinit(assay_screening_t* l);

// What a repair does to its own node.
typedef struct assay_effect {
  bool fits;      // the nodes can be evaluated with it, and the first gives something else
  bool reshapes;  // an output has another shape; also where only the nodes after it do not take it
  double change;  // RMS over the RMS that it had, of the output that changes most
  // What the targets will do; of a parameter to be fitted: for a small step of it. Of constants
  // that are exchanged: this node's part.
  assay_forecast_t forecast;
} assay_effect_t;

// A look at a repair of the node at a position. The predictor's pass must have come to it.
assay_status_t assay_screen(const assay_screening_t* l, size_t position, const assay_repair_t* r,
                            assay_effect_t* out) ASSAY_MUST_USE;

// Whether a repair's only change is another constant where the node is linear in it: its input.
bool assay_screen_is_linear(const assay_repair_t* r, size_t* out_input);
// A look at such a repair by the derivatives of assay_predict_constant.
void assay_screen_linear(const assay_screening_t* l, const assay_repair_t* r, size_t input,
                         const double* derivatives, assay_effect_t* out);

// ---- for trials ---------------------------------------------------------------------------------

bool assay_search_same_tensor(const assay_tensor_t* a, const assay_tensor_t* b);
// Whether `now` in place of `was` is so large that the targets would not have golden's shapes.
bool assay_search_blown_up(const assay_tensor_t* now, const assay_tensor_t* was);
// Where the search begins to move a parameter that is fitted.
double assay_search_first_step(const assay_repair_t* r);
// Whether a node that reads the value was found at fault, or all may be.
bool assay_search_read_by_faulty(const assay_search_t* s, const assay_value_t* v);

#endif  // ASSAY_DIAGNOSE_SEARCH_SCREENING_H_
