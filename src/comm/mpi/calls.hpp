// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/handle.hpp"

#include <mpi.h>

#include <optional>
#include <span>
#include <string>

/// Wrappers of all MPI functions that Trireme uses, one each, whose failures throw base::Error.
namespace trireme::comm::mpi {

struct CommunicatorTraits {
  using raw_type = MPI_Comm;
  static MPI_Comm null() { return MPI_COMM_NULL; }
  static const char* name() { return "MPI communicator"; }
  static std::optional<std::string> close(MPI_Comm raw);
};
using Communicator = base::UniqueHandle<CommunicatorTraits>;

/// The level that MPI gives, which may be lower than `wanted`.
int init_thread(int wanted);
bool initialized();
bool finalized();
void finalize();
[[noreturn]] void abort(int exit_code);

int rank(MPI_Comm communicator);
int size(MPI_Comm communicator);
std::string processor_name();
/// Name and version that the library reports; needs no initialisation.
std::string library_version();
/// The largest tag of a message.
int tag_limit(MPI_Comm communicator);

/// Collective over `parent`. Errors are returned, not fatal, on every communicator made here.
Communicator dup(MPI_Comm parent);
/// Collective over `parent`: all of its ranks, in the order of their keys.
Communicator split(MPI_Comm parent, int key);
/// Collective over `parent`: the ranks that share memory with this one.
Communicator split_type_shared(MPI_Comm parent);
/// Collective over the members only.
Communicator create_group(MPI_Comm parent, std::span<const int> members, int tag);

MPI_Request isend(const void* from, int bytes, int to, int tag, MPI_Comm communicator);
MPI_Request ireceive(void* to, int bytes, int from, int tag, MPI_Comm communicator);
/// True when complete, and then the request is null. `received_bytes` may be null.
bool test(MPI_Request& request, int* received_bytes);
/// Gives up a receive: nothing is written to its buffer any more. False when MPI cannot.
bool cancel_receive(MPI_Request& request) noexcept;
/// Source of a message from any rank that waits to be received, if there is one.
std::optional<int> probe(int tag, MPI_Comm communicator);

/// The MPI library's own collectives, for comparison in measurements.
void library_all_reduce(void* x, int count, MPI_Datatype type, MPI_Op op, MPI_Comm communicator);
void library_reduce_scatter(const void* whole, void* part, int part_count, MPI_Datatype type,
                            MPI_Comm communicator);
void library_all_gather(const void* part, void* whole, int part_bytes, MPI_Comm communicator);
void library_all_to_all(const void* from, void* to, int part_bytes, MPI_Comm communicator);
/// Gather to `root`; `whole` is used there only.
void library_gather(const void* part, void* whole, int part_bytes, int root, MPI_Comm communicator);
/// The parts of `root`, one to each rank; `whole` is used there only.
void library_scatter(const void* whole, void* part, int part_bytes, int root,
                     MPI_Comm communicator);
void library_broadcast(void* x, int bytes, int root, MPI_Comm communicator);

}  // namespace trireme::comm::mpi
