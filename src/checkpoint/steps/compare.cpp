// SPDX-License-Identifier: Apache-2.0
#include "trireme/checkpoint/compare.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/checkpoint/manifest.hpp"
#include "trireme/device/dtype.hpp"

#include "checkpoint/load/pieces.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <utility>

namespace trireme::checkpoint {
namespace {

/// A step and what is read of it.
struct Subject {
  explicit Subject(const std::filesystem::path& step_folder)
      : folder(step_folder), manifest(base::value_or_throw(read_manifest(step_folder))) {}

  std::span<const std::byte> load(const StoredTensor& tensor, const layout::Box& box) {
    return load_piece(folder, manifest, tensor, box, memory);
  }

  const std::filesystem::path& folder;
  Manifest manifest;
  std::vector<std::byte> memory;
};

/// Differences of the values of one tensor.
class ValueSums {
 public:
  template <typename Element, typename ToDouble>
  void add(std::span<const std::byte> first, std::span<const std::byte> second,
           ToDouble to_double) {
    for (std::size_t at = 0; at < first.size(); at += sizeof(Element)) {
      Element a;
      Element b;
      std::memcpy(&a, &first[at], sizeof a);
      std::memcpy(&b, &second[at], sizeof b);
      const double x = to_double(a);
      first_squares_ += x * x;
      if (std::memcmp(&first[at], &second[at], sizeof a) == 0) continue;
      ++differing_;
      const double difference = std::fabs(x - to_double(b));
      // A NaN, once found, stays.
      if (!(difference <= largest_)) largest_ = difference;
      squares_ += difference * difference;
    }
  }

  std::optional<TensorDifference> of(const StoredTensor& tensor) const {
    if (differing_ == 0) return std::nullopt;
    return TensorDifference{tensor.name,
                            TensorDifference::Kind::values,
                            layout::element_count(tensor.shape),
                            differing_,
                            largest_,
                            std::sqrt(squares_ / first_squares_)};
  }

 private:
  std::int64_t differing_ = 0;
  double largest_ = 0;
  double squares_ = 0;
  double first_squares_ = 0;
};

std::optional<TensorDifference> compare_values(const StoredTensor& tensor, Subject& first,
                                               Subject& second) {
  ValueSums sums;
  const auto& other = *second.manifest.contents.find(tensor.name);
  for (const auto& box : pieces_of(tensor.shape)) {
    const auto a = first.load(tensor, box);
    const auto b = second.load(other, box);
    switch (tensor.dtype) {
      case device::DType::f32:
        sums.add<float>(a, b, [](float x) { return double{x}; });
        break;
      case device::DType::bf16:
        sums.add<device::Bf16>(a, b, [](device::Bf16 x) { return double{to_float(x)}; });
        break;
      case device::DType::i32:
        sums.add<std::int32_t>(a, b, [](std::int32_t x) { return double(x); });
        break;
      case device::DType::e4m3:
        throw base::Error(base::ExitCode::internal, "no checkpoint holds e4m3");
    }
  }
  return sums.of(tensor);
}

std::optional<TensorDifference> compare_tensor(const StoredTensor& tensor, Subject& first,
                                               Subject& second) {
  using Kind = TensorDifference::Kind;
  const auto* other = second.manifest.contents.find(tensor.name);
  if (other == nullptr) return TensorDifference{tensor.name, Kind::only_first};
  if (other->shape != tensor.shape) return TensorDifference{tensor.name, Kind::shape};
  if (other->dtype != tensor.dtype) return TensorDifference{tensor.name, Kind::dtype};
  return compare_values(tensor, first, second);
}

void compare_tensors(Subject& first, Subject& second, Comparison& comparison) {
  for (const auto& tensor : first.manifest.contents.tensors) {
    if (second.manifest.contents.find(tensor.name) != nullptr) ++comparison.common;
    if (auto difference = compare_tensor(tensor, first, second)) {
      comparison.tensors.push_back(std::move(*difference));
    }
  }
  for (const auto& tensor : second.manifest.contents.tensors) {
    if (first.manifest.contents.find(tensor.name) == nullptr) {
      comparison.tensors.push_back({tensor.name, TensorDifference::Kind::only_second});
    }
  }
  std::sort(comparison.tensors.begin(), comparison.tensors.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
}

constexpr const char* settings_name = "config";

std::set<std::string> settings_of(const Manifest& manifest) {
  std::set<std::string> lines;
  if (!manifest.state.is_object() || !manifest.state.contains(settings_name)) return lines;
  const auto& settings = manifest.state[settings_name];
  std::istringstream text(settings.is_string() ? settings.get<std::string>()
                                               : base::json_text(settings));
  for (std::string line; std::getline(text, line);) lines.insert(line);
  return lines;
}

/// Members of the saved state but the configuration, and what stands beside it.
base::Json facts_of(const Manifest& manifest) {
  auto facts = manifest.state.is_object() ? manifest.state : base::Json::object();
  facts.erase(settings_name);
  facts["step"] = manifest.step;
  facts["tokens"] = manifest.tokens;
  facts["tool_version"] = manifest.tool_version;
  return facts;
}

std::vector<base::Json> compare_facts(const base::Json& first, const base::Json& second) {
  std::set<std::string> names;
  for (const auto* facts : {&first, &second}) {
    for (const auto& [name, value] : facts->items()) names.insert(name);
  }
  std::vector<base::Json> differences;
  for (const auto& name : names) {
    const auto a = first.value(name, base::Json{});
    const auto b = second.value(name, base::Json{});
    if (a != b) differences.push_back({name, a, b});
  }
  return differences;
}

}  // namespace

const char* TensorDifference::kind_text() const {
  switch (kind) {
    case Kind::only_first:
      return "only in the first";
    case Kind::only_second:
      return "only in the second";
    case Kind::shape:
      return "shape";
    case Kind::dtype:
      return "dtype";
    case Kind::values:
      break;
  }
  return "values";
}

Comparison compare(const std::filesystem::path& first_step,
                   const std::filesystem::path& second_step) {
  Subject first(first_step);
  Subject second(second_step);
  Comparison comparison;
  compare_tensors(first, second, comparison);
  comparison.facts = compare_facts(facts_of(first.manifest), facts_of(second.manifest));
  const auto a = settings_of(first.manifest);
  const auto b = settings_of(second.manifest);
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(),
                      std::back_inserter(comparison.only_first_settings));
  std::set_difference(b.begin(), b.end(), a.begin(), a.end(),
                      std::back_inserter(comparison.only_second_settings));
  return comparison;
}

}  // namespace trireme::checkpoint
