# Code made at build time: from the pinned onnx package of PyPI the protobuf messages and the table of operator
# schemas; from src/report/page the pages of reports; from src/backends/cuda/kernels and
# src/backends/vmath the texts of kernels. scripts/setup makes the Python environment below build/.

# A wheel's build has an environment of its own (pyproject.toml).
set(python "${PROJECT_SOURCE_DIR}/build/venv/bin/python")
if(SKBUILD)
  set(python "${Python_EXECUTABLE}")
endif()
set(ASSAY_PYTHON "${python}" CACHE FILEPATH
    "Python with the pinned onnx package (scripts/setup makes it)")
if(NOT EXISTS "${ASSAY_PYTHON}")
  message(FATAL_ERROR "no ${ASSAY_PYTHON}: run scripts/setup first, or set ASSAY_PYTHON")
endif()
find_program(ASSAY_PROTOC_C protoc-c REQUIRED)
execute_process(COMMAND "${ASSAY_PYTHON}" -c "import onnx, os; print(os.path.dirname(onnx.__file__))"
                OUTPUT_VARIABLE ASSAY_ONNX_DIR OUTPUT_STRIP_TRAILING_WHITESPACE
                COMMAND_ERROR_IS_FATAL ANY)
set(ASSAY_GENERATED "${PROJECT_BINARY_DIR}/generated")
file(MAKE_DIRECTORY "${ASSAY_GENERATED}/ops" "${ASSAY_GENERATED}/onnx" "${ASSAY_GENERATED}/report" "${ASSAY_GENERATED}/backends")

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

# The two files keep their path below the proto path, since one imports the other by it.
function(assay_generate_onnx target)
  set(outputs "")
  set(protos "")
  foreach(name IN ITEMS onnx-ml onnx-data)
    list(APPEND outputs "${ASSAY_GENERATED}/onnx/${name}.pb-c.c"
         "${ASSAY_GENERATED}/onnx/${name}.pb-c.h")
    list(APPEND protos "${ASSAY_ONNX_DIR}/${name}.proto")
  endforeach()
  add_custom_command(
    OUTPUT ${outputs}
    COMMAND "${CMAKE_COMMAND}" -E copy ${protos} "${ASSAY_GENERATED}/onnx"
    COMMAND "${ASSAY_PROTOC_C}" "--proto_path=${ASSAY_GENERATED}" "--c_out=${ASSAY_GENERATED}"
            "${ASSAY_GENERATED}/onnx/onnx-ml.proto" "${ASSAY_GENERATED}/onnx/onnx-data.proto"
    DEPENDS ${protos} COMMENT "ONNX messages" VERBATIM)
  target_sources(${target} PRIVATE ${outputs})
  target_include_directories(${target} PRIVATE "${ASSAY_GENERATED}")
  foreach(name IN ITEMS onnx-ml onnx-data)
    set_source_files_properties("${ASSAY_GENERATED}/onnx/${name}.pb-c.c" PROPERTIES
                                COMPILE_OPTIONS "-w")
  endforeach()
endfunction()

function(assay_generate_report target)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/report/page/*")
  add_custom_command(
    OUTPUT "${ASSAY_GENERATED}/report/page.inc"
    COMMAND "${ASSAY_PYTHON}" "${PROJECT_SOURCE_DIR}/scripts/embed_page.py" "${PROJECT_SOURCE_DIR}/src/report/page"
            "${ASSAY_GENERATED}/report/page.inc"
    DEPENDS "${PROJECT_SOURCE_DIR}/scripts/embed_page.py" ${sources} COMMENT "The pages of reports" VERBATIM)
  target_sources(${target} PRIVATE "${ASSAY_GENERATED}/report/page.inc")
  target_include_directories(${target} PRIVATE "${ASSAY_GENERATED}")
endfunction()

# Kernels of GPUs are compiled where there is one: their texts are part of the program.
function(assay_generate_backends target)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/backends/cuda/kernels/*"
       "${PROJECT_SOURCE_DIR}/src/backends/vmath/*.h" "${PROJECT_SOURCE_DIR}/src/backends/vmath/*.inc"
       "${PROJECT_SOURCE_DIR}/src/backends/layers/*.inc" "${PROJECT_SOURCE_DIR}/src/ops/quant/*.inc")
  add_custom_command(
    OUTPUT "${ASSAY_GENERATED}/backends/kernels.inc"
    COMMAND "${ASSAY_PYTHON}" "${PROJECT_SOURCE_DIR}/scripts/embed_kernels.py" "${ASSAY_GENERATED}/backends/kernels.inc"
            ${sources}
    DEPENDS "${PROJECT_SOURCE_DIR}/scripts/embed_kernels.py" ${sources} COMMENT "Kernels of GPUs" VERBATIM)
  target_sources(${target} PRIVATE "${ASSAY_GENERATED}/backends/kernels.inc")
  target_include_directories(${target} PRIVATE "${ASSAY_GENERATED}")
endfunction()
