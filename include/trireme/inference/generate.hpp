// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/config/config.hpp"
#include "trireme/inference/sampling.hpp"
#include "trireme/runtime/session.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::inference {

/// Sequences that one data-parallel replica decodes side by side, unless asked otherwise.
inline constexpr std::int64_t usual_batch = 8;

struct GenerateRequest {
  /// Checkpoint step, run folder (its newest step) or Hugging Face folder.
  std::filesystem::path weights;
  /// tokenizer.json; empty: data.tokenizer, else the one that belongs to the weights.
  std::filesystem::path tokenizer;
  std::vector<std::string> prompts;
  /// Texts that end an answer before it is as long as it may be; they are left out of it.
  std::vector<std::string> stops;
  /// New tokens for each prompt at most. Nothing: 128, or as many as the model has positions for.
  std::optional<std::int64_t> max_tokens;
  /// Sequences that one data-parallel replica decodes side by side.
  std::int64_t batch = usual_batch;
  Sampling sampling;
};

enum class Ending { stop_token, length, stop_text };
/// "length", or "stop" of both others.
const char* name(Ending ending);

/// Generated continuation of one prompt.
struct Answer {
  std::size_t prompt = 0;
  std::int64_t prompt_tokens = 0;
  /// Generated tokens without the stop token; with those of a stop text.
  std::vector<std::int32_t> tokens;
  /// Text without the stop token, or the stop text and everything after it; bytes that are not
  /// UTF-8 become U+FFFD.
  std::string text;
  Ending ending = Ending::length;
};

/// Callbacks for answers, on rank 0 only.
struct AnswerListener {
  /// Called with each piece of the first prompt's answer as it is generated; a piece may end inside
  /// a character.
  std::function<void(std::string_view bytes)> piece = [](std::string_view) {};
  /// Called with every answer, in the order of the prompts, when all are complete.
  std::function<void(const Answer&)> answer = [](const Answer&) {};
};

/// Prompts of a text: one a line, empty lines left out, or a JSON list of texts, which may hold
/// line ends. A byte order mark and the carriage returns of line ends are no part of them; other
/// bytes stay as they are. Failures (usage; UTF-16 and NUL bytes are some) name `source`.
base::Result<std::vector<std::string>> parse_prompts(const std::string& text,
                                                     const std::string& source);

/// Collective over all ranks. Prompts from standard input, on all ranks: `read` is called only on
/// the rank that the launcher has connected to it. An exception of `read` ends all ranks.
std::vector<std::string> prompts_from_input(runtime::Session& session,
                                            const std::function<std::vector<std::string>()>& read);

/// Collective over all ranks. Continues each prompt token by token, with cached keys and values,
/// until a stop token, a stop text or the limit. Prompts are shared among data-parallel replicas;
/// greedy answers in fp32 are the same for every layout. Users' mistakes end on all ranks with one
/// text.
void generate(const GenerateRequest& request, const config::Config& config,
              runtime::Session& session, const AnswerListener& listener);

}  // namespace trireme::inference
