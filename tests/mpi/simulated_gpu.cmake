# SPDX-License-Identifier: Apache-2.0
# Training on a device whose memory the host cannot reach.
if(TARGET trireme_engine)
  trireme_add_mpi_test(simulated_gpu RANKS 1 2 4 8 TIMEOUT 600
    SOURCES simulated_gpu/training_test.cpp simulated_gpu/cuda_graphs_test.cpp
      simulated_gpu/unit_graphs_test.cpp training/training.cpp
    LINK trireme::engine trireme_simulated_device APART)
  # The whole table of layouts, in groups that go through the host.
  trireme_add_mpi_test(simulated_gpu_layouts RANKS 2 TIMEOUT 600
    SOURCES training/parallel_equals_serial_test.cpp simulated_gpu/on_simulated_gpu.cpp training/training.cpp
    LINK trireme::engine trireme_simulated_device)
  trireme_add_mpi_test(simulated_gpu_context_parallel RANKS 2 TIMEOUT 600
    SOURCES training/context/context_parallel_test.cpp simulated_gpu/on_simulated_gpu.cpp training/training.cpp
    LINK trireme::engine trireme_simulated_device)
  trireme_add_mpi_test(simulated_gpu_document_mask RANKS 2 TIMEOUT 600
    SOURCES training/documents/document_mask_test.cpp simulated_gpu/on_simulated_gpu.cpp training/training.cpp
    LINK trireme::engine trireme_simulated_device)
  trireme_add_mpi_test(simulated_gpu_zero_bubble RANKS 2 TIMEOUT 600
    SOURCES training/zero_bubble_test.cpp simulated_gpu/on_simulated_gpu.cpp training/training.cpp
    LINK trireme::engine trireme_simulated_device)
  trireme_add_mpi_test(simulated_gpu_offload RANKS 1 2 TIMEOUT 600
    SOURCES training/offload/offload_test.cpp simulated_gpu/on_simulated_gpu.cpp training/training.cpp
    LINK trireme::engine trireme_simulated_device)
  trireme_add_mpi_test(simulated_gpu_halves RANKS 2 4 TIMEOUT 600
    SOURCES training/tensor/halves_test.cpp simulated_gpu/on_simulated_gpu.cpp training/training.cpp
    LINK trireme::engine trireme_simulated_device)
endif()
if(TARGET trireme_train)
  trireme_add_mpi_test(simulated_gpu_runs RANKS 1 2 4 8 TIMEOUT 300
    SOURCES simulated_gpu/run_test.cpp
    LINK trireme::train trireme_simulated_device)
endif()
