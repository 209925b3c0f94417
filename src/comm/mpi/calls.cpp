// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/calls.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

#include "comm/mpi/call_deadline.hpp"

#include <array>
#include <cstdlib>
#include <exception>

namespace trireme::comm::mpi {
namespace {

std::string error_text(int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) return "unknown error";
  return {text.data(), static_cast<std::size_t>(length)};
}

void check(int code, const char* call,
           std::source_location where = std::source_location::current()) {
  if (code == MPI_SUCCESS) return;
  throw base::Error(base::ExitCode::peer, base::format("{} failed: {}", call, error_text(code)),
                    where);
}

Communicator owned(MPI_Comm raw) {
  auto communicator = Communicator::adopt(raw);
  check(MPI_Comm_set_errhandler(raw, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  return communicator;
}

}  // namespace

std::optional<std::string> CommunicatorTraits::close(MPI_Comm raw) {
  // Freeing is collective: while unwinding, peers may be elsewhere, and the process ends anyway.
  if (std::uncaught_exceptions() > 0 || finalized()) return std::nullopt;
  const CallDeadline deadline("MPI_Comm_free");
  const int code = MPI_Comm_free(&raw);
  if (code == MPI_SUCCESS) return std::nullopt;
  return "MPI_Comm_free failed: " + error_text(code);
}

int init_thread(int wanted) {
  int provided = MPI_THREAD_SINGLE;
  const CallDeadline deadline("MPI_Init");
  check(MPI_Init_thread(nullptr, nullptr, wanted, &provided), "MPI_Init_thread");
  check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  return provided;
}

bool initialized() {
  int flag = 0;
  check(MPI_Initialized(&flag), "MPI_Initialized");
  return flag != 0;
}

bool finalized() {
  int flag = 0;
  return MPI_Finalized(&flag) == MPI_SUCCESS && flag != 0;
}

void finalize() {
  const CallDeadline deadline("MPI_Finalize");
  check(MPI_Finalize(), "MPI_Finalize");
}

void abort(int exit_code) {
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}

int rank(MPI_Comm communicator) {
  int value = 0;
  check(MPI_Comm_rank(communicator, &value), "MPI_Comm_rank");
  return value;
}

int size(MPI_Comm communicator) {
  int value = 0;
  check(MPI_Comm_size(communicator, &value), "MPI_Comm_size");
  return value;
}

std::string processor_name() {
  std::array<char, MPI_MAX_PROCESSOR_NAME> text{};
  int length = 0;
  check(MPI_Get_processor_name(text.data(), &length), "MPI_Get_processor_name");
  return {text.data(), static_cast<std::size_t>(length)};
}

std::string library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  check(MPI_Get_library_version(text.data(), &length), "MPI_Get_library_version");
  return {text.data(), static_cast<std::size_t>(length)};
}

int tag_limit(MPI_Comm communicator) {
  int* limit = nullptr;
  int found = 0;
  check(MPI_Comm_get_attr(communicator, MPI_TAG_UB, static_cast<void*>(&limit), &found),
        "MPI_Comm_get_attr");
  return found != 0 ? *limit : 32767;
}

Communicator dup(MPI_Comm parent) {
  MPI_Comm raw = MPI_COMM_NULL;
  const CallDeadline deadline("MPI_Comm_dup");
  check(MPI_Comm_dup(parent, &raw), "MPI_Comm_dup");
  return owned(raw);
}

Communicator split(MPI_Comm parent, int key) {
  MPI_Comm raw = MPI_COMM_NULL;
  const CallDeadline deadline("MPI_Comm_split");
  check(MPI_Comm_split(parent, 0, key, &raw), "MPI_Comm_split");
  return owned(raw);
}

Communicator split_type_shared(MPI_Comm parent) {
  MPI_Comm raw = MPI_COMM_NULL;
  const CallDeadline deadline("MPI_Comm_split_type");
  check(MPI_Comm_split_type(parent, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &raw),
        "MPI_Comm_split_type");
  return owned(raw);
}

Communicator create_group(MPI_Comm parent, std::span<const int> members, int tag) {
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Group chosen = MPI_GROUP_NULL;
  MPI_Comm raw = MPI_COMM_NULL;
  check(MPI_Comm_group(parent, &all), "MPI_Comm_group");
  check(MPI_Group_incl(all, static_cast<int>(members.size()), members.data(), &chosen),
        "MPI_Group_incl");
  const CallDeadline deadline("MPI_Comm_create_group");
  check(MPI_Comm_create_group(parent, chosen, tag, &raw), "MPI_Comm_create_group");
  check(MPI_Group_free(&chosen), "MPI_Group_free");
  check(MPI_Group_free(&all), "MPI_Group_free");
  return owned(raw);
}

MPI_Request isend(const void* from, int bytes, int to, int tag, MPI_Comm communicator) {
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Isend(from, bytes, MPI_BYTE, to, tag, communicator, &request), "MPI_Isend");
  return request;
}

