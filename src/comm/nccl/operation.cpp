// SPDX-License-Identifier: Apache-2.0
#include "comm/nccl/operation.hpp"

#include <utility>

namespace trireme::comm::nccl {

NcclOperation::~NcclOperation() {
  if (!done() && comm_stream_ != nullptr) comm_stream_->communicator.abort();
}

void NcclOperation::enter(CommStream& comm_stream, std::uint64_t sequence,
                          std::vector<Step> steps) {
  comm_stream_ = &comm_stream;
  sequence_ = sequence;
  steps_ = std::move(steps);
  stage_ = Stage::queued;
}

void NcclOperation::fail_on_stream() {
  fail(*this, comm_stream_->communicator, setting_);
}

bool NcclOperation::enqueue() {
  if (comm_stream_->next_to_enqueue != sequence_) return false;
  auto& communicator = comm_stream_->communicator;
  const bool ready = communicator.ready();
  if (!communicator.error().empty()) fail_on_stream();
  if (!ready) return false;
  if (taken_ == 0 && comm_stream_->memory.register_next(setting_, communicator)) return true;
  if (taken_ < steps_.size()) {
    if (taken_ == 0) comm_stream_->stream->follow(begun_);
    communicator.note(steps_[taken_++](communicator.raw(), comm_stream_->stream->handle()), "NCCL");
    return true;
  }
  end_ = comm_stream_->stream->record();
  ++comm_stream_->next_to_enqueue;
  stage_ = Stage::running;
  return true;
}

bool NcclOperation::watch_device() {
  if (end_.passed()) {
    stage_ = Stage::passed;
    return true;
  }
  comm_stream_->communicator.ready();
  if (!comm_stream_->communicator.error().empty()) fail_on_stream();
  return false;
}

bool NcclOperation::move_on() {
  switch (stage_) {
    case Stage::preparing:
      return prepare();
    case Stage::queued:
      return enqueue();
    case Stage::running:
      return watch_device();
    case Stage::passed:
      if (!may_finish()) return false;
      finish();
      return true;
  }
  return false;
}

bool NcclOperation::advance() {
  // Aborted group: a wait for it ends at its deadline.
  if (comm_stream_ != nullptr && comm_stream_->communicator.aborted()) return false;
  bool moved = false;
  while (!done() && move_on()) moved = true;
  return moved;
}

bool NcclOperation::enqueued() const {
  return done() || stage_ == Stage::running || stage_ == Stage::passed;
}

void NcclOperation::wait_on_stream(std::unique_ptr<Operation> self) {
  setting_.progress->wait_until_enqueued(*this);
  if (comm_stream_ == nullptr) wait();
  if (done()) return;
  setting_.device->follow(end_);
  comm_stream_->enqueued.keep(
      std::unique_ptr<NcclOperation>(static_cast<NcclOperation*>(self.release())));
}

void NcclOperation::give_up() {
  if (comm_stream_ != nullptr) comm_stream_->communicator.abort();
  finish();
}

Collective::Collective(const Setting& setting, const OperationLabel& label, CommStream& comm_stream,
                       std::vector<Step> steps)
    : NcclOperation(setting, label) {
  const auto sequence = comm_stream.sequence_count++;
  enter(comm_stream, sequence, std::move(steps));
}

std::vector<base::Rank> Collective::missing() const {
  return others(label(), setting());
}

}  // namespace trireme::comm::nccl
