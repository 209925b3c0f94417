# SPDX-License-Identifier: Apache-2.0
# Language, warnings and options that every target shares.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release or RelWithDebInfo" FORCE)
endif()

# Vectors of x86-64 are in files of their own, which no other architecture compiles.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
  set(TRIREME_X86 ON)
else()
  set(TRIREME_X86 OFF)
endif()

option(BUILD_TESTING "Build the tests" ON)
option(TRIREME_ENABLE_BENCH "Build the benchmarks in perf/" ON)
option(TRIREME_WERROR "Treat warnings as errors" OFF)
option(TRIREME_JOIN_SOURCES "Compile some sources at a time, as one: half the time of a whole build" ON)
set(TRIREME_SANITIZE "" CACHE STRING "Comma-separated sanitizers, such as address,undefined")

# CUDA: the backend of device for NVIDIA GPUs. Code for A100 and Hopper; GPUs after those compile
# the PTX of the older one at their first use.
find_program(TRIREME_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda
  PATH_SUFFIXES bin)
if(TRIREME_NVCC)
  set(TRIREME_CUDA_FOUND ON)
else()
  set(TRIREME_CUDA_FOUND OFF)
endif()
option(TRIREME_ENABLE_CUDA "Build the CUDA backend" ${TRIREME_CUDA_FOUND})
if(TRIREME_ENABLE_CUDA)
  if(NOT TRIREME_NVCC)
    message(FATAL_ERROR "TRIREME_ENABLE_CUDA is ON and there is no nvcc; install the CUDA toolkit, "
      "set CUDA_HOME to its folder, or configure with -DTRIREME_ENABLE_CUDA=OFF")
  endif()
  set(CMAKE_CUDA_COMPILER "${TRIREME_NVCC}")
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80 90a-real)
  endif()
  enable_language(CUDA)
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_EXTENSIONS OFF)
  # CMake 3.25 does not know how CUDA 13 is told so.
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  endif()
  find_package(CUDAToolkit REQUIRED)
endif()

include(CTest)

# Sanitised and checked builds should not cost twice on a small machine. Files with precompiled
# headers are kept only where times in them are passed over.
find_program(TRIREME_CCACHE ccache)
if(TRIREME_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env
    "CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime"
    # A precompiled header knows its headers by their bytes: what is the same to the preprocessor,
    # comments, blanks and macros that are not used, must not be the same to the cache.
    "CCACHE_DEPEND=1"
    "${TRIREME_CCACHE}")
  set(CMAKE_CUDA_COMPILER_LAUNCHER "${TRIREME_CCACHE}")
endif()

# Debian's libraries lie in a folder of their architecture under any prefix.
include(GNUInstallDirs)
set(TRIREME_INSTALL_LIBDIR "${CMAKE_INSTALL_LIBDIR}")
if(EXISTS /etc/debian_version AND CMAKE_LIBRARY_ARCHITECTURE)
  set(TRIREME_INSTALL_LIBDIR "lib/${CMAKE_LIBRARY_ARCHITECTURE}")
endif()

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)

add_library(trireme_options INTERFACE)
set(warnings -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wold-style-cast -Wswitch-enum)
# The code that nvcc generates has old casts and line directives of its own.
set(cuda_warnings ${warnings})
list(REMOVE_ITEM cuda_warnings -Wpedantic -Wold-style-cast)
list(JOIN cuda_warnings "," cuda_warnings)
target_compile_options(trireme_options INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:${warnings}>"
  "$<$<AND:$<BOOL:${TRIREME_WERROR}>,$<COMPILE_LANGUAGE:CXX>>:-Werror>"
  "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${cuda_warnings}>"
  "$<$<AND:$<BOOL:${TRIREME_WERROR}>,$<COMPILE_LANGUAGE:CUDA>>:-Werror=all-warnings>")
# Every float sum keeps the order that its source says: no value-changing optimisation anywhere.
target_compile_options(trireme_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-ffp-contract=off>)
# Kernels call constexpr functions of the host; a register that spills is an error (with WERROR).
target_compile_options(trireme_options INTERFACE
  "$<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;-Xptxas=--warn-on-spills>")
# Quotients and roots of floats within two units of the last place: the exact ones are calls.
target_compile_options(trireme_options INTERFACE
  "$<$<COMPILE_LANGUAGE:CUDA>:--prec-div=false;--prec-sqrt=false>")
target_compile_definitions(trireme_options INTERFACE
  $<$<NOT:$<CONFIG:Debug>>:_FORTIFY_SOURCE=2>)
if(TRIREME_SANITIZE)
  # What sanitizers add hides initialisations from g++ 12: its warning about their lack is then
  # mostly wrong (inside std::regex and std::variant). Builds without sanitizers heed it.
  target_compile_options(trireme_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:
    -Wno-maybe-uninitialized
    -fsanitize=${TRIREME_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all>)
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
