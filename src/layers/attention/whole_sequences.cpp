// SPDX-License-Identifier: Apache-2.0
#include "whole_sequences.hpp"

#include "trireme/device/timed.hpp"
#include "trireme/layout/token_runs.hpp"

#include "layers/rows/token_rows.hpp"

namespace trireme::layers {
namespace {

using device::Tensor;

/// Views of [micro_batch, seq, 2 * width], keys beside values, as heads.
KeysAndValues heads_of(const Tensor& both, const Tensor& like) {
  const auto head_dim = like.dim(3);
  const auto width = like.dim(2) * head_dim;
  return {both.slice(2, 0, width).split(2, head_dim),
          both.slice(2, width, width).split(2, head_dim)};
}

std::int64_t width_of_both(const Tensor& keys) {
  return 2 * keys.dim(2) * keys.dim(3);
}

/// Tensor of each rank's rows, [ranks, micro_batch, seq, width], and its view of one rank.
class RowsOfRanks {
 public:
  RowsOfRanks(const StageContext& context, std::int64_t width)
      : context_(context),
        all_(context.workspace.allocate(
            context.dtype, {context.context_parallel->size() * context.rows(), width})) {}

  const Tensor& all() const { return all_; }
  /// [rows, width].
  Tensor rows_of(int rank) const { return all_.slice(0, rank * context_.rows(), context_.rows()); }
  /// act(run in the sequence, its rows [micro_batch, run, width]) for all runs of all ranks.
  template <typename Act>
  void each_run(const Act& act) const {
    const int ranks = context_.context_parallel->size();
    for (int rank = 0; rank < ranks; ++rank) {
      const auto rows = rows_of(rank).split(0, context_.sequence_length);
      std::int64_t first = 0;
      for (const auto& run : layout::token_runs(context_.whole_length(), ranks, rank)) {
        act(run, rows.slice(1, first, run.size()));
        first += run.size();
      }
    }
  }

 private:
  const StageContext& context_;
  Tensor all_;
};

/// Starts a collective and makes the device's next kernel find its result.
template <typename Start>
void join(const StageContext& context, const Start& start) {
  device::Timed timed(context.tensor_watch, telemetry::SpanKind::tensor);
  start(*context.context_parallel).wait_on_stream();
  timed.end();
}

}  // namespace

KeysAndValues gather_sequences(const StageContext& context, const KeysAndValues& own) {
  const auto width = width_of_both(own.keys);
  const auto whole = context.workspace.allocate(
      context.dtype, {context.micro_batch, context.whole_length(), width});
  const device::ArenaScope scope(context.workspace);
  const RowsOfRanks gathered(context, width);
  const auto mine = gathered.rows_of(context.context_parallel->rank());
  const auto place = heads_of(mine.split(0, context.sequence_length), own.keys);
  context.kernels.issue(device::Copy{own.keys, place.keys});
  context.kernels.issue(device::Copy{own.values, place.values});
  join(context,
       [&](comm::ProcessGroup& ranks) { return ranks.start_all_gather(mine, gathered.all(), {}); });
  gathered.each_run([&](const layout::FlatRange& run, const Tensor& rows) {
    context.kernels.issue(device::Copy{rows, whole.slice(1, run.begin, run.size())});
  });
  return heads_of(whole, own.keys);
}

std::vector<RunOfQueries> runs_of_queries(const StageContext& context) {
  std::vector<RunOfQueries> runs;
  std::int64_t first = 0;
  for (const auto& run : token_runs_of(context)) {
    runs.push_back({first, run.size(), run.end});
    first += run.size();
  }
  return runs;
}

device::Attention attention_of_run(const device::Attention& own, const KeysAndValues& whole,
                                   const RunOfQueries& run, std::int64_t index) {
  auto attention = own;
  attention.q = own.q.slice(1, run.first, run.count);
  attention.out = own.out.slice(1, run.first, run.count);
  attention.k = whole.keys.slice(1, 0, run.keys);
  attention.v = whole.values.slice(1, 0, run.keys);
  attention.sequence_length = whole.keys.dim(1);
  if (own.first_keys) attention.first_keys = own.first_keys.slice(1, run.first, run.count);
  // Runs are equally long, and each has its statistics together.
  const auto statistics = own.q.dim(0) * own.q.dim(2) * run.count;
  attention.lse = own.lse.flat().slice(0, index * statistics, statistics);
  return attention;
}

void attend_backward(const StageContext& context, const device::AttentionBackward& own) {
  auto& arena = context.workspace;
  const device::ArenaScope scope(arena);
  const auto whole = gather_sequences(context, {own.forward.k, own.forward.v});
  const auto runs = runs_of_queries(context);
  const auto width = width_of_both(own.dk);
  // [run]: terms of the gradients of all keys that its queries see.
  std::vector<Tensor> terms;
  for (const auto& run : runs) {
    const auto index = std::ssize(terms);
    // Room: the same on all ranks. An early run sees half of the keys at most.
    const auto most = context.whole_length() * (index + 1) / std::ssize(runs);
    const auto room = arena.allocate(context.dtype, {context.micro_batch, most, width});
    terms.push_back(room.slice(1, 0, run.keys));
    const auto d_both = heads_of(terms.back(), own.dk);
    context.kernels.issue(
        device::AttentionBackward{.forward = attention_of_run(own.forward, whole, run, index),
                                  .d_out = own.d_out.slice(1, run.first, run.count),
                                  .dq = own.dq.slice(1, run.first, run.count),
                                  .dk = d_both.keys,
                                  .dv = d_both.values});
  }
  const RowsOfRanks sums(context, width);
  sums.each_run([&](const layout::FlatRange& keys, const Tensor& place) {
    const auto of_run = [&](std::size_t run) {
      return terms[run].slice(1, keys.begin, keys.size());
    };
    if (keys.end <= runs.front().keys) {
      context.kernels.issue(device::Add{of_run(0), of_run(1), place});
    } else if (keys.end <= runs.back().keys) {
      context.kernels.issue(device::Copy{of_run(1), place});
    } else {
      context.kernels.issue(device::Fill{place, 0.0F});
    }
  });
  const auto mine = arena.allocate(context.dtype, {context.rows(), width});
  join(context,
       [&](comm::ProcessGroup& ranks) { return ranks.start_reduce_scatter(sums.all(), mine, {}); });
  const auto d_mine = heads_of(mine.split(0, context.sequence_length), own.dk);
  context.kernels.issue(device::Copy{d_mine.keys, own.dk});
  context.kernels.issue(device::Copy{d_mine.values, own.dv});
}

}  // namespace trireme::layers
