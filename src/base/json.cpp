// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/json.hpp"

#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json_lists.hpp"
#include "trireme/base/json_text.hpp"

#include <unordered_set>
#include <vector>

namespace trireme::base {
namespace {

constexpr int max_nesting = 128;

/// Nesting is bounded before the recursive parser sees the text: its stack is not ours to lose.
bool nests_too_deeply(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    if (in_string) {
      if (letter == '\\') ++at;
      if (letter == '"') in_string = false;
    } else if (letter == '"') {
      in_string = true;
    } else if (letter == '{' || letter == '[') {
      if (++depth > max_nesting) return true;
    } else if (letter == '}' || letter == ']') {
      --depth;
    }
  }
  return false;
}

/// Place and cause of an error, of which the library writes "[its name] parse error at line 1,
/// column 2: cause", or the cause alone.
std::string reason(std::size_t position, std::string_view what) {
  const auto name_end = what.find("] ");
  if (name_end != std::string_view::npos) what.remove_prefix(name_end + 2);
  constexpr std::string_view at = "parse error at ";
  if (!what.starts_with(at)) return format("byte {}: {}", position, what);
  return std::string(what.substr(at.size()));
}

/// Builds the value as the parser reads it. The library's own builder looks for each key among all
/// before it, which takes minutes for a vocabulary; here keys are appended, and repeated ones found
/// once per object.
class Builder : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(const TakeElement& take = nullptr) : take_(take) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t& value) override { return add(std::move(value)); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    key_ = std::move(name);
    return true;
  }
  bool end_object() override {
    std::unordered_set<std::string_view> seen;
    for (const auto& [name, value] : open_.back()->get_ref<const Json::object_t&>()) {
      if (!seen.insert(name).second) {
        problem_ = format("the key '{}' stands twice in one object", name);
        return false;
      }
    }
    return close();
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    problem_ = format("not valid JSON at {}", reason(position, error.what()));
    return false;
  }

  Json take() { return std::move(root_); }
  const std::string& problem() const { return problem_; }

 private:
  template <typename Value>
  bool add(Value&& value) {
    place(Json(std::forward<Value>(value)));
    return true;
  }
  bool open(Json value) {
    open_.push_back(place(std::move(value)));
    return true;
  }
  bool close() {
    open_.pop_back();
    const bool in_list_of_root = open_.size() == 2 && root_.is_object() && open_[1]->is_array();
    if (!take_ || !in_list_of_root) return true;
    auto& elements = open_[1]->get_ref<Json::array_t&>();
    const auto& key = root_.get_ref<const Json::object_t&>().back().first;
    if (take_(root_, key, elements.back())) elements.pop_back();
    return true;
  }
  /// Appends the value. Its address is good until its container gets a sibling; by then the value
  /// is complete.
  Json* place(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    auto& container = *open_.back();
    if (container.is_array()) {
      auto& elements = container.get_ref<Json::array_t&>();
      return &elements.emplace_back(std::move(value));
    }
    auto& members = container.get_ref<Json::object_t&>();
    return &members.Container::emplace_back(std::move(key_), std::move(value)).second;
  }

  TakeElement take_;
  Json root_;
  std::vector<Json*> open_;
  std::string key_;
  std::string problem_;
};

}  // namespace

Result<Json> parse_json_lists(std::string_view text, std::string_view source, ExitCode code,
                              const TakeElement& take) {
  if (nests_too_deeply(text)) {
    return Failure{code, format("{}: JSON nests deeper than {} levels", source, max_nesting)};
  }
  // The library takes a zero byte for the end of the text, and what follows would be lost.
  if (const auto zero = text.find('\0'); zero != std::string_view::npos) {
    return Failure{code,
                   format("{}: a zero byte at offset {} (JSON has none); remove it", source, zero)};
  }
  Builder builder(take);
  if (!Json::sax_parse(text, &builder)) {
    return Failure{code, format("{}: {}", source, builder.problem())};
  }
  return builder.take();
}

Result<Json> parse_json(std::string_view text, std::string_view source, ExitCode code) {
  return parse_json_lists(text, source, code, nullptr);
}

std::string json_text(const Json& value, int indentation) {
  return value.dump(indentation, ' ', false, Json::error_handler_t::replace);
}

Result<Json> read_json_file(const std::filesystem::path& path, ExitCode code,
                            std::size_t max_bytes) {
  auto text = read_text_file(path, code, max_bytes);
  if (!text) return text.failure();
  return parse_json(*text, path.string(), code);
}

}  // namespace trireme::base
