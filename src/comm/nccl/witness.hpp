#pragma once

#include "trireme/comm/nccl_log.hpp"

#include <string>
#include <vector>

namespace trireme::comm::nccl {

/// What NCCL itself can tell when an operation fails.
class Witness {
 public:
  /// log: may be null. ras_address: empty for a RAS that is not asked.
  Witness(const NcclLog* log, std::string ras_address, int version, int processes)
      : log_(log), ras_address_(std::move(ras_address)), version_(version), processes_(processes) {}

  /// Its last warnings, then what its RAS finds; a line each. Takes seconds at most.
  std::vector<std::string> account() const;

 private:
  const NcclLog* log_;
  std::string ras_address_;
  int version_;
  int processes_;
};

}  // namespace trireme::comm::nccl
