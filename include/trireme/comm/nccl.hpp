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
  /// Version number as the library returns it: 22809.
  int version = 0;
  std::string path;
};
/// Opens libnccl.so.2, once for the process. Fails (ExitCode::topology) where there is none, or one
/// that is older than 2.18.
base::Result<NcclLibrary> load_nccl();
/// "2.28.9".
std::string nccl_version_text(int version);

/// Registration with NCCL of memory that collectives use again and again (comm.register_buffers).
enum class NcclRegistration {
  none,
  /// Buffer registration (NCCL 2.19): the network and other GPUs then reach the memory without a
  /// copy.
  buffers,
  /// Symmetric windows over memory that NCCL has allocated, mapped by all ranks of a node (NCCL
  /// 2.27); other memory, or an older NCCL, as `buffers`.
  windows
};

struct NcclOptions {
  double timeout_seconds = 600;
  /// Number of ranks above which NCCL is initialized with several ids, where the library takes
  /// several (2.23): all ranks that share an id connect to the rank that made it.
  int ranks_per_id = 256;
  /// Address of NCCL's RAS (since 2.24), which is queried when an operation fails:
  /// "localhost:28028", as in NCCL_RAS_ADDR. Empty: no query.
  std::string ras_address = {};
  /// Source of NCCL's warnings for a failed operation; outlives the groups. May be null.
  const NcclLog* log = nullptr;
  NcclRegistration registration = NcclRegistration::buffers;
  /// Most calls between ncclGroupStart and ncclGroupEnd (NCCL's user guide, "Group Calls"):
  /// collectives on parts of different lengths have a call for each member.
  std::size_t calls_per_group = 2048;
};

/// Process groups over NCCL: one communicator of all ranks, from which those of groups are split.
///
/// NCCL's sums are in an order of its own, the same in every run of one layout; those of bf16 are
/// rounded at every addition. A reduce-scatter followed by an all-gather still equals an all-reduce
/// bitwise, where the array has equal parts; parts of different lengths are reduced to and
/// broadcast from each owner by calls of one group. Collectives of a group run on a stream of its
/// own, so that they overlap with kernels; messages between two members run on one more for each
/// direction, whose communicator the first message makes. Works with a stream-ordered wait leave
/// their end to the device. Waits have the deadline of the options, stream-ordered ones too, from
/// when the device has reached them; an error that NCCL detects later is thrown by the next poll or
/// wait, also by a wait for the device (PeerError). After either, the group is aborted and cannot
/// be used any more.
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
  /// NCCL connects to peers in the first operation, not before. Throws base::Error (ExitCode::peer)
  /// where the sum is wrong.
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
