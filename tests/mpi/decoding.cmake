if(TARGET trireme_train)
  trireme_add_mpi_test(decoding RANKS 1 2 4
    SOURCES decoding/decoding_test.cpp training/training.cpp
    LINK trireme::train trireme_detached)
endif()
