// SPDX-License-Identifier: Apache-2.0
#include "field_reader.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json_text.hpp"

#include <cmath>
#include <utility>

namespace trireme::huggingface {

using base::Json;

namespace {

/// The limit of model::check(), so that products of sizes fit 64 bits.
constexpr std::int64_t largest_size = std::int64_t{1} << 28;

}  // namespace

FieldReader::FieldReader(const Json& json, FieldPlace place, model::Architecture family,
                         std::string where)
    : json_(json), place_(place), family_(family), where_(std::move(where)) {}

void FieldReader::refuse(const std::string& text) {
  if (status_.ok()) status_ = base::usage_failure(base::format("{}: {}", where_, text));
}

void FieldReader::refuse(const base::Status& status) {
  if (status_.ok()) status_ = status;
}

void FieldReader::check(std::vector<std::string>& warnings) {
  refuse(check_fields(json_, place_, family_, where_, warnings));
}

bool FieldReader::has(const char* name) const {
  return json_.contains(name) && !json_[name].is_null();
}

void FieldReader::refuse_null(const char* name) {
  if (!json_.contains(name) || !json_[name].is_null()) return;
  const auto* field = find_field(place_, name, family_);
  TRIREME_ENSURE(field != nullptr, std::string("a field of the table: ") + name);
  refuse(base::format("{} = null is no value ({}); leave it out for {}, or give it", name,
                      field->meaning, field->value));
}

Json FieldReader::value(const char* name) {
  if (has(name)) return json_[name];
  const auto* field = find_field(place_, name, family_);
  TRIREME_ENSURE(field != nullptr && field->treatment == Treatment::read,
                 std::string("a field that the table says is read: ") + name);
  auto otherwise = Json::parse(field->value, nullptr, false);
  if (otherwise.is_discarded()) return nullptr;
  refuse_null(name);
  return otherwise;
}

std::int64_t FieldReader::size(const char* name, std::int64_t otherwise) {
  const auto json = value(name);
  if (json.is_null()) return otherwise;
  if (!json.is_number_integer()) {
    refuse(base::format("{} = {} is not a whole number", name, base::json_text(json)));
    return 1;
  }
  if (json < 1 || json > largest_size) {
    refuse(base::format("{} = {} is out of range; use 1 to {}", name, base::json_text(json),
                        largest_size));
    return 1;
  }
  return json.get<std::int64_t>();
}

int FieldReader::count(const char* name, int otherwise) {
  return static_cast<int>(size(name, otherwise));
}

double FieldReader::real(const char* name, double otherwise) {
  const auto json = value(name);
  if (json.is_null()) return otherwise;
  if (!json.is_number()) {
    refuse(base::format("{} = {} is not a number", name, base::json_text(json)));
    return otherwise;
  }
  const auto number = json.get<double>();
  if (!(number >= 0.0) || !std::isfinite(number)) {
    refuse(
        base::format("{} = {} is out of range; use a number from 0", name, base::json_text(json)));
  }
  return number;
}

bool FieldReader::flag(const char* name) {
  const auto json = value(name);
  if (json.is_boolean()) return json.get<bool>();
  refuse(base::format("{} = {} is not true or false", name, base::json_text(json)));
  return false;
}

std::string FieldReader::text(const char* name) {
  const auto json = value(name);
  if (json.is_string()) return json.get<std::string>();
  refuse(base::format("{} = {} is not text", name, base::json_text(json)));
  return {};
}

const char* FieldReader::either(const char* name, const char* other) {
  if (!has(other)) return name;
  if (!has(name)) return other;
  if (json_[name] != json_[other]) {
    refuse(
        base::format("{} = {}, but {} = {} (two names of one setting, of which readers differ in "
                     "the one that they take); make them equal, or leave one out",
                     name, base::json_text(json_[name]), other, base::json_text(json_[other])));
  }
  return name;
}

}  // namespace trireme::huggingface
