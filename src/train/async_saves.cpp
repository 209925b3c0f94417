// SPDX-License-Identifier: Apache-2.0
#include "train/async_saves.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/engine/parameter_parts.hpp"

#include "train/clock.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace trireme::train {
namespace {

/// Room for this rank's shards as they lie in its file, one after the other: pages of it are pages
/// of the file, which are written without another copy.
device::Arena arena_for(engine::Engine& engine) {
  const auto bytes = engine::saved_bytes(engine.options());
  auto& device = engine.device();
  return device.is_host() ? device::Arena::host(device::Purpose::optimizer, bytes)
                          : device.staging(device::Purpose::optimizer, bytes);
}

struct Copy {
  device::Tensor from;
  device::Tensor to;
};

/// Copies from a device, which no other thread may use, before this returns.
void copy_out(device::Device& device, const std::vector<Copy>& copies) {
  device.synchronize();
  for (const auto& [from, to] : copies) device.copy_out(from, to.raw());
  device.synchronize();
}

/// A request whose shards lie in `memory`, and what they are copied from.
struct Snapshot {
  checkpoint::SaveRequest request;
  std::vector<Copy> copies;
};

Snapshot snapshot_of(const SavedRun& saved, engine::Engine& engine, const device::Arena& memory) {
  Snapshot snapshot{save_request(saved, engine), {}};
  std::size_t begin = 0;
  for (const auto& shard : engine.saved_shards()) {
    const auto to = shard.moved_to(static_cast<std::byte*>(memory.whole().raw()) + begin);
    snapshot.copies.push_back({shard, to});
    snapshot.request.shards.push_back(to);
    begin += shard.byte_count();
  }
  return snapshot;
}

}  // namespace

AsyncSaves::AsyncSaves(engine::Engine& engine, comm::ProcessGroup& world)
    : engine_(engine), world_(world), memory_(arena_for(engine)) {
  if (!engine.device().is_host()) return;  // pinned memory is there already
  // The system gives pages when they are first touched, which takes longer than the copy: seconds
  // on a virtual machine whose host has to find them.
  touching_ = std::async(std::launch::async, [this] {
    const auto whole = memory_.whole();
    constexpr std::size_t piece = std::size_t{4} << 20;
    for (std::size_t at = 0; at < whole.byte_count() && !given_up_; at += piece) {
      std::memset(static_cast<std::byte*>(whole.raw()) + at, 0,
                  std::min(piece, whole.byte_count() - at));
    }
  });
}

AsyncSaves::~AsyncSaves() {
  given_up_ = true;
}

checkpoint::SaveReport AsyncSaves::save_now(const SavedRun& saved) {
  TRIREME_EXPECT(!is_running(), "one save at a time");
  if (engine_.device().is_host()) return save(saved, engine_, world_);
  const auto [request, copies] = snapshot_of(saved, engine_, memory_);
  copy_out(engine_.device(), copies);
  return checkpoint::save(request, world_, {.before_commit = saved.before_commit});
}

void AsyncSaves::start(const SavedRun& saved) {
  TRIREME_EXPECT(!is_running(), "one save at a time");
  const auto begin = Clock::now();
  if (touching_.valid()) touching_.wait();
  auto snapshot = snapshot_of(saved, engine_, memory_);
  std::function<void()> copy;
  if (engine_.device().is_host()) {
    copy = [copies = std::move(snapshot.copies)] {
      for (const auto& [from, to] : copies) std::memcpy(to.raw(), from.raw(), from.byte_count());
    };
  } else {
    copy_out(engine_.device(), snapshot.copies);
  }
  // One thread where ranks compute on the cores that it would take.
  const int threads = engine_.device().is_host() ? 1 : 0;
  save_.emplace(std::move(snapshot.request), std::move(copy), world_,
                checkpoint::SaveOptions{.threads = threads, .before_commit = saved.before_commit});
  stall_seconds_ = seconds_since(begin);
}

void AsyncSaves::await_copy() {
  if (!save_) return;
  const auto begin = Clock::now();
  save_->await_copy();
  stall_seconds_ += seconds_since(begin);
}

std::int64_t AsyncSaves::step() const {
  TRIREME_EXPECT(save_.has_value(), "a save is running");
  return save_->step();
}

std::optional<SaveRecord> AsyncSaves::advance() {
  TRIREME_EXPECT(save_.has_value(), "a save is running");
  const auto begin = Clock::now();
  const auto step = save_->step();
  std::optional<checkpoint::SaveReport> report;
  try {
    report = save_->advance(world_);
  } catch (...) {
    save_.reset();
    throw;
  }
  stall_seconds_ += seconds_since(begin);
  if (!report) return std::nullopt;
  save_.reset();
  return SaveRecord{step, report->payload_bytes, stall_seconds_, report->seconds, true};
}

}  // namespace trireme::train
