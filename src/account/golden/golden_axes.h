// Golden that was saved without axes of one.
#ifndef ASSAY_ACCOUNT_GOLDEN_GOLDEN_AXES_H_
#define ASSAY_ACCOUNT_GOLDEN_GOLDEN_AXES_H_

#include "account/golden/golden.h"

// assay_golden_value, handed in.
typedef const assay_value_t* assay_golden_value_t(const assay_model_t* model,
                                                  const assay_name_map_t* map, const char* name);

// Puts the axes of one that the model's values have into the arrays, where no array of all runs has
// one: so numpy.squeeze leaves them. map: NULL, or as for assay_golden_match. *out_lost: none has.
// *notes: a line where there are any.
assay_status_t assay_golden_put_axes_in(assay_saved_t* runs, const assay_model_t* model,
                                        const assay_name_map_t* map, assay_golden_value_t* value_of,
                                        assay_str_t* notes, bool* out_lost) ASSAY_MUST_USE;

#endif  // ASSAY_ACCOUNT_GOLDEN_GOLDEN_AXES_H_
