# Tests of the Python package: assay_package_test(NAME ENVIRONMENT SCRIPT ARGUMENT...), see ../CMakeLists.txt.
assay_package_test(run "" test_api_run.py)
assay_package_test(wheel wheel test_wheel.py "${PROJECT_BINARY_DIR}")
assay_package_test(results "" test_api_results.py)
assay_package_test(ort_scripts "" test_ort_scripts.py)
assay_package_test(serving_core "" test_serving_core.py)
assay_package_test(onnx_backend "" test_onnx_backend.py)
assay_package_test(polygraphy "" test_polygraphy.py)
