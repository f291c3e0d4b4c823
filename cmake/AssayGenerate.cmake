# Code made at build time from the pinned onnx package of PyPI: the protobuf messages and the table
# of operator schemas. scripts/setup makes the Python environment below build/.

set(ASSAY_PYTHON "${PROJECT_SOURCE_DIR}/build/venv/bin/python" CACHE FILEPATH
    "Python with the pinned onnx package (scripts/setup makes it)")
if(NOT EXISTS "${ASSAY_PYTHON}")
  message(FATAL_ERROR "no ${ASSAY_PYTHON}: run scripts/setup first, or set ASSAY_PYTHON")
endif()
find_program(ASSAY_PROTOC_C protoc-c REQUIRED)
execute_process(COMMAND "${ASSAY_PYTHON}" -c "import onnx, os; print(os.path.dirname(onnx.__file__))"
                OUTPUT_VARIABLE ASSAY_ONNX_DIR OUTPUT_STRIP_TRAILING_WHITESPACE
                COMMAND_ERROR_IS_FATAL ANY)
set(ASSAY_GENERATED "${PROJECT_BINARY_DIR}/generated")
file(MAKE_DIRECTORY "${ASSAY_GENERATED}/ops" "${ASSAY_GENERATED}/onnx")

function(assay_generate_ops target)
  add_custom_command(
    OUTPUT "${ASSAY_GENERATED}/ops/schemas.inc"
    COMMAND "${ASSAY_PYTHON}" "${PROJECT_SOURCE_DIR}/scripts/gen_schemas.py"
            "${ASSAY_GENERATED}/ops/schemas.inc"
    DEPENDS "${PROJECT_SOURCE_DIR}/scripts/gen_schemas.py"
    COMMENT "Operator schemas" VERBATIM)
  target_sources(${target} PRIVATE "${ASSAY_GENERATED}/ops/schemas.inc")
  target_include_directories(${target} PRIVATE "${ASSAY_GENERATED}")
endfunction()

function(assay_generate_onnx target)
  set(proto "${ASSAY_GENERATED}/onnx/onnx.proto")
  add_custom_command(
    OUTPUT "${ASSAY_GENERATED}/onnx/onnx.pb-c.c" "${ASSAY_GENERATED}/onnx/onnx.pb-c.h"
    COMMAND "${CMAKE_COMMAND}" -E copy "${ASSAY_ONNX_DIR}/onnx-ml.proto" "${proto}"
    COMMAND "${ASSAY_PROTOC_C}" "--proto_path=${ASSAY_GENERATED}/onnx"
            "--c_out=${ASSAY_GENERATED}/onnx" "${proto}"
    DEPENDS "${ASSAY_ONNX_DIR}/onnx-ml.proto" COMMENT "ONNX messages" VERBATIM)
  target_sources(${target} PRIVATE "${ASSAY_GENERATED}/onnx/onnx.pb-c.c")
  target_include_directories(${target} PRIVATE "${ASSAY_GENERATED}")
  set_source_files_properties("${ASSAY_GENERATED}/onnx/onnx.pb-c.c" PROPERTIES
                              COMPILE_OPTIONS "-w")
endfunction()
