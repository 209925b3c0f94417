// SPDX-License-Identifier: Apache-2.0
#include "data/tokenizer/post_processor.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/json_text.hpp"

#include "data/documents/json_fields.hpp"

namespace trireme::data {
namespace {

using base::format;
using base::Json;
using base::Result;
using base::Status;

/// Appends the ids of the template's special token.
Status append_special(const Json& processor, const std::string& name,
                      std::vector<std::int32_t>& ids) {
  const auto* specials = find_member(processor, "special_tokens");
  const auto* special = specials == nullptr ? nullptr : find_member(*specials, name);
  const auto* list = special == nullptr ? nullptr : find_member(*special, "ids");
  if (list == nullptr || !list->is_array()) {
    return tokenizer_failure(
        format("post_processor: the template's special token '{}' has no ids", name));
  }
  for (const auto& id : *list) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > 0x7FFFFFFF) {
      return tokenizer_failure(
          format("post_processor: id {} of '{}' is no id", base::json_text(id), name));
    }
    ids.push_back(id.get<std::int32_t>());
  }
  return {};
}

Result<Surroundings> read_template(const Json& processor) {
  const auto* single = find_member(processor, "single");
  if (single == nullptr || !single->is_array()) {
    return tokenizer_failure("post_processor: a template without 'single'");
  }
  Surroundings around;
  bool seen_text = false;
  for (const auto& part : *single) {
    if (const auto* text = find_member(part, "Sequence"); text != nullptr) {
      if (seen_text) return tokenizer_failure("post_processor: a template that repeats the text");
      seen_text = true;
      continue;
    }
    const auto* special = find_member(part, "SpecialToken");
    if (special == nullptr) {
      return tokenizer_failure(
          format("post_processor: {} is neither text nor special token", base::json_text(part)));
    }
    const auto name = text_member(*special, "id");
    if (!name) return name.failure();
    auto& ids = seen_text ? around.suffix : around.prefix;
    if (auto status = append_special(processor, *name, ids); !status) return status.failure();
  }
  if (!seen_text) return tokenizer_failure("post_processor: a template without the text");
  return around;
}

}  // namespace

Result<Surroundings> read_post_processor(const Json& json) {
  const auto type = type_of(json);
  if (type == "ByteLevel") return Surroundings{};
  if (type == "TemplateProcessing") return read_template(json);
  const auto* parts = find_member(json, "processors");
  if (type != "Sequence" || parts == nullptr || !parts->is_array()) {
    return tokenizer_failure(
        format("the post-processor '{}' is not one that Trireme knows (guessing would give other "
               "tokens); it knows ByteLevel, TemplateProcessing and Sequences of these",
               type));
  }
  Surroundings around;
  int templates = 0;
  for (const auto& part : *parts) {
    auto one = read_post_processor(part);
    if (!one) return one;
    if (type_of(part) == "ByteLevel") continue;
    if (++templates > 1) return tokenizer_failure("post_processor: more than one template");
    around = std::move(one).value();
  }
  return around;
}

}  // namespace trireme::data
