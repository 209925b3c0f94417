# One suite over all backends. Never only squares: 6 is 2 x 3 and 3 x 2.
trireme_add_mpi_test(behaviour RANKS 1 2 3 4 6
  SOURCES behaviour/reductions_test.cpp behaviour/moves_test.cpp behaviour/messages_test.cpp
          behaviour/overlap_test.cpp behaviour/sub_groups_test.cpp behaviour/measure_test.cpp
  LINK trireme::comm trireme_fake_nccl)

# Groups that fail: nothing may be left behind that disturbs another group.
trireme_add_mpi_test(failures RANKS 1 2 3
  SOURCES failures/deadlines_test.cpp failures/mismatch_test.cpp
  LINK trireme::comm trireme_fake_nccl)
