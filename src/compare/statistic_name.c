// The names of the statistics of include/assay/compare.h.
#include <assay/compare.h>

static const char* const statistic_names[ASSAY_STATISTIC_COUNT] = {
    [ASSAY_STATISTIC_ELEMENTS] = "elements",
    [ASSAY_STATISTIC_MAX_ABS] = "max_abs",
    [ASSAY_STATISTIC_MAX_REL] = "max_rel",
    [ASSAY_STATISTIC_MEAN] = "mean",
    [ASSAY_STATISTIC_RMS] = "rms",
    [ASSAY_STATISTIC_P50] = "p50",
    [ASSAY_STATISTIC_P90] = "p90",
    [ASSAY_STATISTIC_P99] = "p99",
    [ASSAY_STATISTIC_P999] = "p999",
    [ASSAY_STATISTIC_COSINE] = "cosine",
    [ASSAY_STATISTIC_SNR_DB] = "snr_db",
    [ASSAY_STATISTIC_PSNR_DB] = "psnr_db",
    [ASSAY_STATISTIC_KL] = "kl",
    [ASSAY_STATISTIC_MAX_ULP] = "max_ulp",
    [ASSAY_STATISTIC_NAN] = "nan",
    [ASSAY_STATISTIC_INF] = "inf",
    [ASSAY_STATISTIC_REFERENCE_NAN] = "reference_nan",
    [ASSAY_STATISTIC_REFERENCE_INF] = "reference_inf",
    [ASSAY_STATISTIC_MISMATCHED] = "mismatched",
    [ASSAY_STATISTIC_OUTSIDE] = "outside",
    [ASSAY_STATISTIC_TOP1] = "top1",
    [ASSAY_STATISTIC_TOP_K] = "top_k",
};

const char* assay_statistic_name(assay_statistic_t s) {
  return (unsigned)s < ASSAY_STATISTIC_COUNT ? statistic_names[s] : NULL;
}
