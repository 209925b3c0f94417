// SPDX-License-Identifier: Apache-2.0
#include "prompts.hpp"

#include "trireme/base/counted.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/text.hpp"

#include <algorithm>

namespace trireme::inference {

using data::Tokenizer;

namespace {

void say_broken_texts(const std::vector<std::string>& prompts) {
  const auto broken = std::count_if(prompts.begin(), prompts.end(), [](const std::string& prompt) {
    return base::first_broken_utf8(prompt).has_value();
  });
  if (broken == 0) return;
  base::log::warning("prompts", "{} of {} hold bytes that are not UTF-8; these are read as U+FFFD",
                     broken, base::counted(std::ssize(prompts), "prompt"));
}

}  // namespace

base::Result<std::vector<DecodedSequence>> encode_prompts(const std::vector<std::string>& prompts,
                                                          const Tokenizer& tokenizer,
                                                          const model::ModelConfig& model,
                                                          std::string_view tokenizer_option) {
  say_broken_texts(prompts);
  std::vector<DecodedSequence> sequences;
  for (const auto& prompt : prompts) {
    DecodedSequence sequence;
    sequence.index = static_cast<std::int64_t>(sequences.size());
    sequence.ids = tokenizer.encode(prompt, data::Template::apply);
    // Empty prompt: begins after the end of another text.
    if (sequence.ids.empty()) {
      if (const auto end = tokenizer.end_of_text()) sequence.ids.push_back(*end);
    }
    if (sequence.ids.empty()) {
      return base::usage_failure(base::format(
          "prompt {} is empty and the tokenizer has no token that begins a text; give some text",
          sequence.index));
    }
    const auto largest = *std::max_element(sequence.ids.begin(), sequence.ids.end());
    if (largest >= model.vocab_size) {
      return base::usage_failure(base::format(
          "the tokenizer made token {} of prompt {} but model.vocab_size is {} (they do not belong "
          "together); name the model's own with {}",
          largest, sequence.index, model.vocab_size, tokenizer_option));
    }
    sequence.prompt_size = sequence.ids.size();
    sequences.push_back(std::move(sequence));
  }
  return sequences;
}

std::vector<DecodedSequence> share_of(const std::vector<DecodedSequence>& all,
                                      const comm::ProcessGroup& data) {
  std::vector<DecodedSequence> mine;
  for (auto index = static_cast<std::size_t>(data.rank()); index < all.size();
       index += static_cast<std::size_t>(data.size())) {
    mine.push_back(all[index]);
  }
  return mine;
}

Answer answer_of(const DecodedSequence& sequence, const Tokenizer& tokenizer,
                 const StopTexts& stops) {
  Answer answer;
  answer.prompt = static_cast<std::size_t>(sequence.index);
  answer.prompt_tokens = static_cast<std::int64_t>(sequence.prompt_size);
  answer.tokens.assign(sequence.ids.begin() + static_cast<std::ptrdiff_t>(sequence.prompt_size),
                       sequence.ids.end());
  answer.text = tokenizer.decode(answer.tokens);
  answer.ending = sequence.ending.value_or(Ending::length);
  if (answer.ending == Ending::stop_text) answer.text.resize(stops.cut(answer.text));
  return answer;
}

std::vector<DecodedSequence> gather(std::vector<DecodedSequence> all,
                                    const std::vector<DecodedSequence>& mine,
                                    std::int64_t max_tokens, comm::ProcessGroup& data) {
  const auto replicas = static_cast<std::size_t>(data.size());
  const auto share = (all.size() + replicas - 1) / replicas;
  // Row of each sequence: number of tokens, ending, tokens.
  const auto width = static_cast<std::size_t>(max_tokens) + 2;
  std::vector<std::int32_t> own(share * width);
  for (std::size_t index = 0; index < mine.size(); ++index) {
    auto* record = own.data() + index * width;
    record[0] = static_cast<std::int32_t>(mine[index].ids.size() - mine[index].prompt_size);
    record[1] = static_cast<std::int32_t>(mine[index].ending.value_or(Ending::length));
    std::copy(mine[index].ids.begin() + static_cast<std::ptrdiff_t>(mine[index].prompt_size),
              mine[index].ids.end(), record + 2);
  }
  std::vector<std::int32_t> everybodys(own.size() * replicas);
  const auto tensor = [](std::vector<std::int32_t>& values) {
    return device::Tensor(values.data(), device::DType::i32,
                          {static_cast<std::int64_t>(values.size())});
  };
  data.host_group().all_gather(tensor(own), tensor(everybodys));
  for (std::size_t index = 0; index < all.size(); ++index) {
    const auto* record = everybodys.data() + (index % replicas * share + index / replicas) * width;
    all[index].ids.insert(all[index].ids.end(), record + 2, record + 2 + record[0]);
    all[index].ending = static_cast<Ending>(record[1]);
  }
  return all;
}

}  // namespace trireme::inference
