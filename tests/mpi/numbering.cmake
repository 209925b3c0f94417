# SPDX-License-Identifier: Apache-2.0
# Ranks that an order has renumbered.
add_executable(mpi_numbering numbering/numbering.cpp)
target_link_libraries(mpi_numbering PRIVATE trireme::comm_backends trireme_options)
foreach(ranks IN ITEMS 1 2 4 6)
  add_test(NAME "mpi.numbering@${ranks}" COMMAND
    "${PROJECT_SOURCE_DIR}/tests/support/mpirun" ${ranks} $<TARGET_FILE:mpi_numbering>)
  set_tests_properties("mpi.numbering@${ranks}" PROPERTIES LABELS mpi PROCESSORS 2 TIMEOUT 60)
endforeach()
add_test(NAME mpi.numbering/fails COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/numbering/fails"
  "${PROJECT_SOURCE_DIR}/tests/support/mpirun" $<TARGET_FILE:mpi_numbering>)
set_tests_properties(mpi.numbering/fails PROPERTIES LABELS mpi PROCESSORS 2 TIMEOUT 60)
