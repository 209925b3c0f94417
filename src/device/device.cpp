// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/device.hpp"

#include "trireme/base/log.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>

namespace trireme::device {
namespace {

void copy_bytes(void* to, const void* from, std::size_t count) {
  if (count > 0 && to != from) std::memcpy(to, from, count);
}

class HostStopwatch final : public Stopwatch {
 public:
  void start() override { begin_ = Clock::now(); }
  void stop() override { seconds_ += std::chrono::duration<double>(Clock::now() - begin_).count(); }
  double take() override { return std::exchange(seconds_, 0.0); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_;
  double seconds_ = 0;
};

class HostDevice final : public Device {
 public:
  const char* name() const override { return "host"; }
  bool is_host() const override { return true; }
  Arena arena(Purpose purpose, std::size_t capacity_bytes) override {
    return Arena::host(purpose, capacity_bytes);
  }
  Arena staging(Purpose purpose, std::size_t capacity_bytes) override {
    return Arena::host(purpose, capacity_bytes);
  }
  void copy_in(const void* from, const Tensor& to) override {
    expect_contiguous(to);
    copy_bytes(to.raw(), from, to.byte_count());
  }
  void copy_out(const Tensor& from, void* to) override {
    expect_contiguous(from);
    copy_bytes(to, from.raw(), from.byte_count());
  }
  void copy(const Tensor& from, const Tensor& to) override {
    expect_alike(from, to);
    copy_bytes(to.raw(), from.raw(), from.byte_count());
  }
  Event record() override { return {}; }
  void follow(const Event& /*event*/) override {}
  std::unique_ptr<SideStream> side_stream(Priority /*priority*/) override { return nullptr; }
  std::unique_ptr<Stopwatch> stopwatch() override { return std::make_unique<HostStopwatch>(); }
};

/// Intervals of a watched wait: polling without a break for `busy`, then once in every `nap`.
constexpr std::chrono::microseconds busy{200};
constexpr std::chrono::microseconds nap{50};

}  // namespace

void expect_contiguous(const Tensor& x) {
  TRIREME_EXPECT(x.contiguous(), "host and device copy contiguous tensors, not " + x.text());
}

void Event::wait() {
  if (point_) point_->device().await(*point_);
  point_.reset();
}

void Device::begin_capture() {
  throw CaptureRefused(std::string(name()) + " records no work");
}

std::unique_ptr<CapturedGraph> Device::end_capture() {
  throw CaptureRefused(std::string(name()) + " records no work");
}

void Device::abandon_capture() {}

void Device::expect_no_capture(const char* what) const {
  if (capturing()) throw CaptureRefused(std::string(what) + " cannot be recorded");
}

void Device::await(Event::Point& point) {
  expect_no_capture("a wait of the host");
  ++waits_;
  if (watchers_.empty()) {
    point.block();
    return;
  }
  const auto begin = std::chrono::steady_clock::now();
  while (!point.passed()) {
    // An index, not an iterator: a watcher's action may remove another.
    for (std::size_t i = 0; i < watchers_.size(); ++i) {
      if (i == 0 || watchers_[i] != watchers_[i - 1]) watchers_[i]->look();
    }
    if (std::chrono::steady_clock::now() - begin > busy) std::this_thread::sleep_for(nap);
  }
  for (auto* watcher : watchers_) watcher->rest();
}

void Device::remove(Watcher& watcher) {
  const auto found = std::find(watchers_.begin(), watchers_.end(), &watcher);
  TRIREME_EXPECT(found != watchers_.end(), "only a watcher that was added is removed");
  watchers_.erase(found);
}

void expect_alike(const Tensor& from, const Tensor& to) {
  expect_contiguous(from);
  expect_contiguous(to);
  TRIREME_EXPECT(from.byte_count() == to.byte_count(),
                 "a device copies equally many bytes: " + from.text() + " to " + to.text());
}

Device& host_device() {
  static HostDevice device;
  return device;
}

void leave(Device& device) noexcept {
  if (std::uncaught_exceptions() > 0) return;
  try {
    device.synchronize();
  } catch (const std::exception& error) {
    base::log::local::error("device", "at the end of its work: {}", error.what());
  }
}

Tensor HostMirror::of(const Tensor& x) {
  if (device_.is_host() || !x) return x;
  expect_contiguous(x);
  blocks_.push_back(std::make_unique<std::byte[]>(x.byte_count()));
  pairs_.push_back({x, x.moved_to(blocks_.back().get())});
  return pairs_.back().here;
}

void HostMirror::fetch() {
  // The copies begin when the work is done: one to memory that is not pinned may block unwatched.
  device_.synchronize();
  for (const auto& pair : pairs_) device_.copy_out(pair.there, pair.here.raw());
  device_.synchronize();
}

void HostMirror::store() {
  device_.synchronize();
  for (const auto& pair : pairs_) device_.copy_in(pair.here.raw(), pair.there);
  device_.synchronize();
}

}  // namespace trireme::device
