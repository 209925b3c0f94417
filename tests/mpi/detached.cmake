# SPDX-License-Identifier: Apache-2.0
# Training on a device whose memory the host cannot reach.
if(TARGET trireme_engine)
  trireme_add_mpi_test(detached RANKS 1 2 4 8 TIMEOUT 600
    SOURCES detached/training_test.cpp detached/cuda_graphs_test.cpp training/training.cpp
    LINK trireme::engine trireme_detached)
  # The whole table of layouts, in groups that go through the host.
  trireme_add_mpi_test(detached_layouts RANKS 2 TIMEOUT 600
    SOURCES training/parallel_equals_serial_test.cpp detached/on_detached.cpp training/training.cpp
    LINK trireme::engine trireme_detached)
endif()
if(TARGET trireme_train)
  trireme_add_mpi_test(detached_runs RANKS 1 2 4 8 TIMEOUT 300
    SOURCES detached/run_test.cpp
    LINK trireme::train trireme_detached)
endif()
