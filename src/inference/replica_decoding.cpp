// SPDX-License-Identifier: Apache-2.0
#include "replica_decoding.hpp"

#include <algorithm>

namespace trireme::inference {

namespace {

/// Rows of a step while prompts are read: enough for efficient GEMMs.
constexpr std::int64_t prompt_rows_at_once = 512;

}  // namespace

namespace {

std::int64_t longest_of(const std::vector<DecodedSequence>& prompts) {
  std::size_t longest = 0;
  for (const auto& prompt : prompts) longest = std::max(longest, prompt.prompt_size);
  return static_cast<std::int64_t>(longest);
}

}  // namespace

std::int64_t most_new_tokens(const GenerateRequest& request, const model::ModelConfig& model,
                             const std::vector<DecodedSequence>& prompts) {
  if (request.max_tokens) return *request.max_tokens;
  constexpr std::int64_t usual = 128;
  const auto room = model.max_position_embeddings - longest_of(prompts);
  return std::clamp<std::int64_t>(room, 1, usual);
}

void fit_to_prompts(DecoderOptions& options, const std::vector<DecodedSequence>& prompts,
                    std::int64_t batch, std::int64_t max_tokens) {
  std::int64_t together = 0;
  for (const auto& prompt : prompts) together += static_cast<std::int64_t>(prompt.prompt_size);
  const std::int64_t replicas = options.mesh.degree(layout::replica_axes);
  const auto share = (static_cast<std::int64_t>(prompts.size()) + replicas - 1) / replicas;
  const auto slots = std::min(batch, share);
  options.capacity = {static_cast<int>(slots), longest_of(prompts) + max_tokens};
  // Together the prompts may be longer than the caches: one reuses the slot of another that has
  // ended.
  const auto places = slots * options.capacity.positions;
  options.rows_at_once = std::max(slots, std::min({prompt_rows_at_once, together, places}));
}

ReplicaDecoding::ReplicaDecoding(Decoder& decoder, const DecodingLimits& limits,
                                 const Sampling& sampling, std::vector<DecodedSequence> sequences,
                                 Chosen chosen)
    : decoder_(decoder),
      limits_(limits),
      sampling_(sampling),
      sequences_(std::move(sequences)),
      chosen_(std::move(chosen)),
      holders_(static_cast<std::size_t>(limits.slots), nobody) {}

bool ReplicaDecoding::fill_slots() {
  bool any = false;
  for (auto& holder : holders_) {
    if (holder != nobody && sequences_[holder].ending) holder = nobody;
    if (holder == nobody && next_ < sequences_.size()) holder = next_++;
    any = any || holder != nobody;
  }
  return any;
}

bool ReplicaDecoding::goes_on(bool has_any) const {
  if (limits_.together == nullptr) return has_any;
  std::int32_t any = has_any ? 1 : 0;
  limits_.together->host_group().all_reduce(device::Tensor(&any, device::DType::i32, {1}),
                                            comm::ReduceOp::max);
  return any != 0;
}

void ReplicaDecoding::collect() {
  parts_.clear();
  tokens_.clear();
  auto others = std::count_if(holders_.begin(), holders_.end(),
                              [](std::size_t holder) { return holder != nobody; });
  for (std::size_t slot = 0; slot < holders_.size(); ++slot) {
    if (holders_[slot] == nobody) continue;
    const auto& sequence = sequences_[holders_[slot]];
    const auto first_row = static_cast<std::int64_t>(tokens_.size());
    const auto room = limits_.rows_at_once - first_row - --others;
    const auto pending = static_cast<std::int64_t>(sequence.ids.size() - sequence.cached);
    const auto count = std::min(pending, room);
    parts_.push_back(
        {static_cast<int>(slot), static_cast<std::int64_t>(sequence.cached), first_row, count});
    const auto begin = sequence.ids.begin() + static_cast<std::ptrdiff_t>(sequence.cached);
    tokens_.insert(tokens_.end(), begin, begin + static_cast<std::ptrdiff_t>(count));
  }
}

void ReplicaDecoding::choose(const device::Tensor& logits) {
  next_tokens_.assign(parts_.size(), 0);
  if (logits) {
    const auto width = logits.dim(2);
    for (std::size_t index = 0; index < parts_.size(); ++index) {
      const auto& sequence = of(parts_[index]);
      next_tokens_[index] =
          choose_token({logits.f32() + static_cast<std::int64_t>(index) * width,
                        static_cast<std::size_t>(std::min(width, limits_.vocabulary))},
                       sampling_, sequence.index, static_cast<std::int64_t>(sequence.ids.size()));
    }
  }
  decoder_.share(next_tokens_);
}

void ReplicaDecoding::take(DecodedSequence& sequence, std::int32_t token) {
  const auto& stops = limits_.stop_tokens;
  if (std::find(stops.begin(), stops.end(), token) != stops.end()) {
    sequence.ending = Ending::stop_token;
    return;
  }
  sequence.ids.push_back(token);
  chosen_(sequence, token);
  const auto made = static_cast<std::int64_t>(sequence.ids.size() - sequence.prompt_size);
  if (made >= limits_.max_tokens) sequence.ending = Ending::length;
  if (limits_.ends_with && limits_.ends_with(sequence, token)) {
    sequence.ending = Ending::stop_text;
  }
}

void ReplicaDecoding::run() {
  while (goes_on(fill_slots())) {
    collect();
    if (parts_.empty()) {
      decoder_.run_nobodys();
      continue;
    }
    choose(decoder_.run(parts_, tokens_));
    for (std::size_t index = 0; index < parts_.size(); ++index) {
      auto& sequence = of(parts_[index]);
      sequence.cached += static_cast<std::size_t>(parts_[index].count);
      // Next token of a prompt that is not completely read is already known.
      if (sequence.cached == sequence.ids.size()) take(sequence, next_tokens_[index]);
    }
  }
}

}  // namespace trireme::inference
