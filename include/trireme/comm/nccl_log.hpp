// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/environment.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/result.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::comm {

/// NCCL's log of this process, in memory: the only place where NCCL reports what carries its data;
/// it has no call for that.
class NcclLog {
 public:
  /// Limit of the bytes that are read of a log; one in memory does not grow further.
  static constexpr std::size_t most_bytes = std::size_t{16} << 20;

  /// Sets NCCL_DEBUG, NCCL_DEBUG_SUBSYS and NCCL_DEBUG_FILE in this process, so that NCCL's log
  /// goes into memory: call before NCCL's first call, and before other threads read the
  /// environment. Values that the user has set stay (except NCCL_DEBUG=WARN and VERSION alone,
  /// which log less): the user's file is then read, if it contains the lines. If neither works,
  /// text() fails.
  explicit NcclLog(const base::Environment& environment);

  /// Text that NCCL has written so far; or why it is not known and what to set
  /// (ExitCode::topology).
  base::Result<std::string> text() const;

 private:
  base::File memory_;
  std::string path_;
  std::string obstacle_;
};

/// Connections of a process to its peers, as its NCCL log lists them. A channel is one direction to
/// one peer; NCCL opens several.
struct NcclTransport {
  struct Network {
    int channels = 0;
    /// Channels among these that move data between NIC and GPU memory, without a copy on the host.
    int gpu_direct_channels = 0;
  };
  /// Networks that have channels, by name: "IB" and "Socket" of NCCL's own, "UCX" or "Trireme" of
  /// plugins.
  std::map<std::string, Network> networks;
  /// Libraries of plugins that were loaded.
  std::vector<std::string> plugins;
  /// Devices by the name in the line that lists them: "mlx5_0:1/IB", "eth0:10.0.0.1<0>".
  std::map<std::string, std::vector<std::string>> devices;
  /// Transports that UCX uses in this program's plugin: "rc_mlx5/mlx5_0:1".
  std::vector<std::string> ways;
  /// Channels between GPUs with peer access (NVLink, PCI), those over NVLink between nodes, and
  /// those through the host's memory.
  int gpu_channels = 0;
  int fabric_channels = 0;
  int host_channels = 0;
};

/// Parses a log of NCCL 2.18 to 2.30. Unknown lines are skipped, and the number of lines kept of
/// each kind is limited.
NcclTransport read_nccl_log(std::string_view text);

/// "NCCL WARN" lines of a log without their prefix, the last few.
std::vector<std::string> warnings_of_nccl_log(std::string_view text);

}  // namespace trireme::comm
