# Language, warnings and options that every target shares.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release or RelWithDebInfo" FORCE)
endif()

option(BUILD_TESTING "Build the tests" ON)
option(TRIREME_ENABLE_BENCH "Build the benchmarks in perf/" ON)
option(TRIREME_WERROR "Treat warnings as errors" OFF)
set(TRIREME_SANITIZE "" CACHE STRING "Comma-separated sanitizers, such as address,undefined")

include(CTest)

# Sanitised and checked builds should not cost twice on a small machine.
find_program(TRIREME_CCACHE ccache)
if(TRIREME_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${TRIREME_CCACHE}")
endif()

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)

add_library(trireme_options INTERFACE)
target_compile_options(trireme_options INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wold-style-cast -Wswitch-enum
  $<$<BOOL:${TRIREME_WERROR}>:-Werror>)
# Every float sum keeps the order that its source says: no value-changing optimisation anywhere.
target_compile_options(trireme_options INTERFACE -ffp-contract=off)
target_compile_definitions(trireme_options INTERFACE
  $<$<NOT:$<CONFIG:Debug>>:_FORTIFY_SOURCE=2>)
if(TRIREME_SANITIZE)
  # What sanitizers add hides initialisations from g++ 12: its warning about their lack is then
  # mostly wrong (inside std::regex and std::variant). Builds without sanitizers heed it.
  target_compile_options(trireme_options INTERFACE -Wno-maybe-uninitialized
    -fsanitize=${TRIREME_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(trireme_options INTERFACE -fsanitize=${TRIREME_SANITIZE})
  target_sources(trireme_options INTERFACE $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:
    ${PROJECT_SOURCE_DIR}/scripts/cmake/sanitizer_options.cpp>)
endif()

set_property(GLOBAL PROPERTY TRIREME_SUMMARY "")

# trireme_summary(<part> <state and reason>): one line of the summary at the end of configuration.
function(trireme_summary part text)
  set_property(GLOBAL APPEND PROPERTY TRIREME_SUMMARY "  ${part}: ${text}")
endfunction()

function(trireme_print_summary)
  get_property(lines GLOBAL PROPERTY TRIREME_SUMMARY)
  list(JOIN lines "\n" text)
  message(STATUS "Trireme ${PROJECT_VERSION} (${CMAKE_BUILD_TYPE})\n${text}")
endfunction()
