# SPDX-License-Identifier: Apache-2.0
# Tests: one executable per room for unit tests, one per behaviour for MPI tests.
if(BUILD_TESTING)
  find_package(Catch2 2 REQUIRED)
  include(Catch)
  find_program(TRIREME_MPIEXEC mpirun)
endif()

# trireme_add_unit_tests(<room> SOURCES <file>... [LINK <target>...] [LABELS <label>...] [APART])
# Every TEST_CASE becomes one test "unit.<room>/<sentence>". APART: files are compiled one by one.
function(trireme_add_unit_tests room)
  cmake_parse_arguments(ARG "APART" "" "SOURCES;LINK;LABELS" ${ARGN})
  add_executable(unit_${room} ${ARG_SOURCES})
  target_include_directories(unit_${room} PRIVATE "${PROJECT_SOURCE_DIR}/tests"
    "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(unit_${room} PRIVATE
    trireme::${room} ${ARG_LINK} trireme_test_main trireme_options trireme_quick_options)
  target_precompile_headers(unit_${room} REUSE_FROM trireme_quick_test_headers)
  if(NOT ARG_APART)
    trireme_join_sources(unit_${room})
  endif()
  target_compile_definitions(unit_${room} PRIVATE
    TRIREME_SOURCE_DIR="${PROJECT_SOURCE_DIR}" TRIREME_BINARY_DIR="${PROJECT_BINARY_DIR}")
  catch_discover_tests(unit_${room} TEST_PREFIX "unit.${room}/"
    PROPERTIES LABELS "unit;${ARG_LABELS}" SKIP_RETURN_CODE 77)
endfunction()

# trireme_add_mpi_test(<name> RANKS <n>... SOURCES <file>... [LINK <target>...] [TIMEOUT <s>]
#                      [SLOW_RANKS <n>...] [LABELS <label>...] [IDLE] [APART])
# One executable, run once per rank count as test mpi.<name>@<n>; SLOW_RANKS by --long alone.
function(trireme_add_mpi_test name)
  cmake_parse_arguments(ARG "IDLE;APART" "TIMEOUT" "RANKS;SLOW_RANKS;SOURCES;LINK;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 180)
  endif()
  # Sanitizers make everything several times slower.
  if(TRIREME_SANITIZE)
    math(EXPR ARG_TIMEOUT "4 * ${ARG_TIMEOUT}")
  endif()
  add_executable(mpi_${name} ${ARG_SOURCES})
  target_include_directories(mpi_${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests"
    "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(mpi_${name} PRIVATE ${ARG_LINK} trireme_mpi_test_main trireme_options
    trireme_quick_options)
  target_compile_definitions(mpi_${name} PRIVATE
    TRIREME_SOURCE_DIR="${PROJECT_SOURCE_DIR}" TRIREME_BINARY_DIR="${PROJECT_BINARY_DIR}")
  target_precompile_headers(mpi_${name} REUSE_FROM trireme_quick_test_headers)
  if(NOT ARG_APART)
    trireme_join_sources(mpi_${name})
  endif()
  foreach(ranks IN LISTS ARG_RANKS ARG_SLOW_RANKS)
    set(labels mpi ${ARG_LABELS})
    if(ranks IN_LIST ARG_SLOW_RANKS)
      list(APPEND labels slow)
    endif()
    add_test(NAME "mpi.${name}@${ranks}" COMMAND
      "${PROJECT_SOURCE_DIR}/tests/support/mpirun" ${ranks} $<TARGET_FILE:mpi_${name}>)
    # More ranks than cores is normal: a rank counts as one processor, at most two; IDLE ranks,
    # which wait for deadlines nearly all the time, as one together.
    set(processors ${ranks})
    if(ARG_IDLE)
      set(processors 1)
    elseif(processors GREATER 2)
      set(processors 2)
    endif()
    set_tests_properties("mpi.${name}@${ranks}" PROPERTIES LABELS "${labels}"
      PROCESSORS ${processors} TIMEOUT ${ARG_TIMEOUT} SKIP_REGULAR_EXPRESSION "TRIREME_SKIP:"
      ENVIRONMENT "TRIREME_TEST_TIMEOUT=${ARG_TIMEOUT}")
  endforeach()
endfunction()
