// The page of inspect model: --save-visual, --visual.
#ifndef ASSAY_FRONTENDS_POLYGRAPHY_INSPECT_VISUAL_H_
#define ASSAY_FRONTENDS_POLYGRAPHY_INSPECT_VISUAL_H_

#include "frontends/polygraphy/inspect/model_text.h"
#include "frontends/polygraphy/job.h"

// Whether a page is asked for; and whether text beside it. As with Polygraphy --visual shows no
// text, and serves nothing where --save-visual says a file.
bool pg_wants_page(const pg_job_t* j);
bool pg_wants_text(const pg_job_t* j);

// The page of a model or of an engine's plan, saved or served. Without --show all is in it.
assay_status_t pg_show_model_page(pg_job_t* j, assay_model_t* m, pg_show_t show) ASSAY_MUST_USE;
assay_status_t pg_show_plan_page(pg_job_t* j, assay_engine_t* engine,
                                 pg_show_t show) ASSAY_MUST_USE;

#endif  // ASSAY_FRONTENDS_POLYGRAPHY_INSPECT_VISUAL_H_
