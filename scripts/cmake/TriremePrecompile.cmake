# SPDX-License-Identifier: Apache-2.0
# Precompiled headers: what most files include, parsed once for each way of compiling.
set(TRIREME_COMMON_HEADERS <algorithm> <array> <atomic> <chrono> <cmath> <condition_variable>
  <cstdint> <cstring> <deque> <filesystem> <functional> <limits> <map> <memory> <mutex> <numeric>
  <optional> <set> <span> <string> <string_view> <thread> <utility> <vector>
  <trireme/base/error.hpp> <trireme/base/format.hpp> <trireme/base/json.hpp>
  <trireme/base/log.hpp>)

# Options of code that computes nothing: compilers spend a third of their time on -O3. g++ 12 takes
# the inner buffer of a temporary string for one that is written past (GCC bug 105651); with -O1 it
# says so of nearly every text, and builds with -O3 still heed these warnings.
add_library(trireme_quick_options INTERFACE)
target_compile_options(trireme_quick_options INTERFACE
  "$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-O1;-Wno-array-bounds;-Wno-restrict>")

file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/precompiled/source.cpp"
  CONTENT "int main() { return 0; }\n")

# trireme_add_precompiled(<target> STATIC|EXECUTABLE [LINK <target>...] [HEADERS <header>...])
# Owner of headers that others take with REUSE_FROM; its kind and options must be theirs.
function(trireme_add_precompiled target kind)
  cmake_parse_arguments(ARG "" "" "LINK;HEADERS" ${ARGN})
  set(source "${PROJECT_BINARY_DIR}/precompiled/source.cpp")
  if(kind STREQUAL "EXECUTABLE")
    add_executable(${target} "${source}")
  else()
    add_library(${target} STATIC "${source}")
  endif()
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/include")
  target_link_libraries(${target} PRIVATE fmt::fmt nlohmann_json::nlohmann_json trireme_options
    ${ARG_LINK})
  target_precompile_headers(${target} PRIVATE ${TRIREME_COMMON_HEADERS} ${ARG_HEADERS})
endfunction()

trireme_add_precompiled(trireme_room_headers STATIC)
trireme_add_precompiled(trireme_quick_room_headers STATIC LINK trireme_quick_options)

# trireme_join_sources(<target>): compiles some of its sources at a time, as one. Nearly all of a
# compiler's time goes into templates (JSON, texts, lists), which are then made once for all of them.
# Classes that a file defines for itself may hold what its unnamed namespace declares, joined or not.
function(trireme_join_sources target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${TRIREME_JOIN_SOURCES}
    UNITY_BUILD_BATCH_SIZE 8)
  if(TRIREME_JOIN_SOURCES)
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()
