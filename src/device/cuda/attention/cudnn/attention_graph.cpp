// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/attention/cudnn/attention_graph.hpp"

#include <limits>

namespace trireme::device::cudnn {
namespace {

using Node = Graph::Node;

std::int64_t id(Operand operand) {
  return static_cast<std::int64_t>(operand);
}

/// [batch, rows, heads, head_dim] as [batch, heads, rows, head_dim].
Extents extents_of(const Tensor& tensor) {
  return {{tensor.dim(0), tensor.dim(2), tensor.dim(1), tensor.dim(3)},
          {tensor.stride(0), tensor.stride(2), tensor.stride(1), tensor.stride(3)}};
}

/// Queries see keys up to their own place, and the last query all: index of the row + keys -
/// queries >= index of the column.
Node causal_mask(Graph& graph, Node scores, Node masked, const AttentionExtents& attention) {
  const auto extents = attention.scores();
  auto row = graph.index(scores, 2, extents);
  const auto column = graph.index(scores, 3, extents);
  if (attention.queries() != attention.keys()) {
    const auto keys = graph.integer(id(Operand::key_count));
    const auto queries = graph.integer(id(Operand::query_count));
    row = graph.integers(PointwiseMode::add, row, keys, extents);
    row = graph.integers(PointwiseMode::subtract, row, queries, extents);
  }
  const auto seen = graph.is_greater_or_equal(row, column, extents);
  return graph.select(seen, scores, masked, extents);
}

}  // namespace

AttentionExtents AttentionExtents::of(const Attention& attention) {
  return {attention.causal, extents_of(attention.q), extents_of(attention.k),
          extents_of(attention.v), extents_of(attention.out)};
}

AttentionBackwardExtents AttentionBackwardExtents::of(const AttentionBackward& backward,
                                                      AttentionBits bits) {
  return {bits,
          AttentionExtents::of(backward.forward),
          extents_of(backward.d_out),
          extents_of(backward.dq),
          extents_of(backward.dk),
          extents_of(backward.dv),
          backward.dk.dtype() == DType::f32 ? DataType::f32 : DataType::bf16};
}

Graph forward_graph(const Api& api, const AttentionExtents& extents) {
  Graph graph(api);
  const auto scores = extents.scores();
  const auto rows = extents.rows();
  const auto q = graph.tensor(id(Operand::q), extents.q, DataType::bf16);
  const auto keys = graph.tensor(id(Operand::k), transposed(extents.k), DataType::bf16);
  const auto v = graph.tensor(id(Operand::v), extents.v, DataType::bf16);
  const auto scale = graph.scalar(id(Operand::scale));
  auto score = graph.multiply(q, keys, scores);
  score = graph.pointwise(PointwiseMode::multiply, score, scale, scores);
  if (extents.causal) {
    score = causal_mask(graph, score, graph.scalar(id(Operand::masked)), extents);
  }
  const auto largest = graph.reduce(ReductionMode::max, score, rows);
  const auto below = graph.pointwise(PointwiseMode::subtract, score, largest, scores);
  const auto weight = graph.pointwise(PointwiseMode::exp, below, scores);
  const auto sum = graph.reduce(ReductionMode::sum, weight, rows);
  const auto log = graph.pointwise(PointwiseMode::log, sum, rows);
  const auto lse = graph.tensor(id(Operand::lse), rows, DataType::f32);
  graph.pointwise_into(PointwiseMode::add, largest, log, lse);
  const auto share = graph.pointwise(PointwiseMode::divide, weight, sum, scores, DataType::bf16);
  graph.multiply_into(share, v, graph.tensor(id(Operand::out), extents.out, DataType::bf16));
  return graph;
}

namespace {

/// The parts of a backward graph that share values.
class BackwardGraph {
 public:
  BackwardGraph(const Api& api, const AttentionBackwardExtents& extents)
      : graph_(api), extents_(extents), scores_(extents.forward.scores()) {}

