// SPDX-License-Identifier: Apache-2.0
// Waits of a step as it tells them, by a clock that stands still but for what takes time here: each
// kernel, each message and each reduction as long as the test says.
#include "trireme/device/passing_device.hpp"
#include "trireme/engine/engine.hpp"
#include "trireme/engine/measure.hpp"

#include "support/forwarding_kernels.hpp"
#include "unit/engine/stage_options.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <utility>

using namespace trireme;
using layout::Axis;

namespace {

constexpr double kernel_seconds = 1;
constexpr double start_seconds = 10;

class CountedStopwatch final : public device::Stopwatch {
 public:
  explicit CountedStopwatch(const double& now) : now_(now) {}
  void start() override { begin_ = now_; }
  void stop() override { seconds_ += now_ - begin_; }
  double take() override { return std::exchange(seconds_, 0.0); }

 private:
  const double& now_;
  double begin_ = 0;
  double seconds_ = 0;
};

class CountedDevice final : public device::PassingDevice {
 public:
  CountedDevice(device::Device& inner, const double& now) : PassingDevice(inner), now_(now) {}
  std::unique_ptr<device::Stopwatch> stopwatch() override {
    return std::make_unique<CountedStopwatch>(now_);
  }

 private:
  const double& now_;
};

class CountedKernels final : public testing::ForwardingKernels {
 public:
  explicit CountedKernels(double& now)
      : ForwardingKernels(device::make_reference_kernels()),
        now_(now),
        device_(ForwardingKernels::device(), now) {}

  device::Device& device() override { return device_; }
  void compute(const device::Operation& operation) override {
    now_ += kernel_seconds;
    ForwardingKernels::compute(operation);
  }

 private:
  double& now_;
  CountedDevice device_;
};

/// Over when somebody waits for it, which takes its time. No look at it finds it done.
class Late final : public comm::Work::Operation {
 public:
  Late(double& now, double seconds) : now_(now), seconds_(seconds) {}
  bool poll() override { return done_; }
  void wait() override {
    if (!std::exchange(done_, true)) now_ += seconds_;
  }
  bool done() const override { return done_; }

 private:
  double& now_;
  double seconds_;
  bool done_ = false;
};

/// A group whose peers are pretended, and late.
class LateGroup final : public comm::ProcessGroup {
 public:
  LateGroup(const char* name, const engine::EngineOptions& options, Axis axis, double& now,
            double seconds)
      : ProcessGroup(name, options.sharding.mesh.group(axis, options.sharding.rank),
                     options.sharding.mesh.coordinate(axis, options.sharding.rank)),
        now_(now),
        seconds_(seconds),
        inner_(comm::make_dry_run_group(name, ranks(), rank(), comm::DryRunData::mirrored)) {}

  int reductions = 0;
  int receives = 0;
  int gathers = 0;

  const char* backend() const override { return "late"; }
  bool moves_by_itself() const override { return true; }
  comm::Work start_all_reduce(const device::Tensor& x, comm::ReduceOp op) override {
    return reduction(inner_->start_all_reduce(x, op));
  }
  comm::Work start_reduce_scatter(const device::Tensor& whole, const device::Tensor& part,
                                  const comm::Cuts& cuts) override {
    return reduction(inner_->start_reduce_scatter(whole, part, cuts));
  }
  comm::Work start_all_gather(const device::Tensor& part, const device::Tensor& whole,
                              const comm::Cuts& cuts) override {
    inner_->start_all_gather(part, whole, cuts).wait();
    ++gathers;
    return late();
  }
  ProcessGroup& host_group() override { return *inner_; }
  comm::Work start_all_to_all(const device::Tensor& from, const device::Tensor& to) override {
    return inner_->start_all_to_all(from, to);
  }
  comm::Work start_broadcast(const device::Tensor& x, int root) override {
    return inner_->start_broadcast(x, root);
  }
  comm::Work start_send(const device::Tensor& x, int peer, int tag) override {
    return inner_->start_send(x, peer, tag);
  }
  comm::Work start_receive(const device::Tensor& x, int peer, int tag) override {
    inner_->start_receive(x, peer, tag).wait();
    ++receives;
    return late();
  }
  void barrier() override {}

 private:
  comm::Work reduction(comm::Work work) {
    work.wait();
    ++reductions;
    now_ += start_seconds;
    return late();
  }
  comm::Work late() { return comm::Work(std::make_unique<Late>(now_, seconds_)); }

