# oneDNN, from the wheels that scripts/setup puts into the Python environment: a library and headers.
# Without it (another CPU, another system) its tactics are left out and the emulated engine runs their
# layers.
# ROOT/lib/python3.X/site-packages/onnx: of the environment that has the onnx package.
cmake_path(SET onednn_root NORMALIZE "${ASSAY_ONNX_DIR}/../../../..")
find_library(ASSAY_ONEDNN_LIBRARY NAMES libdnnl.so.3 PATHS "${onednn_root}/lib" NO_DEFAULT_PATH)
find_path(ASSAY_ONEDNN_INCLUDE oneapi/dnnl/dnnl.h PATHS "${onednn_root}/include" NO_DEFAULT_PATH)

if(ASSAY_ONEDNN_LIBRARY AND ASSAY_ONEDNN_INCLUDE)
  add_library(assay_onednn INTERFACE)
  target_link_libraries(assay_onednn INTERFACE "${ASSAY_ONEDNN_LIBRARY}")
  target_include_directories(assay_onednn SYSTEM INTERFACE "${ASSAY_ONEDNN_INCLUDE}")
  target_compile_definitions(assay_onednn INTERFACE ASSAY_ONEDNN)
  list(APPEND ASSAY_BUNDLED_LIBRARIES "${ASSAY_ONEDNN_LIBRARY}")
  set(ASSAY_ONEDNN_TARGET assay_onednn)
else()
  message(STATUS "oneDNN was not found below ${onednn_root}: no tactics from it")
  set(ASSAY_ONEDNN_TARGET "")
endif()
