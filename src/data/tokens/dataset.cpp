// SPDX-License-Identifier: Apache-2.0
#include "trireme/data/dataset.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/data/permutation.hpp"

#include "data/tokenizer/hash.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>

namespace trireme::data {
namespace {

using base::ExitCode;
using base::Failure;
using base::format;
using base::Result;

constexpr int weight_decimals = 9;

struct Source {
  std::string path;
  std::optional<std::uint64_t> weight;  ///< in units of 1e-9
};

bool all_digits(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// "0.3" as 300000000, without rounding; nothing when it is no such number.
std::optional<std::uint64_t> parse_weight(std::string_view text) {
  const auto dot = text.find('.');
  const auto whole = text.substr(0, dot);
  const auto fraction = dot == std::string_view::npos ? std::string_view{} : text.substr(dot + 1);
  if (whole.size() + fraction.size() == 0 || whole.size() > 6 ||
      fraction.size() > weight_decimals || !all_digits(whole) || !all_digits(fraction)) {
    return std::nullopt;
  }
  const auto digits = std::string(whole) + std::string(fraction) +
                      std::string(static_cast<std::size_t>(weight_decimals) - fraction.size(), '0');
  std::uint64_t weight = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), weight);
  return weight;
}

/// Weight's colon: one that is followed by the begin of a number.
Result<Source> parse_source(const std::string& text) {
  const auto colon = text.rfind(':');
  if (colon == std::string::npos || colon + 1 == text.size() ||
      text.find_first_of("0123456789.-+", colon + 1) != colon + 1 ||
      text.find('/', colon) != std::string::npos) {
    return Source{text, std::nullopt};
  }
  const auto weight = parse_weight(std::string_view(text).substr(colon + 1));
  if (!weight || *weight == 0) {
    return base::usage_failure(
        format("weight '{}' of data source '{}' is no decimal number above zero and below 1000000 "
               "with at most {} decimals (proportions are exact); write for example '{}:0.3'",
               text.substr(colon + 1), text, weight_decimals, text.substr(0, colon)));
  }
  return Source{text.substr(0, colon), weight};
}

Result<std::vector<Source>> parse_sources(const std::vector<std::string>& texts) {
  if (texts.empty()) {
    return base::usage_failure(
        "no data sources are named (there is nothing to read samples from); set data.train to the "
        "prefix of a token file");
  }
  std::vector<Source> sources;
  for (const auto& text : texts) {
    auto source = parse_source(text);
    if (!source) return source.failure();
    sources.push_back(std::move(source).value());
  }
  const auto weighted = std::count_if(sources.begin(), sources.end(), [](const Source& source) {
    return source.weight.has_value();
  });
  if (weighted != 0 && weighted != static_cast<std::ptrdiff_t>(sources.size())) {
    const auto bare = std::find_if(sources.begin(), sources.end(),
                                   [](const Source& source) { return !source.weight; });
    return base::usage_failure(
        format("data source '{}' has no weight but others have (shares would be undefined); give "
               "every source a weight, or none",
               bare->path));
  }
  return sources;
}

base::Status check_source(const IndexedTokens& tokens, const DatasetOptions& options,
                          FileCheck check) {
  if (tokens.token_count() <= options.sequence_length) {
    return Failure{ExitCode::checkpoint,
                   format("'{}' has {} tokens, too few for one sample of {} + 1 (train."
                          "sequence_length); prepare more text or shorten the sequence",
                          tokens.path().string(), tokens.token_count(), options.sequence_length)};
  }
  if (options.vocab_size == 0 || check == FileCheck::sizes) return {};
  // A look at some blocks catches the wrong tokenizer at once; sample() checks every id it gives.
  const auto found = tokens.extremes(1024);
  if (found && (found->smallest < 0 || found->largest >= options.vocab_size)) {
    return Failure{
        ExitCode::checkpoint,
        format("'{}' holds token id {}, outside the model's vocabulary of {} (it was "
               "prepared with another tokenizer); prepare it again or set "
               "model.vocab_size above {}",
               tokens.path().string(), found->smallest < 0 ? found->smallest : found->largest,
               options.vocab_size, found->largest)};
  }
  return {};
}

}  // namespace

Result<TokenDataset> TokenDataset::open(const std::vector<std::string>& sources,
                                        const DatasetOptions& options, FileCheck check) {
  TRIREME_EXPECT(options.sequence_length > 0, "a sequence length above zero");
  const auto parsed = parse_sources(sources);
  if (!parsed) return parsed.failure();
  TokenDataset dataset;
  dataset.options_ = options;
  dataset.first_sample_.push_back(0);
  for (const auto& source : *parsed) {
    auto tokens = IndexedTokens::open(source.path, check);
    if (!tokens) return tokens.failure();
    if (const auto status = check_source(*tokens, options, check); !status) {
      return status.failure();
    }
    const auto samples = (tokens->token_count() - 1) / options.sequence_length;
    dataset.first_sample_.push_back(dataset.first_sample_.back() + samples);
    if (source.weight) dataset.weights_.push_back(*source.weight);
    dataset.sources_.push_back(std::move(tokens).value());
  }
  if (!dataset.weights_.empty()) dataset.blend_.emplace(dataset.weights_);
  dataset.sample_count_ = dataset.first_sample_.back();
  return dataset;
}

std::int64_t TokenDataset::token_count() const {
  return std::accumulate(
      sources_.begin(), sources_.end(), std::int64_t{0},
      [](std::int64_t sum, const auto& source) { return sum + source.token_count(); });
}

