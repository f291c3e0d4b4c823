// What the user requires of a model's outputs: "logits: cosine >= 0.999", "boxes[:, 4:] max_abs <=
// 0.01".
//
//   [OUTPUT[PART]:] STATISTIC OP VALUE     OP is one of >= > <= < ==
//
// Statistics compare the engine's outputs with truth over all samples: cosine, snr_db, psnr_db
// (peak: truth's largest magnitude), max_abs, max_rel, mean (of the error), rms, nan, inf (elements
// that truth has finite), top1, top5 (rows along the last dimension whose 1 or 5 largest elements
// are the same), differing (integers); golden_psnr_db, golden_snr_db, golden_max_abs: engine
// against golden; drop_psnr_db: how much lower golden_psnr_db is than truth's against golden.
// Without OUTPUT a requirement is about every output of floats (top1, top5: that has rows;
// differing: of integers). PART is a part of the output as NumPy writes it (slice.h); after it the
// colon may be left out.
//
// What cannot be evaluated is not met, and says why: no output has the statistic, golden lacks the
// output or has another shape, truth holds NaN or infinities, there are no elements.
//
// A requirement with {outputs} in it is a command of the user's instead (script.h): its exit code
// decides.
#ifndef ASSAY_ACCOUNT_REQUIRE_H_
#define ASSAY_ACCOUNT_REQUIRE_H_

#include "base/str.h"
#include "data/slice.h"
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
  const char* output;   // NULL: all
  const char* whole;    // the same with the part: an output that has this name is meant as a whole
  assay_slice_t* part;  // of the output; NULL: all of it
  int statistic;        // a row of the table
  assay_relation_t relation;
  double value;
  const char* text;  // as written
  bool command;      // text is a command; nothing else is set
} assay_requirement_t;

typedef struct assay_requirements {
  assay_requirement_t* at;
  size_t n, capacity;
  char** texts;  // what the entries point into
  size_t n_texts, cap_texts;
} assay_requirements_t;

enum { ASSAY_REQUIREMENT_WHY = 512 };

// What came of a requirement on one output.
typedef struct assay_requirement_result {
  const assay_requirement_t* of;
  const char* output;               // NULL: of a command, or no output has the statistic
  const char* statistic;            // NULL: of a command
  bool known, met;                  // known: it could be evaluated
  double value;                     // of the statistic, if known
  char why[ASSAY_REQUIREMENT_WHY];  // why it is not met
} assay_requirement_result_t;

// Appends a requirement. Errors: INVALID_ARGUMENT with what is wrong and what there is.
assay_status_t assay_require_parse(assay_requirements_t* r, const char* text) ASSAY_MUST_USE;
void assay_requirements_deinit(assay_requirements_t* r);
// Errors: NOT_FOUND a requirement names an output that the graph does not have; INVALID_ARGUMENT
// its part does not fit the output.
assay_status_t assay_require_resolve(const assay_requirements_t* r,
                                     const assay_graph_t* g) ASSAY_MUST_USE;
// Whether a requirement is about a part of this output.
bool assay_require_is_part(const assay_requirement_t* q, const assay_value_t* output);

// What comes of one requirement on an output. False: it is not about this output.
bool assay_require_judge(const assay_requirement_t* q, const struct assay_output_check* output,
                         assay_requirement_result_t* out);
// The same of all, by requirement and output; those that are about no output have a result, too,
// and so do commands (met: by requirement; NULL: not known, they are left out). To be freed with
// assay_free.
assay_status_t assay_require_results(const assay_requirements_t* r,
                                     const struct assay_output_check* outputs, size_t n_outputs,
                                     const bool* met, assay_requirement_result_t** out,
                                     size_t* n_out) ASSAY_MUST_USE;
// Whether all requirements on this output hold. Appends what does not to *why (may be NULL).
bool assay_require_holds(const assay_requirements_t* r, const struct assay_output_check* output,
                         assay_str_t* why);
// Whether one cannot be evaluated on these outputs, in whatever precision the engine runs. Appends
// why (may be NULL).
bool assay_require_is_open(const assay_requirements_t* r, const struct assay_output_check* outputs,
                           size_t n_outputs, assay_str_t* why);
// The statistic that a requirement is about: its name, and its value for an output. False: it is
// not about this output, or cannot be evaluated.
bool assay_require_value(const assay_requirement_t* q, const struct assay_output_check* output,
                         const char** out_name, double* out_value);
// Whether there are requirements on statistics, and commands.
bool assay_require_has_statistics(const assay_requirements_t* r);
bool assay_require_has_commands(const assay_requirements_t* r);
// The part of an output's error, as energy, that may stay so that all requirements on it hold: 1
// where they do; to first order, and a guess where a requirement is not a function of the energy.
double assay_require_margin(const assay_requirements_t* r, const struct assay_output_check* output);
// Whether a requirement speaks of golden.
bool assay_require_needs_golden(const assay_requirements_t* r);

#endif  // ASSAY_ACCOUNT_REQUIRE_H_
