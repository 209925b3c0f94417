# SPDX-License-Identifier: Apache-2.0
# One suite over all backends. Never only squares: 6 is 2 x 3 and 3 x 2.
trireme_add_mpi_test(behaviour RANKS 1 2 3 4 6
  SOURCES behaviour/reductions_test.cpp behaviour/moves_test.cpp behaviour/messages_test.cpp
          behaviour/overlap_test.cpp behaviour/sub_groups_test.cpp behaviour/measure_test.cpp
          behaviour/stores_test.cpp behaviour/agree_test.cpp behaviour/relays_test.cpp
  LINK trireme::comm trireme_fake_nccl)
# It stands between the product and the library, whose header it needs.
set(MPI_CXX_SKIP_MPICXX TRUE)
find_package(MPI REQUIRED COMPONENTS CXX)
set_source_files_properties(behaviour/relays_test.cpp PROPERTIES
  INCLUDE_DIRECTORIES "${MPI_CXX_INCLUDE_DIRS}"
  COMPILE_DEFINITIONS "OMPI_SKIP_MPICXX;MPICH_SKIP_MPICXX"
  SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)

# Groups that fail: nothing may be left behind that disturbs another group. Among six they relay.
trireme_add_mpi_test(failures RANKS 1 2 3 6 IDLE
  SOURCES failures/deadlines_test.cpp failures/mismatch_test.cpp
  LINK trireme::comm trireme_fake_nccl)

# The watchdog of these tests names what each rank hangs in, before ctest's limit.
if(TARGET mpi_failures)
  add_test(NAME mpi.watchdog COMMAND "${PROJECT_SOURCE_DIR}/tests/support/mpirun" 2
    $<TARGET_FILE:mpi_failures> [.hangs])
  set_tests_properties(mpi.watchdog PROPERTIES LABELS mpi PROCESSORS 2 TIMEOUT 60
    ENVIRONMENT "TRIREME_TEST_TIMEOUT=4" PASS_REGULAR_EXPRESSION
    "hangs after 3.4 s in 'a rank hangs'; waiting in barrier number 2 of process group 'world'")
endif()

# What calls NCCL, over a stand-in for the library that can be late, fail or never end.
trireme_add_mpi_test(nccl RANKS 1 2 3 6 8
  SOURCES nccl/groups_test.cpp nccl/faults_test.cpp nccl/message_registration_test.cpp
          nccl/registration_test.cpp nccl/streams_test.cpp
          "${PROJECT_SOURCE_DIR}/tests/support/ras_server.cpp"
  LINK trireme::comm trireme_fake_nccl APART)
if(TARGET trireme_runtime)
  trireme_add_mpi_test(nccl_transport RANKS 1 2 3
    SOURCES nccl/transport_test.cpp
    LINK trireme::runtime trireme_fake_nccl)
endif()
if(TARGET trireme_engine)
  trireme_add_mpi_test(nccl_training RANKS 1 2 4 8 TIMEOUT 300
    SOURCES nccl/training_test.cpp nccl/training_memory_test.cpp nccl/waits_test.cpp nccl/training_over_nccl.cpp
            training/training.cpp
    LINK trireme::engine trireme_fake_nccl)
endif()
