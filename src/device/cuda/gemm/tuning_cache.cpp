// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/gemm/tuning_cache.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/base/text.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <vector>

namespace trireme::device::cuda {
namespace {

constexpr const char* format_name = "trireme products 1";
/// Entries of a file at most: a model has some tens of GEMMs.
constexpr std::size_t most_entries = 20000;
constexpr std::size_t longest_name = 400;
constexpr std::size_t word_digits = 16;

std::string digits_of(const Algorithm& algorithm) {
  std::string text;
  for (const auto word : algorithm) text += base::format("{:016x}", word);
  return text;
}

std::optional<Algorithm> algorithm_of(const base::Json& value) {
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  Algorithm algorithm{};
  if (text.size() != algorithm.size() * word_digits) return std::nullopt;
  for (std::size_t index = 0; index < algorithm.size(); ++index) {
    const char* const begin = text.data() + index * word_digits;
    const auto read = std::from_chars(begin, begin + word_digits, algorithm[index], 16);
    if (read.ec != std::errc() || read.ptr != begin + word_digits) return std::nullopt;
  }
  return algorithm;
}

/// Digest of names and values: a file that was cut or changed is seen.
std::string digest_of(const base::Json& gemms) {
  base::Fnv1a digest;
  for (const auto& [gemm, value] : gemms.items()) {
    digest.add(gemm);
    if (value.is_string()) digest.add(value.get_ref<const std::string&>());
  }
  return base::format("{:016x}", digest.value());
}

base::Failure not_a_cache(const std::string& problem) {
  return {base::ExitCode::usage, base::format("it is no list of products ({})", problem)};
}

}  // namespace

int fastest(std::size_t candidates, const std::function<double(std::size_t candidate)>& seconds,
            int rounds) {
  constexpr double out = std::numeric_limits<double>::infinity();
  constexpr double noise = 1.02;
  std::vector<double> best(candidates, out);
  std::vector<bool> fails(candidates, false);
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t candidate = 0; candidate < candidates; ++candidate) {
      if (fails[candidate]) continue;
      try {
        best[candidate] = std::min(best[candidate], seconds(candidate));
      } catch (const base::Error&) {
        fails[candidate] = true;
        best[candidate] = out;
      }
    }
  }
  const auto least = std::min_element(best.begin(), best.end());
  if (least == best.end() || *least == out) return -1;
  const auto first =
      std::find_if(best.begin(), best.end(), [&](double time) { return time <= *least * noise; });
  return static_cast<int>(first - best.begin());
}

const Algorithm* TuningCache::find(const std::string& gemm) const {
  const auto found = chosen_.find(gemm);
  return found == chosen_.end() ? nullptr : &found->second;
}

void TuningCache::add(const std::string& gemm, const Algorithm& algorithm) {
  if (chosen_.try_emplace(gemm, algorithm).second) added_.emplace(gemm, algorithm);
}

void TuningCache::clear() {
  chosen_.clear();
  added_.clear();
}

base::Status TuningCache::adopt(std::span<const std::string> texts) {
  for (const auto& [gemm, algorithm] : added_) chosen_.erase(gemm);
  added_.clear();
  base::Status result;
  for (const auto& text : texts) {
    if (auto status = merge(text); !status.ok() && result.ok()) result = std::move(status);
  }
  return result;
}

std::string TuningCache::text_of(const Chosen& chosen) const {
  base::Json gemms = base::Json::object();
  for (const auto& [gemm, algorithm] : chosen) gemms[gemm] = digits_of(algorithm);
  const base::Json json{{"format", format_name},
                        {"target", target_},
                        {"digest", digest_of(gemms)},
                        {"products", gemms}};
  return base::json_text(json, 1) + "\n";
}

base::Status TuningCache::merge(std::string_view text) {
  const auto parsed = base::parse_json(text, "choices of products");
  if (!parsed.ok()) return not_a_cache(parsed.failure().text);
  const auto& json = *parsed;
  const bool known = json.is_object() && json.contains("format") && json["format"] == format_name &&
                     json.contains("target") && json.contains("products") &&
                     json["products"].is_object();
  if (!known) return not_a_cache("its format is not known");
  if (json["target"] != target_) return {};
  if (json["products"].size() > most_entries) return not_a_cache("it is too long");
  if (!json.contains("digest") || json["digest"] != digest_of(json["products"])) {
    return not_a_cache("its digest is another");
  }
  std::map<std::string, Algorithm> taken;
  for (const auto& [gemm, value] : json["products"].items()) {
    const auto algorithm = algorithm_of(value);
    if (!algorithm || gemm.size() > longest_name) {
      return not_a_cache(
          base::format("what stands for '{}' is no algorithm", gemm.substr(0, longest_name)));
    }
    taken.emplace(gemm, *algorithm);
  }
  chosen_.merge(taken);
  return {};
}

}  // namespace trireme::device::cuda
