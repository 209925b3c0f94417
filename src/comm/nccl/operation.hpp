// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/nccl/comm_stream.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace trireme::comm::nccl {

/// Calls on one CommStream, each enqueued once NCCL has accepted the one before; done when the
/// device is. They are ordered only after the work that was issued to the device before the
/// operation's start.
class NcclOperation : public StreamOperation {
 public:
  using Step = std::function<Result(Comm* comm, void* stream)>;

  NcclOperation(const Setting& setting, const OperationLabel& label)
      : StreamOperation(*setting.progress, label),
        setting_(setting),
        begun_(setting.device->record()) {}
  NcclOperation(const NcclOperation&) = delete;
  NcclOperation& operator=(const NcclOperation&) = delete;
  /// Aborts its group when it is under way: kernels that wait for peers would hold the device for
  /// ever.
  ~NcclOperation() override;

  bool advance() final;
  std::vector<std::string> account() const final { return setting_.diagnostics->collect(); }
  bool enqueued() const final;
  void wait_on_stream(std::unique_ptr<Operation> self) final;
  void give_up() final;
  bool begun() final { return begun_.passed(); }

 protected:
  /// Runs the part before the stream without blocking, then calls enter(); true if anything moved.
  virtual bool prepare() = 0;
  /// True when everything but the stream's work is done.
  virtual bool may_finish() const { return true; }
  /// Called once, with the sequence number on the stream.
  void enter(CommStream& comm_stream, std::uint64_t sequence, std::vector<Step> steps);
  /// Replacement for enter() without work on the device.
  void enter_nothing() { stage_ = Stage::passed; }
  const Setting& setting() const { return setting_; }

 private:
  enum class Stage {
    preparing,
    queued,   ///< until its turn on the stream, and during NCCL's host-side steps
    running,  ///< on the device
    passed
  };

  bool move_on();
  bool enqueue();
  bool watch_device();
  [[noreturn]] void fail_on_stream();

  Setting setting_;
  Stage stage_ = Stage::preparing;
  CommStream* comm_stream_ = nullptr;
  std::uint64_t sequence_ = 0;
  std::vector<Step> steps_;
  std::size_t taken_ = 0;
  device::Event begun_;
  device::Event end_;
};

/// A collective over all members of a group.
class Collective final : public NcclOperation {
 public:
  Collective(const Setting& setting, const OperationLabel& label, CommStream& comm_stream,
             std::vector<Step> steps);
  std::vector<base::Rank> missing() const override;

 private:
  bool prepare() override { return false; }
};

}  // namespace trireme::comm::nccl
