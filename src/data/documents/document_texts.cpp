// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"

#include "data/documents/document_reader.hpp"
#include "data/documents/strict_json.hpp"
#include "data/documents/text_check.hpp"

namespace trireme::data {
namespace {

using base::ExitCode;
using base::Failure;
using base::format;
using base::Status;

std::string members_of(const base::Json& object) {
  std::string names;
  for (const auto& [name, value] : object.items()) {
    if (names.size() > 200) return names + ", ...";
    names += (names.empty() ? "" : ", ") + name;
  }
  return names.empty() ? "none" : names;
}

}  // namespace

std::string_view DocumentTexts::of(const DocumentBatch& batch, const RawDocument& document) {
  is_repaired_ = false;
  skipped_.reset();
  if (!document.is_json) {
    base::success_or_throw(check_plain_text(document.text, document.begins_at, *batch.source));
    return document.text;
  }
  const auto status = take_text(batch, document);
  if (status.ok()) return storage_;
  if (bad_lines_ == BadLines::refuse) base::success_or_throw(status);
  skipped_ = status.failure().text;
  return {};
}

Status DocumentTexts::take_text(const DocumentBatch& batch, const RawDocument& document) {
  const auto where = format("'{}' line {}", *batch.source, document.line);
  auto json = base::parse_json(document.text, where, ExitCode::checkpoint);
  if (!json) {
    const auto strict = strict_json(document.text);
    auto again = base::parse_json(strict.text, where, ExitCode::checkpoint);
    // The first failure speaks of the line as it stands.
    if (!again) return json.failure();
    json = std::move(again);
    is_repaired_ = strict.is_repaired;
  }
  if (!json->is_object()) {
    return Failure{ExitCode::checkpoint,
                   format("{}: {}, expected an object with the text in '{}' (every line is one "
                          "document)",
                          where, json->type_name(), text_field_)};
  }
  const auto member = json->find(text_field_);
  if (member == json->end() || !member->is_string()) {
    return Failure{
        ExitCode::checkpoint,
        format("{}: no text in '{}' (members: {}); say with --text-field which member holds "
               "the text",
               where, text_field_, members_of(*json))};
  }
  storage_ = std::move(member->get_ref<std::string&>());
  return {};
}

}  // namespace trireme::data
