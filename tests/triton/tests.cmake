# The backend for Triton against a server for tests (fake/fake.h), which holds each call against the API's rules.
# The backend looks for the server's functions in the program that loads it; that program has none of Assay inside, so that
# both use one libassay.
file(GLOB fake_triton CONFIGURE_DEPENDS "triton/fake/*.c")
# The same backend whose allocations ask the server whether they fail.
get_target_property(triton_sources triton_assay SOURCES)
add_library(triton_assay_faults MODULE ${triton_sources})
target_link_libraries(triton_assay_faults PRIVATE assay::assay assay_flags PkgConfig::JANSSON ${CMAKE_DL_LIBS})
target_link_options(triton_assay_faults PRIVATE -Wl,--wrap=malloc,--wrap=calloc,--wrap=strdup,--wrap=posix_memalign)
foreach(name IN ITEMS test_backend test_faults test_gpu overhead)
  add_executable(triton_${name} triton/${name}.c ${fake_triton})
  set_target_properties(triton_${name} PROPERTIES ENABLE_EXPORTS ON C_VISIBILITY_PRESET default)
  target_link_libraries(triton_${name} PRIVATE assay::assay assay_flags PkgConfig::CMOCKA PkgConfig::JANSSON ${CMAKE_DL_LIBS})
  target_include_directories(triton_${name} BEFORE PRIVATE "${PROJECT_SOURCE_DIR}/integrations/triton" "${CMAKE_CURRENT_SOURCE_DIR}/triton" "${CMAKE_CURRENT_SOURCE_DIR}")
endforeach()
foreach(name IN ITEMS backend faults gpu)
  set(library triton_assay)
  if(name STREQUAL "faults")
    set(library triton_assay_faults)
  endif()
  add_test(NAME triton/test_${name} COMMAND triton_test_${name} $<TARGET_FILE:${library}>)
  set_tests_properties(triton/test_${name} PROPERTIES ENVIRONMENT "${environment}" TIMEOUT 600)
endforeach()
set_tests_properties(triton/test_faults PROPERTIES LABELS draws)

# In a real server, which build/venv-triton has; skipped where there is none.
assay_python_test(triton/test_server triton/test_server.py $<TARGET_FILE:triton_assay> "${ASSAY_TEST_MODELS}" LABELS release)
set_tests_properties(triton/test_server PROPERTIES SKIP_RETURN_CODE 77 ENVIRONMENT
  "${environment};PYTHONPATH=${PROJECT_SOURCE_DIR}/python;ASSAY_LIBRARY=$<TARGET_FILE:assay_lib_shared>")
