#pragma once

#include "comm/nccl/communicator.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace trireme::comm::nccl {

/// Calls of one lane, each issued once NCCL has taken the one before; done when the device is. They
/// come after what was issued to the device before the operation's start, and nothing else.
class NcclOperation : public PendingOperation {
 public:
  using Step = std::function<Result(Comm* comm, void* stream)>;

  NcclOperation(const Setting& setting, const OperationLabel& label)
      : PendingOperation(*setting.progress, label),
        setting_(setting),
        begun_(setting.device->record()) {}
  NcclOperation(const NcclOperation&) = delete;
  NcclOperation& operator=(const NcclOperation&) = delete;
  /// Under way, its group is aborted: kernels that wait for peers would hold the device for ever.
  ~NcclOperation() override;

  bool advance() final;
  std::vector<std::string> account() const final { return setting_.witness->account(); }
  bool issued() const final;
  void join(std::unique_ptr<Operation> self) final;
  void give_up() final;
  /// Whether the device has come so far that only peers can be missing.
  bool begun() { return begun_.passed(); }

 protected:
  /// What comes before the lane: moves on without blocking, calls enter(); whether anything moved.
  virtual bool prepare() = 0;
  /// What must be done besides the lane's work.
  virtual bool may_finish() const { return true; }
  /// Once, with the place in the lane's order.
  void enter(Lane& lane, std::uint64_t ticket, std::vector<Step> steps);
  /// Instead of enter(): there is nothing to do on the device.
  void enter_nothing() { stage_ = Stage::passed; }
  const Setting& setting() const { return setting_; }

 private:
  enum class Stage {
    preparing,
    queued,   ///< for its turn on the lane, and while NCCL takes its steps
    running,  ///< on the device
    passed
  };

  bool move_on();
  bool issue();
  bool watch_device();
  [[noreturn]] void fail_lane();

  Setting setting_;
  Stage stage_ = Stage::preparing;
  Lane* lane_ = nullptr;
  std::uint64_t ticket_ = 0;
  std::vector<Step> steps_;
  std::size_t taken_ = 0;
  device::Event begun_;
  device::Event end_;
};

/// Of all members of a group.
class Collective final : public NcclOperation {
 public:
  Collective(const Setting& setting, const OperationLabel& label, Lane& lane,
             std::vector<Step> steps);
  std::vector<base::Rank> missing() const override;

 private:
  bool prepare() override { return false; }
};

}  // namespace trireme::comm::nccl
