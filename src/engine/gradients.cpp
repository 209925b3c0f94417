// SPDX-License-Identifier: Apache-2.0
#include "gradients.hpp"

#include "trireme/device/timed.hpp"

#include <algorithm>
#include <utility>

namespace trireme::engine {

using device::Tensor;
using device::Timed;
using layout::Axis;
using telemetry::SpanKind;

namespace {

/// Elements of the exchange buffer: for each partial shard piece, room for every rank's part.
std::int64_t exchange_size(const model::StageParameters& stage) {
  std::int64_t size = 0;
  for (const auto& fused : stage.fused_parameters()) {
    for (const auto& piece : fused.pieces) {
      if (piece.partial) size += piece.parts * piece.flat.size();
    }
  }
  return size;
}

}  // namespace

GradientReducer::GradientReducer(const sharding::Sharding& sharding, const comm::AxisGroups& groups,
                                 device::Kernels& kernels, device::Arena& arena)
    : sharding_(sharding),
      groups_(groups),
      kernels_(kernels),
      stage_(sharding.stage()),
      parameters_of_bucket_(stage_.flat().buckets.size(), 0),
      exposed_(kernels.device().stopwatch()),
      hosts_part_(kernels.device().is_host() ? exposed_.get() : nullptr) {
  if (const auto size = exchange_size(stage_); size > 0) {
    exchange_ = arena.allocate(device::DType::f32, {size});
  }
  for (std::size_t index = 0; index < stage_.fused_parameters().size(); ++index) {
    const auto& fused = stage_.fused_parameters()[index];
    const auto buckets = stage_.flat().buckets_of_tensor(index);
    for (auto each = buckets.begin; each < buckets.end; ++each) {
      const auto bucket = static_cast<std::size_t>(each);
      ++parameters_of_bucket_[bucket];
      // Reduced at the end of the step.
      if (!fused.tied) buckets_of_place_[fused.place].push_back(bucket);
    }
  }
}

void GradientReducer::begin_step(const Tensor& flat) {
  flat_ = flat;
  parameters_missing_ = parameters_of_bucket_;
  kernels_.issue(device::Fill{flat, 0.0F});
}

void GradientReducer::completed(const model::Place& place) {
  const auto found = buckets_of_place_.find(place);
  if (found == buckets_of_place_.end()) return;
  for (const auto bucket : found->second) {
    if (--parameters_missing_[bucket] == 0) start(bucket);
  }
}

void GradientReducer::start(std::size_t bucket) {
  if (groups_.on(Axis::data).size() == 1) return;
  Timed timed(hosts_part_, SpanKind::gradients);
  if (under_way_.empty()) busy_since_ = telemetry::SpanClock::now();
  const auto range = stage_.flat().buckets[bucket];
  const auto whole = flat_.slice(0, range.begin, range.size());
  if (sharding_.divides_updates()) {
    const auto own = sharding_.updated(bucket);
    under_way_.push_back(groups_.on(Axis::data)
                             .start_reduce_scatter(whole, flat_.slice(0, own.begin, own.size()),
                                                   stage_.flat().cuts_of_bucket(bucket)));
  } else {
    under_way_.push_back(groups_.on(Axis::data).start_all_reduce(whole, comm::ReduceOp::sum));
  }
  timed.end();
}

void GradientReducer::poll() {
  if (under_way_.empty()) return;
  Timed timed(hosts_part_, SpanKind::gradients);
  // Order: groups complete collectives in the order of their start.
  while (!under_way_.empty() && under_way_.front().poll()) under_way_.erase(under_way_.begin());
  if (under_way_.empty()) end_busy();
  timed.end();
}

void GradientReducer::end_busy() {
  const std::chrono::duration<double> busy = telemetry::SpanClock::now() - busy_since_;
  busy_seconds_ += busy.count();
}

std::optional<double> GradientReducer::take_busy_seconds() {
  if (hosts_part_ == nullptr) return std::nullopt;
  return std::exchange(busy_seconds_, 0.0);
}

void GradientReducer::wait_on_stream() {
  if (under_way_.empty()) return;
  Timed timed(exposed_.get(), SpanKind::gradients);
  for (auto& work : under_way_) work.wait_on_stream();
  under_way_.clear();
  end_busy();
  timed.end();
}

/// Sums shard pieces of which each tensor-parallel rank has one term. Ranks that hold different
/// boxes put theirs at different places of the exchange buffer, zeros elsewhere.
///
/// Runs after the sums over data-parallel ranks, as add_tied_terms() does and for the same reason:
/// the last sum is one that all tensor-parallel ranks share, so that their copies keep the same
/// bits. Of a divided bucket only the rank's own part is a sum by then; the rest is not read.
void GradientReducer::add_partial_terms() {
  if (!exchange_) return;
  kernels_.issue(device::Fill{exchange_, 0.0F});
  const auto each_partial = [this](const auto& act) {
    std::int64_t begin = 0;
    for (const auto& fused : stage_.fused_parameters()) {
      for (const auto& piece : fused.pieces) {
        if (!piece.partial) continue;
        const auto size = piece.flat.size();
        act(piece, flat_.slice(0, piece.flat.begin, size),
            exchange_.slice(0, begin + piece.part * size, size));
        begin += piece.parts * size;
      }
    }
  };
  each_partial([this](const model::ShardPiece& piece, const Tensor& own, const Tensor& place) {
    if (piece.contributes) kernels_.issue(device::Copy{own, place});
  });
  groups_.on(Axis::tensor).start_all_reduce(exchange_, comm::ReduceOp::sum).wait_on_stream();
  each_partial([this](const model::ShardPiece&, const Tensor& own, const Tensor& place) {
    kernels_.issue(device::Copy{place, own});
  });
}

/// Runs after the sums over data-parallel ranks: both stages then add the same two terms, and have
/// the same bits, whatever the order in which a library added the others on each of them.
void GradientReducer::add_tied_terms() {
  if (groups_.ends() == nullptr || groups_.ends()->size() == 1) return;
  const auto& flat = stage_.flat();
  for (auto bucket = stage_.first_tied_bucket(); bucket < flat.buckets.size(); ++bucket) {
    const auto range = sharding_.updated(bucket);
    groups_.ends()
        ->start_all_reduce(flat_.slice(0, range.begin, range.size()), comm::ReduceOp::sum)
        .wait_on_stream();
  }
}

void GradientReducer::finish() {
  for (auto bucket = stage_.first_tied_bucket(); bucket < stage_.flat().buckets.size(); ++bucket) {
    start(bucket);
  }
  wait_on_stream();
  Timed timed(exposed_.get(), SpanKind::gradients);
  add_partial_terms();
  add_tied_terms();
  timed.end();
}

/// Each data-parallel rank counts its shard of each bucket at every ZeRO level.
void GradientReducer::add_squares(ExactSum& squares) {
  for (std::size_t bucket = 0; bucket < stage_.flat().buckets.size(); ++bucket) {
    stage_.each_piece(
        sharding_.counted(bucket), [&](const model::ShardPiece& piece, layout::FlatRange counted) {
          if (!piece.primary) return;
          kernels_.start_sum_of_squares(flat_.slice(0, counted.begin, counted.size()));
        });
  }
  for (const double sum : kernels_.finish_sums()) squares.add(sum);
}

}  // namespace trireme::engine
