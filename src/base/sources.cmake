# SPDX-License-Identifier: Apache-2.0
# Files of this room that shared objects of their own (the SPANK and the NCCL plugin) and the fuzzers
# compile again with their own flags. The rest needs a GPU's libraries or belongs to ranks alone.
set(TRIREME_BASE_SHARED_SOURCES columns.cpp contract.cpp environment.cpp error.cpp file.cpp format.cpp json.cpp
  log.cpp suggest.cpp tcp.cpp text.cpp utc.cpp utf8.cpp)
list(TRANSFORM TRIREME_BASE_SHARED_SOURCES PREPEND "${CMAKE_CURRENT_LIST_DIR}/")
