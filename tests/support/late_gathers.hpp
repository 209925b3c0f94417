// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/error.hpp"
#include "trireme/comm/process_group.hpp"

#include "support/forwarded_group.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace trireme::testing {

/// Log of a group's gathers.
struct GatherLog {
  struct Event {
    enum class Kind { start, wait };
    Kind kind;
    const void* whole;
    std::size_t bytes;
    /// Time that `now` said.
    std::int64_t time;
  };
  std::vector<Event> events;
  /// Started and not waited for.
  int pending = 0;
  std::function<std::int64_t()> now = [] { return std::int64_t{0}; };
  /// This wait fails, counted from 0; -1: none.
  int fails_at = -1;
  /// Whether no operation of the group can begin any more.
  std::function<bool()> is_broken = [] { return false; };

  std::vector<Event> of(Event::Kind kind) const {
    std::vector<Event> found;
    for (const auto& event : events) {
      if (event.kind == kind) found.push_back(event);
    }
    return found;
  }
};

/// Group on host memory whose gathers seem to go on by themselves: what other ranks have given is
/// there once somebody has waited for it, and no number before.
class LateGathers final : public ForwardedGroup {
 public:
  LateGathers(comm::ProcessGroup& inner, GatherLog& log) : ForwardedGroup(inner), log_(log) {}

  bool moves_by_itself() const override { return true; }

  comm::Work start_all_gather(const device::Tensor& part, const device::Tensor& whole,
                              const comm::Cuts& cuts) override {
    expect_whole();
    inner_.all_gather(part, whole, cuts);
    log_.events.push_back(
        {GatherLog::Event::Kind::start, whole.raw(), whole.byte_count(), log_.now()});
    ++log_.pending;
    return comm::Work(std::make_unique<Late>(part, whole, log_));
  }
  comm::Work start_reduce_scatter(const device::Tensor& whole, const device::Tensor& part,
                                  const comm::Cuts& cuts) override {
    expect_whole();
    return inner_.start_reduce_scatter(whole, part, cuts);
  }

 private:
  void expect_whole() const {
    if (log_.is_broken()) throw base::Error(base::ExitCode::peer, "the group is broken");
  }

  class Late final : public comm::Work::Operation {
   public:
    Late(const device::Tensor& part, const device::Tensor& whole, GatherLog& log)
        : whole_(whole), log_(log), gathered_(whole.byte_count()), own_(part.byte_count()) {
      auto* const there = static_cast<std::byte*>(whole.raw());
      if (gathered_.empty()) return;
      std::memcpy(gathered_.data(), there, gathered_.size());
      if (!own_.empty()) std::memcpy(own_.data(), part.raw(), own_.size());
      // All bits: no number in f32 or bf16.
      std::memset(there, 0xff, gathered_.size());
      if (!own_.empty()) std::memcpy(part.raw(), own_.data(), own_.size());
    }
    /// No look finds it done.
    bool poll() override { return done_; }
    void wait() override {
      if (std::exchange(done_, true)) return;
      const auto waits = log_.of(GatherLog::Event::Kind::wait).size();
      log_.events.push_back(
          {GatherLog::Event::Kind::wait, whole_.raw(), gathered_.size(), log_.now()});
      --log_.pending;
      if (log_.fails_at == static_cast<int>(waits)) {
        throw base::Error(base::ExitCode::peer, "a peer is gone");
      }
      if (!gathered_.empty()) std::memcpy(whole_.raw(), gathered_.data(), gathered_.size());
    }
    bool done() const override { return done_; }

   private:
    device::Tensor whole_;
    GatherLog& log_;
    std::vector<std::byte> gathered_;
    std::vector<std::byte> own_;
    bool done_ = false;
  };

  GatherLog& log_;
};

}  // namespace trireme::testing
