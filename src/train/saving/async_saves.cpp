// SPDX-License-Identifier: Apache-2.0
#include "train/saving/async_saves.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/log.hpp"
#include "trireme/engine/state_parts.hpp"

#include "train/clock.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

namespace trireme::train {
namespace {

/// Room for this rank's shards as they lie in its file, one after the other: pages of it are pages
/// of the file, which are written without another copy.
device::Arena arena_for(engine::Engine& engine) {
  const auto bytes = engine.sharding().saved_bytes();
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

/// One thread where ranks compute on the cores that more would take.
int threads_beside(device::Device& device) {
  return device.is_host() ? 1 : 0;
}

Snapshot snapshot_of(const SavedRun& saved, engine::Engine& engine, const device::Arena& memory) {
  Snapshot snapshot{save_request(saved, engine), {}};
  std::size_t begin = 0;
  for (const auto& shard : engine.saved_shards()) {
    const auto to = shard.moved_to(static_cast<std::byte*>(memory.whole().raw()) + begin);
    snapshot.copies.push_back({shard, to});
    begin += shard.byte_count();
  }
  // One shard a bucket, whatever the runs of memory that it comes from.
  begin = 0;
  const auto file = static_cast<std::size_t>(engine.options().sharding.rank.value());
  for (const auto& bucket : snapshot.request.contents.buckets) {
    if (!bucket.files.position_of(file)) continue;
    snapshot.request.shards.push_back({static_cast<std::byte*>(memory.whole().raw()) + begin,
                                       bucket.dtype,
                                       {bucket.shard_elements}});
    begin += bucket.shard_bytes();
  }
  return snapshot;
}

}  // namespace

AsyncSaves::AsyncSaves(engine::Engine& engine, comm::ProcessGroup& world,
                       const checkpoint::Contents& contents,
                       std::optional<checkpoint::NodeTier> tier)
    : engine_(engine), world_(world), memory_(arena_for(engine)) {
  std::vector<device::Tensor> untouched;
  if (tier) {
    const auto bytes = checkpoint::copied_bytes(*tier, contents, world.rank());
    auto copies = device::Arena::host(device::Purpose::optimizer, bytes);
    untouched.push_back(copies.whole());
    nodes_ = std::make_unique<Nodes>(Nodes{*std::move(tier), std::move(copies)});
  }
  // Pinned memory is there already.
  if (engine.device().is_host()) untouched.push_back(memory_.whole());
  // The system gives pages when they are first touched, which takes longer than the copy: seconds
  // on a virtual machine whose host has to find them.
  touching_ = std::async(std::launch::async, [this, untouched] {
    for (const auto& whole : untouched) {
      constexpr std::size_t piece = std::size_t{4} << 20;
      for (std::size_t at = 0; at < whole.byte_count() && !given_up_; at += piece) {
        std::memset(static_cast<std::byte*>(whole.raw()) + at, 0,
                    std::min(piece, whole.byte_count() - at));
      }
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
  return checkpoint::save(request, world_,
                          {.files = saved.files, .before_commit = saved.before_commit});
}

void AsyncSaves::start(const SavedRun& saved, Goal goal, Clock::time_point begin) {
  TRIREME_EXPECT(!is_running(), "one save at a time");
  if (touching_.valid()) touching_.wait();
  if (pruning_.valid()) pruning_.wait();
  auto snapshot = snapshot_of(saved, engine_, memory_);
  auto& request = snapshot.request;
  after_save_.reset();
  refused_.reset();
  is_for_nodes_ = nodes_ && (goal == Goal::nodes || !nodes_->failed);
  if (is_for_nodes_) {
    if (goal == Goal::run) after_save_ = ToRun{request, saved.before_commit, &saved.files};
    request.checkpoints = nodes_->tier.folder();
    request.tier = &nodes_->tier;
    const auto copies = nodes_->copies.whole();
    request.copies = {static_cast<std::byte*>(copies.raw()), copies.byte_count()};
  }
  std::function<void()> copy;
  if (engine_.device().is_host()) {
    copy = [copies = std::move(snapshot.copies)] {
      for (const auto& [from, to] : copies) std::memcpy(to.raw(), from.raw(), from.byte_count());
    };
  } else {
    copy_out(engine_.device(), snapshot.copies);
  }
  try {
    save_.emplace(std::move(request), std::move(copy), world_,
                  checkpoint::SaveOptions{.threads = threads_beside(engine_.device()),
                                          .files = saved.files,
                                          .before_commit = is_for_nodes_ ? saved.before_node_commit
                                                                         : saved.before_commit});
  } catch (...) {
    // The values are not copied: who calls still has them.
    after_save_.reset();
    if (is_for_nodes_) nodes_->failed = true;
    throw;
  }
  stall_seconds_ = span_seconds(begin, telemetry::SpanKind::save);
}

void AsyncSaves::save_to_run(std::optional<checkpoint::BackgroundSave>& save, ToRun what) {
  save.emplace(std::move(what.request), nullptr, world_,
               checkpoint::SaveOptions{.threads = threads_beside(engine_.device()),
                                       .files = *what.files,
                                       .before_commit = std::move(what.before_commit)});
}

void AsyncSaves::start_again() {
  TRIREME_EXPECT(refused_.has_value() && !is_running() && !is_draining(),
                 "a step was refused, nothing is in its way");
  const auto begin = Clock::now();
  is_for_nodes_ = false;
  auto refused = std::exchange(refused_, std::nullopt);
  TRIREME_ENSURE(refused.has_value(), "a step was refused");
  save_to_run(save_, *std::move(refused));
  stall_seconds_ += span_seconds(begin, telemetry::SpanKind::save);
}

void AsyncSaves::await_copy() {
  if (!save_) return;
  const auto begin = Clock::now();
  save_->await_copy(world_);
  stall_seconds_ += span_seconds(begin, telemetry::SpanKind::save);
}

std::int64_t AsyncSaves::step() const {
  TRIREME_EXPECT(save_.has_value(), "a save is running");
  return save_->step();
}

std::int64_t AsyncSaves::refused_step() const {
  TRIREME_EXPECT(refused_.has_value(), "the nodes have refused a step");
  return refused_->request.step;
}

std::int64_t AsyncSaves::waiting_step() const {
  TRIREME_EXPECT(waiting_.has_value(), "a step is to be copied");
  return waiting_->request.step;
}

std::int64_t AsyncSaves::draining_step() const {
  TRIREME_EXPECT(drain_.has_value(), "a step is being copied");
  return drain_->step();
}

std::optional<SaveRecord> AsyncSaves::poll() {
  TRIREME_EXPECT(save_.has_value(), "a save is running");
  const auto begin = Clock::now();
  const auto step = save_->step();
  std::optional<checkpoint::SaveReport> report;
  try {
    report = save_->poll(world_);
  } catch (...) {
    // Ends the thread that reads what is in memory.
    save_.reset();
    refused_ = std::exchange(after_save_, std::nullopt);
    if (is_for_nodes_) nodes_->failed = true;
    throw;
  }
  stall_seconds_ += span_seconds(begin, telemetry::SpanKind::save);
  if (!report) return std::nullopt;
  save_.reset();
  SaveRecord record{step, report->payload_bytes, stall_seconds_, report->seconds, true};
  if (is_for_nodes_) {
    record.tier = SaveRecord::Tier::nodes;
    nodes_->failed = false;
    if (after_save_) {
      auto& waiting = waiting_.emplace(std::move(*after_save_));
      after_save_.reset();
      waiting.request.shards.clear();
      waiting.request.from = nodes_->tier.folder() / checkpoint::step_folder_name(step);
    }
    prune_node(step);
  }
  return record;
}

void AsyncSaves::start_draining() {
  TRIREME_EXPECT(waiting_.has_value() && is_to_drain(), "a step waits, nothing is in its way");
  auto waiting = std::exchange(waiting_, std::nullopt);
  TRIREME_ENSURE(waiting.has_value(), "a step waits");
  save_to_run(drain_, *std::move(waiting));
}

std::optional<SaveRecord> AsyncSaves::poll_drain() {
  TRIREME_EXPECT(drain_.has_value(), "a step is being copied");
  const auto begin = Clock::now();
  const auto step = drain_->step();
  std::optional<checkpoint::SaveReport> report;
  try {
    report = drain_->poll(world_);
  } catch (...) {
    drain_.reset();
    throw;
  }
  if (!report) return std::nullopt;
  drain_.reset();
  return SaveRecord{step, report->payload_bytes, seconds_since(begin), report->seconds, true};
}

void AsyncSaves::prune_node(std::int64_t newest) {
  if (!nodes_->tier.leads_node(world_.rank())) return;
  std::set<std::int64_t> kept{newest};
  if (drain_) kept.insert(drain_->step());
  if (waiting_) kept.insert(waiting_->request.step);
  pruning_ = std::async(std::launch::async, [this, kept = std::move(kept)] {
    checkpoint::keep_on_node(nodes_->tier,
                             [&kept](std::int64_t step) { return kept.contains(step); });
  });
}

void AsyncSaves::leave_nodes() {
  if (!nodes_ || !nodes_->tier.leads_node(world_.rank())) return;
  if (pruning_.valid()) pruning_.wait();
  std::error_code error;
  std::filesystem::remove_all(nodes_->tier.folder(), error);
  if (!error) return;
  base::log::local::warning("train", "cannot remove '{}': {}", nodes_->tier.folder().string(),
                            error.message());
}

void AsyncSaves::forget_after(std::int64_t step) {
  if (!nodes_ || !nodes_->tier.leads_node(world_.rank())) return;
  if (pruning_.valid()) pruning_.wait();
  checkpoint::keep_on_node(nodes_->tier, [step](std::int64_t each) { return each <= step; });
}

}  // namespace trireme::train