  double& now_;
  double seconds_;
  std::unique_ptr<comm::ProcessGroup> inner_;
};

engine::EngineOptions llama_options(const layout::Mesh& mesh, int stage) {
  auto options = testing::options_of_stage(mesh, stage, 6);
  options.model.architecture = model::Architecture::llama;
  return options;
}

/// The times of one step as told, and as they had to be.
struct Told {
  double bubble = 0;
  double exposed = 0;
  double parameters = 0;
  int receives = 0;
  int reductions = 0;
  int gathers = 0;
};

/// Times of the second step: what the first has measured is gone by then.
Told step_of(const engine::EngineOptions& options, double message_seconds,
             double reduction_seconds) {
  double now = 0;
  CountedKernels kernels(now);
  const auto tensor = comm::make_local_group("tp", options.sharding.rank);
  LateGroup pipeline("pp", options, Axis::pipeline, now, message_seconds);
  LateGroup data("dp", options, Axis::data, now, reduction_seconds);
  auto memory = engine::Memory::host(engine::measure(options));
  comm::AxisGroups groups;
  groups.set(Axis::tensor, *tensor);
  groups.set(Axis::pipeline, pipeline);
  groups.set(Axis::data, data);
  engine::Engine engine(options, groups, kernels, memory);
  engine.initialise();
  for (int index = 0; index < options.schedule.micro_batches; ++index) {
    auto& batch = engine.batch(index);
    for (std::int64_t at = 0; at < options.schedule.sequence_length; ++at) {
      batch.tokens.i32()[at] = static_cast<std::int32_t>(at);
      batch.targets.i32()[at] = static_cast<std::int32_t>(at + 1);
    }
  }
  engine.run_schedule();
  engine.reduce_gradients();
  pipeline.receives = data.reductions = data.gathers = 0;
  engine.update({.gradient_norm = 1});
  Told told;
  const auto schedule = engine.run_schedule();
  told.bubble = schedule.bubble_seconds;
  told.parameters = schedule.parameters_seconds.value_or(-1);
  told.exposed = engine.reduce_gradients().exposed_seconds;
  told.gathers = data.gathers;
  told.receives = pipeline.receives;
  told.reductions = data.reductions;
  return told;
}

}  // namespace

TEST_CASE("a stage that stands still for late messages tells as much of a bubble, and no more") {
  for (const int stages : {1, 2, 3}) {
    for (int stage = 0; stage < stages; ++stage) {
      CAPTURE(stages, stage);
      const auto options = llama_options(layout::Mesh::of(stages, 1, 1), stage);
      const auto told = step_of(options, 100, 0);
      // Inputs from the stage before, gradients from the one after.
      const int neighbours = (stage > 0 ? 1 : 0) + (stage + 1 < stages ? 1 : 0);
      CHECK(told.receives == options.schedule.micro_batches * neighbours);
      CHECK(told.bubble == 100 * told.receives);
      CHECK(told.exposed == 0);
      CHECK(step_of(options, 0, 0).bubble == 0);
    }
  }
}

TEST_CASE("late reductions of gradients are exposed, and so is their start") {
  for (const int zero_level : {0, 1}) {
    CAPTURE(zero_level);
    auto options = llama_options(layout::Mesh::of(1, 2, 1), 0);
    options.sharding.zero_level = zero_level;
    const auto told = step_of(options, 0, 1000);
    CHECK(told.reductions > 2);
    CHECK(told.exposed == told.reductions * (start_seconds + 1000));
    CHECK(told.bubble == 0);
    CHECK(step_of(options, 0, 0).exposed == told.reductions * start_seconds);
  }
}

TEST_CASE("waits for messages, for reductions and for gathers of parameters are told apart") {
  auto options = llama_options(layout::Mesh::of(2, 2, 1), 1);
  auto told = step_of(options, 100, 1000);
  CHECK(told.bubble == 100 * told.receives);
  CHECK(told.exposed == told.reductions * (start_seconds + 1000));
  CHECK(told.gathers == 0);
  CHECK(told.parameters == -1);
  options.sharding.zero_level = 1;
  told = step_of(options, 100, 1000);
  CHECK(told.bubble == 100 * told.receives);
  CHECK(told.exposed == told.reductions * (start_seconds + 1000));
  CHECK(told.gathers > 2);
  CHECK(told.parameters == 1000 * told.gathers);
}
