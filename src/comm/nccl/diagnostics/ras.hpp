// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// NCCL's own watch over a job (RAS, since 2.24): a thread in each process that answers at a port
/// of its node. What it says is read as the word of a stranger: any process of the node may sit
/// there.
namespace trireme::comm::nccl {

struct RasQuestion {
  /// As in NCCL_RAS_ADDR: "localhost:28028", "127.0.0.1:4711", "[::1]:4711". Nothing but the node
  /// itself is asked.
  std::string address;
  /// From the first byte sent to the last one read.
  std::chrono::milliseconds at_most{3000};
  std::size_t most_bytes = std::size_t{1} << 20;
};

/// Its whole answer as text; what had come where it does not end in time. Fails (ExitCode::peer)
/// where nobody answers, or nobody that speaks its protocol.
base::Result<std::string> ask_ras(const RasQuestion& question);

/// What an answer says of errors and of what ranks differ in, a line each, at most so many and so
/// long. `processes`: of this job; an answer that speaks of another number is another job's, and
/// says so in one line.
std::vector<std::string> findings_of_ras(std::string_view answer, int processes);

}  // namespace trireme::comm::nccl
