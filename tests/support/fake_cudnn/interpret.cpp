// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/dtype.hpp"

#include "fake_cudnn.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <set>

namespace trireme::testing {

using namespace device::cudnn;

namespace {

using Place = std::array<std::int64_t, 4>;

/// A tensor of a graph: its elements lie at a caller's address or, between operations, here.
class Values {
 public:
  Values(const CudnnDescriptor& tensor, const std::map<std::int64_t, void*>& addresses)
      : type_(tensor.one<DataType>(Attribute::tensor_type)) {
    const auto sizes = tensor.all<std::int64_t>(Attribute::tensor_dims);
    const auto strides = tensor.all<std::int64_t>(Attribute::tensor_strides);
    std::copy(sizes.begin(), sizes.end(), dims_.begin());
    std::copy(strides.begin(), strides.end(), strides_.begin());
    if (tensor.one<bool>(Attribute::tensor_is_virtual)) {
      if (overlap()) strides_ = {dims_[1] * dims_[2] * dims_[3], dims_[2] * dims_[3], dims_[3], 1};
      std::int64_t last = 0;
      for (std::size_t d = 0; d < dims_.size(); ++d) last += (dims_[d] - 1) * strides_[d];
      own_.assign(static_cast<std::size_t>(last) + 1, std::nanf(""));
      return;
    }
    const auto found = addresses.find(tensor.one<std::int64_t>(Attribute::tensor_id));
    if (found == addresses.end()) misuse("a tensor without an address");
    memory_ = found->second;
    computed_ = true;
  }

  const Place& dims() const { return dims_; }
  /// Whether two elements lie at one place. The library's own pattern has such a tensor, whose
  /// elements never lie anywhere.
  bool overlap() const {
    std::array<std::size_t, 4> order{0, 1, 2, 3};
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return strides_[a] < strides_[b]; });
    std::int64_t extent = 1;
    for (const auto d : order) {
      if (dims_[d] == 1) continue;
      if (strides_[d] < extent) return true;
      extent = strides_[d] * (dims_[d] - 1) + extent;
    }
    return false;
  }
  void require() const {
    if (!computed_) misuse("a value that no operation has computed");
  }
  void mark() { computed_ = true; }
  bool in_memory() const { return memory_ != nullptr; }

  std::int64_t offset(const Place& place) const {
    std::int64_t sum = 0;
    for (std::size_t d = 0; d < place.size(); ++d) sum += place[d] * strides_[d];
    return sum;
  }
  float at_offset(std::int64_t offset) const {
    if (memory_ == nullptr) return own_.at(static_cast<std::size_t>(offset));
    if (type_ == DataType::bf16) {
      return device::to_float(static_cast<const device::Bf16*>(memory_)[offset]);
    }
    if (type_ == DataType::i32) {
      return static_cast<float>(static_cast<const std::int32_t*>(memory_)[offset]);
    }
    return static_cast<const float*>(memory_)[offset];
  }
  /// Dimensions of one element are repeated; of grouped heads neighbours share one.
  float at(Place place, const Place& among) const {
    for (std::size_t d = 0; d < place.size(); ++d) {
      if (dims_[d] != among[d]) place[d] = place[d] * dims_[d] / among[d];
    }
    return at_offset(offset(place));
  }
  void store(const Place& place, float value) {
    const auto where = offset(place);
    const auto narrow = device::to_bf16(value);
    if (memory_ == nullptr) {
      own_.at(static_cast<std::size_t>(where)) =
          type_ == DataType::bf16 ? device::to_float(narrow) : value;
    } else if (type_ == DataType::bf16) {
      static_cast<device::Bf16*>(memory_)[where] = narrow;
    } else {
      static_cast<float*>(memory_)[where] = value;
    }
  }

 private:
  DataType type_;
  Place dims_{};
  Place strides_{};
  std::vector<float> own_;
  void* memory_ = nullptr;
  bool computed_ = false;
};

