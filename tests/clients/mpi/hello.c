// Every rank tells its number to the next one round the ring; rank 0 prints the sum that came back by MPI_Reduce.
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size, from = -1, sum = 0, length;
    char name[MPI_MAX_PROCESSOR_NAME];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_processor_name(name, &length);
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &from, 1, MPI_INT, (rank + size - 1) % size, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Reduce(&from, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("size %d sum %d\n", size, sum);
    if (argc > 1 && rank == size - 1) MPI_Abort(MPI_COMM_WORLD, 7);
    MPI_Finalize();
    return 0;
}
