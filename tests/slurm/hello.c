// SPDX-License-Identifier: Apache-2.0
/* Says who and where it is after one sum over all ranks. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, sum = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int mine = rank + 1;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  char host[256];
  gethostname(host, sizeof host);
  printf("rank %d of %d on %s, sum %d\n", rank, size, host, sum);
  MPI_Finalize();
  return 0;
}