void for_each(const Place& dims, const std::function<void(const Place&)>& body) {
  Place place{};
  for (place[0] = 0; place[0] < dims[0]; ++place[0]) {
    for (place[1] = 0; place[1] < dims[1]; ++place[1]) {
      for (place[2] = 0; place[2] < dims[2]; ++place[2]) {
        for (place[3] = 0; place[3] < dims[3]; ++place[3]) body(place);
      }
    }
  }
}

class Interpreter {
 public:
  Interpreter(const std::map<std::int64_t, void*>& addresses, Sums sums)
      : addresses_(addresses), sums_(sums) {}

  /// Before any is run.
  void note_inputs(const CudnnDescriptor& operation) {
    for (const auto& [attribute, value] : operation.values) {
      const bool is_input = attribute == Attribute::operation_pointwise_x ||
                            attribute == Attribute::operation_pointwise_b;
      if (is_input) read_.insert(&operation.descriptor(attribute));
    }
  }

  void run(const CudnnDescriptor& operation) {
    switch (operation.kind) {
      case Kind::operation_pointwise:
        return pointwise(operation);
      case Kind::operation_matmul:
        return multiply(operation);
      case Kind::operation_reduction:
        return reduce(operation);
      case Kind::operation_reshape:
        return reshape(operation);
      case Kind::pointwise:
      case Kind::engine:
      case Kind::engine_config:
      case Kind::engine_heuristics:
      case Kind::execution_plan:
      case Kind::operation_graph:
      case Kind::variant_pack:
      case Kind::tensor:
      case Kind::matmul:
      case Kind::reduction:
      case Kind::device_properties:
        misuse("a graph of what is no operation");
    }
  }

  /// Every address was for a tensor of the graph.
  void finish() const {
    for (const auto& [id, address] : addresses_) {
      if (!ids_.contains(id)) misuse("an address for no tensor of the graph");
    }
  }

 private:
  Values& values(const CudnnDescriptor& operation, Attribute attribute) {
    const auto& tensor = operation.descriptor(attribute);
    ids_.insert(tensor.one<std::int64_t>(Attribute::tensor_id));
    const auto found = values_.find(&tensor);
    if (found != values_.end()) return found->second;
    return values_.emplace(&tensor, Values(tensor, addresses_)).first->second;
  }
  Values& input(const CudnnDescriptor& operation, Attribute attribute) {
    auto& found = values(operation, attribute);
    found.require();
    return found;
  }

  static float apply(PointwiseMode mode, float x, float b, float t) {
    switch (mode) {
      case PointwiseMode::add:
        return x + b;
      case PointwiseMode::multiply:
        return x * b;
      case PointwiseMode::divide:
        return x / b;
      case PointwiseMode::subtract:
        return x - b;
      case PointwiseMode::exp:
        return std::exp(x);
      case PointwiseMode::log:
        return std::log(x);
      case PointwiseMode::is_greater_or_equal:
        return x >= b ? 1.0F : 0.0F;
      case PointwiseMode::select:
        return t != 0.0F ? x : b;
      case PointwiseMode::index:
      case PointwiseMode::identity:
        return x;
    }
    misuse("an operation of no known mode");
  }

  void pointwise(const CudnnDescriptor& operation) {
    const auto& setting = operation.descriptor(Attribute::operation_pointwise_descriptor);
    const auto mode = setting.one<PointwiseMode>(Attribute::pointwise_mode);
    const bool is_index = mode == PointwiseMode::index;
    const bool is_select = mode == PointwiseMode::select;
    const bool is_unary = is_index || mode == PointwiseMode::exp || mode == PointwiseMode::log ||
                          mode == PointwiseMode::identity;
    if (operation.has(Attribute::operation_pointwise_b) == is_unary ||
        operation.has(Attribute::operation_pointwise_t) != is_select ||
        setting.has(Attribute::pointwise_axis) != is_index) {
      misuse("an operation with too many or too few operands");
    }
    const auto& x = input(operation, Attribute::operation_pointwise_x);
    const auto& b = is_unary ? x : input(operation, Attribute::operation_pointwise_b);
    const auto& t = is_select ? input(operation, Attribute::operation_pointwise_t) : x;
    auto& y = values(operation, Attribute::operation_pointwise_y);
    const auto axis = is_index ? setting.one<std::int64_t>(Attribute::pointwise_axis) : 0;
    for_each(y.dims(), [&](const Place& place) {
      const float first = is_index ? static_cast<float>(place.at(static_cast<std::size_t>(axis)))
                                   : x.at(place, y.dims());
      y.store(place, apply(mode, first, b.at(place, y.dims()), t.at(place, y.dims())));
    });
    y.mark();
  }

