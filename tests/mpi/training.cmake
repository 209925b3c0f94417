# SPDX-License-Identifier: Apache-2.0
if(TARGET trireme_engine)
  trireme_add_mpi_test(parallel_equals_serial RANKS 1 2 3 4 6 8 12 TIMEOUT 1200
    SOURCES training/parallel_equals_serial_test.cpp training/on_host.cpp training/training.cpp
    LINK trireme::engine)
  # The default backend, whose kernels are not the reference's.
  trireme_add_mpi_test(parallel_equals_serial_on_cpu RANKS 4 SLOW_RANKS 6 TIMEOUT 600
    SOURCES training/parallel_equals_serial_test.cpp training/on_cpu.cpp training/training.cpp
    LINK trireme::engine)
  trireme_add_mpi_test(recompute RANKS 1 2 4 SLOW_RANKS 6 8 TIMEOUT 300
    SOURCES training/recompute_test.cpp training/fp8_options.cpp training/on_cpu.cpp training/training.cpp
    LINK trireme::engine)
  trireme_add_mpi_test(zero_bubble RANKS 2 4 TIMEOUT 600
    SOURCES training/zero_bubble_test.cpp training/on_cpu.cpp training/training.cpp
    LINK trireme::engine)
  trireme_add_mpi_test(halves RANKS 2 4 SLOW_RANKS 8 TIMEOUT 600
    SOURCES training/tensor/halves_test.cpp training/on_cpu.cpp training/training.cpp
    LINK trireme::engine)
  trireme_add_mpi_test(context_parallel RANKS 2 4 SLOW_RANKS 6 8 TIMEOUT 600
    SOURCES training/context/context_parallel_test.cpp training/on_host.cpp training/training.cpp
    LINK trireme::engine)
  trireme_add_mpi_test(context_parallel_on_cpu RANKS 2 6 SLOW_RANKS 4 TIMEOUT 600
    SOURCES training/context/context_parallel_test.cpp training/on_cpu.cpp training/training.cpp
    LINK trireme::engine)
  trireme_add_mpi_test(document_mask RANKS 2 SLOW_RANKS 4 TIMEOUT 600
    SOURCES training/documents/document_mask_test.cpp training/on_host.cpp training/training.cpp
    LINK trireme::engine)
  trireme_add_mpi_test(document_mask_on_cpu RANKS 4 SLOW_RANKS 2 TIMEOUT 600
    SOURCES training/documents/document_mask_test.cpp training/on_cpu.cpp training/training.cpp
    LINK trireme::engine)
  trireme_add_mpi_test(part_exchange RANKS 1 2 3 4
    SOURCES training/part_exchange_test.cpp
    LINK trireme::optim)
  trireme_add_mpi_test(shared_updates RANKS 1 2 3 4 6
    SOURCES training/shared_updates_test.cpp
    LINK trireme::optim)
  trireme_add_mpi_test(same_update RANKS 1 2 3 4 6 8 SLOW_RANKS 12 TIMEOUT 300
    SOURCES training/same_update_test.cpp training/on_cpu.cpp training/training.cpp
    LINK trireme::engine)
  trireme_add_mpi_test(conditioning SLOW_RANKS 2 3 4 TIMEOUT 1200
    SOURCES training/conditioning_test.cpp training/training.cpp
    LINK trireme::engine)
  trireme_add_mpi_test(evaluation RANKS 1 2 4
    SOURCES training/evaluation_test.cpp training/training.cpp
    LINK trireme::engine)
  trireme_add_mpi_test(offload RANKS 1 2 4 SLOW_RANKS 6 TIMEOUT 600
    SOURCES training/offload/offload_test.cpp training/on_cpu.cpp training/training.cpp
    LINK trireme::engine)
  trireme_add_mpi_test(traffic RANKS 1 2 4 6
    SOURCES training/traffic_test.cpp training/training.cpp
    LINK trireme::engine)
  trireme_add_mpi_test(late_gathers RANKS 2 4 6
    SOURCES training/late_gathers_test.cpp training/training.cpp
    LINK trireme::engine)
  trireme_add_mpi_test(zero_levels RANKS 2 3 4 6 TIMEOUT 600
    SOURCES training/zero/zero_levels_test.cpp training/training.cpp
    LINK trireme::engine)
  trireme_add_mpi_test(wire RANKS 2 3
    SOURCES training/zero/wire_test.cpp training/training.cpp
    LINK trireme::engine)
  trireme_add_mpi_test(fp8 RANKS 1 2 4 TIMEOUT 300
    SOURCES training/fp8_test.cpp training/fp8_options.cpp training/training.cpp
    LINK trireme::engine)
  trireme_add_mpi_test(weight_copies RANKS 1 2 4
    SOURCES training/copies/weight_copies_test.cpp training/fp8_options.cpp training/training.cpp
    LINK trireme::engine)
  if(TARGET trireme_train)
    trireme_add_mpi_test(divided_run RANKS 2
      SOURCES training/zero/divided_run_test.cpp training/small_run.cpp
      LINK trireme::train)
    trireme_add_mpi_test(offloaded_run RANKS 1 2
      SOURCES training/offload/offloaded_run_test.cpp training/small_run.cpp
      LINK trireme::train)
    trireme_add_mpi_test(nonfinite RANKS 1 2
      SOURCES training/nonfinite_test.cpp training/small_run.cpp
      LINK trireme::train)
    trireme_add_mpi_test(async_saves RANKS 1 2
      SOURCES training/async_saves_test.cpp training/small_run.cpp
      LINK trireme::train)
    trireme_add_mpi_test(failing_storage RANKS 1 2 TIMEOUT 600
      SOURCES training/failing_storage_test.cpp training/small_run.cpp
      LINK trireme::train)
    trireme_add_mpi_test(fitted_options RANKS 1 2 4
      SOURCES training/starts/fitted_options_test.cpp training/training.cpp
      LINK trireme::train)
    trireme_add_mpi_test(host_sums RANKS 2
      SOURCES training/starts/host_sums_test.cpp training/small_run.cpp
      LINK trireme::train)
    trireme_add_mpi_test(going_on RANKS 1 2
      SOURCES training/starts/going_on_test.cpp training/small_run.cpp
      LINK trireme::train)
    trireme_add_mpi_test(late_runs RANKS 2 3
      SOURCES training/starts/late_runs_test.cpp training/small_run.cpp
      LINK trireme::train)
    trireme_add_mpi_test(rank_times RANKS 1 2 3
      SOURCES training/rank_times_test.cpp
      LINK trireme::train)
    trireme_add_mpi_test(replica_check RANKS 2 3
      SOURCES training/copies/replica_check_test.cpp training/small_run.cpp
      LINK trireme::train)
    trireme_add_mpi_test(uncut_copies RANKS 4 6
      SOURCES training/copies/uncut_copies_test.cpp training/training.cpp
      LINK trireme::train)
    trireme_add_mpi_test(resume RANKS 1 2
      SOURCES training/starts/resume_test.cpp training/small_run.cpp
      LINK trireme::train)
    trireme_add_mpi_test(samples RANKS 1 2 4 6 TIMEOUT 600
      SOURCES training/samples_test.cpp training/small_run.cpp
      LINK trireme::train)
    trireme_add_mpi_test(trainer RANKS 1
      SOURCES training/trainer_test.cpp training/starts/matrix_rules_test.cpp training/small_run.cpp
      LINK trireme::train)
  endif()
  trireme_add_mpi_test(tied_tables RANKS 6 8
    SOURCES training/copies/tied_tables_test.cpp training/training.cpp
    LINK trireme::engine)
  trireme_add_mpi_test(rounding RANKS 1 2 4 6
    SOURCES training/rounding_test.cpp training/training.cpp
    LINK trireme::engine)
endif()

# 200 steps of the quickstart's model on its text, in fp32 and in bf16.
if(TARGET trireme)
  add_test(NAME mpi.precision COMMAND python3 "${CMAKE_CURRENT_SOURCE_DIR}/precision_test.py"
    --trireme $<TARGET_FILE:trireme> --config "${PROJECT_SOURCE_DIR}/configs/quickstart.conf")
  set_tests_properties(mpi.precision PROPERTIES LABELS "mpi;slow" PROCESSORS 2 TIMEOUT 1500
    SKIP_REGULAR_EXPRESSION "TRIREME_SKIP:")
endif()
