// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"
#include "trireme/inference/evaluate.hpp"

#include <cmath>

namespace trireme::inference {

double Evaluation::perplexity() const {
  return std::exp(loss);
}

std::optional<double> Evaluation::bits_per_byte() const {
  if (!bytes || *bytes == 0) return std::nullopt;
  auto bytes_per_token = static_cast<double>(*bytes) / static_cast<double>(tokens);
  // Bytes of a blend are weighted as the loss is.
  if (!sources.empty()) bytes_per_token = 0;
  for (const auto& source : sources) {
    bytes_per_token += source.share * static_cast<double>(source.bytes.value_or(0)) /
                       static_cast<double>(source.tokens);
  }
  return loss / std::log(2.0) / bytes_per_token;
}

base::Json to_json(const Evaluation& evaluation) {
  base::Json json;
  json["weights"] = evaluation.weights.string();
  json["step"] = evaluation.step ? base::Json(*evaluation.step) : base::Json(nullptr);
  json["loss"] = evaluation.loss;
  json["perplexity"] = evaluation.perplexity();
  const auto bits = evaluation.bits_per_byte();
  json["bits_per_byte"] = bits ? base::Json(*bits) : base::Json(nullptr);
  json["tokens"] = evaluation.tokens;
  json["bytes"] = evaluation.bytes ? base::Json(*evaluation.bytes) : base::Json(nullptr);
  json["sequences"] = evaluation.sequences;
  json["sequence_length"] = evaluation.sequence_length;
  if (evaluation.sequences_of_run) json["sequences_of_run"] = *evaluation.sequences_of_run;
  for (const auto& source : evaluation.sources) {
    json["sources"].push_back({{"source", source.source},
                               {"share", source.share},
                               {"tokens", source.tokens},
                               {"loss", source.loss}});
  }
  json["seconds"] = evaluation.seconds;
  json["tokens_per_second"] = static_cast<double>(evaluation.tokens) / evaluation.seconds;
  return json;
}

std::string text(const Evaluation& evaluation) {
  auto text = base::format("weights        {}\n", evaluation.weights.string());
  if (evaluation.step) text += base::format("step           {}\n", *evaluation.step);
  text += base::format("held out       {} tokens in {} sequences of {}\n", evaluation.tokens,
                       evaluation.sequences, evaluation.sequence_length);
  text += base::format("loss           {} nats a token\n", base::fixed_text(evaluation.loss, 6));
  for (const auto& source : evaluation.sources) {
    text +=
        base::format("  {:<12} {} of {} tokens in '{}'\n", base::format("{:.4g} x", source.share),
                     base::fixed_text(source.loss, 6), source.tokens, source.source);
  }
  text += base::format("perplexity     {}\n", base::fixed_text(evaluation.perplexity(), 4));
  if (const auto bits = evaluation.bits_per_byte(); bits && evaluation.bytes) {
    text += base::format("bits per byte  {} ({} bytes of text)\n", base::fixed_text(*bits, 4),
                         *evaluation.bytes);
  } else if (!evaluation.bytes) {
    text +=
        "bits per byte  not known: no tokenizer belongs to the weights (data.tokenizer names "
        "one)\n";
  }
  if (evaluation.sequences_of_run) {
    text += base::format(
        "in training    losses of the run's log and report are of {} of these sequences "
        "(train.eval_batches)\n",
        *evaluation.sequences_of_run);
  }
  text += base::format("time           {:.2f} s, {:.0f} tokens/s\n", evaluation.seconds,
                       static_cast<double>(evaluation.tokens) / evaluation.seconds);
  return text;
}

}  // namespace trireme::inference