  void multiply(const CudnnDescriptor& operation) {
    const auto& a = input(operation, Attribute::operation_matmul_a);
    const auto& b = input(operation, Attribute::operation_matmul_b);
    auto& c = values(operation, Attribute::operation_matmul_c);
    const auto inner = a.dims()[3];
    if (b.dims()[2] != inner || a.dims()[2] != c.dims()[2] || b.dims()[3] != c.dims()[3]) {
      misuse("matrices that do not fit");
    }
    const bool is_added_up =
        c.in_memory() && read_.contains(&operation.descriptor(Attribute::operation_matmul_c));
    for_each(c.dims(), [&](const Place& place) {
      float sum = is_added_up && sums_ == Sums::as_found ? c.at(place, c.dims()) : 0.0F;
      for (std::int64_t k = 0; k < inner; ++k) {
        sum +=
            a.at({place[0], place[1], place[2], k},
                 {c.dims()[0], c.dims()[1], a.dims()[2], inner}) *
            b.at({place[0], place[1], k, place[3]}, {c.dims()[0], c.dims()[1], inner, b.dims()[3]});
      }
      c.store(place, sum);
    });
    c.mark();
  }

  void reduce(const CudnnDescriptor& operation) {
    const auto mode = operation.descriptor(Attribute::operation_reduction_descriptor)
                          .one<ReductionMode>(Attribute::reduction_mode);
    const auto& x = input(operation, Attribute::operation_reduction_x);
    auto& y = values(operation, Attribute::operation_reduction_y);
    Place runs{};
    for (std::size_t d = 0; d < runs.size(); ++d) {
      if (x.dims()[d] % y.dims()[d] != 0) misuse("a reduction that does not divide");
      runs[d] = x.dims()[d] / y.dims()[d];
    }
    for_each(y.dims(), [&](const Place& place) {
      float result = mode == ReductionMode::max ? -INFINITY : 0.0F;
      for_each(runs, [&](const Place& inside) {
        Place at{};
        for (std::size_t d = 0; d < at.size(); ++d) at[d] = place[d] * runs[d] + inside[d];
        const float value = x.at(at, x.dims());
        result = mode == ReductionMode::max ? std::max(result, value) : result + value;
      });
      y.store(place, result);
    });
    y.mark();
  }

  void reshape(const CudnnDescriptor& operation) {
    const auto& x = input(operation, Attribute::operation_reshape_x);
    auto& y = values(operation, Attribute::operation_reshape_y);
    for_each(y.dims(), [&](const Place& place) { y.store(place, x.at_offset(y.offset(place))); });
    y.mark();
  }

  const std::map<std::int64_t, void*>& addresses_;
  Sums sums_;
  /// By pointwise operations.
  std::set<const CudnnDescriptor*> read_;
  std::map<const CudnnDescriptor*, Values> values_;
  std::set<std::int64_t> ids_;
};

}  // namespace

void interpret(const CudnnDescriptor& graph, const std::map<std::int64_t, void*>& addresses,
               Sums sums) {
  Interpreter interpreter(addresses, sums);
  for (auto* raw : graph.all<void*>(Attribute::graph_operations)) {
    interpreter.note_inputs(*static_cast<const CudnnDescriptor*>(raw));
  }
  for (auto* raw : graph.all<void*>(Attribute::graph_operations)) {
    interpreter.run(*static_cast<const CudnnDescriptor*>(raw));
  }
  interpreter.finish();
}

}  // namespace trireme::testing
