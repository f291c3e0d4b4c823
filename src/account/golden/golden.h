// Golden tensors: what the user knows of a model's values from elsewhere, and how far truth may lie
// from them.
#ifndef ASSAY_ACCOUNT_GOLDEN_GOLDEN_H_
#define ASSAY_ACCOUNT_GOLDEN_GOLDEN_H_

#include <assay/golden.h>

#include "base/str.h"
#include "data/samples.h"
#include "io/saved.h"
#include "io/set.h"
#include "ir/ir.h"

struct assay_golden_origin;

typedef enum assay_golden_match {
  ASSAY_GOLDEN_BY_NAME = 0,
  ASSAY_GOLDEN_BY_MAP,
  ASSAY_GOLDEN_BY_CONTENT,  // by shape and statistics
} assay_golden_match_t;

typedef struct assay_golden_tensor {
  const char* name;            // in the user's file; owned by the golden
  const assay_value_t* value;  // NULL: matched nothing
  assay_tensor_t* tensor;      // as it was read, perhaps packed in a mapped file; retained
  assay_golden_match_t match;
  bool lost_axes;  // no array of its file has an axis of one: it may lack some that its value has
} assay_golden_tensor_t;

// Inside the library golden is what was matched; public one (assay/golden.h) also knows where it is
// from.
struct assay_golden {
  assay_golden_tensor_t* at;
  size_t n, capacity;
  assay_str_t notes;                        // lines for the user
  struct assay_golden_origin* origin;       // of public one (golden_public.c); NULL: not public
  const struct assay_golden* matched_from;  // of one matched with another model: borrowed
};

void assay_golden_deinit(assay_golden_t* g);
void assay_golden_origin_destroy(struct assay_golden_origin* origin);  // NULL is allowed

// Of public golden: the arrays, as they were read, matched with another model by their names, and
// what was found by its contents by the names of that. `out` borrows samples of g.
assay_status_t assay_golden_rematch(const assay_golden_t* g, const assay_model_t* model,
                                    assay_golden_t* out) ASSAY_MUST_USE;
// Samples of the outputs: n 0 if there are none. NULL: it is not of a public one.
const assay_samples_t* assay_golden_samples(const assay_golden_t* g);
// All arrays of a public one, by their names: of all samples, one after the other; of the first,
// where those of the samples differ in shape.
const assay_set_t* assay_golden_arrays(const assay_golden_t* g);
// The arrays of each sample, where their shapes differ or the model does not tell their rank, so
// that none can be cut from those of all; NULL: they can. Borrowed.
const assay_saved_t* assay_golden_runs(const assay_golden_t* g);
// Whether an array differs in shape between the runs, or some have it and others have not.
bool assay_golden_runs_differ(const assay_saved_t* runs);
// The array of this name in sample k of n, of assay_golden_runs(), canonical or packed. *out_known
// false: samples are cut from what holds them all. *out NULL: golden knows nothing of it there;
// else retained.
assay_status_t assay_golden_of_sample(const assay_saved_t* runs, const char* name, size_t k,
                                      size_t n, bool* out_known,
                                      assay_tensor_t** out) ASSAY_MUST_USE;
// Where only contents told which values the arrays are, outputs are taken from them.
// Errors: INVALID_ARGUMENT no array is a value of the model (an output, if the user gave outputs).
assay_status_t assay_golden_settle(assay_golden_t* g) ASSAY_MUST_USE;
// For who needs outputs alone. Errors: INVALID_ARGUMENT no array has the name of an output, or it
// is of another model.
assay_status_t assay_golden_want_outputs(assay_golden_t* g,
                                         const assay_model_t* model) ASSAY_MUST_USE;
// The model that it was made of.
const assay_model_t* assay_golden_model(const assay_golden_t* g);

// Takes the arrays of a set and finds the model's value of each: by name, by name with '|' in place
// of '/', by the map (pairs of the user's name and the model's; NULL: none). Arrays without a match
// stay with value NULL. The arrays are not converted: inner values of a large network would take
// twice their size or more. Errors: NOT_FOUND if the map names a value that the model does not
// have; those of assay_name_map_check.
typedef struct assay_name_map {
  char** from;  // the user's
  char** to;    // the model's
  size_t n;
} assay_name_map_t;
assay_status_t assay_golden_match(const assay_set_t* set, const assay_model_t* model,
                                  const assay_name_map_t* map, assay_golden_t* out) ASSAY_MUST_USE;
// An array as golden keeps it: canonical or packed; what is made only when it is widened is made
// here, once.
assay_status_t assay_golden_as_read(assay_tensor_t* t, assay_tensor_t** out) ASSAY_MUST_USE;
// The value that an array of this name is of; NULL: none.
const assay_value_t* assay_golden_value(const assay_model_t* model, const assay_name_map_t* map,
                                        const char* name);
assay_golden_tensor_t* assay_golden_of(const assay_golden_t* g, const assay_value_t* value);

// What is known of a graph's outputs, as one sample (of all rows): for statistics of outputs.
assay_status_t assay_golden_outputs(const assay_golden_t* g, const assay_graph_t* graph,
                                    assay_samples_t* out) ASSAY_MUST_USE;

// For messages: "; did you mean 'scores' by 'scoers'?", of an array that is not an output and an
// output without an array; "" if no names are near. Gives `out` back.
const char* assay_golden_misspelt(const assay_set_t* set, const assay_graph_t* g, char* out,
                                  size_t size);
// Reads such a map: JSON, an object {"user's name": "model's name", ...}.
assay_status_t assay_name_map_read(const char* path, assay_name_map_t* out) ASSAY_MUST_USE;
void assay_name_map_deinit(assay_name_map_t* map);
// INVALID_ARGUMENT where the map holds the model's names on the left, and on the right those of the
// set. What it names and neither has may be of another file.
assay_status_t assay_name_map_check(const assay_name_map_t* map, const assay_set_t* set,
                                    const assay_model_t* model) ASSAY_MUST_USE;

// How two tensors differ. Integers and bools count as differing where they are not equal.
typedef struct assay_difference {
  bool comparable;  // same kind of elements, and shapes that fit
  double rms, max;  // of the difference
  double ref_rms, ref_max;
  int64_t mismatched;  // not finite on one side, or integers that differ
  int64_t n;
} assay_difference_t;
// got may have more rows (leading dimension) than ref: the first ones are compared. NULL is not
// comparable.
assay_difference_t assay_difference(const assay_tensor_t* got, const assay_tensor_t* ref);

#endif  // ASSAY_ACCOUNT_GOLDEN_GOLDEN_H_
