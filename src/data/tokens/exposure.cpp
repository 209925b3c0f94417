// SPDX-License-Identifier: Apache-2.0
#include "trireme/data/exposure.hpp"

#include "trireme/base/counted.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/text.hpp"

#include <algorithm>

namespace trireme::data {
namespace {

using base::format;

/// "160 times", "0.0125 times", "71.5 thousand times", "once".
std::string times(double epochs) {
  return epochs == 1 ? "once" : base::factor_text(epochs) + " times";
}

}  // namespace

Exposure exposure_of(const TokenDataset& dataset, std::uint64_t drawn) {
  const auto length = dataset.sequence_length();
  Exposure exposure{.sequence_length = length,
                    .samples = dataset.sample_count(),
                    .tokens = dataset.token_count(),
                    .epochs = dataset.epochs(drawn),
                    .sources = {}};
  const auto parts = dataset.parts();
  const bool weighted = dataset.is_weighted();
  const auto drawn_of = dataset.draws(drawn);
  for (std::size_t index = 0; index < dataset.sources().size(); ++index) {
    const auto& tokens = dataset.sources()[index];
    // As configurations name it.
    auto prefix = tokens.path();
    Exposure::Source source{.prefix = prefix.replace_extension().string(),
                            .samples = dataset.sample_count(index),
                            .tokens = tokens.token_count()};
    const auto samples = static_cast<double>(source.samples);
    source.share = weighted ? parts[index].share : samples / static_cast<double>(exposure.samples);
    source.epochs = weighted ? static_cast<double>(drawn_of[index]) / samples : exposure.epochs;
    exposure.sources.push_back(std::move(source));
  }
  return exposure;
}

std::string text(const Exposure& exposure, std::int64_t steps, std::int64_t batch) {
  constexpr std::size_t most = 8;
  auto all =
      format("{} of {} tokens, seen {} in {} of {}", base::counted(exposure.samples, "sample"),
             exposure.sequence_length, times(exposure.epochs), base::counted(steps, "step"), batch);
  if (exposure.sources.size() == 1) return all;
  std::vector<std::string> parts;
  for (const auto& source : exposure.sources) {
    if (parts.size() == most) {
      parts.push_back(format("{} more", exposure.sources.size() - most));
      break;
    }
    parts.push_back(format("'{}' {:.4g} % ({}, seen {})", base::printable(source.prefix),
                           source.share * 100, base::counted(source.samples, "sample"),
                           times(source.epochs)));
  }
  return format("{}: {}", all, base::join(parts, ", "));
}

std::string repeats_in_batch(const TokenDataset& dataset, std::int64_t batch) {
  const auto exposure = exposure_of(dataset, static_cast<std::uint64_t>(batch));
  const auto most =
      std::max_element(exposure.sources.begin(), exposure.sources.end(),
                       [](const auto& a, const auto& b) { return a.epochs < b.epochs; });
  // An epoch has each sample once.
  if (most->epochs <= 1) return {};
  const bool is_of_source = dataset.is_weighted();
  const auto what = is_of_source ? format("'{}'", base::printable(most->prefix)) : "the data";
  const auto samples = is_of_source ? most->samples : exposure.samples;
  return format(
      "a batch of {} sequences holds the same ones more than once: {} {} only {} of {} tokens; "
      "prepare more text, or lower train.global_batch or train.sequence_length",
      batch, what, is_of_source ? "has" : "have", base::counted(samples, "sample"),
      exposure.sequence_length);
}

}  // namespace trireme::data
