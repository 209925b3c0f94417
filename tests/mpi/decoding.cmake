# SPDX-License-Identifier: Apache-2.0
if(TARGET trireme_inference)
  trireme_add_mpi_test(decoding RANKS 1 2 4
    SOURCES decoding/decoding_test.cpp training/training.cpp
    LINK trireme::inference trireme_simulated_device)
endif()
