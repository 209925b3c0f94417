// SPDX-License-Identifier: Apache-2.0
#include "device/dropout_mask.hpp"
#include "device/elements.hpp"
#include "device/reference/reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace trireme::device::reference {
namespace {

/// Row `position` of head `head` of sequence `sequence`.
template <typename T>
T* head_row(const Tensor& x, std::int64_t sequence, std::int64_t position, std::int64_t head) {
  return data_of<T>(x) + sequence * x.stride(0) + position * x.stride(1) + head * x.stride(2);
}

template <typename A, typename B>
float dot(const A* a, const B* b, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    sum += static_cast<double>(to_float(a[i])) * static_cast<double>(to_float(b[i]));
  }
  return static_cast<float>(sum);
}

/// One query of one head.
struct Query {
  std::int64_t sequence = 0;
  std::int64_t head = 0;
  std::int64_t position = 0;
};

/// Keys [begin, end) that a query sees.
struct SeenKeys {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t count() const { return end - begin; }
};

SeenKeys seen_keys(const Attention& attention, const Query& at) {
  const auto keys = attention.k.dim(1);
  if (!attention.causal) return {0, keys};
  const auto end = std::clamp<std::int64_t>(at.position + keys - attention.q.dim(1) + 1, 0, keys);
  const auto& first = attention.first_keys;
  if (!first) return {0, end};
  return {first.i32()[at.sequence * first.stride(0) + at.position], end};
}

std::int64_t kv_head(const Attention& attention, std::int64_t head) {
  return head / (attention.q.dim(2) / attention.k.dim(2));
}

template <typename T>
void scores(const Attention& attention, const Query& at, const SeenKeys& keys,
            std::vector<float>& row) {
  const auto* q = head_row<T>(attention.q, at.sequence, at.position, at.head);
  for (auto key = keys.begin; key < keys.end; ++key) {
    const auto* k = head_row<T>(attention.k, at.sequence, key, kv_head(attention, at.head));
    row[static_cast<std::size_t>(key)] = dot(q, k, attention.q.dim(3)) * attention.scale;
  }
}

template <typename T>
void forward_query(const Attention& attention, const Query& at, std::vector<float>& row) {
  const auto keys = seen_keys(attention, at);
  const auto head_dim = attention.q.dim(3);
  const DropoutMask mask(attention.dropout);
  const auto first = attention_dropout_index(attention, at.sequence, at.head, at.position);
  scores<T>(attention, at, keys, row);
  auto largest = -std::numeric_limits<float>::infinity();
  for (auto key = keys.begin; key < keys.end; ++key) {
    largest = std::max(largest, row[static_cast<std::size_t>(key)]);
  }
  double total = 0;
  std::vector<double> out(static_cast<std::size_t>(head_dim));
  for (auto key = keys.begin; key < keys.end; ++key) {
    const auto weight = std::exp(static_cast<double>(row[static_cast<std::size_t>(key)] - largest));
    total += weight;
    const auto kept = weight * static_cast<double>(mask.active() ? mask.factor(first + key) : 1.0F);
    const auto* v = head_row<T>(attention.v, at.sequence, key, kv_head(attention, at.head));
    for (std::int64_t d = 0; d < head_dim; ++d) {
      out[static_cast<std::size_t>(d)] += kept * static_cast<double>(to_float(v[d]));
    }
  }
  auto* place = head_row<T>(attention.out, at.sequence, at.position, at.head);
  for (std::int64_t d = 0; d < head_dim; ++d) {
    // A query that sees no key attends to nothing.
    const auto value = keys.count() == 0 ? 0.0 : out[static_cast<std::size_t>(d)] / total;
    assign(place[d], static_cast<float>(value));
  }
  if (attention.lse) {
    const auto index =
        (at.sequence * attention.q.dim(2) + at.head) * attention.q.dim(1) + at.position;
    attention.lse.f32()[index] =
        keys.count() == 0 ? largest
                          : static_cast<float>(static_cast<double>(largest) + std::log(total));
  }
}

/// Gradients of one key-value head, summed over the queries of its group.
struct HeadGradient {
  std::vector<float> dk;  // [key_seq, head_dim]
  std::vector<float> dv;  // [key_seq, head_dim]
};