std::uint64_t TokenDataset::epoch_of(std::uint64_t global_index) const {
  return global_index / static_cast<std::uint64_t>(sample_count_);
}

std::int64_t TokenDataset::sample_count(std::size_t source) const {
  return first_sample_[source + 1] - first_sample_[source];
}

double TokenDataset::epochs(std::uint64_t drawn) const {
  return static_cast<double>(drawn) / static_cast<double>(sample_count_);
}

std::vector<std::uint64_t> TokenDataset::draws(std::uint64_t drawn) const {
  return blend_ ? blend_->counts(drawn) : std::vector<std::uint64_t>{};
}

TokenDataset::Place TokenDataset::place(std::uint64_t global_index) const {
  // Unit that is permuted each epoch: the concatenation (pool 0), or one source (its number plus
  // one).
  std::uint64_t pool = 0;
  auto drawn = global_index;
  auto first = std::int64_t{0};
  auto count = sample_count_;
  if (blend_) {
    const auto draw = (*blend_)(global_index);
    drawn = draw.index;
    pool = draw.source + 1;
    first = first_sample_[draw.source];
    count = first_sample_[draw.source + 1] - first;
  }
  const auto samples = static_cast<std::uint64_t>(count);
  const auto epoch = drawn / samples;
  auto position = drawn % samples;
  if (options_.shuffle) position = Permutation(samples, mix(options_.seed, pool), epoch)(position);
  return place_of_sample(first + static_cast<std::int64_t>(position));
}

/// Place of a sample by its number among those of all sources.
TokenDataset::Place TokenDataset::place_of_sample(std::int64_t sample) const {
  const auto after = std::upper_bound(first_sample_.begin(), first_sample_.end(), sample);
  const auto source = static_cast<std::size_t>(after - first_sample_.begin()) - 1;
  return {source, (sample - first_sample_[source]) * options_.sequence_length};
}

std::vector<TokenDataset::Part> TokenDataset::parts() const {
  if (!blend_) return {{0, static_cast<std::uint64_t>(sample_count_), 1.0}};
  const auto sum = std::accumulate(weights_.begin(), weights_.end(), std::uint64_t{0});
  std::vector<Part> parts;
  for (std::size_t source = 0; source < sources_.size(); ++source) {
    parts.push_back({static_cast<std::uint64_t>(first_sample_[source]),
                     static_cast<std::uint64_t>(first_sample_[source + 1]),
                     static_cast<double>(weights_[source]) / static_cast<double>(sum)});
  }
  return parts;
}

void TokenDataset::sample(std::uint64_t global_index, std::span<std::int32_t> tokens) const {
  read(place(global_index), tokens);
}

TokenDataset::Place TokenDataset::place_of_pass(std::uint64_t number) const {
  TRIREME_EXPECT(number < static_cast<std::uint64_t>(sample_count_), "a sample of the pass");
  return place_of_sample(static_cast<std::int64_t>(number));
}

void TokenDataset::sample_of_pass(std::uint64_t number, std::span<std::int32_t> tokens) const {
  read(place_of_pass(number), tokens);
}

void TokenDataset::document_starts(std::uint64_t global_index,
                                   std::span<std::int32_t> starts) const {
  const auto from = place(global_index);
  sources_[from.source].document_starts(from.begin, starts);
}

void TokenDataset::document_starts_of_pass(std::uint64_t number,
                                           std::span<std::int32_t> starts) const {
  const auto from = place_of_pass(number);
  sources_[from.source].document_starts(from.begin, starts);
}

void TokenDataset::read(const Place& from, std::span<std::int32_t> tokens) const {
  TRIREME_EXPECT(tokens.size() == static_cast<std::size_t>(options_.sequence_length) + 1,
                 "room for sequence_length + 1 tokens");
  const auto& source = sources_[from.source];
  source.read(from.begin, tokens);
  if (options_.vocab_size == 0) return;
  const auto limit = static_cast<std::uint32_t>(options_.vocab_size);
  // Seen as unsigned, a negative id is above every limit.
  std::uint32_t largest = 0;
  for (const auto token : tokens) largest = std::max(largest, static_cast<std::uint32_t>(token));
  if (largest < limit) return;
  const auto bad = std::find_if(tokens.begin(), tokens.end(), [&](std::int32_t token) {
    return static_cast<std::uint32_t>(token) >= limit;
  });
  throw base::Error(ExitCode::checkpoint,
                    format("'{}': token {} is id {}, outside the model's vocabulary of {} (it was "
                           "prepared with another tokenizer); prepare it again",
                           source.path().string(), from.begin + (bad - tokens.begin()), *bad,
                           options_.vocab_size));
}

std::uint64_t TokenDataset::hash_of_order() const {
  auto hash = mix(0, static_cast<std::uint64_t>(options_.sequence_length));
  hash = mix(hash, options_.shuffle ? 1 : 0);
  // The seed has no effect without shuffling.
  return mix(hash, options_.shuffle ? options_.seed : 0);
}

std::uint64_t TokenDataset::fingerprint() const {
  auto hash = hash_of_order();
  for (const auto& source : sources_) hash = mix(hash, source.fingerprint());
  for (const auto weight : weights_) hash = mix(hash, weight);
  return hash;
}

std::uint64_t TokenDataset::outline() const {
  auto hash = hash_of_order();
  for (const auto& source : sources_) {
    hash = mix(hash, static_cast<std::uint64_t>(source.token_count()));
  }
  for (const auto weight : weights_) hash = mix(hash, weight);
  return hash;
}

}  // namespace trireme::data
