#pragma once

#include "comm/nccl/setting.hpp"

#include <chrono>
#include <deque>
#include <memory>
#include <optional>

namespace trireme::comm::nccl {

class NcclOperation;

/// Operations of one lane that the host has left to the device: kept until they are done, or until
/// one fails.
class Joined final : public JoinedOperations {
 public:
  explicit Joined(const Setting& setting);
  Joined(const Joined&) = delete;
  Joined& operator=(const Joined&) = delete;
  /// Waits for them; gives them up while unwinding.
  ~Joined() override;

  void keep(std::unique_ptr<NcclOperation> operation);

  PendingOperation* oldest() override;
  std::chrono::duration<double> waited() override;
  bool empty() const override { return given_up_ || operations_.empty(); }
  void give_up() override;

 private:
  void finish() const;

  Setting setting_;
  std::deque<std::unique_ptr<NcclOperation>> operations_;
  /// When the first of them was seen to have begun.
  std::optional<WaitClock> since_;
  bool given_up_ = false;
};

}  // namespace trireme::comm::nccl
