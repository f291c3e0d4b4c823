// Models of the line: read, with outputs marked, written, told.
#ifndef ASSAY_FRONTENDS_POLYGRAPHY_MODEL_H_
#define ASSAY_FRONTENDS_POLYGRAPHY_MODEL_H_

#include "frontends/polygraphy/job.h"
#include "onnx/onnx.h"

// The type of a name of NumPy's ("float32"), or of ONNX's or TensorRT's ("half", "fp16");
// UNDEFINED: there is none.
assay_type_t pg_type_parse(const char* name);

// What outputs a model is to have. Lists that are not given leave it as it is.
typedef struct pg_marks {
  const pg_words_t* names;    // exact names or patterns; "mark all" and "*": every value
  const pg_words_t* exclude;  // the same
  const pg_words_t* by_type;  // operators, of which all outputs are marked
  const char* flag;           // for messages
  bool keep_own;              // the outputs that there are stay, after those that are named
  // Whether a node is of a type; NULL: where its operator has this name.
  bool (*is_of)(const assay_node_t* n, const char* type);
} pg_marks_t;
// Marks outputs of a model that was read; they get the types that inference knows.
assay_status_t pg_mark_outputs(assay_model_t* m, const pg_marks_t* marks) ASSAY_MUST_USE;
// The same by the flags of engines, --trt-outputs and its kin; whether there are any.
bool pg_asks_outputs(const pg_args_t* a);
assay_status_t pg_mark_engine(pg_job_t* j, assay_model_t* m) ASSAY_MUST_USE;
// Whether a list asks for every value.
bool pg_marks_all(const pg_words_t* names);

// The model of the line as it stands in the file, unchecked; allow: what else is let pass, or NULL.
assay_status_t pg_read_model(pg_job_t* j, const assay_onnx_read_options_t* allow,
                             assay_model_t** out) ASSAY_MUST_USE;

// What --fp-to-fp16 and --shape-inference ask for, done to a model that was only read and need not
// be right: what cannot be done is a warning. *m is replaced.
assay_status_t pg_convert_model(pg_job_t* j, assay_model_t** m) ASSAY_MUST_USE;

// What the line's file is: a plan, or a model. Follows --model-type, else the name's end.
bool pg_is_engine(const pg_job_t* j, const char* path);

#endif  // ASSAY_FRONTENDS_POLYGRAPHY_MODEL_H_
