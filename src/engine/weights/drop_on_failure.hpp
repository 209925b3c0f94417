// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"

#include <exception>
#include <vector>

namespace trireme::engine {

/// Drops works when a wait for one of them fails: peers that are gone come to none of the others
/// either.
class DropOnFailure {
 public:
  explicit DropOnFailure(std::vector<comm::Work>& works) : works_(works) {}
  DropOnFailure(const DropOnFailure&) = delete;
  DropOnFailure& operator=(const DropOnFailure&) = delete;
  ~DropOnFailure() {
    if (std::uncaught_exceptions() > unwinding_) works_.clear();
  }

 private:
  std::vector<comm::Work>& works_;
  int unwinding_ = std::uncaught_exceptions();
};

}  // namespace trireme::engine
