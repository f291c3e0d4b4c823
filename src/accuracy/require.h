// What the user demands of a model's outputs: "logits: cosine >= 0.999", "top1 >= 0.99".
//
//   [OUTPUT:] STATISTIC OP VALUE     OP is one of >= > <= < ==
//
// Statistics compare the engine's outputs with truth over all samples: cosine, snr_db, psnr_db (peak: truth's
// largest magnitude), max_abs, max_rel, mean (of the error), rms, nan, inf (elements that truth has finite), top1, top5 (rows
// along the last dimension whose 1 or 5 largest elements are the same), differing (integers);
// golden_psnr_db, golden_snr_db, golden_max_abs: engine against golden; drop_psnr_db: how much lower golden_psnr_db
// is than truth's against golden. Without OUTPUT a demand holds for every output that has the statistic.
//
// A demand with {outputs} in it is a command of the user's instead (script.h): its exit code decides.
#ifndef ASSAY_ACCURACY_REQUIRE_H_
#define ASSAY_ACCURACY_REQUIRE_H_

#include "base/str.h"
#include "formats/error_sum.h"
#include "ir/ir.h"

struct assay_output_check;

typedef enum assay_relation {
  ASSAY_AT_LEAST = 0,
  ASSAY_ABOVE,
  ASSAY_AT_MOST,
  ASSAY_BELOW,
  ASSAY_EQUAL,
} assay_relation_t;

typedef struct assay_requirement {
  const char* output;     // NULL: all
  int statistic;          // a row of the table
  assay_relation_t relation;
  double value;
  const char* text;       // as written
  bool command;           // text is a command; nothing else is set
} assay_requirement_t;

typedef struct assay_requirements {
  assay_requirement_t* at;
  size_t n, capacity;
  char** texts;           // what the entries point into
  size_t n_texts, cap_texts;
} assay_requirements_t;

// Appends a demand. Errors: INVALID_ARGUMENT with what is wrong and what there is.
assay_status_t assay_require_parse(assay_requirements_t* r, const char* text) ASSAY_MUST_USE;
void assay_requirements_deinit(assay_requirements_t* r);
// Fails with NOT_FOUND if a demand names an output that the graph does not have.
assay_status_t assay_require_resolve(const assay_requirements_t* r,
                                     const assay_graph_t* g) ASSAY_MUST_USE;

// Whether all demands on this output hold. Appends what does not to *why (may be NULL).
bool assay_require_holds(const assay_requirements_t* r, const struct assay_output_check* output,
                         assay_str_t* why);
// The statistic that a demand is about: its name, and its value for an output. False: it is not about this output.
bool assay_require_value(const assay_requirement_t* q, const struct assay_output_check* output,
                         const char** out_name, double* out_value);
// Whether there are demands on statistics, and commands.
bool assay_require_has_statistics(const assay_requirements_t* r);
bool assay_require_has_commands(const assay_requirements_t* r);
// The part of an output's error, as energy, that may stay so that all demands on it hold: 1 where they do; to
// first order, and a guess where a demand is no function of the energy.
double assay_require_room(const assay_requirements_t* r, const struct assay_output_check* output);
// Whether a demand speaks of golden.
bool assay_require_needs_golden(const assay_requirements_t* r);

#endif  // ASSAY_ACCURACY_REQUIRE_H_
