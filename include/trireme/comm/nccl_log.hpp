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

/// NCCL's log of this process, in memory: the only place where it says what carries its data. NCCL
/// has no call that tells.
class NcclLog {
 public:
  /// What is read of a log at most; one in memory does not grow further.
  static constexpr std::size_t most_bytes = std::size_t{16} << 20;

  /// Sets NCCL_DEBUG, NCCL_DEBUG_SUBSYS and NCCL_DEBUG_FILE in this process, so that NCCL's log
  /// goes into memory: before NCCL's first call, and before other threads read the environment.
  /// What the user has set of them stays (but NCCL_DEBUG=WARN and VERSION alone, which ask for
  /// less): then the user's file is read, where that has the lines. Where none of it works, text()
  /// fails.
  explicit NcclLog(const base::Environment& environment);

  /// What NCCL has written so far; or why that is not known and what to set (ExitCode::topology).
  base::Result<std::string> text() const;

 private:
  base::File memory_;
  std::string path_;
  std::string obstacle_;
};

/// What a log says of how its process reaches others. A channel is one direction to one peer; NCCL
/// opens several.
struct NcclTransport {
  struct Network {
    int channels = 0;
    /// Of these, those between the NIC and the memory of a GPU, past the host's.
    int gpu_direct_channels = 0;
  };
  /// By name, of networks that have channels: "IB" and "Socket" of NCCL's own, "UCX" or
  /// "Trireme" of plugins.
  std::map<std::string, Network> networks;
  /// Libraries of plugins that were loaded.
  std::vector<std::string> plugins;
  /// By the name in the line that lists them: "mlx5_0:1/IB", "eth0:10.0.0.1<0>".
  std::map<std::string, std::vector<std::string>> devices;
  /// Of the plugin of this program: what UCX carries its messages with, "rc_mlx5/mlx5_0:1".
  std::vector<std::string> ways;
  /// Channels between GPUs that see each other (NVLink, PCI), those over NVLink between nodes,
  /// and those through the host's memory.
  int gpu_channels = 0;
  int fabric_channels = 0;
  int host_channels = 0;
};

/// Reads a log of NCCL 2.18 to 2.30. Lines that are none of its are passed over, and of each kind
/// only so many are kept.
NcclTransport read_nccl_log(std::string_view text);

/// "NCCL WARN" lines of a log without what stands before that, the last few.
std::vector<std::string> warnings_of_nccl_log(std::string_view text);

}  // namespace trireme::comm