/// Backward of one query: with p the softmax and m the dropout factors, out = (p * m) v. Then
/// dv = (p * m) d_out, ds = p * (m * (d_out v) - d_out . out), dq = scale * ds k, dk = scale * ds q
/// (Dao et al. 2022, algorithm 4).
template <typename T>
void backward_query(const AttentionBackward& backward, const Query& at, std::vector<float>& row,
                    HeadGradient& sums) {
  const auto& attention = backward.forward;
  const auto keys = seen_keys(attention, at);
  const auto head_dim = attention.q.dim(3);
  const DropoutMask mask(attention.dropout);
  const auto first = attention_dropout_index(attention, at.sequence, at.head, at.position);
  const auto lse =
      attention.lse
          .f32()[(at.sequence * attention.q.dim(2) + at.head) * attention.q.dim(1) + at.position];
  const auto* q = head_row<T>(attention.q, at.sequence, at.position, at.head);
  const auto* d_out = head_row<T>(backward.d_out, at.sequence, at.position, at.head);
  const auto* out = head_row<T>(attention.out, at.sequence, at.position, at.head);
  const float delta = dot(d_out, out, head_dim);
  std::vector<double> dq(static_cast<std::size_t>(head_dim));
  scores<T>(attention, at, keys, row);
  for (auto key = keys.begin; key < keys.end; ++key) {
    const auto* k = head_row<T>(attention.k, at.sequence, key, kv_head(attention, at.head));
    const auto* v = head_row<T>(attention.v, at.sequence, key, kv_head(attention, at.head));
    const float factor = mask.active() ? mask.factor(first + key) : 1.0F;
    const float p = std::exp(row[static_cast<std::size_t>(key)] - lse);
    // The softmax of one score is 1 whatever the score is.
    const float ds =
        keys.count() == 1 ? 0.0F : p * (factor * dot(d_out, v, head_dim) - delta) * attention.scale;
    for (std::int64_t d = 0; d < head_dim; ++d) {
      const auto place = static_cast<std::size_t>(key * head_dim + d);
      sums.dv[place] += p * factor * to_float(d_out[d]);
      sums.dk[place] += ds * to_float(q[d]);
      dq[static_cast<std::size_t>(d)] += static_cast<double>(ds * to_float(k[d]));
    }
  }
  auto* place = head_row<T>(backward.dq, at.sequence, at.position, at.head);
  for (std::int64_t d = 0; d < head_dim; ++d) {
    assign(place[d], static_cast<float>(dq[static_cast<std::size_t>(d)]));
  }
}

template <typename T>
void backward_head(const AttentionBackward& backward, std::int64_t sequence, std::int64_t head) {
  const auto& attention = backward.forward;
  const auto keys = attention.k.dim(1);
  const auto head_dim = attention.k.dim(3);
  const auto group = attention.q.dim(2) / attention.k.dim(2);
  std::vector<float> row(static_cast<std::size_t>(keys));
  HeadGradient sums{std::vector<float>(static_cast<std::size_t>(keys * head_dim)),
                    std::vector<float>(static_cast<std::size_t>(keys * head_dim))};
  for (std::int64_t q_head = head * group; q_head < (head + 1) * group; ++q_head) {
    for (std::int64_t position = 0; position < attention.q.dim(1); ++position) {
      backward_query<T>(backward, {sequence, q_head, position}, row, sums);
    }
  }
  for (std::int64_t key = 0; key < keys; ++key) {
    auto* dk = head_row<T>(backward.dk, sequence, key, head);
    auto* dv = head_row<T>(backward.dv, sequence, key, head);
    for (std::int64_t d = 0; d < head_dim; ++d) {
      assign(dk[d], sums.dk[static_cast<std::size_t>(key * head_dim + d)]);
      assign(dv[d], sums.dv[static_cast<std::size_t>(key * head_dim + d)]);
    }
  }
}

}  // namespace

template <>
void run(const Attention& attention) {
  with_type(attention.q.dtype(), [&](auto element) {
    std::vector<float> row(static_cast<std::size_t>(attention.k.dim(1)));
    for (std::int64_t sequence = 0; sequence < attention.q.dim(0); ++sequence) {
      for (std::int64_t head = 0; head < attention.q.dim(2); ++head) {
        for (std::int64_t position = 0; position < attention.q.dim(1); ++position) {
          forward_query<decltype(element)>(attention, {sequence, head, position}, row);
        }
      }
    }
  });
}

template <>
void run(const AttentionBackward& backward) {
  with_type(backward.forward.q.dtype(), [&](auto element) {
    for (std::int64_t sequence = 0; sequence < backward.forward.q.dim(0); ++sequence) {
      for (std::int64_t head = 0; head < backward.forward.k.dim(2); ++head) {
        backward_head<decltype(element)>(backward, sequence, head);
      }
    }
  });
}

}  // namespace trireme::device::reference
