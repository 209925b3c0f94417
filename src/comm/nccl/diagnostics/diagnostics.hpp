// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/nccl_log.hpp"

#include <string>
#include <vector>

namespace trireme::comm::nccl {

/// NCCL's own diagnosis of a failed operation.
class Diagnostics {
 public:
  /// log: may be null. ras_address: empty for no RAS query.
  Diagnostics(const NcclLog* log, std::string ras_address, int version, int processes)
      : log_(log), ras_address_(std::move(ras_address)), version_(version), processes_(processes) {}

  /// NCCL's last warnings, then the findings of its RAS; a line each. Takes seconds at most.
  std::vector<std::string> collect() const;

 private:
  const NcclLog* log_;
  std::string ras_address_;
  int version_;
  int processes_;
};

}  // namespace trireme::comm::nccl
