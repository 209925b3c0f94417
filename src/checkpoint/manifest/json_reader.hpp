// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/layout/box.hpp"

#include "checkpoint/manifest/check.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace trireme::checkpoint {

/// Members of untrusted JSON, each checked for its type; the first failure is kept.
class JsonReader {
 public:
  explicit JsonReader(std::string_view source) : source_(source) {}

  const base::Json& member(const base::Json& object, const char* key) {
    static const base::Json nothing;
    if (!object.is_object() || !object.contains(key)) {
      fail(base::format("member '{}' is missing", key));
      return nothing;
    }
    return object[key];
  }
  std::int64_t number(const base::Json& json, const char* what) {
    // Unsigned numbers above the signed range are refused with the negative ones.
    if (json.is_number_integer() &&
        (!json.is_number_unsigned() || json.get<std::uint64_t>() <= INT64_MAX)) {
      const auto value = json.get<std::int64_t>();
      if (value >= 0) return value;
    }
    fail(base::format("'{}' is not a whole number from 0 to 2^63 - 1", what));
    return 0;
  }
  std::string text(const base::Json& json, const char* what) {
    if (json.is_string()) return json.get<std::string>();
    fail(base::format("'{}' is not a text", what));
    return {};
  }
  layout::Shape shape(const base::Json& json, const char* what) {
    layout::Shape numbers;
    if (!json.is_array() || json.empty() || json.size() > max_dimensions) {
      fail(base::format("'{}' is not a list of 1 to {} numbers", what, max_dimensions));
      return numbers;
    }
    for (const auto& each : json) numbers.push_back(number(each, what));
    return numbers;
  }
  const base::Json& list(const base::Json& json, const char* what) {
    static const base::Json nothing = base::Json::array();
    if (json.is_array()) return json;
    fail(base::format("'{}' is not a list", what));
    return nothing;
  }
  void fail(std::string text) {
    if (!failure_) failure_ = base::checkpoint_failure(base::format("{}: {}", source_, text));
  }
  const std::optional<base::Failure>& failure_so_far() const { return failure_; }

 private:
  std::string source_;
  std::optional<base::Failure> failure_;
};

}  // namespace trireme::checkpoint
