// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/nccl/setting.hpp"

#include <chrono>
#include <deque>
#include <memory>
#include <optional>

namespace trireme::comm::nccl {

/// An operation on a device's stream.
class StreamOperation : public PendingOperation {
 public:
  using PendingOperation::PendingOperation;
  /// True once the device has reached the operation, so that only peers can be missing.
  virtual bool begun() = 0;
};

/// Operations of one CommStream that the host has left to the device: kept until they are done, or
/// until one fails.
class EnqueuedQueue final : public EnqueuedOperations {
 public:
  explicit EnqueuedQueue(const Setting& setting);
  EnqueuedQueue(const EnqueuedQueue&) = delete;
  EnqueuedQueue& operator=(const EnqueuedQueue&) = delete;
  /// Waits for all operations; gives them up while unwinding.
  ~EnqueuedQueue() override;

  void keep(std::unique_ptr<StreamOperation> operation);

  PendingOperation* oldest() override;
  std::chrono::duration<double> waited() override;
  bool empty() const override { return given_up_ || operations_.empty(); }
  void give_up() override;

 private:
  void finish() const;

  Setting setting_;
  std::deque<std::unique_ptr<StreamOperation>> operations_;
  /// Clock since the first operation was seen to have begun.
  std::optional<WaitClock> since_;
  bool given_up_ = false;
};

}  // namespace trireme::comm::nccl
