// The page of a model or a plan: its graph, with all that is in it.
#ifndef ASSAY_REPORT_MODEL_PAGE_H_
#define ASSAY_REPORT_MODEL_PAGE_H_

#include "report/tensor_info.h"
#include "runtime/executor.h"

typedef struct assay_model_page {
  const char* path;                 // of the model, as the user gave it
  bool attrs, weights;              // attributes; elements of constants
  const assay_tensor_info_t* info;  // statistics of values of the top graph; NULL: none
} assay_model_page_t;

// A model that need not be fit to run. Types are those that inference knows, else those of the
// file.
assay_status_t assay_model_page(const assay_model_t* m, const assay_model_page_t* options,
                                assay_str_t* out) ASSAY_MUST_USE;
// The layers of an engine's plan, with what ran them last in `ran`.
assay_status_t assay_plan_page(const assay_engine_t* engine, const assay_executor_t* ran,
                               const assay_model_page_t* options, assay_str_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_REPORT_MODEL_PAGE_H_
