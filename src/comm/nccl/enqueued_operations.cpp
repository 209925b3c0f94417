// SPDX-License-Identifier: Apache-2.0
#include "comm/nccl/enqueued_operations.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/log.hpp"

#include <exception>
#include <thread>

namespace trireme::comm::nccl {

EnqueuedQueue::EnqueuedQueue(const Setting& setting) : setting_(setting) {
  setting_.progress->add(*this);
  setting_.device->add(*setting_.progress);
}

EnqueuedQueue::~EnqueuedQueue() {
  if (std::uncaught_exceptions() > 0) {
    give_up();
  } else {
    finish();
  }
  setting_.device->remove(*setting_.progress);
  setting_.progress->remove(*this);
}

void EnqueuedQueue::finish() const {
  try {
    while (!empty()) {
      setting_.progress->look();
      if (!empty()) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  } catch (const base::Error& error) {
    base::log::local::error("comm", "at the end of a process group: {}", error.what());
  }
}

void EnqueuedQueue::keep(std::unique_ptr<StreamOperation> operation) {
  // Drops completed operations, so that few are kept at any time.
  oldest();
  operation->leave_progress();
  operations_.push_back(std::move(operation));
}

PendingOperation* EnqueuedQueue::oldest() {
  while (!empty()) {
    auto& first = *operations_.front();
    first.advance();
    if (!first.done()) {
      if (!first.begun()) return nullptr;
      if (!since_) since_.emplace();
      return &first;
    }
    operations_.pop_front();
    since_.reset();
  }
  return nullptr;
}

std::chrono::duration<double> EnqueuedQueue::waited() {
  return since_ ? since_->waited() : std::chrono::duration<double>(0);
}

void EnqueuedQueue::give_up() {
  if (empty()) return;
  given_up_ = true;
  // Operations are kept all the same: messages of the host may still be under way.
  for (auto& operation : operations_) operation->give_up();
}

}  // namespace trireme::comm::nccl
