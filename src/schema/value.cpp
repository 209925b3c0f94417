// SPDX-License-Identifier: Apache-2.0
#include "trireme/schema/value.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/number.hpp"
#include "trireme/base/suggest.hpp"
#include "trireme/base/text.hpp"
#include "trireme/schema/quoted.hpp"
#include "trireme/schema/schema.hpp"
#include "trireme/schema/text.hpp"

#include "keys.hpp"

#include <algorithm>
#include <cmath>

namespace trireme::schema {
namespace {

using base::format;
using base::lower_case;
using base::printable;
using base::Result;
using base::trimmed;
using base::usage_failure;

constexpr std::size_t max_list_entries = 4096;

/// "problem": what is wrong, after "key = text"; "fix": what to do, after the semicolon.
base::Failure value_failure(const Key& key, std::string_view text, std::string_view problem,
                            std::string_view fix) {
  return usage_failure(format("{} = {} {} ({}); {}", key.full_name(), quoted_if_odd(text), problem,
                              purpose(key), fix));
}

template <typename Number>
std::optional<Number> whole_text_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  return base::number_in<Number>(text);
}

std::string range_fix(const Key& key) {
  return format("give {}", permitted_text(key));
}

Result<void> check_range(const Key& key, std::string_view text, double number) {
  const auto& [minimum, maximum, above, below] = key.range;
  if (minimum && (number < *minimum || (above && number <= *minimum))) {
    return value_failure(key, text, "is too small", range_fix(key));
  }
  if (maximum && (number > *maximum || (below && number >= *maximum))) {
    const auto fix = *maximum == count_max
                         ? format("give {} to {:.0f}", minimum.value_or(0), count_max)
                         : range_fix(key);
    return value_failure(key, text, "is too large", fix);
  }
  return {};
}

Result<std::int64_t> parse_integer(const Key& key, std::string_view text) {
  const auto number = whole_text_number<std::int64_t>(text);
  if (!number) {
    auto fix = range_fix(key);
    const auto real = whole_text_number<double>(text);
    if (real && std::floor(*real) == *real && std::abs(*real) < 1e15) {
      fix = format("write {:.0f}", *real);
    }
    return value_failure(key, text, "is not a whole number", fix);
  }
  if (auto status = check_range(key, text, static_cast<double>(*number)); !status) {
    return status.failure();
  }
  return *number;
}

Result<double> parse_real(const Key& key, std::string_view text) {
  const auto number = whole_text_number<double>(text);
  if (!number || !std::isfinite(*number)) {
    return value_failure(key, text, "is not a number", range_fix(key));
  }
  if (auto status = check_range(key, text, *number); !status) return status.failure();
  return *number == 0.0 ? 0.0 : *number;  // -0 and 0 are one value with one text
}

Result<Value> parse_flag(const Key& key, std::string_view text) {
  const auto word = lower_case(text);
  if (word == "true" || word == "yes" || word == "on" || word == "1") return Value{true};
  if (word == "false" || word == "no" || word == "off" || word == "0") return Value{false};
  return value_failure(key, text, "is neither true nor false", range_fix(key));
}

/// Names that other trainers give to the same choice. They are only suggested, never accepted.
constexpr std::pair<std::string_view, std::string_view> foreign_choices[] = {
    {"gpu", "cuda"},        {"nvidia", "cuda"},  {"bfloat16", "bf16"},
    {"bf16-mixed", "bf16"}, {"float32", "fp32"}, {"float", "fp32"},
    {"float8", "fp8"},      {"e4m3", "fp8"},     {"float8_e4m3", "fp8"}};

std::string choice_suggestion(std::string_view text, const std::vector<std::string>& choices) {
  for (const auto& [foreign, ours] : foreign_choices) {
    if (foreign == text && std::find(choices.begin(), choices.end(), ours) != choices.end()) {
      return format("; did you mean '{}'?", ours);
    }
  }
  return base::did_you_mean(text, choices);
}

Result<Value> parse_choice(const Key& key, std::string_view text) {
  if (std::find(key.choices.begin(), key.choices.end(), text) != key.choices.end()) {
    return Value{std::string(text)};
  }
  const std::vector<std::string> choices(key.choices.begin(), key.choices.end());
  return value_failure(
      key, text, "is not a choice",
      format("give {}{}", permitted_text(key), choice_suggestion(lower_case(text), choices)));
}

/// Sizes and times share this: a phrase of failure becomes a failure of the key.
template <typename Number>
Result<Value> parse_measure(const Key& key, std::string_view text, const Result<Number>& number) {
  if (!number)
    return value_failure(key, text, format("is not a valid {}", name(key.type)),
                         number.failure().text);
  if (auto status = check_range(key, text, static_cast<double>(*number)); !status) {
    return status.failure();
  }
  return Value{*number};
}

/// The text itself, or what its quotes hold; it ends with them.
Result<std::string> parse_text(const Key& key, std::string_view text) {
  if (!text.starts_with('"')) return std::string(text);
  auto part = read_quoted(text);
  std::string problem;
  if (!part) {
    problem = part.failure().text;
  } else if (part->size != text.size()) {
    problem = "goes on behind its quotes";
  } else if (const auto unfit = unfit_text(part->text)) {
    problem = unfit->problem;
  } else {
    return std::move(part->text);
  }
  return value_failure(key, text, problem,
                       "write \"...\" around all of it, with \\\" and \\\\ for these letters and "
                       "\\xHH for a byte that is not UTF-8");
}

/// Place of the comma that ends the first entry of a list.
std::size_t entry_end(std::string_view text) {
  const auto blanks = text.find_first_not_of(" \t");
  const auto entry = text.substr(std::min(blanks, text.size()));
  if (!entry.starts_with('"')) return text.find(',');
  const auto part = read_quoted(entry);
  return part ? text.find(',', blanks + part->size) : std::string_view::npos;
}

Result<std::vector<std::string_view>> split_list(const Key& key, std::string_view whole) {
  std::vector<std::string_view> parts;
  auto text = whole;
  if (trimmed(text).empty()) return parts;
  for (;;) {
    const auto comma = entry_end(text);
    const auto part = trimmed(text.substr(0, comma));
    if (part.empty() || part == "\"\"") {
      return value_failure(key, whole, "has an empty entry",
                           "separate entries by one comma, with none at the end");
    }
    parts.push_back(part);
    if (parts.size() > max_list_entries) {
      return value_failure(key, "the list", "is too long",
                           format("give at most {} entries", max_list_entries));
    }
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

Result<WeightedText> parse_weighted(const Key& key, std::string_view part) {
  auto colon = part.rfind(':');
  if (const auto quotes = part.rfind('"'); part.starts_with('"') && quotes != 0) {
    // A colon within the quotes belongs to the name.
    if (colon < quotes) colon = std::string_view::npos;
  }
  auto text = parse_text(key, trimmed(part.substr(0, colon)));
  if (!text) return text.failure();
  if (colon == std::string_view::npos) return WeightedText{*std::move(text), 1.0};
  const auto weight = whole_text_number<double>(trimmed(part.substr(colon + 1)));
  if (text->empty() || !weight || !std::isfinite(*weight) || *weight <= 0) {
    return value_failure(key, part, "is not an entry with a weight",
                         "write NAME or NAME:WEIGHT with a weight above 0, such as books:0.7");
  }
  return WeightedText{*std::move(text), *weight};
}

template <typename Entry, typename Parse>
Result<Value> parse_list(const Key& key, std::string_view text, const Parse& parse) {
  const auto parts = split_list(key, text);
  if (!parts) return parts.failure();
  std::vector<Entry> entries;
  for (const auto part : *parts) {
    Result<Entry> entry = parse(part);
    if (!entry) return entry.failure();
    entries.push_back(*std::move(entry));
  }
  return Value{std::move(entries)};
}

Result<Value> parse_by_type(const Key& key, std::string_view text) {
  const auto as_value = [](auto number) -> Result<Value> {
    if (!number) return number.failure();
    return Value{*std::move(number)};
  };
  switch (key.type) {
    case Type::integer:
      return as_value(parse_integer(key, text));
    case Type::real:
      return as_value(parse_real(key, text));
    case Type::text:
      return as_value(parse_text(key, text));
    case Type::flag:
      return parse_flag(key, text);
    case Type::choice:
      return parse_choice(key, text);
    case Type::bytes:
      return parse_measure(key, text, parse_bytes(text));
    case Type::seconds:
      return parse_measure(key, text, parse_seconds(text));
    case Type::integers:
      return parse_list<std::int64_t>(
          key, text, [&key](std::string_view part) { return parse_integer(key, part); });
    case Type::texts:
      return parse_list<std::string>(
          key, text, [&key](std::string_view part) { return parse_text(key, part); });
    case Type::weighted_texts:
      return parse_list<WeightedText>(
          key, text, [&key](std::string_view part) { return parse_weighted(key, part); });
  }
  return usage_failure("no such type");
}

}  // namespace

Result<Value> parse_value(const Key& key, std::string_view raw) {
  const auto text = trimmed(raw);
  if (auto problem = unfit_text(text)) {
    return value_failure(key, printable(text.substr(0, 40)), problem->problem, problem->fix);
  }
  if (key.allows_auto() && text == "auto") return Value{Automatic{}};
  const bool may_be_empty = key.type == Type::text || key.type == Type::integers ||
                            key.type == Type::texts || key.type == Type::weighted_texts;
  if (text.empty() && !may_be_empty) {
    return value_failure(key, text, "is empty", range_fix(key));
  }
  return parse_by_type(key, text);
}

}  // namespace trireme::schema
