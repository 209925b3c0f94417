// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/comm/mpi_runtime.hpp"
#include "trireme/comm/nccl_log.hpp"
#include "trireme/device/device.hpp"

#include <memory>
#include <string>

namespace trireme::comm {

namespace nccl {
struct Api;
class ParentCommunicator;
}  // namespace nccl

/// NCCL as this process has found it.
struct NcclLibrary {
  const nccl::Api* api = nullptr;
  /// As the library tells it: 22809.
  int version = 0;
  std::string path;
};
/// Opens libnccl.so.2, once for the process. Fails (ExitCode::topology) where there is none, or one
/// that is older than 2.18.
base::Result<NcclLibrary> load_nccl();
/// "2.28.9".
std::string nccl_version_text(int version);

/// What NCCL is told of memory that collectives use again and again (comm.register_buffers).
enum class NcclRegistration {
  none,
  /// Its place (NCCL 2.19): the network and other GPUs then reach it without a copy.
  buffers,
  /// Memory that NCCL has allocated, as windows that all ranks of a node see (NCCL 2.27); other
  /// memory, or an older NCCL, as `buffers`.
  windows
};

struct NcclOptions {
  double timeout_seconds = 600;
  /// NCCL's start goes through the rank that made its id: above this many ranks there are several
  /// ids, where the library takes several (2.23).
  int ranks_per_id = 256;
  /// Where NCCL's RAS (since 2.24) is asked when an operation fails: "localhost:28028", as in
  /// NCCL_RAS_ADDR. Empty: nowhere.
  std::string ras_address = {};
  /// For warnings when an operation fails; outlives the groups. May be null.
  const NcclLog* log = nullptr;
  NcclRegistration registration = NcclRegistration::buffers;
};

/// Process groups over NCCL: one communicator of all ranks, from which those of groups are split.
///
/// NCCL's sums are in an order of its own, the same in every run of one layout; those of bf16 are
/// rounded at every addition. A reduce-scatter followed by an all-gather still equals an all-reduce
/// bitwise, where the array has equal parts. Collectives of a group run on a stream of its own, so
/// that they overlap with kernels; messages between two members run on one more for each direction,
/// whose communicator the first message makes. Works that a stream waits for leave their end to the
/// device. Waits have the deadline of the options, those of a stream too, from when the device has
/// come to them; an error that NCCL meets later ends the next poll or wait, be it for the device
/// (PeerError). After either, the group is aborted and of no more use.
class NcclGroups {
 public:
  /// Collective over `host`, whose group meets this call. Host-blocking: yes. The device outlives
  /// the groups.
  NcclGroups(const NcclLibrary& library, MpiRuntime& mpi, ProcessGroup& host,
             device::Device& device, const NcclOptions& options = {});
  NcclGroups(const NcclGroups&) = delete;
  NcclGroups& operator=(const NcclGroups&) = delete;
  ~NcclGroups();

  /// Collective over all ranks. Host-blocking: yes. Sums one number of each rank, and compares:
  /// NCCL opens its ways to others with the first operation, not before. Throws base::Error
  /// (ExitCode::peer) where the sum is wrong.
  void try_out();

  /// Collective over all ranks, each with its group of the same axis, or with null where it has
  /// none. Host-blocking: yes. The same members for the device's tensors; null for null.
  /// `priority` is that of its collectives; messages are always awaited.
  std::unique_ptr<ProcessGroup> split(std::unique_ptr<ProcessGroup> group,
                                      device::Priority priority = device::Priority::awaited);

 private:
  std::unique_ptr<nccl::ParentCommunicator> parent_;
};

}  // namespace trireme::comm
