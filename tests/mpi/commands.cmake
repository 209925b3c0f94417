# SPDX-License-Identifier: Apache-2.0
# Commands over real ranks, as people start them.
if(TARGET trireme AND TRIREME_MPIEXEC)
  add_executable(mpi_commands
    commands/documents_test.cpp commands/eval_test.cpp commands/fp8_test.cpp commands/generate_test.cpp commands/going_on_test.cpp commands/import_test.cpp
    commands/mistakes_test.cpp commands/own_run_test.cpp commands/plan_test.cpp
    commands/prediction_test.cpp commands/preflight_test.cpp
    commands/probe_test.cpp commands/ranks.cpp commands/rounding_test.cpp commands/save_interval_test.cpp
    commands/samples_test.cpp commands/text_model.cpp
    commands/speed_test.cpp commands/step_times_test.cpp commands/threads_test.cpp commands/train_ranks_test.cpp
    "${PROJECT_SOURCE_DIR}/tests/support/program.cpp")
  target_include_directories(mpi_commands PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(mpi_commands PRIVATE
    trireme::config trireme::data trireme::huggingface trireme_test_main trireme_options)
  target_precompile_headers(mpi_commands REUSE_FROM trireme_test_pch)
  target_compile_definitions(mpi_commands PRIVATE
    TRIREME_SOURCE_DIR="${PROJECT_SOURCE_DIR}" TRIREME_EXECUTABLE="$<TARGET_FILE:trireme>")
  add_dependencies(mpi_commands trireme)
  # Most of the time a program starts or ends: two at a time.
  catch_discover_tests(mpi_commands TEST_PREFIX "mpi.commands/"
    PROPERTIES LABELS mpi TIMEOUT 300)
endif()

# docs/first-model.md, command by command; with transformers itself among the slow ones.
if(TARGET trireme AND TRIREME_MPIEXEC)
  set(first_model python3 "${CMAKE_CURRENT_SOURCE_DIR}/first_model_test.py"
    --document "${PROJECT_SOURCE_DIR}/docs/first-model.md" --trireme $<TARGET_FILE:trireme>
    --mpirun "${PROJECT_SOURCE_DIR}/tests/support/mpirun")
  add_test(NAME mpi.first-model COMMAND ${first_model})
  set_tests_properties(mpi.first-model PROPERTIES LABELS mpi PROCESSORS 2 TIMEOUT 300)
  add_test(NAME mpi.first-model/transformers COMMAND ${first_model} --transformers)
  set_tests_properties(mpi.first-model/transformers PROPERTIES
    LABELS "mpi;slow" PROCESSORS 2 TIMEOUT 1500)
endif()

# Lists, comparisons and pages of real runs.
if(TARGET trireme AND TRIREME_MPIEXEC)
  add_test(NAME mpi.reports COMMAND python3 "${CMAKE_CURRENT_SOURCE_DIR}/reports_test.py"
    --trireme $<TARGET_FILE:trireme> --mpirun "${PROJECT_SOURCE_DIR}/tests/support/mpirun")
  set_tests_properties(mpi.reports PROPERTIES LABELS mpi PROCESSORS 2 TIMEOUT 300)
endif()

# What the report finds in runs that something on purpose holds back. They are timed: among the slow ones.
if(TARGET trireme AND TRIREME_MPIEXEC AND TARGET volatile_fs)
  add_test(NAME mpi.verdict COMMAND python3 "${CMAKE_CURRENT_SOURCE_DIR}/verdict_test.py"
    --trireme $<TARGET_FILE:trireme> --mpirun "${PROJECT_SOURCE_DIR}/tests/support/mpirun"
    --volatile-fs $<TARGET_FILE:volatile_fs>)
  set_tests_properties(mpi.verdict PROPERTIES LABELS "mpi;slow" RUN_SERIAL TRUE TIMEOUT 600
    SKIP_RETURN_CODE 77)
endif()

# Traces of real runs; what HolisticTraceAnalysis makes of them, among the slow ones.
if(TARGET trireme AND TRIREME_MPIEXEC)
  set(tracing python3 "${CMAKE_CURRENT_SOURCE_DIR}/tracing_test.py"
    --trireme $<TARGET_FILE:trireme> --mpirun "${PROJECT_SOURCE_DIR}/tests/support/mpirun")
  add_test(NAME mpi.tracing COMMAND ${tracing})
  set_tests_properties(mpi.tracing PROPERTIES LABELS mpi PROCESSORS 2 TIMEOUT 300)
  add_test(NAME mpi.tracing/hta COMMAND ${tracing} --hta)
  set_tests_properties(mpi.tracing/hta PROPERTIES
    LABELS "mpi;slow" PROCESSORS 2 TIMEOUT 1500 SKIP_RETURN_CODE 77)
endif()

# What a person sees at a terminal.
if(TARGET trireme AND TRIREME_MPIEXEC)
  add_test(NAME mpi.terminal COMMAND python3 "${CMAKE_CURRENT_SOURCE_DIR}/terminal_test.py"
    --trireme $<TARGET_FILE:trireme>)
  set_tests_properties(mpi.terminal PROPERTIES LABELS mpi PROCESSORS 2 TIMEOUT 300)
endif()
