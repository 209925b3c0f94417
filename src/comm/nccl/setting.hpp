// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/nccl.hpp"
#include "trireme/device/device.hpp"

#include "comm/core/progress_engine.hpp"
#include "comm/nccl/abi.hpp"
#include "comm/nccl/diagnostics/diagnostics.hpp"

#include <cstddef>
#include <memory>

namespace trireme::comm::nccl {

/// Settings that all groups of a process share.
struct Setting {
  NcclLibrary library;
  ProgressEngine* progress = nullptr;
  device::Device* device = nullptr;
  double timeout_seconds = 0;
  base::Rank self;
  std::shared_ptr<const Diagnostics> diagnostics;
  NcclRegistration registration = NcclRegistration::none;
  std::size_t calls_per_group = 0;

  const Api& api() const { return *library.api; }
};

}  // namespace trireme::comm::nccl
