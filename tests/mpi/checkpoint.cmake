# SPDX-License-Identifier: Apache-2.0
# Saving and loading over real ranks; 6 is 2 x 3 and 3 x 2.
trireme_add_mpi_test(checkpoint RANKS 1 2 4 6
  SOURCES checkpoint/save_load_test.cpp LINK trireme::checkpoint trireme::comm)
if(TARGET trireme_train)
  trireme_add_mpi_test(reshard RANKS 8 TIMEOUT 300
    SOURCES checkpoint/reshard_test.cpp training/training.cpp LINK trireme::train)
endif()
