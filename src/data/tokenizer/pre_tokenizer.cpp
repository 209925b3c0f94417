// SPDX-License-Identifier: Apache-2.0
#include "data/tokenizer/pre_tokenizer.hpp"

#include "trireme/base/format.hpp"

#include "data/documents/json_fields.hpp"
#include "data/tokenizer/text/known_patterns.hpp"

namespace trireme::data {
namespace {

using base::format;
using base::Json;

base::Failure unknown(const std::string& what) {
  return tokenizer_failure(format(
      "the pre-tokenizer {} is not one that Trireme knows (guessing would give other tokens); "
      "it knows ByteLevel, Split by a regular expression with behavior Isolated, and "
      "Sequences of these",
      what));
}

}  // namespace

base::Result<PreTokenizer> PreTokenizer::from_json(const Json& json) {
  PreTokenizer result;
  if (auto status = result.add(json); !status) return status.failure();
  if (!result.byte_level_) return unknown(type_of(json) + " without ByteLevel at its end");
  return result;
}

base::Status PreTokenizer::add(const Json& json) {
  const auto type = type_of(json);
  if (byte_level_) return unknown(type + " after ByteLevel");
  if (type == "ByteLevel") return add_byte_level(json);
  if (type == "Split") return add_split(json);
  const auto* parts = find_member(json, "pretokenizers");
  if (type != "Sequence" || parts == nullptr || !parts->is_array()) {
    return unknown("'" + type + "'");
  }
  for (const auto& part : *parts) {
    if (auto status = add(part); !status) return status;
  }
  return {};
}

base::Status PreTokenizer::add_byte_level(const Json& json) {
  const auto prefix = bool_member(json, "add_prefix_space", true);
  if (!prefix) return prefix.failure();
  const auto use_regex = bool_member(json, "use_regex", true);
  if (!use_regex) return use_regex.failure();
  Step step;
  step.add_prefix_space = *prefix;
  if (*prefix || (!*use_regex && steps_.empty())) ends_words_at_lines_ = false;
  if (*use_regex) {
    auto regex = Regex::compile_oniguruma(byte_level_pattern);
    if (!regex) return regex.failure();
    step.regex = std::move(regex).value();
  }
  steps_.push_back(std::move(step));
  byte_level_ = true;
  return {};
}

base::Status PreTokenizer::add_split(const Json& json) {
  const auto behavior = text_member(json, "behavior");
  if (!behavior) return behavior.failure();
  if (*behavior != "Isolated") return unknown(format("Split with behavior {}", *behavior));
  const auto* pattern = find_member(json, "pattern");
  const auto* expression = pattern == nullptr ? nullptr : find_member(*pattern, "Regex");
  if (expression == nullptr || !expression->is_string()) {
    return unknown("Split by something else than a regular expression");
  }
  const auto& text = expression->get_ref<const std::string&>();
  if (text != llama3_pattern && text != qwen2_pattern && text != byte_level_pattern) {
    ends_words_at_lines_ = false;
  }
  auto regex = Regex::compile_oniguruma(text);
  if (!regex) return regex.failure();
  if (regex->matches_empty()) return unknown("Split by a pattern that matches the empty text");
  Step step;
  step.regex = std::move(regex).value();
  steps_.push_back(std::move(step));
  return {};
}

Splitter::Splitter(const PreTokenizer& pre_tokenizer) {
  for (const auto& step : pre_tokenizer.steps_) {
    Step own{step.add_prefix_space, std::nullopt, {}};
    if (step.regex) own.matcher.emplace(*step.regex);
    steps_.push_back(std::move(own));
  }
}

}  // namespace trireme::data
