// SPDX-License-Identifier: Apache-2.0
#include "trireme/track/target.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/path.hpp"
#include "trireme/base/suggest.hpp"
#include "trireme/base/text.hpp"

#include <algorithm>
#include <array>

namespace trireme::track {
namespace {

struct KindName {
  Kind kind;
  const char* name;
  const char* place;
  bool is_url;
};
constexpr std::array<KindName, 5> kinds{{{Kind::tensorboard, "tensorboard", "DIR", false},
                                         {Kind::wandb, "wandb", "DIR", false},
                                         {Kind::mlflow, "mlflow", "URL", true},
                                         {Kind::otlp, "otlp", "URL", true},
                                         {Kind::prometheus, "prometheus", "FILE", false}}};

std::string all_forms() {
  std::vector<std::string> forms;
  for (const auto& each : kinds) forms.push_back(base::format("{}={}", each.name, each.place));
  return base::format("{}", base::join(forms, ", "));
}

bool is_http_url(std::string_view text) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (text.starts_with(scheme) && text.size() > scheme.size()) return true;
  }
  return false;
}

}  // namespace

const char* name(Kind kind) {
  const auto* const found = std::find_if(kinds.begin(), kinds.end(),
                                         [kind](const auto& each) { return each.kind == kind; });
  return found->name;
}

std::string Target::text() const {
  return base::format("{}={}", name(kind), place);
}

base::Result<Target> parse_target(std::string_view text) {
  const auto equals = text.find('=');
  const auto word = text.substr(0, equals);
  const auto* const found = std::find_if(kinds.begin(), kinds.end(),
                                         [word](const auto& each) { return each.name == word; });
  if (found == kinds.end()) {
    std::vector<std::string> names;
    for (const auto& each : kinds) names.emplace_back(each.name);
    return base::usage_failure(base::format("there is no tracker '{}' (a target is one of {}){}",
                                            base::printable(word), all_forms(),
                                            base::did_you_mean(word, names)));
  }
  std::string place(equals == std::string_view::npos ? "" : text.substr(equals + 1));
  if (place.empty()) {
    return base::usage_failure(base::format("'{}' says not where to; write {}={}",
                                            base::printable(text), found->name, found->place));
  }
  if (!found->is_url) return Target{found->kind, base::absolute(place).string()};
  if (!is_http_url(place)) {
    return base::usage_failure(
        base::format("'{}' is no URL; write {}=http://HOST:PORT, or https://",
                     base::printable(place), found->name));
  }
  while (place.ends_with('/')) place.pop_back();
  return Target{found->kind, std::move(place)};
}

}  // namespace trireme::track
