# SPDX-License-Identifier: Apache-2.0
if(TARGET trireme_runtime)
  trireme_add_mpi_test(runtime RANKS 1 2 4 6
    SOURCES runtime/cluster_test.cpp runtime/start_up_test.cpp
    LINK trireme::runtime)
endif()
