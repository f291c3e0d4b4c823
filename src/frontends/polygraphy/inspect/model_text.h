// A model as text: what inspect model shows.
#ifndef ASSAY_FRONTENDS_POLYGRAPHY_INSPECT_MODEL_TEXT_H_
#define ASSAY_FRONTENDS_POLYGRAPHY_INSPECT_MODEL_TEXT_H_

#include "frontends/polygraphy/job.h"
#include "report/tensor_info.h"

typedef struct pg_show {
  bool layers, attrs, weights;
  int level;                        // of bodies within bodies: how far they are indented
  const assay_tensor_info_t* info;  // statistics, beside what layers read and make; NULL: none
} pg_show_t;

// Name, inputs, outputs, initializers, nodes; failure shows in `out`.
void pg_put_model(assay_str_t* out, const assay_model_t* m, pg_show_t show);
// The same of a plan: profiles, and layers with what runs them. It is run once for that.
assay_status_t pg_put_plan(assay_str_t* out, assay_engine_t* engine, pg_show_t show) ASSAY_MUST_USE;
// " | Stats: mean=..." of a value, where there are any.
void pg_put_stats(assay_str_t* out, const assay_value_t* v, const assay_tensor_info_t* info);
// Whether a node of the layer makes the value.
bool pg_is_made_within(const assay_layer_t* l, const assay_value_t* v);
// "Layer 3    | name [Op: Conv]", and below it what it reads and makes.
void pg_put_layer(assay_str_t* out, const char* kind, size_t index, const char* name,
                  const char* op, const char* in, const char* made);
// Each line of a text after 4 * level spaces, with no line break at the end.
void pg_put_indented(assay_str_t* out, const char* text, int level);
// Without the line breaks and spaces at its end.
void pg_trim(assay_str_t* text);

#endif  // ASSAY_FRONTENDS_POLYGRAPHY_INSPECT_MODEL_TEXT_H_