  Graph build() {
    const auto& forward = extents_.forward;
    const auto q = graph_.tensor(id(Operand::q), forward.q, DataType::bf16);
    const auto keys = graph_.tensor(id(Operand::k), transposed(forward.k), DataType::bf16);
    const auto values = graph_.tensor(id(Operand::v), transposed(forward.v), DataType::bf16);
    const auto d_out = graph_.tensor(id(Operand::d_out), extents_.d_out, DataType::bf16);
    const auto scale = graph_.scalar(id(Operand::scale));
    const auto row_sums = sums_of_rows(d_out);
    const auto share = shares(q, keys, scale);
    gradient_of(share, d_out, extents_.dv, Operand::dv);
    auto d_score = graph_.multiply(d_out, values, scores_);
    d_score = graph_.pointwise(PointwiseMode::subtract, d_score, row_sums, scores_);
    d_score = graph_.pointwise(PointwiseMode::multiply, d_score, share, scores_);
    d_score = graph_.pointwise(PointwiseMode::multiply, d_score, scale, scores_);
    gradient_of(d_score, q, extents_.dk, Operand::dk);
    gradient_of_queries(d_score, graph_.reshape(keys, forward.k, DataType::bf16));
    return std::move(graph_);
  }

 private:
  /// The sum over a row of d_score's first term, for all keys at once.
  Node sums_of_rows(Node d_out) {
    const auto& forward = extents_.forward;
    const auto out = graph_.tensor(id(Operand::out), forward.out, DataType::bf16);
    auto extents = dense(forward.batch(), forward.heads(), forward.queries(), forward.head_dim());
    extents.strides[2] = forward.heads() * forward.head_dim();
    const auto product = graph_.pointwise(PointwiseMode::multiply, d_out, out, extents);
    const auto sum = graph_.reduce(ReductionMode::sum, product, forward.rows());
    const auto kept = graph_.tensor(id(Operand::row_sums), forward.rows(), DataType::f32);
    // The factor of dropout stands here in the pattern that the library recognises.
    graph_.pointwise_into(PointwiseMode::multiply, sum, graph_.scalar(id(Operand::one)), kept);
    return kept;
  }

  Node shares(Node q, Node keys, Node scale) {
    const auto lse = graph_.tensor(id(Operand::lse), extents_.forward.rows(), DataType::f32);
    auto score = graph_.multiply(q, keys, scores_);
    score = graph_.pointwise(PointwiseMode::multiply, score, scale, scores_);
    score = graph_.pointwise(PointwiseMode::subtract, score, lse, scores_);
    if (extents_.forward.causal) {
      score = causal_mask(graph_, score, graph_.scalar(id(Operand::masked)), extents_.forward);
    }
    return graph_.pointwise(PointwiseMode::exp, score, scores_);
  }

  void gradient_of_queries(Node d_score, Node keys) {
    const auto& q = extents_.forward.q.dims;
    const auto dq = graph_.tensor(id(Operand::dq), extents_.dq, DataType::bf16);
    switch (extents_.bits) {
      case AttentionBits::repeatable:
        return graph_.multiply_into(d_score, keys, dq);
      case AttentionBits::fastest:
        break;
    }
    const auto sums =
        graph_.tensor(id(Operand::dq_sums), dense(q[0], q[1], q[2], q[3]), DataType::f32);
    graph_.multiply_into(d_score, keys, sums);
    graph_.convert_into(sums, dq);
  }

  /// transpose(scores) * rows; of all query heads that share a key head, the sum.
  void gradient_of(Node scores, Node rows, const Extents& extents, Operand operand) {
    const auto& forward = extents_.forward;
    const auto turned = graph_.reshape(scores, transposed(scores_), DataType::bf16);
    const auto gradient = graph_.tensor(id(operand), extents, extents_.key_gradients);
    if (forward.heads() == forward.kv_heads()) {
      graph_.multiply_into(turned, rows, gradient);
      return;
    }
    const auto of_all_heads = graph_.multiply(
        turned, rows, dense(forward.batch(), forward.heads(), forward.keys(), forward.head_dim()),
        DataType::bf16);
    graph_.reduce_into(ReductionMode::sum, of_all_heads, gradient);
  }

  Graph graph_;
  const AttentionBackwardExtents& extents_;
  Extents scores_;
};

}  // namespace

Graph backward_graph(const Api& api, const AttentionBackwardExtents& extents) {
  return BackwardGraph(api, extents).build();
}

float masked_score(const Api& api) {
  constexpr std::size_t takes_infinity = 91000;
  return api.version() < takes_infinity ? std::numeric_limits<float>::lowest()
                                        : -std::numeric_limits<float>::infinity();
}

bool wants_zeros(const Api& api) {
  constexpr std::size_t zeroes_itself = 90600;
  return api.version() < zeroes_itself;
}

}  // namespace trireme::device::cudnn
