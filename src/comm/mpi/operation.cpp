// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/operation.hpp"

namespace trireme::comm {

MpiOperation::MpiOperation(ProgressEngine& progress, const OperationLabel& label, Route route,
                           std::vector<Stage> stages, BufferPool::Lease staging)
    : PendingOperation(progress, label),
      route_(route),
      stages_(std::move(stages)),
      staging_(std::move(staging)) {}

MpiOperation::~MpiOperation() {
  if (!done()) *route_.broken = true;
}

void MpiOperation::begin_next() {
  batch_.emplace(route_.communicator, route_.tag, std::move(stages_[begun_].steps));
  ++begun_;
  batch_->advance();
}

bool MpiOperation::advance() {
  bool moved = false;
  if (!batch_ && begun_ < stages_.size()) {
    begin_next();
    moved = true;
  }
  while (batch_) {
    moved = batch_->advance() || moved;
    if (!batch_->done()) return moved;
    const auto& finish = stages_[begun_ - 1].finish;
    const bool more = begun_ < stages_.size();
    const bool early = more && stages_[begun_].early;
    batch_.reset();
    if (early) begin_next();
    if (finish) finish();
    if (more && !early) begin_next();
  }
  PendingOperation::finish();
  return true;
}

std::vector<base::Rank> MpiOperation::missing() const {
  std::vector<base::Rank> ranks;
  if (!batch_) return ranks;
  for (const int position : batch_->missing()) ranks.push_back(member(position));
  return ranks;
}

}  // namespace trireme::comm