MPI_Request ireceive(void* to, int bytes, int from, int tag, MPI_Comm communicator) {
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Irecv(to, bytes, MPI_BYTE, from, tag, communicator, &request), "MPI_Irecv");
  return request;
}

bool test(MPI_Request& request, int* received_bytes) {
  int complete = 0;
  MPI_Status status;
  check(MPI_Test(&request, &complete, &status), "MPI_Test");
  if (complete != 0 && received_bytes != nullptr) {
    check(MPI_Get_count(&status, MPI_BYTE, received_bytes), "MPI_Get_count");
  }
  return complete != 0;
}

bool cancel_receive(MPI_Request& request) noexcept {
  // A receive that has matched completes, one that has not is cancelled: both come to an end,
  // unless a long message is on its way from a peer that has stopped.
  if (MPI_Cancel(&request) != MPI_SUCCESS) return false;
  for (int attempt = 0; attempt < 100; ++attempt) {
    int complete = 0;
    if (MPI_Test(&request, &complete, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    if (complete != 0) return true;
  }
  return false;
}

std::optional<int> probe(int tag, MPI_Comm communicator) {
  int found = 0;
  MPI_Status status;
  check(MPI_Iprobe(MPI_ANY_SOURCE, tag, communicator, &found, &status), "MPI_Iprobe");
  if (found == 0) return std::nullopt;
  return status.MPI_SOURCE;
}

void library_all_reduce(void* x, int count, MPI_Datatype type, MPI_Op op, MPI_Comm communicator) {
  check(MPI_Allreduce(MPI_IN_PLACE, x, count, type, op, communicator), "MPI_Allreduce");
}

void library_reduce_scatter(const void* whole, void* part, int part_count, MPI_Datatype type,
                            MPI_Comm communicator) {
  check(MPI_Reduce_scatter_block(whole, part, part_count, type, MPI_SUM, communicator),
        "MPI_Reduce_scatter_block");
}

void library_all_gather(const void* part, void* whole, int part_bytes, MPI_Comm communicator) {
  check(MPI_Allgather(part, part_bytes, MPI_BYTE, whole, part_bytes, MPI_BYTE, communicator),
        "MPI_Allgather");
}

void library_all_to_all(const void* from, void* to, int part_bytes, MPI_Comm communicator) {
  check(MPI_Alltoall(from, part_bytes, MPI_BYTE, to, part_bytes, MPI_BYTE, communicator),
        "MPI_Alltoall");
}

void library_gather(const void* part, void* whole, int part_bytes, int root,
                    MPI_Comm communicator) {
  check(MPI_Gather(part, part_bytes, MPI_BYTE, whole, part_bytes, MPI_BYTE, root, communicator),
        "MPI_Gather");
}

void library_scatter(const void* whole, void* part, int part_bytes, int root,
                     MPI_Comm communicator) {
  check(MPI_Scatter(whole, part_bytes, MPI_BYTE, part, part_bytes, MPI_BYTE, root, communicator),
        "MPI_Scatter");
}

void library_broadcast(void* x, int bytes, int root, MPI_Comm communicator) {
  check(MPI_Bcast(x, bytes, MPI_BYTE, root, communicator), "MPI_Bcast");
}

}  // namespace trireme::comm::mpi
