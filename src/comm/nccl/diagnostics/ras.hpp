// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// NCCL's own monitor of a job (RAS, since 2.24): a thread in each process that answers at a port
/// of its node. Its answer is treated as untrusted input: any process of the node may listen at
/// that port.
namespace trireme::comm::nccl {

struct RasQuestion {
  /// Address as in NCCL_RAS_ADDR: "localhost:28028", "127.0.0.1:4711", "[::1]:4711". Only this node
  /// is ever queried.
  std::string address;
  /// Limit from the first byte sent to the last one read.
  std::chrono::milliseconds at_most{3000};
  std::size_t most_bytes = std::size_t{1} << 20;
};

/// Whole answer as text; the part that has come, if it does not end in time. Fails (ExitCode::peer)
/// if the connection is refused or the other side has another protocol.
base::Result<std::string> ask_ras(const RasQuestion& question);

/// Findings of an answer about errors and about differences between ranks, a line each, limited in
/// number and length. `processes`: of this job; an answer with another number is another job's,
/// which is reported in one line.
std::vector<std::string> findings_of_ras(std::string_view answer, int processes);

}  // namespace trireme::comm::nccl
