# SPDX-License-Identifier: Apache-2.0
if(TARGET trireme_train)
  trireme_add_mpi_test(products RANKS 1 2 3
    SOURCES products/choose_gemms_test.cpp training/training.cpp
    LINK trireme::train)
endif()
