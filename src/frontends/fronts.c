// The command lines of other programs.
#include "frontends/polygraphy/polygraphy.h"
#include "frontends/trtexec/trtexec.h"

const front_t assay_cli_fronts[] = {
    {"trtexec", "the command line of TensorRT's trtexec", assay_trtexec, assay_trtexec_complete},
    {"polygraphy", "the command line of Polygraphy", assay_polygraphy, assay_polygraphy_complete},
    {0}};
