// SPDX-License-Identifier: Apache-2.0
#include "trireme/engine/batch_loader.hpp"

#include "trireme/base/log.hpp"
#include "trireme/layout/token_runs.hpp"

#include <algorithm>
#include <chrono>
#include <future>
#include <mutex>
#include <system_error>
#include <utility>

namespace trireme::engine {

using layout::Axis;

namespace {

void put_samples(const StepSamples& samples, Engine& engine) {
  const auto& schedule = engine.options().schedule;
  const auto rows = schedule.micro_batch * rank_tokens(schedule, engine.options().sharding.mesh);
  for (int index = 0; index < schedule.micro_batches; ++index) {
    auto& batch = engine.batch(index);
    batch.first_sequence = static_cast<std::int64_t>(samples.first) + index * schedule.micro_batch;
    const auto put_part = [&](const std::vector<std::int32_t>& part, const device::Tensor& to) {
      if (!part.empty()) std::copy_n(part.begin() + index * rows, rows, to.i32());
    };
    put_part(samples.tokens, batch.tokens);
    put_part(samples.targets, batch.targets);
    put_part(samples.first_keys, batch.first_keys);
  }
  engine.expect_tokens(samples.counted);
}

int coordinate_of(const Engine& engine, Axis axis) {
  const auto& sharding = engine.options().sharding;
  return sharding.mesh.coordinate(axis, sharding.rank);
}

}  // namespace

SampleReader::SampleReader(const data::TokenDataset& dataset, const Engine& engine,
                           SampleOrder order)
    : dataset_(dataset),
      order_(order),
      parts_(engine.sample_parts()),
      sequence_length_(engine.options().schedule.sequence_length),
      runs_(layout::token_runs(sequence_length_,
                               engine.options().sharding.mesh.degree(Axis::context),
                               coordinate_of(engine, Axis::context))),
      rank_tokens_(rank_tokens(engine.options().schedule, engine.options().sharding.mesh)),
      sequences_(engine.options().schedule.sequences()),
      first_(static_cast<std::uint64_t>(sequences_ * coordinate_of(engine, Axis::data))),
      global_batch_(static_cast<std::uint64_t>(engine.global_batch())) {}

void SampleReader::read_sample(std::uint64_t number, std::uint64_t end,
                               std::span<std::int32_t> sample) const {
  if (order_ == SampleOrder::drawn) return dataset_.sample(number, sample);
  // Samples beyond are not counted, and need not be there.
  dataset_.sample_of_pass(std::min(number, end - 1), sample);
}

void SampleReader::read_starts(std::uint64_t number, std::uint64_t end,
                               std::span<std::int32_t> starts) const {
  if (order_ == SampleOrder::drawn) return dataset_.document_starts(number, starts);
  dataset_.document_starts_of_pass(std::min(number, end - 1), starts);
}

void SampleReader::put_runs(const std::int32_t* first, std::int64_t sequence,
                            std::vector<std::int32_t>& values) const {
  auto place = values.begin() + sequence * rank_tokens_;
  for (const auto& run : runs_) place = std::copy_n(first + run.begin, run.size(), place);
}

void SampleReader::read(std::uint64_t cursor, std::uint64_t end, StepSamples& samples) const {
  const auto seq = sequence_length_;
  const auto elements = static_cast<std::size_t>(sequences_ * rank_tokens_);
  samples.first = cursor + first_;
  samples.counted = static_cast<std::int64_t>(std::min(global_batch_, end - cursor)) * seq;
  samples.tokens.resize(parts_.tokens ? elements : 0);
  samples.targets.resize(parts_.targets ? elements : 0);
  samples.first_keys.resize(parts_.first_keys ? elements : 0);
  std::vector<std::int32_t> sample(static_cast<std::size_t>(seq) + 1);
  for (std::int64_t sequence = 0; sequence < sequences_; ++sequence) {
    const auto number = samples.first + static_cast<std::uint64_t>(sequence);
    if (parts_.tokens || parts_.targets) read_sample(number, end, sample);
    if (parts_.tokens) put_runs(sample.data(), sequence, samples.tokens);
    if (parts_.targets) put_runs(sample.data() + 1, sequence, samples.targets);
    if (number >= end && parts_.targets) {
      std::fill_n(samples.targets.begin() + sequence * rank_tokens_, rank_tokens_, -1);
    }
    if (!parts_.first_keys) continue;
    read_starts(number, end, std::span(sample).first(static_cast<std::size_t>(seq)));
    put_runs(sample.data(), sequence, samples.first_keys);
  }
}

void BatchLoader::fill(std::uint64_t cursor, std::uint64_t end) {
  reader_.read(cursor, end, samples_);
  put_samples(samples_, engine_);
}

/// Values that the thread uses.
struct ReadAhead::State {
  explicit State(Read function) : read(std::move(function)) {}

  Read read;
  std::uint64_t cursor = 0;
  StepSamples samples;
  bool has_warned = false;
  /// Valid from start() to the next fill(). Waits where it ends; ends before what it reads with.
  std::future<void> under_way;
  /// State that was left to its thread before this one: nobody is to take either for lost.
  State* left_before = nullptr;
};

ReadAhead::ReadAhead(std::shared_ptr<const data::TokenDataset> dataset, Engine& engine)
    : ReadAhead(engine, [reader = SampleReader(*dataset, engine), dataset](std::uint64_t cursor,
                                                                           StepSamples& samples) {
        reader.read(cursor, UINT64_MAX, samples);
      }) {}

ReadAhead::ReadAhead(Engine& engine, Read read)
    : engine_(engine), state_(std::make_unique<State>(std::move(read))) {}

ReadAhead::~ReadAhead() {
  const auto& thread = state_->under_way;
  // Training is over, which a call that does not return must not hold up: the thread keeps what it
  // uses until the process has ended.
  if (!thread.valid() || thread.wait_for(std::chrono::seconds(1)) == std::future_status::ready) {
    return;
  }
  static std::mutex mutex;
  static State* left_behind = nullptr;
  const std::lock_guard lock(mutex);
  state_->left_before = left_behind;
  left_behind = state_.release();
}

void ReadAhead::start(std::uint64_t cursor) {
  auto& state = *state_;
  state.under_way = {};
  state.cursor = cursor;
  try {
    state.under_way =
        std::async(std::launch::async, [&state, cursor] { state.read(cursor, state.samples); });
  } catch (const std::system_error& error) {
    if (std::exchange(state.has_warned, true)) return;
    base::log::local::warning("engine",
                              "samples are not read a step ahead: a thread does not start: {} (the "
                              "limit of processes is reached, and each step waits for its own); "
                              "raise the limit (ulimit -u, pids.max)",
                              error.code().message());
  }
}

void ReadAhead::fill(std::uint64_t cursor) {
  auto& state = *state_;
  if (state.under_way.valid() && state.cursor == cursor) {
    state.under_way.get();
  } else {
    state.under_way = {};
    state.read(cursor, state.samples);
  }
  put_samples(state.samples, engine_);
}

}  // namespace trireme::engine
