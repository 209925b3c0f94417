// SPDX-License-Identifier: Apache-2.0
#include "row.hpp"

namespace trireme::schema {
namespace {

constexpr Rows<&Options::comm> comm{.concern = Concern::running};

constexpr Key comm_rows[] = {
    comm.key<&CommOptions::timeout>(
        "10min", {.type = Type::seconds, .unit = "seconds", .range = between(0.1, 604800)},
        "Deadline of every wait for other ranks. A wait that reaches it ends the run with exit "
        "code 5 and names the ranks that did not come."),
    comm.key<&CommOptions::start_timeout>(
        "5min", {.type = Type::seconds, .unit = "seconds", .range = between(1, 604800)},
        "Deadline of MPI's own start and end (MPI_Init, communicators, first connections, "
        "MPI_Finalize). One that is reached ends the run with exit code 5 (after a finished run: "
        "with the run's own) and says which call hangs, on which node, and which of its ranks are "
        "missing or stopped."),
    comm.key<&CommOptions::backend>(
        "auto", {.concern = Concern::layout},
        "What carries collectives. On CPUs `auto` is shared memory inside a node and MPI between "
        "nodes. On GPUs it is NCCL where every rank has a GPU and the same NCCL, else `staged`: "
        "through the host and MPI, which the start says. `nccl` refuses to go on without."),
    comm.key<&CommOptions::require_rdma>(
        "auto",
        "What is refused of NCCL between nodes (exit code 4). `auto`: TCP, where a node has an "
        "RDMA NIC whose port is up. `true`: whatever NCCL does not show to be RDMA, and groups "
        "that are not NCCL's. `false`: nothing; it is said and goes on."),
    comm.key<&CommOptions::register_buffers>(
        "buffers",
        "What NCCL is told of memory that collectives and messages work in. `buffers`: its place, "
        "so that GPUs and network reach it without a copy (2.19). `windows`: NCCL allocates what "
        "collectives work in itself, and ranks of a node see each other's (2.27). `none`: "
        "nothing."),
};

}  // namespace

std::span<const Key> comm_keys() {
  return comm_rows;
}

}  // namespace trireme::schema
