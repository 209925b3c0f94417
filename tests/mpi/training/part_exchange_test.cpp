// SPDX-License-Identifier: Apache-2.0
// Matrices whose parts lie on several ranks are updated bit for bit as whole ones are.
#include "trireme/optim/matrix_rule.hpp"
#include "trireme/optim/optimizer.hpp"

#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

#include <cmath>

using namespace trireme;
using namespace trireme::testing;
using device::DType;
using device::Tensor;
using optim::Segment;

namespace {

/// Cut of a matrix into parts, of which there may be fewer than ranks.
struct Cut {
  const char* name;
  int row_parts;
  int column_parts;

  int parts() const { return row_parts * column_parts; }
};

constexpr std::int64_t rows = 25;
constexpr std::int64_t columns = 36;
/// More than ranks, and no multiple of them.
constexpr std::int64_t matrices = 7;
/// Bytes of an owner's matrix.
constexpr std::int64_t matrix_bytes = rows * columns * std::int64_t{sizeof(float)};

/// Numbers of a step by matrix and place, the same on all ranks.
float number(int step, std::int64_t matrix, std::int64_t row, std::int64_t column) {
  const auto place = (step * 31 + matrix) * rows * columns + row * columns + column;
  return static_cast<float>(std::sin(0.37 * static_cast<double>(place * place % 7919)));
}

/// Part that a rank has: parts differ by a row or column.
layout::Box box_of(const Cut& cut, int rank, int ranks) {
  const auto index = rank * cut.parts() / ranks;
  const auto begin = [&](std::int64_t length, int parts, int at) { return length * at / parts; };
  const int row = cut.row_parts > 1 ? index : 0;
  const int column = cut.column_parts > 1 ? index : 0;
  const auto first_row = begin(rows, cut.row_parts, row);
  const auto first_column = begin(columns, cut.column_parts, column);
  return {{first_row, first_column},
          {begin(rows, cut.row_parts, row + 1) - first_row,
           begin(columns, cut.column_parts, column + 1) - first_column}};
}

/// An optimizer over the boxes that one rank of `parts` holds of all matrices.
class Part {
 public:
  Part(const optim::Rule& rule, const Cut& cut, int rank, int ranks, comm::ProcessGroup* exchange)
      : box_(box_of(cut, rank, ranks)),
        values_(static_cast<std::size_t>(matrices * layout::element_count(box_))),
        gradients_(values_.size()) {
    fill(values_, 0);
    std::vector<Segment> segments;
    std::vector<std::int64_t> owned(static_cast<std::size_t>(ranks), 0);
    std::int64_t owner_state = 0;
    for (const auto& state :
         optim::make_matrix_rule(rule, DType::f32)->owner_states({rows, columns})) {
      owner_state += state.shape.rows * state.shape.columns;
    }
    const auto size = layout::element_count(box_);
    for (std::int64_t matrix = 0; matrix < matrices; ++matrix) {
      Segment segment{.flat = {matrix * size, (matrix + 1) * size}, .state_begin = matrix * size};
      segment.content = optim::Content::matrix;
      segment.shape = {rows, columns};
      for (int each = 0; exchange != nullptr && each < ranks; ++each) {
        segment.parts.push_back(box_of(cut, each, ranks));
      }
      // Not in turn: the first rank owns two more than the second.
      segment.owner = matrix < 2 ? 0 : static_cast<int>(matrix % ranks);
      auto& count = owned[static_cast<std::size_t>(segment.owner)];
      segment.owner_state_begin = owner_state * count++;
      segments.push_back(segment);
    }
    const optim::StateSizes sizes{0, matrices * size, matrices * owner_state};
    optimizer_.emplace(rule, segments, sizes, tensor(values_), arena_, optim::Peers{exchange});
  }

  void update(device::Kernels& kernels, int step) {
    fill(gradients_, step);
    optimizer_->update(kernels, workspace_, tensor(gradients_), 0.1F, 0.5F, step);
  }
  /// Bits of the box in its own and in the whole matrices that differ.
  std::int64_t differences(const Part& whole) const {
    std::int64_t wrong = 0;
    std::size_t at = 0;
    each([&](std::int64_t matrix, std::int64_t row, std::int64_t column) {
      const auto place = (matrix * rows + row) * columns + column;
      wrong += values_[at++] == whole.values_[static_cast<std::size_t>(place)] ? 0 : 1;
    });
    return wrong;
  }

 private:
  template <typename Act>
  void each(const Act& act) const {
    for (std::int64_t matrix = 0; matrix < matrices; ++matrix) {
      for (std::int64_t row = 0; row < box_.length[0]; ++row) {
        for (std::int64_t column = 0; column < box_.length[1]; ++column) {
          act(matrix, box_.offset[0] + row, box_.offset[1] + column);
        }
      }
    }
  }
  void fill(std::vector<float>& values, int step) const {
    std::size_t at = 0;
    each([&](std::int64_t matrix, std::int64_t row, std::int64_t column) {
      values[at++] = number(step, matrix, row, column);
    });
  }
  static Tensor tensor(std::vector<float>& values) {
    return {values.data(), DType::f32, {std::ssize(values)}};
  }

  layout::Box box_;
  std::vector<float> values_;
  std::vector<float> gradients_;
  device::Arena arena_ = device::Arena::host(device::Purpose::optimizer, std::size_t{1} << 20);
  device::Arena workspace_ = device::Arena::host(device::Purpose::workspace, std::size_t{1} << 20);
  std::optional<optim::Optimizer> optimizer_;
};

}  // namespace

TEST_CASE("parts of matrices are updated bit for bit as whole matrices are") {
  const auto group = mpi().make_world({comm::Backend::automatic, 60});
  const int ranks = group->size();
  const auto kernels = device::make_cpu_kernels(1);
  const int pairs = ranks % 2 == 0 ? ranks / 2 : 1;
  for (const auto& cut : {Cut{"rows", ranks, 1}, Cut{"columns", 1, ranks},
                          Cut{"rows, two ranks each", pairs, 1}, Cut{"not at all", 1, 1}}) {
    for (const auto kind :
         {optim::RuleKind::muon, optim::RuleKind::shampoo, optim::RuleKind::soap}) {
      // All in one exchange; two matrices of an owner; one, with three exchanges under way.
      for (const auto bytes : {std::int64_t{1} << 30, 2 * matrix_bytes, std::int64_t{1}}) {
        INFO(optim::name(kind) << ", " << cut.name << ", groups of " << bytes << " bytes");
        optim::Rule rule;
        rule.kind = kind;
        rule.factors.root_every = 2;
        rule.group_bytes = bytes;
        Part part(rule, cut, group->rank(), ranks, group.get());
        Part whole(rule, {"whole", 1, 1}, 0, 1, nullptr);
        CHECK(part.differences(whole) == 0);
        for (int step = 1; step <= 5; ++step) {
          part.update(*kernels, step);
          whole.update(*kernels, step);
          CHECK(part.differences(whole) == 0);
        }
      }
    }
  }
}
