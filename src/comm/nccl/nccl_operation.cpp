#include "comm/nccl/nccl_operation.hpp"

#include <utility>

namespace trireme::comm::nccl {

NcclOperation::~NcclOperation() {
  if (!done() && lane_ != nullptr) lane_->communicator.abort();
}

void NcclOperation::enter(Lane& lane, std::uint64_t ticket, std::vector<Step> steps) {
  lane_ = &lane;
  ticket_ = ticket;
  steps_ = std::move(steps);
  stage_ = Stage::queued;
}

void NcclOperation::fail_lane() {
  fail(*this, lane_->communicator, setting_);
}

bool NcclOperation::issue() {
  if (lane_->turn != ticket_) return false;
  auto& communicator = lane_->communicator;
  const bool ready = communicator.ready();
  if (!communicator.trouble().empty()) fail_lane();
  if (!ready) return false;
  if (taken_ == 0 && lane_->memory.tell_next(setting_, communicator)) return true;
  if (taken_ < steps_.size()) {
    if (taken_ == 0) lane_->stream->follow(begun_);
    communicator.note(steps_[taken_++](communicator.raw(), lane_->stream->handle()), "NCCL");
    return true;
  }
  end_ = lane_->stream->record();
  ++lane_->turn;
  stage_ = Stage::running;
  return true;
}

bool NcclOperation::watch_device() {
  if (end_.passed()) {
    stage_ = Stage::passed;
    return true;
  }
  lane_->communicator.ready();
  if (!lane_->communicator.trouble().empty()) fail_lane();
  return false;
}

bool NcclOperation::move_on() {
  switch (stage_) {
    case Stage::preparing:
      return prepare();
    case Stage::queued:
      return issue();
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
  // The group is given up; whoever waits here meets the deadline.
  if (lane_ != nullptr && lane_->communicator.aborted()) return false;
  bool moved = false;
  while (!done() && move_on()) moved = true;
  return moved;
}

bool NcclOperation::issued() const {
  return done() || stage_ == Stage::running || stage_ == Stage::passed;
}

void NcclOperation::join(std::unique_ptr<Operation> self) {
  setting_.progress->wait_until_issued(*this);
  if (lane_ == nullptr) wait();
  if (done()) return;
  setting_.device->follow(end_);
  lane_->joined.keep(std::unique_ptr<NcclOperation>(static_cast<NcclOperation*>(self.release())));
}

void NcclOperation::give_up() {
  if (lane_ != nullptr) lane_->communicator.abort();
  finish();
}

Collective::Collective(const Setting& setting, const OperationLabel& label, Lane& lane,
                       std::vector<Step> steps)
    : NcclOperation(setting, label) {
  const auto ticket = lane.tickets++;
  enter(lane, ticket, std::move(steps));
}

std::vector<base::Rank> Collective::missing() const {
  return others(label(), setting());
}

}  // namespace trireme::comm::nccl
